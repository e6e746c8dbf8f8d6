"""The weighted-ZCA family: ``S = (D C D)^{1/2}`` with its trace, fidelities and curvature.

For a positive definite ``C`` and positive weights λ (``D = Diag(λ)``), ``T = D S⁻¹`` is the only
exact decorrelator that maximises ``Σ λ_j f_j``, and the maximum is ``tr S``. Every solver of the
exact regime is a search over λ, and this file is its objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import (
    Array,
    column_sums,
    eigh,
    inner,
    library,
    plus_diagonal,
    right_singular,
    row_dots,
    scaled,
    solve_positive,
    to_device,
    to_host,
    zeros,
)

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
            spread /= 2 * (s[:, None] + s[None, :])
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
        return row_dots(V @ inner, V)

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
