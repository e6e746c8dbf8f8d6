"""The support solver against closed forms, other solvers, and its own guarantees."""

from itertools import pairwise

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check

from .certified import assert_feasible, by_slsqp, solve_support


def ar(coefficients, p):
    """Correlation matrix of a stationary autoregression, from its Yule-Walker equations."""
    k = len(coefficients)
    # r_m = Σ φ_j r_|m−j|: linear in r_1..r_k with r_0 = 1.
    M, v = np.eye(k), np.zeros(k)
    for m in range(1, k + 1):
        for j, phi in enumerate(coefficients, start=1):
            lag = abs(m - j)
            if lag == 0:
                v[m - 1] += phi
            else:
                M[m - 1, lag - 1] -= phi
    r = [1.0, *np.linalg.solve(M, v)]
    while len(r) < p:
        r.append(sum(phi * r[len(r) - j] for j, phi in enumerate(coefficients, start=1)))
    r = np.array(r[:p])
    return r[np.abs(np.subtract.outer(np.arange(p), np.arange(p)))]


def band(p, width):
    return np.abs(np.subtract.outer(np.arange(p), np.arange(p))) <= width


# Oracles


def test_diagonal_support_leaves_everything_as_it_is(simulated):
    R = simulated(6)
    for criterion in ("squared", "worst", "absolute"):
        for rho in (0.0, 0.9, 1.0):
            result = solve_support(R, np.full(6, rho), np.eye(6, dtype=bool), criterion=criterion)
            np.testing.assert_array_equal(result.T, np.eye(6))
            np.testing.assert_allclose(result.correlation, R, atol=1e-15)
            assert result.status == "optimal"
            assert result.gap <= 1e-9


@pytest.mark.parametrize(("p", "rho"), [(6, 0.99), (18, 0.97), (18, 0.99)])
def test_full_support_is_the_dense_problem(simulated, conic_optimum, p, rho):
    R = simulated(p)
    result = solve_support(R, np.full(p, rho), np.ones((p, p), dtype=bool))
    assert result.objective == pytest.approx(conic_optimum(R, rho), abs=2e-8)
    assert result.status == "optimal"
    assert result.certificate.info["bound"] == "lifted"


def test_an_end_that_ties_with_its_start_is_the_stationary_one():
    """Many transformations share the least value; the multipliers of a rough one prove nothing."""
    R = np.array([[1, 906, 698, 571], [0, 1, 737, 615], [0, 0, 1, 884], [0, 0, 0, 1.0]])
    R = np.triu(R, 1) / 1000
    R = R + R.T + np.eye(4)
    floors = np.array([0.999, 0.85, 0.5, 0.5])
    result = solve_support(R, floors, np.ones((4, 4), dtype=bool), n_starts=20)
    assert result.status == "optimal"
    assert result.gap <= 1e-9


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_autoregressions_need_only_their_order(criterion):
    for coefficients in ([0.8], [0.5, -0.4], [0.3, 0.2, -0.5]):
        k, p = len(coefficients), 9
        R = ar(coefficients, p)
        result = solve_support(R, np.zeros(p), band(p, k), criterion=criterion)
        assert result.status == "exact"
        np.testing.assert_allclose(result.correlation, np.eye(p), atol=1e-9)
        assert_feasible(R, band(p, k), result)


def test_a_band_on_both_sides_reaches_twice_as_far():
    """T Tᵀ of a tridiagonal T has five diagonals: enough for order two, not for order three."""
    two = solve_support(ar([0.5, -0.4], 9), np.zeros(9), band(9, 1), n_starts=30)
    assert two.status == "exact"
    three = solve_support(ar([0.3, 0.2, -0.5], 9), np.zeros(9), band(9, 1), n_starts=30)
    assert three.lower_bound > 1e-2


def test_as_good_as_the_papers_solver_from_many_starts(sparse_cases):
    for R, mask in sparse_cases:
        for rho in (0.0, 0.9):
            p = len(R)
            result = solve_support(R, np.full(p, rho), mask)
            assert result.objective <= by_slsqp(R, mask, np.full(p, rho), 6) + 1e-7
            assert_feasible(R, mask, result)


# The paper's system


def support_frontier(R, grid, mask, **options):
    """Solve for several floors, the highest first, each from the solution above it."""
    solved, warm = {}, None
    for rho in sorted(grid, reverse=True):
        solved[rho] = solve_support(R, np.full(len(R), rho), mask, warm=warm, **options)
        warm = solved[rho].T
    return [solved[rho] for rho in grid]


@pytest.fixture(scope="module")
def frontier(paper_system):
    R, mask = paper_system
    grid = (0.0, 0.5, 0.99)
    return dict(zip(grid, support_frontier(R, grid, mask), strict=True))


