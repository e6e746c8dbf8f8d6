"""Bounds where the problem is not convex: what each relaxation gives, by an independent solver."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import conic
from skcoral import decorrelate, threshold

# the tables are singular on purpose, and the gaps that stay open are what is looked at
pytestmark = [
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning"),
    pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning"),
]


def plane(degrees):
    angles = np.radians(degrees)
    return np.array([np.cos(angles), np.sin(angles)])


def frame_relaxation(bases, sources, rho):
    """The least residual if every output may be a mixture of places: ``X_j`` in its subspace."""
    X = [cp.Variable((B.shape[1],) * 2, PSD=True) for B in bases]
    F = sum(B @ x @ B.T for B, x in zip(bases, X, strict=True))
    constraints = [cp.trace(x) == 1 for x in X]
    for x, B, a, floor in zip(X, bases, sources.T, rho, strict=True):
        constraints.append(cp.sum(cp.multiply(np.outer(B.T @ a, B.T @ a), x)) >= floor**2)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(F) / 2 - len(X) / 2), constraints)
    return conic.solve(problem)


def test_a_floor_on_the_mean_and_on_the_mean_square_are_the_same_relaxation():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 5))
    A = A / np.linalg.norm(A, axis=0)
    rho = np.array([0.95, 0.9, 0.99, 0.8, 0.97])
    moments = [cp.Variable((4, 4), PSD=True) for _ in rho]
    constraints = []
    for m, a, floor in zip(moments, A.T, rho, strict=True):
        constraints += [m[3, 3] == 1, cp.trace(m[:3, :3]) == 1, a @ m[:3, 3] >= floor]
    F = sum(m[:3, :3] for m in moments)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(F) / 2 - 2.5), constraints)
    conic.solve(problem)
    assert problem.value > (25 / 3 - 5) / 2 + 1e-3  # not merely Welch's value
    squares = frame_relaxation([np.eye(3)] * 5, A, rho)
    assert squares == pytest.approx(problem.value, abs=1e-6)


def test_a_mixture_of_two_places_can_reach_what_no_output_does():
    sources, floors = plane([0, 80, 0]), [1, 1, 0.2]
    turns = np.linspace(-np.arccos(0.2), np.arccos(0.2), 20_001)
    total = np.exp(2j * np.radians([0, 80])).sum() + np.exp(2j * turns)
    least = ((9 + np.abs(total).min() ** 2) / 2 - 3) / 2
    assert least == pytest.approx(0.8565, abs=1e-4)
    assert frame_relaxation([np.eye(2)] * 3, sources, floors) == pytest.approx(0.75, abs=1e-4)
    answer = decorrelate(sources.T @ sources, floors)
    assert answer.objective == pytest.approx(least, abs=1e-6)
    assert answer.lower_bound <= least + 1e-9


def test_tight_frames_are_not_the_only_extreme_points():
    """Three vectors in the plane: all tight frames by a grid, the convex bound by a solver."""
    sources = plane([0, 20, 40])
    best = max(
        np.abs(np.cos(np.add.outer(np.linspace(0, np.pi, 3601), places) - np.radians([0, 20, 40])))
        .min(axis=1)
        .max()
        for places in itertools.permutations(np.radians([0, 60, 120]))
    )
    assert best == pytest.approx(np.cos(np.radians(40)), abs=1e-6)
    U, common = cp.Variable((2, 3)), cp.Variable()
    limits = [cp.sigma_max(U) <= np.sqrt(1.5), cp.norm(U, axis=0) <= 1]
    floors = cp.sum(cp.multiply(sources, U), axis=0) >= common
    problem = cp.Problem(cp.Maximize(common), [*limits, floors])
    conic.solve(problem)
    found = threshold(sources.T @ sources)
    assert found.lower == pytest.approx(best, abs=1e-6)
    assert found.upper == pytest.approx(problem.value, abs=1e-6)
    assert found.upper > found.lower + 0.08


@pytest.mark.parametrize(("p", "r", "least"), [(3, 2, 1), (4, 2, 2), (5, 3, 2), (6, 2, 6)])
def test_the_least_absolute_sum_is_that_of_repeated_vectors(p, r, least):
    """For p ≤ 2r, and where r divides p, no descent from random vectors gets below it."""
    repeated = np.eye(r)[:, np.arange(p) % r]
    pairs = np.triu_indices(p, 1)
    assert np.abs(repeated.T @ repeated)[pairs].sum() == least
    assert least == max(p - r, (p * p / r - p) / 2)
    rng = np.random.default_rng(p)

    def total(x):
        U = x.reshape(r, p)
        U = U / np.linalg.norm(U, axis=0)
        return np.abs(U.T @ U)[pairs].sum()

    ends = [minimize(total, rng.normal(size=r * p), method="Powell").fun for _ in range(5)]
    assert min(ends) > least - 1e-6


def test_five_vectors_in_the_plane_stay_above_both_bounds():
    pairs = np.triu_indices(5, 1)
    turns = np.linspace(0, np.pi, 37)[:-1]
    least = min(
        np.abs(np.cos(np.subtract.outer(angles, angles)))[pairs].sum()
        for rest in itertools.combinations_with_replacement(turns, 4)
        for angles in [np.array([0.0, *rest])]
    )
    assert least == pytest.approx(4.0)
    assert max(5 - 2, (25 / 2 - 5) / 2) == 3.75


def test_the_rank_bound_is_the_dual_of_mixtures_of_matrices_of_its_rank():
    """The largest (★r) by a solver is the least of tr(Z⁻¹G²)/2 − p/2, minimised over Z."""
    rng = np.random.default_rng(2)
    r, p = 3, 4
    A = rng.normal(size=(r, p))
    A = A / np.linalg.norm(A, axis=0)
    R, rho = A.T @ A, np.array([0.99, 0.98, 0.995, 0.97])
    H, kappa, lam = cp.Variable((p, p), PSD=True), cp.Variable(p), cp.Variable(p, nonneg=True)
    # the r largest squares of S are those of a matrix that is at least S²
    S, square = H - cp.diag(kappa), cp.Variable((p, p), symmetric=True)
    block = cp.bmat([[square, S], [S, np.eye(p)]])
    fraction = cp.bmat(
        [[cp.Variable((r, r), symmetric=True), A @ cp.diag(lam)], [cp.diag(lam) @ A.T, H]]
    )
    spent = cp.trace(fraction[:r, :r])
    dual = cp.Problem(
        cp.Maximize(
            2 * rho @ lam - cp.sum(kappa) - p / 2 - spent - cp.lambda_sum_largest(square, r) / 2
        ),
        [block >> 0, fraction >> 0],
    )
    conic.solve(dual)
    gram = cp.Variable((2 * p, 2 * p), PSD=True)
    G, C, Z = gram[p:, p:], gram[:p, p:], cp.Variable((p, p), symmetric=True)
    inner = cp.Variable((p, p), symmetric=True)
    # outputs u_j = A t_j: their Gram matrix is at most G where [[R, RT], [.., G]] ⪰ 0
    primal = cp.Problem(
        cp.Minimize(cp.trace(inner) / 2 - p / 2),
        [
            cp.bmat([[inner, G], [G, Z]]) >> 0,
            np.eye(p) - Z >> 0,
            cp.trace(Z) == r,
            gram[:p, :p] == R,
            cp.diag(G) == 1,
            cp.diag(C) >= rho,
        ],
    )
    conic.solve(primal)
    assert dual.value == pytest.approx(primal.value, abs=1e-5)
    assert dual.value <= decorrelate(R, rho).objective + 1e-6
    assert dual.value > (p * p / r - p) / 2 + 1e-3  # not merely Welch's value


def test_least_residuals_of_a_support_vanish_together():
    rng = np.random.default_rng(5)
    R = np.corrcoef(rng.normal(size=(4, 4)) @ rng.normal(size=(4, 30)))
    chain = np.linalg.inv(
        np.array([[2, -0.8, 0, 0], [-0.8, 2, 0.5, 0], [0, 0.5, 2, 0.9], [0, 0, 0.9, 2]])
    )
    scale = np.sqrt(np.diag(chain))
    triangle = np.eye(4, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    for matrix, exact in ((R, False), (chain / np.outer(scale, scale), True)):
        squares, worst = (
            decorrelate(matrix, 0, support=triangle, criterion=c).objective
            for c in ("squared", "worst")
        )
        assert worst**2 <= squares + 1e-7
        assert squares <= 6 * worst**2 + 1e-7
        assert (squares < 1e-9) == exact
        assert (worst < 1e-4) == exact
