"""Descend on the caps from many places at once, by any criterion over the pairs of outputs.

The worst pair and the absolute sum are smoothed, with the smoothing taken back in stages; the best
point is chosen by its true value. Outputs may be stacked.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Index
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import blocks_of
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.solvers.caps import smooth_criterion
from skcoral.solvers.descent import Smooth
from skcoral.solvers.singular.caps import descend_on_caps, squares_and_gradients

_STAGES = [(1.0, 150, 6), (1.0, 1500, 1)]  # gradients for plain squares, and points left after
_PATIENCE = 25  # steps after which progress is looked at
_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6)  # relative to the value
_GAIN = 1e-6  # progress in these steps, relative to the value, that counts as none
_FOLLOWED = 12  # points that are followed to the end; with 4 some gaps of worst pairs stay open
_ROUGH = 1e-3  # the same relative to the width, for the worst pair


def criterion_of(U: Array, criterion: Criterion, pair_weights: Array | None = None) -> float:
    """The criterion on the correlations ``UᵀU``, in blocks of columns where these are many."""
    total = worst = 0.0
    for columns, G in blocks_of(FactoredCorrelation(U)):
        np.fill_diagonal(G[columns], 0.0)
        size = G * G if criterion == "squared" else np.abs(G)
        if pair_weights is not None:
            size *= pair_weights[:, columns]
        total += 0.5 * float(size.sum())
        worst = max(worst, float(size.max()))
    return worst if criterion == "worst" else total


def lowest(
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
) -> tuple[Array, int]:
    """Lower the criterion from the feasible ``starts`` (k, r, p): the best outputs, and the steps.

    The smoothing begins with the width ``widest`` at most. The search ends where ``bound`` is met
    up to ``goal``, relative to ``max(1, value)``.
    """
    plain = criterion == "squared" and pair_weights is None

    def smooth(width: float) -> Smooth:
        if plain:  # no p × p array is formed
            return squares_and_gradients
        return partial(smoothed, criterion=criterion, pair_weights=pair_weights, width=width)

    best, used, everyone = starts, 0, np.arange(len(starts))
    values, n_pairs = smooth(1.0)(starts, everyone)[2], max(len(A.T) * (len(A.T) - 1) // 2, 1)
    # roughly from all places, then from the best of them
    stages = _STAGES
    if not plain:  # half of the points are left behind at each width of the smoothing
        widths = [1.0] if criterion == "squared" else [w for w in _WIDTHS if w <= widest]
        counts = (max(_FOLLOWED, len(starts) >> k) for k in range(1, len(widths) + 1))
        stages = [(w, max_iter, count) for w, count in zip(widths, counts, strict=True)]
    for relative, most, count in stages:
        # of the worst pair relative to its correlation, else to what a pair has on average
        on_average = max(float(values.min()), 1e-12) / n_pairs
        at_width = smooth(relative * (0.3 if criterion == "worst" else on_average))
        how: dict[str, Any] = {}
        if not plain:
            steepest = np.linalg.norm(at_width(best, everyone)[1], axis=1).max(axis=1)
            gain = max(_GAIN, _ROUGH * relative) if criterion == "worst" else _GAIN
            how = {
                "step": 0.1 / np.maximum(steepest, 1e-12),
                "patience": _PATIENCE,
                "enough": partial(np.multiply, gain),
            }
        points, values, steps = descend_on_caps(
            A, best, floors, at_width, bound=bound, goal=goal, max_iter=most, **how
        )
        order = np.argsort(values, kind="stable")[:count]
        best, values = np.stack(points)[order], values[order]
        used += steps
    return best[int(values.argmin())], used


def smoothed(
    U: Array, _: Index | None, criterion: Criterion, pair_weights: Array | None, width: float
) -> tuple[Array, Array, Array]:
    """The smoothed criterion, its gradient, and the criterion itself, of stacked outputs too."""
    p = U.shape[-1]
    G = np.swapaxes(U, -1, -2) @ U
    G[..., np.arange(p), np.arange(p)] = 0.0
    omega = 1.0 if pair_weights is None else pair_weights
    value, slope, true = smooth_criterion(G, criterion, width, omega)
    return value, U @ (2.0 * slope), true
