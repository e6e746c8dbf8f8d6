"""The lower bound holds for any multipliers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcoral.bounds.tradeoff import plain_bound
from skcoral.core import criteria
from skcoral.solvers.tradeoff.binding import make_feasible

CRITERIA = ("squared", "worst", "absolute")


def dual_bound(R, floors, lam, H, criterion="squared", omega=None, near=None):
    """(★) at a point, or at the identity."""
    X = np.eye(len(R)) if near is None else near
    fidelity, defect = np.einsum("ij,ij->j", R, X), X.T @ R @ X - np.eye(len(R))
    return plain_bound(lam, H, floors, criterion, omega, X=X, fidelity=fidelity, defect=defect, R=R)


def random_point(rng, p, criterion, omega):
    lam = rng.uniform(0, 3, p)
    M = rng.normal(size=(p, p))
    H = M @ M.T / p + 0.1 * np.eye(p)
    if omega is not None:
        H = H * ((omega > 0) | np.eye(p, dtype=bool)) + np.diag(np.abs(H).sum(axis=1))
    return lam, criteria.admissible(criterion, H, omega)


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
