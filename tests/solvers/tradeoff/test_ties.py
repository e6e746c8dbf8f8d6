"""Criteria that leave outputs open: the proof comes first, the choice among optima second."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.certificates import check


def brownian(p: int) -> np.ndarray:
    times = np.arange(1.0, p + 1)
    return np.minimum.outer(times, times) / np.sqrt(np.outer(times, times))


def ten_factors(p: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    loadings = rng.normal(0.0, 0.3, (p, 10))
    C = loadings @ loadings.T + np.diag(0.3 + rng.uniform(0.0, 1.0, p))
    scale = np.diag(C) ** -0.5
    R = C * np.outer(scale, scale)
    np.fill_diagonal(R, 1.0)
    return R


def half_way(R: np.ndarray) -> float:
    return 0.5 * (1.0 + threshold(R).value)


def test_brownian_covariances_are_certified_before_ties_are_broken() -> None:
    """Guesses of the binding floors are wrong here; the end of the path needs none."""
    R = brownian(58)
    result = decorrelate(R, half_way(R), criterion="worst")
    assert result.status == "optimal"
    assert result.n_iter < 80
    assert check(result, R).passed


def test_a_tie_break_that_is_given_up_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    R = ten_factors(40)
    floor = half_way(R)
    broken = decorrelate(R, floor, criterion="worst")
    assert broken.unique
    monkeypatch.setattr("skcoral.solvers.tradeoff.search._UNNOTICED", 0.0)
    monkeypatch.setattr("skcoral.solvers.tradeoff.search._TIE_BREAK", 0.0)
    left = decorrelate(R, floor, criterion="worst")
    assert not left.unique
    assert left.status == "optimal"
    assert left.objective == pytest.approx(broken.objective, rel=1e-6)
    squares = [0.5 * np.sum((T.T @ R @ T - np.eye(40)) ** 2) for T in (broken.T, left.T)]
    assert squares[0] <= squares[1] * (1 + 1e-9)
    assert check(left, R).passed
