"""The bound (★★) on a part of the caps, where some outputs are held between parallel planes.

A part is given by ``lo ≤ vᵀu_j ≤ hi`` for some variables j and unit directions v. Each adds
``μ (vᵀu_j - lo)(vᵀu_j - hi) ≤ 0`` to the weak duality of variable j, so that with
``M_j = N + κ_j I + Σ μ vvᵀ``, ``z_j = λ_j a_j + Σ μ ½(lo + hi) v`` and ``ν = (p - tr N)/r``

    D2 ≥ νp - p/2 - ½‖N + νI‖² + Σ_j [2λ_jρ_j - κ_j + Σ μ lo·hi - z_jᵀM_j⁻¹z_j]

for every U in the part and all λ ≥ 0, μ ≥ 0, κ and N with ``M_j ≻ 0``. The right side is concave
and is maximised by Newton's method with dense second derivatives and a logarithmic barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from skcoral._arrays import Array
from skcoral.frames.point import welch

_SHRINK = 0.1  # of τ, once the point is centred
_STEPS = 80
_ROOM = 0.05  # relative to the size of N: how far inside a part starts
_FIRST = 0.2  # the first weight of the barrier, relative to that


@dataclass(frozen=True)
class Slab:
    """``lo ≤ vᵀu ≤ hi`` for one variable."""

    variable: int
    direction: Array
    lo: float
    hi: float


@dataclass(frozen=True)
class NodePoint:
    """Where the maximisation on one part ended; a valid bound whatever the accuracy.

    Attributes
    ----------
    bound : float
        On the sum of squares of all U in the part.
    U, spread : ndarray of shape (r, p) and (p, r, r)
        Means and covariances of the relaxed outputs; covariances of zero attain the bound.
    N, kappa, lam, mu : ndarray
        The dual point.
    tau : float
        The last weight of the barrier.
    """

    bound: float
    U: Array
    spread: Array
    N: Array
    kappa: Array
    lam: Array
    mu: Array
    tau: float


def _solved(H: Array, g: Array) -> Array:
    """``H⁻¹g`` for a positive definite H of any scaling, given by its upper triangle."""
    unit = 1.0 / np.sqrt(np.diag(H))
    scaled = H * np.outer(unit, unit)
    for ridge in (1e-13, 1e-11, 1e-9, 1e-7):
        scaled[np.diag_indices_from(scaled)] = 1.0 + ridge
        factor, info = sla.lapack.dpotrf(scaled, lower=0, clean=0)
        if info == 0:
            break
    return np.asarray(unit * sla.lapack.dpotrs(factor, unit * g, lower=0)[0])


@dataclass(frozen=True)
class _At:
    """Values at one dual point: bound, merit with the barrier, inverses and minimisers."""

    value: float
    merit: float
    W: Array
    U: Array
    N: Array


class Node:
    """The problem on one part of the caps.

    Parameters
    ----------
    A : ndarray of shape (r, p)
        Factor with unit columns.
    floors : ndarray of shape (p,)
        The least fidelities.
    slabs : sequence of Slab
        What bounds the part; none: all of the caps.
    """

    def __init__(self, A: Array, floors: Array, slabs: tuple[Slab, ...] = ()) -> None:
        r = len(A)
        self.live = np.flatnonzero(floors < 1.0)  # a floor of one holds its output at the source
        self.all, self.A, self.floors = A, A[:, self.live], floors[self.live]
        pinned = A[:, floors >= 1.0]
        self.fixed = pinned @ pinned.T
        place = {int(j): k for k, j in enumerate(self.live)}
        self.of = np.array([place[slab.variable] for slab in slabs], dtype=np.intp)
        self.V = np.array([slab.direction for slab in slabs]).reshape(len(slabs), r)
        self.lo = np.array([slab.lo for slab in slabs])
        self.hi = np.array([slab.hi for slab in slabs])
        self.middle = 0.5 * (self.lo + self.hi)
        self.rows, self.columns = np.triu_indices(r)
        # an orthonormal basis of the symmetric matrices: N = Σ x_k E_k
        self.scale = np.where(self.rows == self.columns, 0.5, np.sqrt(0.5))

    def start(self, before: NodePoint | None) -> tuple[Array, float]:
        """All multipliers in one vector, from those of the part that this one was cut from."""
        q, m = self.A.shape[1], len(self.V)
        if before is None:
            return np.r_[
                self._flat(0.5 * self.all @ self.all.T), np.ones(2 * q), np.full(m, 0.1)
            ], 0.1
        # well inside, because the part that was cut ended next to the boundary
        room = float(np.sqrt(np.mean(before.N**2))) * _ROOM
        mu = np.r_[before.mu, np.zeros(max(m - len(before.mu), 0))][:m] + room
        lam, kappa = before.lam[self.live] + room, before.kappa[self.live] + room
        return np.r_[self._flat(before.N), kappa, lam, mu], _FIRST * room

    def maximise(
        self, *, enough: float, share: float, goal: float, before: NodePoint | None = None
    ) -> NodePoint:
        """Raise the bound until it is ``enough``, or until little is left to gain.

        Parameters
        ----------
        enough : float
            Value at which to stop.
        share : float
            Of what is missing to ``enough``, what may stay open.
        goal : float
            What may stay open in any case.
        before : NodePoint, optional
            Of the part that this one was cut from.
        """
        r, q = self.A.shape
        count = (r + 1) * q + len(self.V)  # terms of the barrier
        x, tau = self.start(before)
        if self._at(x, tau) is None:
            x, tau = self.start(None)
        # N + cI with κ - c is the same point: any term will do that sees this direction alone
        d = len(self.rows)
        same = np.r_[
            np.where(self.rows == self.columns, 1.0, 0.0), -np.ones(q), np.zeros(len(x) - d - q)
        ]
        gauge = np.outer(same, same)
        at = self._inside(x, tau)
        for _ in range(_STEPS):
            gradient, hessian = self._derivatives(x, at, tau)
            move = _solved(hessian + gauge, gradient)
            decrement = float(gradient @ move)
            left = max(goal, share * (enough - at.value))
            if at.value >= enough or (count * tau <= left and decrement <= left):
                break
            length = 1.0
            wanted = at.merit - 1e-13 * abs(at.merit)
            new = self._at(x + move, tau)
            while length > 1e-9 and (new is None or new.merit < wanted + 1e-4 * length * decrement):
                length *= 0.5
                new = self._at(x + length * move, tau)
            if new is None or length <= 1e-9:
                break
            x, at = x + length * move, new
            if decrement < 0.5 * count * tau:
                tau = max(_SHRINK * tau, 0.2 * goal / count)
                at = self._inside(x, tau)
        return self._point(x, at, tau)

    def _flat(self, S: Array) -> Array:
        """Coordinates of symmetric matrices (the last two axes)."""
        return np.asarray(
            self.scale * (S[..., self.rows, self.columns] + S[..., self.columns, self.rows])
        )

    def _parts(self, x: Array) -> tuple[Array, Array, Array, Array]:
        d, q = len(self.rows), self.A.shape[1]
        N = np.zeros((len(self.A), len(self.A)))
        N[self.rows, self.columns] = self.scale * x[:d]
        return N + N.T, x[d : d + q], x[d + q : d + 2 * q], x[d + 2 * q :]

    def _at(self, x: Array, tau: float) -> _At | None:
        """Value, merit with the barrier, minimisers; None outside the domain."""
        N, kappa, lam, mu = self._parts(x)
        if (lam <= 0.0).any() or (mu <= 0.0).any():
            return None
        r, p = self.all.shape
        M = N + kappa[:, None, None] * np.eye(r)
        Z = (self.A * lam).T
        np.add.at(M, self.of, mu[:, None, None] * self.V[:, :, None] * self.V[:, None, :])
        np.add.at(Z, self.of, (mu * self.middle)[:, None] * self.V)
        try:
            diagonal = np.einsum("jaa->ja", np.linalg.cholesky(M))
        except np.linalg.LinAlgError:
            return None
        W = np.linalg.inv(M)
        W = 0.5 * (W + W.transpose(0, 2, 1))
        U = np.einsum("jab,jb->ja", W, Z)
        trace = float(np.trace(N))
        value = (
            welch(p, r)
            - p / r * trace
            - 0.5 * (float(np.sum(N * N)) - trace * trace / r)
            + float(np.sum(N * self.fixed) + (2.0 * lam * self.floors - kappa).sum())
            + float((mu * self.lo * self.hi).sum() - np.sum(U * Z))
        )
        logs = 2.0 * np.log(diagonal).sum() + np.log(lam).sum() + np.log(mu).sum()
        return _At(value, value + tau * float(logs), W, U, N)

    def _inside(self, x: Array, tau: float) -> _At:
        at = self._at(x, tau)
        if at is None:
            raise AssertionError("a dual point has left its domain")
        return at

    def _derivatives(self, x: Array, at: _At, tau: float) -> tuple[Array, Array]:
        """Gradient of the merit, and the upper triangle of minus its second derivative."""
        r, q = self.A.shape
        p, d, m = self.all.shape[1], len(self.rows), len(self.V)
        W, U, N = at.W, at.U, at.N
        _, _, lam, mu = self._parts(x)
        a, V, of = self.A.T, self.V, self.of
        S = 2.0 * U[:, :, None] * U[:, None, :] + tau * W
        half = 0.5 * (S + tau * W)  # uuᵀ + τW, second moments of the relaxed outputs
        along = (V * U[of]).sum(axis=1) - self.middle
        WV = np.einsum("kab,kb->ka", W[of], V)
        Wa = np.einsum("jab,jb->ja", W, a)
        pull = 2.0 * along[:, None] * U[of] + tau * WV
        gradient = np.r_[
            self._flat(half.sum(axis=0) + self.fixed - N + (np.trace(N) - p) / r * np.eye(r)),
            np.einsum("jaa->j", half) - 1.0,
            2.0 * self.floors - 2.0 * (a * U).sum(axis=1) + tau / lam,
            along * along
            - (0.5 * (self.hi - self.lo)) ** 2
            + tau * (V * WV).sum(axis=1)
            + tau / mu,
        ]
        H = np.zeros((d + 2 * q + m,) * 2)
        P = (W.reshape(q, -1).T @ S.reshape(q, -1)).reshape(r, r, r, r)
        i, j = self.rows[:, None], self.columns[:, None]
        k, n = self.rows[None, :], self.columns[None, :]
        block = P[j, k, n, i] + P[j, n, k, i] + P[i, k, n, j] + P[i, n, k, j]
        unit = np.where(self.rows == self.columns, 1.0, 0.0)
        H[:d, :d] = self.scale[:, None] * self.scale * block - np.outer(unit, unit) / r
        H[np.arange(d), np.arange(d)] += 1.0
        ks, ls, ms = slice(d, d + q), slice(d + q, d + 2 * q), slice(d + 2 * q, None)
        H[:d, ks] = self._flat(W @ S).T
        H[:d, ls] = -2.0 * self._flat(Wa[:, :, None] * U[:, None, :]).T
        H[:d, ms] = self._flat(WV[:, :, None] * pull[:, None, :]).T
        own, mine = np.arange(q), np.arange(m)
        H[ks, ks][own, own] = np.einsum("jab,jba->j", W, S)
        H[ks, ls][own, own] = -2.0 * (Wa * U).sum(axis=1)
        H[ls, ls][own, own] = 2.0 * (Wa * a).sum(axis=1) + tau / lam**2
        H[ks, ms][of, mine] = (WV * pull).sum(axis=1)
        H[ls, ms][of, mine] = -2.0 * along * (Wa[of] * V).sum(axis=1)
        cross = np.where(of[:, None] == of[None, :], V @ WV.T, 0.0)
        H[ms, ms] = 2.0 * np.outer(along, along) * cross + tau * cross**2
        H[ms, ms][mine, mine] += tau / mu**2
        return gradient, H

    def _point(self, x: Array, at: _At, tau: float) -> NodePoint:
        N, kappa, lam, mu = self._parts(x)
        p = self.all.shape[1]
        U, spread = self.all.copy(), np.zeros((p, *N.shape))
        U[:, self.live], spread[self.live] = at.U.T, tau * at.W
        full = np.zeros((2, p))
        full[:, self.live] = kappa, lam
        return NodePoint(at.value, U, spread, N, full[0], full[1], mu, tau)
