"""The least sum of squared correlations of p outputs in r < p dimensions, with its dual point.

The lower bound q(N) is maximised over N ⪰ 0 by an interior-point method: Newton's method for
``q(N) + τ log det N`` with τ → 0. At a maximum with N ≻ 0 the minimisers ``u_j`` solve the problem
itself; where N becomes singular (low floors) outputs are found by descent towards the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral.core.arrays import (
    Array,
    column_dots,
    eigh,
    inner,
    plus_diagonal,
    to_device,
    to_host,
)
from skcoral.core.linalg import conjugate_gradient
from skcoral.core.lowrank import welch
from skcoral.core.problem import Callback
from skcoral.solvers.singular.caps import descend_one, on_caps, squares
from skcoral.solvers.singular.point import Curvature, FramePoint, frame_point

_SHRINK = 0.03  # of τ, once the point is centred
_CENTRED = 1.0  # decrement, relative to rτ, of a point that counts as centred
_INSIDE = 0.8  # share of the way to the boundary that a step may take
# Relative residual of the inner conjugate gradients: in ten times as much flat directions hide, and
# bounds end 1e-8 lower.
_FORCING = 1e-3
_INNER = 100  # of their steps at most
_LIFT = 5e7  # κ of floors of one, relative to the spread of N in their direction
_SHIFTED = 1e-6  # share of the least eigenvalue of N that a shift leaves
_FIRST = 60  # gradients that are spent on the bound of the rank before the dual is asked
_GRADIENTS = 5e9  # r²p of the gradients once the dual has spoken


@dataclass(frozen=True)
class FrameDual:
    """Where the maximisation stands, a valid bound whatever the accuracy.

    ``point`` is in the eigenbasis ``Q`` of N; ``2rτ`` is about what the barriers leave open.
    """

    point: FramePoint
    Q: Any
    tau: float
    n_iter: int = 0

    @property
    def merit(self) -> float:
        """What the bound has above that of the rank, with both barriers."""
        out = self.point.excess + self.tau * float(np.log(self.point.n).sum())
        return out + self.point.barrier * self.point.logs

    @property
    def bound(self) -> float:
        """The lower bound on the sum of squares; that of the rank where N does not help."""
        r, p = self.point.B.shape
        return welch(p, r) + max(self.point.excess, 0.0)

    @property
    def U(self) -> Any:
        """The minimisers, in the basis of the factor."""
        return self.Q @ self.point.U

    def multipliers(self) -> dict[str, Array]:
        """The arrays of the certificate besides the factor, with N shifted to its smallest.

        Replacing N by ``N - cI`` and κ by ``κ + c`` changes nothing in (★★); the smaller N, the
        fewer digits cancel. Floors of one have their λ at infinity.
        """
        point = self.point
        shift = (1.0 - _SHIFTED) * float(point.n.min())
        n, kappa = point.n - shift, point.kappa + shift
        pinned = ~np.isfinite(point.lam)
        lam = np.where(pinned, 0.0, point.lam)
        if pinned.any():
            B = np.asarray(to_host(point.B))[:, pinned]
            lam[pinned], kappa[pinned] = at_source(np.diag(n), B)
        N = matrix_of(n, self.Q)
        return {"N": N, "multipliers": lam, "kappa": kappa}


def matrix_of(values: Array, Q: Any) -> Array:
    """``Q diag(values) Qᵀ``, symmetric to the last bit, in NumPy."""
    N = np.asarray(to_host((Q * to_device(values[None, :], Q)) @ Q.T))
    return np.asarray(0.5 * (N + N.T))


def at_source(N: Array, A: Array) -> tuple[Array, Array]:
    """Finite λ and κ of floors of one: the bound misses aᵀNa by the variance of N at a over κ."""
    image = N @ A
    energy = column_dots(A, image)
    spread = np.sqrt(np.maximum(column_dots(image, image) - energy**2, 0.0))
    kappa = _LIFT * np.maximum(spread, 1e-3 * max(float(np.diag(N).max()), 1e-3))
    return kappa + energy, kappa


def maximise_bound(
    A: Any,
    floors: Array,
    *,
    allowed: Callable[[FrameDual], float],
    max_iter: int,
) -> FrameDual:
    """Maximise (★★) over N.

    ``allowed`` says at every iterate what may stay open; infinity ends the maximisation there.
    """
    r, p = A.shape
    share = r / p  # each norm's part of the barrier, so that all norms weigh as much as N
    now = _start(A, floors, share)
    count = 2 * r
    for _ in range(max_iter):
        left = allowed(now)
        if left == np.inf:
            return now
        V, decrement = _newton_step(now)
        if count * now.tau <= 0.5 * left and decrement <= 0.5 * left:
            return now
        new = _line_search(now, V, floors, decrement)
        if new is None:
            return now
        now = replace(new, n_iter=now.n_iter + 1)
        if decrement < _CENTRED * r * now.tau:
            # centred: lower the barriers, and κ with them
            tau = min(now.tau, max(_SHRINK * now.tau, 0.2 * left / count))
            at, kappa = now.point, _SHRINK * now.point.kappa
            point = frame_point(at.n, at.B, floors, barrier=share * tau, kappa=kappa)
            now = replace(now, point=point, tau=tau)
    return now


def _start(A: Any, floors: Array, share: float) -> FrameDual:
    """The best multiple of ``AAᵀ``: along a ray q is linear plus quadratic."""
    r, p = A.shape
    values, Q = eigh(A @ A.T)
    n = np.asarray(to_host(values))
    n = np.maximum(n, 1e-14 * n[-1])
    point = frame_point(n, Q.T @ A, floors, barrier=1e-2 * float(n.mean()))
    dev = float(n @ n) - float(n.sum()) ** 2 / r
    size = max((point.excess + 0.5 * dev) / dev, 0.1) if dev > 0.0 else 1.0
    n = size * n
    tau = 0.1 * float(n.mean()) * p / r
    point = frame_point(n, point.B, floors, barrier=share * tau, kappa=size * point.kappa)
    return FrameDual(point, Q, tau)


def _line_search(now: FrameDual, V: Any, floors: Array, decrement: float) -> FrameDual | None:
    """Step along ``V`` inside N ≻ 0 until the merit has grown enough."""
    point = now.point
    root = to_device(1.0 / np.sqrt(point.n), V)
    lowest = float(np.asarray(to_host(eigh(root[:, None] * V * root[None, :])[0]))[0])
    length = 1.0 if lowest >= -_INSIDE else -_INSIDE / lowest
    before = now.merit
    for _ in range(25):
        values, turn = eigh(plus_diagonal(length * V, point.n))
        n, B = np.asarray(to_host(values)), turn.T @ point.B
        if n[0] > 0.0:  # of next to singular ones, rounding alone may take it away
            there = frame_point(n, B, floors, barrier=point.barrier, kappa=point.kappa)
            new = replace(now, point=there, Q=now.Q @ turn)
            if new.merit >= before + 1e-4 * length * decrement - 1e-14 * abs(before):
                return new
        length *= 0.5
    return None


def _newton_step(now: FrameDual) -> tuple[Any, float]:
    """The Newton step and its decrement, by conjugate gradients preconditioned by the diagonal."""
    operator = Curvature(now.point, now.tau)
    # the barrier pushes the eigenvalues by τ / n; that is the whole first-order condition
    force = plus_diagonal(now.point.gradient, now.tau / now.point.n)
    V, _, _ = conjugate_gradient(
        operator.apply,
        1.0 * force,
        lambda Z: Z / operator.diagonal,
        rtol=_FORCING,
        max_iter=_INNER,
    )
    return V, inner(force, V)


def least_squares(
    A: Any,
    floors: Array,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    start: Array | None = None,
) -> tuple[Any, FrameDual | None, int]:
    """Outputs, the dual point of (★★), and the number of steps.

    The dual point is None where the outputs attain the bound of the rank. ``start`` are outputs of
    a neighbouring problem.
    """
    r, p = A.shape
    least, goal = welch(p, r), min(tol, 1e-3)
    # 1. Gradients, as long as they promise to reach the bound of the rank.
    U, value, steps = descend_one(
        A,
        on_caps(A, A if start is None else to_device(start, A), floors),
        floors,
        bound=least,
        goal=0.1 * goal,
        max_iter=_FIRST,
        patience=8,
        enough=lambda v: v - least,
    )
    if callback is not None:
        callback(steps, value, least)
    if value - least <= goal * max(1.0, value):
        return U, None, steps

    def allowed(dual: FrameDual) -> float:
        nonlocal U, value
        candidate = on_caps(dual.point.B, dual.point.U, floors)
        reached = squares(candidate)
        if reached < value:
            U, value = dual.Q @ candidate, reached
        if callback is not None:
            callback(steps + dual.n_iter, value, dual.bound)
        unit = max(1.0, value)
        return np.inf if value - dual.bound <= 0.1 * goal * unit else 0.3 * goal * unit

    # 2. Maximise (★★) over N, and lower the outputs to it.
    dual = maximise_bound(A, floors, allowed=allowed, max_iter=max_iter)
    if allowed(dual) < np.inf:
        later = int(np.clip(_GRADIENTS / (r * r * p), 200, 2000))
        U, _, more = descend_one(
            A,
            U,
            floors,
            bound=dual.bound,
            goal=0.5 * goal,
            max_iter=later,
            enough=lambda v: 1e-3 * (v - dual.bound),  # else the gap is the bound's
        )
        steps += more
    return U, dual, steps + dual.n_iter
