"""Naive versions and independent solvers that the trade-off is checked against."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import judge
from skcoral.datasets import load_wine, make_system, wdi_correlation


def off(G: np.ndarray) -> np.ndarray:
    return G - np.diag(np.diag(G))


def objective(
    R: np.ndarray, T: np.ndarray, criterion: str, omega: np.ndarray | None = None
) -> float:
    """The definition, pair by pair."""
    G = T.T @ R @ T
    p = len(G)
    terms = []
    for i in range(p):
        for j in range(i + 1, p):
            weight = 1.0 if omega is None else omega[i, j]
            terms.append(weight * (G[i, j] ** 2 if criterion == "squared" else abs(G[i, j])))
    return max(terms) if criterion == "worst" else sum(terms)


def star(
    R: np.ndarray,
    floors: np.ndarray,
    lam: np.ndarray,
    H: np.ndarray,
    criterion: str,
    omega: np.ndarray | None = None,
) -> float:
    """Formula (★) letter by letter, for a pair of multipliers inside the conjugate's domain."""
    omega = np.ones_like(R) if omega is None else omega
    conjugate = 0.0
    if criterion == "squared":
        conjugate = 0.5 * float(np.sum(off(H) ** 2 / np.where(omega > 0, omega, 1.0)))
    D = np.diag(lam)
    cost = float(np.trace(D @ R @ D @ np.linalg.inv(H)))
    return float(2 * floors @ lam - np.trace(H) - conjugate - cost)


@pytest.fixture(scope="session")
def naive(conic_optimum: Callable[..., float]) -> SimpleNamespace:
    """Definitions and independent solvers."""
    return SimpleNamespace(
        objective=objective,
        star=star,
        sdp=conic_optimum,
        off=off,
    )


@pytest.fixture(scope="session")
def systems() -> dict[str, np.ndarray]:
    """The five systems of the paper."""
    return {
        "p6": make_system(6),
        "p18": make_system(18),
        "p50": make_system(50),
        "wine": np.asarray(load_wine().correlation),
        "wdi": np.asarray(wdi_correlation()),
    }


@pytest.fixture(scope="session")
def random_correlation() -> Callable[..., np.ndarray]:
    """A random correlation matrix, by size, number of rows behind it, and seed."""

    def make(p: int, seed: int, rows: int | None = None) -> Any:
        X = np.random.default_rng(seed).normal(size=(rows or p + 3, p))
        X[:, 1:] += 0.7 * X[:, :1]
        return np.corrcoef(X.T)

    return make


@pytest.fixture(scope="session")
def verify(naive: SimpleNamespace) -> Callable[..., None]:
    """Judge a result: feasible, bounded by (★) letter by letter, and called optimal."""

    def check(R: np.ndarray, result: Any) -> None:
        assert result.status == "optimal"
        weights = {} if result.pair_weights is None else {"pair_weights": result.pair_weights}
        assert judge.wrongs(R, result, weights) == []
        floors, attained = result.rho_min, result.objective
        lam, H = result.certificate.arrays["multipliers"], result.certificate.arrays["H"]
        assert np.all(lam >= 0)
        assert np.linalg.eigvalsh(H)[0] > 0
        size = float(np.abs(naive.off(H)).sum())
        if result.pair_weights is None and result.criterion == "worst":
            assert size <= 1
        if result.pair_weights is None and result.criterion == "absolute":
            assert np.abs(naive.off(H)).max() <= 0.5
        bound = naive.star(R, floors, lam, H, result.criterion, result.pair_weights)
        # The letter-by-letter formula subtracts numbers as large as the multipliers.
        noise = 1e-13 * float(lam.sum() + np.trace(H))
        assert attained - bound <= 1e-7 * max(1.0, attained) + noise
        assert bound == pytest.approx(result.lower_bound, abs=1e-9 * max(1.0, attained) + noise)
        assert result.gap >= -1e-9 * max(1.0, attained)

    return check
