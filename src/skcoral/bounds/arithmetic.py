"""Arithmetic with every rounding enclosed: intervals, and products of matrices of floats.

An :class:`Enclosure` is an array of lower and upper ends. Every operation rounds to nearest and
then moves each end to the next float outwards, so the exact result for the exact operands lies
inside. A number that is not finite, or an operation without a result, ends as an interval that
proves nothing: comparisons with NaN are false.

Products of matrices come in floating point or in ball arithmetic. Both answer the same questions,
and what is concluded from the answers is one code. :class:`Floats` splits the factors so that most
partial products are free of rounding, and bounds what the rest loses. :class:`Balls` leaves all of
that to python-flint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.linalg import slices, two_sum

UNIT = 2.0**-53  # the largest relative error of one rounding
WIDER = 1 + 1e-9  # covers all roundings of the computation of a radius: millions
TINY = 1e-290  # more than all that underflow can take
PRECISION = 212  # bits: four times that of a float, so that rounding is never what fails


def down(a: Any) -> Any:
    """The next float below, entry by entry."""
    return np.nextafter(a, -np.inf)


def up(a: Any) -> Any:
    """The next float above, entry by entry."""
    return np.nextafter(a, np.inf)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """An array of real numbers, each known to lie between ``lower`` and ``upper``."""

    lower: Any
    upper: Any

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.upper, -self.lower)

    def __add__(self, other: Any) -> Enclosure:
        other = exactly(other)
        return Enclosure(down(self.lower + other.lower), up(self.upper + other.upper))

    def __sub__(self, other: Any) -> Enclosure:
        return self + -exactly(other)

    def __mul__(self, other: Any) -> Enclosure:
        other = exactly(other)
        low, high = other.lower, other.upper
        return _hull(self.lower * low, self.lower * high, self.upper * low, self.upper * high)

    def __truediv__(self, other: Any) -> Enclosure:
        """Divide by what is proved to be positive; anything else proves nothing."""
        other = exactly(other)
        positive = np.asarray(other.lower) > 0
        low, high = (np.where(positive, end, np.nan) for end in (other.lower, other.upper))
        return _hull(self.lower / low, self.lower / high, self.upper / low, self.upper / high)

    def __getitem__(self, key: Any) -> Enclosure:
        return Enclosure(self.lower[key], self.upper[key])

    @property
    def middle(self) -> Any:
        """Floats near the middle."""
        return 0.5 * (self.lower + self.upper)

    def spread(self, *, symmetric: bool = False) -> tuple[Any, Any]:
        """Floats near the middle, and how far off the numbers are from them at most."""
        middle = 0.5 * (self.middle + self.middle.T) if symmetric else self.middle
        return middle, up(np.maximum(self.upper - middle, middle - self.lower))

    def widened(self, radius: Any) -> Enclosure:
        """The same within ``radius``, but for the rounding of the radius."""
        radius = radius * WIDER
        return Enclosure(down(self.lower - radius), up(self.upper + radius))

    def diagonal(self) -> Enclosure:
        """The diagonal of a matrix."""
        return Enclosure(np.diag(self.lower), np.diag(self.upper))

    def size(self) -> Any:
        """Upper bound of the absolute value, entry by entry."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def absolute(self) -> Enclosure:
        """``|x|``."""
        return Enclosure(np.maximum(np.maximum(self.lower, -self.upper), 0.0), self.size())

    def square(self) -> Enclosure:
        """``x²``, which is not negative."""
        a = self.absolute()
        return Enclosure(np.maximum(down(a.lower * a.lower), 0.0), up(a.upper * a.upper))

    def sqrt(self) -> Enclosure:
        """Square root of what is not negative."""
        high = np.where(np.asarray(self.upper) >= 0, self.upper, np.nan)
        low = np.maximum(down(np.sqrt(np.maximum(self.lower, 0.0))), 0.0)
        return Enclosure(low, up(np.sqrt(high)))

    def total(self) -> Enclosure:
        """The sum of all entries, to one rounding."""
        return Enclosure(down(_exact_sum(self.lower)), up(_exact_sum(self.upper)))

    def greatest(self) -> Enclosure:
        """The largest entry of some that are not negative; 0 of none."""
        return Enclosure(np.max(self.lower, initial=0.0), np.max(self.upper, initial=0.0))

    def least(self) -> Enclosure:
        """The smallest entry."""
        return Enclosure(np.min(self.lower), np.min(self.upper))

    def at_least(self, value: float) -> Enclosure:
        """``max(x, value)`` of a number that is known to exist."""
        return Enclosure(max(float(self.lower), value), max(float(self.upper), value))


