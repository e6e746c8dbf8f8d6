"""Means and co-moments of windows that move over rows: rows are added and removed.

Sums are measured from an origin near the rows, and begun afresh every ``REFRESH`` windows, where a
window shares nothing with the one before, and where the rounding of what was added and removed
since could be seen: a large row that has left a window leaves none of its digits behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.results import Array

REFRESH = 20  # windows after which sums are begun afresh
ROUNDING = 5e-14  # largest rounding of a variance, relative to itself, that is tolerated
_EPS = float(np.finfo(np.float64).eps)


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
    Sums of ``fresh`` windows, the first among them, are begun afresh: every ``REFRESH`` by default.
    """
    n, p = len(starts), rows.shape[1]
    q = 1.0 if halflife is None else 0.5 ** (1.0 / halflife)
    mean, comoment = np.empty((n, p)), np.empty((n, p, p))
    sums = _Sums(rows, q)
    anew = np.arange(n) % REFRESH == 0 if fresh is None else fresh
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused later
        for k, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            sums.move(start, end, fresh=bool(anew[k]))
            mean[k], comoment[k] = sums.moments()
    size = (ends - starts).astype(np.float64)
    weight = _geometric(q, size)
    return WindowMoments(mean, comoment, weight, _geometric(q * q, size))


def _geometric(q: float, n: Any) -> Any:
    """``1 + q + … + q^(n-1)``."""
    if q in (0.0, 1.0):
        return n if q else np.minimum(n, 1.0)
    return np.asarray(np.expm1(n * np.log(q)) / (q - 1.0))


class _Sums:
    """Weighted sums of rows and of their products, of one window at a time."""

    def __init__(self, rows: Array, q: float) -> None:
        self.rows, self.q = rows, q
        self.start = self.end = 0

    def move(self, start: int, end: int, *, fresh: bool) -> None:
        """Go to another window, later than this one."""
        if fresh or start >= self.end:
            return self._begin(start, end)
        q = self.q
        if end > self.end:
            new = self._deviations(self.end, end)
            fade = q ** (end - self.end)
            self._change(new, q ** np.arange(end - self.end - 1.0, -1.0, -1.0), fade, 1.0)
        if start > self.start:
            old = self._deviations(self.start, start)
            ages = q ** (end - 1.0 - np.arange(self.start, start))
            self._change(old, ages, 1.0, -1.0)
        self.start, self.end = start, end
        left = self.second.diagonal() - self.first**2 / self._weight()
        # also where the mean has moved away from the origin and squares would cancel
        if np.any(_EPS * (self.passed + 4.0 * self.second.diagonal()) > ROUNDING * left):
            self._begin(start, end)

    def _begin(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.origin = self.rows[start:end].mean(axis=0)
        self.first = np.zeros(self.rows.shape[1])
        self.second = np.zeros((len(self.first), len(self.first)))
        self.passed = np.zeros(len(self.first))
        weights = self.q ** (end - 1.0 - np.arange(start, end))
        self._change(self._deviations(start, end), weights, 1.0, 1.0)
        self.passed[:] = 0.0

    def _deviations(self, start: int, end: int) -> Array:
        return np.asarray(self.rows[start:end] - self.origin)

    def _change(self, deviations: Array, weights: Any, fade: float, sign: float) -> None:
        weighted = deviations if self.q == 1.0 else deviations * weights[:, None]
        products = weighted.T @ deviations
        if fade != 1.0:
            self.first, self.second, self.passed = (
                fade * self.first,
                fade * self.second,
                fade * self.passed,
            )
        self.first = self.first + sign * weighted.sum(axis=0)
        self.second = self.second + sign * products
        # what has been rounded since the beginning: each product, and each sum
        self.passed = self.passed + products.diagonal() + self.second.diagonal()

    def _weight(self) -> float:
        return float(_geometric(self.q, np.float64(self.end - self.start)))

    def moments(self) -> tuple[Array, Array]:
        """Mean and co-moment of the window."""
        shift = self.first / self._weight()
        comoment = self.second - np.outer(shift, self.first)
        return self.origin + shift, 0.5 * (comoment + comoment.T)
