"""Signs and intervals for coefficients: kept exactly, and refused with a reason."""

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.bounds.support import proved_bound
from skcoral.datasets import make_system
from skcoral.exceptions import InfeasibleError, InvalidArgumentError

from .certified import by_slsqp, solve_support


def free(p):
    return np.full((p, p), -np.inf), np.full((p, p), np.inf)


def solve(R, rho, mask, bounds, criterion="squared", n_starts=6):
    p = len(R)
    return solve_support(
        R,
        np.full(p, rho),
        mask,
        bounds=bounds,
        criterion=criterion,
        n_starts=n_starts,
    )


def assert_kept(R, mask, lower, upper, result):
    T = result.T
    assert (np.where(mask, lower, 0) <= T).all()
    assert (np.where(mask, upper, 0) >= T).all()
    np.testing.assert_allclose(np.diag(T.T @ R @ T), 1, atol=1e-12)
    assert (result.fidelity >= result.rho_min).all()
    assert (result.fidelity >= 0).all()
    assert proved_bound(R, result.rho_min, result.certificate) <= result.objective + 1e-12


@pytest.mark.parametrize(
    ("criterion", "rho"), [("squared", 0.0), ("squared", 0.9), ("worst", 0.9), ("absolute", 0.9)]
)
def test_caps_on_coefficients_are_kept(simulated, criterion, rho):
    R = simulated(6, seed=2)
    mask = np.abs(R) > 0.1
    lower, upper = free(6)
    upper[~np.eye(6, dtype=bool)] = 0.15
    result = solve(R, rho, mask, (lower, upper), criterion)
    assert_kept(R, mask, lower, upper, result)
    loose = solve(R, rho, mask, None, criterion)
    assert result.objective >= loose.objective - 1e-9
    assert result.status in ("optimal", "best_found")
    assert (result.gap <= 1e-9) == (result.status == "optimal")


def test_signs_are_kept_and_cost_something(simulated):
    R = simulated(6, seed=2)
    mask = np.ones((6, 6), dtype=bool)
    lower, upper = np.zeros((6, 6)), np.full((6, 6), np.inf)
    result = solve(R, 0.5, mask, (lower, upper))
    assert_kept(R, mask, lower, upper, result)
    assert result.objective > 1e-3


# scipy before 1.14 warns that it put its own steps back inside the bounds.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("seed", [6, 10])
def test_no_worse_than_sequential_programming(simulated, criterion, seed):
    R, mask = simulated(4, seed=seed), np.ones((4, 4), dtype=bool)
    box = np.full((4, 4), -0.15), np.where(np.eye(4) > 0, np.inf, 0.3)
    result = solve(R, 0.9, mask, box, criterion)
    assert_kept(R, mask, *box, result)
    other = by_slsqp(R, mask, np.full(4, 0.9), 6, box=box, criterion=criterion)
    assert result.objective <= other + 1e-6 < np.inf


def test_bounds_that_do_not_bind_change_nothing(simulated):
    R = simulated(6)
    mask = np.abs(R) > 0.2
    plain = solve(R, 0.97, mask, None)
    wide = solve(R, 0.97, mask, (np.full((6, 6), -50.0), np.full((6, 6), 50.0)))
    np.testing.assert_array_equal(plain.T, wide.T)
    assert wide.status == plain.status


def test_fixed_coefficients_are_fixed(simulated):
    R = simulated(5)
    mask = np.ones((5, 5), dtype=bool)
    lower, upper = free(5)
    lower[2, 0] = upper[2, 0] = 0.25
    result = solve(R, 0.6, mask, (lower, upper))
    assert_kept(R, mask, lower, upper, result)
    assert result.T[2, 0] == 0.25


def test_a_fidelity_limit_in_the_message_is_the_true_one():
    """Two variables: with t₂ = b, unit variance says t₁² + 2rt₁b + b² = 1."""
    r, b = 0.6, 0.3
    lower, upper = free(2)
    upper[1, 1] = b
    t = -r * b + np.sqrt(1 - b * b * (1 - r * r))
    with pytest.raises(InfeasibleError, match=f"above {r * t + b:.6f}"):
        solve(np.array([[1, r], [r, 1.0]]), 0.99, np.ones((2, 2), dtype=bool), (lower, upper))


def test_contradictory_bounds_are_errors(simulated):
    R = simulated(4)
    mask = np.eye(4, dtype=bool)
    lower, upper = free(4)
    with pytest.raises(InvalidArgumentError, match="exceeds"):
        solve(R, 0.0, mask, (upper, lower))
    with pytest.raises(InvalidArgumentError, match="shape"):
        decorrelate(R, 0.0, support=mask, bounds=(np.zeros((3, 3)), upper))
    with pytest.raises(InvalidArgumentError, match="without NaN"):
        decorrelate(R, 0.0, support=mask, bounds=(np.full((4, 4), np.nan), upper))
    lower[0, 1] = 0.5
    with pytest.raises(InfeasibleError, match="off the support"):
        solve(R, 0.0, mask, (lower, upper))


def test_coefficients_fixed_by_their_bounds():
    R = make_system(6)
    diagonal = np.eye(6, dtype=bool)
    answer = decorrelate(
        R, 0.9, bounds=(np.where(diagonal, -np.inf, 0.0), np.where(diagonal, np.inf, 0.0))
    )
    assert np.array_equal(answer.T, np.eye(6))
    with pytest.raises(InfeasibleError, match="x0"):
        decorrelate(R, 0.9, bounds=(0, 0))
    half = np.where(diagonal, 0.5, 0.0)
    with pytest.raises(InfeasibleError, match=r"at most 0\.25"):
        decorrelate(R, 0.5, bounds=(half, half))
