"""One column with bounds on its coefficients: whether there is one, and which is nearest.

A column is feasible if it lies in the convex set C = {bounds, fidelity at least the floor} and has
unit variance. C is connected, so a feasible column exists exactly when C holds points with a
variance of at most one and of at least one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import scipy.optimize as so

from skcoral.core.arrays import Array, Mask
from skcoral.core.validation import listing
from skcoral.exceptions import InfeasibleError

# The kind ("eq" or "ineq"), the function and its derivative.
Constraint = tuple[str, Callable[[Array], Any], Callable[[Array], Array]]

_CORNERS = 14  # coefficients up to which all corners of the bounds are tried: 2^14 of them
_FAR = 1e6  # stands for an infinite bound


def feasible_column(column: Column, floor: float, output: str, sources: Sequence[str]) -> Array:
    """A column of unit variance within its bounds and above its floor.

    Where there is none, the error quotes the largest fidelity or the variances that they allow.
    """
    inner = column.least_variance(floor)
    if inner is not None and column.variance(inner) <= 1.0 + 1e-9:
        outer = column.large_variance(floor, inner)
        if outer is not None:
            return column.with_zeros(column.unit_between(inner, outer))
        reason = f"has a variance of at most {column.variance_limit():.6g}"
        if column.variance_limit() >= 1.0:
            reason = f"has no column of variance 1 and fidelity {floor:.6g} that was found"
    else:
        least = column.least_variance(-np.inf)
        variance = np.inf if least is None else column.variance(least)
        reason = f"is forced to a variance of at least {variance:.6g}"
        if least is not None and variance <= 1.0 + 1e-9:
            largest = column.largest_fidelity(least)
            reason = f"cannot have a fidelity above {largest:.6g}, but {floor:.6g} is asked for"
    listed = listing([sources[int(i)] for i in column.index], 6, quote="'")
    raise InfeasibleError(
        f"within its bounds, output {output!r} {reason}; every output has variance 1: relax the "
        f"bounds of {listed}, or lower its floor."
    )


def nearest_column(column: Column, floor: float, target: Array) -> Array | None:
    """The feasible column nearest to ``target``, with its bounds and its floor kept exactly."""
    goal = np.clip(target[column.index], column.low, column.high)
    for margin in (1e-15, 1e-13, 1e-11, 1e-9):
        t = column.project(goal, floor + margin)
        # The fidelity may be summed in another order elsewhere: leave room for a rounding.
        if t is not None and column.pull @ t >= floor + min(margin, 5e-16):
            return column.with_zeros(t)
    return None


class Column:
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

    def above(self, floor: float) -> Constraint:
        """A fidelity of at least ``floor``."""
        return "ineq", lambda x: self.pull @ x - floor, lambda _: self.pull

    def minimise(
        self,
        function: Callable[[Array], tuple[float, Array]],
        start: Array,
        constraints: Sequence[Constraint],
        *,
        max_iter: int = 500,
        tol: float = 1e-14,
    ) -> tuple[Array, bool]:
        """Minimise within the bounds and the constraints; also whether they are met."""
        solved = so.minimize(
            function,
            start,
            jac=True,
            method="SLSQP",
            bounds=np.column_stack((self.low, self.high)),
            constraints=[{"type": kind, "fun": f, "jac": slope} for kind, f, slope in constraints],
            options={"maxiter": max_iter, "ftol": tol},
        )
        # Status 8: no descent although the derivative says so, which is rounding.
        return np.clip(solved.x, self.low, self.high), solved.status in (0, 8)

    def project(self, goal: Array, floor: float) -> Array | None:
        """Project onto the feasible set, then scale what is strictly inside to unit variance."""
        t, form, low, high = goal, self.form, self.low, self.high
        if abs(self.variance(t) - 1.0) > 1e-13 or self.pull @ t < floor:
            unit: Constraint = "eq", lambda x: x @ form @ x - 1.0, lambda x: 2.0 * form @ x
            t, _ = self.minimise(
                lambda x: (0.5 * float((x - goal) @ (x - goal)), x - goal),
                goal,
                [unit, self.above(floor)],
                max_iter=100,
                tol=1e-16,
            )
        inside = (t > low) & (t < high)
        moving, still = np.where(inside, t, 0.0), np.where(inside, 0.0, t)
        a, b, c = self.variance(moving), moving @ form @ still, self.variance(still) - 1.0
        if a > 0 and b * b - a * c >= 0:
            t = still + (-b + np.sqrt(b * b - a * c)) / a * moving
        good = np.all((t >= low) & (t <= high)) and abs(self.variance(t) - 1.0) < 1e-12
        return t if good else None

    def least_variance(self, floor: float) -> Array | None:
        """The point of C with the least variance; None if C is empty."""
        with np.errstate(invalid="ignore"):
            reach = np.maximum(self.pull * self.low, self.pull * self.high)
        if np.where(self.pull == 0, 0.0, reach).sum() < floor:
            return None
        if (self.low == self.high).all():
            return self.low.copy()
        best, met = self.minimise(
            lambda x: (self.variance(x), 2.0 * self.form @ x),
            np.clip(np.zeros(len(self.form)), self.low, self.high),
            [self.above(floor)] if floor > -np.inf else [],
        )
        return best if met else None

    def largest_fidelity(self, least: Array) -> float:
        """Largest fidelity with a variance of at most one, from a point that has one."""
        if (self.low < self.high).any():
            best, met = self.minimise(
                lambda x: (-float(self.pull @ x), -self.pull),
                least,
                [("ineq", lambda x: 1.0 - self.variance(x), lambda x: -2.0 * self.form @ x)],
            )
            least = best if met else least
        return float(self.pull @ least)

    def large_variance(self, floor: float, inner: Array) -> Array | None:
        """A point of C with a variance of at least one, if one can be found."""
        near, far = np.maximum(self.low, -_FAR), np.minimum(self.high, _FAR)
        # Towards the corner of largest fidelity the floor is kept.
        corner = np.where(self.pull >= 0, far, near)
        if self.variance(corner) >= 1.0:
            return corner
        if len(self.form) <= _CORNERS:
            every = product((False, True), repeat=len(self.form))
            corners = [np.where(bits, far, near) for bits in every]
        else:
            corners = [self._ascend(seed, near, far) for seed in (near, far, corner)]
        for point in corners:
            share = 1.0
            if self.pull @ point < floor:
                gain = float(self.pull @ (inner - point))
                share = 0.0 if gain <= 0 else 1.0 - (floor - float(self.pull @ point)) / gain
            trial = inner + share * (point - inner)
            if self.variance(trial) >= 1.0 and self.pull @ trial >= floor - 1e-12:
                return trial
        return None

    def _ascend(self, point: Array, near: Array, far: Array) -> Array:
        """A corner of large variance, one coefficient at a time."""
        point = point.copy()
        for i in [*range(len(point))] * 3:
            ends = [np.where(np.arange(len(point)) == i, side, point) for side in (near, far)]
            point = max(ends, key=self.variance)
        return point

    def variance_limit(self) -> float:
        """An upper bound on the variance within the bounds."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        return float(size @ np.abs(self.form) @ size) if np.isfinite(size).all() else np.inf

    def unit_between(self, inner: Array, outer: Array) -> Array:
        """The point of unit variance on the segment between a small and a large one."""
        d = outer - inner
        a, b, c = self.variance(d), inner @ self.form @ d, self.variance(inner) - 1.0
        if a == 0:
            return inner
        share = (-b + np.sqrt(max(float(b * b - a * c), 0.0))) / a
        return np.asarray(inner + min(max(share, 0.0), 1.0) * d)
