"""Multipliers and forms of a support problem, against their definitions."""

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.core import criteria
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.frame_relaxation import _Barrier
from skcoral.solvers.support.interior_point import refine
from skcoral.solvers.support.lower_bounds import multipliers, quadratic_form
from skcoral.solvers.support.objectives import residuals


@pytest.fixture
def space(simulated):
    R = simulated(5, seed=4)
    mask = (np.abs(R) > 0.15) | np.eye(5, dtype=bool)
    mask[:, 1] = np.arange(5) == 1
    return R, mask, feasible_set(R, mask, np.array([0.9, 0.5, 0.0, 0.95, 0.8]))


@pytest.mark.parametrize("fixed", [(), (1,), (0, 3)])
def test_the_quadratic_form_is_that_of_the_outputs(space, fixed):
    """Σ_kl H_kl w_k·w_l in the coefficients of the columns that have freedom."""
    R, mask, caps = space
    floors = caps.floors.copy()
    floors[list(fixed)] = 1.0
    caps = feasible_set(R, mask, floors)
    fixed = np.flatnonzero(caps.floors >= 1)  # one of them has no other source
    rng = np.random.default_rng(1)
    H = rng.normal(size=(5, 5))
    H = H + H.T
    Q, c = quadratic_form(caps, H)
    slots = np.flatnonzero((caps.valid & (caps.floors < 1)[:, None]).ravel())
    for U in np.where(caps.valid, rng.normal(size=(4, caps.k, caps.m)), 0.0):
        U[fixed, 0] = 1.0
        W = caps.outputs(U[None])[0]
        x = U.ravel()[slots]
        fixed_part = float(np.sum((H * (W @ W.T))[np.ix_(fixed, fixed)]))
        value = x @ Q @ x + 2 * c @ x + fixed_part
        assert value == pytest.approx(float(np.sum(H * (W @ W.T))), rel=1e-12)


def test_multipliers_of_a_solution(space):
    """At an optimum the gradient is h u - λ e₁ in every column, with λ ≥ 0 on the rims alone."""
    R, mask, caps = space
    result = decorrelate(R, caps.floors, support=mask, n_starts=10)
    U = caps.points(result.T[None])[0]
    E = residuals(caps, U[None])[0]
    state = multipliers(caps, U, E)
    assert state.stationarity < 1e-6
    W = caps.outputs(U[None])[0]
    gradient = np.einsum("kma,ka->km", caps.frames, E @ W)
    h = np.diag(state.H)
    rim = caps.on_rim(U, 1e-7) & (caps.valid.sum(axis=1) > 1)
    for k in range(5):
        if caps.floors[k] >= 1 or caps.valid[k].sum() == 1:
            continue
        left = gradient[k] + h[k] * U[k]
        left[0] -= state.floors[k]
        np.testing.assert_allclose(left[caps.valid[k]], 0, atol=1e-6)
        assert state.floors[k] >= 0
        assert rim[k] or state.floors[k] == 0
    np.testing.assert_allclose(state.H - np.diag(h), E)
    np.testing.assert_allclose(2 * state.floors[rim], result.prices[rim], rtol=1e-4)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_the_interior_point_method_ends_at_full_accuracy(space, criterion):
    """From a point that is off by 1e-4: the first-order conditions to rounding."""
    R, mask, caps = space
    result = decorrelate(R, caps.floors, support=mask, criterion=criterion, n_starts=10)
    U = caps.points(result.T[None])[0]
    rng = np.random.default_rng(2)
    near = caps.onto_caps((U + 1e-4 * rng.normal(size=U.shape) * caps.valid)[None])[0]
    refined = refine(caps, near, criterion)
    assert multipliers(caps, refined.U, refined.half_slope).stationarity < 1e-9
    E = residuals(caps, refined.U[None])
    value = criteria.values(criterion, E)[0]
    assert value == refined.value == pytest.approx(result.objective, abs=1e-10)
    # off(H) is a subgradient of the criterion: Σ_ij H_ij G_ij is its value (twice, for squares)
    degree = 2 if criterion == "squared" else 1
    attained = float(np.sum(refined.half_slope * E[0]))
    assert attained == pytest.approx(degree * value, abs=1e-9)
    np.testing.assert_allclose(np.linalg.norm(refined.U, axis=1), 1, atol=1e-13)
    assert np.all(refined.U[:, 0] >= caps.floors - 1e-13)


@pytest.mark.parametrize("norm", ["frobenius", "nuclear"])
def test_points_so_near_the_boundary_that_a_step_overflows(space, norm):
    """No step is taken from there, and nothing is raised; the search keeps its best bound."""
    barrier = _Barrier(space[2], norm)
    M, mu, phi = barrier.first()
    step, decrement = barrier.newton(M, mu, phi, 0.03)
    assert 0 < decrement < np.inf
    assert np.isfinite(step[0]).all()
    alone = np.where(barrier.floored > 0, phi, -1e-200)  # slacks of 1e-200
    with np.errstate(all="ignore"):
        _, decrement = barrier.newton(M, mu, alone, 0.03)
    assert np.isnan(decrement)
