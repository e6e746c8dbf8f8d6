"""Newton's method for the bound (★r): the steps of H, κ and λ.

The smooth bound has the second derivative ``X V W + W V X`` in H, with ``W = H⁻¹`` and ``X = G +
½τW``, besides that of the penalty, which knows H and κ by ``S = H - diag(κ)`` alone.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from skcoral._arrays import Array
from skcoral._linalg import conjugate_gradient
from skcoral.frames.rank_point import RankPoint, between

_RIDGE = 1e-13  # added to systems of unit diagonal, which are singular to rounding at the end
_FORCING, _INNER = 1e-3, 300  # accuracy and steps of the inner conjugate gradients

Step = tuple[Array, Array, Array, float]  # of H, κ and λ, and the Newton decrement


class _Derivatives:
    """First derivatives, and second ones that both ways of solving need."""

    def __init__(self, A: Array, floors: Array, at: RankPoint) -> None:
        self.live = np.flatnonzero(floors < 1.0)
        self.A, self.U, self.W = A, at.U, at.inverse
        self.G = at.U.T @ at.U
        self.X = self.G + 0.5 * at.tau * self.W
        lam = at.lam[self.live]
        self.force = self.G + at.tau * self.W - at.penalty.gradient
        fidelity = np.einsum("ij,ij->j", A, at.U)
        self.on_lam = (2.0 * (floors - fidelity))[self.live] + at.tau / lam
        self.on_kappa = np.diag(at.penalty.gradient)[self.live] - 1.0
        R = A[:, self.live].T @ A[:, self.live]
        self.of_lam = 2.0 * R * self.W[np.ix_(self.live, self.live)] + np.diag(at.tau / lam**2)

    def of_H(self, V: Array) -> Array:
        """What a step of H, or a stack of them, does to the equations of H."""
        Y = between(self.X, V, self.W)
        return np.asarray(Y + np.swapaxes(Y, -1, -2))

    def pulled(self, V: Array) -> Array:
        """The same to the equations of λ."""
        held = -2.0 * np.einsum("ij,ij->j", self.A, self.U @ (V @ self.W))
        return np.asarray(held[self.live])


def direct_step(A: Array, floors: Array, at: RankPoint) -> Step:
    """The step from the system of all unknowns, factored."""
    d, p = _Derivatives(A, floors, at), len(floors)
    i, j = np.triu_indices(p)
    m, q = len(i), len(d.live)
    basis = np.zeros((m, p, p))
    basis[np.arange(m), i, j] = basis[np.arange(m), j, i] = 1.0
    double = np.where(i == j, 1.0, 2.0)

    def coordinates(F: Array) -> Array:
        return np.asarray(F[..., i, j] * double)

    image = coordinates(at.penalty.apply(basis))
    own = np.flatnonzero(i == j)[d.live]
    K = np.zeros((m + 2 * q, m + 2 * q))
    H, kappa, lam = np.split(np.arange(len(K)), np.cumsum([m, q]))
    K[np.ix_(H, H)] = image + coordinates(d.of_H(basis))
    K[np.ix_(kappa, H)] = -image[:, own].T
    K[np.ix_(kappa, kappa)] = image[np.ix_(own, own)]
    C, W = (A.T @ at.U)[d.live], at.inverse[d.live]
    K[np.ix_(lam, H)] = -(C[:, i] * W[:, j] + C[:, j] * W[:, i]) * double
    K[np.ix_(lam, lam)] = d.of_lam
    right = np.r_[coordinates(d.force), d.on_kappa, d.on_lam]
    scale = 1.0 / np.sqrt(np.diag(K))
    scaled = K * np.outer(scale, scale) + _RIDGE * np.eye(len(K))
    x = scale * sla.cho_solve((np.linalg.cholesky(scaled), True), right * scale)
    V, moves = np.zeros((p, p)), np.zeros((2, p))
    V[i, j] = V[j, i] = x[H]
    moves[0, d.live], moves[1, d.live] = x[kappa], x[lam]
    return V, moves[0], moves[1], float(right @ x)


def iterative_step(A: Array, floors: Array, at: RankPoint) -> Step:
    """The step by conjugate gradients in H, where the other unknowns are eliminated."""
    d, penalty, live = _Derivatives(A, floors, at), at.penalty, np.flatnonzero(floors < 1.0)
    U, W, G = at.U, at.inverse, d.G

    def penalised(x: Array) -> Array:  # what a step of κ adds to the equations of S
        D = np.zeros_like(G)
        D[live, live] = -x
        return penalty.apply(D)

    def on_diagonal(image: Array) -> Array:
        return np.asarray(-np.diag(image)[live])

    of_kappa = np.linalg.inv(np.array([on_diagonal(penalised(x)) for x in np.eye(len(live))]))
    of_lam = np.linalg.inv(d.of_lam)

    def moved_lam(x: Array) -> Array:  # what a step of λ adds to the equations of H
        Y = U.T @ ((A[:, live] * x) @ W[live])
        return np.asarray(-(Y + Y.T))

    def apply(V: Array) -> Array:
        image = penalty.apply(V)
        out = image + d.of_H(V)
        out -= penalised(of_kappa @ on_diagonal(image))
        return np.asarray(out - moved_lam(of_lam @ d.pulled(V)))

    values, basis = np.linalg.eigh(W)
    values = np.maximum(values, 0.0)
    energy = np.einsum("ia,ij,ja->a", basis, G, basis)
    diagonal = penalty.diagonal_in(basis) + at.tau * np.outer(values, values)
    diagonal += np.outer(values, energy) + np.outer(energy, values)

    def precondition(V: Array) -> Array:
        return np.asarray(basis @ ((basis.T @ V @ basis) / diagonal) @ basis.T)

    right = d.force - penalised(of_kappa @ d.on_kappa) - moved_lam(of_lam @ d.on_lam)
    V, _, _ = conjugate_gradient(apply, right, precondition, rtol=_FORCING, max_iter=_INNER)
    V = 0.5 * (V + V.T)
    moves = np.zeros((2, len(G)))
    moves[0, live] = of_kappa @ (d.on_kappa - on_diagonal(penalty.apply(V)))
    moves[1, live] = of_lam @ (d.on_lam - d.pulled(V))
    decrement = np.sum(d.force * V) + d.on_kappa @ moves[0, live] + d.on_lam @ moves[1, live]
    return V, moves[0], moves[1], float(decrement)
