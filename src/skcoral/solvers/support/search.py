"""From many starts to candidates: descent along several routes, then the interior-point method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.matrix import Memory
from skcoral.solvers.exact import best_exact, kept_threshold
from skcoral.solvers.support.caps import Caps, fold, unfold
from skcoral.solvers.support.exactness import cholesky_within
from skcoral.solvers.support.interior_point import Candidate, candidate, refine
from skcoral.solvers.support.objectives import (
    Loss,
    absolute_loss,
    on_spheres,
    power_loss,
    residuals,
    squared_loss,
)
from skcoral.solvers.support.quasi_newton import Descent, descend

# Quasi-Newton steps on D2 at most, then for each further loss: how many points go on per start, how
# many at least, and its steps at most. The other criteria need D2 only to begin with.
_STEPS: dict[str, float] = {"squared": np.inf, "worst": 120, "absolute": 120}
_STAGES: dict[str, list[tuple[Loss, float, int, int]]] = {
    "squared": [],
    "worst": [(power_loss(6.0), 2.0, 8, 120), (power_loss(16.0), 0.5, 8, 80)],
    "absolute": [(absolute_loss(0.05), 2.0, 8, 120), (absolute_loss(0.01), 0.5, 8, 80)],
}
# Worst pair and absolute sum: the share of the starts whose ends are refined roughly.
_REFINED_SHARE = 0.25
_LEAST_REFINED = 2
# Candidates that are refined in the end.
_FINISHED = {"squared": 3, "worst": 2, "absolute": 2}
# Values this close, relatively, count as the same: some are refined roughly at first.
_SAME = {"squared": 1e-6, "worst": 1e-3, "absolute": 1e-3}
# Half of the random starts lie between the best few so far and random points, in rounds.
_ROUNDS = 4
_PARENTS = 5
_APART = 1e-3
_DISTINCT = 1e-6
_LARGEST_NEWTON = 700
_NOTHING_LEFT = 1e-13

Callback = Callable[[int, float, float], object]


class Progress:
    """Numbers the steps for the user's callback and remembers the best of both sides."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self.iteration, self.objective, self.lower_bound = 0, np.inf, 0.0

    def step(self, objective: float = np.inf, lower_bound: float = 0.0) -> bool:
        """Report one more step; return whether the user wants no more of them."""
        self.iteration += 1
        self.objective = min(self.objective, objective)
        self.lower_bound = max(self.lower_bound, lower_bound)
        if self._callback is None:
            return False
        return self._callback(self.iteration, self.objective, self.lower_bound) is True


@dataclass(frozen=True)
class Found:
    """Candidates of a search, best first, and the best one refined."""

    points: Array  # (n, k, m)
    values: Array  # their criterion
    reached: Array  # the value that every start reached
    best: Candidate

    def merge(self, other: Found) -> Found:
        """Candidates of both searches together."""
        points = np.concatenate((self.best.U[None], self.points, other.points))
        values = np.concatenate(([self.best.value], self.values, other.values))
        order = np.argsort(values, kind="stable")
        return Found(
            points[order],
            values[order],
            np.concatenate((self.reached, other.reached)),
            self.best if self.best.value <= other.best.value else other.best,
        )


