"""The whole frontier as one continuation, each point started from its neighbours.

In the angle ``θ = arccos ρ`` the curve and its dual are smooth up to a floor of one: λ and H grow
like ``1/sin θ``, so ``λ sin θ`` and ``H sin θ`` are interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from skcoral._arrays import Array, cholesky_or_none, to_device, to_host
from skcoral.exact import best_exact, exact_threshold
from skcoral.results import Criterion, Frontier
from skcoral.tradeoff import criteria
from skcoral.tradeoff.feasible import correlation_of
from skcoral.tradeoff.results import Solved, prices_of, warn_open_gap
from skcoral.tradeoff.search import Warm
from skcoral.tradeoff.solver import solve_floors

Callback = Callable[[int, float, float], object]


@dataclass(frozen=True)
class Node:
    """One solved floor; ``slope`` is the derivative of the objective there."""

    rho: float
    solved: Solved
    slope: float

    @cached_property
    def bound_by(self) -> bytes:
        """The binding floors, as something that is quick to compare."""
        return self.solved.binding.tobytes()


class Path:
    """Solve common floors one after the other, each from its nearest neighbours."""

    def __init__(
        self,
        R: Any,
        *,
        criterion: Criterion,
        pair_weights: Array | None,
        tol: float,
        max_iter: int,
    ) -> None:
        self._there = R  # the solvers work where the matrix lies
        self.R: Array = to_host(R)
        self.criterion: Criterion = criterion
        self.pair_weights = pair_weights
        self.tol = tol
        self.max_iter = max_iter
        self.threshold = exact_threshold(R)
        # Correlations that lower the threshold by less than this are rounding.
        self.edge = self.threshold.lower if self.threshold.lower < 1.0 - 1e-12 else 1.0
        self.nodes: list[Node] = []
        omega = criteria.pair_matrix(pair_weights, len(self.R))
        self._omega = omega
        self._limit = _limit_at_one(self.R, omega)
        self._warm = criterion == "squared"

    def solve(self, rho: float) -> Node:
        """Solve one common floor, exactly below the threshold and by the trade-off above."""
        floors = np.full(len(self.R), rho)
        solved = self._exact(rho, floors) if rho <= self.edge else None
        if solved is None:
            solved = solve_floors(
                self._there,
                floors,
                criterion=self.criterion,
                pair_weights=self.pair_weights,
                tol=self.tol,
                max_iter=self.max_iter,
                warm=self._neighbour(rho) if self._warm and rho < 1 else None,
                refused=self.threshold,
            )
        node = Node(rho, solved, float(np.sum(prices_of(solved, floors))))
        self.nodes.append(node)
        self.nodes.sort(key=lambda node: node.rho)
        return node

    def _exact(self, rho: float, floors: Array) -> Solved | None:
        p = len(floors)
        T = self.threshold.T
        if rho < self.edge - 1e-9:
            best = best_exact(self._there, floors)
            if not best.feasible:
                return None
            T = best.T
        G = np.asarray(to_host(correlation_of(self._there, to_device(T, self._there))))
        return Solved(
            T=T,
            G=G,
            fidelity=np.einsum("ji,ij->j", self.R, T),
            objective=criteria.value(self.criterion, G, self.pair_weights),
            lower_bound=0.0,
            lam=np.zeros(p),
            H=np.zeros((p, p)),
            binding=np.zeros(p, dtype=bool),
            n_iter=0,
        )

    def _neighbour(self, rho: float) -> Warm | None:
        """Interpolate the dual of the nearest points, the binding set from the closest."""
        known = [n for n in self.nodes if self.edge < n.rho < 1.0]
        if not known:
            return None
        theta = float(np.arccos(rho))
        known.sort(key=lambda n: abs(np.arccos(n.rho) - theta))
        closest = known[0]
        same = [n for n in known if n.bound_by == closest.bound_by]
        for count in (4, 2, 1):
            if len(same) < count:
                continue
            H, lam = self._interpolate(same[:count], theta)
            positive = lam[closest.solved.binding]
            if positive.min(initial=1.0) > 0 and _definite(H):
                return Warm(np.maximum(lam, 0.0), H, closest.solved.binding)
        return None

    def _interpolate(self, nodes: Sequence[Node], theta: float) -> tuple[Array, Array]:
        start = float(np.arccos(self.edge))
        p = len(self.R)
        terms = []
        for node in nodes:
            angle = float(np.arccos(node.rho))
            terms.append((angle, np.sin(angle) * node.solved.H, np.sin(angle) * node.solved.lam))
        # The dual of the squares vanishes at the threshold, and its limit at one is known.
        terms.append((start, np.zeros((p, p)), np.zeros(p)))
        if nodes[0].solved.binding.all():
            terms.append((0.0, np.diag(self._limit), self._limit))
        H, lam = np.zeros((p, p)), np.zeros(p)
        for k, (a, h, v) in enumerate(terms):
            weight = 1.0
            for m, (b, _, _) in enumerate(terms):
                if m != k:
                    weight *= (theta - b) / (a - b)
            H += weight * h
            lam += weight * v
        return H / np.sin(theta), lam / np.sin(theta)


def trace_frontier(
    R: Any,
    floors: Array | None = None,
    *,
    names: Sequence[str],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    n_points: int = 25,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> Frontier:
    """Compute the frontier at given common floors, or at points that lie evenly along it.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation matrix, positive definite.
    floors : ndarray of shape (n,), optional
        Common floors; by default ``n_points`` of them from ρ★ to 1, both included.
    names : sequence of str
        The variables.
    criterion, pair_weights, tol, max_iter
        As in :func:`solve_tradeoff`.
    n_points : int
        Number of points where no floors are given.
    callback : callable, optional
        Called as ``callback(point, objective, lower_bound)`` after each point.

    Returns
    -------
    Frontier

    Warns
    -----
    NotCertifiedWarning
        The gap of some point could not be closed.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff import trace_frontier
    >>> R = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> curve = trace_frontier(R, names=["a", "b"], n_points=5)
    >>> round(float(curve.objective[0]), 12), round(float(curve.objective[-1]), 12)
    (0.0, 0.64)
    """
    path = Path(R, criterion=criterion, pair_weights=pair_weights, tol=tol, max_iter=max_iter)
    count = 0

    def visit(rho: float) -> Node:
        nonlocal count
        node = path.solve(rho)
        count += 1
        if callback is not None:
            callback(count, node.solved.objective, node.solved.lower_bound)
        return node

    if floors is None:
        nodes = _even(path, visit, n_points)
    else:
        by_floor = {rho: visit(rho) for rho in sorted({float(rho) for rho in floors})}
        nodes = [by_floor[float(rho)] for rho in floors]
    solved = [node.solved for node in nodes]
    for node in nodes:
        if not node.solved.certified:
            warn_open_gap(node.solved, criterion, stacklevel=3)
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
        criterion=criterion,
        names=tuple(names),
        pair_weights=pair_weights,
    )


def _even(path: Path, visit: Callable[[float], Node], n_points: int) -> list[Node]:
    """Start from the ends, then halve (in angle) the longest step of floor and residual together.

    Each is measured in parts of its whole range, so that points lie evenly along the curve.
    """
    edge = visit(path.edge)
    if path.edge >= 1.0:
        return [edge]
    nodes = [edge, visit(1.0)]
    floors, residuals = 1.0 - path.edge, nodes[1].solved.objective - edge.solved.objective

    def length(a: Node, b: Node) -> float:
        rise = abs(b.solved.objective - a.solved.objective)
        return (b.rho - a.rho) / floors + rise / max(residuals, 1e-300)

    while len(nodes) < n_points:
        k = int(np.argmax([length(a, b) for a, b in pairwise(nodes)]))
        middle = 0.5 * (np.arccos(nodes[k].rho) + np.arccos(nodes[k + 1].rho))
        nodes.insert(k + 1, visit(float(np.cos(middle))))
    return nodes


def _limit_at_one(R: Array, omega: Array) -> Array:
    """Limit of ``λ sin(arccos ρ)`` as the floors tend to one: the slope along the sphere there."""
    K = omega * criteria.off(R)
    tangent = np.einsum("ij,ij->j", K, R @ K) - np.einsum("ij,ij->j", R, K) ** 2
    return np.asarray(np.sqrt(np.maximum(tangent, 0.0)))


def _definite(H: Array) -> bool:
    return cholesky_or_none(H) is not None
