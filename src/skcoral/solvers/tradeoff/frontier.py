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
from skcoral.solvers.exact import ExactThreshold, best_exact, kept_threshold
from skcoral.solvers.tradeoff.binding import correlation_of
from skcoral.solvers.tradeoff.search import solve_floors
from skcoral.solvers.tradeoff.solved import Solved

_NEIGHBOURS = 6  # points that the dual of another one is interpolated from
_MOST_STEPS = 60  # of the search for a floor: three or four are usual, and halving takes 50
_RESOLVED = 1e-8  # how closely the highest floor is enclosed
_UNCORRELATED = 1e-10  # sum of absolute correlations, relative to that of the sources
_MAX_FLOORS = 60  # tried at most; Newton's method needs about eight
_SHIFT = 1e-9  # by which a finite multiple of the dual point overstates that floor for squares


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

    @cached_property
    def bound_by(self) -> bytes:
        """The binding floors, as something that is quick to compare."""
        return self.solved.binding.tobytes()


class Path:
    """Solve common floors one after the other, each from its nearest neighbours.

    Points of a ``rough`` path are solved no further than to the tolerance.
    """

    def __init__(self, R: Any, settings: Settings, *, rough: bool = False) -> None:
        self._there = R  # the solvers work where the matrix lies
        self.R: Array = to_host(R)
        self.settings, self.callback = replace(settings, callback=None), settings.callback
        self.rough = rough
        self.threshold = kept_threshold(R, settings.memory)
        # Correlations that lower the threshold by less than this are rounding.
        self.exact = self.threshold.lower if self.threshold.lower < 1.0 - 1e-12 else 1.0
        self.edge = self.exact  # the highest floor at which the criterion vanishes
        self.nodes: dict[float, Node] = {}
        self.zero: ZeroWeights | None = None
        counts = criteria.pair_matrix(settings.pair_weights, len(self.R)) > 0
        own = np.eye(len(self.R), dtype=bool)
        everything = criteria.value("absolute", self.R, counts.astype(np.float64))
        if self.exact < 1.0 and everything > 0 and not np.all(counts | own):
            self.zero = ZeroWeights(R, self.settings, self.threshold, everything)
            self.edge = max(self.edge, self.zero.highest)

    def solve(self, rho: float) -> Node:
        """Solve one common floor, exactly below the threshold and by the trade-off above."""
        if rho not in self.nodes:
            floors = np.full(len(self.R), rho)
            solved = self._exact(floors) if rho <= self.exact else None
            if solved is None and self.zero is not None and rho <= self.edge:
                solved = self.zero.solve(rho)
            if solved is None:
                solved = solve_floors(
                    self._there,
                    floors,
                    self.settings,
                    near=self._neighbour(rho) if rho < 1 else None,
                    rough=self.rough,
                    refused=self.threshold,
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
            last: tuple[float, float, float] | None = None
            for _ in range(_MOST_STEPS):
                node = self.solve(float(np.cos(theta)))
                value, slope = excess(node)
                low, high = (theta, high) if value < 0.0 else (low, theta)
                change = -1.0 / max(slope * np.sin(theta), 1e-300)  # of the angle by the excess
                if value == 0.0 or abs(value * change) * np.sin(theta) <= xtol:
                    break
                step, here = theta - value * change, (value, theta, change)
                if last is not None and last[0] != value:
                    step = _angle_at_zero(last, here)
                last = here
                theta = step if high < step < low else 0.5 * (low + high)
            root = node.rho
            while excess(self.solve(root))[0] > 0.0 and root > self.edge:
                root, xtol = max(root - xtol, self.edge), 4.0 * xtol
        return max(
            (node for node in self.nodes.values() if excess(node)[0] <= 0.0),
            key=lambda node: node.rho,
            default=ends[0],
        )

    def _exact(self, floors: Array) -> Solved | None:
        p, T = len(floors), self.threshold.T
        if floors[0] < self.exact - 1e-9:
            best = best_exact(self._there, floors)
            if not best.feasible:
                return None
            T = best.T
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
            n_iter=0,
        )

    def _neighbour(self, rho: float) -> tuple[Array, NDArray[np.bool_]] | None:
        """Interpolate the dual of the nearest points; None where none of them is any good."""
        theta = float(np.arccos(rho))
        known = [n for n in self.nodes.values() if self.edge < n.rho < 1.0]
        known.sort(key=lambda n: abs(n.angle - theta))
        if not known or self.settings.criterion != "squared":
            return None
        sides = [n for n in known if n.rho < rho][:1] + [n for n in known if n.rho > rho][:1]
        nodes = [n for n in known if n.bound_by == known[0].bound_by][:_NEIGHBOURS]
        if len({n.bound_by for n in sides}) > 1:  # floors that begin to bind in between
            nodes = sides
        binding = np.any([n.solved.binding for n in nodes], axis=0)
        terms = [(n.angle, n.scaled) for n in nodes]
        # The dual of the squares vanishes at the threshold.
        ends = [(float(np.arccos(self.edge)), np.zeros_like(self.R))]
        if binding.all():
            ends.append((0.0, self._limit_at_one))
        for known_at in (terms + ends, terms[:1] + ends, terms[:1]):
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


