"""Newton's method on the smooth concave dual of the squared criterion.

With λ eliminated, the dual is one concave function of a symmetric matrix,

    q(H) = max_λ [2 ρᵀλ - λᵀ(R∘H⁻¹)λ + τ Σ log λ_j] + τ log det H - tr H - ½ Σ_{i≠j} H_ij² / ω_ij,

whose gradient is ``G + τ H⁻¹ - I - off(H)/ω`` for ``T = D_λ H⁻¹``. The barrier on λ keeps it positive
while it is not known which floors bind; the barrier on H keeps the valley wide in which a nearly
singular ``R`` confines H. With τ = 0 both are dropped and all floors are met with equality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.tradeoff.criteria import off
from skcoral.tradeoff.dual import DualPoint, curvature, dual_point, inverse

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_VANISHED = 1e-7  # a multiplier this much below the largest belongs to a floor that does not bind


@dataclass(frozen=True)
class SmoothDual:
    """The problem: ``R`` with its Cholesky factor, the floors, and ``1/ω`` off the diagonal."""

    R: Array
    root: Array
    floors: Array
    stiffness: Array

    @classmethod
    def build(cls, R: Array, floors: Array, omega: Array) -> SmoothDual:
        """Set up the problem for pair weights ``omega`` (positive off the diagonal)."""
        stiffness = off(1.0 / (omega + np.eye(len(R))))
        return cls(R, sla.cholesky(R, lower=True, check_finite=False), floors, stiffness)

    def restricted(self, members: NDArray[np.intp]) -> SmoothDual:
        """Return the same problem for some of the variables alone."""
        block = np.ix_(members, members)
        R = self.R[block]
        root = sla.cholesky(R, lower=True, check_finite=False)
        return SmoothDual(R, root, self.floors[members], self.stiffness[block])

    def evaluate(self, H: Array, lam: Array, tau: float) -> tuple[float, DualPoint] | None:
        """Value and point at ``H`` with the best λ; None outside the domain."""
        inverted = inverse(H)
        if inverted is None:
            return None
        B, factor = inverted
        best = _best_multipliers(self.R * B, self.floors, tau, lam)
        if best is None:
            return None
        point = dual_point(self.R, self.root, best, H, B)
        value = float(
            2 * self.floors @ best
            - best @ point.fidelity
            - np.trace(H)
            - 0.5 * np.sum(self.stiffness * H**2)
        )
        if tau > 0:
            log_det = 2.0 * float(np.sum(np.log(np.diag(factor))))
            value += tau * (float(np.sum(np.log(best))) + log_det)
        return value, point


@dataclass(frozen=True)
class SmoothSolution:
    """Where Newton's method stopped: the point, the squared decrement, and the steps taken.

    ``converged`` says that the decrement is at the goal or at the level of rounding.
    """

    point: DualPoint
    decrement: float
    converged: bool
    n_iter: int


def maximise(
    problem: SmoothDual,
    H: Array,
    lam: Array,
    *,
    tau: float,
    goal: float,
    max_iter: int,
    report: Callable[[DualPoint], object] | None = None,
) -> SmoothSolution | None:
    """Maximise the dual from ``H`` until the squared decrement falls below ``goal`` times the value.

    Returns None if the start is outside the domain. Stops early when rounding leaves nothing to gain,
    or (without barrier) when a multiplier vanishes, because then its floor does not bind; what has
    been reached is told by the certificate, not by this function.
    """
    start = problem.evaluate(H, lam, tau)
    if start is None:
        return None
    value, point = start
    decrement = np.inf
    steps = 0
    lazy = 0
    while True:
        h, Q = np.linalg.eigh(point.H)
        h = np.maximum(h, _EPS * h[-1])
        # Exact second derivative at G = I, and close to it everywhere near the threshold.
        model = 1.0 / h[:, None] + 1.0 / h[None, :] + 1.0 + tau / np.outer(h, h)
        gradient = point.G + tau * point.B - np.eye(len(h)) - problem.stiffness * point.H
        previous, decrement = decrement, float(np.sum((Q.T @ gradient @ Q) ** 2 / model))
        lazy = lazy + 1 if decrement > 0.25 * previous else 0
        size = float(problem.floors @ np.abs(point.lam))
        worth = max(value, 1e-12 * size) if tau == 0 else tau
        if decrement <= max(goal * worth, _EPS**2 * size) or steps >= max_iter:
            break
        if lazy >= 3 and decrement <= 1e-8 * worth:
            break
        if tau == 0 and point.lam.min() <= _VANISHED * point.lam.max():
            break
        direction = _solve(
            curvature(problem.R, point, tau), problem.stiffness, gradient, Q, model
        )
        moved = _line_search(problem, value, point, gradient, direction, tau)
        if moved is None:
            break
        value, point = moved
        steps += 1
        if report is not None:
            report(point)
    return SmoothSolution(point, decrement, decrement <= max(goal, 1e-8) * worth, steps)


def _solve(
    apply: Callable[[Array], Array], stiffness: Array, gradient: Array, Q: Array, model: Array
) -> Array:
    """Conjugate gradients for the Newton direction, preconditioned in the eigenbasis of H."""

    def precondition(V: Array) -> Array:
        return np.asarray(Q @ ((Q.T @ V @ Q) / model) @ Q.T)

    x = np.zeros_like(gradient)
    r = gradient
    z = precondition(r)
    d = z
    rz = first = float(np.sum(r * z))
    # A loose solve far away, a tight one close by: superlinear overall.
    goal = min(1e-2, np.sqrt(first)) * first
    for _ in range(20 + 4 * len(gradient)):
        image = apply(d) + stiffness * d
        bend = float(np.sum(d * image))
        if bend <= 0.0:
            return x if np.any(x) else z
        step = rz / bend
        x = x + step * d
        r = r - step * image
        z = precondition(r)
        rz, before = float(np.sum(r * z)), rz
        if rz <= goal:
            break
        d = z + (rz / before) * d
    return 0.5 * (x + x.T)


def _line_search(
    problem: SmoothDual,
    value: float,
    point: DualPoint,
    gradient: Array,
    direction: Array,
    tau: float,
) -> tuple[float, DualPoint] | None:
    slope = float(np.sum(gradient * direction))
    noise = 8 * _EPS * float(problem.floors @ np.abs(point.lam) + np.trace(point.H))
    step = 1.0
    while step > 1e-8:
        trial = problem.evaluate(point.H + step * direction, point.lam, tau)
        if trial is not None and trial[0] >= value + 1e-4 * step * slope - noise:
            return trial
        step *= 0.5
    return None


def _best_multipliers(M: Array, floors: Array, tau: float, lam: Array) -> Array | None:
    """Solve ``M λ = ρ + τ/(2λ)`` for λ > 0 (τ > 0), or ``M λ = ρ`` (τ = 0).

    The barrier problem is self-concordant after division by τ/2, so damped Newton steps converge from
    any positive start.
    """
    if tau == 0:
        factor, info = sla.lapack.dpotrf(M, lower=1)
        if info != 0:
            return None
        return np.asarray(sla.lapack.dpotrs(factor, floors, lower=1)[0])
    half = 0.5 * tau
    for _ in range(100):
        gradient = floors + half / lam - M @ lam
        factor, info = sla.lapack.dpotrf(M + np.diag(half / lam**2), lower=1)
        if info != 0:
            return None
        step = sla.lapack.dpotrs(factor, gradient, lower=1)[0]
        size = np.sqrt(max(float(gradient @ step) / half, 0.0))
        relative = step / lam
        longest = 1.0 if size < 0.25 else 1.0 / (1.0 + size)
        if relative.min() < 0:
            longest = max(longest, min(1.0, -0.9 / float(relative.min())) if size > 1 else longest)
        lam = lam * (1.0 + min(longest, 1.0) * relative)
        if not np.all(lam > 0):
            return None
        if np.max(np.abs(relative)) < 1e-13 or size < 1e-12:
            break
    return lam
