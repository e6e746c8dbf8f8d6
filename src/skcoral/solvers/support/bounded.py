"""Supports whose coefficients also have signs or intervals to keep.

The unrestricted answer is returned if it already keeps them. Otherwise every start descends with a
penalty on what leaves the bounds, and the best few ends are made feasible column by column and
refined by the interior-point method. Bounds only shrink the feasible set, so the lower bounds of
the unrestricted problem stay valid.

A column is feasible if it lies in the convex set C = {bounds, fidelity at least the floor} and has
unit variance. C is connected, so a feasible column exists exactly when C holds points with a
variance of at most one and of at least one. The points of C that minimise ``½ tᵀRt − s f``, for
its fidelity f and s ≥ 0, begin at the least variance, and both variance and fidelity rise with s:
the one of unit variance has the largest fidelity of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg as sla
import scipy.optimize as so

from skcoral.core import criteria
from skcoral.core.arrays import Array, Mask
from skcoral.core.criteria import Criterion
from skcoral.core.solution import Solution, SupportSearch
from skcoral.core.validation import listing
from skcoral.exceptions import InfeasibleError, InvalidArgumentError
from skcoral.solvers.support.caps import Caps
from skcoral.solvers.support.interior_point import HalfSpaces, refine
from skcoral.solvers.support.objectives import SQUARES, Loss, descended, residuals
from skcoral.solvers.support.search import LARGEST_NEWTON, Ends, distinct, random_starts
from skcoral.solvers.support.solver import SupportProblem, solve_unbounded

# One loss per round of the penalised descents, whose weight grows threefold in each. Their ends are
# repaired, so that they need not be exact: multipliers gained nothing in 100 problems. The squares
# come first: without them a problem of six variables ended 4 % higher for the worst pair. Then the
# losses sharpen: with one for all rounds, a problem of nine variables ended 26 % higher.
_LOSSES: dict[str, list[Loss]] = {
    "squared": [SQUARES] * 4,
    "worst": [SQUARES, ("worst", 1 / 6), ("worst", 1 / 30), ("worst", 1 / 200)],
    "absolute": [SQUARES, ("absolute", 0.1), ("absolute", 0.01), ("absolute", 1e-3)],
}
_STEPS, _FINE = 120, 1e-7  # of a descent at most, and the relative gain that ends it
# Distinct ends that are made feasible, and the best of them that are refined: with 3 one of 100
# problems ended 0.7 % higher, with 10 none ended lower.
_REPAIRED, _REFINED = 24, 6
# Room that the interior-point method has, in turn: the last one is what the answer may lose, and
# without the second 7 of 100 problems ended higher.
_WIDTHS = (1e-3, 1e-6, 1e-9)
_POSITIVE = 1e-12  # a floor that keeps fidelities positive: with bounds, signs are not free
_FAR = 1e6  # stands for an infinite bound, and for an s at which only the fidelity counts
_SWEEPS = 3  # over the coefficients, one after the other; what is found last is a corner by then
# Newton steps of a repair, of which the first ones move coefficients off their bounds as well. From
# close by a handful of steps is enough; a repair that takes more is a target to be given up.
_REPAIRS, _OFF_BOUNDS = 40, 10
_UNIT = 1e-13  # error of a variance that counts as none
# Above a floor: fidelities may be summed in another order elsewhere, which is a rounding.
_ROOM, _AIM = 5e-16, 1e-14


def _within_support(
    problem: SupportProblem, bounds: tuple[Array, Array]
) -> tuple[Array, Array, Mask]:
    """The two matrices of coefficient bounds, zero off the support, and what they leave of it."""
    (lower, upper), mask = bounds, problem.mask
    sources, outputs = problem.asked.sources.names, problem.settings.names
    for i, j in np.argwhere(lower > upper)[:1]:
        raise InvalidArgumentError(
            f"source {sources[i]!r} in output {outputs[j]!r}: the lower bound "
            f"{lower[i, j]:g} exceeds the upper bound {upper[i, j]:g}."
        )
    for i, j in np.argwhere(~mask & ((lower > 0) | (upper < 0)))[:1]:
        raise InfeasibleError(
            f"source {sources[i]!r} may not enter output {outputs[j]!r} (it is off the "
            f"support), but its coefficient is asked to lie in [{lower[i, j]:g}, {upper[i, j]:g}]."
        )
    lower, upper = np.where(mask, lower, 0.0), np.where(mask, upper, 0.0)
    # A coefficient that may only be zero is off the support, but something has to stay.
    free = mask & ((lower != 0) | (upper != 0))
    return lower, upper, np.where(free.any(axis=0), free, mask)


def solve_within(problem: SupportProblem, bounds: tuple[Array, Array]) -> Solution:
    """Solve a support problem whose coefficients have bounds."""
    R, floors, criterion = problem.R, problem.floors, problem.settings.criterion
    lower, upper, mask = _within_support(problem, bounds)
    problem = replace(problem, mask=mask)
    # A feasible column for every output, or the reason why there is none.
    columns = [
        BoundedColumn(R, *parts)
        for parts in zip(problem.unit_anchors.T, mask.T, lower.T, upper.T, strict=True)
    ]
    sources = problem.asked.sources.names
    safe = np.column_stack(
        [
            feasible_column(column, float(floor), name, sources)
            for column, floor, name in zip(columns, floors, problem.settings.names, strict=True)
        ]
    )
    free = solve_unbounded(problem)
    if np.all((lower <= free.T) & (upper >= free.T)):
        return free
    # Penalised descents nearly keep the bounds; their ends are made feasible, and the best refined.
    space = replace(problem.space, floors=np.maximum(problem.space.floors, _POSITIVE))
    rng = np.random.default_rng(problem.random_state)
    drawn = random_starts(space, max(problem.n_starts - 2, 0), rng)
    starts = space.onto_caps(np.concatenate((space.points(np.stack((free.T, safe))), drawn)))
    points = _penalised(space, starts, lower, upper, criterion)
    ends = Ends.of(points, criteria.values(criterion, residuals(space, points)))
    ends_T = space.transform(ends.points[distinct(ends.values, _REPAIRED)])
    warm = () if problem.warm is None else (problem.warm,)
    near = [_repaired(columns, T, floors) for T in (*warm, *ends_T)]
    candidates = [safe, *(T for T in near if T is not None)]

    def residual(T: Array) -> float:
        return criteria.value(criterion, T.T @ R @ T)

    candidates.sort(key=residual)
    if mask.sum() <= LARGEST_NEWTON:
        for T in candidates[:_REFINED]:
            candidates += _refined(problem, space, columns, (lower, upper), T)
    best = min(candidates, key=residual)
    return replace(
        free,
        T=best,
        correlation=0.5 * (best.T @ R @ best + (best.T @ R @ best).T),
        fidelity=problem.fidelity(best),
        objective=residual(best),
        slopes=np.full(len(floors), np.nan),
        search=SupportSearch(n_starts=len(starts), n_best=1),
    )


def _repaired(columns: Sequence[BoundedColumn], T: Array, floors: Array) -> Array | None:
    """A feasible transformation near ``T``, column by column; None if one has none."""
    near = [column.repaired(t, rho) for column, t, rho in zip(columns, T.T, floors, strict=True)]
    feasible = [t for t in near if t is not None]
    return np.column_stack(feasible) if len(feasible) == len(columns) else None


def _penalised(
    space: Caps, starts: Array, lower: Array, upper: Array, criterion: Criterion
) -> Array:
    """Points (S, k, m) that nearly keep the bounds, by penalties on what leaves them."""
    U, weight = starts, 5.0
    for loss in _LOSSES[criterion]:

        def penalty(U: Array, weight: float = weight) -> tuple[Array, Array]:
            t = np.matmul(U.swapaxes(0, 1), space.axes).swapaxes(0, 1)
            outside = t - np.clip(t, lower.T, upper.T)
            value = 0.5 * weight * np.einsum("spm,spm->s", outside, outside)
            back = np.matmul(outside.swapaxes(0, 1), space.axes.swapaxes(1, 2))
            return value, weight * back.swapaxes(0, 1)

        U, _ = descended(space, loss, U, tol=_FINE, max_iter=_STEPS, penalty=penalty)
        weight *= 3.0
    return U


def _refined(
    problem: SupportProblem,
    space: Caps,
    columns: Sequence[BoundedColumn],
    bounds: tuple[Array, Array],
    T: Array,
) -> list[Array]:
    """Feasible transformations on the way from a feasible one to a stationary one.

    The interior-point method needs room in all directions, so intervals and floors are widened,
    less and less, and every end is made feasible again.
    """
    free = space.floors < 1.0
    without_floors = replace(space, floors=np.where(free, 0.0, 1.0))
    feasible: list[Array] = []
    for width in _WIDTHS:
        wider = (bounds[0] - width, bounds[1] + width)
        within = _half_spaces(space, wider, space.floors - width)
        start = space.coordinates(T[None])[0]
        end = refine(without_floors, start, problem.settings.criterion, within=within)
        repaired = _repaired(columns, space.transform(end.U[None])[0], problem.floors)
        if repaired is None:
            break
        T = repaired
        feasible.append(T)
    return feasible


def _half_spaces(space: Caps, bounds: tuple[Array, Array], floors: Array) -> HalfSpaces:
    """The intervals of the coefficients ``t_ij = axes_ji · u_j``, and the floors."""
    parts = [(np.arange(space.k), np.eye(space.m)[np.zeros(space.k, int)], floors)]
    for sign, ends in zip((1.0, -1.0), bounds, strict=True):
        i, j = np.nonzero(np.isfinite(ends) & space.mask)
        parts.append((j, sign * space.axes[j, :, i], sign * ends[i, j]))
    return HalfSpaces(*(np.concatenate(part) for part in zip(*parts, strict=True)))


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
        for step in range(_REPAIRS):
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
    # From the least variance towards the anchor, until the variance is one.
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
