"""Outputs held between parallel planes: their terms of the bound (★★) on a part of the caps.

A part is given by slabs ``lo ≤ vᵀu_j ≤ hi`` (see ``parts``). Only the variables that are cut have
terms of this kind; all others keep those of ``point``. With ``M_j = N + κ_j I + Σ μ vvᵀ`` and
``z_j = λ_j a_j + Σ μ ½(lo + hi) v`` a variable adds

    2λ_jρ_j - κ_j + Σ μ lo·hi - z_jᵀM_j⁻¹z_j

to the bound. The multipliers κ, λ, μ are unknowns beside N, and each Newton step eliminates them.
Everything here is in the eigenbasis of N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skcoral._arrays import Array

_INSIDE = 0.8  # share of the way to the boundary that a step may take


@dataclass(frozen=True)
class Slab:
    """``lo ≤ vᵀu ≤ hi`` for one variable."""

    variable: int
    direction: Array
    lo: float
    hi: float


class Cuts:
    """The slabs of one part, grouped by variable.

    Attributes
    ----------
    variables : ndarray of shape (k,)
        Which are cut.
    of : ndarray of shape (m,)
        The place in ``variables`` of each slab's variable.
    """

    def __init__(self, A: Array, floors: Array, slabs: Sequence[Slab], shares: Array) -> None:
        own = [slab.variable for slab in slabs]
        self.variables, self.of = np.unique(np.array(own, dtype=np.intp), return_inverse=True)
        self.shares = shares[self.variables]
        self.A = A[:, self.variables].T
        self.floors = np.sqrt(self.shares) * floors[self.variables]
        self.V = np.array([slab.direction for slab in slabs]).reshape(len(own), len(A))
        ends = np.array([(slab.lo, slab.hi) for slab in slabs]).reshape(len(own), 2)
        self.lo, self.hi = np.sqrt(self.shares)[self.of] * ends.T
        self.middle = 0.5 * (self.lo + self.hi)

    @property
    def terms(self) -> int:
        """Logarithms in the barrier."""
        return self.A.size + len(self.A) + len(self.of)

    def at(self, n: Array, Q: Array, x: Array) -> CutPoint | None:
        """Values where N has the eigenvalues ``n`` in the basis ``Q``; None outside the domain."""
        k, r = self.A.shape
        kappa, lam, mu = np.split(x, [k, 2 * k])
        if not ((lam > 0.0).all() and (mu > 0.0).all()):
            return None
        A, V = self.A @ Q, self.V @ Q
        M, Z = np.zeros((k, r, r)), lam[:, None] * A
        M[:, np.arange(r), np.arange(r)] = n + kappa[:, None]
        np.add.at(M, self.of, mu[:, None, None] * V[:, :, None] * V[:, None, :])
        np.add.at(Z, self.of, (mu * self.middle)[:, None] * V)
        try:
            L = np.linalg.cholesky(M)
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(L)
        W = inverse.swapaxes(1, 2) @ inverse
        U = (W @ Z[:, :, None])[:, :, 0]
        terms = 2.0 * lam * self.floors - kappa * self.shares - np.sum(U * Z, axis=1)
        np.add.at(terms, self.of, mu * self.lo * self.hi)
        logs = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum()
        logs += np.log(lam).sum() + np.log(mu).sum()
        return CutPoint(self, x, A, V, W, U, terms, float(logs))


@dataclass(frozen=True)
class CutPoint:
    """Terms of the cut variables at one dual point.

    Attributes
    ----------
    cuts : Cuts
        Which outputs are held where.
    x : ndarray of shape (2k + m,)
        κ and λ of the variables, μ of the slabs.
    A, V : ndarray of shape (k, r) and (m, r)
        Sources and directions in the eigenbasis of N.
    W, U : ndarray of shape (k, r, r) and (k, r)
        ``M_j⁻¹`` and the minimisers ``M_j⁻¹z_j``.
    terms, logs : ndarray of shape (k,) and float
        What each adds to the bound, and the logarithms of the barrier.
    """

    cuts: Cuts
    x: Array
    A: Array
    V: Array
    W: Array
    U: Array
    terms: Array
    logs: float

    def longest(self, move: Array) -> float:
        """How far λ and μ may go along ``move``, one at most."""
        signed = slice(len(self.A), None)
        nearest = float((move[signed] / self.x[signed]).min(initial=0.0))
        return min(1.0, _INSIDE / max(-nearest, _INSIDE))


class CutCurvature:
    """Derivatives of the terms of the cut variables, with a barrier of weight ``tau``."""

    def __init__(self, point: CutPoint, tau: float) -> None:
        cuts, W, U, V = point.cuts, point.W, point.U, point.V
        k, r = U.shape
        _, lam, mu = np.split(point.x, [k, 2 * k])
        of, each = cuts.of, np.arange(k)
        self._point, self._tau = point, tau
        own = np.concatenate([each, each, of])
        along = (V * U[of]).sum(axis=1) - cuts.middle
        # how M_j u_j - z_j changes with each of κ, λ, μ; the minimisers follow by -M_j⁻¹ times it
        push = np.concatenate([U, -point.A, along[:, None] * V])
        moved = (W[own] @ push[:, :, None])[:, :, 0]
        WV = (W[of] @ V[:, :, None])[:, :, 0]
        square = W @ W
        heat = np.concatenate([square, 0.0 * square, WV[:, :, None] * WV[:, None, :]])
        cross = moved[:, :, None] * U[own][:, None, :]
        self._C = (cross + cross.swapaxes(1, 2) + tau * heat).reshape(len(own), r * r)
        K = 2.0 * push @ moved.T
        ks, ms = each, 2 * k + np.arange(len(of))
        K[ks, ks] += tau * np.trace(square, axis1=1, axis2=2)
        norms = tau * (WV * WV).sum(axis=1)
        K[of, ms] += norms
        K[ms, of] += norms
        K[np.ix_(ms, ms)] += tau * (V @ WV.T) ** 2
        K *= own[:, None] == own
        K[ks + k, ks + k] += tau / lam**2
        K[ms, ms] += tau / mu**2
        scale = 1.0 / np.sqrt(np.diag(K))
        self._inverse = np.linalg.inv(K * scale[:, None] * scale + 1e-14 * np.eye(len(K)))
        self._inverse *= scale[:, None] * scale
        self.force = U.T @ U + tau * W.sum(axis=0)
        self.own_force = np.concatenate(
            [
                (U * U).sum(axis=1) - cuts.shares + tau * np.trace(W, axis1=1, axis2=2),
                2.0 * cuts.floors - 2.0 * (point.A * U).sum(axis=1) + tau / lam,
                along**2 - 0.25 * (cuts.hi - cuts.lo) ** 2 + tau * (V * WV).sum(axis=1) + tau / mu,
            ]
        )

    @cached_property
    def diagonal(self) -> Array:
        """That of the operator, without what the elimination takes away."""
        each = np.diagonal(self._point.W, axis1=1, axis2=2)
        cross = each.T @ self._point.U**2
        return np.asarray(cross + cross.T + self._tau * each.T @ each)

    @property
    def eliminated(self) -> Array:
        """What the forces on the multipliers take from the one on N."""
        r = self._point.U.shape[1]
        return np.asarray((self.own_force @ self._inverse @ self._C).reshape(r, r))

    def move(self, V: Array) -> Array:
        """The steps of the multipliers that belong to the step ``V`` of N."""
        return np.asarray(self._inverse @ (self.own_force - self._C @ V.ravel()))

    def apply(self, V: Array) -> Array:
        """Minus the second derivative in N, with the multipliers eliminated."""
        U, W = self._point.U, self._point.W
        Y = (W @ (U @ V)[:, :, None])[:, :, 0].T @ U
        heat = (W @ V @ W).sum(axis=0)
        seen = (self._inverse @ (self._C @ V.ravel())) @ self._C
        return np.asarray(Y + Y.T + self._tau * heat - seen.reshape(V.shape))
