"""The lower bound holds for any multipliers, and the derivatives are derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcoral.exceptions import CertificateError
from skcoral.tradeoff import criteria, dual_bound
from skcoral.tradeoff.caps import on_caps
from skcoral.tradeoff.levels import solve_levels
from skcoral.tradeoff.newton import SmoothDual
from skcoral.tradeoff.pairs import Bounded, Box, Quadratic

CRITERIA = ("squared", "worst", "absolute")


def random_point(rng, p, criterion, omega):
    lam = rng.uniform(0, 3, p)
    M = rng.normal(size=(p, p))
    H = criteria.admissible(criterion, M @ M.T / p + 0.1 * np.eye(p), omega)
    return lam, H


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    p=st.integers(2, 7),
    seed=st.integers(0, 10_000),
    criterion=st.sampled_from(CRITERIA),
    weighted=st.booleans(),
)
def test_any_dual_point_bounds_any_feasible_point(
    naive, random_correlation, p, seed, criterion, weighted
):
    rng = np.random.default_rng(seed)
    R = random_correlation(p, seed)
    omega = None
    if weighted:
        omega = rng.uniform(0.1, 2, (p, p)) * (rng.uniform(size=(p, p)) < 0.8)
        omega = np.triu(omega, 1) + np.triu(omega, 1).T
    floors = rng.uniform(0, 0.99, p)
    T = on_caps(R, rng.normal(size=(p, p)), floors, np.zeros(p, dtype=bool))
    lam, H = random_point(rng, p, criterion, omega)
    bound = dual_bound(R, floors, lam, H, criterion, omega)
    assert np.isfinite(bound)
    assert bound <= naive.objective(R, T, criterion, omega) + 1e-9
    # The rearranged formula is the published one, wherever it is expanded.
    plain = naive.star(R, floors, lam, H, criterion, omega)
    size = 1e-11 * (1 + abs(plain) + np.abs(T).sum() ** 2)
    assert bound == pytest.approx(plain, abs=size, rel=1e-9)
    assert dual_bound(R, floors, lam, H, criterion, omega, near=T) == pytest.approx(
        plain, abs=100 * size, rel=1e-8
    )


def test_points_outside_the_domain_prove_nothing():
    R = np.array([[1.0, 0.5], [0.5, 1.0]])
    floors = np.array([0.99, 0.99])
    H = np.array([[2.0, 0.6], [0.6, 2.0]])
    lam = np.ones(2)
    assert dual_bound(R, floors, lam, H, "worst") == -np.inf
    assert dual_bound(R, floors, lam, H, "absolute") == -np.inf
    none = np.zeros((2, 2))
    assert dual_bound(R, floors, lam, H, "squared", none) == -np.inf
    assert np.isfinite(dual_bound(R, floors, lam, H, "squared"))


def test_broken_certificates_are_refused():
    R = np.eye(2)
    floors = np.ones(2)
    with pytest.raises(CertificateError, match="not positive definite"):
        dual_bound(R, floors, np.ones(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(CertificateError, match=r"negative, the least is -0\.1"):
        dual_bound(R, floors, np.array([1.0, -0.1]), np.eye(2))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), criterion=st.sampled_from(CRITERIA))
def test_conjugates_satisfy_fenchels_inequality(seed, criterion):
    rng = np.random.default_rng(seed)
    p = 5
    omega = rng.uniform(0.1, 2, (p, p))
    omega = np.triu(omega, 1) + np.triu(omega, 1).T
    G, H = (rng.normal(size=(p, p)) for _ in range(2))
    G, H = G + G.T, H + H.T
    H = criteria.admissible(criterion, H, omega)
    pairing = float(np.sum(criteria.off(G) * criteria.off(H)))
    total = criteria.value(criterion, G, omega) + criteria.conjugate(criterion, H, omega)
    assert pairing <= total + 1e-9
    if criterion == "squared":
        best = omega * G
        attained = criteria.conjugate(criterion, best, omega) + criteria.value(criterion, G, omega)
        assert float(np.sum(G * criteria.off(best))) == pytest.approx(attained)


@pytest.mark.parametrize("tau", [0.0, 0.05])
def test_gradient_and_curvature_by_differences(random_correlation, tau):
    p = 5
    rng = np.random.default_rng(2)
    R = random_correlation(p, 5)
    omega = rng.uniform(0.5, 2, (p, p))
    omega = omega + omega.T
    problem = SmoothDual.build(R, np.full(p, 0.97), omega)
    M = rng.normal(size=(p, p))
    H = M @ M.T / p + np.eye(p)
    V = rng.normal(size=(p, p))
    V = V + V.T

    def at(step):
        value, point = problem.evaluate(H + step * V, np.ones(p), tau)
        gradient = point.G + tau * point.B - np.eye(p) - problem.stiffness * point.H
        return value, gradient, point

    from skcoral.tradeoff.dual import curvature

    step = 1e-5
    _, gradient, point = at(0.0)
    slope = (at(step)[0] - at(-step)[0]) / (2 * step)
    assert float(np.sum(gradient * V)) == pytest.approx(slope, rel=1e-7)
    bend = -(at(step)[1] - at(-step)[1]) / (2 * step)
    np.testing.assert_allclose(
        curvature(R, point, tau)(V) + problem.stiffness * V, bend, rtol=1e-6, atol=1e-7
    )


def test_fidelities_meet_the_floors_wherever_the_dual_is_evaluated(random_correlation):
    R = random_correlation(5, 1)
    floors = np.linspace(0.9, 0.99, 5)
    problem = SmoothDual.build(R, floors, np.ones((5, 5)))
    M = np.random.default_rng(0).normal(size=(5, 5))
    _, point = problem.evaluate(M @ M.T + np.eye(5), np.ones(5), 0.0)
    np.testing.assert_allclose(point.fidelity, floors, atol=1e-12)


def pair_models(rng, count):
    omega = rng.uniform(0.2, 1.0, count)
    positive = [rng.uniform(0.1, 0.3, count) for _ in range(4)]
    h = rng.uniform(-0.05, 0.05, count)
    stiffness = np.where(np.arange(count) == 0, 0.0, 1 / omega)
    yield Quadratic(stiffness, rng.normal(size=count)), h
    yield Box(positive[0], positive[1], 0.5 * omega - h, 0.5 * omega + h), h
    s = rng.uniform(-0.1, 0.1, count)
    a, b = positive[2:]
    yield Bounded(1 / omega, a, b, s, 0.4 / omega - s, 0.4 / omega + s, 0.0), h
    # Squares within bounds, one of them infinite.
    free = np.arange(count) == 0
    level = np.where(free, 1.0, 0.4 / omega)
    a, b = (np.where(free, 0.0, x) for x in (a, b))
    u, v = (np.where(free, 1.0, level + sign * s) for sign in (-1, 1))
    yield Bounded(np.where(free, np.inf, level), a, b, s, u, v, 1.0), h


def test_pair_models_linearise_their_own_equations():
    """A Newton step of each model lowers the norm of its equations to second order."""
    rng = np.random.default_rng(0)
    tau = 0.02
    for model, h in pair_models(rng, 6):
        dh = 1e-3 * rng.normal(size=6)
        response = model.respond(h, tau)
        scalar = 0.0
        if response.lever is not None:
            scalar = -(response.constant + 2 * response.lever @ dh) / response.bend
        direction, longest = model.step(h, dh, scalar, tau)
        assert 0 < longest <= 1
        short = 1e-4
        before = model.equations(h, tau)
        after = model.moved(direction, short).equations(h + short * dh, tau)
        np.testing.assert_allclose(after, (1 - short) * before, atol=1e-6)
        moved = model.moved(direction, 1.0).residual_correlation
        expected = model.residual_correlation + response.stiffness * dh + response.shift
        if response.lever is not None:
            expected = expected + response.lever * scalar
        np.testing.assert_allclose(moved, expected, atol=1e-12)


def test_interior_method_agrees_with_the_smooth_one_on_squares(systems):
    R = systems["wine"]
    floors = np.full(13, 0.95)
    answer = solve_levels(R, floors, np.ones((13, 13)), "squared", goal=1e-13, max_iter=100)
    value, _ = SmoothDual.build(R, floors, np.ones((13, 13))).evaluate(answer.H, answer.lam, 0.0)
    assert value == pytest.approx(1.66517846, abs=1e-7)


def test_caps_are_met_to_the_last_digit(random_correlation):
    rng = np.random.default_rng(3)
    R = random_correlation(8, 3)
    floors = np.array([0.0, 0.3, 0.9, 0.99, 0.9999, 1.0, 0.5, 0.95])
    pinned = np.array([False, True, True, False, True, True, False, False])
    T = on_caps(R, rng.normal(size=(8, 8)), floors, pinned)
    f = np.diag(R @ T)
    assert np.all(f >= floors)
    np.testing.assert_allclose(f[pinned], floors[pinned], atol=1e-13)
    np.testing.assert_allclose(np.diag(T.T @ R @ T), 1.0, atol=1e-13)
    np.testing.assert_array_equal(T[:, 5], np.eye(8)[5])
