"""Correlation matrices of tables against NumPy, matrices by other estimators, and errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import LedoitWolf, MinCovDet
from sklearn.datasets import load_wine

from skcoral import CORAL
from skcoral.data.correlation import estimate, sample_correlation
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments, deficiency_of_rows
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
    InvalidTableError,
    SingularCorrelationError,
)


def table(n=80, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p))


def test_pearson_is_numpys():
    X = table() * [1e-9, 1.0, 1e9, 1.0] + [0.0, 1e6, -1e12, 3.0]
    got = estimate(Moments.from_rows(X, names=list("abcd")))
    np.testing.assert_allclose(got.R, np.corrcoef(X.T), atol=1e-13)
    np.testing.assert_allclose(got.scale, X.std(axis=0, ddof=1), rtol=1e-13)
    assert got.names == ("a", "b", "c", "d")
    assert "80 rows" in got.guarantee
    few = table(5, 4)  # one row more than columns is enough
    apart = table(500, 2)
    close = apart[:, :1] + 1e-4 * np.random.default_rng(3).normal(size=(500, 1))
    for X in (few, np.hstack([apart, close])):
        np.testing.assert_allclose(estimate(Moments.from_rows(X)).R, np.corrcoef(X.T), atol=1e-12)


def test_correlation_of_columns_a_hundred_million_deviations_from_zero():
    X = table()
    far = X + 1e8 * X.std(axis=0)
    stored = far.astype(np.longdouble)
    stored = stored - stored.mean(axis=0)
    exact = stored.T @ stored
    size = np.sqrt(np.diag(exact))
    expected = (exact / size[:, None] / size).astype(np.float64)
    np.testing.assert_allclose(estimate(Moments.from_rows(far)).R, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (table() * [1, 0, 1, 0] + [0, 0.1, 0, 7], InvalidTableError, "2 columns.*`b`, `d`"),
        *(
            (table(n, 4), InvalidTableError, f"{n} rows.*4 columns.*5 rows.*LedoitWolf")
            for n in (2, 3, 4)
        ),
        (np.ones((0, 4)), InvalidTableError, "no rows"),
        (np.ones((1, 4)), InvalidTableError, "1 sample.*`a`, `b`"),
        # repeated rows do not hide that the rank is too small
        (table(4, 4).repeat(5, axis=0), SingularCorrelationError, "rank 3 of 4.*LedoitWolf"),
    ],
)
def test_tables_without_a_regular_matrix(X, error, message):
    with pytest.raises(error, match=message):
        estimate(Moments.from_rows(X, names=list("abcd")))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_linear_relations_are_reported_in_the_tables_units(dtype):
    X = table(p=3).astype(dtype)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    with pytest.raises(SingularCorrelationError) as caught:
        estimate(Moments.from_rows(X, names=["a", "b", "c", "total"]))
    same = ["`total` = `a` + `b`", "`a` = -`b` + `total`", "`b` = -`a` + `total`"]
    assert any(relation in str(caught.value) for relation in same)
    assert "`c`" not in str(caught.value)


def test_sample_correlation_of_dependent_columns_is_still_defined():
    X = table(3, 5)
    np.testing.assert_allclose(sample_correlation(Moments.from_rows(X)), np.corrcoef(X.T))


def test_directions_of_few_rows_that_are_rounding_do_not_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2)) @ rng.normal(size=(2, 7))
    for noise, rank in ((1e-8, 2), (1e-4, 3)):
        moments = RowMoments(X + noise * rng.normal(size=X.shape), list("abcdefg"))
        assert len(deficiency_of_rows(moments).factor) == rank


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
        (lambda Z: np.triu(np.ones((13, 13))) + np.eye(13), InvalidCorrelationError, "symmetric"),
    ):
        with pytest.raises(error, match=message):
            CORAL(0.8, covariance=covariance).fit(wine)
    assert not hasattr(CORAL(covariance="OAS"), "partial_fit")
