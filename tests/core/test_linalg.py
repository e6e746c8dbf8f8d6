"""Gram matrices to full accuracy and the small solvers, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from skcoral.core.linalg import (
    conjugate_gradient,
    correlation_of_covariance,
    gram_defect,
    inflation_factors,
    make_exact,
    precise_column_dots,
    raised_to_floors,
)
from skcoral.solvers.exact import best_exact


def exact_gram(R: np.ndarray, T: np.ndarray) -> np.ndarray:
    """TᵀRT - I in rational arithmetic, rounded once."""
    p, k = T.shape
    r = [[Fraction(float(v)) for v in row] for row in R]
    t = [[Fraction(float(v)) for v in row] for row in T]
    image = [[sum(r[i][m] * t[m][j] for m in range(p)) for j in range(k)] for i in range(p)]
    return np.array(
        [
            [float(sum(t[m][i] * image[m][j] for m in range(p)) - (i == j)) for j in range(k)]
            for i in range(k)
        ]
    )


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_gram_defect_is_exact_to_the_last_digits(size: float) -> None:
    rng = np.random.default_rng(0)
    p = 9
    Q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    R = (Q * np.logspace(0, -2 * np.log10(size), p)) @ Q.T
    R = (R + R.T) / 2
    T = (Q * np.logspace(0, np.log10(size), p)) @ Q.T
    error = np.abs(gram_defect(R, T) - exact_gram(R, T)).max()
    assert error < 1e-14 * p
    if size >= 1e6:  # what plain floating point would have done
        assert np.abs(T.T @ R @ T - np.eye(p) - exact_gram(R, T)).max() > 100 * error


@pytest.mark.parametrize("p", [1, 2, 30])
def test_precise_sums_survive_cancellation(p: int) -> None:
    rng = np.random.default_rng(p)
    A, B = rng.normal(size=(2, p, 4))
    A = np.vstack([A, A])
    B = np.vstack([B, -(1 + 1e-13) * B])  # the second half all but cancels the first
    exact = [
        float(sum(Fraction(a) * Fraction(b) for a, b in zip(A[:, j], B[:, j], strict=True)))
        for j in range(4)
    ]
    assert np.allclose(precise_column_dots(A, B), exact, rtol=1e-14, atol=0)
    assert not np.allclose(np.sum(A * B, axis=0), exact, rtol=1e-5, atol=0)


def test_make_exact_repairs_a_rough_decorrelator() -> None:
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    R = (Q * np.logspace(0, -8, 12)) @ Q.T
    R = (R + R.T) / 2
    rough = (Q * np.logspace(0, 4, 12)) @ Q.T * (1 + 1e-9 * rng.normal(size=(12, 12)))
    T, defect = make_exact(R, rough)
    assert np.linalg.norm(defect) < 1e-11
    assert np.abs(exact_gram(R, T)).max() < 1e-11


def test_make_exact_leaves_what_it_cannot_repair() -> None:
    T, defect = make_exact(np.eye(3), np.zeros((3, 3)))
    assert not T.any()
    assert np.linalg.norm(defect) == pytest.approx(np.sqrt(3))


def test_conjugate_gradient_solves_and_stops_at_flat_directions() -> None:
    rng = np.random.default_rng(2)
    A = rng.normal(size=(8, 8))
    A = A @ A.T + np.eye(8)
    b = rng.normal(size=8)
    d = np.diag(A)
    x, left, steps = conjugate_gradient(
        lambda v: A @ v, b.copy(), lambda v: v / d, rtol=1e-12, max_iter=100
    )
    assert np.allclose(left, 0, atol=1e-9)
    assert np.allclose(A @ x, b)
    assert steps <= 20
    flat, left, _ = conjugate_gradient(
        lambda v: 0 * v, b.copy(), lambda v: 1.0 * v, rtol=1e-12, max_iter=10
    )
    assert not flat.any()
    assert np.array_equal(left, b)


def test_equations_without_a_solution_do_not_overflow() -> None:
    """Floors that no exact decorrelator meets: the Newton equations lose their curvature."""
    phi = float.fromhex("-0x1.febfc4be201e1p-2")
    R = phi ** np.abs(np.subtract.outer(range(8), range(8)))
    next_to_one = [0.999, 1.0, 0.9999999019455252, 0.999, 0.9999999999999979]
    floors = np.array([*next_to_one, 0.85, 0.0, 0.9997301540734447])
    with np.errstate(over="raise", invalid="raise"):
        best = best_exact(R, floors)
    assert not best.feasible
    assert best.trace_margin < 0


@pytest.mark.parametrize("condition", [1e2, 1e8, 1e12])
def test_floors_that_rounding_took_are_met_again(condition: float) -> None:
    Q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    R = correlation_of_covariance((Q * np.geomspace(1 / condition, 1, 4)) @ Q.T)
    values, V = np.linalg.eigh(R)
    T = (V / np.sqrt(values)) @ V.T
    floors = np.einsum("ij,ij->j", R, T) + np.array([0.0, 1e-12, 1e-9, 1e-6])
    raised = raised_to_floors(R, T, np.eye(4), floors)
    for j in range(4):
        t, r = ([Fraction(float(v)) for v in a] for a in (raised[:, j], R[:, j]))
        assert sum(a * b for a, b in zip(r, t, strict=True)) >= Fraction(float(floors[j])) - 10**-15
    assert np.abs(np.diag(exact_gram(R, raised))).max() <= 1e-10
    # and no column is turned further than it has to be
    assert np.abs(np.einsum("ij,ij->j", R, raised) - floors).max() <= 1e-5


@pytest.mark.parametrize(("part", "takes_part"), [(3e-9, True), (0.3e-9, False)])
def test_a_variable_that_takes_part_in_a_dependency(part: float, takes_part: bool) -> None:
    """The fourth is the sum of the first two, and of so much of the third."""
    rows = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 2 * part]]) / [1, 1, 1, np.sqrt(2)]
    dependent = rows.T @ rows
    np.fill_diagonal(dependent, 1.0)
    factors = inflation_factors(dependent)
    assert np.isinf(factors[[0, 1, 3]]).all()
    assert np.isinf(factors[2]) == takes_part
