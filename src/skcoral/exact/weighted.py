"""The weighted-ZCA family: ``S = (D C D)^{1/2}`` with its trace, fidelities and curvature.

For a positive definite ``C`` and positive weights λ (``D = Diag(λ)``), ``T = D S⁻¹`` is the only
exact decorrelator that maximises ``Σ λ_j f_j``, and the maximum is ``tr S``. Every solver of the
exact regime is a search over λ, and this file is its objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import (
    beside,
    column_dots,
    eigh,
    library,
    right_singular,
    row_dots,
    scaled,
    solve_positive,
    submatrix,
    to_host,
)
from skcoral._linalg import gram_defect, precise_column_dots

Array = NDArray[np.float64]

# Below this ratio of eigenvalues, roots of the eigenvalues of D C D lose too many digits and the
# singular values of a factor are used instead.
_EIGEN_LIMIT = 1e-9


class WeightedRoot:
    """``S = (D C D)^{1/2}`` at one λ.

    Attributes
    ----------
    weights : ndarray
        λ.
    sigma, V : array
        ``S = V diag(sigma) Vᵀ``, in the library of ``C``.
    trace : float
        ``tr S``, the nuclear norm of ``C^{1/2} D``: convex and homogeneous in λ.
    diagonal : ndarray
        ``S_jj = λ_j f_j``.
    fidelity : ndarray
        ``f_j = S_jj / λ_j``, the gradient of ``trace`` in λ.
    """

    def __init__(self, C: Any, weights: Array, factor: Any) -> None:
        self.weights = weights
        values, self.V = eigh(scaled(C, weights), overwrite=True)
        if values[0] > _EIGEN_LIMIT * values[-1]:
            self.sigma = values**0.5
        else:
            self.sigma, vt = right_singular(factor.T * beside(weights, C))
            self.V = vt.T
        self.trace = float(library(C).sum(self.sigma))
        self.diagonal: Array = np.asarray(to_host((self.V * self.V) @ self.sigma))
        self.fidelity: Array = self.diagonal / weights
        self._spread: Any = None

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
        inner = V.T @ (beside(d[:, None], V) * V)
        inner *= self.spread
        return row_dots(V @ inner, V)

    def curvature_diagonal(self) -> Array:
        """Diagonal of the operator of :meth:`curvature`."""
        squares = self.V * self.V
        return row_dots(squares @ self.spread, squares)

    def root(self) -> Any:
        """``S`` itself, symmetric to the last bit."""
        S = (self.V * self.sigma) @ self.V.T
        return (S + S.T) / 2

    def transform(self) -> Any:
        """``T = D S⁻¹``."""
        return beside(self.weights[:, None], self.V) * ((self.V / self.sigma) @ self.V.T)


def trace_bound_at(R: Any, weights: Array, S: Any) -> float:
    """Bound ``Σ λ_j f_j`` over all exact decorrelators: ``[tr(S⁻¹ D R D) + tr S] / 2``.

    Valid for every λ ≥ 0 and every positive definite ``S`` on the support of λ; no square root and
    no solver state enters it. Divided by ``Σ λ_j`` it bounds the threshold from above.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation (or covariance) matrix.
    weights : ndarray of shape (p,)
        λ ≥ 0.
    S : ndarray of shape (m, m)
        Positive definite, rows in the order of the m variables with λ_j > 0.
    """
    on = np.flatnonzero(weights > 0)
    C = submatrix(R, on, on)
    X = solve_positive(S, beside(np.diag(weights[on]), R)).T
    # Around X = D S⁻¹ the bound is Σ λ_j f_j(X) - ½ ⟨XᵀCX - I, S⟩ but for the square of a rounding.
    inexact = float(column_dots(S, gram_defect(C, X, precise=True)).sum())
    return float(weights[on] @ precise_column_dots(C, X)) - 0.5 * inexact
