"""One column with bounds, against brute force over the points of unit variance."""

import numpy as np
import pytest

from skcoral.exceptions import InfeasibleError
from skcoral.solvers.support.bounded import BoundedColumn
from skcoral.solvers.support.bounded import feasible_column as feasible

NAMES = [f"x{j}" for j in range(20)]


def feasible_column(R, j, allowed, lower, upper, floor):
    return feasible(
        BoundedColumn(R, np.eye(len(R))[j], allowed, lower, upper), floor, NAMES[j], NAMES
    )


def problem(seed):
    """A random column: a matrix, some allowed coefficients, bounds of every kind, a floor."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 5))
    A = rng.normal(size=(p, p)) + rng.uniform(0.3, 2) * np.eye(p)
    R = A @ A.T
    R /= np.sqrt(np.outer(np.diag(R), np.diag(R)))
    j = int(rng.integers(p))
    allowed = rng.random(p) < 0.8
    allowed[j] = True
    lower, upper = np.full(p, -np.inf), np.full(p, np.inf)
    for i in range(p):
        kind = rng.integers(5)
        if kind == 0:
            lower[i] = rng.uniform(-0.6, 0.3)
        elif kind == 1:
            upper[i] = rng.uniform(-0.2, 0.8)
        elif kind == 2:
            lower[i], upper[i] = np.sort(rng.uniform(-0.8, 1.1, 2))
    floor = float(rng.choice([0.0, 0.4, 0.8, 0.95]))
    return R, j, allowed, lower, upper, floor, rng


def samples(R, allowed, rng, count=60_000):
    """Points of unit variance on the allowed coefficients."""
    index = np.flatnonzero(allowed)
    C = np.linalg.cholesky(R[np.ix_(index, index)])
    U = rng.normal(size=(count, len(index)))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    out = np.zeros((count, len(R)))
    out[:, index] = np.linalg.solve(C.T, U.T).T
    return out


def kept(T, R, j, lower, upper, floor, room=0.0):
    inside = np.all((lower + room <= T) & (upper - room >= T), axis=-1)
    return inside & (T @ R[j] >= floor + room)


@pytest.mark.parametrize("seed", range(60))
def test_a_column_is_found_exactly_when_there_is_one(seed):
    R, j, allowed, lower, upper, floor, rng = problem(seed)
    lower, upper = np.where(allowed, lower, 0.0), np.where(allowed, upper, 0.0)
    points = samples(R, allowed, rng)
    free = np.where(allowed, lower, -9.0), np.where(allowed, upper, 9.0)
    exists = kept(points, R, j, *free, floor, 0.02).any()
    try:
        t = feasible_column(R, j, allowed, lower, upper, floor)
    except InfeasibleError:
        assert not exists
        return
    assert kept(t, R, j, lower - 1e-9, upper + 1e-9, floor - 1e-9)
    assert not t[~allowed].any()
    assert t @ R @ t == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("size", [1e-9, 1e-4, 0.1])
def test_columns_next_to_feasible_ones_are_repaired(size):
    """Bounds and floor are then kept exactly, and the column moves about as far as it was off."""
    moved, count = [], 0
    for seed in range(500, 600):
        R, j, allowed, lower, upper, floor, rng = problem(seed)
        lower, upper = np.where(allowed, lower, 0.0), np.where(allowed, upper, 0.0)
        try:
            safe = feasible_column(R, j, allowed, lower, upper, floor)
        except InfeasibleError:
            continue
        target = safe + size * rng.normal(size=len(R)) * allowed
        found = BoundedColumn(R, np.eye(len(R))[j], allowed, lower, upper).repaired(target, floor)
        count += 1
        if found is not None:
            assert kept(found, R, j, lower, upper, floor)
            assert found @ R @ found == pytest.approx(1.0, abs=1e-12)
            moved.append(np.linalg.norm(found - np.clip(target, lower, upper)) / size)
    assert len(moved) >= (count if size < 0.1 else 0.97 * count) > 30
    assert np.median(moved) < 1


def everything(p):
    return np.ones(p, dtype=bool)


@pytest.mark.parametrize("p", [3, 16])
def test_limits_of_the_variance_in_closed_form(p):
    """Equal correlations r and all coefficients in [-b, b]: at most b² (p + p (p - 1) r)."""
    r, b = 0.5, 0.9 / np.sqrt(p + p * (p - 1) * 0.5)
    R = np.full((p, p), r) + (1 - r) * np.eye(p)
    bound = np.full(p, b)
    with pytest.raises(InfeasibleError, match=r"variance of at most 0\.81"):
        feasible_column(R, 0, everything(p), -bound, bound, 0.0)
    wide = 1.2 * bound
    t = feasible_column(R, 0, everything(p), -wide, wide, 0.0)
    assert t @ R @ t == pytest.approx(1.0)
    assert np.all(np.abs(t) <= wide + 1e-12)


def test_large_variances_are_found_at_corners_of_other_signs():
    """Positive correlations with the source, negative ones among the others."""
    R = np.array([[1.0, 0.1, 0.1], [0.1, 1.0, -0.9], [0.1, -0.9, 1.0]])
    # t₂ and t₃ of one sign have next to no variance; of two signs 2 t² (1 + .9)
    low, high = np.array([0.0, -0.55, -0.55]), np.array([0.05, 0.55, 0.55])
    t = feasible_column(R, 0, everything(3), low, high, 0.0)
    assert t @ R @ t == pytest.approx(1.0)
    assert t[1] * t[2] < 0
    with pytest.raises(InfeasibleError, match="fidelity above"):
        feasible_column(R, 0, everything(3), low, high, 0.5)


def test_forced_variances():
    R = np.array([[1.0, 0.5], [0.5, 1.0]])
    low = np.array([1.5, -np.inf])
    # least of 1.5² + 1.5 t + t² is at t = -0.75: 1.6875
    with pytest.raises(InfeasibleError, match=r"at least 1\.6875;"):
        feasible_column(R, 0, everything(2), low, np.full(2, np.inf), 0.0)
    alone = np.array([True, False])
    with pytest.raises(InfeasibleError, match=r"at least 2\.25;.*'x0'"):
        feasible_column(R, 0, alone, low, np.full(2, np.inf), 0.0)


def test_fixed_coefficients():
    R = np.array([[1.0, 0.6], [0.6, 1.0]])
    one = np.array([1.0, 0.0])
    np.testing.assert_array_equal(feasible_column(R, 0, everything(2), one, one, 1.0), one)
    with pytest.raises(InfeasibleError, match=r"at most 0\.25"):
        feasible_column(R, 0, everything(2), 0.5 * one, 0.5 * one, 0.0)
    with pytest.raises(InfeasibleError, match="fidelity above"):
        feasible_column(R, 1, everything(2), one, one, 0.7)


def test_no_column_within_bounds_that_keep_it_from_its_floor():
    R, small = np.eye(3), np.full(3, 0.1)  # the largest fidelity is 0.1
    column = BoundedColumn(R, np.eye(3)[0], everything(3), -small, small)
    assert column.repaired(np.ones(3), 0.9) is None
