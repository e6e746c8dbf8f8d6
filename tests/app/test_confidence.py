"""Floors for the population in the app: dependent rows, and what is downloaded."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL
from skcoral.app import exports, sources
from skcoral.app.problem import arguments, group_columns, pose, request_of
from skcoral.app.settings import Settings
from skcoral.models.files import load_model, model_json


@pytest.fixture(scope="module")
def sites():
    """Rows in clusters, some without a value; sites are text, batches numbers."""
    rng = np.random.default_rng(4)
    shared = np.repeat(rng.normal(size=(30, 3)), 5, axis=0)
    frame = pd.DataFrame(shared + rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    frame["b"] += frame["a"]
    frame.insert(0, "site", [f"s{i // 5}" for i in range(150)])
    frame["batch"] = np.arange(150) // 10
    frame.loc[7, "c"] = np.nan
    return frame


@pytest.mark.parametrize("by", ["site", "batch"])
def test_rows_that_belong_together(bring, metric, sites, by):
    data = sites.to_csv(index=False).encode()
    at = bring("sites.csv", data, floor=0.8, without=("batch",))
    next(t for t in at.toggle if "population" in t.label).set_value(True).run()
    assert any("site has 30 labels that repeat" in c.value for c in at.caption)
    box = next(s for s in at.selectbox if s.label == "Rows that belong together")
    assert f"those with the same {by}" in box.options
    box.set_value(by)
    at.run()
    assert not at.exception
    complete = sites.dropna()
    sure = CORAL(0.8, confidence=0.95).fit(complete[["a", "b", "c"]], groups=complete[by])
    assert sure.confidence_.sentence() in (*at.success, *at.info)[0].value.replace("\\", "")
    assert metric(at, "Weakest fidelity") == pytest.approx(sure.fidelity_.min(), abs=1e-4)
    at.toggle(key="new_rows").set_value(True).run()
    said = next(m.value for m in at.markdown if "Fitted 5 times" in m.value)
    assert "without one part of the groups" in said


def test_columns_that_name_groups_are_no_variables(bring, sites):
    data = sites.to_csv(index=False).encode()
    at = bring(
        "s.csv", data, floor=0.8, population=True, groups="a", without=("batch",), target="c"
    )
    assert at.session_state["settings"].groups == ""  # a is a variable
    source = sources.read_file(data, "s.csv", key="k")
    problem = pose(source, request_of(Settings(without=("batch",))))
    assert group_columns(problem) == ["site", "batch"]


def test_independent_rows(open_app, metric, wine):
    plain = metric(open_app(floor=0.85), "Residual")
    at = open_app(tab="Outputs", floor=0.85, population=True)
    sure = CORAL(0.85, confidence=0.95).fit(wine.to_frame())
    assert metric(at, "Residual") == pytest.approx(sure.result_.objective, rel=1e-3)
    assert metric(at, "Residual") > plain
    assert sure.confidence_.sentence() in at.success[0].value.replace("\\", "")
    shown = next(d.value for d in at.dataframe if "floor asked" in d.value)
    assert list(shown["floor asked"].unique()) == [0.85]
    assert (shown["fidelity at least"] >= 0.85).all()
    off = open_app(floor=1.0, population=True)  # a floor that cannot be raised
    assert not off.exception
    assert not off.error


def test_what_is_taken_away_repeats_the_floors(sites, tmp_path, monkeypatch, capsys):
    from skcoral import cli

    monkeypatch.chdir(tmp_path)
    sites.to_csv("sites.csv", index=False)
    settings = Settings(floor=0.8, population=True, without=("batch",), groups="site")
    source = sources.read_file(sites.to_csv(index=False).encode(), "sites.csv", key="k")
    problem = pose(source, request_of(settings))
    fit = problem.data.fit(arguments(problem, settings), groups="site")
    (tmp_path / "m.json").write_text(model_json(fit.model))
    assert fit.model.confidence_.about in exports.page(fit, "").decode()
    words = shlex.split(exports.command(problem, settings, ending="csv"))[1:]
    assert cli.main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    for floors in (load_model(tmp_path / "m.json").floors_, list(record["rho_min"].values())):
        np.testing.assert_allclose(floors, fit.model.floors_, atol=1e-7)
