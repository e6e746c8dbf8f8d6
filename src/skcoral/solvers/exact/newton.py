"""Newton's method over the weights λ: one driver for the threshold and for the largest mean.

For a positive definite ``C`` and positive weights λ (``D = Diag(λ)``, ``S = (D C D)^{1/2}``),
``T = D S⁻¹`` is the only exact decorrelator that maximises ``Σ λ_j f_j``, and the maximum is
``tr S``. Both problems minimise ``tr S - λᵀρ``, over the simplex with ρ = 0 or over λ ≥ 1, in
relative changes ``d = dλ/λ``, because then the Hessian is that of :meth:`WeightedRoot.curvature`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from skcoral.core.arrays import (
    EPS,
    Array,
    Index,
    cholesky,
    column_sums,
    diagonal,
    eigh,
    inner,
    library,
    plus_diagonal,
    right_singular,
    row_products,
    scaled,
    solve_factored,
    solve_positive,
    submatrix,
    to_device,
    to_host,
    zeros,
)
from skcoral.core.linalg import conjugate_gradient

Callback = Callable[[int, float, float], object]

_NEARBY = 0.05  # a Newton step of relative changes below this fails only by rounding
_SHORTEST = 1e-4  # part of a step that is tried; the longest one fails by its curvature
_CG_STEPS = 30
# Of the diagonal, for directions without curvature: blocks with equal thresholds, the scale of all
# weights. At ten times it floors at the edge of the possible, with weights of 1e9, take many steps.
_RIDGE = 1e-12


class Problem(ABC):
    """A function of the weights, its constraints, and the state of the search for its minimum.

    The search ends at a residual of ``goal``, or below ``close`` when it is no longer halved.
    """

    def __init__(self, C: Any, *, goal: float, close: float, callback: Callback | None) -> None:
        self.C = C
        self.factor = cholesky(C)
        self.goal, self.close = goal, close
        self.callback = callback
        self.n_iter, self.last = 0, np.inf

    def at(self, weights: Array) -> WeightedRoot:
        """Return the weighted root at these weights."""
        # Roots lose a rounding unit over the ratio: at most a hundredth of the last residual.
        ratio = min(max(100.0 * EPS / self.last, _FEW_DIGITS[0]), _FEW_DIGITS[1])
        return WeightedRoot(self.C, weights, self.factor, ratio)

    @abstractmethod
    def gradient(self, root: WeightedRoot) -> Array:
        """Return the gradient in relative changes of the weights."""

    @abstractmethod
    def residual(self, root: WeightedRoot) -> float:
        """Return the distance from optimality: zero at the solution."""

    @abstractmethod
    def finished(self, root: WeightedRoot) -> bool:
        """Report the point, and tell whether the search can end here for a reason of its own."""

    @abstractmethod
    def direction(self, root: WeightedRoot) -> Array | None:
        """Return the relative change to try; None if there is nowhere to go."""

    @abstractmethod
    def move(self, weights: Array, d: Array) -> Array:
        """Return feasible weights that change by about ``d``."""


def minimise(problem: Problem, root: WeightedRoot, max_iter: int) -> WeightedRoot:
    """Take Newton steps until the problem is solved, rounding leaves no descent, or they run out.

    ``max_iter`` bounds ``problem.n_iter``, which counts on from where it stands.
    """
    while True:
        residual = problem.residual(root)
        solved = residual <= problem.goal or problem.close >= residual > 0.5 * problem.last
        if problem.finished(root) or solved or problem.n_iter >= max_iter:
            return root
        problem.last = residual
        d = problem.direction(root)
        following = None if d is None else _advance(problem, root, d)
        if following is None:
            return root
        problem.n_iter += 1
        root = following


def _advance(problem: Problem, root: WeightedRoot, d: Array) -> WeightedRoot | None:
    """Shorten the step until the slope along it is halved; None if rounding does not let it.

    The function is convex, so that the slope rises along the step. It keeps its digits where those
    of the value are lost: near the solution and at large weights.
    """
    gradient, length = problem.gradient(root), 1.0
    shortest = 1.0 if np.abs(d).max() < _NEARBY else _SHORTEST
    while length >= shortest:
        candidate = problem.at(problem.move(root.weights, length * d))
        before = float(gradient @ (candidate.weights / root.weights - 1.0))
        after = float(problem.gradient(candidate) @ (1.0 - root.weights / candidate.weights))
        if before < 0.0 and after <= -0.5 * before:
            return candidate
        length *= 0.5
    return None


class NewtonSystem:
    """``Hessian + Diag(bend)`` at a root: factorised, or preconditioned by the Laplacian.

    Only the weights ``on`` change, and ``normalᵀ d = 0`` if a normal is given.
    """

    def __init__(
        self, root: WeightedRoot, bend: Array, on: Index, normal: Array | None = None
    ) -> None:
        self.root, self.bend, self.on, self.normal = root, bend, on, normal
        K = submatrix(root.hessian() if root.formed else root.laplacian(), on, on)
        if normal is not None:
            # Nothing changes where normalᵀ d = 0, but the matrix is definite without any bend.
            n = to_device(normal, K)
            K = K + root.trace * n[:, None] * n[None, :]
        self.factor = cholesky(plus_diagonal(K, (bend + _RIDGE * root.diagonal)[on]))
        if normal is not None:
            self.across: Array = solve_factored(self.factor, normal)

    def _precondition(self, r: Array) -> Array:
        y: Array = solve_factored(self.factor, r)
        if self.normal is None:
            return y
        return y - self.across * float((self.normal @ y) / (self.normal @ self.across))

    def _apply(self, d: Array) -> Array:
        full = np.zeros(len(self.bend))
        full[self.on] = d
        return (self.root.curvature(full) + self.bend * full)[self.on]

    def solve(self, gradient: Array, rtol: float) -> Array:
        """Return ``d`` with ``(Hessian + Diag(bend)) d = -gradient`` to a relative accuracy."""
        d, right = np.zeros(len(self.bend)), -gradient[self.on]
        if self.root.formed:
            d[self.on] = self._precondition(right)
        else:
            d[self.on], _, _ = conjugate_gradient(
                self._apply, right, self._precondition, rtol=rtol, max_iter=_CG_STEPS
            )
        return d


# Ratios of the eigenvalues of D C D below which singular values are taken, far from the solution
# and next to it. With one of 1e-8 for all, fidelities off by 1e-9 can end the search; with one of
# 1e-6, moving averages take 1.2 times the time.
_FEW_DIGITS = (1e-10, 1e-6)
# Quadrature of the curvature: step and margins in log t. Its relative error is below a sixth.
_STEP, _MARGIN = 1.5, 1.2
_FORMED = 32  # variables up to which p⁴ operations take less time than iterations


class WeightedRoot:
    """``S = V diag(sigma) Vᵀ`` at one λ, with V and sigma in the library of ``C``.

    ``trace`` is ``tr S``, the nuclear norm of ``C^{1/2} D``: convex and homogeneous in λ. Its
    gradient is ``fidelity``, ``f_j = S_jj / λ_j``, and ``diagonal`` is ``S_jj``.
    """

    def __init__(self, C: Any, weights: Array, factor: Any, ratio: float = _FEW_DIGITS[0]) -> None:
        self.weights = weights
        # The squares of the pivots of D C D lie between its eigenvalues.
        pivots = diagonal(factor) * weights
        few = bool(pivots.min() < ratio**0.5 * pivots.max())
        if not few:
            values, self.V = eigh(scaled(C, weights), overwrite=True)
            self.sigma = abs(values) ** 0.5
            few = float(values[0]) < ratio * float(values[-1])
        if few:
            self.sigma, self.V = right_singular(factor.T * to_device(weights, factor))
        self.trace = float(library(self.V).sum(self.sigma))
        self.diagonal: Array = np.asarray(to_host((self.V * self.V) @ self.sigma))
        self.fidelity: Array = self.diagonal / weights

    @cached_property
    def spread(self) -> Any:
        """``(σ_a - σ_b)² / (2 (σ_a + σ_b))``: the curvature of the trace in the eigenbasis."""
        difference = self.sigma[:, None] - self.sigma[None, :]
        total = self.sigma[:, None] + self.sigma[None, :]
        return 0.5 * difference * difference / total

    def curvature(self, d: Array) -> Array:
        """Apply ``D (∇² tr S) D``, the Hessian in relative changes ``d = dλ/λ``, to ``d``.

        From ``dS = V [c ∘ (VᵀZV)] Vᵀ`` with ``c_ab = (σ_a²+σ_b²)/(σ_a+σ_b)`` and ``Z = Diag(d)``;
        taking out ``S_jj d_j`` leaves ``c_ab - (σ_a+σ_b)/2``, which is ``spread``: semidefinite,
        with ``d`` constant in its null space because the trace is homogeneous.
        """
        V = self.V
        inner = V.T @ (to_device(d[:, None], V) * V)
        inner *= self.spread
        return np.asarray(to_host(row_products(V @ inner, V)))

    @property
    def formed(self) -> bool:
        """Whether the operator of :meth:`curvature` is formed as a matrix, p⁴ operations."""
        return isinstance(self.V, np.ndarray) and len(self.V) <= _FORMED

    def hessian(self) -> Any:
        """The operator of :meth:`curvature` as a matrix."""
        p = len(self.V)
        products = (self.V[:, :, None] * self.V[:, None, :]).reshape(p, p * p)
        return (products * self.spread.ravel()) @ products.T

    def laplacian(self) -> Any:
        """Approximate the operator of :meth:`curvature` by a matrix, to a sixth of its value.

        With ``y_t(σ) = σ² / (σ² + t²)`` the spread is ``(2/π) ∫ (y_t(σ_a) - y_t(σ_b))² dt``, and
        each t contributes the Laplacian of a graph whose edges weigh ``(V y_t Vᵀ)_jk²``. The
        trapezoidal rule in log t needs few nodes and keeps the relative error in all directions,
        the flat ones included.
        """
        sigma = np.asarray(to_host(self.sigma))
        first = np.log(max(sigma.min(), 1e-20 * sigma.max())) - _MARGIN
        last = np.log(sigma.max()) + _MARGIN
        nodes = int(np.ceil((last - first) / _STEP)) + 1
        logs, step = np.linspace(first, last, nodes, retstep=True)
        edges: Any = 0.0
        for t in np.exp(logs):
            half = self.V * to_device(sigma / np.hypot(sigma, t), self.V)
            part = half @ half.T
            part *= part
            part *= float(4 / np.pi * step * t)
            edges = edges + part
        return plus_diagonal(-edges, column_sums(edges))

    def root(self) -> Any:
        """``S`` itself, symmetric to the last bit."""
        S = (self.V * self.sigma) @ self.V.T
        return (S + S.T) / 2

    def transform(self) -> Any:
        """``T = D S⁻¹``."""
        return to_device(self.weights[:, None], self.V) * ((self.V / self.sigma) @ self.V.T)


def trace_excess(C: Any, weights: Array, S: Any, T: Any, defect: Any) -> float:
    """Return by how much ``Σ λ_j f_j`` of an exact decorrelator can exceed that of ``T``.

    It is at most ``[tr(S⁻¹ D C D) + tr S] / 2`` for every positive definite ``S``. Less
    ``Σ λ_j f_j(T)`` and written around ``T``, with ``E = D S⁻¹ - T``, that is

        ½ tr(Eᵀ C E S) - ½ ⟨S, TᵀCT - I⟩,

    which keeps its digits. ``defect`` is ``TᵀCT - I``.
    """
    D = plus_diagonal(zeros(C.shape, C), weights)
    E = solve_positive(S, D).T - T
    return 0.5 * inner(E, C @ (E @ S)) - 0.5 * inner(S, defect)
