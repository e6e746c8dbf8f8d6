"""The bound (★★) on parts of the caps, where some outputs are held between parallel planes.

A part is given by ``lo ≤ vᵀu_j ≤ hi`` for some variables j and unit directions v. Each adds
``μ (vᵀu_j - lo)(vᵀu_j - hi) ≤ 0`` to the weak duality of variable j, so that with
``M_j = N + κ_j I + Σ μ vvᵀ``, ``z_j = λ_j a_j + Σ μ ½(lo + hi) v`` and ``ν = (p - tr N)/r``

    D2 ≥ νp - p/2 - ½‖N + νI‖² + Σ_j [2λ_jρ_j - κ_j + Σ μ lo·hi - z_jᵀM_j⁻¹z_j]

for every U in the part and all λ ≥ 0, μ ≥ 0, κ and N with ``M_j ≻ 0``. The right side is concave
and is maximised by Newton's method with dense second derivatives and a logarithmic barrier, for a
stack of parts at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral._arrays import Array
from skcoral.frames.branching import Slab
from skcoral.frames.point import welch

_SHRINK = 0.1  # of τ, once the point is centred
_STEPS = 80
_DEFINITE = 1e-13  # least pivot, relative to its diagonal, whose sign rounding leaves alone
_INSIDE = 0.9  # share of the way to the boundary that a step may take
_ROOM = 0.05  # relative to the size of N: how far inside a part starts
_FIRST = 0.2  # the first weight of the barrier, relative to that


@dataclass(frozen=True)
class PartPoint:
    """Where the maximisation on one part ended; a valid bound whatever the accuracy.

    Attributes
    ----------
    bound : float
        On the sum of squares of all U in the part.
    U : ndarray of shape (r, p)
        Means of the relaxed outputs.
    widest : tuple of int and ndarray of shape (r,)
        The output that varies most around its mean, and in which direction.
    N, kappa, lam, mu : ndarray
        The dual point.
    """

    bound: float
    U: Array
    widest: tuple[int, Array]
    N: Array
    kappa: Array
    lam: Array
    mu: Array


@dataclass
class _Stack:
    """Values at one dual point of each part; the first axis counts the parts."""

    x: Array
    tau: Array
    value: Array
    merit: Array  # with the barrier; minus infinity outside the domain
    W: Array
    U: Array
    N: Array

    def take(self, at: Any) -> _Stack:
        return _Stack(*(getattr(self, field.name)[at] for field in fields(self)))

    def put(self, at: Any, other: _Stack) -> None:
        for field in fields(self):
            getattr(self, field.name)[at] = getattr(other, field.name)


class Parts:
    """A stack of parts of the caps.

    Parameters
    ----------
    A : ndarray of shape (r, p)
        Factor with unit columns.
    floors : ndarray of shape (p,)
        The least fidelities.
    slabs : sequence of tuples of Slab
        What bounds each part; an empty tuple: all of the caps.
    """

    def __init__(self, A: Array, floors: Array, slabs: Sequence[tuple[Slab, ...]]) -> None:
        self.live = np.flatnonzero(floors < 1.0)  # a floor of one holds its output at the source
        self.all, self.A, self.floors = A, A[:, self.live], floors[self.live]
        pinned = A[:, floors >= 1.0]
        self.fixed = pinned @ pinned.T
        r, m = len(A), max(map(len, slabs))
        # parts with fewer slabs have some without a direction, which hold nothing
        shape = (len(slabs), m)
        self.of, self.V = np.zeros(shape, dtype=np.intp), np.zeros((*shape, r))
        self.lo, self.hi = np.full(shape, -1.0), np.ones(shape)
        for b, own in enumerate(slabs):
            for at, slab in enumerate(own):
                self.of[b, at] = np.searchsorted(self.live, slab.variable)
                self.V[b, at], self.lo[b, at], self.hi[b, at] = slab.direction, slab.lo, slab.hi
        self.rows, self.columns = np.triu_indices(r)
        # an orthonormal basis of the symmetric matrices: N = Σ x_k E_k
        self.scale = np.where(self.rows == self.columns, 0.5, np.sqrt(0.5))
        i, j = self.rows[:, None], self.columns[:, None]
        k, n = self.rows[None, :], self.columns[None, :]
        orders = ((j, k, n, i), (j, n, k, i), (i, k, n, j), (i, n, k, j))
        self._cross = [np.ravel_multi_index(order, (r,) * 4) for order in orders]

    def start(self, before: Sequence[PartPoint] | None) -> tuple[Array, Array]:
        """All multipliers of each part in a row, from those of the part that it was cut from."""
        b, m = self.of.shape
        q = self.A.shape[1]
        if before is None:
            first = np.r_[self._flat(0.5 * self.all @ self.all.T), np.ones(2 * q), np.full(m, 0.1)]
            return np.tile(first, (b, 1)), np.full(b, 0.1)
        x, tau = [], []
        for point in before:
            # well inside, because the part that was cut ended next to the boundary
            room = float(np.sqrt(np.mean(point.N**2))) * _ROOM
            mu = np.r_[point.mu, np.zeros(m - len(point.mu))]
            rest = np.r_[point.kappa[self.live], point.lam[self.live], mu] + room
            x.append(np.r_[self._flat(point.N), rest])
            tau.append(_FIRST * room)
        return np.array(x), np.array(tau)

    def maximise(
        self,
        *,
        enough: float,
        share: float,
        goal: float,
        before: Sequence[PartPoint] | None = None,
    ) -> list[PartPoint]:
        """Raise each bound until it is ``enough``, or until little is left to gain.

        Parameters
        ----------
        enough : float
            Value at which to stop.
        share : float
            Of what is missing to ``enough``, what may stay open.
        goal : float
            What may stay open in any case.
        before : sequence of PartPoint, optional
            Of the parts that these were cut from.
        """
        (r, q), m = self.A.shape, self.of.shape[1]
        count = (r + 1) * q + m  # terms of the barrier
        everything = np.arange(len(self.of))
        points = self._at(everything, *self.start(before))
        outside = np.flatnonzero(np.isinf(points.merit))
        if len(outside):
            x, tau = self.start(None)
            points.put(outside, self._at(outside, x[outside], tau[outside]))
        on = everything
        for _ in range(_STEPS):
            now = points.take(on)
            gradient, hessian = self._derivatives(on, now)
            move = _solved(hessian, gradient)
            decrement = (gradient * move).sum(axis=1)
            left = np.maximum(goal, share * (enough - now.value))
            going = (now.value < enough) & ((count * now.tau > left) | (decrement > left))
            on, now, move, decrement = on[going], now.take(going), move[going], decrement[going]
            signed = slice(-q - m, None)  # λ and μ, which stay positive
            nearest = (move[:, signed] / now.x[:, signed]).min(axis=1)
            length = np.minimum(1.0, _INSIDE / np.maximum(-nearest, _INSIDE))
            trying = np.arange(len(on))
            wanted = now.merit - 1e-13 * np.abs(now.merit)
            while len(trying):
                step = now.x[trying] + length[trying, None] * move[trying]
                tried = self._at(on[trying], step, now.tau[trying])
                grown = wanted[trying] + 1e-4 * length[trying] * decrement[trying]
                trying = trying[~(tried.merit >= grown) & (length[trying] > 1e-9)]
                length[trying] *= 0.5
            # not all of a long step, so that no eigenvalue of any M_j falls by more than a factor
            length *= np.where(decrement < 0.25 * now.tau, 1.0, _INSIDE)
            moved = length > 1e-9
            tau = now.tau.copy()
            centred = decrement < 0.5 * count * tau
            tau[centred] = np.maximum(_SHRINK * tau[centred], 0.2 * goal / count)
            on, step, tau = on[moved], (now.x + length[:, None] * move)[moved], tau[moved]
            new = self._at(on, step, tau)
            kept = np.isfinite(new.merit)
            on = on[kept]
            points.put(on, new.take(kept))
            if not len(on):
                break
        return [self._point(b, points) for b in range(len(everything))]

    def _flat(self, S: Array) -> Array:
        """Coordinates of symmetric matrices (the last two axes)."""
        return np.asarray(
            self.scale * (S[..., self.rows, self.columns] + S[..., self.columns, self.rows])
        )

    def _split(self, x: Array) -> tuple[Array, Array, Array, Array]:
        (r, q), d = self.A.shape, len(self.rows)
        N = np.zeros((len(x), r, r))
        N[:, self.rows, self.columns] = self.scale * x[:, :d]
        return N + N.swapaxes(1, 2), x[:, d : d + q], x[:, d + q : d + 2 * q], x[:, d + 2 * q :]

    def _at(self, on: Any, x: Array, tau: Array) -> _Stack:
        """Value, merit with the barrier, and minimisers of the parts ``on``."""
        N, kappa, lam, mu = self._split(x)
        (r, p), (b, q) = self.all.shape, kappa.shape
        V, lo, hi = self.V[on], self.lo[on], self.hi[on]
        own = (self.of[on][:, None, :] == np.arange(q)[:, None]).astype(np.float64)
        pulls = (mu[:, :, None] * V)[:, :, :, None] * V[:, :, None, :]
        M = N[:, None] + kappa[:, :, None, None] * np.eye(r)
        M += (own @ pulls.reshape(b, mu.shape[1], r * r)).reshape(M.shape)
        Z = lam[:, :, None] * self.A.T + own @ ((0.5 * mu * (lo + hi))[:, :, None] * V)
        pivots = _pivots(M)
        definite = pivots > _DEFINITE * np.einsum("bqii->bqi", M)
        inside = definite.all(axis=(1, 2)) & (lam > 0.0).all(axis=1) & (mu > 0.0).all(axis=1)
        W = np.zeros_like(M)
        W[inside] = np.linalg.inv(M[inside])
        W = 0.5 * (W + W.swapaxes(2, 3))
        U = (W @ Z[..., None])[..., 0]
        trace = np.trace(N, axis1=1, axis2=2)
        value = (
            welch(p, r)
            - p / r * trace
            - 0.5 * ((N * N).sum(axis=(1, 2)) - trace**2 / r)
            + (N * self.fixed).sum(axis=(1, 2))
            + (2.0 * lam * self.floors - kappa).sum(axis=1)
            + (mu * lo * hi).sum(axis=1)
            - (U * Z).sum(axis=(1, 2))
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(pivots).sum(axis=(1, 2)) + np.log(lam).sum(axis=1)
            logs += np.log(mu).sum(axis=1)
        value = np.where(inside, value, -np.inf)
        return _Stack(x, tau, value, np.where(inside, value + tau * logs, -np.inf), W, U, N)

    def _derivatives(self, on: Any, at: _Stack) -> tuple[Array, Array]:
        """Gradient of the merit, and the upper triangle of minus its second derivative."""
        (r, q), (b, m) = self.A.shape, self.of[on].shape
        p, d = self.all.shape[1], len(self.rows)
        W, U, N, tau = at.W, at.U, at.N, at.tau[:, None]
        _, _, lam, mu = self._split(at.x)
        V, of, lo, hi = self.V[on], self.of[on], self.lo[on], self.hi[on]
        each = np.arange(b)[:, None]
        heat = tau[:, :, None, None] * W
        S = 2.0 * U[..., :, None] * U[..., None, :] + heat
        half = 0.5 * (S + heat)  # uuᵀ + τW, second moments of the relaxed outputs
        Uv, WV = U[each, of], (W[each, of] @ V[..., None])[..., 0]
        Wa = (W @ self.A.T[..., None])[..., 0]
        along = (V * Uv).sum(axis=2) - 0.5 * (lo + hi)
        pull = 2.0 * along[..., None] * Uv + tau[..., None] * WV
        shift = ((np.trace(N, axis1=1, axis2=2) - p) / r)[:, None, None] * np.eye(r)
        gradient = np.concatenate(
            [
                self._flat(half.sum(axis=1) + self.fixed - N + shift),
                np.trace(half, axis1=2, axis2=3) - 1.0,
                2.0 * self.floors - 2.0 * (self.A.T * U).sum(axis=2) + tau / lam,
                along**2 - 0.25 * (hi - lo) ** 2 + tau * (V * WV).sum(axis=2) + tau / mu,
            ],
            axis=1,
        )
        H = np.zeros((b, d + 2 * q + m, d + 2 * q + m))
        P = (W.reshape(b, q, r * r).swapaxes(1, 2) @ S.reshape(b, q, r * r)).reshape(b, r**4)
        block = sum(P[:, order] for order in self._cross)
        unit = np.where(self.rows == self.columns, 1.0, 0.0)
        # N + cI with κ - c is the same point: any term will do that sees this direction alone
        H[:, :d, :d] = self.scale[:, None] * self.scale * block + (1.0 - 1.0 / r) * np.outer(
            unit, unit
        )
        H[:, :d, :d] += np.eye(d)
        ks, ls, ms = d + np.arange(q), d + q + np.arange(q), d + 2 * q + np.arange(m)
        H[:, :d, ks] = self._flat(W @ S).swapaxes(1, 2) - unit[:, None]
        H[:, :d, ls] = -2.0 * self._flat(Wa[..., :, None] * U[..., None, :]).swapaxes(1, 2)
        H[:, :d, ms] = self._flat(WV[..., :, None] * pull[..., None, :]).swapaxes(1, 2)
        H[:, ks[:, None], ks] = 1.0
        H[:, ks, ks] += (W * S).sum(axis=(2, 3))
        H[:, ks, ls] = -2.0 * (Wa * U).sum(axis=2)
        H[:, ls, ls] = 2.0 * (Wa * self.A.T).sum(axis=2) + tau / lam**2
        H[each, ks[of], ms] = (WV * pull).sum(axis=2)
        H[each, ls[of], ms] = -2.0 * along * (Wa[each, of] * V).sum(axis=2)
        same = of[:, :, None] == of[:, None, :]
        cross = np.where(same, V @ WV.swapaxes(1, 2), 0.0)
        H[:, ms[:, None], ms] = 2.0 * along[:, :, None] * along[:, None, :] * cross
        H[:, ms[:, None], ms] += tau[..., None] * cross**2
        H[:, ms, ms] += tau / mu**2
        return gradient, H

    def _point(self, b: int, points: _Stack) -> PartPoint:
        _, kappa, lam, mu = (array[b] for array in self._split(points.x))
        own = self.V[b].any(axis=1)
        U = self.all.copy()
        U[:, self.live] = points.U[b].T
        values, vectors = np.linalg.eigh(points.W[b])
        k = int(np.argmax(values[:, -1]))
        full = np.zeros((2, U.shape[1]))
        full[:, self.live] = kappa, lam
        bound = float(points.value[b] + mu[~own].sum())
        widest = int(self.live[k]), vectors[k, :, -1]
        return PartPoint(bound, U, widest, points.N[b], full[0], full[1], mu[own])


def _pivots(M: Array) -> Array:
    """Squared diagonals of the Cholesky factors; NaN or not positive where there is none."""
    L, r = np.zeros_like(M), M.shape[-1]
    out = np.empty(M.shape[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        for k in range(r):
            column = M[..., k:, k] - (L[..., k:, :k] * L[..., k : k + 1, :k]).sum(axis=-1)
            out[..., k] = column[..., 0]
            L[..., k:, k] = column / np.sqrt(column[..., :1])
    return out


def _solved(H: Array, g: Array) -> Array:
    """``H⁻¹g`` for positive definite matrices of any scaling, given by their upper triangles."""
    unit = 1.0 / np.sqrt(np.einsum("bii->bi", H))
    scaled = H * unit[:, :, None] * unit[:, None, :]
    out = np.empty_like(g)
    for matrix, own, force, move in zip(scaled, unit, g, out, strict=True):
        for ridge in (1e-13, 1e-11, 1e-9, 1e-7):
            matrix.flat[:: len(own) + 1] = 1.0 + ridge
            _, solution, info = sla.lapack.dposv(matrix, own * force)
            if info == 0:
                break
        move[:] = own * solution
    return out
