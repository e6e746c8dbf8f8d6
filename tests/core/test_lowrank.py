"""Correlations of many variables that are kept as factors."""

import numpy as np
import pytest

from skcoral.core import linalg
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform


@pytest.mark.parametrize("rank", [1, 2, 3, 6])
def test_neighbours_are_the_largest_correlations(rank, monkeypatch):
    rng = np.random.default_rng(rank)
    U = rng.normal(size=(rank, 400))
    U[:, 7], U[:, 100] = -U[:, 3], U[:, 50]  # opposites and copies
    U /= np.linalg.norm(U, axis=0)
    monkeypatch.setattr(linalg, "MANY", 300)
    largest = linalg.largest_residuals(FactoredCorrelation(U))
    R = np.abs(U.T @ U)
    np.fill_diagonal(R, 0.0)
    np.testing.assert_allclose(largest, R.max(axis=0), atol=1e-14)


@pytest.mark.parametrize(("least", "inverts"), [(3e-13, True), (0.3e-13, False)])
def test_a_transformation_of_few_factors_that_inverts(least: float, inverts: bool) -> None:
    v = np.array([0.6, 0.0, 0.8, 0.0])
    T = LowRankTransform((least - 1) * v[:, None], v[None, :])  # v shrinks to `least` of itself
    rows, unique = T.solve(least * v)
    assert unique == inverts
    np.testing.assert_allclose(rows, v if inverts else 0 * v, atol=0.02)
