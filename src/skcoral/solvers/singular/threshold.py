"""The threshold of a singular matrix: the largest common floor at the least residual of its rank.

Below it the outputs form a unit-norm tight frame, ``UUᵀ = (p/r) I``. From above, for any
``λ ≥ 0`` with sum one, ``N ⪰ 0`` and ``κ ≥ 0``,

    min_j a_jᵀu_j  ≤  ½[(p/r) tr N + Σκ_j + Σ_j λ_j² a_jᵀ(N + κ_j I)⁻¹ a_j]

for every tight frame U. The two ends need not meet: the frames are not a convex set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.frame import threshold_bound
from skcoral.core.arrays import Array, column_dots, diagonal, library, to_device, to_host
from skcoral.core.lowrank import welch
from skcoral.core.solution import Certificate
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import descend_one
from skcoral.solvers.singular.dual import FrameDual, matrix_of, maximise_bound
from skcoral.solvers.singular.point import frame_point

_STEPS = 100  # of Newton's method in each maximisation, which needs some twenty
_TIGHT = 1e-13  # excess over the least residual, relative, of a frame that counts as tight
_NEAR = 1e-9  # the same of one that is still to be tightened
_CLOSEST = 1.0 - 1e-12  # floors of one have infinite multipliers
_BISECTED = 1e-2  # length of the search's last interval, relative to what stays open


@dataclass(frozen=True)
class FrameThreshold:
    """Both ends, the tight frame that attains the lower one, and the proof of the upper one."""

    lower: float
    upper: float
    U: Any
    certificate: Certificate
    trace: float
    zca: float
    n_iter: int


def frame_threshold(A: Any, *, tol: float = 1e-9) -> FrameThreshold:
    """Bracket the largest common floor of least residual, to a length of ``tol`` if possible.

    Examples
    --------
    Three directions in the plane, 120 degrees apart, are a tight frame already.

    >>> import numpy as np
    >>> from skcoral.solvers.singular.threshold import frame_threshold
    >>> angle = np.array([0.0, 2.0, 4.0]) * np.pi / 3
    >>> edge = frame_threshold(np.array([np.cos(angle), np.sin(angle)]))
    >>> round(edge.lower, 9), round(edge.upper, 9)
    (1.0, 1.0)
    """
    r, p = A.shape
    Q, size, _ = library(A).linalg.svd(A, full_matrices=False)
    size = np.asarray(to_host(size))
    even = np.divide(np.sqrt(p / r), size, out=np.zeros_like(size), where=size > 0)
    zca = (Q * to_device(even[None, :], Q)) @ (Q.T @ A)
    # equal weights and the best multiple of the root: the trace bound
    N = matrix_of(np.sqrt(r / p) / p * np.maximum(size, 1e-12 * float(size.max())), Q)
    first = _certificate(A, N, np.full(p, 1.0 / p), np.zeros(p))
    upper, certificate, dual, steps = _from_above(A, *first)
    lower, U, more = _from_below(A, [zca, dual.U], upper, tol)
    return FrameThreshold(
        lower=lower,
        upper=max(upper, lower),  # rounding may lie between a frame that attains the bound and it
        U=U,
        certificate=certificate,
        trace=min(float(size.sum() / np.sqrt(p * r)), 1.0),
        zca=float(column_dots(A, on_caps(A, zca, np.zeros(p))).min()),
        n_iter=steps + more,
    )


def _certificate(A: Any, N: Array, weights: Array, kappa: Array) -> tuple[float, Certificate]:
    """A dual point and the upper end that it proves."""
    host = np.asarray(to_host(A))
    arrays = {"factor": host, "N": N, "weights": weights, "kappa": kappa}
    certificate = Certificate("frame_threshold", arrays, {"rank": len(host)})
    upper = float(threshold_bound(certificate, host, Floats(parts=2)).upper)
    return min(upper, 1.0), certificate


def _from_above(
    A: Any, upper: float, certificate: Certificate
) -> tuple[float, Certificate, FrameDual, int]:
    """Lower the upper end: where q(N) exceeds the bound of the rank, that N says for which floors.

    q is the bound of the rank plus ``Σ c_j(N; γ) - (p/r) tr N`` up to a term of second order, and
    the root in γ of that expression for the N at hand is the next floor to try.
    """
    steps = 0
    for _ in range(20):
        floor = min(upper, _CLOSEST)
        dual = maximise_bound(
            A,
            np.full(A.shape[1], floor),
            allowed=lambda dual: 1e-3 * max(dual.point.excess, 1e-30),
            max_iter=_STEPS,
        )
        steps += dual.n_iter
        if not dual.point.excess > 0.0:
            break
        better, candidate = _certificate(A, *_root(dual, floor))
        if better >= upper - 1e-12:
            break
        done, upper, certificate = upper - better < 1e-9, better, candidate
        if done:
            break
    return upper, certificate, dual, steps


def _root(dual: FrameDual, floor: float) -> tuple[Array, Array, Array]:
    """N, weights and κ at the floor at which this N proves nothing any more."""
    (r, p), n, kappa = dual.point.B.shape, dual.point.n, dual.point.kappa
    for _ in range(30):
        point = frame_point(n, dual.point.B, np.full(p, floor), kappa=kappa)
        weight, kappa = float(point.lam.sum()), point.kappa
        move = (float(n @ diagonal(point.F)) - p / r * float(n.sum())) / (2.0 * weight)
        if abs(move) <= 1e-15 or not np.isfinite(move):
            break
        floor = float(np.clip(floor - move, 1e-6, _CLOSEST))
    return matrix_of(n / weight, dual.Q), point.lam / weight, kappa / weight


def _from_below(A: Any, candidates: list[Any], upper: float, tol: float) -> tuple[float, Any, int]:
    """Raise the lower end: tight frames within ever higher floors, by bisection."""
    p = A.shape[1]
    best, frame, count = -1.0, None, 0
    for start in [A, *candidates]:
        U, excess, steps = _tightened(A, start)
        count += steps
        weakest = float(column_dots(A, U).min())
        if excess <= _TIGHT and weakest > best:
            best, frame = weakest, U
    low, high = max(best, 0.0), upper
    trial = upper
    for _ in range(16):
        floors = np.full(p, min(trial, _CLOSEST))
        reached = False
        for start in (*candidates, A) if frame is None else (frame, *candidates[1:]):
            U, excess, steps = _descended(A, on_caps(A, start, floors), floors, _NEAR, 1000)
            count += steps
            if excess <= _NEAR:
                U, excess, steps = _tightened(A, U)
                count += steps
                weakest = float(column_dots(A, U).min())
                if excess <= _TIGHT and weakest > best:
                    reached = weakest > 0.5 * (trial + low)
                    best, frame = weakest, U
                    break
        low = max(low, best)
        if not reached:
            high = trial
        if high - low <= max(tol, _BISECTED * (upper - low)):
            break
        trial = 0.5 * (low + high)
    if frame is None:
        raise AssertionError("a unit-norm tight frame exists for every r ≤ p")
    return best, frame, count


def _descended(A: Any, U: Any, floors: Array, goal: float, max_iter: int) -> tuple[Any, float, int]:
    """Outputs closer to a tight frame, by how much they miss it, and the number of steps."""
    least = welch(A.shape[1], A.shape[0])
    U, value, steps = descend_one(
        A,
        U,
        floors,
        bound=least,
        goal=0.1 * goal,
        max_iter=max_iter,
        enough=lambda v: v - least,
    )
    return U, (value - least) / max(1.0, least), steps


def _tightened(A: Any, U: Any) -> tuple[Any, float, int]:
    """The nearest tight frame, as far as rounding lets one say so."""
    free, rng, count = np.zeros(A.shape[1]), np.random.default_rng(0), 0
    U = on_caps(A, U, free)
    for _ in range(5):
        U, excess, steps = _descended(A, U, free, _TIGHT, 500)
        count += steps
        if excess <= _TIGHT:
            break
        # the sum of squares has no local minima without floors, only saddles: step off
        U = on_caps(A, U + to_device(1e-3 * rng.normal(size=A.shape), A), free)
    return U, excess, count
