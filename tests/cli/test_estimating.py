"""Correlations by other estimators and in spite of missing values, as commands."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.covariance import OAS

from skcoral import CORAL, threshold
from skcoral.covariances import em_moments

NAMES = ("a", "b", "c")


@pytest.fixture
def holed_csv(tmp_path):
    """Rows with values missing here and there, one of them with none at all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) @ np.array([[1.0, 0.5, 0.2], [0.0, 1.0, 0.4], [0.0, 0.0, 1.0]])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[17] = np.nan
    path = tmp_path / "holed.csv"
    lines = [",".join("NA" if v != v else repr(v) for v in row) for row in X.tolist()]
    path.write_text("id,a,b,c\n" + "\n".join(f"r{i},{line}" for i, line in enumerate(lines)) + "\n")
    return path, X


def read(path):
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [r["id"] for r in rows], np.array([[float(r[name]) for name in NAMES] for r in rows])


def test_a_fit_in_spite_of_missing_values(answer, main, holed_csv, tmp_path):
    path, X = holed_csv
    out, model, proof, page = (tmp_path / name for name in ("o.csv", "m.json", "c.json", "r.html"))
    asked = ["fit", path, "--rho-min", "0.9", "--missing", "em"]
    files = ["-o", out, "--model", model, "--certificate", proof, "--report", page]
    status, told = answer(*asked, *files)
    assert status == 0
    known = CORAL(0.9, missing="em").fit(X)
    labels, outputs = read(out)
    assert labels == [f"r{i}" for i in range(120) if i != 17]
    np.testing.assert_allclose(outputs, np.delete(known.transform(X), 17, axis=0), atol=1e-6)
    assert told["dropped_rows"] == [19]
    # measured on complete rows, as anyone can
    complete = ~np.isnan(np.delete(X, 17, axis=0)).any(axis=1)
    rows = np.delete(X, 17, axis=0)[complete]
    assert told["measured"]["rows_used"] == complete.sum()
    fidelity = [np.corrcoef(rows[:, j], outputs[complete, j])[0, 1] for j in range(3)]
    np.testing.assert_allclose(list(told["fidelity"].values()), fidelity, atol=1e-6)
    assert not told["certificate"]["is_about_rows"]
    assert "EM (each pair known from" in told["certificate"]["about"]
    n = int((~complete).sum())
    assert any(f"{n} rows with missing values took part" in note for note in told["notes"])
    assert "estimated by EM" in page.read_text(encoding="utf-8")
    assert answer("verify", path, proof, "--missing", "em")[1]["passed"]
    assert not answer("verify", path, proof)[1]["passed"]
    again = tmp_path / "again.csv"
    status, said, _ = main("transform", path, "--model", model, "-o", again)
    assert status == 0
    np.testing.assert_array_equal(read(again)[1], outputs)
    assert f"{n} rows with missing values are written" in " ".join(said.split())


def test_a_fit_without_any_complete_row(answer, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[np.arange(60), np.arange(60) % 3] = np.nan
    path = tmp_path / "none.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")
    status, told = answer("fit", path, "--missing", "em", "-o", tmp_path / "o.csv")
    assert status == 0
    np.testing.assert_allclose(
        list(told["fidelity"].values()), CORAL(missing="em").fit(X).fidelity_, atol=1e-6
    )


def test_thresholds_are_about_the_matrix_asked_for(answer, wine_csv, holed_csv):
    wine = np.loadtxt(wine_csv, delimiter=",", skiprows=1)
    C = OAS().fit((wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)).covariance_
    d = np.sqrt(np.diag(C))
    value = threshold(C / np.outer(d, d)).value
    path, X = holed_csv
    moments = em_moments(X, NAMES)
    d = np.sqrt(np.diag(moments.covariance))
    other = threshold(moments.covariance / np.outer(d, d)).value
    for file, options, expected in (
        (wine_csv, ["--covariance", "OAS"], value),
        (path, ["--missing", "em"], other),
    ):
        status, told = answer("threshold", file, *options)
        assert status == 0
        assert told["value"] == pytest.approx(expected, abs=1e-7)
        assert any("estimated by" in note for note in told["notes"])
        status, told = answer("inspect", file, *options)
        assert told["threshold"]["value"] == pytest.approx(expected, abs=1e-7)
        assert " ".join(options) in told["recommended"]["command"]
        points = answer("frontier", file, *options, "--points", "2")[1]
        assert points["threshold"] == pytest.approx(expected, abs=1e-7)


def test_a_fit_by_another_estimator(answer, wine_csv):
    status, told = answer("fit", wine_csv, "--rho-min", "0.85", "--covariance", "LedoitWolf")
    assert status == 0
    assert "LedoitWolf estimates from these 178 rows" in told["certificate"]["about"]
    wine = np.loadtxt(wine_csv, delimiter=",", skiprows=1)
    known = CORAL(0.85, covariance="LedoitWolf").fit(wine)
    np.testing.assert_allclose(list(told["fidelity"].values()), known.measured_.fidelity, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--covariance", "Ledoit"], "LedoitWolf"),
        (["--missing", "pairwise"], "drop"),
        (["--missing", "em", "--covariance", "OAS"], "--missing em"),
    ],
)
def test_estimates_that_are_invalid(main, holed_csv, options, said):
    status, _, err = main("fit", holed_csv[0], *options)
    assert status == 2
    assert said in err


def test_a_matrix_has_no_rows_to_estimate_from(main, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(",a,b\na,1,0.5\nb,0.5,1\n")
    for options in (["--covariance", "OAS"], ["--missing", "em"], ["--weights", "a"]):
        status, _, err = main("threshold", path, *options)
        assert status == 2
        assert "needs rows" in err
