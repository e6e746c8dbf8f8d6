"""The Newton equations: two ways to solve them, and derivatives against differences."""

import numpy as np
import pytest

from skcoral.solvers.tradeoff.equations import FormedEquations, IteratedEquations
from skcoral.solvers.tradeoff.interior import Allowance, _Point, follow, start, start_from
from skcoral.solvers.tradeoff.newton import evaluate
from skcoral.solvers.tradeoff.points import Bounded, Box, Problem, Quadratic, State

CRITERIA = ("squared", "worst", "absolute")


def weights(rng, p, zeros=0.0):
    omega = np.triu(rng.uniform(0.1, 1.0, (p, p)) * (rng.uniform(size=(p, p)) >= zeros), 1)
    return omega + omega.T


def symmetric(rng, p):
    M = rng.normal(size=(p, p))
    return M + M.T


def problem_of(rng, random_correlation, p, seed, *, zeros=0.0, ones=0):
    R = random_correlation(p, seed)
    floors = rng.uniform(0.9, 0.99, p)
    floors[:ones] = 1.0
    omega = weights(rng, p, zeros)
    return Problem(R, floors, omega > 0), omega


def a_state(problem, criterion, omega, steps):
    return follow(
        problem, start(problem, criterion, omega), share=0.0, allowance=Allowance(steps)
    ).state


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("zeros", "ones"), [(0.0, 0), (0.4, 0), (0.0, 2), (0.4, 2)])
def test_iterated_equations_have_the_solution_of_the_formed_ones(
    random_correlation, criterion, zeros, ones
):
    rng = np.random.default_rng(3)
    problem, omega = problem_of(rng, random_correlation, 7, 11, zeros=zeros, ones=ones)
    for steps in (0, 2, 5):
        point = _Point(problem, a_state(problem, criterion, omega, steps))
        at = point.linearised()
        model = point.state.model
        lever = model.lever(point.state.H, point.stiffness, model.goals(0.1 * point.mu))
        right = symmetric(rng, 7) * problem.live
        missing = rng.normal(size=7)
        formed, iterated = FormedEquations(at), IteratedEquations(at, accuracy=1e-12, careful=False)
        V, scalar = formed.solve(right, missing, lever)
        W, other = iterated.solve(right, missing, lever)
        size = np.abs(V).max()
        np.testing.assert_allclose(W, V, atol=1e-6 * size)
        assert other == pytest.approx(scalar, abs=1e-6 * max(abs(scalar), size))
        np.testing.assert_allclose(
            iterated.multipliers(V, missing), formed.multipliers(V, missing), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("criterion", ["squared", "absolute"])
@pytest.mark.parametrize("ones", [0, 2])
def test_curvature_of_soft_changes_is_known_in_closed_form(random_correlation, criterion, ones):
    """On the central path the coarse matrix is the restriction of the equations to EH + HE.

    The local changes are conjugate to the scale of their variable and have the curvature stated.
    """
    p = 6
    rng = np.random.default_rng(1)
    problem, omega = problem_of(rng, random_correlation, p, 4, ones=ones)
    state = a_state(problem, criterion, omega, 3)
    # Put T and P on the path of this H, and the floors where they have to be.
    B = np.linalg.inv(problem.with_held(state.H * problem.block)) * problem.block
    across = state.H * (1 - problem.free)[:, None] * problem.free[None, :]
    T = problem.with_held(state.lam[:, None] * B - across @ B)
    tau = 0.01
    on_path = State(state.H, state.lam, state.z, T, tau * B, state.model)
    at = _Point(problem, on_path).linearised()
    fidelity = np.diag(problem.R @ T)
    at.problem.floors = fidelity - 0.5 * state.z
    system = IteratedEquations(at, accuracy=0.1, careful=False)
    coarse = np.linalg.inv(system.coarse.scales)
    for _ in range(5):
        scale = rng.normal(size=p) * problem.free
        V = state.H * (scale[:, None] + scale[None, :])
        assert scale @ coarse @ scale == pytest.approx(np.sum(V * system._apply(V)), rel=1e-8)
    for j in np.flatnonzero(problem.free):
        unit = np.eye(p)[j]
        scale = state.H * (unit[:, None] + unit[None, :])
        own = np.outer(unit, unit)
        local = own - system.coarse.tilt[j] * scale
        curvature = np.sum(local * system._apply(local))
        assert 1.0 / system.coarse.local[j] == pytest.approx(curvature, rel=1e-8)
        size = np.sum(own * system._apply(own))
        assert abs(np.sum(scale * system._apply(local))) <= 1e-8 * size


def test_gradient_of_the_reduced_dual_by_differences(random_correlation):
    p = 5
    rng = np.random.default_rng(2)
    R = random_correlation(p, 5)
    omega = weights(rng, p)
    problem = Problem(R, np.full(p, 0.97), omega > 0)
    model = Quadratic(np.where(omega > 0, 1 / np.where(omega > 0, omega, 1), 0.0))
    M = rng.normal(size=(p, p))
    H, V = M @ M.T / p + np.eye(p), symmetric(rng, p)

    def value(step):
        point = evaluate(problem, H + step * V, model)
        np.testing.assert_allclose(np.diag(R @ point.T), 0.97, atol=1e-11)
        here = H + step * V
        squares = 0.5 * np.sum(model.stiffness * here**2)
        return 0.97 * point.lam.sum() - np.trace(here) - squares

    slope = (value(1e-5) - value(-1e-5)) / 2e-5
    gradient = evaluate(problem, H, model).gradient
    assert np.sum(gradient * V) == pytest.approx(slope, rel=1e-7)


def pair_models(rng, p):
    live = 1.0 - np.eye(p)
    omega = weights(rng, p)
    omega = np.where(live > 0, omega + 1e-3, 0.0)
    S = 0.2 * symmetric(rng, p) * live / p
    yield Box.start(omega, live, S, 0.03)
    yield Bounded.worst(omega, live, S)
    bound = np.triu(rng.uniform(size=(p, p)) < 0.6, 1)
    for width in (0.3, 1e-9):  # slacks start above the narrow bounds
        within = np.full((p, p), width)
        yield Bounded.squares(within, live, (bound | bound.T).astype(float), S, 0.05)


@pytest.mark.parametrize("corrected", [False, True])
def test_pair_models_linearise_their_own_conditions(corrected):
    """After a full step, products differ from τ/2 by second-order terms and the rest is met.

    What a corrector takes into account is missing in the products.
    """
    rng = np.random.default_rng(0)
    p, tau = 5, 0.02
    for model in pair_models(rng, p):
        H = 1e-3 * symmetric(rng, p)
        V = 1e-4 * symmetric(rng, p)
        less = tuple(1e-4 * corrected * symmetric(rng, p) for _ in range(2))
        goals = tuple(0.5 * tau - second_order for second_order in less)
        stiffness = model.stiffness
        lever = model.lever(H, stiffness, goals)
        scalar = 0.0
        if lever is not None:
            scalar = -(lever.constant + np.sum(lever.pull * V)) / lever.bend
        direction = model.direction(H, V, stiffness, goals, lever, scalar)
        moved = model.moved(direction, 1.0)
        expected = model.target(H, stiffness, goals) + stiffness * V
        if lever is not None:
            expected = expected + lever.pull * scalar
        off = ~np.eye(p, dtype=bool)
        np.testing.assert_allclose(moved.residual(H + V)[off], expected[off], atol=1e-12)
        first, second = (0.5 * tau - goal for goal in model.goals(tau, direction, 1.0))
        quarter = 0.5 * tau - 0.25 * first, 0.5 * tau - 0.25 * second
        np.testing.assert_allclose(model.goals(tau, direction, 0.25), quarter)
        pairs = [(moved.a, moved.u, first - less[0]), (moved.b, moved.v, second - less[1])]
        on = model.bound > 0
        if isinstance(model, Bounded):
            split = H + V - (moved.a - moved.b) * model.bound - model.kappa * moved.s
            np.testing.assert_allclose(split[model.live > 0], 0.0, atol=1e-12)
            if model.kappa != 0.0:
                for slack, true in ((moved.u, model.c - moved.s), (moved.v, model.c + moved.s)):
                    np.testing.assert_allclose(slack[on], true[on], atol=1e-12)
                assert moved.left == 0.0
                assert model.moved(direction, 0.5).left == 0.5
            if model.kappa == 0.0:
                total = np.sum(model.c * (moved.a + moved.b))
                assert total == pytest.approx(1.0, abs=1e-12)
        for x, slack, left_over in pairs:
            np.testing.assert_allclose((x * slack)[on], (0.5 * tau + left_over)[on], atol=1e-12)


def test_a_point_of_the_path_is_feasible_and_its_products_are_the_gap(random_correlation, naive):
    p = 6
    R = random_correlation(p, 9)
    floors = np.linspace(0.9, 0.99, p)
    live = ~np.eye(p, dtype=bool)
    problem = Problem(R, floors, live)
    for criterion in CRITERIA:
        progress = follow(
            problem, start(problem, criterion, 1.0 * live), share=1e-6, allowance=Allowance(50)
        )
        state = progress.state
        G = state.T.T @ R @ state.T
        assert progress.done
        np.testing.assert_allclose(np.diag(G + state.P), 1.0, atol=1e-6)
        assert np.all(np.diag(R @ state.T) >= floors)
        H = state.H
        if criterion == "worst":
            H = H / max(np.abs(H[live]).sum(), 1.0)
        bound = naive.star(R, floors, state.lam, H, criterion, None)
        relaxed = naive.objective(np.eye(p), np.linalg.cholesky(G + state.P).T, criterion, None)
        assert 0 <= relaxed - bound <= 3e-6


def test_the_second_order_term_of_a_step_is_taken_into_account(random_correlation):
    """Unit variances are linear along a step: a full step meets them exactly."""
    p = 6
    R = random_correlation(p, 2)
    live = ~np.eye(p, dtype=bool)
    problem = Problem(R, np.full(p, 0.95), live)
    model = Quadratic(1.0 * live)
    state = start_from(problem, model, 0.5)
    point = _Point(problem, state)
    direction = point.direction(FormedEquations(point.linearised()), point.target(0.4))
    moved = direction.moved(state, 0.25, curved=True)
    before = (point.residual - model.residual(state.H))[live]
    after = (problem.gram(moved.T) + moved.P - np.eye(p) - model.residual(moved.H))[live]
    np.testing.assert_allclose(after, 0.75 * before, atol=1e-12)
