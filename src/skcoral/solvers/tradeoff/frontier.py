"""The least residual as a function of a common floor: its points, and the floor for a budget.

In the angle ``θ = arccos ρ`` the curve and its dual are smooth up to a floor of one: λ and H grow
like ``1/sin θ``, so ``λ sin θ`` and ``H sin θ`` are interpolated, and each point starts from its
neighbours. In the floor the curve is convex and increasing, with known slope: each floor tried
gives a tangent, and where the tangent meets a budget is a bound on what is possible.
"""

from __future__ import annotations

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
from skcoral.core.solution import Budget, Solution
from skcoral.core.tolerances import BUDGET_TOL, EXACT_TOL
from skcoral.solvers.exact import best_exact, kept_threshold, threshold_solution
from skcoral.solvers.tradeoff.search import solve_floors, solve_vanishing
from skcoral.solvers.tradeoff.solved import Solved

_NEIGHBOURS = 6  # points that the dual of another one is interpolated from
_SHIFT = 1e-11  # by which a finite multiple of a dual point overstates a floor for squares
# Of the angle at ρ★, how far from it a search for a budget begins at least: closer, dual points
# have few digits. With pairs of weight zero ρ★ says little, and floors at which all pairs that
# count vanish prove nothing: a third as far costs a tenth more steps.
_NEAREST, _NEAREST_OF_SOME = 1e-3, 0.3
# Distance at which a tangent tells where the criterion vanishes to twice the digits, and steps by
# Newton's method are rounding.
_RESOLVED = 1e-6
_PROGRESS = 0.1  # of the interval that is left, which a step within the budget has to take


@dataclass(frozen=True)
class Node:
    """One solved floor; ``slope`` is the derivative of the objective there.

    ``charge`` is the conjugate at the dual point: what squares take from the bound, which is
    ``gain`` without it.
    """

    rho: float
    solved: Solved
    slope: float
    charge: float
    gain: float

    @cached_property
    def angle(self) -> float:
        """``arccos ρ``."""
        return float(np.arccos(self.rho))

    @cached_property
    def scaled(self) -> Array:
        """``H sin θ``, which is smooth."""
        return np.asarray(np.sin(self.angle) * self.solved.H)

    def bound(self, rho: float, s: float) -> float:
        """What s times the dual point proves of the least residual at a floor."""
        return s * (self.gain + self.slope * (rho - self.rho) - s * self.charge)

    def multiple(self, budget: float) -> float:
        """The multiple of the dual point that proves most about what a budget allows.

        For squares its charge is the budget: that is the tangent of the root of the curve. Next to
        a budget of zero the multiple is one that overstates the floor by little.
        """
        if self.charge == 0.0 or self.slope == np.inf:
            return 1.0
        return float(max(np.sqrt(budget / self.charge), _SHIFT * self.slope / self.charge))

    def reach(self, budget: float) -> float:
        """The common floor that no transformation within the budget exceeds, by this dual point."""
        if not 0.0 < self.slope < np.inf:
            return 1.0
        s = self.multiple(budget)
        return min(self.rho + (budget - self.bound(self.rho, s)) / (s * self.slope), 1.0)

    @cached_property
    def bound_by(self) -> bytes:
        """The binding floors, as something that is quick to compare."""
        return self.solved.binding.tobytes()


