"""Pairs of weight zero: the criterion can vanish at floors above ρ★."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import problems
from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check

CRITERIA = ["squared", "worst", "absolute"]
R3 = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]])
W3 = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])


def highest_of_three() -> float:
    """Turn the third variable and the mean of the other two apart, in the plane they span.

    The mean explains 0.9 of the variance of the first two. Each is projected onto what is
    orthogonal to the third output.
    """
    apart = float(np.arcsin(0.2 / np.sqrt(3.6)))

    def excess(angle: float) -> float:
        return float(np.cos(angle) - np.sqrt(0.1 + 0.9 * np.cos(apart - angle) ** 2))

    return float(np.cos(brentq(excess, 0.0, apart)))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_budget_of_zero_reaches_the_floor_of_the_weighted_curve(criterion: str) -> None:
    best = maximize_fidelity(R3, 0, pair_weights=W3, criterion=criterion)
    assert best.status == "optimal"
    assert best.rho_min[0] == pytest.approx(highest_of_three(), abs=2e-8)
    assert best.rho_min[0] == pytest.approx(0.99868, abs=5e-6)
    assert threshold(R3).value < 0.9
    G = best.T.T @ R3 @ best.T
    assert np.abs(G * W3).max() < 1e-12
    assert np.all(np.diag(R3 @ best.T) >= best.rho_min - 1e-12)
    assert check(best, R3).passed


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("budget", [1e-12, 1e-4])
def test_small_budgets_are_certified(criterion: str, budget: float) -> None:
    best = maximize_fidelity(R3, budget, pair_weights=W3, criterion=criterion)
    assert best.status == "optimal"
    assert best.objective <= budget
    assert best.rho_min[0] >= highest_of_three() - 2e-8
    assert check(best, R3).passed


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_frontier_begins_where_the_criterion_leaves_zero(criterion: str) -> None:
    found = frontier(R3, pair_weights=W3, n_points=5, criterion=criterion)
    assert found.threshold == pytest.approx(highest_of_three(), abs=2e-8)
    assert found.rho_min[0] == found.threshold
    assert found.objective[0] < 1e-12
    assert np.all(np.diff(found.objective) > 0)


@pytest.mark.parametrize("seed", range(3))
def test_groups_within_which_nothing_counts(seed: int) -> None:
    """Just above the floor of a budget of zero, the least residual is positive."""
    rng = np.random.default_rng(seed)
    p = 9
    rows = rng.normal(size=(60, p)) + rng.normal(size=(60, 1))
    R = np.corrcoef(rows.T)
    group = np.arange(p) // 3
    weights = (group[:, None] != group) * np.exp(rng.normal())
    best = maximize_fidelity(R, 0, pair_weights=weights)
    assert best.status == "optimal"
    assert best.rho_min[0] > threshold(R).value + 1e-3
    assert np.abs((best.T.T @ R @ best.T) * weights).max() < 1e-9
    above = decorrelate(R, float(best.rho_min[0]) + 1e-4, pair_weights=weights)
    assert above.lower_bound > 0


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
@pytest.mark.parametrize("largest", [2.0, 200.0])
def test_a_nearly_singular_matrix_keeps_a_budget_of_zero(criterion: str, largest: float) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        R = problems.nearly_singular(rng, 8)
        weights = np.triu(largest * rng.uniform(size=(8, 8)) * (rng.random((8, 8)) < 0.6), 1)
        best = maximize_fidelity(R, 0, pair_weights=weights + weights.T, criterion=criterion)
        assert check(best, R).problems == ()


def test_no_pair_that_counts() -> None:
    assert maximize_fidelity(R3, 0, pair_weights=np.zeros((3, 3))).rho_min[0] == 1.0


def test_pairs_that_count_and_are_uncorrelated_already() -> None:
    R = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert maximize_fidelity(R, 0, pair_weights=W3).rho_min[0] == 1.0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_floor_within_rounding_of_one_beside_pairs_that_do_not_count(criterion: str) -> None:
    """Beside that variable itself, the pair that counts vanishes."""
    R = np.array([[1.0, 0.24, 0.48], [0.24, 1.0, 0.4], [0.48, 0.4, 1.0]])
    weights = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.8], [0.0, 1.8, 0.0]])
    answer = decorrelate(R, [1.0 - 2.0**-50, 0.9, 0.999], criterion=criterion, pair_weights=weights)
    assert answer.status == "optimal"
    assert check(answer, R).passed
