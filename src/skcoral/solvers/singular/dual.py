"""The best lower bound of the frame form: maximise q(N) over N ⪰ 0 by an interior-point method.

Newton's method for ``q(N) + τ log det N`` with τ → 0. At a maximum with N ≻ 0 the minimisers
``u_j`` solve the problem itself; where N becomes singular (low floors) only the bound is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral.core.arrays import (
    Array,
    eigh,
    inner,
    plus_diagonal,
    to_device,
    to_host,
)
from skcoral.core.linalg import conjugate_gradient
from skcoral.core.lowrank import welch
from skcoral.solvers.singular.point import Curvature, FramePoint, frame_point

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
    """

    point: FramePoint
    Q: Any
    tau: float
    n_iter: int
    n_products: int

    @property
    def excess(self) -> float:
        """What the bound has above that of the rank."""
        return self.point.excess

    @property
    def value(self) -> float:
        """The bound as it is, also below that of the rank."""
        r, p = self.point.B.shape
        return welch(p, r) + self.excess

    @property
    def merit(self) -> float:
        """The excess with both barriers."""
        out = self.excess + self.tau * float(np.log(self.point.n).sum())
        return out + self.point.barrier * self.point.logs

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
        Where an earlier maximisation ended.
    """
    r, p = A.shape
    share = r / p  # each norm's part of the barrier, so that all norms weigh as much as N
    now = _start(A, floors, share) if resume is None else resume
    shrink, forcing = (_WIDE_SHRINK, _WIDE_FORCING) if p >= _WIDE * r else (_SHRINK, _FORCING)
    count = 2 * r
    for _ in range(max_iter):
        if judge is not None and judge(now):
            return now
        V, decrement, used = _newton_step(now, forcing)
        left = goal(now) if callable(goal) else goal * max(1.0, abs(now.value))
        if count * now.tau <= 0.5 * left and decrement <= 0.5 * left:
            V, decrement, more = _newton_step(now, _LAST)
            used += more
            if decrement <= 0.5 * left:
                return replace(now, n_products=now.n_products + used)
        new = _line_search(now, V, floors, decrement)
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
            )
            now = replace(now, point=point, tau=tau)
    return now


def _start(A: Any, floors: Array, share: float) -> FrameDual:
    """The best multiple of ``AAᵀ``: along a ray q is linear plus quadratic."""
    r, p = A.shape
    values, Q = eigh(A @ A.T)
    n = np.asarray(to_host(values))
    n = np.maximum(n, 1e-14 * max(float(n[-1]), 1e-300))
    point = frame_point(n, Q.T @ A, floors, barrier=1e-2 * float(n.mean()))
    dev = float(n @ n) - float(n.sum()) ** 2 / r
    size = max((point.excess + 0.5 * dev) / dev, 0.1) if dev > 0.0 else 1.0
    n = size * n
    tau = max(float(n.mean()) * p / r * 0.1, 1e-300)
    point = frame_point(n, point.B, floors, barrier=share * tau, kappa=size * point.kappa)
    return FrameDual(point, Q, tau, 0, 0)


def _line_search(now: FrameDual, V: Any, floors: Array, decrement: float) -> FrameDual | None:
    """Step along ``V`` inside N ≻ 0 until the merit has grown enough."""
    point = now.point
    root = to_device(1.0 / np.sqrt(point.n), V)
    lowest = float(np.asarray(to_host(eigh(root[:, None] * V * root[None, :])[0]))[0])
    length = 1.0 if lowest >= -_INSIDE else -_INSIDE / lowest
    before = now.merit
    for _ in range(25):
        values, turn = eigh(plus_diagonal(length * V, point.n))
        n, Q = np.asarray(to_host(values)), now.Q @ turn
        if n[0] > 0.0:
            B = turn.T @ point.B
            there = frame_point(n, B, floors, barrier=point.barrier, kappa=point.kappa)
            new = replace(now, point=there, Q=Q)
            if new.merit >= before + 1e-4 * length * decrement - 1e-14 * abs(before):
                return new
        length *= 0.5
    return None


def _newton_step(now: FrameDual, rtol: float) -> tuple[Any, float, int]:
    """The Newton step, its decrement, and its products.

    The system is preconditioned by the operator's diagonal.
    """
    operator = Curvature(now.point, now.tau)
    # the barrier pushes the eigenvalues by τ / n; that is the whole first-order condition
    force = plus_diagonal(now.point.gradient, now.tau / now.point.n)
    V, _, used = conjugate_gradient(
        operator.apply,
        1.0 * force,
        lambda Z: Z / operator.diagonal,
        rtol=rtol,
        max_iter=_INNER,
    )
    return V, inner(force, V), used
