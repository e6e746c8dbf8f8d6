"""Newton's method on the smooth concave dual of the squared criterion.

With λ eliminated, the dual is one concave function of a symmetric matrix,

    q(H) = max_λ [2 ρᵀλ - λᵀ(R∘H⁻¹)λ + τ Σ log λ_j] + τ log det H - tr H - ½ Σ_{i≠j} H_ij² / ω_ij,

whose gradient is ``G + τ H⁻¹ - I - off(H)/ω`` for ``T = D_λ H⁻¹``. The barrier on λ keeps it
positive while it is not known which floors bind; the barrier on H keeps the valley wide in which a
nearly singular ``R`` confines H. With τ = 0 both are dropped and all floors are met with equality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral._arrays import (
    beside,
    cholesky_or_none,
    diagonal,
    eigh,
    inner,
    plus_diagonal,
    solve_factored,
    submatrix,
    to_host,
)
from skcoral.tradeoff.criteria import off
from skcoral.tradeoff.dual import DualPoint, curvature, dual_point, inverse

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_VANISHED = 1e-7  # a multiplier this much below the largest belongs to a floor that does not bind


@dataclass(frozen=True)
class SmoothDual:
    """The problem: ``R`` with its Cholesky factor, the floors, and ``1/ω`` off the diagonal."""

    R: Any
    root: Any
    floors: Array
    stiffness: Any
    identity: Any

    @classmethod
    def build(cls, R: Any, floors: Array, omega: Array) -> SmoothDual:
        """Set up the problem for pair weights ``omega`` (positive off the diagonal)."""
        identity = np.eye(len(omega))
        stiffness = beside(off(1.0 / (omega + identity)), R)
        return cls(R, _root(R), floors, stiffness, beside(identity, R))

    def restricted(self, members: NDArray[np.intp]) -> SmoothDual:
        """Return the same problem for some of the variables alone."""
        R, stiffness = (submatrix(A, members, members) for A in (self.R, self.stiffness))
        identity = beside(np.eye(len(members)), R)
        return SmoothDual(R, _root(R), self.floors[members], stiffness, identity)

    def evaluate(self, H: Any, lam: Array, tau: float) -> tuple[float, DualPoint] | None:
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
            - diagonal(H).sum()
            - 0.5 * inner(self.stiffness * H, H)
        )
        if tau > 0:
            log_det = 2.0 * float(np.sum(np.log(diagonal(factor))))
            value += tau * (float(np.sum(np.log(best))) + log_det)
        return value, point


def _root(R: Any) -> Any:
    factor = cholesky_or_none(R)
    if factor is None:
        raise sla.LinAlgError("R is not positive definite to rounding")
    return factor


@dataclass(frozen=True)
class SmoothSolution:
    """Where Newton's method stopped, and whether it was at its goal or at the level of rounding."""

    point: DualPoint
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
    """Maximise the dual from ``H`` until the expected gain falls below ``goal`` times the value.

    ``H`` and the solution are NumPy's; the work is done where the matrix of the problem lies.
    Returns None if the start is outside the domain. Stops early when rounding leaves nothing to
    gain, or (without barrier) when a multiplier vanishes, because then its floor does not bind;
    what has been reached is told by the certificate, not by this function.
    """
    start = problem.evaluate(beside(H, problem.R), lam, tau)
    if start is None:
        return None
    value, point = start
    gain = np.inf
    lazy = 0
    for steps in range(max_iter + 1):
        size = float(problem.floors @ np.abs(point.lam))
        worth = max(value, 1e-12 * size) if tau == 0 else tau
        spectrum, Q = eigh(point.H)
        h = np.asarray(to_host(spectrum))
        h = beside(np.maximum(h, _EPS * h[-1]), problem.R)
        # Exact second derivative at G = I, and close to it everywhere near the threshold.
        model = 1.0 / h[:, None] + 1.0 / h[None, :] + 1.0 + tau / (h[:, None] * h[None, :])
        gradient = point.G + tau * point.B - problem.identity - problem.stiffness * point.H
        try:
            apply = curvature(problem.R, point, tau)
        except sla.LinAlgError:
            break
        direction, left = _solve(apply, problem.stiffness, gradient, Q, model, worth, goal)
        previous, gain = gain, inner(gradient, direction)
        lazy = lazy + 1 if gain > 0.25 * previous else 0
        if gain <= max(goal * worth, _EPS**2 * size) or (lazy >= 3 and gain <= 1e-8 * worth):
            return SmoothSolution(point.on_host(), True, steps)
        vanished = tau == 0 and point.lam.min() <= _VANISHED * point.lam.max()
        if vanished or steps == max_iter:
            break
        moved = _line_search(problem, value, point, gain, direction, tau)
        if moved is None:
            break
        value, point, length = moved
        if report is not None:
            report(point.on_host())
        # Newton's method squares a small error; what the linear solve left over is what remains.
        small = gain <= 0.1 * np.sqrt(goal) * worth
        if length == 1.0 and small and left * gain <= goal * worth:
            return SmoothSolution(point.on_host(), True, steps + 1)
    return SmoothSolution(point.on_host(), gain <= 1e-8 * worth, steps)


