"""Products of matrices of floats, enclosed: in floating point, or in ball arithmetic.

Both kinds of arithmetic answer the same questions, and what is concluded from the answers is one
code. :class:`Floats` splits the factors so that most partial products are free of rounding, and
bounds what the rest loses. :class:`Balls` leaves all of that to python-flint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skcoral.bounds.enclosures import UNIT, Enclosure, around, down, up
from skcoral.core.arrays import Array
from skcoral.core.linalg import slices, two_sum

_TINY = 1e-290  # more than all that underflow can take
_MANY_DIGITS = 1e5  # times the unit rounding of 1e-16 stays below what is promised of a number
PRECISION = 212  # bits: four times that of a float, so that rounding is never what fails

_Multiply = Callable[[Any, Any], Array]


class Arithmetic(Protocol):
    """What the claims ask of an arithmetic: products of matrices, enclosed."""

    rigorous: bool

    def product(self, A: Array, B: Array) -> Any:
        """``A B``, in the arithmetic's own form."""

    def diagonal(self, A: Array, B: Array) -> Any:
        """The diagonal of ``A B``, in the same form."""

    def apply(self, A: Array, B: Any) -> Any:
        """``A B`` for a ``B`` in the arithmetic's own form."""

    def enclosure(self, A: Any, minus: Array | None = None) -> Enclosure:
        """Ends of every entry of ``A``, or of ``A - minus``."""

    def enclosed(self, *factors: Array, minus: Array | None = None) -> Enclosure:
        """The product of two or more matrices of floats, or what it exceeds ``minus`` by."""
        found = self.product(*factors[-2:])
        for A in reversed(factors[:-2]):
            found = self.apply(A, found)
        return self.enclosure(found, minus)


@dataclass(frozen=True)
class _Sum:
    """``high + low``, unevaluated, within ``radius``, but for the rounding of that."""

    high: Array
    low: Array
    radius: Array


class Floats(Arithmetic):
    """Floating point with a bound of its error; ``parts`` says into how many each factor is split.

    Two parts give some 20 digits, three some 28, at four and nine times the cost of one product.
    """

    rigorous = False

    def __init__(self, parts: int = 3) -> None:
        self.parts = parts

    def product(self, A: Array, B: Array) -> _Sum:
        """``A B``: partial products of leading parts are exact, the others are small."""
        return self._split(A, B, np.matmul, np.outer)

    def diagonal(self, A: Array, B: Array) -> _Sum:
        """The diagonal of ``A B``, in the same way."""
        return self._split(A, B, lambda a, b: np.einsum("ij,ji->i", a, b), np.multiply)

    def _split(self, A: Array, B: Array, multiply: _Multiply, sizes: _Multiply) -> _Sum:
        n, last = A.shape[1], self.parts - 1
        left, right = slices(A, 1, self.parts), slices(B, 0, self.parts)
        high = multiply(left[0], right[0])
        low = np.zeros_like(high)
        terms = np.zeros_like(high)
        for i, a in enumerate(left):
            for j, b in enumerate(right):
                if i == j == 0:
                    continue
                term = multiply(a, b)
                if i < last and j < last:
                    high, term = two_sum(high, term)
                low += term
                terms += np.abs(term)
        # the products with a last part are rounded
        rows, columns = [_row_sums(a) for a in left], [_column_sizes(b) for b in right]
        rounded = sizes(rows[last], sum(columns)) + sizes(sum(rows[:last]), columns[last])
        radius = _TINY + n * UNIT * rounded + (self.parts**2 + 1) * UNIT * terms
        return _Sum(high, low, radius)

    def apply(self, A: Array, B: _Sum) -> _Sum:
        """``A (high + low)``."""
        first = self.product(A, B.high)
        second = A @ B.low
        low = first.low + second
        doubt = A.shape[1] * UNIT * _column_sizes(B.low) + _column_sizes(B.radius)
        radius = first.radius + np.outer(_row_sums(A), doubt)
        radius += 2 * UNIT * (np.abs(first.low) + np.abs(second))
        return _Sum(first.high, low, radius)

    def enclosure(self, A: _Sum, minus: Array | None = None) -> Enclosure:
        """Both ends, rounded outwards once the leading parts have cancelled."""
        high, low = A.high, around(A.low, A.radius)
        if minus is not None:
            high, rest = two_sum(high, -minus)
            low = Enclosure(down(low.lower + rest), up(low.upper + rest))
        return Enclosure(down(high + low.lower), up(high + low.upper))


class Balls(Arithmetic):
    """Ball arithmetic of python-flint; to be used with ``flint.ctx.prec`` at :data:`PRECISION`."""

    rigorous = True

    def __init__(self, flint: Any) -> None:
        self._arb, self._matrix = flint.arb, flint.arb_mat

    def _exact(self, A: Array) -> Any:
        return self._matrix(*A.shape, [self._arb(a) for a in A.ravel().tolist()])

    def product(self, A: Array, B: Array) -> Any:
        """``A B``."""
        return self._exact(A) * self._exact(B)

    def diagonal(self, A: Array, B: Array) -> Any:
        """The diagonal of ``A B``, as a column."""
        entries = [
            (self._exact(a[None]) * self._exact(b[:, None]))[0, 0]
            for a, b in zip(A, B.T, strict=True)
        ]
        return self._matrix(len(entries), 1, entries)

    def apply(self, A: Array, B: Any) -> Any:
        """``A B``."""
        return self._exact(A) * B

    def enclosure(self, A: Any, minus: Array | None = None) -> Enclosure:
        """Both ends, rounded outwards."""
        if minus is not None:
            A = A - self._exact(minus.reshape(A.nrows(), A.ncols()))
        shape = (A.nrows(), A.ncols())
        entries = A.entries()
        lower = np.array([float(a.lower()) for a in entries]).reshape(shape)
        upper = np.array([float(a.upper()) for a in entries]).reshape(shape)
        return Enclosure(down(lower), up(upper))


def column_dots(A: Array, B: Array, minus: Array, arithmetic: Arithmetic) -> Enclosure:
    """``a_jᵀb_j - c_j`` for every column."""
    dots = arithmetic.enclosure(arithmetic.diagonal(A.T, B), minus)
    return Enclosure(dots.lower.ravel(), dots.upper.ravel())


# ``|A| |B|`` is at most the outer product of these, but for its own rounding.


def _row_sums(A: Array) -> Array:
    return np.asarray(np.abs(A).sum(axis=1))


def _column_sizes(B: Array) -> Array:
    return np.asarray(np.abs(B).max(axis=0, initial=0.0))


def many_digits(dual: Array, T: Array, unit: float = 1.0) -> bool:
    """Whether a dual point and a transformation are so large that rounding takes over.

    ``unit`` is the size of what is proved.
    """
    steep = max(float(np.abs(dual).max(initial=0.0)) / unit, 1.0)
    size = float(np.abs(T).max()) ** 2 * np.sqrt(len(T))  # roundings of a sum add up like this
    return bool(steep * max(size, 1.0) > _MANY_DIGITS)
