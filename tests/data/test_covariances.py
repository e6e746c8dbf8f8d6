"""Matrices by other estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import LedoitWolf, MinCovDet
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
)
from skcoral.models import load_model, save_model


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


def test_ledoit_wolf_is_scikit_learns(wine):
    Z = (wine - wine.mean()) / wine.std()
    C = LedoitWolf().fit(Z).covariance_
    d = np.sqrt(np.diag(C))
    for asked in ("LedoitWolf", LedoitWolf, LedoitWolf()):
        coral = CORAL(0.8, covariance=asked).fit(wine)
        np.testing.assert_allclose(coral.correlation_, C / np.outer(d, d), atol=1e-12)
    assert "LedoitWolf estimates from these 178 rows" in coral.result_.notes.guarantee
    assert not coral.result_.notes.is_about_rows
    outputs = coral.transform(wine)
    fidelity = [np.corrcoef(outputs[:, j], wine.iloc[:, j])[0, 1] for j in range(13)]
    np.testing.assert_allclose(coral.measured_.fidelity, fidelity, atol=1e-9)


def test_kendall_by_a_function(wine):
    def kendall(Z):
        return pd.DataFrame(Z).corr(method="kendall")

    coral = CORAL(0.8, covariance=kendall).fit(wine.iloc[:, :5])
    np.testing.assert_allclose(coral.correlation_, wine.iloc[:, :5].corr("kendall"), atol=1e-12)
    assert "kendall" in coral.estimate_.about


def test_a_robust_matrix_standardises_by_its_own_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) @ (np.eye(3) + 0.4 * rng.normal(size=(3, 3)))
    clean = CORAL(0.9, covariance=MinCovDet(random_state=0)).fit(X)
    X[:15] += 30.0 * np.array([1.0, -1.0, 1.0])
    spoilt = CORAL(0.9, covariance="MinCovDet").fit(X)
    np.testing.assert_allclose(spoilt.correlation_, clean.correlation_, atol=0.15)
    np.testing.assert_allclose(spoilt.scale_, clean.scale_, rtol=0.15)
    assert np.abs(CORAL(0.9).fit(X).correlation_ - clean.correlation_).max() > 0.5
    again = CORAL(0.9, covariance="MinCovDet").fit(X)
    np.testing.assert_array_equal(again.T_, spoilt.T_)


def test_units_do_not_matter(wine):
    units = 10.0 ** np.arange(-6, 7)
    one, two = (CORAL(0.8, covariance="OAS").fit(X) for X in (wine, wine * units))
    np.testing.assert_allclose(one.T_, two.T_, atol=1e-6)


def test_unequal_weights_are_refused(wine):
    X = wine.iloc[:, :4]
    chosen = np.arange(178) % 3 > 0
    weighted = CORAL(0.9, covariance="LedoitWolf").fit(X, sample_weight=2.0 * chosen)
    np.testing.assert_allclose(
        weighted.T_, CORAL(0.9, covariance="LedoitWolf").fit(X[chosen]).T_, atol=1e-9
    )
    with pytest.raises(InvalidArgumentError, match="takes no weights"):
        CORAL(0.9, covariance="LedoitWolf").fit(X, sample_weight=1.0 + chosen)


def test_matrices_that_are_none(wine):
    for covariance, error, message in (
        ("Ledoit", InvalidArgumentError, "LedoitWolf"),
        ("ledoit_wolf", InvalidArgumentError, "LedoitWolf"),
        (3, InvalidArgumentError, "name of one"),
        (lambda Z: np.eye(2), InvalidCorrelationError, "13 by 13"),
        (lambda Z: -np.eye(13), InvalidCorrelationError, "not positive"),
        (lambda Z: np.full((13, 13), np.nan), InvalidCorrelationError, "<lambda>"),
    ):
        with pytest.raises(error, match=message):
            CORAL(0.8, covariance=covariance).fit(wine)
    assert not hasattr(CORAL(covariance="OAS"), "partial_fit")


def test_a_model_by_name_can_be_kept(wine, tmp_path):
    coral = CORAL(0.8, covariance="LedoitWolf", confidence=0.9).fit(wine)
    save_model(coral, tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.transform(wine), coral.transform(wine))
    assert back.result_.notes.confidence == coral.confidence_.sentence()
    np.testing.assert_array_equal(back.floors_, coral.floors_)
