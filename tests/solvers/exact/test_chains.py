"""Long chains: weights that are tiny but bind, and outputs fixed one layer after the other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz

from skcoral.solvers.exact import best_exact, exact_threshold
from skcoral.solvers.exact.newton import WeightedRoot


def chain(p: int, r: float) -> np.ndarray:
    return toeplitz(r ** np.arange(p, dtype=float))


def moving_average(p: int, terms: int, ratio: float) -> np.ndarray:
    weights = ratio ** np.arange(terms)
    row = np.zeros(p)
    row[:terms] = np.correlate(weights, weights, "full")[terms - 1 :]
    return toeplitz(row / row[0])


def odd_chain(p: int, rng: np.random.Generator) -> np.ndarray:
    """A chain in which a few variables are mixtures of all."""
    mix = np.eye(p)
    mix[rng.choice(p, p // 50, replace=False)] += 2 * rng.normal(size=p) / np.sqrt(p)
    C = mix @ chain(p, 0.8) @ mix.T + 1e-3 * np.eye(p)
    size = np.sqrt(np.diag(C))
    return (C + C.T) / (2 * np.outer(size, size))


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the decompositions of D C D."""
    sizes: list[int] = []
    plain = WeightedRoot.__init__

    def counted(self, C, weights, factor, **more):
        sizes.append(len(weights))
        plain(self, C, weights, factor, **more)

    monkeypatch.setattr(WeightedRoot, "__init__", counted)
    return sizes


@pytest.mark.parametrize(
    "R",
    [chain(400, 0.7), chain(400, 0.98), moving_average(400, 4, 0.9), moving_average(400, 2, 0.8)],
    ids=["AR(1), 0.7", "AR(1), 0.98", "moving average of four", "moving average of two"],
)
def test_a_chain_binds_up_to_its_ends(R: np.ndarray, roots: list[int]) -> None:
    """The weights of a chain fall like sin² towards its ends, where they are small but positive."""
    found = exact_threshold(R)
    assert found.gap < 1e-10
    assert np.all(found.weights > 0)
    assert found.weights[0] < 0.02 * found.weights.max()
    assert len(roots) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("p", [1800, 2000])
def test_a_long_chain_takes_no_more_steps_than_a_short_one(p: int, roots: list[int]) -> None:
    found = exact_threshold(chain(p, 0.7))
    assert found.gap < 1e-10
    assert np.all(found.weights > 0)
    assert len(roots) <= 9


@pytest.mark.parametrize("seed", [7, 8])
def test_weights_that_fall_exponentially_along_a_chain_still_bind(seed: int) -> None:
    """Weights down to 1e-20 of the largest: their fidelities need relative accuracy."""
    found = exact_threshold(odd_chain(300, np.random.default_rng(seed)))
    assert found.gap < 1e-9


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


def test_floors_of_zero_never_bind() -> None:
    R = odd_chain(60, np.random.default_rng(3))
    floors = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    found = exact_threshold(R, floors)
    assert found.gap < 1e-9
    assert np.all(found.weights[floors == 0] == 0)


def test_floors_out_of_reach_are_refuted_without_fixing_outputs() -> None:
    """Given its neighbour, a variable of a chain has a deviation of 0.71 left, below its floor."""
    C = chain(30, 0.7)
    residual = C[1:, 1:] - np.outer(C[1:, 0], C[0, 1:])
    best = best_exact(residual, np.full(29, 0.8))
    assert not best.feasible
    assert best.trace_margin < 0


def test_outputs_fixed_layer_by_layer() -> None:
    """Floors at what all earlier variables leave of each: the triangular factor is the answer."""
    R = np.corrcoef(np.random.default_rng(0).normal(size=(40, 6)).T)
    L = np.linalg.cholesky(R)
    floors = np.diag(L).copy()
    best = best_exact(R, floors, tol=1e-9)
    assert best.feasible
    np.testing.assert_allclose(best.T, np.linalg.inv(L).T, atol=1e-8)
    floors[3:] = 0.3
    best = best_exact(R, floors, tol=1e-9)
    assert best.feasible
    np.testing.assert_allclose(best.T[:, :3], np.linalg.inv(L).T[:, :3], atol=1e-8)
    np.testing.assert_allclose(best.T.T @ R @ best.T, np.eye(6), atol=1e-12)


def test_many_layers_need_no_recursion() -> None:
    p = 60
    R = chain(p, 0.7)
    floors = np.diag(np.linalg.cholesky(R)).copy()
    floors[40:] = 0.2
    best = best_exact(R, floors, tol=1e-9)
    assert best.feasible
    assert np.all(best.fidelity >= floors - 1e-9)
