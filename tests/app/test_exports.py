"""Downloads of the app agree with what the screen shows."""

import io
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from skcoral.app import exports, sources
from skcoral.app.problem import arguments, pose, request_of
from skcoral.app.settings import Settings
from skcoral.models.files import load_model, model_json


@pytest.fixture(scope="module")
def mine():
    """A file with text, a missing value, weights and a name that needs quoting."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(60, 1)) + rng.normal(size=(60, 4))
    frame = pd.DataFrame(table, columns=["a", "it's; b", "c", "d"])
    frame.insert(2, "who", [f"row {i}" for i in range(60)])
    frame["w"] = np.arange(60) % 3
    frame.loc[5, "c"] = np.nan
    return frame


@pytest.fixture
def folder(mine, tmp_path, monkeypatch):
    """A place where the uploaded file lies under its own name."""
    monkeypatch.chdir(tmp_path)
    mine.to_csv("my table.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def source(mine):
    return sources.read_file(mine.to_csv(index=False).encode(), "my table.csv", key="k")


MODES = [
    Settings(floor=0.9, without=("w",)),
    Settings(floor=0.9, weights="w", own_floors=(("a", 0.99),)),
    Settings(mode="budget", budget=0.2, covariance="OAS", without=("w", "d")),
    Settings(mode="max_correlation", max_correlation=0.2, without=("w",)),
    Settings(mode="support", floor=0.9, support=0.4, without=("w",)),
]

READERS = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": pd.read_excel}


def fitted(problem, settings, scale="unit"):
    return problem.data.fit(arguments(problem, settings) | {"output_scale": scale})


def test_model_report_and_transformation(source, tmp_path):
    settings = MODES[0]
    problem = pose(source, request_of(settings))
    path = tmp_path / "model.json"
    fit = fitted(problem, settings)
    path.write_text(model_json(fit.model))
    assert np.array_equal(load_model(path).T_, fit.model.T_)
    html = exports.page(fit, "coral fit x").decode()
    for words in (fit.measured.headline(), "coral fit x", "1 row with missing values is not used"):
        assert words in html
    T = pd.read_csv(io.BytesIO(exports.matrix_file(fit, "csv")), index_col=0)
    assert np.allclose(T.to_numpy(), fit.model.T_, rtol=1e-14, atol=0)
    assert list(T.index) == list(T.columns) == list(fit.model.result_.names)


@pytest.mark.parametrize("scale", ["unit", "original"])
@pytest.mark.parametrize(
    ("settings", "ending"), [*zip(MODES, [*READERS, "csv", "csv"], strict=True)]
)
def test_the_command_writes_what_is_downloaded(folder, source, settings, ending, scale, capsys):
    """What the command writes is proved from the definitions in tests/cli."""
    from skcoral import cli

    problem = pose(source, request_of(settings))
    command = exports.command(problem, settings, ending=ending, scale=scale)
    status = cli.main([*shlex.split(command)[1:], "--json"])
    record = json.loads(capsys.readouterr().out)
    assert status in (0, 4)
    fit = fitted(problem, settings, scale)
    assert record["objective"] == pytest.approx(fit.model.result_.objective, abs=1e-7)
    read = READERS[ending]
    made = read(folder / f"decorrelated.{ending}")
    pd.testing.assert_frame_equal(read(io.BytesIO(exports.table_file(fit, ending))), made)
    assert (folder / "report.html").exists()


def test_example_command_starts_from_nothing(tmp_path, monkeypatch, capsys, wine, conic_optimum):
    from skcoral import cli

    monkeypatch.chdir(tmp_path)
    problem = pose(sources.example(), request_of(Settings()))
    demo, fit = exports.command(problem, Settings(floor=0.85), ending="csv").splitlines()
    assert cli.main(shlex.split(demo)[1:]) == 0
    capsys.readouterr()
    assert cli.main([*shlex.split(fit)[1:], "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["objective"] == pytest.approx(conic_optimum(wine.correlation, 0.85), abs=1e-7)


def test_file_names_are_safe(mine):
    data = mine.to_csv(index=False).encode()
    odd = sources.read_file(data, "../../a b<c>.csv", key="k")
    stem = exports.file_stem(odd.opened.table.label)
    assert re.fullmatch(r"[\w-]+", stem)


def test_take_away_tab(open_app, bring, wine):
    at = open_app(tab="Downloads", floor=0.9)
    assert "--rho-min 0.9" in at.code[0].value
    labels = [b.proto.label for b in at.get("download_button")]
    assert labels == ["Decorrelated table", "Model (JSON)", "Report (HTML)", "Transformation T"]
    matrix = wine.to_frame().corr().to_csv().encode()
    only_matrix = bring("m.csv", matrix, tab="Downloads", mode="support", floor=0.9)
    labels = [b.proto.label for b in only_matrix.get("download_button")]
    assert labels == ["Transformation T"]
    assert "coral fit m.csv --rho-min 0.9 --support 0.15 --matrix" in only_matrix.code[0].value
