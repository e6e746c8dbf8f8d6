"""Matrices of many columns that are kept as factors: a transformation and a correlation matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import Array, Frozen

MANY = 5000  # columns whose pairs are not looked at one by one: 25 million products
_SINGULAR = 1e-13  # singular values of T, relative to the largest, that count as zero


@dataclass(frozen=True, eq=False, repr=False)
class LowRankTransform(Frozen):
    """The transformation ``T = I + left @ right``, without its p × p coefficients.

    Rows are transformed by ``Z @ T``, at a cost of rows × rank × columns.

    Attributes
    ----------
    left : ndarray of shape (p, r)
        ``A⁺``, the pseudo-inverse of the factor.
    right : ndarray of shape (r, p)
        ``U - A``, what the outputs differ from their sources by.
    """

    left: Array
    right: Array

    __array_ufunc__ = None  # so that an array to the left of @ asks this object

    @property
    def shape(self) -> tuple[int, int]:
        """(p, p)."""
        return self.left.shape[0], self.right.shape[1]

    def __rmatmul__(self, Z: Any) -> Array:
        Z = np.asarray(Z)
        return np.asarray(Z + (Z @ self.left) @ self.right)

    def __matmul__(self, M: Any) -> Array:
        return np.asarray(M + self.left @ (self.right @ M))

    def solve(self, Y: Any) -> tuple[Array, bool]:
        """``Y T⁺``, the rows of least norm with outputs ``Y``, and whether there are no others."""
        # T = (I - QQᵀ) + Q M Qᵀ with a basis Q (p × 2r) of all directions that T changes
        Q = sla.qr(np.hstack([self.left, self.right.T]), mode="economic", check_finite=False)[0]
        M = np.eye(Q.shape[1]) + (Q.T @ self.left) @ (self.right @ Q)
        change, rank = sla.pinv(M, rtol=_SINGULAR, return_rank=True)
        return np.asarray(Y + ((Y @ Q) @ (change - np.eye(len(M)))) @ Q.T), bool(rank == len(M))

    def largest(self) -> float:
        """The largest coefficient in absolute value; of very many columns, a bound on it."""
        if self.shape[0] <= MANY:
            T = self.toarray()
            return float(max(T.max(), -T.min()))
        rows, columns = (np.linalg.norm(self.left, axis=1), np.linalg.norm(self.right, axis=0))
        return 1.0 + float(rows.max()) * float(columns.max())

    def toarray(self) -> Array:
        """All coefficients, as an ordinary array of p × p numbers."""
        return np.eye(self.shape[0]) + self.left @ self.right

    def __repr__(self) -> str:
        return f"LowRankTransform(p={self.shape[0]}, rank={self.left.shape[1]})"


@dataclass(frozen=True, eq=False, repr=False)
class FactoredCorrelation(Frozen):
    """The correlation matrix ``UᵀU`` of many outputs, kept as its factor U (r × p)."""

    factor: Array

    __array_ufunc__ = None

    def __len__(self) -> int:
        return int(self.factor.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """(p, p)."""
        return len(self), len(self)

    def toarray(self) -> Array:
        """All correlations, as an ordinary array of p × p numbers."""
        G = self.factor.T @ self.factor
        G = 0.5 * (G + G.T)
        np.fill_diagonal(G, 1.0)
        return np.asarray(G)

    def __repr__(self) -> str:
        return f"FactoredCorrelation(p={self.shape[0]}, rank={self.factor.shape[0]})"


def transform_of(A: Array, U: Array, *, dense: bool) -> Any:
    """``T = I + A⁺(U - A)``: the transformation nearest to the identity with ``AT = U``."""
    # A⁺ of a factor with few rows, by an orthogonal basis of its row space
    Q, small = sla.qr(A.T, mode="economic", check_finite=False)
    low = LowRankTransform(Q @ sla.pinv(small.T, rtol=1e-14), U - A)
    return low.toarray() if dense else low


def welch(p: int, r: int) -> float:
    """The least sum of squared correlations of p unit vectors in r dimensions (Welch, 1974)."""
    return 0.5 * p * (p - r) / r
