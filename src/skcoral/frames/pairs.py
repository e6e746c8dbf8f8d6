"""Descend on the caps for the other criteria: worst pair, absolute sum, weighted squares.

The worst pair and the absolute sum are smoothed, by a high power mean and by ``√(g² + ε²)``, with
the smoothing taken back in stages; the best point is kept by its true value. Correlations between
outputs are formed in blocks of columns and never all at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.descent import spectral_steps
from skcoral.results import Criterion

_BLOCK = 512  # columns at a time
_PATIENCE = 25  # steps after which progress is looked at
_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6)  # relative to the value


def blocks(U: Array, pair_weights: Array | None = None) -> Iterator[tuple[slice, Array, Array]]:
    """Columns, their correlations with all outputs (own one zero), and the pairs' weights."""
    p = U.shape[1]
    for start in range(0, p, _BLOCK):
        columns = slice(start, min(start + _BLOCK, p))
        G = U.T @ U[:, columns]
        here = np.arange(columns.start, columns.stop)
        G[here, here - columns.start] = 0.0
        omega = np.ones(1) if pair_weights is None else pair_weights[:, columns]
        yield columns, G, omega


def criterion_of(U: Array, criterion: Criterion, pair_weights: Array | None = None) -> float:
    """The criterion on the correlations ``UᵀU``."""
    total, worst = 0.0, 0.0
    for _, G, omega in blocks(U, pair_weights):
        size = omega * (G * G if criterion == "squared" else np.abs(G))
        total += 0.5 * float(size.sum())
        worst = max(worst, float(size.max(initial=0.0)))
    return worst if criterion == "worst" else total


def largest_residuals(U: Array) -> tuple[Array, float]:
    """The largest absolute correlation of each output with another one, and the mean of all."""
    p = U.shape[1]
    most, total = np.zeros(p), 0.0
    for columns, G, _ in blocks(U):
        size = np.abs(G)
        most[columns] = size.max(axis=0, initial=0.0)
        total += float(size.sum())
    return most, total / max(p * (p - 1), 1)


def descend_pairs(
    A: Array,
    U: Array,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    bound: float,
    goal: float,
    max_iter: int,
) -> tuple[Array, float, int]:
    """Lower the criterion from the feasible ``U``; the best point met is returned."""
    best, best_value = U, criterion_of(U, criterion, pair_weights)
    used = 0
    for stage in (0.0,) if criterion == "squared" else _WIDTHS:
        if best_value - bound <= goal * max(1.0, best_value):
            break
        width = stage * max(best_value, 1e-12)

        def smooth(U: Array, width: float = width) -> tuple[float, Array]:
            return _smoothed(U, criterion, pair_weights, width)

        steepest = np.linalg.norm(smooth(best)[1], axis=0).max()
        steps = spectral_steps(A, best, floors, smooth, 0.1 / max(float(steepest), 1e-12))
        least = checked = np.inf
        for count, (U, value) in enumerate(steps):
            true = criterion_of(U, criterion, pair_weights)
            if true < best_value:
                best, best_value = U, true
            least = min(least, value)
            if count == max_iter:
                break
            if count % _PATIENCE == 0:
                if checked - least <= 1e-6 * max(abs(value), 1e-12):
                    break
                checked = least
        used += count
    return best, best_value, used


def _smoothed(
    U: Array, criterion: Criterion, pair_weights: Array | None, width: float
) -> tuple[float, Array]:
    """The smoothed criterion and its gradient, in blocks."""
    gradient = np.empty_like(U)
    if criterion == "worst":
        return _soft_worst(U, pair_weights, width, gradient)
    # the absolute sum is measured per pair, so that the width does not grow with their number
    narrow = width / max(0.5 * U.shape[1] * (U.shape[1] - 1), 1.0)
    total = 0.0
    for columns, G, omega in blocks(U, pair_weights):
        if criterion == "squared":
            total += 0.5 * float((omega * G * G).sum())
            gradient[:, columns] = 2.0 * (U @ (omega * G))
        else:
            root = np.sqrt(G * G + narrow * narrow)
            total += 0.5 * float((omega * root).sum())
            gradient[:, columns] = U @ (omega * G / root)
    return total, gradient


def _soft_worst(
    U: Array, pair_weights: Array | None, width: float, gradient: Array
) -> tuple[float, Array]:
    """``width · log Σ cosh(ω g / width)`` up to a constant, without overflow."""
    top = criterion_of(U, "worst", pair_weights)
    sharp = 0.1 * width
    mass = 0.0
    for columns, G, omega in blocks(U, pair_weights):
        weight = np.exp((omega * np.abs(G) - top) / sharp)
        mass += 0.5 * float(weight.sum())
        gradient[:, columns] = U @ (weight * omega * np.sign(G))
    return top + sharp * float(np.log(mass)), gradient / mass
