"""Lower bounds against independent semidefinite programmes and against feasible points."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg as sla
from hypothesis import given, settings
from hypothesis import strategies as st

import conic
from skcoral.bounds.support import proved_bound
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.frame_relaxation import FrameBound, frame_bound
from skcoral.solvers.support.lower_bounds import (
    frame_arrays,
    lifted_points,
    multipliers,
)
from skcoral.solvers.support.objectives import residuals

from .certified import solve_support

FLOORS = (0.0, 0.8, 0.97, "mixed")


def floors_of(kind, p):
    return np.linspace(0, 0.98, p) if kind == "mixed" else np.full(p, kind)


def proved(R, mask, floors, arrays, criterion, **info):
    """What a dual point proves; nothing where it is not definite."""
    arrays = {**arrays, "support": mask.astype(float)}
    try:
        return proved_bound(
            R, floors, Certificate("support", arrays, {**info, "criterion": criterion})
        )
    except CertificateError:
        return 0.0


def frame_programme(R, mask, floors, norm="frobenius"):
    """The frame relaxation as one semidefinite programme in the coefficients of T."""
    p = len(R)
    A = np.real(sla.sqrtm(R))
    total, constraints = 0, []
    for k in range(p):
        index = np.flatnonzero(mask[:, k])
        Y = cp.Variable((len(index), len(index)), PSD=True)
        pad = np.zeros((p, len(index)))
        pad[index, np.arange(len(index))] = 1.0
        r = R[index, k]
        constraints += [cp.trace(R[np.ix_(index, index)] @ Y) == 1]
        constraints += [cp.sum(cp.multiply(np.outer(r, r), Y)) >= floors[k] ** 2]
        total = total + pad @ Y @ pad.T
    gap = A @ total @ A - np.eye(p)
    objective = 0.5 * cp.sum_squares(gap) if norm == "frobenius" else 0.5 * cp.normNuc(gap)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    return conic.solve(problem)


def lifted_programme(R, mask, floors, criterion):
    """Shor's relaxation of the support problem: all products of coefficients in one matrix."""
    p = len(R)
    index = [(i, k) for k in range(p) for i in np.flatnonzero(mask[:, k])]
    n = len(index)
    Z = cp.Variable((n + 1, n + 1), PSD=True)
    block = np.array([[R[i, j] for j, _ in index] for i, _ in index])
    member = np.array([[float(k == c) for _, k in index] for c in range(p)])
    G = member @ cp.multiply(block, Z[:n, :n]) @ member.T
    pull = np.array([[R[i, c] * (k == c) for i, k in index] for c in range(p)])
    constraints = [Z[n, n] == 1, cp.diag(G) == 1, pull @ Z[:n, n] >= floors]
    off = cp.multiply(G, 1 - np.eye(p))
    objective = {
        "squared": 0.5 * cp.sum_squares(off),
        "worst": cp.max(cp.abs(off)),
        "absolute": 0.5 * cp.sum(cp.abs(off)),
    }[criterion]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    return conic.solve(problem)


@pytest.mark.parametrize("norm", ["frobenius", "nuclear"])
@pytest.mark.parametrize("kind", FLOORS)
def test_the_frame_bound_is_the_optimum_of_its_relaxation(sparse_cases, kind, norm):
    for R, mask in sparse_cases:
        floors = floors_of(kind, len(R))
        bound = frame_bound(feasible_set(R, mask, floors), norm=norm)
        wanted = frame_programme(R, mask, floors, norm)
        assert bound.value == pytest.approx(wanted, abs=2e-6)
        assert bound.value <= wanted + 1e-6


def test_a_floor_of_one_and_a_lonely_column_are_the_same_for_the_bound(sparse_cases):
    R, mask = sparse_cases[1]
    floors = np.zeros(len(R))
    floors[2] = 1.0
    thin = mask.copy()
    thin[:, 2] = np.arange(len(R)) == 2
    a = frame_bound(feasible_set(R, mask, floors)).value
    b = frame_bound(feasible_set(R, thin, np.zeros(len(R)))).value
    assert a == pytest.approx(b, abs=1e-9)
    assert a == pytest.approx(frame_programme(R, thin, np.zeros(len(R))), abs=2e-6)


def test_the_bound_holds_at_every_iterate_and_rises(sparse_cases):
    R, mask = sparse_cases[2]
    seen = []
    space = feasible_set(R, mask, np.full(len(R), 0.9))
    final = frame_bound(space, on_iteration=seen.append)
    assert seen == sorted(seen)
    assert seen[0] <= final.value == seen[-1]
    early = frame_bound(space, stop_at=0.5 * final.value)
    assert 0.5 * final.value <= early.value
    assert early.value < final.value


