"""Correlation matrices of tables against NumPy, and what is refused."""

import numpy as np
import pytest

from skcoral.data.correlation import estimate, sample_correlation
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments, deficiency_of_rows
from skcoral.exceptions import InvalidTableError, SingularCorrelationError


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
    ("X", "error", "told"),
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
def test_tables_without_a_regular_matrix(X, error, told):
    with pytest.raises(error, match=told):
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
