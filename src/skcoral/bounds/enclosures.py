"""Intervals that contain the exact number: arrays of lower and upper ends, rounded outwards.

Every operation rounds to nearest and then moves each end to the next float outwards, so the exact
result for the exact operands lies inside. A number that is not finite, or an operation without a
result, ends as an interval that proves nothing: comparisons with NaN are false.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

UNIT = 2.0**-53  # the largest relative error of one rounding
WIDER = 1 + 1e-9  # covers all roundings of the computation of a radius: millions


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
        ends = (
            self.lower * other.lower,
            self.lower * other.upper,
            self.upper * other.lower,
            self.upper * other.upper,
        )
        return Enclosure(down(np.minimum.reduce(ends)), up(np.maximum.reduce(ends)))

    def __truediv__(self, other: Any) -> Enclosure:
        """Divide by what is proved to be positive; anything else proves nothing."""
        other = exactly(other)
        positive = np.asarray(other.lower) > 0
        low = np.where(positive, other.lower, np.nan)
        high = np.where(positive, other.upper, np.nan)
        ends = (self.lower / low, self.lower / high, self.upper / low, self.upper / high)
        return Enclosure(down(np.minimum.reduce(ends)), up(np.maximum.reduce(ends)))

    def __getitem__(self, key: Any) -> Enclosure:
        return Enclosure(self.lower[key], self.upper[key])

    @property
    def T(self) -> Enclosure:
        """The transpose."""
        return Enclosure(self.lower.T, self.upper.T)

    @property
    def middle(self) -> Any:
        """Floats near the middle."""
        return 0.5 * (self.lower + self.upper)

    def diagonal(self) -> Enclosure:
        """The diagonal of a matrix."""
        return Enclosure(np.diag(self.lower).copy(), np.diag(self.upper).copy())

    def size(self) -> Any:
        """Upper bound of the absolute value, entry by entry."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def absolute(self) -> Enclosure:
        """``|x|``."""
        least = np.where(
            (self.lower <= 0) & (self.upper >= 0),
            0.0,
            np.minimum(np.abs(self.lower), np.abs(self.upper)),
        )
        return Enclosure(least, self.size())

    def square(self) -> Enclosure:
        """``x²``, which is not negative."""
        a = self.absolute()
        return Enclosure(np.maximum(down(a.lower * a.lower), 0.0), up(a.upper * a.upper))

    def sqrt(self) -> Enclosure:
        """Square root of what is not negative."""
        low = np.maximum(down(np.sqrt(np.maximum(self.lower, 0.0))), 0.0)
        return Enclosure(
            low, up(np.sqrt(np.where(np.asarray(self.upper) >= 0, self.upper, np.nan)))
        )

    def total(self) -> Enclosure:
        """The sum of all entries, to one rounding."""
        return Enclosure(down(_exact_sum(self.lower)), up(_exact_sum(self.upper)))

    def greatest(self) -> Enclosure:
        """The largest entry; 0 of none."""
        if not np.size(self.lower):
            return exactly(0.0)
        return Enclosure(np.max(self.lower), np.max(self.upper))

    def least(self) -> Enclosure:
        """The smallest entry."""
        return Enclosure(np.min(self.lower), np.min(self.upper))

    def at_least(self, value: float) -> Enclosure:
        """``max(x, value)`` of a number that is known to exist."""
        return Enclosure(max(float(self.lower), value), max(float(self.upper), value))


def around(middle: Any, radius: Any) -> Enclosure:
    """Numbers known to lie within ``radius`` of ``middle``, but for the rounding of the radius."""
    radius = radius * WIDER
    return Enclosure(down(middle - radius), up(middle + radius))


def up_to(most: float) -> Enclosure:
    """What lies between zero and ``most``, but for the rounding of that number."""
    return Enclosure(0.0, most * WIDER)


def exactly(a: Any) -> Enclosure:
    """Floats, each standing for exactly the number it is."""
    return a if isinstance(a, Enclosure) else Enclosure(a, a)


def _exact_sum(a: Any) -> float:
    values = np.ravel(a)
    try:
        return math.fsum(values.tolist()) if np.isfinite(values).all() else math.nan
    except OverflowError:  # numbers whose sum leaves the range of floats
        return math.nan