def test_the_papers_frontier_is_reached_or_beaten(paper_system, frontier):
    for result in frontier.values():
        assert_feasible(*paper_system, result)
    assert frontier[0.99].status == "optimal"
    # The paper's D2 without a fidelity requirement, and the mean absolute residuals of its rows.
    assert frontier[0.0].objective <= 0.25005
    i, j = np.triu_indices(18, 1)
    for rho, mean in ((0.0, 0.0302), (0.5, 0.0296), (0.99, 0.0723)):
        assert np.abs(frontier[rho].correlation[i, j]).mean() <= mean + 5e-5


def test_a_lower_floor_never_costs_more(frontier):
    objectives = [frontier[rho].objective for rho in sorted(frontier)]
    assert objectives == sorted(objectives)
    bounds = [frontier[rho].lower_bound for rho in sorted(frontier)]
    assert all(b >= a - 1e-8 for a, b in pairwise(bounds))


def test_prices_are_the_slopes_of_the_frontier(paper_system, frontier):
    """Around a certified optimum the sum of prices is the derivative in a common floor."""
    R, mask = paper_system
    h = 1e-5
    up, down = (solve_support(R, np.full(18, 0.99 + s * h), mask).objective for s in (1, -1))
    assert frontier[0.99].prices.sum() == pytest.approx((up - down) / (2 * h), rel=1e-4)


@pytest.mark.parametrize("criterion", ["worst", pytest.param("absolute", marks=pytest.mark.slow)])
def test_nonsmooth_criteria_on_the_papers_system(paper_system, criterion):
    """The paper's worst pair without fidelity is 0.0729; at ρ = 0.99 both are certified."""
    R, mask = paper_system
    free = solve_support(R, np.zeros(18), mask, criterion=criterion)
    assert_feasible(R, mask, free)
    assert free.objective <= (0.0729 if criterion == "worst" else 0.0729 * 18 * 17 / 2)
    assert free.lower_bound > 0.03
    high = solve_support(R, np.full(18, 0.99), mask, criterion=criterion)
    assert_feasible(R, mask, high)
    assert high.status == "optimal"
    assert check(high, R).passed


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_one_variable_has_no_pairs(criterion):
    alone = decorrelate(np.eye(1), 0.5, support=np.ones((1, 1), dtype=bool), criterion=criterion)
    assert alone.status == "exact"
    np.testing.assert_array_equal(alone.T, np.eye(1))


# Properties


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_more_allowed_entries_never_hurt(simulated, criterion):
    R = simulated(7, seed=5)
    order = np.random.default_rng(0).permutation(49)
    warm, last = None, np.inf
    for n in (0, 12, 49):
        mask = np.eye(7, dtype=bool)
        mask.flat[order[:n]] = True
        result = solve_support(R, np.full(7, 0.9), mask, criterion=criterion, n_starts=9, warm=warm)
        assert result.objective <= last
        assert_feasible(R, mask, result)
        warm, last = result.T, result.objective


def test_no_floor_and_a_floor_of_zero_are_the_same_problem(paper_system):
    R, mask = paper_system
    zero = decorrelate(R, 0.0, support=mask, n_starts=5)
    none = decorrelate(R, None, support=mask, n_starts=5)
    by_name = decorrelate(R, {}, support=mask, n_starts=5)
    assert zero.objective == none.objective == by_name.objective
    np.testing.assert_array_equal(zero.T, none.T)
    assert (zero.fidelity >= 0).all()


def test_floors_of_one_and_floors_by_variable(simulated):
    R = simulated(6)
    floors = np.array([1.0, 0.0, 0.95, 1.0, 0.5, 0.0])
    mask = np.ones((6, 6), dtype=bool)
    for criterion in ("squared", "worst", "absolute"):
        result = solve_support(R, floors, mask, criterion=criterion, n_starts=20)
        assert_feasible(R, mask, result)
        np.testing.assert_array_equal(result.T[:, [0, 3]], np.eye(6)[:, [0, 3]])
        assert result.objective >= abs(R[0, 3]) ** 2 - 1e-12


def test_the_result_tells_how_it_was_found(simulated):
    R = simulated(8)
    mask = np.abs(R) > 0.25
    calls = []
    result = solve_support(R, np.zeros(8), mask, n_starts=25, callback=lambda *a: calls.append(a))
    assert result.search.n_starts == 25 or result.status != "best_found"
    assert 1 <= result.search.n_best <= result.search.n_starts
    assert result.support.sum() == mask.sum()
    assert [c[0] for c in calls] == list(range(1, len(calls) + 1))
    assert min(c[1] for c in calls) == pytest.approx(result.objective, abs=1e-6)
    assert all(c[2] <= result.objective + 1e-9 for c in calls)
