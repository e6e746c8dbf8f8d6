"""From many starts to candidates: descent along three routes, then the interior-point method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.problem import Memory
from skcoral.solvers.exact import best_exact, kept_threshold
from skcoral.solvers.support.caps import Caps, fold, unfold
from skcoral.solvers.support.exactness import cholesky_within
from skcoral.solvers.support.interior_point import Candidate, candidate, refine
from skcoral.solvers.support.objectives import LOSSES, Loss, on_spheres, residuals, squared_loss
from skcoral.solvers.support.quasi_newton import Descent, descend

# Steps of a descent: the ends of smoothed losses are only starts of the interior-point method.
_STEPS: dict[str, float] = {"squared": np.inf, "worst": 120, "absolute": 120}
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
_APART = 1e-3  # parents differ by this, relatively
_DISTINCT = 1e-6  # relative
_LARGEST_NEWTON = 700  # coefficients, one equation each
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
    """What every start led to, best first: points (n, k, m) and their criterion."""

    points: Array
    values: Array

    @classmethod
    def of(cls, points: Array, values: Array) -> Found:
        """Put points in the order of their values."""
        order = np.argsort(values, kind="stable")
        return cls(points[order], values[order])

    def merge(self, other: Found) -> Found:
        """The ends of both searches together."""
        points = np.concatenate((self.points, other.points))
        return Found.of(points, np.concatenate((self.values, other.values)))


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

    def run(self, starts: Array, *, on_caps: bool = False, detours: bool = True) -> Found:
        """Descend from every start, put on the caps or on the spheres that fold onto them."""
        if on_caps:
            starts = self.space.onto_caps(starts)
        points = self._descend_all(starts, on_caps, detours)
        values = self._values(points)
        if on_caps:  # the descent begins a little inside, and may smooth the criterion
            before = self._values(starts)
            points = np.where((before < values)[:, None, None], starts, points)
            values = np.minimum(before, values)
        found = Found.of(points, values)
        if self.criterion != "squared" and found.values[0] > _NOTHING_LEFT:
            self._refine(found, max(_LEAST_REFINED, int(_REFINED_SHARE * len(starts))), rough=True)
            found = Found.of(found.points, found.values)
            self.progress.step(float(found.values[0]))
        return found

    def polish(self, found: Found, *, only_best: bool = False) -> Candidate:
        """Refine the best few distinct candidates, and return the best of them."""
        if criteria.values("worst", residuals(self.space, found.points[:1]))[0] <= _NOTHING_LEFT:
            return candidate(self.space, found.points[0], self.criterion, converged=True)
        ends = self._refine(found, 1 if only_best else _FINISHED[self.criterion])
        return min(ends, key=lambda end: end.value)

    def n_best(self, found: Found, best: Candidate) -> int:
        """Starts that reached the best value."""
        within = _SAME[self.criterion] * max(best.value, 1e-3)
        return int(np.sum(found.values <= best.value + within))

    def _refine(self, found: Found, count: int, *, rough: bool = False) -> list[Candidate]:
        """Refine the best distinct candidates; starts with the same end get the refined one."""
        chosen = distinct(found.values, count)
        if self.criterion == "squared" and self.space.valid.sum() > _LARGEST_NEWTON:
            ends = self._descend_further(found.points[chosen])
        else:
            points = found.points[chosen]
            ends = [refine(self.space, U, self.criterion, rough=rough) for U in points]
        for end, original in zip(ends, found.values[chosen], strict=True):
            same = np.abs(found.values - original) <= _DISTINCT * max(original, 1e-3)
            found.points[same], found.values[same] = end.U, end.value
        return ends

    def _descend_further(self, points: Array) -> list[Candidate]:
        """Quasi-Newton to the end, where Newton's equations are too large."""
        ended = self._descend(squared_loss, unfold(self.space, points, 0.0), 1e-9)
        return [
            candidate(self.space, U, self.criterion, converged=bool(slope <= 1e-6))
            for U, slope in zip(self._points(ended), ended.slope, strict=True)
        ]

    def _descend_all(self, starts: Array, on_caps: bool, detours: bool) -> Array:
        """Descend from every start, directly and by way of other problems: the best of the ends.

        Without floors, hops for the other criteria begin on the squares, and reach further.
        """
        space, loss = self.space, LOSSES[self.criterion]
        free = (space.floors > 0) & (space.floors < 1)
        # The squares without floors, and with higher floors: neither finds all of the best ends.
        routes: list[Array | float] = []
        if detours and (free.any() or self.criterion != "squared"):
            routes.append(0.0)
        if detours and free.any():
            routes.append(0.5 + 0.5 * space.floors)
        X = unfold(space, starts) if on_caps else starts
        if not (detours or free.any() or self.criterion == "squared"):
            X = self._descend(squared_loss, X, 1e-5).Z.reshape(X.shape)
        points = self._points(self._descend(loss, X, 1e-7, report=True))
        for floors in routes:
            route = replace(space, floors=np.where(free, floors, space.floors))
            X = unfold(route, route.onto_caps(starts)) if on_caps else starts
            first = self._points(self._descend(squared_loss, X, 1e-5, route), route)
            X = unfold(space, space.onto_caps(first), 1e-2)
            others = self._points(self._descend(loss, X, 1e-7, report=True))
            better = self._values(others) < self._values(points)
            points = np.where(better[:, None, None], others, points)
        return points

    def _descend(
        self, loss: Loss, X: Array, tol: float, space: Caps | None = None, *, report: bool = False
    ) -> Descent:
        def tell(value: float) -> None:
            # A smoothed loss is no value of its criterion.
            self.progress.step(value if self.criterion == "squared" else np.inf)

        return descend(
            on_spheres(space or self.space, loss),
            X.reshape(len(X), self.space.k * self.space.m),
            tol=tol,
            max_iter=int(min(self.max_iter, _STEPS[self.criterion])),
            on_iteration=tell if report else None,
        )

    def _points(self, ended: Descent, space: Caps | None = None) -> Array:
        space = space or self.space
        X = ended.Z.reshape(len(ended.Z), space.k, space.m)
        return space.onto_caps(fold(space, _unit(X)))

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
    exact = best_exact(C, np.minimum(space.floors, 1.0 - 1e-9))
    candidates.append(B @ np.asarray((exact if exact.feasible else kept_threshold(C, memory)).T))
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
