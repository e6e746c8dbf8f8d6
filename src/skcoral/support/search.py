"""From starts to a polished candidate: descent along several routes, then the sharp finish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skcoral.results import Array, Criterion
from skcoral.support.caps import Caps, fold, unfold
from skcoral.support.interior_point import Polished, refine
from skcoral.support.objectives import (
    Loss,
    absolute_loss,
    criterion_values,
    on_spheres,
    power_loss,
    residuals,
    squared_loss,
)
from skcoral.support.optimality import multipliers, newton_squared
from skcoral.support.quasi_newton import descend
from skcoral.support.starts import hops, random_starts

# Quasi-Newton steps on D2 at most, then for each further loss: how many points go on per start, how
# many at least, and its steps at most. Sharp criteria need D2 only as a way in.
_STEPS: dict[str, float] = {"squared": np.inf, "worst": 120, "absolute": 120}
_STAGES: dict[str, list[tuple[Loss, float, int, int]]] = {
    "squared": [],
    "worst": [(power_loss(6.0), 2.0, 8, 120), (power_loss(16.0), 0.5, 8, 80)],
    "absolute": [(absolute_loss(0.05), 2.0, 8, 120), (absolute_loss(0.01), 0.5, 8, 80)],
}
# Sharp criteria: the share of the starts whose ends are refined roughly, to tell them apart.
_REFINED_SHARE = 0.25
_LEAST_REFINED = 2
# Candidates that are polished in the end.
_FINISHED = {"squared": 3, "worst": 2, "absolute": 2}
# Values this close, relatively, count as the same: sharp criteria are refined roughly at first.
_SAME = {"squared": 1e-6, "worst": 1e-3, "absolute": 1e-3}
# Half of the random starts are hops from the best few so far, in this many rounds.
_ROUNDS = 4
_PARENTS = 5
_APART = 1e-3
_DISTINCT = 1e-6
_NEWTON_SIZE = 700
_NOTHING_LEFT = 1e-13


Report = Callable[[int, float], None]


class _Reports(Protocol):
    def step(self, objective: float | None = None, lower_bound: float | None = None) -> None: ...


@dataclass(frozen=True)
class Found:
    """Candidates of a search, best first, and the best one polished.

    Attributes
    ----------
    points : ndarray of shape (n, p, m)
        Candidates, best first.
    values : ndarray of shape (n,)
        Their criterion.
    reached : ndarray
        The value that every start reached.
    U : ndarray of shape (p, m)
        The best point.
    value, worst : float
        Its criterion and its largest residual.
    half_slope : ndarray of shape (p, p)
        ``off(H)`` at the best point.
    converged : bool
        Whether the best point is stationary.
    same : float
        Relative difference up to which two values count as the same.
    """

    points: Array
    values: Array
    reached: Array
    U: Array
    value: float
    worst: float
    half_slope: Array
    converged: bool
    same: float

    @property
    def n_starts(self) -> int:
        """Starts that were tried."""
        return len(self.reached)

    @property
    def n_best(self) -> int:
        """Starts that reached the best value."""
        return int(np.sum(self.reached <= self.value + self.same * max(self.value, 1e-3)))

    def merge(self, other: Found) -> Found:
        """Candidates of both searches together."""
        points = np.concatenate((self.U[None], self.points, other.points))
        values = np.concatenate(([self.value], self.values, other.values))
        order = np.argsort(values, kind="stable")
        best = self if self.value <= other.value else other
        return replace(
            best,
            points=points[order],
            values=values[order],
            reached=np.concatenate((self.reached, other.reached)),
        )


def explore(
    space: Caps,
    found: Found,
    n: int,
    rng: np.random.Generator,
    criterion: Criterion,
    max_iter: int,
    progress: _Reports,
) -> Found:
    """Search from ``n`` more starts: random ones, then hops from the best candidates so far."""
    rounds = np.array_split(np.arange(n // 2), _ROUNDS)
    drawn = random_starts(space, n - n // 2, rng)
    found = found.merge(search_from(space, drawn, 0, criterion, max_iter, progress))
    for size in map(len, rounds):
        if size:
            parents = found.points[_distinct(found.values, _PARENTS, _APART)]
            starts = hops(space, parents, size, rng)
            more = search_from(space, starts, size, criterion, max_iter, progress, detours=False)
            found = found.merge(more)
    return found


def search_from(
    space: Caps,
    starts: Array,
    n_structured: int,
    criterion: Criterion,
    max_iter: int,
    progress: _Reports,
    *,
    keep: int = 0,
    detours: bool = True,
) -> Found:
    """Descend from every start; the first ``keep`` of them also stay candidates as they are."""

    def report(_: int, value: float) -> None:
        # The descent measures D2, which is no value of the other criteria.
        progress.step(value if criterion == "squared" else None)

    steps = int(min(max_iter, _STEPS[criterion]))
    points, owner = _all_routes(space, starts, n_structured, steps, report, detours)
    values = criterion_values(criterion, residuals(space, points))
    reached = np.full(len(starts), np.inf)
    np.minimum.at(reached, owner, values)
    for loss, share, least, limit in _STAGES[criterion]:
        chosen = np.argsort(values, kind="stable")[: max(least, int(share * len(starts)))]
        owner = owner[chosen]
        ended = descend(
            on_spheres(space, loss),
            unfold(space, points[chosen]).reshape(len(chosen), -1),
            tol=1e-6,
            max_iter=min(max_iter, limit),
        )
        moved = _points(space, ended.Z)
        moved_values = criterion_values(criterion, residuals(space, moved))
        better = moved_values < values[chosen]
        points = np.where(better[:, None, None], moved, points[chosen])
        values = np.where(better, moved_values, values[chosen])
        np.minimum.at(reached, owner, values)
        progress.step(float(values.min()))
    if criterion != "squared" and values.min() > _NOTHING_LEFT:
        order = np.argsort(values, kind="stable")
        count = max(_LEAST_REFINED, int(_REFINED_SHARE * len(starts)))
        for k in order[_distinct(values[order], count)]:
            rough = refine(space, points[k], criterion, rough=True)
            points[k], values[k] = rough.U, rough.value
        np.minimum.at(reached, owner, values)
        progress.step(float(values.min()))
    if keep:
        points = np.concatenate((points, starts[:keep]))
        given = criterion_values(criterion, residuals(space, starts[:keep]))
        values = np.concatenate((values, given))
    order = np.argsort(values, kind="stable")
    points, values = points[order], values[order]
    E = residuals(space, points[:1])[0]
    return Found(
        points,
        values,
        reached,
        points[0],
        float(values[0]),
        float(np.abs(E).max()),
        E,
        False,
        _SAME[criterion],
    )


def _all_routes(
    space: Caps,
    starts: Array,
    n_structured: int,
    max_iter: int,
    report: Report,
    with_detours: bool,
) -> tuple[Array, NDArray[np.intp]]:
    """Descend on D2 directly, by way of no floors, and by way of higher floors.

    Returns the points that were reached and the start that each of them belongs to.
    """
    function = on_spheres(space, squared_loss)
    free = (space.floors > 0) & (space.floors < 1)
    detours: list[Array | None] = [None]
    if with_detours and free.any():
        detours += [
            np.where(free, 0.0, space.floors),
            np.where(free, 0.5 + 0.5 * space.floors, space.floors),
        ]
    reached = []
    structured = (np.arange(len(starts)) < n_structured)[:, None, None]
    for floors in detours:
        X = np.where(structured, unfold(space, space.onto_caps(starts)), starts)
        if floors is not None:
            other = replace(space, floors=floors)
            begin = np.where(structured, unfold(other, other.onto_caps(starts)), starts)
            ended = descend(
                on_spheres(other, squared_loss),
                begin.reshape(len(starts), -1),
                tol=1e-5,
                max_iter=max_iter,
            )
            X = unfold(space, space.onto_caps(_points(other, ended.Z)), 1e-2)
        ended = descend(
            function,
            X.reshape(len(starts), -1),
            tol=1e-7,
            max_iter=max_iter,
            on_iteration=report,
        )
        reached.append(_points(space, ended.Z))
    return np.concatenate(reached), np.tile(np.arange(len(starts)), len(reached))


def _points(space: Caps, Z: Array) -> Array:
    X = Z.reshape(len(Z), space.p, space.m)
    return space.onto_caps(fold(space, X / np.linalg.norm(X, axis=2, keepdims=True)))


def sharpen(space: Caps, found: Found, criterion: Criterion, *, only_best: bool = False) -> Found:
    """Polish the best few distinct candidates; the answer is never worse than the best of them."""
    if found.worst <= _NOTHING_LEFT:
        return replace(found, converged=True)
    chosen = _distinct(found.values, 1 if only_best else _FINISHED[criterion])
    candidates = found.points[chosen]
    if criterion == "squared":
        options = _polish_squared(space, candidates)
    else:
        options = [refine(space, U, criterion) for U in candidates]
    best = min(options, key=lambda option: option.value)
    reached = found.reached.copy()
    # A refined start has reached what its refinement reached.
    for option, original in zip(options, found.values[chosen], strict=True):
        same = np.abs(reached - original) <= _DISTINCT * max(original, 1e-3)
        reached[same] = np.minimum(reached[same], option.value)
    return replace(
        found,
        reached=reached,
        U=best.U,
        value=best.value,
        worst=float(np.abs(residuals(space, best.U[None])).max()),
        half_slope=best.half_slope,
        converged=best.converged,
    )


def _distinct(values: Array, count: int, apart: float = _DISTINCT) -> NDArray[np.intp]:
    """Positions of the few best values that differ from one another."""
    chosen: list[int] = []
    for k, value in enumerate(values):
        if all(abs(value - values[c]) > apart * max(value, 1e-3) for c in chosen):
            chosen.append(k)
        if len(chosen) == count:
            break
    return np.asarray(chosen, dtype=np.intp)


def _polish_squared(space: Caps, points: Array) -> list[Polished]:
    ended = descend(
        on_spheres(space, squared_loss),
        unfold(space, points, 0.0).reshape(len(points), -1),
        tol=1e-9,
        max_iter=200,
    )
    out = []
    for before, after, slope in zip(points, _points(space, ended.Z), ended.slope, strict=True):
        pair = np.stack((before, after))
        U = pair[int(np.argmin(squared_loss(residuals(space, pair))[0]))]
        if space.valid.sum() <= _NEWTON_SIZE:
            U = newton_squared(space, U)
        E = residuals(space, U[None])
        value = float(squared_loss(E)[0][0])
        stationary = min(slope, multipliers(space, U, E[0], 1e-7).stationarity) <= 1e-6
        out.append(Polished(U, value, E[0], bool(stationary)))
    return out
