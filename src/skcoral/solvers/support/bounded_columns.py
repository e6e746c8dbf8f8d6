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

from skcoral.core.arrays import Array
from skcoral.core.validation import listing
from skcoral.exceptions import InfeasibleError
from skcoral.solvers.support.pattern import Mask

# The kind ("eq" or "ineq"), the function and its derivative.
Constraint = tuple[str, Callable[[Array], Any], Callable[[Array], Array]]

_CORNERS = 14
_FAR = 1e6


def feasible_column(column: Column, floor: float, output: str, sources: Sequence[str]) -> Array:
    """A column of unit variance within its bounds and above its floor.

    Where there is none, the error quotes the largest fidelity or the variances that they allow.
    """
    listed = listing([sources[int(i)] for i in column.index], 6, quote="'")
    inner = column.least_variance(floor)
    if inner is None or column.variance(inner) > 1.0 + 1e-9:
        least = column.least_variance(-np.inf)
        variance = np.inf if least is None else column.variance(least)
        if least is None or variance > 1.0 + 1e-9:
            raise InfeasibleError(
                f"the bounds of output {output!r} force a variance of at least {variance:.6g}, "
                f"but every output has variance 1; relax the bounds of {listed}."
            )
        raise InfeasibleError(
            f"within its bounds, output {output!r} cannot have a fidelity above "
            f"{column.largest_fidelity(least):.6g}, but {floor:.6g} is asked for; lower its floor "
            f"or relax the bounds of {listed}."
        )
    outer = column.large_variance(floor, inner)
    if outer is None:
        largest = column.variance_limit()
        found = (
            f"within its bounds, output {output!r} has a variance of at most {largest:.6g}, but "
            "every output has variance 1"
            if largest < 1.0
            else f"no column of variance 1 and fidelity of at least {floor:.6g} was found within "
            f"the bounds of output {output!r}"
        )
        raise InfeasibleError(f"{found}; widen the bounds of {listed}.")
    return column.whole(column.unit_between(inner, outer))


def nearest_column(column: Column, floor: float, target: Array) -> Array | None:
    """The feasible column nearest to ``target``, with its bounds and its floor kept exactly."""
    goal = np.clip(target[column.index], column.low, column.high)
    for margin in (1e-15, 1e-13, 1e-11, 1e-9):
        t = column.project(goal, floor + margin)
        # The fidelity may be summed in another order elsewhere: leave room for a rounding.
        if t is not None and column.pull @ t >= floor + min(margin, 5e-16):
            return column.whole(t)
    return None


def minimise_sqp(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    low: Array,
    high: Array,
    constraints: Sequence[Constraint],
    *,
    max_iter: int,
    tol: float,
) -> Any:
    """Sequential quadratic programming; ``function`` returns a value and its gradient."""
    return so.minimize(
        function,
        start,
        jac=True,
        method="SLSQP",
        bounds=np.column_stack((low, high)),
        constraints=[{"type": kind, "fun": f, "jac": slope} for kind, f, slope in constraints],
        options={"maxiter": max_iter, "ftol": tol},
    )


class Column:
    """The coefficients of one output: their Gram matrix, covariances with the anchor, bounds."""

    def __init__(self, R: Array, b: Array, allowed: Mask, lower: Array, upper: Array) -> None:
        self.p, self.index = len(R), np.flatnonzero(allowed)
        self.form, self.pull = R[np.ix_(self.index, self.index)], R[self.index] @ b
        self.low, self.high = lower[self.index], upper[self.index]

    def whole(self, t: Array) -> Array:
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

    def project(self, goal: Array, floor: float) -> Array | None:
        """Project onto the feasible set, then scale what is strictly inside to unit variance."""
        t, form, low, high = goal, self.form, self.low, self.high
        if abs(self.variance(t) - 1.0) > 1e-13 or self.pull @ t < floor:
            unit: Constraint = "eq", lambda x: x @ form @ x - 1.0, lambda x: 2.0 * form @ x
            solved = minimise_sqp(
                lambda x: (0.5 * float((x - goal) @ (x - goal)), x - goal),
                goal,
                low,
                high,
                [unit, self.above(floor)],
                max_iter=100,
                tol=1e-16,
            )
            t = np.clip(solved.x, low, high)
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
        return self._convex(
            lambda x: (self.variance(x), 2.0 * self.form @ x),
            np.clip(np.zeros(len(self.form)), self.low, self.high),
            [self.above(floor)] if floor > -np.inf else [],
        )

    def largest_fidelity(self, least: Array) -> float:
        """Largest fidelity with a variance of at most one, from a point that has one."""
        best = self._convex(
            lambda x: (-float(self.pull @ x), -self.pull),
            least,
            [("ineq", lambda x: 1.0 - x @ self.form @ x, lambda x: -2.0 * self.form @ x)],
        )
        return float(self.pull @ (least if best is None else best))

    def _convex(
        self,
        function: Callable[[Array], tuple[float, Array]],
        start: Array,
        constraints: Sequence[Constraint],
    ) -> Array | None:
        """Minimise within the bounds and the constraints; None if no point meets them."""
        if (self.low == self.high).all():
            met = all(f(self.low) >= -1e-12 for _, f, _ in constraints)
            return self.low.copy() if met else None
        solved = minimise_sqp(
            function, start, self.low, self.high, constraints, max_iter=500, tol=1e-14
        )
        if solved.status not in (0, 8):
            return None
        return np.asarray(np.clip(solved.x, self.low, self.high))

    def large_variance(self, floor: float, inner: Array) -> Array | None:
        """A point of C with a variance of at least one, if one can be found."""
        # Towards the corner of largest fidelity the floor is kept; infinite bounds become 1e6.
        near, far = np.maximum(self.low, -_FAR), np.minimum(self.high, _FAR)
        corner = np.where(self.pull >= 0, far, near)
        if self.variance(corner) >= 1.0:
            return corner
        if len(self.form) <= _CORNERS:
            corners = [np.where(bits, far, near) for bits in self._corners()]
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

    def _corners(self) -> product[tuple[bool, ...]]:
        return product((False, True), repeat=len(self.form))

    def _ascend(self, point: Array, near: Array, far: Array) -> Array:
        """A corner of large variance, one coefficient at a time."""
        point = point.copy()
        for i in [*range(len(point))] * 3:
            ends = [np.where(np.arange(len(point)) == i, side, point) for side in (near, far)]
            point = max(ends, key=self.variance)
        return point

    def variance_limit(self) -> float:
        """An upper bound on the variance within the bounds, exact for few coefficients."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        if not np.isfinite(size).all():
            return np.inf
        if len(self.form) <= _CORNERS:
            return max(self.variance(np.where(b, self.high, self.low)) for b in self._corners())
        return float(size @ np.abs(self.form) @ size)

    def unit_between(self, inner: Array, outer: Array) -> Array:
        """The point of unit variance on the segment between a small and a large one."""
        d = outer - inner
        a, b, c = self.variance(d), inner @ self.form @ d, self.variance(inner) - 1.0
        if a == 0:
            return inner
        share = (-b + np.sqrt(max(float(b * b - a * c), 0.0))) / a
        return np.asarray(inner + min(max(share, 0.0), 1.0) * d)