def up_to(most: float) -> Enclosure:
    """What lies between zero and ``most``, but for the rounding of that number."""
    return Enclosure(0.0, most * WIDER)


def exactly(a: Any) -> Enclosure:
    """Floats, each standing for exactly the number it is."""
    return a if isinstance(a, Enclosure) else Enclosure(a, a)


def _hull(*ends: Any) -> Enclosure:
    """All numbers between some that were rounded once."""
    return Enclosure(down(np.minimum.reduce(ends)), up(np.maximum.reduce(ends)))


def _exact_sum(a: Any) -> float:
    values = np.ravel(a)
    try:
        return math.fsum(values.tolist()) if np.isfinite(values).all() else math.nan
    except OverflowError:  # numbers whose sum leaves the range of floats
        return math.nan


class Arithmetic(Protocol):
    """What the claims ask of an arithmetic: products of matrices, enclosed."""

    rigorous: bool

    def product(self, A: Array, B: Any) -> Any:
        """``A B`` in the arithmetic's own form, for floats or such a product ``B``."""

    def enclosure(self, A: Any, minus: Array | None = None) -> Enclosure:
        """Ends of every entry of ``A``, or of ``A - minus``."""

    def enclosed(self, *factors: Array, minus: Array | None = None) -> Enclosure:
        """The product of two or more matrices of floats, or what it exceeds ``minus`` by."""
        result: Any = factors[-1]
        for A in reversed(factors[:-1]):
            result = self.product(A, result)
        return self.enclosure(result, minus)


@dataclass(frozen=True)
class _Sum:
    """``high + low``, unevaluated, within ``radius``, but for the rounding of that."""

    high: Array
    low: Array
    radius: Array


class Floats(Arithmetic):
    """Floating point with a bound of its error; ``parts`` says into how many each factor is split.

    Two parts give some 20 digits, three some 28, at four and nine times the cost of one product;
    one part is the product itself. Stacks of matrices are multiplied one by one.
    """

    rigorous = False

    def __init__(self, parts: int = 3) -> None:
        self.parts = parts

    def product(self, A: Array, B: Array | _Sum) -> _Sum:
        """``A B``: partial products of leading parts are exact, the others are small."""
        n = A.shape[-1]
        if isinstance(B, _Sum):
            first, second = self.product(A, B.high), A @ B.low
            radius = first.radius + _most(A, n * UNIT * np.abs(B.low) + B.radius)
            radius = radius + 2 * UNIT * (np.abs(first.low) + np.abs(second))
            return _Sum(first.high, first.low + second, radius)
        left, right = slices(A, -1, self.parts), slices(B, -2, self.parts)
        high = low = terms = np.zeros(())
        for a in left:
            for b in right:
                high, lost = two_sum(high, a @ b)
                low, terms = low + lost, terms + np.abs(lost)
        # the products with a last part are rounded
        rounded = sum(_most(left[-1], b) for b in right) + sum(
            _most(a, right[-1]) for a in left[:-1]
        )
        radius = TINY + n * UNIT * rounded + (self.parts**2 + 1) * UNIT * terms
        return _Sum(high, low, radius)

    def enclosure(self, A: _Sum, minus: Array | None = None) -> Enclosure:
        """Both ends, rounded outwards once the leading parts have cancelled."""
        high, low = A.high, exactly(A.low).widened(A.radius)
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

    def product(self, A: Array, B: Any) -> Any:
        """``A B``."""
        return self._exact(A) * (self._exact(B) if isinstance(B, np.ndarray) else B)

    def enclosure(self, A: Any, minus: Array | None = None) -> Enclosure:
        """Both ends, rounded outwards."""
        if minus is not None:
            A = A - self._exact(minus)
        ends = np.array([(float(a.lower()), float(a.upper())) for a in A.entries()])
        lower, upper = ends.T.reshape(2, A.nrows(), A.ncols())
        return Enclosure(down(lower), up(upper))


def column_dots(A: Array, B: Array, minus: Array) -> Enclosure:
    """``a_jᵀb_j - c_j`` for every column, to about twice the digits of a float."""
    rows, columns = A.T[:, None, :], B.T[:, :, None]
    return Floats(4).enclosed(rows, columns, minus=minus[:, None, None])[:, 0, 0]


def _most(A: Array, B: Array) -> Array:
    """No entry of ``|A| |B|`` is larger, but for the rounding of this product."""
    rows, columns = np.abs(A).sum(axis=-1), np.abs(B).max(axis=-2, initial=0.0)
    return np.asarray(rows[..., :, None] * columns[..., None, :])
