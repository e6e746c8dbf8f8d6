"""Descend on the caps for the other criteria: worst pair, absolute sum, weighted squares.

The worst pair and the absolute sum are smoothed, by a high power mean and by ``√(g² + ε²)``, with
the smoothing taken back in stages; the best point is kept by its true value. Correlations between
outputs are formed in blocks of columns and never all at once. Outputs may be stacked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skcoral.core.arrays import Array, Index
from skcoral.core.criteria import Criterion
from skcoral.solvers.singular.caps import descend_on_caps

_BLOCK = 512  # columns at a time
_PATIENCE = 25  # steps after which progress is looked at
_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6)  # relative to the value
_GAIN = 1e-6  # progress in these steps, relative to the value, that counts as none
_ROUGH = 1e-3  # the same relative to the width, for the worst pair
_HIDDEN = 1e-3  # width, relative to the gap, that is too small to matter
_FOLLOWED = {0.1: 12, 3e-3: 4}  # starts that are followed from these widths on, the best ones


def blocks(U: Array, pair_weights: Array | None = None) -> Iterator[tuple[slice, Array, Array]]:
    """Columns, their correlations with all outputs (own one zero), and the pairs' weights."""
    p = U.shape[-1]
    for start in range(0, p, _BLOCK):
        columns = slice(start, min(start + _BLOCK, p))
        G = np.swapaxes(U, -1, -2) @ U[..., columns]
        here = np.arange(columns.start, columns.stop)
        G[..., here, here - columns.start] = 0.0
        omega = np.ones(1) if pair_weights is None else pair_weights[:, columns]
        yield columns, G, omega


def criterion_of(U: Array, criterion: Criterion, pair_weights: Array | None = None) -> float:
    """The criterion on the correlations ``UᵀU``."""
    return float(criteria_of(U, criterion, pair_weights))


def criteria_of(U: Array, criterion: Criterion, pair_weights: Array | None) -> Array:
    """The same of stacked outputs."""
    total, worst = np.zeros(U.shape[:-2]), np.zeros(U.shape[:-2])
    for _, G, omega in blocks(U, pair_weights):
        size = omega * (G * G if criterion == "squared" else np.abs(G))
        if criterion == "worst":
            worst = np.maximum(worst, size.max(axis=(-2, -1), initial=0.0))
        else:
            total += 0.5 * size.sum(axis=(-2, -1))
    return worst if criterion == "worst" else total


def descend_pairs(
    A: Array,
    starts: Array,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    bound: float,
    goal: float,
    max_iter: int,
    widest: float = np.inf,
) -> tuple[Array, float, int]:
    """Lower the criterion from the feasible ``starts`` (k, r, p); the best point is returned.

    The smoothing begins with the width ``widest`` at most. The search ends where ``bound`` is met
    up to ``goal``, relative to ``max(1, value)``.
    """
    best, values, used = starts, criteria_of(starts, criterion, pair_weights), 0
    widths = (1.0,) if criterion == "squared" else (w for w in _WIDTHS if w <= widest)
    for stage in widths:
        least = float(values.min())
        if least - bound <= goal * max(1.0, least) or stage < _HIDDEN * (1.0 - bound / least):
            break
        if stage in _FOLLOWED:
            followed = np.argsort(values, kind="stable")[: _FOLLOWED[stage]]
            best, values = best[followed], values[followed]
        width = stage * max(least, 1e-12)
        gain = max(_GAIN, _ROUGH * stage) if criterion == "worst" else _GAIN

        def enough(value: Array, gain: float = gain) -> Array:
            return gain * np.maximum(np.abs(value), 1e-12)

        def smooth(
            U: Array, _: Index | None = None, width: float = width
        ) -> tuple[Array, Array, Array]:
            return _smoothed(U, criterion, pair_weights, width)

        steepest = np.linalg.norm(smooth(best)[1], axis=1).max(axis=1)
        points, values, count = descend_on_caps(
            A,
            best,
            floors,
            smooth,
            bound=bound,
            goal=goal,
            max_iter=max_iter,
            step=0.1 / np.maximum(steepest, 1e-12),
            patience=_PATIENCE,
            enough=enough,
        )
        best = np.stack(points)
        used += count
    first = int(values.argmin())
    return best[first], float(values[first]), used


def _smoothed(
    U: Array, criterion: Criterion, pair_weights: Array | None, width: float
) -> tuple[Array, Array, Array]:
    """The smoothed criterion, its gradient, and the criterion itself, of stacked outputs too."""
    gradient = np.empty_like(U)
    if criterion == "worst":
        return _soft_worst(U, pair_weights, width, gradient)
    # the absolute sum is measured per pair, so that the width does not grow with their number
    narrow = width / max(0.5 * U.shape[-1] * (U.shape[-1] - 1), 1.0)
    total, true = np.zeros(U.shape[:-2]), np.zeros(U.shape[:-2])
    for columns, G, omega in blocks(U, pair_weights):
        if criterion == "squared":
            total += 0.5 * (omega * G * G).sum(axis=(-2, -1))
            true = total
            gradient[..., columns] = 2.0 * (U @ (omega * G))
        else:
            root = np.sqrt(G * G + narrow * narrow)
            total += 0.5 * (omega * root).sum(axis=(-2, -1))
            true += 0.5 * (omega * np.abs(G)).sum(axis=(-2, -1))
            gradient[..., columns] = U @ (omega * G / root)
    return total, gradient, true


def _soft_worst(
    U: Array, pair_weights: Array | None, width: float, gradient: Array
) -> tuple[Array, Array, Array]:
    """``width · log Σ cosh(ω g / width)`` up to a constant, relative to the largest so far."""
    sharp = 0.1 * width
    top, mass = np.zeros(U.shape[:-2]), np.zeros(U.shape[:-2])
    for columns, G, omega in blocks(U, pair_weights):
        size = omega * np.abs(G)
        higher = np.maximum(top, size.max(axis=(-2, -1)))
        if columns.start:
            fewer = np.exp((top - higher) / sharp)
            mass *= fewer
            gradient[..., : columns.start] *= fewer[..., None, None]
        top = higher
        weight = np.exp((size - top[..., None, None]) / sharp)
        mass += 0.5 * weight.sum(axis=(-2, -1))
        gradient[..., columns] = U @ (weight * omega * np.sign(G))
    return top + sharp * np.log(mass), gradient / mass[..., None, None], top
