"""The lower bound holds for any multipliers, and feasible points are feasible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcoral import decorrelate
from skcoral.bounds.tradeoff import plain_bound
from skcoral.core import criteria
from skcoral.solvers.tradeoff.binding import make_feasible, with_fixed, with_joined
from skcoral.solvers.tradeoff.newton import evaluate
from skcoral.solvers.tradeoff.points import Problem, Quadratic

CRITERIA = ("squared", "worst", "absolute")


def dual_bound(R, floors, lam, H, criterion="squared", omega=None, near=None):
    """(★) at a point, or at the identity."""
    X = np.eye(len(R)) if near is None else near
    fidelity, defect = np.einsum("ij,ij->j", R, X), X.T @ R @ X - np.eye(len(R))
    return plain_bound(lam, H, floors, criterion, omega, X=X, fidelity=fidelity, defect=defect, R=R)


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
    T = make_feasible(R, rng.normal(size=(p, p)), floors, np.zeros(p, dtype=bool))
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


def test_rows_of_floors_of_one_are_dominated_by_their_diagonal():
    """Their multiplier is as large as the diagonal, and what they add to the bound is finite."""
    rng = np.random.default_rng(1)
    H = rng.normal(size=(5, 5))
    H = H + H.T + 9 * np.eye(5)
    lam, members = rng.uniform(0, 1, 5), np.arange(5)
    none = with_fixed(members, lam, H, np.zeros(5, dtype=bool))
    assert none.H is H
    assert none.lam is lam
    fixed = np.array([True, False, True, False, False])
    found = with_fixed(members, lam, H, fixed)
    wanted = np.abs(H - np.diag(np.diag(H))).sum(axis=1) + 1e-15
    np.testing.assert_allclose(np.diag(found.H), np.where(fixed, wanted, np.diag(H)), rtol=1e-14)
    np.testing.assert_allclose(found.lam, lam + np.where(fixed, wanted, 0.0), rtol=1e-14)
    np.testing.assert_array_equal((found.H - H)[~np.eye(5, dtype=bool)], 0.0)
    alone = with_fixed(members, lam, np.diag([0.0, 1, 2, 3, 4]), fixed)
    assert alone.H[0, 0] > 0  # definite without a row as well


def test_floors_that_begin_to_bind(random_correlation):
    """Where floors out of reach join the binding ones, the bound rises; what was solved stays."""
    R, kept = random_correlation(6, 2), np.array([0, 2, 3, 5])
    floors = np.full(6, 0.98)
    alone = decorrelate(R[np.ix_(kept, kept)], 0.98)
    problem = Problem(R, floors, ~np.eye(6, dtype=bool))
    H = alone.certificate.arrays["H"]
    joins, rest = np.array([1]), np.array([4])
    found = with_joined(problem, problem.pairs, kept, H, alone.T, joins)
    np.testing.assert_allclose(found[np.ix_(kept, kept)], H)
    assert not found[np.ix_(rest, np.r_[kept, joins])].any()
    members = np.array([0, 1, 2, 3, 5])
    sub = problem.restricted(members)
    point = evaluate(sub, found[np.ix_(members, members)], Quadratic(sub.pairs))
    assert point.lam.min() > 0
    assert 1.01 * alone.objective < point.value < decorrelate(R, 0.98).objective
