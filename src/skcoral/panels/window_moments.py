"""Means and co-moments of windows that move over rows.

The rows that all windows of a chain have are summed once, measured from their mean, and those that
each window has besides are added to them. Nothing is ever taken out of a sum, so that a large row
outside of a window leaves no rounding in it. Where the common rows have less than half the weight,
each window is summed on its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.results import Array

REFRESH = 20  # windows in a chain


@dataclass
class WindowMoments:
    """Moments of some windows: ``comoment`` sums weighted products of deviations."""

    mean: Array
    comoment: Array
    weight: Array
    squared_weight: Array

    @property
    def scale(self) -> Array:
        """Sample standard deviations, as :class:`skcoral.moments.Moments` has them."""
        freedom = self.weight - self.squared_weight / self.weight
        with np.errstate(divide="ignore", invalid="ignore"):  # one row alone has a weight
            return np.sqrt(np.diagonal(self.comoment, axis1=1, axis2=2) / freedom[:, None])

    def varying(self) -> Any:
        """Windows whose columns clearly vary."""
        spread = np.sqrt(np.diagonal(self.comoment, axis1=1, axis2=2) / self.weight[:, None])
        return (spread > 1e-12 * np.abs(self.mean) + 1e-140).all(axis=1)

    def correlation(self) -> Array:
        """Correlation matrices; not finite where a column is constant."""
        deviation = np.sqrt(np.diagonal(self.comoment, axis1=1, axis2=2))
        with np.errstate(divide="ignore", invalid="ignore"):
            R = self.comoment / deviation[:, :, None] / deviation[:, None, :]
        own = np.arange(R.shape[1])
        R[:, own, own] = 1.0
        return R


def window_moments(
    rows: Array, starts: Array, ends: Array, halflife: float | None, fresh: Any = None
) -> WindowMoments:
    """Moments of the complete rows ``rows[start:end]`` of each window; both ends move forward.

    The last row of a window has weight one, and one that came ``halflife`` rows before counts half.
    Chains begin with the ``fresh`` windows, the first among them: every ``REFRESH`` by default.
    """
    n, p = len(starts), rows.shape[1]
    q = 1.0 if halflife is None else 0.5 ** (1.0 / halflife)
    mean, comoment = np.empty((n, p)), np.empty((n, p, p))
    size = (ends - starts).astype(np.float64)
    weight = _geometric(q, size)
    anew = np.arange(n) % REFRESH == 0 if fresh is None else fresh
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused later
        for first, end in itertools.pairwise([*np.flatnonzero(anew).tolist(), n]):
            low, high = int(starts[end - 1]), int(ends[first])
            common = float(_geometric(q, np.float64(max(high - low, 0))))
            common *= q ** float(ends[end - 1] - high)
            shared = 2.0 * common > weight[first:end].max()
            sums = _Sums(rows, low, high, q) if shared else None
            for k in range(first, end):
                start, stop = int(starts[k]), int(ends[k])
                own = sums or _Sums(rows, start, stop, q)
                mean[k], comoment[k] = own.moments(start, stop, float(weight[k]))
    return WindowMoments(mean, comoment, weight, _geometric(q * q, size))


def _geometric(q: float, n: Any) -> Any:
    """``1 + q + … + q^(n-1)``."""
    if q in (0.0, 1.0):
        return n if q else np.minimum(n, 1.0)
    return np.asarray(np.expm1(n * np.log(q)) / (q - 1.0))


class _Sums:
    """Weighted sums of rows and of their products, over rows that several windows have."""

    def __init__(self, rows: Array, start: int, end: int, q: float) -> None:
        self.rows, self.start, self.end, self.q = rows, start, end, q
        weights = q ** (end - 1.0 - np.arange(start, end))
        # the weighted mean, so that squares do not cancel
        self.origin = rows[end - 1] + weights @ (rows[start:end] - rows[end - 1]) / weights.sum()
        self.first, self.second = self._over(start, end, end)

    def _over(self, start: int, end: int, last: int) -> tuple[Array, Array]:
        deviations = self.rows[start:end] - self.origin
        weights = self.q ** (last - 1.0 - np.arange(start, end))
        weighted = deviations if self.q == 1.0 else deviations * weights[:, None]
        return weighted.sum(axis=0), weighted.T @ deviations

    def moments(self, start: int, end: int, weight: float) -> tuple[Array, Array]:
        """Mean and co-moment of a window that has these rows, and others before and after."""
        fade = self.q ** float(end - self.end)
        first, second = fade * self.first, fade * self.second
        for more in ((start, self.start), (self.end, end)):
            if more[0] < more[1]:
                one, two = self._over(*more, end)
                first, second = first + one, second + two
        shift = first / weight
        comoment = second - np.outer(shift, first)
        return self.origin + shift, 0.5 * (comoment + comoment.T)
