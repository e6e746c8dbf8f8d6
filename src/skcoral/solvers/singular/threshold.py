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
from skcoral.core.arrays import Array, library, to_host
from skcoral.core.lowrank import welch
from skcoral.core.solution import Certificate
from skcoral.solvers.singular.caps import descend_on_caps, on_caps, squares_and_gradients
from skcoral.solvers.singular.dual import FrameDual, matrix_of, maximise_bound

_STEPS = 100  # of Newton's method in each maximisation, which needs some forty
_LAST = 1e-9  # fall of the upper end after which the next, about its square, is not worth it
_TIGHT = 1e-13  # excess over the least residual, relative, of a frame that counts as tight
_CLOSEST = 1.0 - 1e-12  # floors of one have infinite multipliers
_STARTS = 24  # around the minimisers of the dual; twice as many find little more
_EFFORT = 3e5  # r²p of all of these together
_OFF = 1e-3  # size of a step off saddles: equal outputs have no slope along which they would part
_AROUND = (0.1, 0.5)  # sizes of the steps to the further starts; larger ones find less
_TRIALS, _GRADIENTS = 16, 100  # floors that are tried, and gradients at each
_RIM = 1e-9  # above the floor, where an output still counts as at the rim


@dataclass(frozen=True)
class FrameThreshold:
    """Both ends, the tight frame that attains the lower one, and the proof of the upper one."""

    lower: float
    upper: float
    U: Array
    certificate: Certificate
    n_iter: int


def frame_threshold(A: Any) -> FrameThreshold:
    """Bracket the largest common floor of least residual.

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
    # equal weights and the best multiple of the root: the trace bound
    N = matrix_of(np.sqrt(r / p) / p * size, Q)
    first = _certificate(A, N, np.full(p, 1.0 / p), np.zeros(p))
    upper, certificate, dual, steps = _from_above(A, *first)
    lower, U, more = _from_below(np.asarray(to_host(A)), np.asarray(to_host(dual.U)), upper)
    return FrameThreshold(
        lower=lower,
        upper=max(upper, lower),  # rounding may lie between a frame that attains the bound and it
        U=U,
        certificate=certificate,
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
    """Lower the upper end by Newton's method: maximise (★★) at a floor that is not attained.

    q is the bound of the rank plus ``Σ c_j(N; γ) - (p/r) tr N`` up to a term of second order. Its
    maximiser, divided by the sum of its multipliers, proves an upper end: the next floor to try,
    where the tangent of that expression in γ is zero.
    """
    steps, p = 0, A.shape[1]
    for _ in range(20):
        dual = maximise_bound(
            A,
            np.full(p, min(upper, _CLOSEST)),
            allowed=lambda dual: 1e-3 * max(dual.point.excess, 1e-30),
            max_iter=_STEPS,
        )
        steps += dual.n_iter
        point, unit = dual.point, float(dual.point.lam.sum())
        N = matrix_of(point.n / unit, dual.Q)
        better, candidate = _certificate(A, N, point.lam / unit, point.kappa / unit)
        gain = upper - better
        if gain > 0.0:
            upper, certificate = better, candidate
        if gain < _LAST:
            break
    return upper, certificate, dual, steps


def _from_below(A: Array, near: Array, upper: float) -> tuple[float, Array, int]:
    """Raise the lower end: lower floors from ``upper`` until there is a tight frame within them.

    The least excess within common floors ρ is about quadratic in ρ down to its root. Its slope is
    the sum of the multipliers, so that Newton's method comes down to the root, halving the way at
    least. The frames are not a convex set, and each start has its root: the sources, the outputs
    ``near`` of the dual, and places around these.
    """
    (r, p), rng, count = A.shape, np.random.default_rng(0), 0
    further = int(min(_STARTS, _EFFORT / (r * r * p)))
    noise = rng.normal(size=(2 + further, r, p)) / np.sqrt(r)
    sizes = np.concatenate([[_OFF, _OFF], np.resize(_AROUND, further)])
    U = np.stack([A, near] + further * [near]) + sizes[:, None, None] * noise
    levels = np.full(len(U), min(upper, _CLOSEST))
    for _ in range(_TRIALS):
        floors = np.repeat(levels[:, None], p, axis=1)
        U, excess, steps = _descended(A, U, floors, _GRADIENTS)
        count += steps
        tight = excess <= _TIGHT
        # levels only fall: nothing is gained from below the level of a tight frame
        on = levels >= levels[tight].max(initial=0.0)
        U, levels, excess, tight = U[on], levels[on], excess[on], tight[on]
        if tight.all():
            break
        _, gradient, _ = squares_and_gradients(U)
        pull = np.maximum(np.einsum("ij,kij->kj", A, gradient), 0.0)
        rim = np.einsum("ij,kij->kj", A, U) <= levels[:, None] + _RIM
        slopes = (pull * rim).sum(axis=1) / (1.0 - levels**2)
        falls = excess * max(1.0, welch(p, r)) / np.maximum(slopes, 1e-300)
        levels = np.where(tight, levels, np.maximum(levels - falls, 0.0))
    # Where the relaxation is tight, the outputs of its dual are a tight frame to the last digits.
    U = np.concatenate([U, near[None]])
    U, excess, steps = _descended(A, U, np.zeros(p), 5 * _GRADIENTS)
    weakest = np.where(excess <= _TIGHT, np.einsum("ij,kij->kj", A, U).min(axis=1), -1.0)
    best = int(np.argmax(weakest))
    if not excess[best] <= _TIGHT:
        raise AssertionError("a unit-norm tight frame exists for every r ≤ p")
    return float(weakest[best]), U[best], count + steps


def _descended(A: Array, U: Array, floors: Array, max_iter: int) -> tuple[Array, Array, int]:
    """Outputs closer to tight frames, by how much they miss them, and the number of steps."""
    least = welch(A.shape[1], A.shape[0])
    points, values, steps = descend_on_caps(
        A,
        on_caps(A, U, floors),
        floors,
        bound=least,
        goal=-np.inf,
        max_iter=max_iter,
        patience=20,
        enough=lambda v: 0.05 * (v - least),
    )
    return np.stack(points), (values - least) / max(1.0, least), steps
