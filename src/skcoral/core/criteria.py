"""The three criteria of residual correlation, and the conjugates that their dual bounds need.

Each criterion is a convex function φ of the residual correlations ``off(G)``, with weights ω of the
pairs (all one by default):

- squared: ``φ = Σ_{i<j} ω_ij G_ij²``, conjugate ``½ Σ_{i≠j} H_ij² / ω_ij``;
- worst: ``φ = max_{i<j} ω_ij |G_ij|``, conjugate 0 where ``Σ_{i≠j} |H_ij| / ω_ij ≤ 1``, else ∞;
- absolute: ``φ = Σ_{i<j} ω_ij |G_ij|``, conjugate 0 where ``|H_ij| ≤ ω_ij / 2``, else ∞.

A pair of weight zero does not count; its ``H_ij`` must be zero.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skcoral.core.arrays import Array, Index, diagonal, inner, library, plus_diagonal, to_host

Criterion = Literal["squared", "worst", "absolute"]
#: What each criterion adds up, for sentences.
CRITERIA: dict[str, str] = {
    "squared": "sum of squared residual correlations",
    "worst": "largest residual correlation",
    "absolute": "sum of absolute residual correlations",
}

# The constraints on H are met with this relative margin, so that adding up |H_ij| in another order
# does not put a valid point outside.
_MARGIN = 1e-14


def off(A: Array) -> Array:
    """Return a copy of ``A`` with zero diagonal."""
    A = A.copy()
    np.fill_diagonal(A, 0.0)
    return A


def pair_matrix(pair_weights: Array | None, p: int) -> Array:
    """Weights of the pairs as a matrix with zero diagonal."""
    return off(np.ones((p, p)) if pair_weights is None else np.asarray(pair_weights, np.float64))


def weights_among(pair_weights: Array | None, members: Index) -> Array:
    """The same for some of the variables."""
    chosen = None if pair_weights is None else pair_weights[np.ix_(members, members)]
    return pair_matrix(chosen, len(members))


def value(criterion: Criterion, G: Any, omega: Any = None) -> float:
    """Evaluate the criterion on the correlation matrix ``G`` of the outputs.

    The weights ``omega`` of the pairs lie where ``G`` does, and have a zero diagonal.

    Examples
    --------
    >>> value("worst", np.array([[1.0, -0.6], [-0.6, 1.0]]))
    0.6
    """
    weighted = plus_diagonal(1.0 * G, -diagonal(G)) if omega is None else omega * G
    if criterion == "squared":
        return 0.5 * inner(weighted, G)
    size = abs(weighted)
    xp = library(size)
    return float(xp.max(size)) if criterion == "worst" else 0.5 * float(xp.sum(size))


def values(criterion: Criterion, E: Array) -> Array:
    """Evaluate the criterion on residuals of shape (n, p, p), zero on the diagonal."""
    if criterion == "squared":
        return np.asarray(0.5 * np.einsum("sij,sij->s", E, E))
    size = np.abs(E)
    if criterion == "worst":
        return np.asarray(size.max(axis=(1, 2), initial=0.0))
    return np.asarray(0.5 * size.sum(axis=(1, 2)))


def conjugate(criterion: Criterion, H: Any, pair_weights: Array | None = None) -> float:
    """Evaluate the conjugate of the criterion at ``off(H)``; infinite outside its domain."""
    if criterion == "squared" and pair_weights is None:
        pairs = plus_diagonal(1.0 * H, -diagonal(H))
        return 0.5 * inner(pairs, pairs)
    H = np.asarray(to_host(H))
    omega = pair_matrix(pair_weights, len(H))
    size = off(np.abs(H))
    live = omega > 0
    if np.any(size[~live] > 0):
        return float("inf")
    if criterion == "squared":
        return 0.5 * float(np.sum(size[live] ** 2 / omega[live]))
    return 0.0 if gauge(criterion, size, omega) <= 1.0 else float("inf")


def admissible(criterion: Criterion, H: Array, pair_weights: Array | None = None) -> Array:
    """Shrink ``H``, zero at pairs of weight zero, into the domain of the conjugate."""
    size = gauge(criterion, H, pair_matrix(pair_weights, len(H)))
    return H * ((1 - _MARGIN) / size) if size > 1 - _MARGIN else H


def gauge(criterion: Criterion, H: Array, omega: Array) -> float:
    """The number by which ``off(H)`` has to be divided to lie on the edge of the domain."""
    live = omega > 0
    if criterion == "squared" or not live.any():
        return 0.0
    ratio = np.abs(H[live]) / omega[live]
    return float(ratio.sum()) if criterion == "worst" else 2.0 * float(ratio.max())


def subgradient(R: Array, criterion: Criterion, omega: Array) -> Array:
    """A subgradient of the criterion at the sources themselves, in the domain of the conjugate."""
    residual = off(R)
    if criterion == "squared":
        return np.asarray(omega * residual)
    if criterion == "absolute":
        return np.asarray(0.5 * omega * np.sign(residual))
    K = np.zeros_like(R)
    i, j = np.unravel_index(int(np.argmax(omega * np.abs(residual))), R.shape)
    K[i, j] = K[j, i] = 0.5 * omega[i, j] * np.sign(residual[i, j])
    return K
