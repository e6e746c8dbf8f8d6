"""The whole frontier as one continuation, each point started from its neighbours.

In the angle ``θ = arccos ρ`` the curve and its dual are smooth up to a floor of one: λ and H grow
like ``1/sin θ``, so ``λ sin θ`` and ``H sin θ`` are interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array, cholesky_or_none, column_dots, to_host
from skcoral.core.problem import Settings
from skcoral.core.results import Frontier
from skcoral.core.tolerances import BUDGET_TOL
from skcoral.solvers.exact import best_exact, kept_threshold
from skcoral.solvers.tradeoff.binding import correlation_of
from skcoral.solvers.tradeoff.search import solve_floors
from skcoral.solvers.tradeoff.solved import Solved

_NEIGHBOURS = 6  # points that the dual of another one is interpolated from
_MOST_STEPS = 60  # of the search for a floor: three or four are usual, and halving takes 50
_RESOLVED = 1e-9  # how closely the highest floor at which a criterion vanishes is found
_NOTHING = 1e-10  # bound that is rounding, relative to the criterion of the sources


@dataclass(frozen=True)
class Node:
    """One solved floor; ``slope`` is the derivative of the objective there."""

    rho: float
    solved: Solved
    slope: float

    @cached_property
    def angle(self) -> float:
        """``arccos ρ``."""
        return float(np.arccos(self.rho))

    @cached_property
    def scaled(self) -> Array:
        """``H sin θ``, which is smooth."""
        return np.asarray(np.sin(self.angle) * self.solved.H)

    def reach(self, budget: float) -> float:
        """The common floor that no transformation within the budget exceeds, by this dual point.

        ``φ(ρ) ≥ bound + slope (ρ - self.rho)`` for every ρ.
        """
        left = budget - self.solved.lower_bound
        return min(self.rho + left / self.slope, 1.0) if self.slope > 0 else 1.0

    @cached_property
    def bound_by(self) -> bytes:
        """The binding floors, as something that is quick to compare."""
        return self.solved.binding.tobytes()


class Path:
    """Solve common floors one after the other, each from its nearest neighbours.

    Points of a ``rough`` path are solved no further than to the tolerance. With pairs of weight
    zero, those that count can be uncorrelated at floors above ρ★, up to ``edge``. The path
    ``absolute`` (an ``inner`` one) finds it: where the criterion vanishes does not depend on which
    criterion it is, and the sum of absolute values leaves zero at a positive slope.
    """

    def __init__(
        self, R: Any, settings: Settings, *, rough: bool = False, inner: bool = False
    ) -> None:
        self._there = R  # the solvers work where the matrix lies
        self.R: Array = to_host(R)
        self.settings, self.callback = replace(settings, callback=None), settings.callback
        self.rough = rough
        self.threshold = kept_threshold(R, settings.memory)
        # Correlations that lower the threshold by less than this are rounding.
        self.exact = self.threshold.lower if self.threshold.lower < 1.0 - 1e-12 else 1.0
        self.edge = self.exact  # the highest floor at which the criterion vanishes
        self.nodes: dict[float, Node] = {}
        self.everything = criteria.value(settings.criterion, self.R, settings.pair_weights)
        self.absolute: Path | None = None
        weights = criteria.pair_matrix(settings.pair_weights, len(self.R))
        if np.any((weights == 0) & ~np.eye(len(weights), dtype=bool)) and not inner:
            ones = (weights > 0).astype(np.float64)
            plain = replace(self.settings, criterion="absolute", pair_weights=ones)
            self.absolute = Path(R, plain, inner=True)
            self.edge = self.absolute.last_at_zero(settings)

    def solve(self, rho: float) -> Node:
        """Solve one common floor, exactly below the threshold and by the trade-off above."""
        if rho not in self.nodes:
            floors = np.full(len(self.R), rho)
            if rho <= self.edge:
                solved = self._vanishing(floors)
            else:
                solved = solve_floors(
                    self._there,
                    floors,
                    self.settings,
                    near=self._neighbour(rho) if rho < 1 else None,
                    rough=self.rough,
                    refused=[self.threshold],
                )
            self.nodes[rho] = Node(rho, solved, float(np.sum(solved.prices(floors))))
            if self.callback is not None:
                self.callback(len(self.nodes), solved.objective, solved.lower_bound)
        return self.nodes[rho]

    def highest(self, excess: Callable[[Node], tuple[float, float]], *, xtol: float) -> Node:
        """Return the highest floor found whose ``excess``, an increasing function, is not positive.

        The excess comes with its derivative. The floor lies within ``xtol`` of the root.
        """
        ends = self.solve(self.edge), self.solve(1.0)
        (below, _), (above, _) = map(excess, ends)
        if below < 0.0 < above:
            # Newton's method in the angle, where the curve is smooth, between a floor that is too
            # low and one that is too high: from the answer for a similar matrix, or by the secant.
            low, high = ends[0].angle, 0.0
            guess = self.settings.memory.floor
            theta = low + (high - low) * below / (below - above)
            if guess is not None and self.edge < guess < 1.0:
                theta = float(np.arccos(guess))
            for _ in range(_MOST_STEPS):
                node = self.solve(float(np.cos(theta)))
                value, slope = excess(node)
                low, high = (theta, high) if value < 0.0 else (low, theta)
                if value == 0.0 or abs(value) <= xtol * slope:
                    break
                # To the middle, where nothing tells how far away the root is.
                step = theta + value / (slope * np.sin(theta)) if slope > 0.0 else np.inf
                theta = step if high < step < low else 0.5 * (low + high)
            root = node.rho
            while excess(self.solve(root))[0] > 0.0 and root > self.edge:
                root, xtol = max(root - xtol, self.edge), 4.0 * xtol
        return max(
            (node for node in self.nodes.values() if excess(node)[0] <= 0.0),
            key=lambda node: node.rho,
            default=ends[0],
        )

    def last_at_zero(self, asked: Settings) -> float:
        """The highest floor at which this criterion, which leaves zero at a slope, vanishes.

        What rounding leaves there keeps a budget of zero for the criterion that is ``asked`` too.
        """

        def excess(node: Node) -> tuple[float, float]:
            if node.solved.lower_bound > _NOTHING * self.everything:
                return node.solved.lower_bound, node.slope
            # At zero the curve tells nothing about where it ends; the best tangent does.
            best = self.best_above_zero()
            if best is None:
                return -self.everything, 0.0
            tangent = best.solved.lower_bound + best.slope * (node.rho - best.rho)
            return min(tangent, 0.0), best.slope

        def left(solved: Solved) -> float:
            weighted = criteria.value(asked.criterion, solved.G, asked.pair_weights)
            return max(solved.objective, weighted)

        rho, step = self.highest(excess, xtol=_RESOLVED).rho, _RESOLVED
        best = self.best_above_zero()
        rho = rho if best is None else max(min(rho, best.reach(0.0)), self.edge)
        # At the very end what counts may not vanish to all digits.
        while rho > self.edge and left(self.solve(rho).solved) > 0.9 * BUDGET_TOL:
            rho, step = max(rho - step, self.edge), 4.0 * step
        return rho

    def best_above_zero(self) -> Node | None:
        """The solved floor whose dual point proves most about where the criterion vanishes."""
        known = (node for node in self.nodes.values() if node.rho < 1.0)
        above = (n for n in known if n.solved.lower_bound > _NOTHING * self.everything)
        return min(above, key=lambda node: node.reach(0.0), default=None)

    def _vanishing(self, floors: Array) -> Solved:
        """Outputs of which no pair that counts is correlated; no multipliers are needed."""
        p, T, n_iter, rho = len(floors), self.threshold.T, 0, float(floors[0])
        if rho > self.exact and self.absolute is not None:
            at = self.absolute.solve(rho).solved
            T, n_iter = at.T, at.n_iter
        elif rho < self.exact - 1e-9:
            T = best_exact(self._there, floors).T  # with a larger mean
        G = np.asarray(to_host(correlation_of(self._there, T)))
        return Solved(
            T=to_host(T),
            G=G,
            fidelity=column_dots(self._there, T),
            objective=criteria.value(self.settings.criterion, G, self.settings.pair_weights),
            lower_bound=0.0,
            lam=np.zeros(p),
            H=np.zeros((p, p)),
            binding=np.zeros(p, dtype=bool),
            n_iter=n_iter,
        )

    def _neighbour(self, rho: float) -> tuple[Array, NDArray[np.bool_]] | None:
        """Interpolate the dual of the nearest points; None where none of them is any good."""
        theta = float(np.arccos(rho))
        known = [n for n in self.nodes.values() if self.edge < n.rho < 1.0]
        known.sort(key=lambda n: abs(n.angle - theta))
        if not known or self.settings.criterion != "squared":
            return None
        nodes = [n for n in known if n.bound_by == known[0].bound_by][:_NEIGHBOURS]
        binding = np.any([n.solved.binding for n in nodes], axis=0)
        terms = [(n.angle, n.scaled) for n in nodes]
        # The dual of the squares vanishes at the threshold.
        ends = [(float(np.arccos(self.edge)), np.zeros_like(self.R))]
        if binding.all():
            ends.append((0.0, self._limit_at_one))
        for known_at in (terms + ends, terms[:1]):
            angles = np.array([angle for angle, _ in known_at])
            own = np.eye(len(angles), dtype=bool)
            apart = np.where(own, 1.0, angles[:, None] - angles)
            weights = np.where(own, 1.0, (theta - angles) / apart).prod(axis=1)
            H = np.tensordot(weights / np.sin(theta), [dual for _, dual in known_at], axes=1)
            if cholesky_or_none(H) is not None:
                return H, binding
        return None

    @cached_property
    def _limit_at_one(self) -> Array:
        """Limit of ``H sin θ`` as the floors tend to one: the slope along the sphere there."""
        K = criteria.pair_matrix(self.settings.pair_weights, len(self.R)) * self.R
        tangent = column_dots(K, self.R @ K) - column_dots(self.R, K) ** 2
        return np.diag(np.sqrt(np.maximum(tangent, 0.0)))


def trace_frontier(
    R: Any, floors: Array | None, settings: Settings, *, n_points: int = 25
) -> Frontier:
    """Compute the frontier at given common floors, or at points that lie evenly along it.

    Without floors there are ``n_points`` of them from ρ★ to 1, both included. The callback is
    called as ``callback(point, objective, lower_bound)`` after each point.
    """
    path = Path(R, settings, rough=True)
    if floors is None:
        nodes = _even(path, n_points)
    else:
        for rho in np.unique(floors):
            path.solve(float(rho))
        nodes = [path.nodes[float(rho)] for rho in floors]
    solved = [node.solved for node in nodes]
    return Frontier(
        rho_min=np.array([node.rho for node in nodes]),
        objective=np.array([s.objective for s in solved]),
        lower_bound=np.array([s.lower_bound for s in solved]),
        slope=np.array([node.slope for node in nodes]),
        worst_residual=np.array([criteria.value("worst", s.G) for s in solved]),
        mean_residual=np.array([np.abs(criteria.off(s.G)).sum() for s in solved])
        / max(len(path.R) * (len(path.R) - 1), 1),
        min_fidelity=np.array([s.fidelity.min() for s in solved]),
        mean_fidelity=np.array([s.fidelity.mean() for s in solved]),
        threshold=path.edge,
        criterion=settings.criterion,
        names=settings.names,
        pair_weights=settings.pair_weights,
    )


def _even(path: Path, n_points: int) -> list[Node]:
    """Start from the ends, then halve (in angle) the longest step of floor and residual together.

    Each is measured in parts of its whole range, so that points lie evenly along the curve.
    """
    nodes = [path.solve(path.edge)]
    if path.edge >= 1.0:
        return nodes
    nodes.append(path.solve(1.0))
    floors = 1.0 - path.edge
    residuals = nodes[1].solved.objective - nodes[0].solved.objective

    def length(a: Node, b: Node) -> float:
        rise = abs(b.solved.objective - a.solved.objective)
        return (b.rho - a.rho) / floors + rise / max(residuals, 1e-300)

    while len(nodes) < n_points:
        k = int(np.argmax([length(a, b) for a, b in pairwise(nodes)]))
        middle = 0.5 * (nodes[k].angle + nodes[k + 1].angle)
        nodes.insert(k + 1, path.solve(float(np.cos(middle))))
    return nodes
