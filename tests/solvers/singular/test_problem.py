"""Least residuals in the factor form: closed forms, the bound of the rank, hard floors."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral.core.lowrank import welch
from skcoral.solvers.singular.dual import maximise_bound
from skcoral.solvers.singular.problem import FrameProblem


@pytest.mark.parametrize("kind", ["noise", "factors"])
def test_rank_45_of_68_reaches_the_bound_of_the_rank(tables, kind):
    A = tables.factor_of(getattr(tables, kind)(46, 68))
    answer = FrameProblem(A).solve(np.full(68, 0.6))
    assert A.shape == (45, 68)
    assert answer.objective == pytest.approx((68**2 / 45 - 68) / 2, rel=1e-9)
    assert answer.lower_bound == pytest.approx((68**2 / 45 - 68) / 2, rel=1e-14)


@pytest.mark.parametrize("kind", ["noise", "factors"])
@pytest.mark.parametrize("floor", [0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.9995, 1 - 1e-7, 1.0])
def test_two_hundred_columns_of_forty_rows_are_certified(tables, kind, floor):
    A = tables.factor_of(getattr(tables, kind)(40, 200))
    answer = FrameProblem(A).solve(np.full(200, floor))
    assert answer.certified


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_two_equal_columns_stay_correlated_at_one(criterion):
    answer = FrameProblem(np.array([[1.0, -1.0]]), criterion).solve(np.zeros(2))
    assert answer.objective == 1.0
    assert answer.lower_bound == pytest.approx(1.0, abs=1e-14)


def test_worst_pair_of_duplicates_in_closed_form():
    A = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    answer = FrameProblem(A, "worst").solve(np.full(3, 0.95))
    assert answer.objective == pytest.approx(np.cos(2 * np.arccos(0.95)), abs=1e-7)
    assert answer.certified


FLOORS = [0.5, 0.95, 0.999]


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("groups", [(0, 0, 1, 2), (0, 0, 1, 1, 2)])
def test_worst_pair_of_duplicates_among_others(groups, correlated, floor):
    """Two copies part by twice the angle of the floor, and no further than the others allow."""
    rng = np.random.default_rng(0)
    sources = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    if correlated:
        sources = sources + 0.3 * rng.normal(size=(3, 3))
        sources /= np.linalg.norm(sources, axis=0)
    answer = FrameProblem(sources[:, groups], "worst").solve(np.full(len(groups), floor))
    # lines of R³ that are spread most: four diagonals of a cube, five of six of an icosahedron
    lines = {4: 1 / 3, 5: 1 / np.sqrt(5)}[len(groups)]
    parted = np.cos(2 * np.arccos(floor))
    expected = max(parted, lines)
    assert answer.objective == pytest.approx(expected, abs=2e-6)
    assert answer.certified or expected > parted


@pytest.mark.parametrize("floor", FLOORS)
def test_worst_pair_of_triplicates(floor):
    """In the plane three copies are an angle of the floor apart, in space at 120 degrees."""
    plane = np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    answer = FrameProblem(plane, "worst").solve(np.full(4, floor))
    assert answer.objective == pytest.approx(max(floor, np.sqrt(0.5)), abs=2e-6)
    space = np.eye(3)[:, [0, 0, 0, 1, 2]]
    answer = FrameProblem(space, "worst").solve(np.full(5, floor))
    parted = (3 * floor**2 - 1) / 2
    assert answer.objective == pytest.approx(max(parted, 1 / np.sqrt(5)), abs=2e-5)


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("groups", [(0, 0, 1), (0, 0, 1, 2), (0, 0, 1, 1, 2), (0, 0, 1, 1, 2, 2)])
def test_absolute_sum_of_duplicates_of_uncorrelated_columns(groups, floor):
    """p - r, which the projection on the null space proves: the copies stay together."""
    r = max(groups) + 1
    answer = FrameProblem(np.eye(r)[:, groups], "absolute").solve(np.full(len(groups), floor))
    assert answer.certified
    assert answer.objective == pytest.approx(len(groups) - r, abs=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_rank_bounds_the_absolute_sum(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 9))
    A = rng.normal(size=(int(rng.integers(1, p)), p)) ** 3
    A /= np.linalg.norm(A, axis=0)
    problem = FrameProblem(A, "absolute")
    assert problem.value(A) >= problem.least
    assert problem.least >= p - len(A)


def test_squares_of_three_directions_in_the_plane():
    """By symmetry: x and its copy at ±t from x, y kept; the floor allows t up to arccos 0.95."""
    A = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    t = np.arccos(0.95)
    answer = FrameProblem(A).solve(np.full(3, 0.95))
    assert answer.objective == pytest.approx(np.cos(2 * t) ** 2 + 2 * np.sin(t) ** 2, abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_mixtures_of_floors(tables, seed):
    rng = np.random.default_rng(seed)
    A = tables.factor_of(tables.factors(9, 30, seed))
    floors = rng.choice([0.0, 0.5, 0.9, 0.99, 0.9999, 1.0], size=30)
    answer = FrameProblem(A).solve(floors)
    fidelity = (A * answer.U).sum(axis=0)
    assert (fidelity >= floors - 1e-12).all()
    np.testing.assert_allclose(np.linalg.norm(answer.U, axis=0), 1.0, rtol=1e-12)
    assert answer.lower_bound <= answer.objective
    assert answer.objective <= answer.lower_bound * 1.02


@pytest.mark.parametrize("k", [1, 2])
def test_totals_are_certified_at_both_ends(tables, k):
    A = tables.factor_of(tables.sums(100, 20, k))
    low, high = (FrameProblem(A).solve(np.full(20, floor)) for floor in (0.6, 0.99))
    assert low.certified
    assert low.objective == pytest.approx(welch(20, 20 - k), rel=1e-8)
    assert high.certified
    assert high.objective > low.objective


def test_pair_weights_have_a_bound_of_their_own(tables):
    A = tables.factor_of(tables.sums(100, 8, 1))
    weights = 1.0 + np.random.default_rng(0).uniform(size=(8, 8))
    weights = 0.5 * (weights + weights.T)
    np.fill_diagonal(weights, 0.0)
    answer = FrameProblem(A, "squared", weights).solve(np.full(8, 0.99))
    G = answer.U.T @ answer.U
    assert answer.objective == pytest.approx(0.5 * (weights * G**2).sum(), rel=1e-12)
    assert answer.certified


@pytest.mark.parametrize("pinned", [0, 3])
def test_outputs_that_the_dual_leaves_open_reach_its_bound(tables, pinned):
    A = tables.factor_of(tables.factors(30, 400, k=1))
    floors = np.full(400, 0.9)
    floors[:pinned] = 1.0
    dual = maximise_bound(A, floors, allowed=lambda _: 1e-8, max_iter=200)
    assert dual.point.n[0] < 1e-5 * dual.point.n[-1]  # N is singular
    answer = FrameProblem(A).solve(floors)
    assert answer.objective <= (1.0 + 1e-8) * dual.bound
    np.testing.assert_allclose(answer.U[:, :pinned], A[:, :pinned], atol=1e-14)
