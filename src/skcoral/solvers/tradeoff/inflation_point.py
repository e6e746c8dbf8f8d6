"""The best common fidelity of outputs with a given correlation matrix, and its derivatives.

Let G be the correlation matrix of the outputs and λ ≥ 0 weights of sum one. With ``R = AᵀA``,
``G = LLᵀ``, ``D = Diag(λ)`` and the singular values ``A D L = U Diag(s) Vᵀ``, the outputs
``W = U Vᵀ Lᵀ`` maximise ``Σ λ_j f_j``, and the maximum is ``φ(λ, G) = Σ s_a``: Uhlmann's root
fidelity of G and DRD, concave in G and convex in λ. The highest common floor of G is its minimum
over λ. In the basis ``P = L⁻ᵀV`` with inverse ``Kᵀ``, ``K = LV``, everything is diagonal:

    G⁻¹ = P Pᵀ,   H = P Diag(s) Pᵀ,   H G H = D R D,   λ_j f_j = (H G)_jj,   ∂φ/∂G = ½ H.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from skcoral.core.arrays import Array


def off_diagonal(M: Array) -> Array:
    """The symmetric part of M with zeros on its diagonal."""
    M = 0.5 * (M + M.T)
    np.fill_diagonal(M, 0.0)
    return M


class Point:
    """φ at one G and λ, for ``R = AᵀA``; see the head of this file.

    ``excess`` is the limit on the VIF less one, and ``share = 1 - 1/limit`` the share of a variance
    that the other outputs may explain. ``slack`` is ``1/(G⁻¹)_jj - 1/limit``. It is concave in G
    and closer to linear than the VIF.
    """

    def __init__(self, A: Array, excess: float, G: Array, lam: Array) -> None:
        self.A, self.excess, self.G, self.lam = A, excess, G, lam
        self.p, self.share = len(A), excess / (1.0 + excess)
        L = np.linalg.cholesky(G)
        U, self.s, Vt = np.linalg.svd((A * lam) @ L)
        self.outputs: Array = U @ Vt @ L.T
        self.K: Array = L @ Vt.T
        self.P: Array = solve_triangular(L, Vt.T, lower=True, trans="T")
        # P - K loses no digits where G is close to the identity.
        inverse = solve_triangular(L, np.eye(self.p), lower=True)
        self.difference: Array = (inverse.T - L) @ Vt.T
        self.X: Array = self.P @ self.P.T
        self.H: Array = (self.P * self.s) @ self.P.T
        self.value = float(self.s.sum())
        self.fidelity: Array = np.einsum("ij,ij->i", self.P * self.s, self.K) / lam
        # With E = G - I: G⁻¹ = I - E + E G⁻¹ E, and E has no diagonal.
        over: Array = np.sum(((G - np.eye(self.p)) @ self.P) ** 2, axis=1)
        self.vif: Array = 1.0 + over
        self.slack: Array = self.share - over / self.vif

    def at(self, G: Array, lam: Array) -> Point:
        """The same problem at another G and λ."""
        return Point(self.A, self.excess, G, lam)

    def inside(self) -> Point:
        """The point of the segment to the identity that keeps the limit; itself, if it does.

        The explained share ``1 - 1/(G⁻¹)_jj`` is convex in G and zero at the identity.
        """
        if self.slack.min() >= 0.0:
            return self
        part = (1.0 - 1e-12) * self.share / float((1.0 - 1.0 / self.vif).max())
        identity = np.eye(self.p)
        return self.at(identity + part * (self.G - identity), self.lam)


def start(R: Array, limit: float) -> Point:
    """Equal weights, and G between I and R at nine tenths of the share that the limit allows."""
    A: Array = np.asarray(np.linalg.cholesky(R).T, dtype=np.float64)
    p, share = len(A), (limit - 1.0) / limit
    values, vectors = np.linalg.eigh(R)
    low, high = 0.0, 1.0
    for _ in range(60):
        part = 0.5 * (low + high)
        change = part * (values - 1.0)
        # diag (I + part (R - I))⁻¹ - 1, whose term of first order is zero
        over = float((vectors**2 @ (change**2 / (1.0 + change))).max())
        low, high = (low, part) if over / (1.0 + over) > 0.9 * share else (part, high)
    identity = np.eye(p)
    G = identity + low * (R - identity)
    return Point(A, limit - 1.0, G, np.full(p, 1.0 / p))
