"""Downloads of the app agree with what the screen shows."""

import io
import json
import os
import re
import shlex
from functools import partial

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
    Settings(floor=0.9, weights="w", own=(("a", 0.99),)),
    Settings(mode="budget", budget=0.2, covariance="OAS", without=("w", "d")),
    Settings(mode="max_correlation", max_correlation=0.2, without=("w",)),
    Settings(mode="support", floor=0.9, support=0.4, without=("w",)),
]


def fitted(problem, settings, scale="unit"):
    return problem.data.fit(arguments(problem, settings) | {"output_scale": scale})


def by_hand(mine, source, settings, scale="unit"):
    """The decorrelated columns, from the definition."""
    problem = pose(source, request_of(settings))
    complete = mine.dropna(subset=list(problem.names))
    X = complete[list(problem.names)].to_numpy()
    w = complete["w"].to_numpy() if settings.weights else np.ones(len(X))
    mean = (w[:, None] * X).sum(axis=0) / w.sum()
    sd = np.sqrt((w[:, None] * (X - mean) ** 2).sum(axis=0) / (w.sum() - w @ w / w.sum()))
    if settings.covariance:  # such estimators divide by n
        sd *= np.sqrt(1 - 1 / len(X))
    out = (X - mean) / sd @ fitted(problem, settings).model.T_
    return complete, out * sd + mean if scale == "original" else out


@pytest.mark.parametrize("scale", ["unit", "original"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_decorrelated_table(mine, source, ending, scale):
    settings = MODES[1]
    problem = pose(source, request_of(settings))
    fit = fitted(problem, settings, scale)
    data = exports.decorrelated(fit, ending=ending)
    read_excel = partial(pd.read_excel, engine="calamine")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": read_excel}[ending]
    found = read(io.BytesIO(data))
    complete, expected = by_hand(mine, source, settings, scale)
    assert list(found.columns) == list(mine.columns)
    outputs = found[list(problem.names)]
    assert np.allclose(outputs.loc[complete.index].to_numpy(float), expected, atol=1e-9)
    assert outputs.drop(index=complete.index).isna().all(axis=None)
    assert found["who"].tolist() == mine["who"].tolist()


def test_model_and_report(source, tmp_path):
    settings = MODES[0]
    problem = pose(source, request_of(settings))
    path = tmp_path / "model.json"
    fit = fitted(problem, settings)
    path.write_text(model_json(fit.model))
    assert np.array_equal(load_model(path).T_, fit.model.T_)
    html = exports.page(problem, fit, command="coral fit x").decode()
    assert fit.measured.headline() in html
    assert "coral fit x" in html
    assert "1 row with missing values is not used" in html


def test_transformation_file(source):
    settings = MODES[0]
    problem = pose(source, request_of(settings))
    result = fitted(problem, settings).model.result_
    data = io.BytesIO(exports.matrix_file(problem, result.T))
    found = pd.read_csv(data, index_col=0)
    assert np.allclose(found.to_numpy(), result.T, rtol=1e-14, atol=0)
    assert list(found.index) == list(found.columns) == list(result.names)


@pytest.mark.parametrize("settings", MODES)
def test_command_repeats_the_numbers(folder, mine, source, settings, capsys):
    from skcoral import cli

    problem = pose(source, request_of(settings))
    command = exports.command(problem, settings, ending="csv")
    words = shlex.split(command)[1:]
    status = cli.main([*words, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert status in (0, 4)
    expected = fitted(problem, settings).model.result_
    assert told["objective"] == pytest.approx(expected.objective, abs=1e-7)
    _, outputs = by_hand(mine, source, settings)
    found = pd.read_csv("decorrelated.csv")[list(problem.names)].dropna().to_numpy()
    assert np.allclose(found, outputs, atol=1e-6)
    assert os.path.exists("report.html")


def test_example_command_starts_from_nothing(tmp_path, monkeypatch, capsys, wine, conic_optimum):
    from skcoral import cli

    monkeypatch.chdir(tmp_path)
    problem = pose(sources.example(), request_of(Settings()))
    demo, fit = exports.command(problem, Settings(floor=0.85), ending="csv").splitlines()
    assert cli.main(shlex.split(demo)[1:]) == 0
    capsys.readouterr()
    assert cli.main([*shlex.split(fit)[1:], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["objective"] == pytest.approx(conic_optimum(wine.correlation, 0.85), abs=1e-7)


def test_file_names_are_safe(mine):
    data = mine.to_csv(index=False).encode()
    odd = sources.read_file(data, "../../a b<c>.csv", key="k")
    stem = exports.file_stem(pose(odd, request_of(Settings(without=("w",)))))
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
