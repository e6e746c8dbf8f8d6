"""Matrices by other estimators, and in spite of missing values."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.covariance import LedoitWolf, MinCovDet
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.covariances import effective_rows, em_moments
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
    InvalidTableError,
    SingularCorrelationWarning,
)
from skcoral.models import load_model, save_model
from skcoral.stability import holdout


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
    assert "LedoitWolf estimates from these 178 rows" in coral.result_.details["guarantee"]
    assert not coral.result_.details["is_about_rows"]
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


def test_weights_repeat_rows_or_are_refused(wine):
    X, counts = wine.iloc[:, :4], np.random.default_rng(0).integers(0, 3, size=178)
    weighted = CORAL(0.9, covariance="LedoitWolf").fit(X, sample_weight=counts)
    repeated = CORAL(0.9, covariance="LedoitWolf").fit(X.loc[np.repeat(X.index, counts)])
    np.testing.assert_allclose(weighted.T_, repeated.T_, atol=1e-7)
    with pytest.raises(InvalidArgumentError, match="count rows"):
        CORAL(0.9, covariance="LedoitWolf").fit(X, sample_weight=counts + 0.5)


def test_matrices_that_are_none(wine):
    for covariance, error, message in (
        ("Ledoit", InvalidArgumentError, "LedoitWolf"),
        (3, InvalidArgumentError, "name of one"),
        (lambda Z: np.eye(2), InvalidCorrelationError, "13 × 13"),
        (lambda Z: -np.eye(13), InvalidCorrelationError, "not positive"),
        (lambda Z: np.full((13, 13), np.nan), InvalidCorrelationError, "<lambda>"),
    ):
        with pytest.raises(error, match=message):
            CORAL(0.8, covariance=covariance).fit(wine)
    with pytest.raises(InvalidArgumentError, match="both choose"):
        CORAL(0.8, covariance="OAS", shrinkage=0.1).fit(wine)
    assert not hasattr(CORAL(covariance="OAS"), "partial_fit")


def test_a_model_by_name_can_be_kept(wine, tmp_path):
    coral = CORAL(0.8, covariance="LedoitWolf", confidence=0.9).fit(wine)
    save_model(coral, tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.transform(wine), coral.transform(wine))
    assert back.result_.details["confidence"] == coral.confidence_.sentence()
    np.testing.assert_array_equal(back.floors_, coral.floors_)


# --- missing values --------------------------------------------------------------------------


def holed(n=60, share=0.15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.6, 0.3], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]])
    X[rng.random(X.shape) < share] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def likelihood(parameters, X):
    """Minus twice the normal log-likelihood of the values that are there."""
    mean, L = parameters[:3], np.zeros((3, 3))
    L[np.tril_indices(3)] = parameters[3:]
    C, total = L @ L.T, 0.0
    for row in X:
        there = ~np.isnan(row)
        part, gap = C[np.ix_(there, there)], (row - mean)[there]
        total += np.linalg.slogdet(part)[1] + gap @ np.linalg.solve(part, gap)
    return total


def test_em_maximises_the_likelihood():
    X = holed()
    start = np.r_[np.zeros(3), np.eye(3)[np.tril_indices(3)]]
    best = minimize(likelihood, start, args=(X,), method="BFGS", options={"gtol": 1e-7})
    L = np.zeros((3, 3))
    L[np.tril_indices(3)] = best.x[3:]
    found = em_moments(X, ("a", "b", "c"))
    np.testing.assert_allclose(found.mean, best.x[:3], atol=2e-4)
    np.testing.assert_allclose(found.comoment / len(X), L @ L.T, atol=1e-3)


def test_em_without_holes_is_the_sample():
    X = holed(share=0.0)
    found = em_moments(X, ("a", "b", "c"))
    np.testing.assert_allclose(found.covariance, np.cov(X.T), rtol=1e-12)
    holes = X.copy()
    holes[:3] = np.nan
    np.testing.assert_allclose(
        em_moments(holes, ("a", "b", "c")).covariance, np.cov(X[3:].T), rtol=1e-12
    )


def test_em_weights_are_repetitions():
    X, counts = holed(), np.random.default_rng(1).integers(1, 4, size=len(holed()))
    one = em_moments(X, ("a", "b", "c"), sample_weight=counts)
    two = em_moments(np.repeat(X, counts, axis=0), ("a", "b", "c"))
    np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-7)


def test_the_estimator_with_holes():
    X = holed(200)
    coral = CORAL(0.9, missing="em").fit(X)
    assert f"from {effective_rows(X)} rows or more" in coral.estimate_.about
    assert (coral.fidelity_ >= 0.9 - 1e-9).all()
    complete = X[~np.isnan(X).any(axis=1)]
    assert coral.transform(complete).shape == complete.shape
    with pytest.raises(InvalidTableError, match="missing values"):
        CORAL(0.9).fit(X)
    with pytest.raises(InvalidTableError, match="missing values"):
        coral.score(X)  # what is filled in is no measurement
    with pytest.raises(InvalidTableError, match="infinite"):
        CORAL(0.9, missing="em").fit(np.where(np.isnan(X), np.inf, X))
    empty = X.copy()
    empty[:, 1] = np.nan
    with pytest.raises(InvalidTableError, match="`x1`: fewer than two"):
        CORAL(0.9, missing="em").fit(empty)


def test_outputs_of_incomplete_rows_are_conditional_means():
    X = np.vstack((holed(200), np.full(3, np.nan)))
    coral = CORAL(0.9, missing="em").fit(X)
    mean, C = coral.moments_.mean, coral.moments_.covariance
    full = X.copy()
    for row in full:
        gone = np.isnan(row)
        slope = C[np.ix_(gone, ~gone)] @ np.linalg.inv(C[np.ix_(~gone, ~gone)])
        row[gone] = mean[gone] + slope @ (row - mean)[~gone]
    np.testing.assert_allclose(coral.transform(X), coral.transform(full), atol=1e-9)
    np.testing.assert_allclose(coral.transform(X)[-1], 0.0, atol=1e-12)
    complete = ~np.isnan(X).any(axis=1)
    np.testing.assert_array_equal(coral.transform(X)[complete], coral.transform(X[complete]))
    assert coral.transform(X.astype(np.float32)).dtype == np.float32
    assert coral.measured_.rows_used == complete.sum()
    assert coral.__sklearn_tags__().input_tags.allow_nan


def test_outputs_of_incomplete_rows_of_dependent_columns():
    X = holed(200)
    X = np.column_stack((X, X[:, 0] - X[:, 1]))
    with pytest.warns(SingularCorrelationWarning):
        coral = CORAL(0.5, missing="em").fit(X)
    row = np.array([[1.0, 0.5, np.nan, np.nan]])
    whole = np.array([[1.0, 0.5, np.nan, 0.5]])
    np.testing.assert_allclose(coral.transform(row), coral.transform(whole), atol=1e-5)
    assert np.isfinite(coral.transform(X)).all()


def test_hold_out_with_holes_measures_complete_rows():
    X = holed(200)
    part = np.arange(len(X)) % 2
    found = holdout(CORAL(0.9, missing="em"), X, cv=[(part == 0, part == 1)])
    coral = CORAL(0.9, missing="em").fit(X[part == 0])
    rows = X[(part == 1) & ~np.isnan(X).any(axis=1)]
    outputs = coral.transform(rows)
    fidelity = [np.corrcoef(outputs[:, j], rows[:, j])[0, 1] for j in range(3)]
    np.testing.assert_allclose(found.fidelity_new[0], fidelity, atol=1e-9)
    assert found.n_new == len(rows)
    assert holdout(CORAL(0.9, missing="em"), X, block_length="auto").n_new > 10