@pytest.mark.parametrize("norm", ["frobenius", "nuclear"])
def test_systems_too_large_to_factorise_have_the_same_bound(sparse_cases, monkeypatch, norm):
    R, mask = sparse_cases[2]
    space = feasible_set(R, mask, np.linspace(0, 0.98, len(R)))
    wanted = frame_bound(space, norm=norm).value
    monkeypatch.setattr("skcoral.solvers.support.frame_relaxation.DENSE_LIMIT", 0)
    iterated = frame_bound(space, norm=norm, tol=1e-7).value
    assert wanted - 1e-6 <= iterated <= wanted + 1e-8


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(
    ("criterion", "rho"), [("squared", 0.9), ("squared", 0.99), ("worst", 0.99), ("absolute", 0.9)]
)
def test_reported_bounds_lie_below_the_semidefinite_ones_or_are_certified(
    sparse_cases, criterion, rho
):
    """A lifted bound cannot exceed Shor's relaxation; where that is tight, ours must meet it."""
    for R, mask in sparse_cases[: 2 if criterion == "squared" else 1]:
        p = len(R)
        floors = np.full(p, rho)
        answer = solve_support(R, floors, mask, criterion=criterion, n_starts=20)
        # A column without other sources has fidelity one: both sides may use that.
        space = feasible_set(R, mask, floors)
        relaxed = lifted_programme(R, mask, space.floors, criterion)
        assert relaxed <= answer.objective + 1e-5
        U = space.points(answer.T[None])[0]
        E = residuals(space, U[None])[0]
        if criterion == "squared":
            for arrays in lifted_points(space, multipliers(space, U, E), criterion):
                assert proved(R, mask, floors, arrays, criterion, bound="lifted") <= relaxed + 1e-5
        if relaxed >= answer.objective - 1e-6:
            assert answer.status == "optimal"
            assert answer.gap <= 1e-8


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), rho=st.sampled_from([0.0, 0.5, 0.9]))
def test_any_dual_point_bounds_any_feasible_point(seed, rho):
    """Weak duality for arbitrary M and η, and arbitrary transformations."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 6))
    X = rng.normal(size=(3 * p, p))
    R = np.corrcoef(X.T)
    mask = (rng.random((p, p)) < 0.5) | np.eye(p, dtype=bool)
    space = feasible_set(R, mask, np.full(p, rho))
    M = rng.normal(size=(p, p)) * rng.uniform(0, 0.5)
    M = M + M.T
    eta = rng.uniform(0, 0.3, size=p)
    U = space.onto_caps(np.where(space.valid, rng.normal(size=(1, p, space.m)), 0.0))
    E = residuals(space, U)[0]
    arrays = frame_arrays(R, FrameBound(0.0, M, eta))
    for criterion, norm, value in (
        ("squared", "frobenius", 0.5 * np.sum(E * E)),
        ("absolute", "nuclear", 0.5 * np.abs(E).sum()),
    ):
        bound = proved(R, mask, space.floors, arrays, criterion, bound="frame", norm=norm)
        assert bound <= value + 1e-10


@pytest.mark.parametrize("r", [0.6, 0.8, 0.95])
def test_the_order_of_the_variables_does_not_change_the_frame_bound(r):
    """Equal correlations in two blocks: full Newton steps end on the boundary itself."""
    R, half, floors = (1 - r) * np.eye(15) + r, np.arange(15) < 7, np.linspace(0, 1, 15)
    mask, order = half[:, None] == half, np.random.default_rng(0).permutation(15)
    at = np.ix_(order, order)
    bound = frame_bound(feasible_set(R, mask, floors), tol=1e-6).value
    permuted = frame_bound(feasible_set(R[at], mask[at], floors[order]), tol=1e-6).value
    assert bound == pytest.approx(permuted, rel=1e-5)


def test_a_direction_that_elimination_leaves_without_curvature() -> None:
    """Columns of one coefficient beside others: M of that variable and its φ change nothing."""
    R = np.eye(5)
    i, j = np.triu_indices(4, 1)
    R[i + 1, j + 1] = R[j + 1, i + 1] = [0.12, 0.04, 0.1, -0.05, 0.04, 0.03]
    mask = np.eye(5, dtype=bool)
    mask[1, [2, 4]] = mask[[2, 4], 1] = True
    found = solve_support(R, np.full(5, 0.87708), mask, criterion="absolute", n_starts=2)
    assert found.lower_bound <= found.objective <= np.abs(R[i + 1, j + 1]).sum()
