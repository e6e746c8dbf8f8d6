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

from skcoral.core.arrays import Array, column_dots, diagonal, library, to_device, to_host
from skcoral.core.lowrank import welch
from skcoral.solvers.singular.answer import FrameProof
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import descend
from skcoral.solvers.singular.dual import FrameDual, maximise_bound
from skcoral.solvers.singular.point import frame_point

_TIGHT = 1e-13  # excess over the least residual, relative, of a frame that counts as tight
_NEAR = 1e-9  # the same of one that is still to be tightened
_CLOSEST = 1.0 - 1e-12
_BISECTED = 1e-2  # length of the search's last interval, relative to what stays open


@dataclass(frozen=True)
class FrameThreshold:
    """Both ends, the tight frame that attains the lower one, and the proof of the upper one."""

    lower: float
    upper: float
    U: Any
    proof: FrameProof
    trace: float
    zca: float
    n_iter: int


def frame_threshold(A: Any, *, tol: float = 1e-9, max_iter: int = 100) -> FrameThreshold:
    """Bracket the largest common floor at which the residual has its least value.

    Parameters
    ----------
    A : array of shape (r, p)
        Factor with unit columns.
    tol : float
        Length of the bracket to aim at.
    max_iter : int
        Largest number of Newton steps of each maximisation.

    Examples
    --------
    Three directions in the plane, 120 degrees apart, are a tight frame already.

    >>> import numpy as np
    >>> from skcoral.solvers.singular.threshold import frame_threshold
    >>> angle = np.array([0.0, 2.0, 4.0]) * np.pi / 3
    >>> found = frame_threshold(np.array([np.cos(angle), np.sin(angle)]))
    >>> round(found.lower, 9), round(found.upper, 9)
    (1.0, 1.0)
    """
    r, p = A.shape
    Q, size, _ = library(A).linalg.svd(A, full_matrices=False)
    size = np.asarray(to_host(size))
    trace = min(float(size.sum() / np.sqrt(p * r)), 1.0)
    even = np.divide(np.sqrt(p / r), size, out=np.zeros_like(size), where=size > 0)
    zca = (Q * to_device(even[None, :], Q)) @ (Q.T @ A)
    upper, proof, dual, steps = _from_above(A, trace, Q, size, max_iter)
    candidates = [zca] if dual is None else [zca, dual.U]
    lower, U, more = _from_below(A, candidates, upper, tol)
    # what rounding leaves between a frame that attains the bound and the bound
    upper = max(upper, lower)
    similarity = float(column_dots(A, on_caps(A, zca, np.zeros(p))).min())
    return FrameThreshold(lower, upper, U, proof, trace, similarity, steps + more)


def _from_above(
    A: Any, trace: float, Q: Any, size: Array, max_iter: int
) -> tuple[float, FrameProof, FrameDual | None, int]:
    """Lower the upper end: where q(N) exceeds the bound of the rank, that N says for which floors.

    q is the bound of the rank plus ``Σ c_j(N; γ) - (p/r) tr N`` up to a term of second order, and
    the root in γ of that expression for the N at hand is the next floor to try.
    """
    r, p = A.shape
    n = np.maximum(size, 1e-12 * float(size.max()))
    proof = FrameProof((Q * to_device(n[None, :], Q)) @ Q.T, np.full(p, 1.0 / p), np.zeros(p))
    scale = np.sqrt(r / p) / p  # the best multiple of the root for equal weights
    proof = FrameProof(scale * proof.N, proof.lam, proof.kappa)
    upper = min(trace, 1.0)
    dual: FrameDual | None = None
    steps = 0
    for _ in range(20):
        if upper >= _CLOSEST and dual is not None:
            break
        floor = min(upper, _CLOSEST)
        found = maximise_bound(
            A,
            np.full(p, floor),
            goal=lambda dual: 1e-3 * max(dual.excess, 1e-30),
            max_iter=max_iter,
        )
        steps += found.n_iter
        dual = found
        if not found.point.excess > 0.0:
            break
        better, candidate = _root(found, floor)
        if better >= upper - 1e-12:
            break
        done = upper - better < 1e-9
        upper, proof = better, candidate
        if done:
            break
    return upper, proof, dual, steps


def _root(dual: FrameDual, floor: float) -> tuple[float, FrameProof]:
    """The floor at which N proves nothing any more, as an upper bound on every tight frame."""
    r, p = dual.point.B.shape
    n, B = dual.point.n, dual.point.B
    total = p / r * float(n.sum())
    kappa: Array | None = dual.point.kappa
    best, proof = 1.0, None
    for _ in range(30):
        point = frame_point(n, B, np.full(p, floor), kappa=kappa)
        weight = float(point.lam.sum())
        bound = 0.5 * (total + float((point.kappa + point.lam**2 * point.phi).sum())) / weight
        if bound < best:
            best = bound
            N = (dual.Q * to_device(n[None, :] / weight, dual.Q)) @ dual.Q.T
            proof = FrameProof(0.5 * (N + N.T), point.lam / weight, point.kappa / weight)
        excess = float(n @ diagonal(point.F)) - total
        move = excess / (2.0 * weight)
        if abs(move) <= 1e-15 or not np.isfinite(move):
            break
        floor = float(np.clip(floor - move, 1e-6, _CLOSEST))
        kappa = point.kappa
    if proof is None:
        return 1.0, FrameProof(dual.N, np.full(p, 1.0 / p), np.zeros(p))
    return best, proof


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
            U, excess, steps = _descended(A, on_caps(A, start, floors), floors)
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


def _descended(A: Any, U: Any, floors: Array) -> tuple[Any, float, int]:
    r, p = A.shape
    least = welch(p, r)
    U, value, steps = descend(
        A, U, floors, bound=least, goal=0.1 * _NEAR, max_iter=1000, only_bound=True
    )
    return U, (value - least) / max(1.0, least), steps


def _tightened(A: Any, U: Any) -> tuple[Any, float, int]:
    """The nearest tight frame, as far as rounding lets one say so."""
    r, p = A.shape
    least, free = welch(p, r), np.zeros(p)
    U = on_caps(A, U, free)
    count = 0
    rng = np.random.default_rng(0)
    for _ in range(5):
        U, value, steps = descend(
            A, U, free, bound=least, goal=0.1 * _TIGHT, max_iter=500, only_bound=True
        )
        count += steps
        excess = (value - least) / max(1.0, least)
        if excess <= _TIGHT:
            break
        # the sum of squares has no local minima without floors, only saddles: step off
        U = on_caps(A, U + to_device(1e-3 * rng.normal(size=(r, p)), A), free)
    return U, excess, count
