"""Supports whose coefficients also have signs or intervals to keep.

The unrestricted answer is returned if it already keeps them. Otherwise every start follows an
augmented Lagrangian on the caps, and the best few are made feasible column by column and refined by
the interior-point method. Bounds only shrink the feasible set, so the lower bounds of the
unrestricted problem stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import Array, Index, Mask
from skcoral.core.criteria import Criterion
from skcoral.core.measures import residual_by
from skcoral.core.solution import Solution
from skcoral.exceptions import InfeasibleError, InvalidArgumentError
from skcoral.solvers.support.bounded_columns import Column, feasible_column, nearest_column
from skcoral.solvers.support.caps import Caps
from skcoral.solvers.support.interior_point import Intervals, refine
from skcoral.solvers.support.objectives import (
    Loss,
    absolute_loss,
    descended,
    power_loss,
    residuals,
    squared_loss,
)
from skcoral.solvers.support.search import distinct, random_starts
from skcoral.solvers.support.solver import SupportProblem, solve_unbounded

# One loss per round of the augmented Lagrangian, whose weight grows threefold in each. The squares
# come first: without them a problem of six variables ended 4 % higher for the worst pair. Then the
# losses sharpen: with one for all rounds, a problem of nine variables ended 26 % higher.
_LOSSES: dict[str, list[Loss]] = {
    "squared": [squared_loss] * 7,
    "worst": [squared_loss] * 2 + [power_loss(q) for q in (6.0, 12.0, 30.0, 80.0, 200.0)],
    "absolute": [squared_loss] * 2 + [absolute_loss(w) for w in (0.1, 0.03, 0.01, 3e-3, 1e-3)],
}
_STEPS, _FINE = 120, 1e-7  # of a descent at most, and the relative gain that ends it
_REPAIRED = 6  # candidates that are made feasible and refined
_LARGEST_NEWTON = 700  # coefficients, one equation each
_WIDTHS = (1e-3, 1e-6, 1e-9)  # of the room that the interior-point method has, in turn
_POSITIVE = 1e-12  # a floor that keeps fidelities positive: with bounds, signs are not free


def _within_support(
    problem: SupportProblem, bounds: tuple[Array, Array]
) -> tuple[Array, Array, Mask]:
    """The two matrices of coefficient bounds, zero off the support, and what they leave of it."""
    (lower, upper), mask, sources = bounds, problem.mask, problem.sources or problem.names
    for i, j in np.argwhere(lower > upper)[:1]:
        raise InvalidArgumentError(
            f"source {sources[i]!r} in output {problem.names[j]!r}: the lower bound "
            f"{lower[i, j]:g} exceeds the upper bound {upper[i, j]:g}."
        )
    for i, j in np.argwhere(~mask & ((lower > 0) | (upper < 0)))[:1]:
        raise InfeasibleError(
            f"source {sources[i]!r} may not enter output {problem.names[j]!r} (it is off the "
            f"support), but its coefficient is asked to lie in [{lower[i, j]:g}, {upper[i, j]:g}]."
        )
    lower, upper = np.where(mask, lower, 0.0), np.where(mask, upper, 0.0)
    # A coefficient that may only be zero is off the support, but something has to stay.
    kept = mask & ((lower != 0) | (upper != 0))
    return lower, upper, np.where(kept.any(axis=0), kept, mask)


def solve_within(problem: SupportProblem, bounds: tuple[Array, Array]) -> Solution:
    """Solve a support problem whose coefficients have bounds."""
    R, floors, criterion, B = problem.R, problem.floors, problem.criterion, problem.unit_anchors
    lower, upper, mask = _within_support(problem, bounds)
    problem = replace(problem, mask=mask)
    columns = [Column(R, *parts) for parts in zip(B.T, mask.T, lower.T, upper.T, strict=True)]
    sources = problem.sources or problem.names
    safe = np.column_stack(
        [
            feasible_column(column, float(floor), name, sources)
            for column, floor, name in zip(columns, floors, problem.names, strict=True)
        ]
    )
    free = solve_unbounded(problem)
    if np.all((lower <= free.T) & (upper >= free.T)):
        return free
    space = replace(problem.space, floors=np.maximum(problem.space.floors, _POSITIVE))
    warm = problem.warm_starts()
    stack = np.concatenate((np.stack((free.T, safe)), warm))
    rng = np.random.default_rng(problem.random_state)
    drawn = random_starts(space, max(problem.n_starts - 2, 0), rng)
    starts = space.onto_caps(np.concatenate((space.points(stack), drawn)))
    points = _augmented(space, starts, lower, upper, criterion)
    candidates = [safe, *[w for w in warm if _inside(problem, w, lower, upper)]]
    nearest = [
        _repaired(columns, T, floors) for T in _ranked(space, points, lower, upper, criterion)
    ]
    candidates += [T for T in nearest if T is not None]
    candidates.sort(key=lambda T: residual_by(criterion, R, T))
    if mask.sum() <= _LARGEST_NEWTON:
        for T in candidates[:_REPAIRED]:
            candidates += _refined(problem, space, columns, (lower, upper), T)
    best = min(candidates, key=lambda T: residual_by(criterion, R, T))
    search = replace(
        free.search, n_starts=len(starts), n_best=1, stationarity=None, bounds_bind=True
    )
    return replace(
        free,
        T=best,
        correlation=0.5 * (best.T @ R @ best + (best.T @ R @ best).T),
        fidelity=problem.fidelity(best),
        objective=residual_by(criterion, R, best),
        slopes=np.full(len(floors), np.nan),
        search=search,
    )


def _repaired(columns: Sequence[Column], T: Array, floors: Array) -> Array | None:
    """The feasible transformation nearest to ``T``, column by column; None if one has none."""
    nearest = [nearest_column(*one) for one in zip(columns, floors, T.T, strict=True)]
    feasible = [column for column in nearest if column is not None]
    return np.column_stack(feasible) if len(feasible) == len(columns) else None


def _inside(problem: SupportProblem, T: Array, lower: Array, upper: Array) -> bool:
    return bool(
        np.all((lower <= T) & (upper >= T))
        and np.all(problem.fidelity(T) >= problem.floors)
        and np.allclose(np.einsum("ij,ij->j", T, problem.R @ T), 1.0, rtol=0, atol=1e-12)
    )


def _augmented(
    space: Caps, starts: Array, lower: Array, upper: Array, criterion: Criterion
) -> Array:
    """Points (S, k, m) that nearly keep the bounds, from an augmented Lagrangian."""
    low, high = lower.T, upper.T
    multipliers = np.zeros((len(starts), *low.shape))
    weight = 5.0

    def excess(U: Array, rows: Index) -> Array:
        """By how much shifted coefficients leave their intervals, times the weight."""
        t = np.matmul(U.swapaxes(0, 1), space.axes).swapaxes(0, 1)
        moved = t + multipliers[rows] / weight
        return np.asarray(weight * (moved - np.clip(moved, low, high)))

    def penalty(U: Array, rows: Index) -> tuple[Array, Array]:
        outside = excess(U, rows)
        value = np.einsum("spm,spm->s", outside, outside) / (2.0 * weight)
        back = np.matmul(outside.swapaxes(0, 1), space.axes.swapaxes(1, 2))
        return value, back.swapaxes(0, 1)

    U = starts
    for loss in _LOSSES[criterion]:
        U, _ = descended(space, loss, U, tol=_FINE, max_iter=_STEPS, penalty=penalty)
        multipliers = excess(U, np.arange(len(U)))
        weight *= 3.0
    return U


def _ranked(
    space: Caps, points: Array, lower: Array, upper: Array, criterion: Criterion
) -> list[Array]:
    """The best distinct transformations, those that nearly keep the bounds first."""
    T = space.transform(points)
    violation = np.maximum(lower - T, T - upper).max(axis=(1, 2))
    value = criteria.values(criterion, residuals(space, points))
    order = np.lexsort((value, violation > 1e-4))
    return list(T[order[distinct(value[order], _REPAIRED)]])


def _refined(
    problem: SupportProblem,
    space: Caps,
    columns: Sequence[Column],
    bounds: tuple[Array, Array],
    T: Array,
) -> list[Array]:
    """Feasible transformations on the way from a feasible one to a stationary one.

    The interior-point method needs room in all directions, so intervals and floors are widened,
    less and less, and every end is made feasible again.
    """
    feasible: list[Array] = []
    for width in _WIDTHS:
        floors = np.where(space.floors < 1, np.maximum(space.floors - width, 0.0), 1.0)
        wider = replace(space, floors=floors)
        intervals = Intervals.of(wider, bounds[0] - width, bounds[1] + width, -width)
        start = space.coordinates(T[None])[0]
        end = refine(wider, start, problem.criterion, intervals=intervals)
        repaired = _repaired(columns, space.transform(end.U[None])[0], problem.floors)
        if repaired is None:
            break
        T = repaired
        feasible.append(T)
    return feasible
