"""The weighted-ZCA family: ``S = (D C D)^{1/2}`` with its trace, fidelities and curvature.

For a positive definite ``C`` and positive weights λ (``D = Diag(λ)``), ``T = D S⁻¹`` is the only
exact decorrelator that maximises ``Σ λ_j f_j``, and the maximum is ``tr S``. Every solver of the
exact regime is a search over λ, and this file is its objective.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

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
    sigma, V : ndarray
        ``S = V diag(sigma) Vᵀ``.
    trace : float
        ``tr S``, the nuclear norm of ``C^{1/2} D``: convex and homogeneous in λ.
    diagonal : ndarray
        ``S_jj = λ_j f_j``.
    fidelity : ndarray
        ``f_j = S_jj / λ_j``, the gradient of ``trace`` in λ.
    """

    def __init__(self, C: Array, weights: Array, factor: Array) -> None:
        self.weights = weights
        values, vectors = sla.eigh(
            C * np.outer(weights, weights), overwrite_a=True, check_finite=False
        )
        if values[0] > _EIGEN_LIMIT * values[-1]:
            self.sigma: Array = np.sqrt(values)
            self.V: Array = vectors
        else:
            _, singular, vt = sla.svd(factor.T * weights, check_finite=False)
            self.sigma = singular[::-1].copy()
            self.V = vt[::-1].T.copy()
        self.trace = float(self.sigma.sum())
        self.diagonal: Array = (self.V * self.V) @ self.sigma
        self.fidelity: Array = self.diagonal / weights
        self._spread: Array | None = None

    @property
    def spread(self) -> Array:
        """``(σ_a - σ_b)² / (2 (σ_a + σ_b))``: the curvature of the trace in the eigenbasis."""
        if self._spread is None:
            s = self.sigma
            spread = np.subtract.outer(s, s)
            spread *= spread
            spread /= 2 * np.add.outer(s, s)
            self._spread = spread
        return self._spread

    def curvature(self, d: Array) -> Array:
        """Apply ``D (∇² tr S) D``, the Hessian in relative changes ``d = dλ/λ``, to ``d``.

        From ``dS = V [c ∘ (VᵀZV)] Vᵀ`` with ``c_ab = (σ_a²+σ_b²)/(σ_a+σ_b)`` and ``Z = Diag(d)``;
        taking out ``S_jj d_j`` leaves ``c_ab - (σ_a+σ_b)/2``, which is ``spread``: semidefinite,
        with ``d`` constant in its null space because the trace is homogeneous.
        """
        V = self.V
        inner = V.T @ (d[:, None] * V)
        inner *= self.spread
        return np.asarray(np.einsum("ja,ja->j", V @ inner, V))

    def curvature_diagonal(self) -> Array:
        """Diagonal of the operator of :meth:`curvature`."""
        squares = self.V * self.V
        return np.asarray(np.einsum("ja,ja->j", squares @ self.spread, squares))

    def root(self) -> Array:
        """``S`` itself."""
        return (self.V * self.sigma) @ self.V.T

    def transform(self) -> Array:
        """``T = D S⁻¹``."""
        return self.weights[:, None] * ((self.V / self.sigma) @ self.V.T)


def trace_bound_at(R: Array, weights: Array, S: Array) -> float:
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
    scaled = R[np.ix_(on, on)] * np.outer(weights[on], weights[on])
    factor = sla.cho_factor(S, lower=True, check_finite=False)
    return 0.5 * float(np.trace(sla.cho_solve(factor, scaled, check_finite=False)) + np.trace(S))
