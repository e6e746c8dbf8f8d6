"""The Newton equations of the interior-point method, reduced to the symmetric matrix H.

    G V B + B V G + τ B V B - (response of λ) + stiffness ∘ off(V) = right side,

with one more row and column where the criterion has a scalar. The unknown entries of V are
flattened to a vector with ``√2`` on the pairs, so that inner products agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.tradeoff.dual import DualPoint
from skcoral.tradeoff.pairs import Response

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Unknowns:
    """Which entries of H are free: the pairs ``rows < cols`` and the diagonal entries ``own``."""

    rows: Index
    cols: Index
    own: Index
    size: int

    def matrix(self, values: Array, diagonal: Array | None = None) -> Array:
        """Symmetric matrix with these entries."""
        M = np.zeros((self.size, self.size))
        M[self.rows, self.cols] = values
        M[self.cols, self.rows] = values
        if diagonal is not None:
            M[self.own, self.own] = diagonal
        return M

    def norm(self, M: Array) -> float:
        """Norm of the symmetric matrix ``M`` over these entries."""
        pairs, diagonal = M[self.rows, self.cols], M[self.own, self.own]
        return float(np.sqrt(2.0 * (pairs @ pairs) + diagonal @ diagonal))


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
    unknowns : Unknowns
        The free entries of H.
    stiffness : ndarray
        ``dS/dH``, one value per pair.
    """

    def __init__(
        self,
        R: Array,
        point: DualPoint,
        barrier: Array,
        tau: float,
        unknowns: Unknowns,
        stiffness: Array,
    ) -> None:
        p = len(R)
        self.unknowns = unknowns
        G, B = point.G + 0.5 * tau * point.B, point.B
        self.held = np.isinf(barrier)
        self.multiplier_factor = factorise_multipliers(R * B, barrier)
        # Sorted by row, so that the entries of one row form a block of the matrix.
        i = np.concatenate([unknowns.rows, unknowns.own])
        j = np.concatenate([unknowns.cols, unknowns.own])
        self.order = np.lexsort((j, i))
        i, j = i[self.order], j[self.order]
        self.rows, self.cols, self.pair = i, j, i != j
        unit = np.where(self.pair, 1.0, np.sqrt(0.5))
        n = len(i)
        Gi, Gj, Bi, Bj = (M[:, ij] for M in (G, B) for ij in (i, j))
        # Filled by rows from the diagonal on: the lower triangle of the Fortran-ordered transpose.
        A = np.empty((n, n))
        starts = np.searchsorted(i, np.arange(p + 1))
        for k in range(p):
            start, end = starts[k], starts[k + 1]
            if start == end:
                continue
            # Row (k, l) for all l at once: G_ki B_lj + G_kj B_li + G_li B_kj + G_lj B_ki.
            at, rest = j[start:end], slice(start, n)
            block = A[start:end, rest]
            np.multiply(Bj[at, rest], Gi[k, rest], out=block)
            block += Bi[at, rest] * Gj[k, rest]
            block += Gi[at, rest] * Bj[k, rest]
            block += Gj[at, rest] * Bi[k, rest]
            block *= unit[rest]
            block *= unit[start:end, None]
        diagonal = np.zeros(n)
        diagonal[self.pair] = stiffness[self.order[self.pair]]
        A[np.diag_indices(n)] += diagonal
        self.J = (point.C[:, i] * Bj + point.C[:, j] * Bi) * (unit * np.sqrt(0.5))
        self.J[self.held] = 0.0
        half = sla.lapack.dtrtrs(self.multiplier_factor, np.asfortranarray(self.J), lower=1)[0]
        lower = sla.blas.dsyrk(-2.0, half, beta=1.0, c=A.T, trans=1, lower=1, overwrite_c=1)
        self.factor, info = sla.lapack.dpotrf(lower, lower=1, overwrite_a=1)
        if info != 0:
            raise sla.LinAlgError("the Newton equations are not positive definite to rounding")

    def flatten(self, M: Array) -> Array:
        """Symmetric matrix to vector."""
        return np.asarray(M[self.rows, self.cols] * np.where(self.pair, np.sqrt(2.0), 1.0))

    def unflatten(self, v: Array) -> Array:
        """Vector to symmetric matrix."""
        M = np.zeros((self.unknowns.size, self.unknowns.size))
        M[self.rows, self.cols] = v * np.where(self.pair, np.sqrt(0.5), 1.0)
        M[self.cols, self.rows] = M[self.rows, self.cols]
        return M

    def multipliers(self, V: Array, missing: Array) -> Array:
        """``dλ`` that goes with ``dH = V`` when the fidelities are to change by ``missing``."""
        right = self.J @ self.flatten(V) + missing
        return np.asarray(sla.lapack.dpotrs(self.multiplier_factor, right, lower=1)[0])

    def solve(self, right: Array, missing: Array, response: Response) -> tuple[Array, float]:
        """Solve for ``dH`` and the scalar of the criterion (0 if it has none)."""
        lam = sla.lapack.dpotrs(self.multiplier_factor, missing, lower=1)[0]
        b = self.flatten(right) + 2.0 * (self.J.T @ lam)
        if response.lever is None:
            return self.unflatten(sla.lapack.dpotrs(self.factor, b, lower=1)[0]), 0.0
        lever = self.flatten(self.unknowns.matrix(response.lever))
        both = sla.lapack.dpotrs(self.factor, np.column_stack([b, lever]), lower=1)[0]
        x, y = both.T
        scalar = -(response.constant + float(lever @ x)) / (response.bend - float(lever @ y))
        return self.unflatten(x - scalar * y), scalar


def factorise_multipliers(K: Array, barrier: Array) -> Array:
    """Cholesky factor of ``K`` plus the barrier's diagonal, with the held multipliers taken out."""
    held = np.isinf(barrier)
    K[np.diag_indices_from(K)] += np.where(held, 0.0, barrier)
    if held.any():
        K[held, :] = 0.0
        K[:, held] = 0.0
        K[held, held] = 1.0
    factor, info = sla.lapack.dpotrf(K, lower=1, clean=1)
    if info != 0:
        raise sla.LinAlgError("R∘H⁻¹ is not positive definite to rounding")
    return np.asarray(factor)
