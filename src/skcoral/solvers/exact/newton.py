"""Newton's method over the weights λ: one driver for the threshold and for the largest mean.

For a positive definite ``C`` and positive weights λ (``D = Diag(λ)``, ``S = (D C D)^{1/2}``),
``T = D S⁻¹`` is the only exact decorrelator that maximises ``Σ λ_j f_j``, and the maximum is
``tr S``. Both problems minimise ``tr S - λᵀρ``, over the simplex with ρ = 0 or over λ ≥ 1, in
relative changes ``d = dλ/λ``, because then the Hessian is that of :meth:`WeightedRoot.curvature`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import (
    Array,
    cholesky,
    cholesky_or_none,
    column_sums,
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

_NEAR = 1e-6  # residuals below this deserve accurate singular values
_NEARBY = 0.05  # relative changes below this leave the Laplacian a good preconditioner
_CG_STEPS = 30
_BLIND = 3  # steps without measurable gain after which rounding decides


class Problem(ABC):
    """A function of the weights, its constraints, and the state of the search for its minimum.

    The search ends at a residual of ``goal``, or of ``close`` when it has stopped to fall.
    """

    def __init__(self, C: Any, *, goal: float, close: float, callback: Callback | None) -> None:
        self.C = C
        self.factor = cholesky(C)
        self.goal, self.close = goal, close
        self.callback = callback
        self.n_iter = 0
        self.accurate = False

    def at(self, weights: Array) -> WeightedRoot:
        """Return the weighted root at these weights."""
        return WeightedRoot(self.C, weights, self.factor, accurate=self.accurate)

    @abstractmethod
    def merit(self, root: WeightedRoot) -> tuple[float, Array]:
        """Return what is minimised, and its gradient in relative changes of the weights."""

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
    best, best_root, stalled = np.inf, root, 0
    lowest, blind = np.inf, 0  # steps that neither the value nor the residual tells from rounding
    while True:
        residual = problem.residual(root)
        if residual < _NEAR:
            root.refine()
            residual = problem.residual(root)
        problem.accurate = root.refined and residual < _NEAR
        value = problem.merit(root)[0]
        falls = value < lowest - _noise(root, value)
        lowest = min(lowest, value)
        stalled = stalled + 1 if residual > 0.5 * best else 0
        blind = 0 if falls or not stalled else blind + 1
        if residual < best:
            best, best_root = residual, root
        if problem.finished(root) or residual <= problem.goal:
            return root
        if problem.n_iter >= max_iter or blind >= _BLIND:
            return best_root
        if stalled >= 2 and best <= problem.close:
            return best_root
        d = problem.direction(root)
        step = None if d is None else _backtrack(problem, root, d)
        if step is None:
            return root
        problem.n_iter += 1
        root = step


def _backtrack(problem: Problem, root: WeightedRoot, d: Array) -> WeightedRoot | None:
    """Shorten the step until the value falls; None if rounding leaves no descent."""
    value, gradient = problem.merit(root)
    residual = problem.residual(root)
    noise = _noise(root, value)
    length = 1.0
    while length > 1e-10:
        weights = problem.move(root.weights, length * d)
        expected = float(gradient @ (weights / root.weights - 1))
        candidate = problem.at(weights)
        if not root.formed and length * np.abs(d).max() < _NEARBY:
            candidate.take_laplacian(root)
        if expected < 0 and problem.merit(candidate)[0] - value <= 1e-4 * expected + noise:
            return candidate
        if abs(expected) < 1e-8 * root.trace:
            # Too close for the value to tell: is optimality nearer?
            candidate.refine()
            if problem.residual(candidate) < 0.5 * residual:
                return candidate
        if length < 0.01 and abs(expected) < noise:
            return None
        length *= 0.5
    return None


def _noise(root: WeightedRoot, value: float) -> float:
    """About the rounding of a value, which is a trace less something."""
    return 4e-15 * (root.trace + abs(root.trace - value))


class NewtonSystem:
    """``Hessian + Diag(bend)`` at a root: factorised, or preconditioned by the Laplacian.

    Only ``free`` weights change, and ``normalᵀ d = 0``, where these are given.
    """

    def __init__(
        self,
        root: WeightedRoot,
        bend: Array,
        *,
        free: NDArray[np.bool_] | None = None,
        normal: Array | None = None,
    ) -> None:
        self.root, self.bend = root, bend
        self.on = np.arange(len(bend)) if free is None else np.flatnonzero(free)
        K = root.hessian() if root.formed else 1.0 * root.laplacian()
        if free is not None:
            K = submatrix(K, self.on, self.on)
        self.normal = None if normal is None else normal[self.on]
        if self.normal is not None:
            # Nothing changes where normalᵀ d = 0, but the matrix is definite without any bend.
            n = to_device(self.normal, K)
            K = K + root.trace * n[:, None] * n[None, :]
        self.factor, ridge = None, 1e-14
        while self.factor is None:
            K = plus_diagonal(K, (bend + ridge * root.diagonal)[self.on])
            self.factor = cholesky_or_none(K)
            ridge *= 100
        if self.normal is not None:
            self.across: Array = solve_factored(self.factor, self.normal)

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


# Ratios of the eigenvalues of D C D below which their roots lose digits that matter at the end of a
# search, and below which they are not usable at all.
_INACCURATE, _UNUSABLE = 1e-7, 1e-13
# Quadrature of the curvature: step and margins in log t. Its relative error is below a sixth.
_STEP, _MARGIN = 1.5, 1.2
_FORMED = 32  # variables up to which p⁴ operations take less time than iterations


class WeightedRoot:
    """``S = V diag(sigma) Vᵀ`` at one λ, with V and sigma in the library of ``C``.

    ``trace`` is ``tr S``, the nuclear norm of ``C^{1/2} D``: convex and homogeneous in λ. Its
    gradient is ``fidelity``, ``f_j = S_jj / λ_j``, and ``diagonal`` is ``S_jj``.
    """

    def __init__(self, C: Any, weights: Array, factor: Any, *, accurate: bool = False) -> None:
        self.weights = weights
        self.refined = False
        self._factor = factor
        self._accurate = False
        ratio = 0.0
        if not accurate:
            values, V = eigh(scaled(C, weights), overwrite=True)
            ratio = float(values[0]) / float(values[-1])
            self._accurate = ratio > _INACCURATE
        if ratio > _UNUSABLE:
            self._set(values**0.5, V)
        else:
            self.refine()

    def refine(self) -> None:
        """Take the singular values of a factor where eigenvalues of D C D have too few digits."""
        if not self._accurate:
            self._accurate = self.refined = True
            self._set(*right_singular(self._factor.T * to_device(self.weights, self._factor)))

    def _set(self, sigma: Any, V: Any) -> None:
        self.sigma, self.V = sigma, V
        self.trace = float(library(V).sum(sigma))
        self.diagonal: Array = np.asarray(to_host((V * V) @ sigma))
        self.fidelity: Array = self.diagonal / self.weights
        self._spread: Any = None
        self._laplacian: Any = None

    @property
    def spread(self) -> Any:
        """``(σ_a - σ_b)² / (2 (σ_a + σ_b))``: the curvature of the trace in the eigenbasis."""
        if self._spread is None:
            s = self.sigma
            spread = s[:, None] - s[None, :]
            spread *= spread
            sums = s[:, None] + s[None, :]
            sums *= 2.0
            spread /= sums
            self._spread = spread
        return self._spread

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
        if self._laplacian is None:
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
            self._laplacian = plus_diagonal(-edges, column_sums(edges))
        return self._laplacian

    def take_laplacian(self, near: WeightedRoot) -> None:
        """Use the Laplacian at weights nearby, which is as good a preconditioner."""
        self._laplacian = near.laplacian()

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
