"""The curve is convex and increasing, its slopes are its derivatives, its ends are exact."""

import numpy as np
import pytest

from skcoral import decorrelate, frontier, maximize_fidelity, threshold
from skcoral.certificates import check
from skcoral.exceptions import NotCertifiedWarning

CRITERIA = ("squared", "worst", "absolute")


@pytest.fixture(scope="module", params=CRITERIA)
def curve(request, systems):
    return frontier(systems["wine"], criterion=request.param, n_points=15)


def test_convex_and_increasing_with_exact_ends(curve, systems, naive):
    R = systems["wine"]
    assert len(curve) == 15
    assert np.all(np.diff(curve.rho_min) > 0)
    assert curve.rho_min[0] == pytest.approx(threshold(R).lower, abs=1e-9)
    assert curve.threshold == curve.rho_min[0]
    assert curve.rho_min[-1] == 1.0
    assert curve.objective[0] <= 1e-12
    everything = naive.objective(R, np.eye(13), curve.criterion)
    assert curve.objective[-1] == pytest.approx(everything, rel=1e-12)
    chords = np.diff(curve.objective) / np.diff(curve.rho_min)
    assert np.all(chords > 0)
    assert np.all(np.diff(chords) >= -1e-5)
    # A tangent at either end of a chord encloses its slope.
    assert np.all(curve.slope[1:-1] <= chords[1:] + 1e-5)
    assert np.all(curve.slope[1:-1] >= chords[:-1] - 1e-5)
    assert np.isinf(curve.slope[-1])


def test_every_point_is_certified(curve):
    assert np.all(curve.gap <= 1e-7 * np.maximum(1.0, curve.objective))
    assert np.all(curve.gap >= -1e-9)
    assert np.all(curve.min_fidelity >= curve.rho_min - 1e-9)
    rounding = 1e-15  # of a mean
    assert np.all(curve.mean_fidelity >= curve.min_fidelity - rounding)
    assert np.all(curve.worst_residual >= curve.mean_residual - rounding)


def test_points_are_what_single_solves_give(curve, systems):
    R = systems["wine"]
    for k in (2, 8, 12):
        single = decorrelate(R, curve.rho_min[k], criterion=curve.criterion)
        assert curve.objective[k] == pytest.approx(single.objective, abs=1e-7)
        assert curve.slope[k] == pytest.approx(single.prices.sum(), rel=1e-3)
        assert curve.mean_fidelity[k] == pytest.approx(single.mean_fidelity, abs=1e-5)


def test_points_lie_evenly_along_the_curve(curve):
    """No step in floor and residual, each in parts of its range, is far longer than another."""
    steps = np.diff(curve.rho_min) / np.ptp(curve.rho_min)
    steps = steps + np.diff(curve.objective) / np.ptp(curve.objective)
    assert steps.max() <= 2.5 * steps.min()


def test_the_table(curve):
    frame = curve.to_frame()
    assert list(frame.columns) == [
        "rho_min", "objective", "lower_bound", "slope",
        "worst_residual", "mean_residual", "min_fidelity", "mean_fidelity",
    ]  # fmt: skip
    assert len(frame) == 15
    assert "ρ★ = 0.826231" in curve.summary()
    with pytest.raises(ValueError, match="read-only"):
        curve.objective[0] = 1.0


def test_given_floors_in_any_order(systems):
    R = systems["wdi"]
    floors = [0.95, 0.5, 1.0, 0.8, 0.95]
    seen = []
    curve = frontier(R, floors, callback=lambda *call: seen.append(call))
    np.testing.assert_array_equal(curve.rho_min, floors)
    assert curve.objective[1] <= 1e-15
    assert curve.mean_fidelity[1] == pytest.approx(decorrelate(R, 0.5).mean_fidelity, abs=1e-12)
    assert curve.objective[0] == curve.objective[4]
    assert curve.objective[3] == pytest.approx(decorrelate(R, 0.8).objective, abs=1e-9)
    assert [k for k, _, _ in seen] == [1, 2, 3, 4]


