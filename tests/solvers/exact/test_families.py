"""Structured correlation matrices: long chains, blocks, factors, samples, closed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz

from skcoral.solvers.exact import best_exact, exact_threshold
from skcoral.solvers.exact.newton import WeightedRoot

Build = Callable[[int, np.random.Generator], np.ndarray]


def to_correlation(C: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.diag(C))
    return (C + C.T) / (2 * np.outer(size, size))


def chain(p: int, r: float) -> np.ndarray:
    return r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))).astype(float)


def equicorrelation(p: int, r: float) -> np.ndarray:
    return np.full((p, p), r) + (1 - r) * np.eye(p)


def banded(p: int, rng: np.random.Generator) -> np.ndarray:
    # Moving averages of four terms, cut off where p is small.
    lags = np.array([np.dot(0.9 ** np.arange(4 - h), 0.9 ** np.arange(h, 4)) for h in range(4)])
    row = np.zeros(max(p, 4))
    row[:4] = lags / lags[0]
    return toeplitz(row[:p])


def odd_chain(p: int, rng: np.random.Generator) -> np.ndarray:
    mix = np.eye(p)
    mix[rng.choice(p, max(1, p // 50), replace=False)] += 2 * rng.normal(size=p) / np.sqrt(p)
    return to_correlation(mix @ chain(p, 0.8) @ mix.T + 1e-3 * np.eye(p))


def nearly_blocks(p: int, rng: np.random.Generator) -> np.ndarray:
    blocks = block_diag(equicorrelation(p // 2, 0.7), equicorrelation(p - p // 2, 0.65))
    shared = rng.normal(size=(p, 3))
    return to_correlation(blocks + 1e-5 * shared @ shared.T)


def factors(p: int, rng: np.random.Generator) -> np.ndarray:
    loadings = rng.normal(size=(p, 10))
    return to_correlation(loadings @ loadings.T + np.diag(10 ** rng.uniform(-3, 1, p)))


def factor_sample(p: int, rng: np.random.Generator) -> np.ndarray:
    n = int(1.5 * p) + 3
    common = rng.normal(size=(n, 5)) @ rng.normal(size=(5, p))
    return np.corrcoef((common + rng.normal(size=(n, p)) * 10 ** rng.uniform(-1, 0.5, p)).T)


def noisy_equicorrelation(p: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(size=(p, 2 * p + 2)) / np.sqrt(2 * p + 2)
    return to_correlation(equicorrelation(p, 0.5) + 0.1 * noise @ noise.T)


def ill_conditioned(p: int, rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    return to_correlation((Q * np.logspace(0, -7.5, p)) @ Q.T)


FAMILIES: dict[str, Build] = {
    **{f"chain {r}": lambda p, rng, r=r: chain(p, r) for r in (0.3, 0.6, 0.8, 0.9, 0.98)},
    "banded": banded,
    "chains of equal correlation": lambda p, rng: block_diag(
        chain(p // 2, 0.8), chain(p - p // 2, 0.8)
    ),
    "odd chain": odd_chain,
    "nearly blocks": nearly_blocks,
    "factors": factors,
    "sample, n = 1.2 p": lambda p, rng: np.corrcoef(rng.normal(size=(int(1.2 * p) + 3, p)).T),
    "sample, n = 3 p": lambda p, rng: np.corrcoef(rng.normal(size=(3 * p, p)).T),
    "sample of factors": factor_sample,
    "noisy equicorrelation": noisy_equicorrelation,
    "ill-conditioned": ill_conditioned,
}


def assert_certified(R: np.ndarray, *, steps: int) -> None:
    """Both bounds from their definitions, within a number of Newton steps."""
    found = exact_threshold(R)
    assert found.upper - found.lower <= 1e-9
    assert found.n_iter <= steps
    fidelity = np.einsum("ij,ij->j", R, found.T)
    assert np.abs(found.T.T @ R @ found.T - np.eye(len(R))).max() < 1e-8
    assert fidelity.min() >= found.lower - 1e-12
    nuclear = np.linalg.svd(np.linalg.cholesky(R).T * found.weights, compute_uv=False).sum()
    assert nuclear / found.weights.sum() == pytest.approx(found.upper, abs=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("p", [4, 30, 120])
def test_every_family_is_certified(family: str, p: int) -> None:
    R = FAMILIES[family](p, np.random.default_rng(p))
    assert_certified(R, steps=25)


@pytest.mark.parametrize("r", [0.6, 0.8])
def test_long_chains(r: float) -> None:
    """Weights fall like 1/p² towards both ends, and the curvature along the chain like 1/p²."""
    assert_certified(chain(500, r), steps=15)


@pytest.mark.parametrize("p", [100, 250])
def test_circulant_chains_reach_the_trace_bound(p: int) -> None:
    distance = np.minimum(np.arange(p), p - np.arange(p))
    R = toeplitz(0.8**distance)
    found = exact_threshold(R)
    wanted = np.sqrt(np.linalg.eigvalsh(R)).mean()
    assert found.lower == pytest.approx(wanted, abs=1e-10)
    assert found.upper == pytest.approx(wanted, abs=1e-10)


def test_blocks_of_chains_have_the_threshold_of_the_longest() -> None:
    """A longer chain has the lower threshold, by less and less: the blocks are nearly tied."""
    found = exact_threshold(block_diag(chain(60, 0.8), chain(40, 0.8), chain(20, 0.7)))
    alone = exact_threshold(chain(60, 0.8))
    assert found.upper == pytest.approx(alone.upper, abs=1e-9)
    assert found.lower == pytest.approx(alone.lower, abs=1e-9)
    assert np.all(found.weights[60:] == 0)


@pytest.mark.parametrize("family", ["chain 0.9", "factors", "sample of factors", "ill-conditioned"])
@pytest.mark.parametrize("graded", [False, True])
def test_the_laplacian_approximates_the_curvature(family: str, graded: bool) -> None:
    rng = np.random.default_rng(0)
    p = 40
    R = FAMILIES[family](p, rng)
    weights = np.logspace(0, -3, p) if graded else np.ones(p)
    root = WeightedRoot(R, weights, np.linalg.cholesky(R))
    L = root.laplacian()
    wave = np.cos(np.pi * np.outer(np.arange(4), np.arange(p) + 0.5) / p)  # nearly flat ones
    for d in [*rng.normal(size=(10, p)), *wave[1:], *np.eye(p)]:
        assert d @ L @ d == pytest.approx(d @ root.curvature(d), rel=1 / 6)
    assert np.abs(L.sum(axis=1)).max() < 1e-13 * np.abs(L).max()


def test_floors_far_out_of_reach_take_one_decomposition() -> None:
    for family, build in FAMILIES.items():
        R = build(30, np.random.default_rng(1))
        floor = np.sqrt(np.linalg.eigvalsh(R)).mean() + 1e-6
        found = best_exact(R, np.full(30, floor))
        assert not found.feasible, family
        assert found.n_iter == 0
        assert found.trace_margin < 0


@pytest.mark.parametrize("family", ["odd chain", "nearly blocks", "factors", "sample of factors"])
def test_floors_between_the_threshold_and_the_trace_bound_are_refuted(family: str) -> None:
    R = FAMILIES[family](60, np.random.default_rng(2))
    upper, trace = exact_threshold(R).upper, np.sqrt(np.linalg.eigvalsh(R)).mean()
    floors = np.full(60, 0.5 * (upper + trace))
    found = best_exact(R, floors)
    assert not found.feasible
    assert found.n_iter <= 3
    nuclear = np.linalg.svd(np.linalg.cholesky(R).T * found.weights, compute_uv=False).sum()
    assert nuclear < found.weights @ floors
