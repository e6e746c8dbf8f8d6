"""Feasible points are feasible however fidelities are added up; multipliers of floors of one."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from skcoral import decorrelate, threshold
from skcoral.core.linalg import correlation_of_covariance
from skcoral.solvers.tradeoff.binding import make_feasible, with_fixed, with_joined
from skcoral.solvers.tradeoff.newton import evaluate
from skcoral.solvers.tradeoff.points import Problem, Quadratic


def three_factors(p: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0.0, 0.7, (p, 3))
    return correlation_of_covariance(
        loadings @ loadings.T + np.diag(0.05 + rng.uniform(0.0, 1.0, p))
    )


def equicorrelation_and_noise(p: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(2 * p, p))
    return correlation_of_covariance(0.5 + 0.5 * np.eye(p) + np.corrcoef(rows.T))


def fidelities(R: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Fidelities, rounded once but for their products."""
    return np.array([fsum(R[:, j] * T[:, j]) for j in range(len(R))])


@pytest.mark.parametrize(
    ("matrix", "share"), [(three_factors, 0.5), (equicorrelation_and_noise, 0.9)]
)
def test_every_floor_is_kept_however_fidelities_are_added_up(matrix, share: float) -> None:
    R = matrix(250, 0)
    edge = threshold(R).value
    floor = edge + share * (1.0 - edge)
    result = decorrelate(R, floor)
    assert result.status == "optimal"
    orders = [np.arange(250), np.arange(250)[::-1], np.random.default_rng(1).permutation(250)]
    for order in orders:
        fidelity = np.einsum("ij,ij->j", R[order], result.T[order])
        assert fidelity.min() >= floor
    assert fidelities(R, result.T).min() >= floor


def test_the_aim_costs_no_more_than_rounding() -> None:
    R = three_factors(120, 1)
    floors = np.full(120, 0.9)
    values, vectors = np.linalg.eigh(R)
    whitening = (vectors * values**-0.5) @ vectors.T
    T = make_feasible(R, whitening, floors, np.ones(120, dtype=bool))
    assert np.all(fidelities(R, T) >= floors)
    assert np.all(fidelities(R, T) <= floors + 1e-12)


def test_caps_are_met_to_the_last_digit(random_correlation):
    rng = np.random.default_rng(3)
    R = random_correlation(8, 3)
    floors = np.array([0.0, 0.3, 0.9, 0.99, 0.9999, 1.0, 0.5, 0.95])
    pinned = np.array([False, True, True, False, True, True, False, False])
    T = make_feasible(R, rng.normal(size=(8, 8)), floors, pinned)
    f = np.diag(R @ T)
    assert np.all(f >= floors)
    np.testing.assert_allclose(f[pinned], floors[pinned], atol=1e-13)
    np.testing.assert_allclose(np.diag(T.T @ R @ T), 1.0, atol=1e-13)
    np.testing.assert_array_equal(T[:, 5], np.eye(8)[5])


def test_multipliers_of_fixed_outputs_tend_to_infinity():
    """Their diagonal grows like the multiplier, and what both add to the bound is finite."""
    H, lam, members = np.random.default_rng(1).normal(size=(5, 5)), np.ones(5), np.arange(5)
    none = with_fixed(members, lam, H, np.zeros(5, dtype=bool))
    assert none.H is H
    fixed = np.array([True, False, True, False, False])
    dual = with_fixed(members, lam, H, fixed)
    np.testing.assert_allclose(dual.lam, np.where(fixed, 5e9, 1.0))
    np.testing.assert_allclose(np.diag(dual.H - H), np.where(fixed, 5e9, 0.0))


def test_floors_that_begin_to_bind(random_correlation):
    """Where floors out of reach join the binding ones, the bound rises; what was solved stays."""
    R, binding = random_correlation(6, 2), np.array([0, 2, 3, 5])
    floors = np.full(6, 0.98)
    alone = decorrelate(R[np.ix_(binding, binding)], 0.98)
    problem = Problem(R, floors, ~np.eye(6, dtype=bool))
    H = alone.certificate.arrays["H"]
    joins, rest = np.array([1]), np.array([4])
    joined = with_joined(problem, problem.pairs, binding, H, alone.T, joins)
    np.testing.assert_allclose(joined[np.ix_(binding, binding)], H)
    assert not joined[np.ix_(rest, np.r_[binding, joins])].any()
    members = np.array([0, 1, 2, 3, 5])
    sub = problem.restricted(members)
    point = evaluate(sub, joined[np.ix_(members, members)], Quadratic(sub.pairs))
    assert point.lam.min() > 0
    assert 1.01 * alone.objective < point.value < decorrelate(R, 0.98).objective
