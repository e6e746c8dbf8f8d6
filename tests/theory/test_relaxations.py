"""Bounds where the problem is not convex: what each relaxation gives, by an independent solver."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

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
    edge = threshold(sources.T @ sources)
    assert edge.lower == pytest.approx(best, abs=1e-6)
    assert edge.upper == pytest.approx(problem.value, abs=1e-6)
    assert edge.upper > edge.lower + 0.08
