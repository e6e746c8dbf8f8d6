"""The paper's own way to solve its problems, followed from a given start.

An augmented Lagrangian over a manifold, its inner problems solved by pymanopt's Riemannian trust
regions (extra ``paper``). The paper does not print its settings, but its results determine them. A
penalty that starts at 10 and is doubled until floors hold to 1e-4 ends at the five violations that
its appendix prints, to every digit; of 42 pairs of start and growth tried, no other does. Its
thresholds have six right digits, for which floors must hold to 1e-7.

This is for comparison only: :func:`skcoral.threshold` and :func:`skcoral.decorrelate` solve the
same problems and prove it. ``benchmarks/protocol.py`` runs it from random starts, as the paper did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.core.arrays import Array

_VIOLATION = 1e-4  # of a floor: with the penalty and its growth, what the printed violations need
_THRESHOLD_VIOLATION = 1e-7  # six right digits of ρ★ need it
_PENALTY, _GROWTH = 10.0, 2.0
_ROUNDS, _STEPS = 30, 500  # at most
_GRADIENT = 1e-6  # norm of the gradient at which an inner problem ends


def protocol_from(R: Array, rho_min: float, T: Array) -> Array:
    """Where the paper's method ends that starts at ``T``; its floors are missed by up to 1e-4.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> from skcoral.datasets import make_system
    >>> from skcoral.core.measures import fidelity
    >>> R = make_system(6)
    >>> T = protocol_from(R, 0.99, decorrelate(R, 0.99).T)
    >>> f"{0.99 - fidelity(R, T).min():.2e}"  # the violation that the paper prints
    '9.51e-05'
    """
    root = symmetric_root(R)
    W = minimise(root, root @ T, rho_min)
    return np.asarray(np.linalg.solve(root, W), dtype=np.float64)


def symmetric_root(R: Array) -> Array:
    """R^{1/2}: its columns are the directions of the sources."""
    values, vectors = np.linalg.eigh(R)
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)


def squared_residual(W: Array) -> tuple[float, Array]:
    """D2 as a function of the outputs' directions, and their residual correlations."""
    E = W.T @ W
    np.fill_diagonal(E, 0.0)
    return float(np.sum(E * E)) / 2, E


class _Lagrangian:
    """The augmented Lagrangian of the floors: D2 at a floor, or minus a floor that is free."""

    def __init__(self, root: Array, rho_min: float | None, multipliers: Array, penalty: float):
        self.root, self.rho_min = root, rho_min
        self.multipliers, self.penalty = multipliers, penalty

    def shortfall(self, *point: Array) -> Array:
        """By how much each fidelity misses the floor, which is in the point or given."""
        wanted = self.rho_min if self.rho_min is not None else point[1]
        return np.asarray(wanted - np.einsum("ij,ij->j", self.root, point[0]))

    def updated(self, *point: Array) -> Array:
        """The multipliers after a step."""
        return np.maximum(0.0, self.multipliers + self.penalty * self.shortfall(*point))

    def cost(self, *point: Array) -> float:
        m = self.updated(*point)
        free = self.rho_min is None
        value = -float(point[1][0]) if free else squared_residual(point[0])[0]
        # Rockafellar's augmented Lagrangian of inequalities: shortfalls below zero cost nothing
        return value + float(m @ m - self.multipliers @ self.multipliers) / (2 * self.penalty)

    def gradient(self, *point: Array) -> Any:
        m = self.updated(*point)
        if self.rho_min is None:
            return [-self.root * m, m.sum(keepdims=True) - 1.0]
        return 2 * point[0] @ squared_residual(point[0])[1] - self.root * m

    def hessian(self, *point_and_direction: Array) -> Any:
        half = len(point_and_direction) // 2
        point, (V, *floor) = point_and_direction[:half], point_and_direction[half:]
        W = point[0]
        change = sum(floor) - np.einsum("ij,ij->j", self.root, V)
        # a floor whose multiplier is zero does not bend the function
        change = self.penalty * (self.updated(*point) > 0) * change
        if floor:
            return [-self.root * change, change.sum(keepdims=True)]
        cross = V.T @ W
        cross = cross + cross.T
        np.fill_diagonal(cross, 0.0)
        return 2 * (V @ squared_residual(W)[1] + W @ cross) - self.root * change


def minimise(root: Array, point: Any, rho_min: float | None = None) -> Any:
    """Minimise under ``floor - fidelity ≤ 0``; without ``rho_min`` the floor is free."""
    import pymanopt
    from pymanopt.manifolds import Euclidean, Oblique, Product, Stiefel
    from pymanopt.optimizers import TrustRegions

    if rho_min is None:
        allowed = _THRESHOLD_VIOLATION
        manifold = Product([Stiefel(*root.shape, retraction="polar"), Euclidean(1)])
    else:
        allowed, manifold = _VIOLATION, Oblique(*root.shape)

    def smooth(method: Callable[..., Any]) -> Any:
        # pymanopt counts the ``self`` of a bound method as one of its arguments.
        return pymanopt.function.numpy(manifold)(lambda *arguments: method(*arguments))

    solver = TrustRegions(max_iterations=_STEPS, min_gradient_norm=_GRADIENT, verbosity=0)
    # multipliers learn from what each solution misses, and the penalty grows, until the floors hold
    penalty, multipliers = _PENALTY, np.zeros(len(root))
    for _ in range(_ROUNDS):
        of = _Lagrangian(root, rho_min, multipliers, penalty)
        problem = pymanopt.Problem(
            manifold,
            smooth(of.cost),
            euclidean_gradient=smooth(of.gradient),
            euclidean_hessian=smooth(of.hessian),
        )
        point = solver.run(problem, initial_point=point).point
        parts = (point,) if rho_min is not None else tuple(point)
        if of.shortfall(*parts).max() < allowed:
            break
        multipliers = of.updated(*parts)
        penalty *= _GROWTH
    return point
