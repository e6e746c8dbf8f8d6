"""From many starts to candidates: descent along several routes, then Newton's method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.problem import Callback, Memory, Settings
from skcoral.solvers.exact import best_exact, kept_threshold
from skcoral.solvers.support.caps import Caps
from skcoral.solvers.support.exactness import cholesky_within
from skcoral.solvers.support.interior_point import Candidate, candidate, refine
from skcoral.solvers.support.objectives import LOSSES, SQUARES, descended, residuals

# The gain, besides, that ends a detour: where correlations can vanish no gain is relatively small.
_DETOUR = 1e-4
# Gradients per iteration allowed where no column has a floor: with 1, one seed in eight misses the
# best value of the paper's system. With floors nothing changes but time.
_GRADIENTS = 2
# The relative gains that end a detour, a descent, and the last one.
_ROUGH, _FINE, _LAST = 1e-3, 1e-7, 1e-13
_FURTHER = 10  # times as many steps for the last one, where Newton's method cannot follow
# Distinct ends of all starts that are refined in the end. Of each run of a smoothed criterion the
# best one is refined as well: with hops from rough ends, half as many seeds (9 of 24 instead of 18,
# at 2.5 gradients) reached the best worst pair of the paper's system.
_POLISHED = 2
# Values this close, relatively, are of the same end. A hundred times as much changes no answer of
# the paper's system.
_SAME = 1e-6
# Half of the random starts lie between the best few so far and random points, in rounds. On the
# paper's system without floors 2 rounds miss the best value for 2 of 6 seeds, 8 for none, 16 for
# one.
_ROUNDS = 8
_PARENTS = 5
# Coefficients, one equation each: a step takes 0.04 s here, and up to a thousand times as long at
# ten times as many.
LARGEST_NEWTON = 700
_NOTHING_LEFT = 1e-13


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
class Ends:
    """What every start led to, best first: points (n, k, m) and their criterion."""

    points: Array
    values: Array

    @classmethod
    def of(cls, points: Array, values: Array) -> Ends:
        """Put points in the order of their values."""
        order = np.argsort(values, kind="stable")
        return cls(points[order], values[order])

    def merge(self, other: Ends) -> Ends:
        """The ends of both searches together."""
        points = np.concatenate((self.points, other.points))
        return Ends.of(points, np.concatenate((self.values, other.values)))


@dataclass(frozen=True)
class Search:
    """Descents from many starts, all in one array, for one problem."""

    space: Caps
    settings: Settings
    progress: Progress

    def explore(self, ends: Ends, n: int, rng: np.random.Generator) -> Ends:
        """Search from ``n`` more starts: random ones, then some near the best candidates so far."""
        ends = ends.merge(self.run(random_starts(self.space, n - n // 2, rng)))
        for size in map(len, np.array_split(np.arange(n // 2), _ROUNDS)):
            if size:
                parents = ends.points[distinct(ends.values, _PARENTS)]
                ends = ends.merge(self.run(midpoints(self.space, parents, size, rng)))
        return ends

    def run(self, starts: Array) -> Ends:
        """Descend from every start, and undo the smoothing at the best end.

        Each start takes several routes: directly, and by way of the squares without floors and with
        higher ones. None of them finds all of the best ends; the best one so far is followed.
        """
        space, criterion, n = self.space, self.settings.criterion, len(starts)
        inner = (space.floors > 0) & (space.floors < 1)
        routes, detours = [space.upright(starts)], [0.0 * space.floors, 0.5 + 0.5 * space.floors]
        if not inner.any():  # of the squares all routes are the same, else those by way of squares
            detours = [] if criterion == "squared" else detours[:1]
        for floors in detours:
            other = replace(space, floors=np.where(inner, floors, space.floors))
            far, limit = other.upright(starts), self.settings.max_iter
            far, _ = descended(other, SQUARES, far, tol=_ROUGH, nothing=_DETOUR, max_iter=limit)
            routes.append(far)
        points = space.upright(np.concatenate(routes))
        if detours:  # which of them is best shows long before the end
            points = self._descend(points, _ROUGH)
            values = self._values(points).reshape(len(routes), n)
            points = points[n * values.argmin(axis=0) + np.arange(n)]
        points = self._descend(points, _FINE)
        ends = Ends.of(points, self._values(points))
        if criterion != "squared":
            self.polish(ends, 1)
            ends = Ends.of(ends.points, ends.values)
        self.progress.step(float(ends.values[0]))
        return ends

    def polish(self, ends: Ends, count: int = _POLISHED) -> Candidate:
        """Refine the best few distinct ends, and return the best of them.

        Starts with the same end get the refined one.
        """
        space, criterion = self.space, self.settings.criterion
        if criteria.values("worst", residuals(space, ends.points[:1]))[0] <= _NOTHING_LEFT:
            return candidate(space, ends.points[0], criterion)
        chosen = distinct(ends.values, count)
        if criterion == "squared" and space.valid.sum() > LARGEST_NEWTON:
            # Newton's equations are too large: descend to the end.
            limit = _FURTHER * self.settings.max_iter
            last, _ = descended(space, SQUARES, ends.points[chosen], tol=_LAST, max_iter=limit)
            refined = [candidate(space, U, criterion) for U in last]
        else:
            refined = [refine(space, U, criterion) for U in ends.points[chosen]]
        for end, k in zip(refined, chosen, strict=True):
            same = slice(k, np.searchsorted(ends.values, up_to(ends.values[k]), side="right"))
            ends.points[same], ends.values[same] = end.U, end.value
        return min(refined, key=lambda end: end.value)

    def _descend(self, U: Array, tol: float) -> Array:
        loss = LOSSES[self.settings.criterion]
        limit = (1 if self.space.floors.any() else _GRADIENTS) * self.settings.max_iter
        return descended(self.space, loss, U, tol=tol, max_iter=limit)[0]

    def _values(self, points: Array) -> Array:
        return criteria.values(self.settings.criterion, residuals(self.space, points))


def up_to(value: float) -> float:
    """The largest value that counts as that of the same end."""
    return value + _SAME * max(value, 1e-3)


def distinct(values: Array, count: int) -> NDArray[np.intp]:
    """Positions of the few least of ascending values that differ from one another."""
    chosen: list[int] = []
    k = 0
    while k < len(values) and len(chosen) < count:
        chosen.append(k)
        k = int(np.searchsorted(values, up_to(values[k]), side="right"))
    return np.asarray(chosen, dtype=np.intp)


def structured_starts(space: Caps, B: Array, memory: Memory, warm: Array | None) -> Array:
    """Points (S, k, m): masked exact decorrelators, and the anchors ``B``, of unit length.

    In this order: a given transformation; a Cholesky factor of R⁻¹ that fits the support, if there
    is one; the exact decorrelator with the best mean fidelity under the floors, or the one with the
    best common fidelity; the anchors.
    """
    fitting = cholesky_within(space.R, space.mask) if space.k == space.p else None
    candidates = [] if warm is None else [warm]
    candidates += [] if fitting is None else [fitting[0]]
    C = B.T @ space.R @ B
    exact = best_exact(C, np.minimum(space.floors, 1.0 - 1e-9))
    candidates.append(B @ np.asarray((exact if exact.feasible else kept_threshold(C, memory)).T))
    candidates.append(B)
    return space.points(np.stack(candidates))


def random_starts(space: Caps, n: int, rng: np.random.Generator) -> Array:
    """Points (n, k, m) midway between the sources and uniform points on the spheres."""
    sources = np.zeros((1, space.k, space.m))
    sources[..., 0] = 1.0
    return space.spread_out(midpoints(space, sources, n, rng))


def midpoints(space: Caps, points: Array, n: int, rng: np.random.Generator) -> Array:
    """Points (n, k, m) midway between given ones, taken in turn, and uniform ones."""
    uniform = _unit(np.where(space.valid, rng.normal(size=(n, space.k, space.m)), 0.0))
    # The factor keeps a midpoint for opposite points, which a column without freedom has often.
    middle = (1.0 + 1e-9) * points[np.arange(n) % len(points)] + uniform
    return _unit(middle)


def _unit(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=2, keepdims=True))
