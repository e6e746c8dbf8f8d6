"""The trade-off of many small matrices at once, for the squared criterion, from neighbours.

The equations are those of :mod:`skcoral.tradeoff.newton`: with the floors that bind met with
equality, ``λ`` follows from H by one linear solve, ``T = D_λ H⁻¹``, and ``TᵀRT - I = off(H)`` is
left. The Newton equations for the p(p+1)/2 entries of H are formed and solved for a whole stack.
The variables whose floors do not bind are completed exactly. Each answer is judged by the bound
(★) of :mod:`skcoral.tradeoff.dual`; one that does not close its gap counts as not solved.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral.panels.stacked_exact import (
    Mask,
    Roots,
    assemble,
    cholesky,
    complement,
    inverse,
    largest_means,
    solve,
)
from skcoral.results import Array

_EPS = float(np.finfo(np.float64).eps)
_STEPS = 10
_NEAR = 1e-2  # relative residual below which equations are used again
_CORRECTIONS = 4
_ROUNDS = 3  # corrections of which floors bind
_SOLVED = 1e-11  # relative residual at which Newton's method stops
_CLOSED = 1e-10  # gap, relative to max(1, objective), of an answer that is kept


@dataclass
class Tradeoffs:
    """Least residuals of a stack; ``multipliers`` and ``H`` prove ``lower_bound``."""

    T: Array
    G: Array
    objective: Array
    lower_bound: Array
    multipliers: Array
    H: Array
    solved: Mask


@cache
def _pairs(p: int) -> tuple[Any, ...]:
    """Entries on and above the diagonal, their scale, and where products of them are found."""
    i, j = np.triu_indices(p)
    unit = np.where(i != j, 1.0, np.sqrt(0.5))
    ii, jj, ij, ji = (
        (a[:, None] * p + b[None, :]).ravel() for a, b in ((i, i), (j, j), (i, j), (j, i))
    )
    return i, j, unit, ((ii, jj), (jj, ii), (ij, ji), (ji, ij))


@dataclass
class _Points:
    """Where every floor of the members is met with equality."""

    H: Array
    B: Array
    lam: Array
    T: Array
    C: Array
    G: Array
    gradient: Array
    value: Array

    @classmethod
    def of(cls, R: Array, floors: Array, members: Mask, H: Array) -> _Points:
        p = members.shape[1]
        rows = np.arange(p)
        both = members[:, :, None] & members[:, None, :]
        B = inverse(H)
        K = np.where(both, R * B, 0.0)
        K[:, rows, rows] += ~members
        rho = np.where(members, floors, 0.0)
        lam = solve(K, rho[:, :, None])[:, :, 0]
        T = lam[:, :, None] * B
        C = R @ T
        G = T.transpose(0, 2, 1) @ C
        gradient = np.where(both, G - H, 0.0)
        own = H[:, rows, rows]
        gradient[:, rows, rows] = np.where(members, G[:, rows, rows] - 1.0, 0.0)
        squares = ((H * H).sum(axis=(1, 2)) - (own * own).sum(axis=1)) / 2.0
        value = (rho * lam).sum(axis=1) - np.where(members, own, 0.0).sum(axis=1) - squares
        return cls(H, B, lam, T, C, G, gradient, value)

    def put(self, at: Any, other: _Points) -> None:
        for name in self.__dataclass_fields__:
            getattr(self, name)[at] = getattr(other, name)

    def take(self, at: Any) -> _Points:
        return _Points(*(getattr(self, name)[at] for name in self.__dataclass_fields__))

    @property
    def residual(self) -> Array:
        return np.sqrt((self.gradient * self.gradient).sum(axis=(1, 2)))

    def direction(self, R: Array, members: Mask) -> tuple[Array, list[Any]]:
        """Newton's direction for H, zero where the equations are not definite; their factors."""
        n, p = members.shape
        i, j, unit, places = _pairs(p)
        K = np.where(members[:, :, None] & members[:, None, :], R * self.B, 0.0)
        K[:, np.arange(p), np.arange(p)] += ~members
        J = self.C[:, :, i] * self.B[:, :, j] + self.C[:, :, j] * self.B[:, :, i]
        J *= unit * np.sqrt(0.5) * members[:, :, None]
        half = solve(cholesky(K), J)
        usable: Any = np.isfinite(half).all(axis=(1, 2))
        half[~usable] = 0.0
        live = members[:, i] & members[:, j]
        weight = np.where(i != j, np.sqrt(2.0), 1.0)
        right = self.gradient[:, i, j] * weight
        v = np.zeros((n, len(i)))
        factors: list[Any] = [None] * n
        for start in range(0, n, _chunk(len(i))):
            part = slice(start, start + _chunk(len(i)))
            A = self._equations(part, places, unit)
            if not live[part].all():
                A *= live[part, :, None] & live[part, None, :]
            rows = np.arange(len(i))
            A[:, rows, rows] += np.where(live[part], i != j, 1.0)
            # one by one, SciPy's symmetric routines are faster than NumPy's LU of a stack
            for k, own in enumerate(A, start):
                own = sla.blas.dsyrk(-2.0, half[k].T, beta=1.0, c=own.T, lower=1, overwrite_c=1)
                factor, x, info = sla.lapack.dposv(own, right[k], lower=1, overwrite_a=1)
                if info == 0 and usable[k]:
                    v[k], factors[k] = x / weight, factor.copy(order="F")
        return _symmetric(v, p), factors

    def correction(self, factors: list[Any]) -> Array:
        """The direction with equations of a point nearby, whose factors are known."""
        p = self.H.shape[1]
        i, j, _, _ = _pairs(p)
        weight = np.where(i != j, np.sqrt(2.0), 1.0)
        right = self.gradient[:, i, j] * weight
        solved = [
            sla.lapack.dpotrs(factor, b, lower=1)[0]
            for factor, b in zip(factors, right, strict=True)
        ]
        return _symmetric(np.array(solved) / weight, p)

    def _equations(self, part: slice, places: Any, unit: Array) -> Array:
        """``G V B + B V G`` as matrices acting on the entries of V."""
        G, B = (M[part].reshape(len(M[part]), -1) for M in (self.G, self.B))
        size = len(unit)
        A, left, right = _room(len(G), size)
        # (k, l) against (i, j): G_ki B_lj + G_lj B_ki + G_kj B_li + G_li B_kj
        for k, (first, second) in enumerate(places):
            out = left if k else A
            np.take(G, first, axis=1, out=left, mode="clip")
            np.take(B, second, axis=1, out=right, mode="clip")
            np.multiply(left, right, out=out)
            if k:
                A += left
        A = A.reshape(len(G), size, size)
        A *= unit[:, None] * unit[None, :]
        return A