@pytest.mark.parametrize("zeros", [False, True])
def test_pair_weights(systems, zeros):
    R = systems["wdi"]
    omega = np.full((8, 8), 5.0)
    omega[0, 1:] = omega[1:, 0] = 0.0 if zeros else 2.0
    curve = frontier(R, pair_weights=omega, n_points=8)
    assert np.all(curve.gap <= 1e-7 * np.maximum(1.0, curve.objective))
    assert np.all(np.diff(curve.objective) > -1e-9)
    for k in (2, 5):
        single = decorrelate(R, curve.rho_min[k], pair_weights=omega)
        assert curve.objective[k] == pytest.approx(single.objective, abs=1e-7)


def test_uncorrelated_variables_have_one_point():
    curve = frontier(np.eye(3))
    np.testing.assert_array_equal(curve.objective, 0.0)
    np.testing.assert_array_equal(curve.slope, 0.0)
    assert curve.threshold == 1.0


def test_open_gaps_are_admitted(systems, monkeypatch):
    from skcoral.certificates.certify import certify_frontier
    from skcoral.core.problem import Settings
    from skcoral.solvers.tradeoff import trace_frontier

    R = systems["wine"]
    with pytest.warns(NotCertifiedWarning, match="a gap open"):
        curve = certify_frontier(
            trace_frontier(R, np.array([0.95]), Settings(("x",) * 13, max_iter=2))
        )
    assert curve.gap[0] > 1e-7


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_budget_inverts_the_curve(systems, verify, criterion):
    R = systems["wdi"]
    for rho in (0.76, 0.85, 0.97):
        budget = decorrelate(R, rho, criterion=criterion).objective
        answer = maximize_fidelity(R, budget, criterion=criterion)
        gamma = float(answer.rho_min[0])
        assert np.all(answer.rho_min == gamma)
        assert gamma == pytest.approx(rho, abs=1e-7)
        assert answer.objective <= budget
        assert answer.min_fidelity >= gamma - 1e-12
        assert gamma <= answer.goal.rho_upper <= gamma + 1e-8
        verify(R, answer)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("budget", [1e-16, 1e-12, 1e-9])
def test_a_tiny_budget_is_proved(systems, criterion, budget):
    """Too little to tell it from ρ★, where no dual point lives: a tangent from above proves it."""
    R = systems["wine"]
    answer = maximize_fidelity(R, budget, criterion=criterion)
    edge = threshold(R)
    assert edge.lower - 1e-9 <= answer.rho_min[0] <= answer.goal.rho_upper
    assert answer.goal.rho_upper <= edge.upper + (1e-7 if criterion != "squared" else 1e-4)
    assert answer.status == "optimal"
    assert check(answer, R).passed


@pytest.mark.parametrize(("criterion", "budget"), [("worst", 0.1), ("absolute", 0.3)])
def test_a_floor_that_may_be_too_low_is_not_called_optimal(systems, criterion, budget):
    from skcoral.certificates.certify import certify
    from skcoral.core.problem import Problem
    from skcoral.solvers.tradeoff import solve_budget

    problem = Problem.of(systems["wine"], criterion=criterion, max_iter=2)
    with pytest.warns(NotCertifiedWarning, match="are proved to exceed it: a gap of"):
        answer = certify(problem, solve_budget(systems["wine"], budget, problem.settings))
    assert answer.status in {"best_found", "not_converged"}
    assert answer.objective <= budget
    assert check(answer, systems["wine"]).passed


def test_budgets_at_the_ends(systems):
    R = systems["wdi"]
    nothing = maximize_fidelity(R, 0.0)
    assert nothing.status == "exact"
    assert float(nothing.rho_min[0]) == pytest.approx(threshold(R).lower, abs=1e-9)
    everything = maximize_fidelity(R, 100.0)
    assert np.all(everything.rho_min == 1.0)
    np.testing.assert_array_equal(everything.T, np.eye(8))
    tiny = maximize_fidelity(R, 1e-14)
    assert 0 < float(tiny.rho_min[0]) - float(nothing.rho_min[0]) < 1e-6


@pytest.mark.parametrize("r", [7e-8, 7e-7, 1e-6])
def test_a_budget_below_correlations_that_hardly_show(r):
    """Correlations of 1e-7 lower the threshold by 1e-14 only, and still exceed a budget of r/2."""
    R = np.array([[1.0, r], [r, 1.0]])
    result = maximize_fidelity(R, r / 2, criterion="absolute")
    assert abs((result.T.T @ R @ result.T)[0, 1]) <= r / 2 + 1e-12
    assert check(result, R).passed