class Path:
    """Solve common floors one after the other, each from its nearest neighbours.

    Points of a ``rough`` path are solved no further than to the tolerance. The criterion vanishes
    up to ``edge``: that is ρ★, or a higher floor if pairs of weight zero may stay correlated.
    """

    def __init__(self, R: Any, settings: Settings, *, rough: bool = False) -> None:
        self._there = R  # the solvers work where the matrix lies
        self.R: Array = to_host(R)
        self.settings, self.callback = replace(settings, callback=None), settings.callback
        self.rough = rough
        self.threshold = kept_threshold(R, settings.memory)
        # Correlations that lower the threshold by less than this are rounding.
        self.exact = self.threshold.lower if self.threshold.lower < 1.0 - 1e-12 else 1.0
        self.nodes: dict[float, Node] = {}
        self.everything = criteria.value(settings.criterion, self.R, settings.pair_weights)
        # Squares grow quadratically from where they vanish, the other criteria linearly.
        self.power = 0.5 if settings.criterion == "squared" else 1.0
        weights = criteria.pair_matrix(settings.pair_weights, len(self.R))
        self.all_count = bool(np.all((weights > 0) | np.eye(len(weights), dtype=bool)))
        self.edge = self.exact
        self.nothing = 0.9 * BUDGET_TOL  # what rounding leaves of a criterion that vanishes

    def solve(self, rho: float) -> Node:
        """Solve one common floor: where the criterion vanishes exactly, else by the trade-off."""
        if rho not in self.nodes:
            R, floors = self._there, np.full(len(self.R), rho)
            if rho < self.exact - 1e-9:  # with a larger mean than at the threshold
                solved = solve_vanishing(R, floors, self.settings, best_exact(R, floors).T)
            elif rho <= self.exact:
                solved = solve_vanishing(R, floors, self.settings, self.threshold.T)
            elif rho <= self.edge:
                solved = solve_vanishing(R, floors, self.settings)
            else:
                solved = solve_floors(
                    R,
                    floors,
                    self.settings,
                    near=self._neighbour(rho) if rho < 1 else None,
                    rough=self.rough,
                    refused=[self.threshold],
                )
            self.add(rho, solved)
            if self.callback is not None:
                self.callback(len(self.nodes), solved.objective, solved.lower_bound)
        return self.nodes[rho]

    def highest(self, budget: float) -> Node:
        """Return the highest floor found whose least residual is within the budget.

        The residual, and for squares its root, is a convex function of the floor: every point tried
        bounds what is possible. Newton's method in the angle leads to a floor just below the least
        of these bounds. With a budget of zero the criterion is made to vanish there.
        """
        zero = budget == 0.0
        allowed = self.nothing if zero else budget
        if self.everything <= allowed:
            return self.solve(1.0)
        if self.exact >= 1.0:
            return self.solve(min(self.threshold.lower, 1.0))
        # To make the criterion vanish takes an interior: at a tenth of this room there may be none.
        low, room = self.exact, (0.5 if zero else 0.05) * self.settings.tol
        node = self.solve(self._first(budget))
        while True:
            best, solved = self.proof(budget), node.solved
            upper = best.reach(budget)
            left = allowed - solved.objective if node.rho > self.exact else 0.0
            over = left < 0.0 and node.rho <= upper
            if left >= 0.0 and node.rho <= upper:
                # What the gap of a point leaves open, no further floor can close.
                closed = not zero and left <= 3.0 * solved.gap
                if closed or node.rho >= upper - 2.0 * room:
                    return self._met(node) if zero else node
                low = max(low, node.rho)
            elif over:  # its gap hides by how much it exceeds the budget
                known = solved.certified and best.slope > 0.0 and not zero
                room = max(4.0 * room, solved.gap / best.slope if known else 0.0)
            below = max(upper - room, self.exact)
            rho = min(self._newton(node, budget) - room, below if upper < 1.0 else 1.0)
            if upper < 1.0 and zero and (over or best.rho - upper < _RESOLVED):
                self.edge = rho = below
            elif upper < 1.0 and over:
                rho = below
            node = self.solve(rho if rho - low > _PROGRESS * (below - low) else below)

    def _met(self, node: Node) -> Node:
        """The point at the floor that its outputs meet, where the criterion vanishes."""
        met = min(node.rho, float(node.solved.fidelity.min()))
        return self.add(met, node.solved) if node.rho > self.exact else node

    def vanishing(self) -> Path:
        """The path of a criterion that vanishes where this one does, and leaves zero at a slope."""
        if self.settings.criterion != "squared":
            return self
        weights = criteria.pair_matrix(self.settings.pair_weights, len(self.R))
        counts = (weights > 0).astype(np.float64)
        path = Path(self._there, replace(self.settings, criterion="absolute", pair_weights=counts))
        path.nothing = EXACT_TOL  # squares of it are none
        return path

    def add(self, rho: float, solved: Solved, gain: float | None = None) -> Node:
        """Add a floor with what is known of it; ``gain`` if it was solved for another criterion."""
        settings, floors = self.settings, np.full(len(self.R), rho)
        value = criteria.value(settings.criterion, solved.G, settings.pair_weights)
        charge = 0.0
        if settings.criterion == "squared":
            charge = criteria.conjugate("squared", solved.H, settings.pair_weights)
        gain = solved.lower_bound + charge if gain is None else gain
        slope = float(np.sum(solved.prices(floors)))
        solved = replace(solved, objective=value, lower_bound=gain - charge)
        self.nodes[rho] = Node(rho, solved, slope, charge, gain)
        return self.nodes[rho]

    def proof(self, budget: float) -> Node:
        """The point that proves most about what is possible within the budget."""
        return min(self.nodes.values(), key=lambda node: node.reach(budget))

    def _first(self, budget: float) -> float:
        """Return the first floor to be tried: that for a similar matrix, or by the chord."""
        guess = self.settings.memory.floor
        if guess is not None and self.exact < guess < 1.0:
            return guess
        chord = (budget / self.everything) ** self.power
        share = max(chord, _NEAREST if self.all_count else _NEAREST_OF_SOME)
        return float(np.cos((1.0 - share) * np.arccos(self.exact)))

    def _newton(self, node: Node, budget: float) -> float:
        """Newton's step in the angle; to the middle where nothing tells how far the root is."""
        middle = 0.5 * node.angle
        if not 0.0 < node.slope < np.inf:
            return float(np.cos(middle))
        value, power = node.solved.objective, self.power
        rise = (value - value ** (1.0 - power) * budget**power) / power
        step = rise / (node.slope * np.sin(node.angle))
        return float(np.cos(max(node.angle + step, middle)))

    def _neighbour(self, rho: float) -> tuple[Array, NDArray[np.bool_]] | None:
        """Interpolate the dual of the nearest points; None where none of them is any good."""
        theta = float(np.arccos(rho))
        known = [n for n in self.nodes.values() if 0.0 < n.slope < np.inf]
        known.sort(key=lambda n: abs(n.angle - theta))
        if not known or self.settings.criterion != "squared":
            return None
        nodes = [n for n in known if n.bound_by == known[0].bound_by][:_NEIGHBOURS]
        binding = np.any([n.solved.binding for n in nodes], axis=0)
        terms = [(n.angle, n.scaled) for n in nodes]
        # The dual of the squares vanishes where they do.
        edge = self.edge if self.all_count else max(self.proof(0.0).reach(0.0), self.edge)
        ends = [(float(np.arccos(edge)), np.zeros_like(self.R))]
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
    if not path.all_count:
        last = path.vanishing().highest(0.0)
        path.edge = path.add(last.rho, last.solved, last.gain).rho
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


def solve_budget(R: Any, budget: float, settings: Settings) -> Solution:
    """Find the largest common floor whose least residual stays within ``budget``.

    ``settings.tol`` is the largest distance of the floor found from the upper bound on it, and the
    callback is called as ``callback(point, objective, lower_bound)`` after each floor tried. The
    floor is in ``rho_min`` of the solution, and its goal bounds the common floor of every
    transformation within the budget.
    """
    path = Path(R, settings)
    if budget == 0.0 and path.all_count and path.everything > 0.0:
        exact = threshold_solution(R, path.threshold, settings)
        return replace(exact, goal=Budget(budget, min(path.threshold.upper, 1.0)))
    search = path if budget > 0.0 else path.vanishing()
    node, best = search.highest(budget), search.proof(budget)
    node, best = (path.add(of.rho, of.solved, of.gain) for of in (node, best))
    s, upper = best.multiple(budget), max(best.reach(budget), node.rho)
    proved = best.bound(node.rho, s)
    solved = replace(node.solved, lower_bound=proved, lam=s * best.solved.lam, H=s * best.solved.H)
    return solved.solution(np.full(len(path.R), node.rho), settings, Budget(budget, upper))
