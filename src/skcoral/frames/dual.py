"""The best lower bound of the frame form: maximise q(N) over N ⪰ 0 by an interior-point method.

Newton's method for ``q(N) + τ log det N`` with τ → 0. At a maximum with N ≻ 0 the minimisers
``u_j`` solve the problem itself; where N becomes singular (low floors) only the bound is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral._arrays import (
    Array,
    eigh,
    inner,
    plus_diagonal,
    to_device,
    to_host,
)
from skcoral._linalg import conjugate_gradient
from skcoral.frames.cuts import CutCurvature, CutPoint
from skcoral.frames.point import Curvature, FramePoint, frame_point, least_of_shares

_SHRINK, _WIDE_SHRINK = 0.1, 0.03  # of τ, once the point is centred
_CENTRED = 1.0  # decrement, relative to rτ, of a point that counts as centred
_INSIDE = 0.8  # share of the way to the boundary that a step may take
_FORCING, _WIDE_FORCING = 0.01, 0.1  # relative residual of the inner conjugate gradients
_LAST = 1e-4  # the same before the maximisation ends: flat directions hide in a large residual
_INNER = 100  # of their steps at most
_WIDE = 8  # variables per dimension from which the systems are well conditioned


@dataclass(frozen=True)
class FrameDual:
    """Where the maximisation ended: a valid bound whatever the accuracy.

    Attributes
    ----------
    point : FramePoint
        In the eigenbasis of N.
    Q : array of shape (r, r)
        That basis.
    tau : float
        The last barrier parameter: ``r τ`` is what the barrier leaves open.
    n_iter, n_products : int
        Newton steps and products with the second derivative.
    cut : CutPoint, optional
        The variables whose outputs are held in slabs; ``point`` is about all others.
    """

    point: FramePoint
    Q: Any
    tau: float
    n_iter: int
    n_products: int
    cut: CutPoint | None = None

    @property
    def excess(self) -> float:
        """What the bound has above that of the rank."""
        if self.cut is None:
            return self.point.excess
        own = self.cut.terms.sum() - self.cut.cuts.shares.sum() * self.point.n.mean()
        return float(self.point.excess + own)

    @property
    def shares(self) -> Array:
        """ω of all variables, those that are cut last."""
        cut = np.zeros(0) if self.cut is None else self.cut.cuts.shares
        return np.asarray(np.r_[self.point.shares, cut])

    @property
    def value(self) -> float:
        """The bound as it is, also below that of the rank."""
        return float(least_of_shares(self.shares, len(self.point.n))) + self.excess

    @property
    def merit(self) -> float:
        """The excess with all barriers."""
        logs = self.point.logs + (0.0 if self.cut is None else self.cut.logs)
        out = self.excess + self.tau * float(np.log(self.point.n).sum())
        return out + self.point.barrier * logs

    @property
    def bound(self) -> float:
        """The lower bound on the sum of squares; that of the rank where N does not help."""
        return self.value - min(self.excess, 0.0)

    @property
    def U(self) -> Any:
        """The minimisers, in the basis of the factor."""
        return self.Q @ self.point.U

    @property
    def N(self) -> Any:
        """The matrix itself."""
        return (self.Q * to_device(self.point.n[None, :], self.Q)) @ self.Q.T


def maximise_bound(
    A: Any,
    floors: Array,
    *,
    goal: float | Callable[[FrameDual], float],
    max_iter: int,
    judge: Callable[[FrameDual], bool] | None = None,
    resume: FrameDual | None = None,
    shares: Array | None = None,
) -> FrameDual:
    """Maximise (★★) over N.

    Parameters
    ----------
    A : array of shape (r, p)
        Factor with unit columns.
    floors : ndarray of shape (p,)
        The least fidelities.
    goal : float or callable
        What may stay open, relative to ``max(1, bound)``, or as a function of the iterate.
    max_iter : int
        Largest number of Newton steps.
    judge : callable, optional
        Told every iterate; the maximisation ends when it says True.
    resume : FrameDual, optional
        Where an earlier maximisation ended, or where to start on a part of the caps.
    shares : ndarray of shape (p,), optional
        ω of the variables, if not all are one.
    """
    r, p = A.shape
    share = r / p  # each norm's part of the barrier, so that all norms weigh as much as N
    now = _start(A, floors, share, shares) if resume is None else resume
    shrink, forcing = (_WIDE_SHRINK, _WIDE_FORCING) if p >= _WIDE * r else (_SHRINK, _FORCING)
    count = 2 * r + (0.0 if now.cut is None else share * now.cut.cuts.terms)
    for _ in range(max_iter):
        if judge is not None and judge(now):
            return now
        V, move, decrement, used = _newton_step(now, forcing)
        left = goal(now) if callable(goal) else goal * max(1.0, abs(now.value))
        if count * now.tau <= 0.5 * left and decrement <= 0.5 * left:
            V, move, decrement, more = _newton_step(now, _LAST)
            used += more
            if decrement <= 0.5 * left:
                return replace(now, n_products=now.n_products + used)
        new = _line_search(now, V, move, floors, decrement, shares)
        if new is None:
            return now
        now = replace(new, n_iter=now.n_iter + 1, n_products=now.n_products + used)
        if decrement < _CENTRED * r * now.tau:
            tau = min(now.tau, max(shrink * now.tau, 0.2 * left / count))
            point = frame_point(
                now.point.n,
                now.point.B,
                floors,
                barrier=share * tau,
                kappa=shrink * now.point.kappa,
                shares=shares,
            )
            now = replace(now, point=point, tau=tau)
    return now


def _start(A: Any, floors: Array, share: float, shares: Array | None) -> FrameDual:
    """The best multiple of ``AAᵀ``: along a ray q is linear plus quadratic."""
    r, p = A.shape
    values, Q = eigh(A @ A.T)
    n = np.asarray(to_host(values))
    n = np.maximum(n, 1e-14 * max(float(n[-1]), 1e-300))
    point = frame_point(n, Q.T @ A, floors, barrier=1e-2 * float(n.mean()), shares=shares)
    dev = float(n @ n) - float(n.sum()) ** 2 / r
    size = max((point.excess + 0.5 * dev) / dev, 0.1) if dev > 0.0 else 1.0
    n = size * n
    tau = max(float(n.mean()) * p / r * 0.1, 1e-300)
    point = frame_point(
        n, point.B, floors, barrier=share * tau, kappa=size * point.kappa, shares=shares
    )
    return FrameDual(point, Q, tau, 0, 0)


def _line_search(
    now: FrameDual,
    V: Any,
    move: Array,
    floors: Array,
    decrement: float,
    shares: Array | None,
) -> FrameDual | None:
    """Step along ``V`` inside N ≻ 0 until the merit has grown enough."""
    point = now.point
    root = to_device(1.0 / np.sqrt(point.n), V)
    lowest = float(np.asarray(to_host(eigh(root[:, None] * V * root[None, :])[0]))[0])
    length = 1.0 if lowest >= -_INSIDE else -_INSIDE / lowest
    if now.cut is not None:
        length = min(length, now.cut.longest(move))
    before = now.merit
    for _ in range(25):
        values, turn = eigh(plus_diagonal(length * V, point.n))
        n, Q = np.asarray(to_host(values)), now.Q @ turn
        cut = None if now.cut is None else now.cut.cuts.at(n, Q, now.cut.x + length * move)
        if n[0] > 0.0 and (now.cut is None or cut is not None):
            B = turn.T @ point.B
            there = frame_point(
                n, B, floors, barrier=point.barrier, kappa=point.kappa, shares=shares
            )
            new = replace(now, point=there, Q=Q, cut=cut)
            if new.merit >= before + 1e-4 * length * decrement - 1e-14 * abs(before):
                return new
        length *= 0.5
    return None


def _newton_step(now: FrameDual, rtol: float) -> tuple[Any, Array, float, int]:
    """The Newton step of N and of the multipliers of cut variables, its decrement, its products.

    The system is preconditioned by the operator's diagonal.
    """
    operator = Curvature(now.point, now.tau)
    # the barrier pushes the eigenvalues by τ / n; that is the whole first-order condition
    force = plus_diagonal(now.point.gradient, now.tau / now.point.n)
    apply, diagonal, right = operator.apply, operator.diagonal, force
    held = None
    if now.cut is not None:
        held = CutCurvature(now.cut, now.point.barrier)
        force = plus_diagonal(force + held.force, -now.cut.cuts.shares.sum() / len(force))
        right, diagonal = force - held.eliminated, diagonal + held.diagonal

        def apply(V: Any) -> Any:
            return operator.apply(V) + held.apply(V)

    V, _, used = conjugate_gradient(
        apply, 1.0 * right, lambda Z: Z / diagonal, rtol=rtol, max_iter=_INNER
    )
    decrement = inner(force, V)
    if held is None:
        return V, np.zeros(0), decrement, used
    move = held.move(V)
    return V, move, decrement + float(held.own_force @ move), used
