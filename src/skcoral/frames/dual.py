"""The best lower bound of the frame form: maximise q(N) over N ⪰ 0 by an interior-point method.

Newton's method for ``q(N) + τ log det N`` with τ → 0. At a maximum with N ≻ 0 the minimisers
``u_j`` solve the problem itself; where N becomes singular (low floors) only the bound is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from skcoral.frames.point import Curvature, FramePoint, frame_point, welch

_SHRINK = 0.1  # of τ, once the point is centred
_CENTRED = 1.0  # decrement, relative to rτ, of a point that counts as centred
_INSIDE = 0.8  # share of the way to the boundary that a step may take
_FORCING = 0.1  # relative residual of the inner conjugate gradients
_INNER = 100  # of their steps at most


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
    def bound(self) -> float:
        """The lower bound on the sum of squares; that of the rank where N does not help."""
        r, p = self.point.B.shape
        return max(self.point.value, welch(p, r))

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
    goal: float,
    max_iter: int,
    judge: Callable[[FrameDual], bool] | None = None,
    only_excess: bool = False,
    resume: FrameDual | None = None,
) -> FrameDual:
    """Maximise (★★) over N.

    Parameters
    ----------
    A : array of shape (r, p)
        Factor with unit columns.
    floors : ndarray of shape (p,)
        The least fidelities.
    goal : float
        What may stay open, relative to ``max(1, bound)``.
    max_iter : int
        Largest number of Newton steps.
    judge : callable, optional
        Told every iterate; the maximisation ends when it says True.
    only_excess : bool
        Measure ``goal`` by what the bound has above that of the rank alone.
    resume : FrameDual, optional
        Where an earlier maximisation ended.
    """
    r, p = A.shape
    share = r / p  # each norm's part of the barrier, so that all norms weigh as much as N
    if resume is None:
        resume = _start(A, floors, share)
    point, Q, tau, first, products = (
        resume.point,
        resume.Q,
        resume.tau,
        resume.n_iter,
        resume.n_products,
    )
    for step in range(first, first + max_iter):
        current = FrameDual(point, Q, tau, step, products)
        if judge is not None and judge(current):
            return current
        # the barrier pushes the eigenvalues by τ / n; that is the whole first-order condition
        force = plus_diagonal(point.gradient, tau / point.n)
        V, used = _newton_step(Curvature(point, tau), force)
        products += used
        decrement = inner(force, V)
        left = goal * (max(point.excess, 1e-30) if only_excess else max(1.0, abs(point.value)))
        if 2 * r * tau <= 0.5 * left and decrement <= 0.5 * left:
            return current
        new, turn = _line_search(point, V, floors, tau, decrement)
        if new is None:
            return current
        point, Q = new, Q @ turn
        if decrement < _CENTRED * r * tau:
            tau = min(tau, max(_SHRINK * tau, 0.1 * left / r))
            point = frame_point(
                point.n, point.B, floors, barrier=share * tau, kappa=_SHRINK * point.kappa
            )
    return FrameDual(point, Q, tau, first + max_iter, products)


def _start(A: Any, floors: Array, share: float) -> FrameDual:
    """The best multiple of ``AAᵀ``: along a ray q is linear plus quadratic."""
    r, p = A.shape
    values, Q = eigh(A @ A.T)
    n = np.asarray(to_host(values))
    n = np.maximum(n, 1e-14 * max(float(n[-1]), 1e-300))
    point = frame_point(n, Q.T @ A, floors, barrier=1e-2 * float(n.mean()))
    dev = float(n @ n) - float(n.sum()) ** 2 / r
    size = max((point.excess + 0.5 * dev) / dev, 1e-3) if dev > 0.0 else 1.0
    n = size * n
    tau = max(float(n.mean()) * p / r * 0.1, 1e-300)
    point = frame_point(n, point.B, floors, barrier=share * tau, kappa=size * point.kappa)
    return FrameDual(point, Q, tau, 0, 0)


def _line_search(
    point: FramePoint, V: Any, floors: Array, tau: float, decrement: float
) -> tuple[FramePoint | None, Any]:
    """Step along ``V`` inside N ≻ 0 until ``q + τ log det N`` has grown enough."""
    root = to_device(1.0 / np.sqrt(point.n), V)
    lowest = float(np.asarray(to_host(eigh(root[:, None] * V * root[None, :])[0]))[0])
    length = 1.0 if lowest >= -_INSIDE else -_INSIDE / lowest
    before = point.excess + point.barrier * point.logs + tau * float(np.log(point.n).sum())
    for _ in range(25):
        values, turn = eigh(plus_diagonal(length * V, point.n))
        n = np.asarray(to_host(values))
        if n[0] > 0.0:
            new = frame_point(n, turn.T @ point.B, floors, barrier=point.barrier, kappa=point.kappa)
            after = new.excess + new.barrier * new.logs + tau * float(np.log(n).sum())
            if after >= before + 1e-4 * length * decrement - 1e-14 * abs(before):
                return new, turn
        length *= 0.5
    return None, V


def _newton_step(operator: Curvature, force: Any) -> tuple[Any, int]:
    """Solve for the Newton step, preconditioned by the operator's diagonal."""
    V, _, used = conjugate_gradient(
        operator.apply,
        1.0 * force,
        lambda Z: Z / operator.diagonal,
        rtol=_FORCING,
        max_iter=_INNER,
    )
    return V, used
