"""Floors are kept by where the solver aims, and nothing is repeated in more digits afterwards."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.core.linalg import correlation_of_covariance
from skcoral.solvers.tradeoff.binding import make_feasible


def three_factors(p: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0.0, 0.7, (p, 3))
    return correlation_of_covariance(
        loadings @ loadings.T + np.diag(0.05 + rng.uniform(0.0, 1.0, p))
    )


def equicorrelation_and_noise(p: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(2 * p, p))
    return correlation_of_covariance(0.5 + 0.5 * np.eye(p) + np.corrcoef(rows.T))


def kept(R: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Fidelities, rounded once but for their products."""
    return np.array([fsum(R[:, j] * T[:, j]) for j in range(len(R))])


@pytest.mark.parametrize("matrix", [three_factors, equicorrelation_and_noise])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_every_floor_is_kept_however_fidelities_are_added_up(matrix, share: float) -> None:
    R = matrix(250, 0)
    edge = threshold(R).value
    floor = edge + share * (1.0 - edge)
    result = decorrelate(R, floor)
    assert result.status == "optimal"
    orders = [np.arange(250), np.arange(250)[::-1], np.random.default_rng(1).permutation(250)]
    for order in orders:
        fidelity = np.einsum("ij,ij->j", R[order], result.T[order])
        assert fidelity.min() >= floor
    assert kept(R, result.T).min() >= floor


def test_the_aim_costs_no_more_than_rounding() -> None:
    R = three_factors(120, 1)
    floors = np.full(120, 0.9)
    values, vectors = np.linalg.eigh(R)
    whitening = (vectors * values**-0.5) @ vectors.T
    T = make_feasible(R, whitening, floors, np.ones(120, dtype=bool))
    assert np.all(kept(R, T) >= floors)
    assert np.all(kept(R, T) <= floors + 1e-12)


def test_a_large_residual_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large multipliers of a large residual leave all digits that are promised of it."""
    monkeypatch.setattr("skcoral.certificates.certify.rechecked", None)
    monkeypatch.setattr("skcoral.core.linalg._MANY_DIGITS", 1e3)
    R = equicorrelation_and_noise(250, 0)
    result = decorrelate(R, 0.99)
    steep = np.abs(result.certificate.arrays["H"]).max() * np.abs(result.T).max() ** 2
    assert steep * 250**0.5 > 1e3  # what would be many digits of a residual of one
    assert result.objective > 100
    assert result.status == "optimal"