@dataclass(frozen=True)
class Search:
    """Descents from many starts, all in one array, for one problem."""

    space: Caps
    criterion: Criterion
    max_iter: int
    progress: Progress

    def explore(self, found: Found, n: int, rng: np.random.Generator) -> Found:
        """Search from ``n`` more starts: random ones, then some near the best candidates so far."""
        found = found.merge(self.run(random_starts(self.space, n - n // 2, rng)))
        for size in map(len, np.array_split(np.arange(n // 2), _ROUNDS)):
            if size:
                parents = found.points[distinct(found.values, _PARENTS, _APART)]
                starts = midpoints(self.space, parents, size, rng)
                found = found.merge(self.run(starts, on_caps=True, detours=False))
        return found

    def run(
        self, starts: Array, *, on_caps: bool = False, keep: int = 0, detours: bool = True
    ) -> Found:
        """Descend from every start; the first ``keep`` of them also stay candidates as they are.

        Starts are points of the caps, or of the spheres that fold onto them.
        """
        points, owner = self._all_routes(starts, on_caps, detours)
        values = self._values(points)
        reached = np.full(len(starts), np.inf)
        np.minimum.at(reached, owner, values)
        for loss, share, least, limit in _STAGES[self.criterion]:
            chosen = np.argsort(values, kind="stable")[: max(least, int(share * len(starts)))]
            owner, points, values = owner[chosen], points[chosen], values[chosen]
            ended = self._descend(loss, unfold(self.space, points), 1e-6, limit)
            moved = self._points(ended)
            moved_values = self._values(moved)
            better = moved_values < values
            points = np.where(better[:, None, None], moved, points)
            values = np.where(better, moved_values, values)
            np.minimum.at(reached, owner, values)
            self.progress.step(float(values.min()))
        if self.criterion != "squared" and values.min() > _NOTHING_LEFT:
            order = np.argsort(values, kind="stable")
            count = max(_LEAST_REFINED, int(_REFINED_SHARE * len(starts)))
            for k in order[distinct(values[order], count)]:
                rough = refine(self.space, points[k], self.criterion, rough=True)
                points[k], values[k] = rough.U, rough.value
            np.minimum.at(reached, owner, values)
            self.progress.step(float(values.min()))
        points = np.concatenate((points, starts[:keep]))
        values = np.concatenate((values, self._values(starts[:keep])))
        order = np.argsort(values, kind="stable")
        best = candidate(self.space, points[order[0]], self.criterion)
        return Found(points[order], values[order], reached, best)

    def polish(self, found: Found, *, only_best: bool = False) -> Found:
        """Refine the best few distinct candidates; never makes the best of them worse."""
        if found.best.worst <= _NOTHING_LEFT:
            return replace(found, best=replace(found.best, converged=True))
        chosen = distinct(found.values, 1 if only_best else _FINISHED[self.criterion])
        if self.criterion == "squared" and self.space.valid.sum() > _LARGEST_NEWTON:
            ends = self._descend_further(found.points[chosen])
        else:
            ends = [refine(self.space, U, self.criterion) for U in found.points[chosen]]
        reached = found.reached.copy()
        # A refined start has reached what its refinement reached.
        for end, original in zip(ends, found.values[chosen], strict=True):
            same = np.abs(reached - original) <= _DISTINCT * max(original, 1e-3)
            reached[same] = np.minimum(reached[same], end.value)
        return replace(found, reached=reached, best=min(ends, key=lambda end: end.value))

    def n_best(self, found: Found) -> int:
        """Starts that reached the best value."""
        best = found.best.value
        return int(np.sum(found.reached <= best + _SAME[self.criterion] * max(best, 1e-3)))

    def _descend_further(self, points: Array) -> list[Candidate]:
        """Quasi-Newton to the end, where Newton's equations are too large."""
        ended = self._descend(squared_loss, unfold(self.space, points, 0.0), 1e-9, 200)
        return [
            candidate(self.space, U, self.criterion, converged=bool(slope <= 1e-6))
            for U, slope in zip(self._points(ended), ended.slope, strict=True)
        ]

    def _all_routes(
        self, starts: Array, on_caps: bool, detours: bool
    ) -> tuple[Array, NDArray[np.intp]]:
        """Descend on D2 directly, by way of no floors, and by way of higher floors.

        Returns the points that were reached and the start that each of them belongs to.
        """
        space = self.space
        free = (space.floors > 0) & (space.floors < 1)
        routes = [space]
        if detours and free.any():
            for floors in (0.0, 0.5 + 0.5 * space.floors):
                routes.append(replace(space, floors=np.where(free, floors, space.floors)))
        reached, steps = [], _STEPS[self.criterion]
        for route in routes:
            X = unfold(route, route.onto_caps(starts)) if on_caps else starts
            if route is not space:
                first = self._descend(squared_loss, X, 1e-5, steps, route)
                X = unfold(space, space.onto_caps(self._points(first, route)), 1e-2)
            ended = self._descend(squared_loss, X, 1e-7, steps, report=True)
            reached.append(self._points(ended))
        return np.concatenate(reached), np.tile(np.arange(len(starts)), len(reached))

    def _descend(
        self,
        loss: Loss,
        X: Array,
        tol: float,
        limit: float,
        space: Caps | None = None,
        *,
        report: bool = False,
    ) -> Descent:
        def tell(_: int, value: float) -> None:
            # The descent measures D2, which is no value of the other criteria.
            self.progress.step(value if self.criterion == "squared" else np.inf)

        return descend(
            on_spheres(space or self.space, loss),
            X.reshape(len(X), -1),
            tol=tol,
            max_iter=int(min(self.max_iter, limit)),
            on_iteration=tell if report else None,
        )

    def _points(self, ended: Descent, space: Caps | None = None) -> Array:
        space = space or self.space
        X = ended.Z.reshape(len(ended.Z), space.k, space.m)
        return space.onto_caps(fold(space, X / np.linalg.norm(X, axis=2, keepdims=True)))

    def _values(self, points: Array) -> Array:
        return criteria.values(self.criterion, residuals(self.space, points))


def distinct(values: Array, count: int, apart: float = _DISTINCT) -> NDArray[np.intp]:
    """Positions of the few best values that differ from one another."""
    chosen: list[int] = []
    for k, value in enumerate(values):
        if all(abs(value - values[c]) > apart * max(value, 1e-3) for c in chosen):
            chosen.append(k)
        if len(chosen) == count:
            break
    return np.asarray(chosen, dtype=np.intp)


def structured_starts(space: Caps, B: Array, warm: Array, memory: Memory) -> Array:
    """Points (S, k, m): warm ones, then the anchors and masked exact decorrelators of them.

    In this order: the given transformations; a Cholesky factor of R⁻¹ that fits the support, if
    there is one; the exact decorrelator with the best mean fidelity under the floors, or the one
    with the best common fidelity; the anchors; ZCA-cor; Cholesky factors in input order and
    backwards. ``B`` are the anchors, of unit length.
    """
    candidates = list(warm)
    fitting = cholesky_within(space.R, space.mask) if space.k == space.p else None
    if fitting is not None:
        candidates.append(fitting[0])
    C = B.T @ space.R @ B
    values, vectors = np.linalg.eigh(C)
    candidates.append(B @ _dense_exact(C, space.floors, memory))
    candidates.append(B)
    candidates.append(B @ (vectors / np.sqrt(values)) @ vectors.T)
    candidates.append(B @ np.linalg.inv(np.linalg.cholesky(C)).T)
    backwards = np.linalg.cholesky(C[::-1, ::-1])[::-1, ::-1]
    candidates.append(B @ np.linalg.inv(backwards).T)
    return space.points(np.stack(candidates))


def random_starts(space: Caps, n: int, rng: np.random.Generator) -> Array:
    """Points (n, k, m) midway between the sources and uniform points on the spheres."""
    sources = np.zeros((1, space.k, space.m))
    sources[..., 0] = 1.0
    return midpoints(space, sources, n, rng)


def midpoints(space: Caps, points: Array, n: int, rng: np.random.Generator) -> Array:
    """Points (n, k, m) midway between given ones, taken in turn, and uniform ones."""
    uniform = _unit(np.where(space.valid, rng.normal(size=(n, space.k, space.m)), 0.0))
    # The factor keeps a midpoint for opposite points, which a column without freedom has often.
    middle = (1.0 + 1e-9) * points[np.arange(n) % len(points)] + uniform
    return _unit(middle)


def _unit(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=2, keepdims=True))


def _dense_exact(R: Array, floors: Array, memory: Memory) -> Array:
    below_one = np.minimum(floors, 1.0 - 1e-9)
    best = best_exact(R, below_one)
    if best.feasible:
        return np.asarray(best.T)
    return np.asarray(kept_threshold(R, memory).T)
