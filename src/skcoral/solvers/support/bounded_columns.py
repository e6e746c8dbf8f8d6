"""One column with bounds on its coefficients: whether there is one, and which is near.

A column is feasible if it lies in the convex set C = {bounds, fidelity at least the floor} and has
unit variance. C is connected, so a feasible column exists exactly when C holds points with a
variance of at most one and of at least one. The points of C that minimise ``½ tᵀRt − s f``, for
its fidelity f and s ≥ 0, begin at the least variance, and both variance and fidelity rise with s:
the one of unit variance has the largest fidelity of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as sla
import scipy.optimize as so

from skcoral.core.arrays import Array, Mask
from skcoral.core.validation import listing
from skcoral.exceptions import InfeasibleError

_FAR = 1e6  # stands for an infinite bound, and for an s at which only the fidelity counts
_SWEEPS = 3  # over the coefficients, one after the other; what is found last is a corner by then
# Newton steps of a repair, of which the first ones move coefficients off their bounds as well. From
# close by a handful of steps is enough; a repair that takes more is a target to be given up.
_STEPS, _OFF_BOUNDS = 40, 10
_UNIT = 1e-13  # error of a variance that counts as none
# Above a floor: fidelities may be summed in another order elsewhere, which is a rounding.
_ROOM, _AIM = 5e-16, 1e-14


class BoundedColumn:
    """The coefficients of one output: their Gram matrix, covariances with the anchor, bounds."""

    def __init__(self, R: Array, b: Array, allowed: Mask, lower: Array, upper: Array) -> None:
        self.p, self.index = len(R), np.flatnonzero(allowed)
        self.form, self.pull = R[np.ix_(self.index, self.index)], R[self.index] @ b
        self.low, self.high = lower[self.index], upper[self.index]

    def with_zeros(self, t: Array) -> Array:
        """The column with zeros off its support."""
        out = np.zeros(self.p)
        out[self.index] = t
        return out

    def variance(self, t: Array) -> float:
        """``tᵀRt``."""
        return float(t @ self.form @ t)

    def towards_anchor(self, s: float) -> Array:
        """The point within the bounds that minimises ``½ tᵀRt − s f``, as least squares."""
        factor = np.linalg.cholesky(self.form)
        target = s * sla.solve_triangular(factor, self.pull, lower=True)
        t, free = self.low.copy(), self.low < self.high
        if free.any():
            target = target - factor.T[:, ~free] @ t[~free]
            box, steps = (self.low[free], self.high[free]), 100 * len(t)
            t[free] = so.lsq_linear(
                factor.T[:, free], target, box, method="bvls", tol=1e-15, max_iter=steps
            ).x
        return np.asarray(np.clip(t, self.low, self.high))

    def largest_variance(self, start: Array, floor: float) -> Array:
        """A point of C with a large variance: a local search, from each coefficient in turn."""
        near, far = np.maximum(self.low, -_FAR), np.minimum(self.high, _FAR)
        ends = []
        for first in range(len(start)):
            t = start.copy()
            for i in [*np.roll(np.arange(len(t)), -first)] * _SWEEPS:
                room = self.pull @ t - floor
                sides = [near[i], far[i]]
                if self.pull[i] != 0.0:  # no further than the floor allows
                    limit = t[i] - max(room, 0.0) / self.pull[i]
                    sides = [max(s, limit) if self.pull[i] > 0 else min(s, limit) for s in sides]
                trials = [np.where(np.arange(len(t)) == i, s, t) for s in (t[i], *sides)]
                t = max(trials, key=self.variance)
            ends.append(t)
        return max(ends, key=self.variance)

    def repaired(self, target: Array, floor: float) -> Array | None:
        """A feasible column near a target, with bounds and floor kept exactly; None if none is.

        Newton steps of least length for the variance and, once it was missed, the floor.
        """
        t, low, high = np.clip(target[self.index], self.low, self.high), self.low, self.high
        room, missed = 0.0, False
        for step in range(_STEPS):
            lack, short = 1.0 - self.variance(t), floor + room - float(self.pull @ t)
            if abs(lack) <= _UNIT and short <= 0.0:
                return self.with_zeros(t)
            room, missed = _ROOM, missed or short > 0.0
            moving = low < high if step < _OFF_BOUNDS else (low < t) & (t < high)
            slopes = np.stack((2.0 * (self.form @ t), self.pull))[: 1 + missed, moving]
            wanted = np.array([lack, short + _AIM])[: 1 + missed]
            t[moving] += np.linalg.lstsq(slopes, wanted, rcond=None)[0]
            t = np.clip(t, low, high)
        return None


def feasible_column(
    column: BoundedColumn, floor: float, output: str, sources: Sequence[str]
) -> Array:
    """A column of unit variance within its bounds and above its floor.

    Where there is none, the error quotes the largest fidelity or the variance that they allow.
    """
    least = column.towards_anchor(0.0)
    s, top = 0.0, least
    while column.variance(top) < 1.0 and s < _FAR:
        s = max(4.0 * s, 1.0)
        top = column.towards_anchor(s)
    reached, fidelity = column.variance(top) >= 1.0, float(column.pull @ top)
    if reached and s > 0:
        s = so.brentq(lambda s: column.variance(column.towards_anchor(s)) - 1.0, 0.0, s, xtol=1e-14)
        top = column.towards_anchor(s)
        fidelity = float(column.pull @ top)
    if column.variance(least) > 1.0 + 1e-9:
        reason = f"is forced to a variance of at least {column.variance(least):.6g}"
    elif fidelity < floor - 1e-9:
        reason = f"cannot have a fidelity above {fidelity:.6g}, but {floor:.6g} is asked for"
    else:
        outer = top if reached else column.largest_variance(top, floor)
        if column.variance(outer) >= 1.0 - 1e-9:
            return column.with_zeros(_unit_between(column, top, outer))
        reason = f"has a variance of at most {column.variance(outer):.6g}, as far as was found"
    listed = listing([sources[int(i)] for i in column.index], 6, quote="'")
    raise InfeasibleError(
        f"within its bounds, output {output!r} {reason}; every output has variance 1: relax the "
        f"bounds of {listed}, or lower its floor."
    )


def _unit_between(column: BoundedColumn, inner: Array, outer: Array) -> Array:
    """The point of unit variance on the segment between a small and a large one."""
    d = outer - inner
    a, b, c = column.variance(d), inner @ column.form @ d, column.variance(inner) - 1.0
    if a == 0:
        return inner
    share = (-b + np.sqrt(max(float(b * b - a * c), 0.0))) / a
    return np.asarray(inner + min(max(share, 0.0), 1.0) * d)