def _symmetric(v: Array, p: int) -> Array:
    """Symmetric matrices from their entries on and above the diagonal."""
    i, j, _, _ = _pairs(p)
    V = np.zeros((len(v), p, p))
    V[:, i, j] = v
    V[:, j, i] = v
    return V


def _chunk(size: int) -> int:
    """How many systems of this size are formed at once, so that they stay in the cache."""
    return max(1, 60_000 // size**2)


_rooms = threading.local()


def _room(n: int, size: int) -> list[Array]:
    """Three arrays that are used again and again: fresh memory costs more than the arithmetic."""
    kept = getattr(_rooms, "kept", None)
    if kept is None or kept[0].shape[1] != size * size or len(kept[0]) < n:
        kept = [np.empty((n, size * size)) for _ in range(3)]
        _rooms.kept = kept
    return [array[:n] for array in kept]


def tradeoffs(R: Array, floors: Array, multipliers: Array, H: Array) -> Tradeoffs:
    """Solve from the dual points of neighbouring problems.

    Parameters
    ----------
    R : ndarray of shape (n, p, p)
        Correlation matrices.
    floors : ndarray of shape (p,)
        Floors in (0, 1), above what exact decorrelation allows.
    multipliers, H : ndarray of shape (n, p) and (n, p, p)
        The dual points; where a multiplier is zero the floor is taken not to bind.
    """
    n, p = multipliers.shape
    members = multipliers > 0
    H = _on(members, H)
    T, lam = np.zeros((n, p, p)), np.zeros((n, p))
    solved = np.zeros(n, dtype=bool)
    at = np.arange(n)
    for _ in range(_ROUNDS):
        points, done = _newton(R[at], floors, members[at], H[at])
        H[at], T[at], lam[at] = points.H, points.T, points.lam
        negative = members[at] & (points.lam <= 0.0)
        drop = done & negative.any(axis=1) & (negative.sum(axis=1) < members[at].sum(axis=1))
        solved[at] = done & ~negative.any(axis=1)
        ready = at[solved[at] & ~members[at].all(axis=1)]
        joined = np.empty(0, dtype=np.intp)
        if len(ready):
            residual, mix = complement(R[ready], members[ready])
            rho = np.where(members[ready], 0.0, floors)
            rest = largest_means(residual, rho, np.ones(rho.shape))
            T[ready] = assemble(members[ready], T[ready], rest.T, mix)
            solved[ready] = rest.solved
            joined = ready[rest.refuted]
            push = np.where(members[ready], 0.0, rest.weights)[rest.refuted]
            if len(joined):
                more = push > 0.03 * push.max(axis=1, keepdims=True)
                H[joined] = _joined(
                    R[joined], members[joined], H[joined], T[joined], lam[joined], more
                )
                members[joined] |= more
        dropped = at[drop]
        members[dropped] &= ~negative[drop]
        H[dropped] = _on(members[dropped], H[dropped])
        at = np.sort(np.concatenate([joined, dropped]))
        if not len(at):
            break
    return _judged(R, floors, members, T, np.where(members, lam, 0.0), H, solved)


def above_thresholds(R: Array, floors: Array, weights: Array) -> tuple[Array, Array]:
    """Dual points ``H = s S`` to start from, with the weights and the root of the thresholds."""
    roots = Roots.of(R, weights)
    S = roots.root()
    off = (S * S).sum(axis=(1, 2)) - (roots.diagonal**2).sum(axis=1)
    s = 2.0 * ((weights * floors).sum(axis=1) - roots.trace) / off
    return s[:, None] * weights, s[:, None, None] * S


def _on(members: Mask, H: Array) -> Array:
    """``H`` of the members, and the identity on the others."""
    both = members[:, :, None] & members[:, None, :]
    return np.where(both, H, np.where(members[:, :, None], 0.0, np.eye(members.shape[1])))


def _joined(R: Array, members: Mask, H: Array, T: Array, lam: Array, more: Mask) -> Array:
    """``H`` where more floors begin to bind: as :func:`skcoral.tradeoff.binding.with_joined`."""
    residual, mix = complement(R, members)
    small = 1e-2 * np.where(members, lam, np.inf).min(axis=1)[:, None, None]
    inside = np.where(members[:, None, :] & members[:, :, None], T, np.eye(members.shape[1]))
    across = small * solve(inside, mix)
    across = np.where(members[:, :, None] & more[:, None, :], across, 0.0)
    values, V = np.linalg.eigh(residual)
    own = small * ((V * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ V.transpose(0, 2, 1))
    own = own + across.transpose(0, 2, 1) @ solve(H, across)
    out = np.where(more[:, :, None] & more[:, None, :], own, H)
    return np.asarray(out + across + across.transpose(0, 2, 1))


def _newton(R: Array, floors: Array, members: Mask, H: Array) -> tuple[_Points, Mask]:
    """Take Newton steps from ``H`` until the floors of the members are solved for."""
    points = _Points.of(R, floors, members, H)
    size = np.sqrt(np.maximum(members.sum(axis=1), 1))
    live = np.isfinite(points.value) & members.any(axis=1)
    done = np.zeros(len(R), dtype=bool)
    for _ in range(_STEPS):
        residual = points.residual / size
        negative = (members & (points.lam <= 0.0)).any(axis=1)
        done |= live & ((residual <= _SOLVED) | negative)
        live &= ~done
        at = np.flatnonzero(live)
        if not len(at):
            break
        now = points.take(at)
        V, factors = now.direction(R[at], members[at])
        gain = (now.gradient * V).sum(axis=(1, 2))
        before, length = now.residual, np.ones(len(at))
        trying = np.arange(len(at))
        for _ in range(4):
            trial_H = now.H[trying] + length[trying, None, None] * V[trying]
            where = at[trying]
            inside = np.linalg.eigvalsh(trial_H)[:, 0] > 0.0
            trying_in = trying[inside]
            trial = _Points.of(R[where[inside]], floors, members[where[inside]], trial_H[inside])
            good = trial.residual < (1.0 - 0.3 * length[trying_in]) * before[trying_in]
            good |= trial.value > now.value[trying_in] + 0.1 * length[trying_in] * gain[trying_in]
            points.put(at[trying_in[good]], trial.take(np.flatnonzero(good)))
            trying = np.setdiff1d(trying, trying_in[good])
            if not len(trying):
                break
            length[trying] *= 0.5
        moved = np.setdiff1d(np.arange(len(at)), trying)
        _correct(points, R, floors, members, at[moved], [factors[k] for k in moved], size)
        live[at[trying]] = False  # too far from the solution
        # rounding may stop the method a little above its goal
        done[at[trying]] = before[trying] <= 1e2 * _SOLVED * size[at[trying]]
    return points, done


def _correct(
    points: _Points,
    R: Array,
    floors: Array,
    members: Mask,
    at: Any,
    factors: list[Any],
    size: Array,
) -> None:
    """Go on with the equations already factorised while that gains a digit a step, in place."""
    on = np.array([factor is not None for factor in factors], dtype=bool)
    for _ in range(_CORRECTIONS):
        now = points.take(at)
        left = now.residual / size[at]
        on &= (left < _NEAR) & (left > _SOLVED) & ~(members[at] & (now.lam <= 0.0)).any(axis=1)
        some = np.flatnonzero(on)
        if not len(some):
            return
        near = now.take(some)
        H = near.H + near.correction([factors[k] for k in some])
        trial = _Points.of(R[at[some]], floors, members[at[some]], H)
        good = trial.residual < 0.1 * near.residual
        points.put(at[some[good]], trial.take(np.flatnonzero(good)))
        on[some[~good]] = False


def _judged(
    R: Array, floors: Array, members: Mask, T: Array, lam: Array, H: Array, solved: Mask
) -> Tradeoffs:
    """Put every output on its cap, and compare the residual with the bound (★)."""
    p = members.shape[1]
    rows = np.arange(p)
    T = _on_caps(R, np.where(solved[:, None, None], T, np.eye(p)), floors, members)
    C = R @ T
    G = T.transpose(0, 2, 1) @ C
    defect = G - np.eye(p)
    own = H[:, rows, rows]
    # the bound wants H ≻ 0, so variables without a price get a little
    little = 1e-13 * np.minimum(np.where(members, own, 0.0).max(axis=1, keepdims=True), 1.0)
    H = H.copy()
    H[:, rows, rows] = np.where(members, own, little)
    squares = ((H * H).sum(axis=(1, 2)) - (H[:, rows, rows] ** 2).sum(axis=1)) / 2.0
    Z = T @ H
    Z[:, rows, rows] -= lam
    rest = (inverse(H) * (Z.transpose(0, 2, 1) @ (R @ Z))).sum(axis=(1, 2))
    fidelity = np.einsum("bij,bij->bj", R, T)
    slack = 2.0 * (lam * (floors - fidelity)).sum(axis=1)
    bound = slack + (defect * H).sum(axis=(1, 2)) - squares - np.abs(rest)
    objective = ((G * G).sum(axis=(1, 2)) - (G[:, rows, rows] ** 2).sum(axis=1)) / 2.0
    gap = objective - bound
    solved = solved & (np.abs(gap) <= _CLOSED * np.maximum(1.0, objective)) & (bound > 0.0)
    solved &= np.linalg.eigvalsh(H)[:, 0] > 0.0  # the bound holds for positive definite H
    solved &= (fidelity >= floors).all(axis=1) & (np.abs(defect[:, rows, rows]) < 1e-12).all(axis=1)
    return Tradeoffs(T, G, objective, bound, lam, H, solved)


def _on_caps(R: Array, T: Array, floors: Array, pinned: Mask) -> Array:
    """Scale outputs to unit variance and move them onto their caps: as ``tradeoff.caps``."""
    p = T.shape[1]
    rows = np.arange(p)
    T = T / np.sqrt((T * (R @ T)).sum(axis=1))[:, None, :]
    f = (R * T).sum(axis=1)
    target = floors + 4.0 * _EPS * (np.abs(R) * np.abs(T)).sum(axis=1)
    turn = pinned | (f < target)
    away = T.copy()
    away[:, rows, rows] -= f
    away[:, rows, rows] -= (R * away).sum(axis=1)
    length = np.sqrt(np.maximum((away * (R @ away)).sum(axis=1), np.finfo(np.float64).tiny))
    factor = np.sqrt(1.0 - target * target) / length
    turned = away * factor[:, None, :]
    turned[:, rows, rows] += target
    return np.where(turn[:, None, :], turned, T)
