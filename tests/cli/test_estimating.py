"""Correlations by other estimators, as commands."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import OAS

from skcoral import CORAL, threshold


def test_thresholds_are_about_the_matrix_asked_for(answer, wine_csv):
    wine = np.loadtxt(wine_csv, delimiter=",", skiprows=1)
    C = OAS().fit((wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)).covariance_
    d = np.sqrt(np.diag(C))
    expected = threshold(C / np.outer(d, d)).value
    status, told = answer("threshold", wine_csv, "--covariance", "OAS")
    assert status == 0
    assert told["value"] == pytest.approx(expected, abs=1e-7)
    assert any("estimated by" in note for note in told["notes"])
    status, told = answer("inspect", wine_csv, "--covariance", "OAS")
    assert told["threshold"]["value"] == pytest.approx(expected, abs=1e-7)
    assert "--covariance OAS" in told["recommended"]["command"]


def test_a_fit_by_another_estimator(answer, wine_csv):
    status, told = answer("fit", wine_csv, "--rho-min", "0.85", "--covariance", "LedoitWolf")
    assert status == 0
    assert "LedoitWolf estimates from these 178 rows" in told["certificate"]["about"]
    wine = np.loadtxt(wine_csv, delimiter=",", skiprows=1)
    known = CORAL(0.85, covariance="LedoitWolf").fit(wine)
    np.testing.assert_allclose(list(told["fidelity"].values()), known.measured_.fidelity, atol=1e-6)


def test_an_estimator_that_does_not_exist(main, wine_csv):
    status, _, err = main("fit", wine_csv, "--covariance", "Ledoit")
    assert status == 2
    assert "LedoitWolf" in err


def test_a_matrix_has_no_rows_to_estimate_from(main, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(",a,b\na,1,0.5\nb,0.5,1\n")
    for options in (["--covariance", "OAS"], ["--weights", "a"]):
        status, _, err = main("threshold", path, *options)
        assert status == 2
        assert "needs rows" in err
