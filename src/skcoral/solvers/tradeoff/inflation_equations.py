"""Newton's equations of the highest common floor within a limit on the VIF, and their points.

Let G be the correlation matrix of the outputs and λ ≥ 0 weights of sum one. With ``R = AᵀA``,
``G = LLᵀ``, ``D = Diag(λ)`` and the singular values ``A D L = U Diag(s) Vᵀ``, the outputs
``W = U Vᵀ Lᵀ`` maximise ``Σ λ_j f_j``, and the maximum is ``φ(λ, G) = Σ s_a``: Uhlmann's root
fidelity of G and DRD, concave in G and convex in λ. The highest common floor of G is its minimum
over λ. In the basis ``P = L⁻ᵀV`` with inverse ``Kᵀ``, ``K = LV``, everything is diagonal:

    G⁻¹ = P Pᵀ,   H = P Diag(s) Pᵀ,   H G H = D R D,   λ_j f_j = (H G)_jj,   ∂φ/∂G = ½ H.

Unknown are the change E of G, without a diagonal, and the relative changes d of λ. With
``e = PᵀEP``, they are

    Q(E) - Jᵀd = b,        J E + (A + Diag(λ∘z)) d = c + dγ λ,        λᵀd = 0,

    Q:  ½ s_a s_b / (s_a + s_b) e_ab  +  ½ (e C + C e)_ab  +  Σ_j θ_j (p_jᵀ e p_j) p_j p_jᵀ,
    J:  Σ_ab P_ja s_a² / (s_a + s_b) e_ab K_jb,

where ``C = Pᵀ Diag(σ) P`` is the curvature of the limits of multipliers ``σ_j = 2 κ_j u_j²``,
``u_j = 1/(G⁻¹)_jj``, with ``θ_j = ½ σ_j (u_j²/t_j - 2 u_j)``, and A is the curvature of φ in λ.
With d eliminated, ``Q + Jᵀ(A + …)⁻¹J`` is positive definite and solved by conjugate gradients. The
first term of Q is diagonal in this basis, the second in the one that makes C diagonal. The
preconditioner takes both to be diagonal in a basis in between, and keeps the rest, of rank 3p: the
limits, the weights, and the condition that E has no diagonal.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import Array, row_products
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.tradeoff.equations import regularised_cholesky

# Steps of conjugate gradients: what is left then is left to the next step of Newton's method. With
# 30, nearly singular matrices of 150 variables keep open gaps; 200 change nothing.
_MAX_ITER = 100


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
        self.P: Array = sla.solve_triangular(L, Vt.T, lower=True, trans="T")
        # P - K loses no digits where G is close to the identity.
        inverse = sla.solve_triangular(L, np.eye(self.p), lower=True)
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
    p, share = len(A), 0.9 * (limit - 1.0) / limit
    # With E = R - I the VIF at I + tE is 1 + t² (E (I + tE)⁻¹ E)_jj, and I + tE ≽ (1 - t) I.
    E, most = off_diagonal(R), share / (1.0 - share)
    size = float((E * E).sum(axis=1).max())
    part = 2.0 * most / (most + np.sqrt(most * most + 4.0 * most * size))
    return Point(A, limit - 1.0, np.eye(p) + part * E, np.full(p, 1.0 / p))


class Equations:
    """The equations at one point; see the head of this file.

    ``sigma`` are the multipliers of ``(G⁻¹)_jj``, with slack variables t, and z the leads over the
    common floor. Solutions are accepted when what is left of the equations, in units of the common
    floor, is at most ``allowed``.
    """

    def __init__(self, at: Point, sigma: Array, t: Array, z: Array, allowed: float) -> None:
        self.at, self.t, self.allowed = at, t, allowed
        P, K, s, p = at.P, at.K, at.s, at.p
        sums = np.add.outer(s, s)
        self.curvature = 0.5 * np.outer(s, s) / sums
        self.tilt = s[:, None] ** 2 / sums
        self.C = (P.T * sigma) @ P
        self.theta = 0.5 * sigma * (1.0 / (t * at.vif**2) - 2.0 / at.vif)
        # (PePᵀ)_jj = ((P-K) e (P+K)ᵀ)_jj where (KeKᵀ)_jj = E_jj is zero.
        self.low, self.high = at.difference, P + K
        self.pairs = np.triu_indices(p)
        a, b = self.pairs
        products = P[:, a] * K[:, b]
        swapped = P[:, b] * K[:, a]
        self.rows = 0.5 * (products * self.tilt[a, b] + swapped * self.tilt[b, a])
        self.twice = np.where(a == b, 1.0, 2.0)
        products += swapped
        products *= self.twice
        weights = products @ self.rows.T
        curvature = 0.5 * (weights + weights.T) + np.diag(at.lam * (z - at.fidelity))
        self.weight_curvature = curvature
        # On the plane λᵀd = 0 a multiple of λλᵀ changes nothing, and it makes up for the direction
        # without curvature: φ is homogeneous in λ.
        raised = curvature + np.outer(at.lam, at.lam) * (np.trace(curvature) / (at.lam @ at.lam))
        factor = regularised_cholesky(np.asfortranarray(raised))
        root = sla.lapack.dtrtri(np.tril(factor), lower=1)[0].T
        normal = root.T @ at.lam
        normal /= np.linalg.norm(normal)
        # root rootᵀ is the inverse on the plane
        self.root = root - np.outer(root @ normal, normal)

    def solve(self, b: Array, c: Array) -> tuple[Array, Array, Array]:
        """Solve for the right sides b, without a diagonal, and c.

        Returns E, the relative changes d of λ, and changes of κ beyond those that follow from E.
        """
        at = self.at
        right = b + self._back(self._from_weights(self.root @ (self.root.T @ c)))
        E, _, _ = conjugate_gradient(
            self._apply,
            right.copy(),
            self._precondition,
            rtol=1.0,
            small=lambda _: self._left <= self.allowed,
            max_iter=_MAX_ITER,
            start=self._precondition(right),
            noise=1e-24,
        )
        # What is left is taken up by the multipliers as far as they reach: those of its last
        # preconditioning.
        d = self.root @ (self.root.T @ (c - self._to_weights(at.P.T @ E @ at.P)))
        return E, d + self._d, self._kappa

    def _to_weights(self, e: Array) -> Array:
        return np.asarray(row_products(self.at.P @ (self.tilt * e), self.at.K))

    def _from_weights(self, d: Array) -> Array:
        e = self.tilt * ((self.at.P.T * d) @ self.at.K)
        return np.asarray(0.5 * (e + e.T))

    def _back(self, e: Array) -> Array:
        return off_diagonal(self.at.P @ e @ self.at.P.T)

    def _apply(self, E: Array) -> Array:
        P = self.at.P
        e = P.T @ E @ P
        y = e @ self.C
        y += (self.low.T * (self.theta * row_products(self.low @ e, self.high))) @ self.high
        y = 0.5 * (y + y.T) + self.curvature * e
        y += self._from_weights(self.root @ (self.root.T @ self._to_weights(e)))
        return self._back(y)

    @cached_property
    def _basis(self) -> Array:
        # Rotations of e leave Q's first terms as they are; C competes with the rows of the first.
        return np.asarray(
            np.linalg.eigh(self.C + np.diag(np.exp(np.log(self.curvature).mean(1))))[1]
        )

    @cached_property
    def _inverse(self) -> Array:
        """One over the first two terms of Q, as if they were diagonal in the basis."""
        squares = self._basis**2
        # Means of logarithms: small values do not vanish beside a small part of a large one.
        s = np.exp(squares.T @ np.log(self.at.s))
        c = row_products(self._basis.T @ self.C, self._basis.T)
        return np.asarray(2.0 / (np.outer(s, s) / np.add.outer(s, s) + np.add.outer(c, c)))

    @cached_property
    def _bases(self) -> tuple[Array, Array, Array, Array]:
        Q = self._basis
        stiff = np.sqrt(np.maximum(self.theta, 0.0))[:, None]
        return self.at.K @ Q, stiff * (self.low @ Q), self.high @ Q, self.root

    @cached_property
    def _capacity(self) -> Array:
        """Cholesky factor of the 3p equations of what is not diagonal in the basis.

        These are ``Diag(0, 1, 1) + U D⁻¹ Uᵀ`` by Woodbury's formula, with the diagonal part D and
        in the rows of U the conditions ``E_jj = 0``, the limits, and the weights.
        """
        p, (a, b), Q = self.at.p, self.pairs, self._basis
        K, low, high, root = self._bases
        U = np.empty((3 * p, len(a)))
        U[:p] = K[:, a] * K[:, b]
        U[p : 2 * p] = 0.5 * (low[:, a] * high[:, b] + low[:, b] * high[:, a])
        full = np.empty((p, p, p))
        full[:, a, b] = full[:, b, a] = root.T @ self.rows
        U[2 * p :] = (Q.T @ full @ Q)[:, a, b]
        U *= np.sqrt(self.twice * self._inverse[a, b])
        lower = sla.blas.dsyrk(1.0, U.T, trans=1, lower=1)
        lower[np.arange(p, 3 * p), np.arange(p, 3 * p)] += 1.0
        return regularised_cholesky(lower)

    def _precondition(self, residual: Array) -> Array:
        p, Q = self.at.p, self._basis
        K, low, high, root = self._bases
        right = K.T @ residual @ K
        e = self._inverse * right
        images = (
            row_products(K @ e, K),
            row_products(low @ e, high),
            root.T @ self._to_weights(Q @ e @ Q.T),
        )
        y = sla.lapack.dpotrs(self._capacity, np.concatenate(images), lower=1)[0]
        self._d = -(root @ y[2 * p :])
        stiff = np.sqrt(np.maximum(self.theta, 0.0)) * y[p : 2 * p]
        self._kappa = -stiff * self.at.vif**2
        back = (low.T * y[p : 2 * p]) @ high
        right -= (K.T * y[:p]) @ K + 0.5 * (back + back.T)
        right += Q.T @ self._from_weights(self._d) @ Q
        lost = self.weight_curvature @ self._d
        lost -= self.at.lam * lost.sum()
        size = np.sqrt(self.at.share) * p * np.linalg.norm(right)
        self._left = float(size + np.abs(self._kappa * self.t).sum() + np.abs(lost).sum())
        return off_diagonal(K @ (self._inverse * right) @ K.T)