def _angle_at_zero(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    """The cubic through two points (excess, angle, derivative), at an excess of zero."""
    width = b[0] - a[0]
    s = -a[0] / width
    ends = a[1] * (1.0 + 2.0 * s) * (1.0 - s) ** 2 + b[1] * (3.0 - 2.0 * s) * s**2
    return ends + width * s * (1.0 - s) * (a[2] * (1.0 - s) - b[2] * s)


class ZeroWeights:
    """Pairs of weight zero: floors above ρ★ at which all pairs that count can be uncorrelated.

    Where the criterion vanishes does not depend on which criterion it is. The sum of absolute
    values leaves zero at a positive slope, so that its convex curve tells the highest such floor to
    all digits, by Newton's method from above; its dual point there, of any scale, proves that no
    criterion vanishes at higher floors.
    """

    def __init__(
        self, R: Any, settings: Settings, threshold: ExactThreshold, everything: float
    ) -> None:
        self._R, self._threshold = R, threshold
        counts = (criteria.pair_matrix(settings.pair_weights, R.shape[0]) > 0).astype(np.float64)
        self._options = replace(settings, criterion="absolute", pair_weights=counts, callback=None)
        self._weights, self._criterion = settings.pair_weights, settings.criterion
        self._solved: dict[float, Solved] = {}
        self._largest = everything
        self._above = 1.0  # the lowest floor at which they do not vanish
        self.highest = self._find()

    def _at(self, rho: float) -> Solved:
        if rho not in self._solved:
            floors = np.full(self._R.shape[0], rho)
            self._solved[rho] = solve_floors(
                self._R, floors, self._options, refused=self._threshold
            )
        return self._solved[rho]

    def _vanishes(self, rho: float) -> bool:
        return self._at(rho).objective <= _UNCORRELATED * self._largest

    def _find(self) -> float:
        """Enclose the highest floor at which the pairs that count vanish; return the lower end."""
        lower, upper = self._threshold.lower, 1.0
        if self._vanishes(1.0):
            return 1.0
        rho = _between(lower, upper)
        for _ in range(_MAX_FLOORS):
            if upper - lower <= _RESOLVED:
                break
            if self._vanishes(rho):
                lower, rho = rho, _between(rho, upper)
                continue
            at, width = self._at(rho), upper - lower
            self._above = min(self._above, rho)
            slope = 2.0 * float(at.lam.sum())
            # The tangent of a convex function lies below it: its root lies above the true one.
            root = rho - max(at.lower_bound, 0.0) / slope if slope > 0 else rho
            step, upper = rho - root, min(upper, max(root, lower))
            if step < 10.0 * _RESOLVED:
                rho = max(upper - 0.5 * _RESOLVED, lower)  # next to the root: its other side
            else:
                rho = upper if upper - lower < 0.5 * width else _between(lower, upper)
        return lower

    def solve(self, rho: float) -> Solved:
        """Return outputs at a floor up to the highest one; their pairs that count vanish."""
        at = self._at(rho)
        p = len(at.lam)
        return replace(
            at,
            objective=criteria.value(self._criterion, at.G, self._weights),
            lower_bound=0.0,
            lam=np.zeros(p),
            H=np.zeros((p, p)),
            binding=np.zeros(p, dtype=bool),
        )

    def proof(self) -> tuple[Array, Array, float]:
        """Multipliers and H for the criterion that prove the highest floor, and that floor.

        Every multiple of a dual point of the absolute sum that lies in the domain of the criterion
        is one of the criterion; squares charge its square.
        """
        at = self._at(self._above)
        slope = 2.0 * float(at.lam.sum())
        omega = criteria.pair_matrix(self._weights, len(at.lam))
        if self._criterion == "squared":
            charge = criteria.conjugate("squared", at.H, self._weights)
            scale = _SHIFT * slope / max(charge, 1e-300)
        else:
            charge, scale = 0.0, 1.0 / criteria.gauge(self._criterion, at.H, omega)
            scale *= 1.0 - 1e-13
        top = self._above - (at.lower_bound - scale * charge) / slope
        return scale * at.lam, scale * at.H, min(top, 1.0)


def _between(lower: float, upper: float) -> float:
    """The floor half-way in angle."""
    return float(np.cos(0.5 * (np.arccos(lower) + np.arccos(upper))))


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