def _solve(
    apply: Callable[[Any], Any],
    stiffness: Any,
    gradient: Any,
    Q: Any,
    model: Any,
    worth: float,
    goal: float,
) -> tuple[Any, float]:
    """Conjugate gradients for the Newton direction, preconditioned in the eigenbasis of H.

    Returns the direction and about what share of its gain is still missing.
    """
    Qt = np.ascontiguousarray(Q.T) if isinstance(Q, np.ndarray) else Q.T
    inverse_model = 1.0 / model

    def precondition(V: Any) -> Any:
        return Q @ ((Qt @ V @ Q) * inverse_model) @ Qt

    x = 0.0 * gradient
    r = gradient
    z = precondition(r)
    d = z
    rz = inner(r, z)
    total = 0.0
    left = 1.0
    for _ in range(20 + 4 * gradient.shape[0]):
        image = apply(d) + stiffness * d
        bend = inner(d, image)
        if not bend > 0.0:
            return (x if total > 0 else z), 1.0
        step = rz / bend
        x = x + step * d
        r = r - step * image
        # Each step adds this much to the gain; the next ones add less and less.
        added = step * rz
        total += added
        left = added / total if total > added else left
        # A loose solve far away, a tight one close by (superlinear overall), none past the goal.
        if left <= min(1e-2, np.sqrt(total / worth)) or added <= 0.03 * goal * worth:
            break
        z = precondition(r)
        rz, before = inner(r, z), rz
        if rz <= 1e-28 * total:
            left = 0.0
            break
        d = z + (rz / before) * d
    return 0.5 * (x + x.T), left


def _line_search(
    problem: SmoothDual,
    value: float,
    point: DualPoint,
    slope: float,
    direction: Any,
    tau: float,
) -> tuple[float, DualPoint, float] | None:
    noise = 8 * _EPS * float(problem.floors @ np.abs(point.lam) + diagonal(point.H).sum())
    step = 1.0
    while step > 1e-8:
        trial = problem.evaluate(point.H + step * direction, point.lam, tau)
        if trial is not None and trial[0] >= value + 1e-4 * step * slope - noise:
            return *trial, step
        step *= 0.5
    return None


def _best_multipliers(M: Any, floors: Array, tau: float, lam: Array) -> Array | None:
    """Solve ``M λ = ρ + τ/(2λ)`` for λ > 0 (τ > 0), or ``M λ = ρ`` (τ = 0).

    The barrier problem is self-concordant after division by τ/2, so damped Newton steps converge
    from any positive start.
    """
    if tau == 0:
        factor = cholesky_or_none(M)
        return None if factor is None else solve_factored(factor, floors)
    half = 0.5 * tau
    for _ in range(100):
        gradient = floors + half / lam - np.asarray(to_host(M @ beside(lam, M)))
        factor = cholesky_or_none(plus_diagonal(1.0 * M, half / lam**2))
        if factor is None:
            return None
        step = solve_factored(factor, gradient)
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
