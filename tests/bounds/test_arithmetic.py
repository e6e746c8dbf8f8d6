"""Enclosures contain the exact number: judged against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skcoral.bounds.arithmetic import Balls, Enclosure, Floats, column_dots, exactly, up_to
from skcoral.bounds.dual import definite

numbers = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


def inside(exact: Fraction, enclosure: Enclosure) -> bool:
    return Fraction(float(enclosure.lower)) <= exact <= Fraction(float(enclosure.upper))


def wide(enclosure: Enclosure, exact: Fraction) -> float:
    return float(enclosure.upper - enclosure.lower) / max(1e-300, abs(float(exact)))


@given(numbers, numbers, numbers)
def test_arithmetic(a: float, b: float, c: float) -> None:
    x, y, z = Fraction(a), Fraction(b), Fraction(c)
    one = exactly(np.float64(a))
    both = one * np.float64(b)
    assert inside(x * y, both)
    assert inside(x * y + z, both + np.float64(c))
    assert inside(x * y - z, both - np.float64(c))
    assert inside(-x * y, -both)
    assert inside(abs(x * y), both.absolute())
    assert inside((x * y) ** 2, both.square())
    assert inside((x * y) * (x + z), both * (one + np.float64(c)))
    assert both.size() >= abs(a * b)
    assert wide(both, x * y) < 1e-15
    if b > 0:
        assert inside(x / y, one / np.float64(b))
        assert inside(x / (y * y), one / (exactly(np.float64(b)) * np.float64(b)))
    else:
        assert np.isnan((one / np.float64(b)).lower)
    root = both.absolute().sqrt()
    assert Fraction(float(root.lower)) ** 2 <= abs(x * y) <= Fraction(float(root.upper)) ** 2


@given(st.lists(numbers, min_size=1, max_size=20))
def test_sums_and_maxima(values: list[float]) -> None:
    enclosure = exactly(np.array(values))
    exact = sum(map(Fraction, values), Fraction(0))
    assert inside(exact, enclosure.total())
    assert enclosure.absolute().greatest().upper == max(map(abs, values))
    width = float(enclosure.total().upper - enclosure.total().lower)
    assert width <= 5e-16 * abs(float(exact)) + 1e-320


def test_radii_are_widened_by_more_than_their_rounding() -> None:
    for radius in (1.0, 1e-200, 3e80):
        enclosure = exactly(0.0).widened(radius)
        assert enclosure.upper == -enclosure.lower
        for most in (enclosure.upper, up_to(radius).upper):
            assert radius * (1 + 5e-10) <= most <= radius * (1 + 2e-9)
    assert up_to(1.0).lower == 0
    assert exactly(1.0).widened(0.0).lower < 1 < exactly(1.0).widened(0.0).upper


def test_what_proves_nothing() -> None:
    nothing = exactly(np.array([1.0, np.nan])).total()
    assert not nothing.lower <= 2
    assert not nothing.upper >= 0
    for endless in ([1.7e308, 1.7e308, -1.7e308], [np.inf, -np.inf], [np.inf, 1.0], [-np.inf]):
        assert np.isnan(exactly(np.array(endless)).total().upper)
    assert np.isnan(exactly(-1.0).sqrt().upper)
    assert exactly(np.array([])).greatest().upper == 0
    mixed = Enclosure(np.float64(-1.0), np.float64(2.0))
    assert (mixed.absolute().lower, mixed.absolute().upper) == (0, 2)
    assert mixed.square().lower == 0


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("n", [1, 3, 7, 40])
@pytest.mark.parametrize("spread", [0, 8])
def test_products(parts: int, n: int, spread: float) -> None:
    """Every entry lies inside, and the width is that of the digits that are promised."""
    rng = np.random.default_rng(n)
    A, B, C = (
        rng.normal(size=(4, n)) * 10.0 ** rng.uniform(-spread, spread, (4, n)),
        rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-spread, spread, (n, n)),
        rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-spread, spread, (n, 3)),
    )
    exact = [[Fraction(x) for x in row] for row in A]
    for M in (B, C):
        columns = [[Fraction(x) for x in column] for column in M.T]
        exact = [
            [sum((a * b for a, b in zip(row, c, strict=True)), Fraction(0)) for c in columns]
            for row in exact
        ]
    near = np.array([[float(x) for x in row] for row in exact])
    far = rng.normal(size=near.shape)
    for arithmetic in (Floats(parts), _balls()):
        ball = arithmetic.product(A, arithmetic.product(B, C))
        enclosure = arithmetic.enclosure(ball)
        left, beside = (arithmetic.enclosure(ball, minus) for minus in (near, far))
        scale = float(np.abs(A).sum(axis=1).max() * np.abs(B).max() * np.abs(C).max()) * n
        for i in range(4):
            for j in range(3):
                assert inside(exact[i][j], enclosure[i, j])
                assert inside(exact[i][j] - Fraction(near[i, j]), left[i, j])
                assert inside(exact[i][j] - Fraction(far[i, j]), beside[i, j])
        digits = 1e-19 if parts == 2 else 1e-25
        assert np.all(left.upper - left.lower <= digits * scale + 1e-15 * np.abs(near) * 1e-15)
        rounded = digits * scale + 4.5e-16 * np.maximum(np.abs(beside.middle), 1e-3)
        assert np.all(beside.upper - beside.lower <= rounded)


@pytest.mark.parametrize("spread", [0, 8])
def test_products_of_columns(spread: float) -> None:
    """Less what they are next to: some 28 digits of the largest product are left."""
    rng = np.random.default_rng(3)
    A, B = (rng.normal(size=(20, 30)) * 10.0 ** rng.uniform(-spread, spread, 30) for _ in "AB")
    near = np.sum(A * B, axis=0)
    enclosure = column_dots(A, B, near)
    for j in range(30):
        terms = (Fraction(a) * Fraction(b) for a, b in zip(A[:, j], B[:, j], strict=True))
        assert inside(sum(terms, -Fraction(near[j])), enclosure[j])
    width, scale = enclosure.upper - enclosure.lower, np.abs(A * B).max(axis=0)
    assert np.all((width > 0) & (width <= 1e-28 * scale))


def _balls() -> Any:
    flint.ctx.prec = 212
    return Balls(flint)


def test_underflow_and_overflow_prove_nothing_false() -> None:
    tiny = np.full((1, 1000), 1.5e-162)  # squares underflow, their sum does not
    enclosure = Floats(2).enclosed(tiny, tiny.T)
    assert enclosure.lower <= 0
    assert enclosure.upper >= 2e-321


def test_graded_matrices_are_as_definite_as_even_ones() -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 6))
    A = A @ A.T + np.eye(6)
    d = 10.0 ** np.array([-12, -6, 0, 3, 8, 12])
    proof = definite(Floats(2), 0.5 * (A * np.outer(d, d) + (A * np.outer(d, d)).T))
    assert proof is not None
    assert proof.doubt < 1e-9
