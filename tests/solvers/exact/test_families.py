"""Structured correlation matrices: long chains, blocks, factors, samples, closed forms.

Weights along a chain are tiny but bind, and outputs can be fixed one layer after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz

import problems
from skcoral.core.linalg import correlation_of_covariance
from skcoral.solvers.exact import best_exact, exact_threshold
from skcoral.solvers.exact.newton import WeightedRoot

Build = Callable[[int, np.random.Generator], np.ndarray]


def chain(p: int, r: float) -> np.ndarray:
    return r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))).astype(float)


def equicorrelation(p: int, r: float) -> np.ndarray:
    return np.full((p, p), r) + (1 - r) * np.eye(p)


def moving_average(p: int, terms: int, ratio: float) -> np.ndarray:
    weights = ratio ** np.arange(terms)
    row = np.zeros(max(p, terms))
    row[:terms] = np.correlate(weights, weights, "full")[terms - 1 :]
    return toeplitz(row[:p] / row[0])


def odd_chain(p: int, rng: np.random.Generator) -> np.ndarray:
    mix = np.eye(p)
    mix[rng.choice(p, max(1, p // 50), replace=False)] += 2 * rng.normal(size=p) / np.sqrt(p)
    return correlation_of_covariance(mix @ chain(p, 0.8) @ mix.T + 1e-3 * np.eye(p))


def nearly_blocks(p: int, rng: np.random.Generator) -> np.ndarray:
    blocks = block_diag(equicorrelation(p // 2, 0.7), equicorrelation(p - p // 2, 0.65))
    shared = rng.normal(size=(p, 3))
    return correlation_of_covariance(blocks + 1e-5 * shared @ shared.T)


def factors(p: int, rng: np.random.Generator) -> np.ndarray:
    loadings = rng.normal(size=(p, 10))
    return correlation_of_covariance(loadings @ loadings.T + np.diag(10 ** rng.uniform(-3, 1, p)))


def factor_sample(p: int, rng: np.random.Generator) -> np.ndarray:
    n = int(1.5 * p) + 3
    common = rng.normal(size=(n, 5)) @ rng.normal(size=(5, p))
    return np.corrcoef((common + rng.normal(size=(n, p)) * 10 ** rng.uniform(-1, 0.5, p)).T)


def noisy_equicorrelation(p: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(size=(p, 2 * p + 2)) / np.sqrt(2 * p + 2)
    return correlation_of_covariance(equicorrelation(p, 0.5) + 0.1 * noise @ noise.T)


def ill_conditioned(p: int, rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    return correlation_of_covariance((Q * np.logspace(0, -7.5, p)) @ Q.T)


FAMILIES: dict[str, Build] = {
    **{f"chain {r}": lambda p, rng, r=r: chain(p, r) for r in (0.3, 0.6, 0.8, 0.9, 0.98)},
    "banded": lambda p, rng: moving_average(p, 4, 0.9),
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


@pytest.mark.parametrize("p", [100, 250])
def test_circulant_chains_reach_the_trace_bound(p: int) -> None:
    distance = np.minimum(np.arange(p), p - np.arange(p))
    R = toeplitz(0.8**distance)
    found = exact_threshold(R)
    wanted = np.sqrt(np.linalg.eigvalsh(R)).mean()
    assert found.lower == pytest.approx(wanted, abs=1e-10)
    assert found.upper == pytest.approx(wanted, abs=1e-10)


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


@pytest.mark.parametrize(
    "R",
    [chain(400, 0.7), chain(400, 0.98), moving_average(400, 4, 0.9), moving_average(400, 2, 0.8)],
    ids=["AR(1), 0.7", "AR(1), 0.98", "moving average of four", "moving average of two"],
)
def test_a_chain_binds_up_to_its_ends(R: np.ndarray) -> None:
    """The weights of a chain fall like sin² towards its ends, where they are small but positive."""
    found = exact_threshold(R)
    assert found.gap < 1e-10
    assert np.all(found.weights > 0)
    assert found.weights[0] < 0.02 * found.weights.max()
    assert found.n_iter <= 9


@pytest.mark.slow
@pytest.mark.parametrize("p", [1800, 2000])
def test_a_long_chain_takes_no_more_steps_than_a_short_one(p: int) -> None:
    found = exact_threshold(chain(p, 0.7))
    assert found.gap < 1e-10
    assert np.all(found.weights > 0)
    assert found.n_iter <= 9


@pytest.mark.parametrize("seed", [pytest.param(7, marks=pytest.mark.slow), 8])
def test_weights_that_fall_exponentially_along_a_chain_still_bind(seed: int) -> None:
    """Weights down to 1e-20 of the largest: their fidelities need relative accuracy."""
    found = exact_threshold(odd_chain(300, np.random.default_rng(seed)))
    assert found.gap < 1e-9


@pytest.mark.parametrize("p", [150, 200])
def test_brownian_weights_fall_faster_than_exponentially(p: int) -> None:
    """Weights of 1e-20 and less bind beside others as small that do not."""
    times = np.arange(1.0, p + 1)
    found = exact_threshold(
        np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    )
    assert found.gap < 1e-10
    assert found.n_iter <= 30


@pytest.mark.parametrize(("p", "seed"), [(100, 2), (200, 0), (400, 0)])
def test_points_close_to_each_other_leave_as_a_group(p: int, seed: int) -> None:
    """An exponential kernel at random points of a line: few of them bind.

    The weights of a group of neighbours fall together, though some are too small for the others.
    """
    points = np.sort(np.random.default_rng(seed).uniform(0, p / 3, p))
    R = (np.exp(-np.abs(np.subtract.outer(points, points))) + 1e-6 * np.eye(p)) / (1 + 1e-6)
    found = exact_threshold(R)
    assert found.gap < 1e-10
    assert np.mean(found.weights == 0) > 0.9
    assert found.n_iter < 10


def test_floors_out_of_reach_are_refuted_without_fixing_outputs() -> None:
    """Given its neighbour, a variable of a chain has a deviation of 0.71 left, below its floor."""
    C = chain(30, 0.7)
    residual = C[1:, 1:] - np.outer(C[1:, 0], C[0, 1:])
    best = best_exact(residual, np.full(29, 0.8))
    assert not best.feasible
    assert best.trace_margin < 0


@pytest.mark.parametrize(("p", "layers"), [(6, 6), (6, 3), (60, 40)])
def test_outputs_fixed_layer_by_layer(p: int, layers: int) -> None:
    """Floors at what all earlier variables leave of each: the triangular factor is the answer."""
    R = chain(p, 0.7) if p > 6 else np.corrcoef(np.random.default_rng(0).normal(size=(40, p)).T)
    L = np.linalg.cholesky(R)
    floors = np.diag(L).copy()
    floors[layers:] = 0.2
    best = best_exact(R, floors, tol=1e-9)
    assert best.feasible
    assert np.all(best.fidelity >= floors - 1e-9)
    np.testing.assert_allclose(best.T[:, :layers], np.linalg.inv(L).T[:, :layers], atol=1e-7)
    np.testing.assert_allclose(best.T.T @ R @ best.T, np.eye(p), atol=1e-11)


@pytest.mark.parametrize("seed", [84, 94, 138, 172, 229, 306])
def test_blocks_of_interchangeable_variables_that_do_not_bind(seed: int) -> None:
    """Weights that vanish together leave ratios that mean nothing: the completion decides."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(15, 30))
    label = rng.integers(0, 3, p)
    within, between = rng.uniform(0.2, 0.9), 0.1 * rng.uniform()
    C = np.where(label[:, None] == label, within, between) + np.diag(rng.uniform(0.05, 0.5, p))
    R = correlation_of_covariance(C)
    found = exact_threshold(R)
    assert found.gap < 1e-9
    assert found.fidelity.min() >= found.lower
    np.testing.assert_allclose(found.T.T @ R @ found.T, np.eye(p), atol=1e-10)


def test_blocks_of_which_some_do_not_bind() -> None:
    """Weights of a block that does not bind have arbitrary ratios: they leave together."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        assert exact_threshold(problems.blocks(rng, int(rng.integers(30, 60)))).gap < 1e-9
    rng = np.random.default_rng(302094)
    rng.integers(25, 61)
    assert exact_threshold(problems.blocks(rng, 51)).gap < 1e-9
