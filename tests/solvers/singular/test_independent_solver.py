"""The bounds against both relaxations in cvxpy, an independent solver, and against differences."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import conic
from skcoral.solvers.singular.caps import descend_on_caps, on_caps, squares
from skcoral.solvers.singular.dual import maximise_bound
from skcoral.solvers.singular.point import Curvature, frame_point
from skcoral.solvers.singular.problem import FrameProblem
from skcoral.solvers.singular.threshold import frame_threshold

CASES = [
    ("noise", 4, 7),
    ("noise", 9, 12),
    ("noise", 12, 12),
    ("factors", 6, 10),
    ("factors", 11, 12),
    ("sums", 1, 9),
    ("sums", 2, 12),
]


def make(tables, kind, size, p):
    X = tables.sums(80, p, size) if kind == "sums" else getattr(tables, kind)(size, p)
    return tables.factor_of(X)


def frame_relaxation(A, floors):
    """½‖F‖² - p/2 with F ⪰ UUᵀ, tr F = p, ‖u_j‖ ≤ 1 and a_jᵀu_j ≥ ρ_j."""
    r, p = A.shape
    X = cp.Variable((p + r, p + r), PSD=True)
    U, F = X[p:, :p], X[p:, p:]
    constraints = [
        X[:p, :p] == np.eye(p),
        cp.trace(F) == p,
        cp.norm(U, 2, axis=0) <= 1,
        cp.sum(cp.multiply(A, U), axis=0) >= floors,
    ]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(F) - p / 2), constraints)
    return conic.solve(problem)


def lifted_relaxation(A, floors, criterion):
    """The criterion of off(G) over G ⪰ UᵀU, G_jj = 1, a_jᵀu_j ≥ ρ_j."""
    r, p = A.shape
    X = cp.Variable((r + p, r + p), PSD=True)
    U, G = X[:r, r:], X[r:, r:]
    off = G - cp.diag(cp.diag(G))
    loss = {
        "squared": 0.5 * cp.sum_squares(off),
        "worst": cp.max(cp.abs(off)),
        "absolute": 0.5 * cp.sum(cp.abs(off)),
    }[criterion]
    constraints = [
        X[:r, :r] == np.eye(r),
        cp.diag(G) == 1,
        cp.sum(cp.multiply(A, U), axis=0) >= floors,
    ]
    return conic.solve(cp.Problem(cp.Minimize(loss), constraints))


@pytest.mark.parametrize(("kind", "size", "p"), CASES)
@pytest.mark.parametrize("floor", [0.6, 0.9, 0.97])
def test_frame_bound_is_the_relaxation(tables, kind, size, p, floor):
    A = make(tables, kind, size, p)
    floors = np.full(p, floor)
    floors[0] = 0.5
    dual = maximise_bound(A, floors, allowed=lambda _: 1e-11, max_iter=200)
    assert dual.bound == pytest.approx(frame_relaxation(A, floors), abs=1e-6 * p)


@pytest.mark.parametrize(("kind", "size", "p"), CASES)
def test_upper_end_of_the_threshold_is_the_relaxation(tables, kind, size, p):
    A = make(tables, kind, size, p)
    r = len(A)
    U, floor = cp.Variable((r, p)), cp.Variable()
    problem = cp.Problem(
        cp.Maximize(floor),
        [
            cp.sum(cp.multiply(A, U), axis=0) >= floor,
            cp.norm(U, 2, axis=0) <= 1,
            cp.sigma_max(U) <= np.sqrt(p / r),
        ],
    )
    ends = frame_threshold(A)
    assert ends.upper == pytest.approx(conic.solve(problem), abs=1e-6)
    assert ends.lower <= ends.upper
    F = ends.U @ ends.U.T
    np.testing.assert_allclose(F, p / r * np.eye(r), atol=1e-5)
    assert squares(ends.U) == pytest.approx(0.5 * p * (p - r) / r, rel=1e-12, abs=1e-12)
    assert (A * ends.U).sum(axis=0).min() == pytest.approx(ends.lower, abs=1e-12)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize(
    ("kind", "size", "p", "floor"), [("sums", 1, 7, 0.97), ("noise", 5, 8, 0.99)]
)
def test_lifted_bound_is_the_relaxation(tables, criterion, kind, size, p, floor):
    A = make(tables, kind, size, p)
    floors = np.full(p, floor)
    arrays, _, _ = FrameProblem(A, criterion).lifted(floors)
    bound = tables.bound_of("tradeoff", arrays, A, floors, criterion)
    assert bound == pytest.approx(lifted_relaxation(A, floors, criterion), abs=2e-6)


@pytest.mark.parametrize(("kind", "size", "p"), CASES)
@pytest.mark.parametrize("floor", [0.5, 0.85, 0.95, 0.99, 1.0])
def test_no_start_goes_below_the_bound_or_an_optimum(tables, kind, size, p, floor):
    A = make(tables, kind, size, p)
    rng = np.random.default_rng(5)
    floors = np.full(p, floor)
    answer = FrameProblem(A).solve(floors)
    np.testing.assert_allclose(np.linalg.norm(answer.U, axis=0), 1.0, rtol=1e-12)
    assert ((A * answer.U).sum(axis=0) >= floors - 1e-12).all()
    assert answer.objective == pytest.approx(squares(answer.U), rel=1e-12)
    starts = on_caps(A, A + rng.normal(size=(4, *A.shape)), floors)
    values = descend_on_caps(A, starts, floors, bound=0.0, goal=1e-12, max_iter=200)[1]
    assert (values >= answer.lower_bound - 1e-9 * np.maximum(1.0, values)).all()
    if answer.certified:
        assert (values >= answer.objective - 1e-7 * np.maximum(1.0, values)).all()


def test_products_with_the_second_derivative_are_differences_of_gradients(tables):
    A = tables.factor_of(tables.factors(30, 300))
    floors, r, rng = np.full(300, 0.8), len(A), np.random.default_rng(0)
    n, V = rng.uniform(0.5, 2.0, size=r), rng.normal(size=(r, r))
    V, barrier, h = V + V.T, 1e-2, 1e-4

    def gradient(step):
        values, Q = np.linalg.eigh(np.diag(n) + step * V)
        return Q @ frame_point(values, Q.T @ A, floors, barrier=barrier).gradient @ Q.T

    product = Curvature(frame_point(n, A, floors, barrier=barrier), tau=0.0).apply(V)
    expected = (gradient(-h) - gradient(h)) / (2.0 * h)
    np.testing.assert_allclose(product, expected, atol=1e-5 * np.abs(expected).max())
