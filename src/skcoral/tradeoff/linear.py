"""The Newton equations of the interior-point method, reduced to the symmetric matrix H.

    G V B + B V G + τ B V B - (response of λ) + stiffness ∘ off(V) = right side,

with one more row and column where the criterion has a scalar. Symmetric matrices are flattened to
vectors of length p(p+1)/2 with ``√2`` on the pairs, so that inner products agree.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.tradeoff.dual import DualPoint
from skcoral.tradeoff.pairs import Response

Array = NDArray[np.float64]

_SQRT2 = float(np.sqrt(2.0))


class NewtonSystem:
    """Factorised Newton equations at one point.

    Parameters
    ----------
    R, point : ndarray, DualPoint
        Where.
    barrier : ndarray of shape (p,)
        Diagonal that the barrier on λ adds to ``R∘H⁻¹``; infinite where λ is held fixed.
    tau : float
        Barrier on H.
    stiffness : ndarray
        ``dS/dH``, one value per pair.
    """

    def __init__(
        self, R: Array, point: DualPoint, barrier: Array, tau: float, stiffness: Array
    ) -> None:
        p = len(R)
        self.p = p
        self.rows, self.cols = np.triu_indices(p)
        self.pair = self.rows != self.cols
        G, B = point.G + 0.5 * tau * point.B, point.B
        K = R * B
        held = np.isinf(barrier)
        K[np.diag_indices(p)] += np.where(held, 0.0, barrier)
        K[held, :] = 0.0
        K[:, held] = 0.0
        K[held, held] = 1.0
        self.multiplier_factor = sla.cho_factor(K, lower=True, check_finite=False)
        i, j = self.rows, self.cols
        unit = np.where(self.pair, 1.0 / _SQRT2, 0.5)
        self.J = (point.C[:, i] * B[:, j] + point.C[:, j] * B[:, i]) * unit
        self.J[held] = 0.0
        A = np.empty((len(unit), len(unit)))
        Gi, Gj, Bi, Bj = (np.ascontiguousarray(M[:, at]) for M in (G, B) for at in (i, j))
        start = 0
        for k in range(p):
            # Row (k, l) for all l ≥ k at once: G_ki B_lj + G_kj B_li + G_li B_kj + G_lj B_ki.
            block = A[start : start + p - k]
            np.multiply(Bj[k:], Gi[k], out=block)
            block += Bi[k:] * Gj[k]
            block += Gi[k:] * Bj[k]
            block += Gj[k:] * Bi[k]
            start += p - k
        A *= 2.0 * unit
        A *= unit[:, None]
        half = sla.solve_triangular(
            self.multiplier_factor[0], self.J, lower=True, check_finite=False
        )
        A -= 2.0 * (half.T @ half)
        diagonal = np.zeros(len(unit))
        diagonal[self.pair] = stiffness
        A[np.diag_indices_from(A)] += diagonal
        self.factor = sla.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)

    def flatten(self, M: Array) -> Array:
        """Symmetric matrix to vector."""
        return np.asarray(M[self.rows, self.cols] * np.where(self.pair, _SQRT2, 1.0))

    def unflatten(self, v: Array) -> Array:
        """Vector to symmetric matrix."""
        M = np.zeros((self.p, self.p))
        M[self.rows, self.cols] = v / np.where(self.pair, _SQRT2, 1.0)
        M[self.cols, self.rows] = M[self.rows, self.cols]
        return M

    def multipliers(self, V: Array, missing: Array) -> Array:
        """``dλ`` that goes with ``dH = V`` when the fidelities are to change by ``missing``."""
        return np.asarray(
            sla.cho_solve(
                self.multiplier_factor, self.J @ self.flatten(V) + missing, check_finite=False
            )
        )

    def solve(self, right: Array, missing: Array, response: Response) -> tuple[Array, float]:
        """Solve for ``dH`` and the scalar of the criterion (0 if it has none)."""
        lam = sla.cho_solve(self.multiplier_factor, missing, check_finite=False)
        b = self.flatten(right) + 2.0 * (self.J.T @ lam)
        x = sla.cho_solve(self.factor, b, check_finite=False)
        scalar = 0.0
        if response.lever is not None:
            lever = np.zeros(len(b))
            lever[self.pair] = _SQRT2 * response.lever
            y = sla.cho_solve(self.factor, lever, check_finite=False)
            scalar = -(response.constant + float(lever @ x)) / (response.bend - float(lever @ y))
            x = x - scalar * y
        return self.unflatten(x), scalar
