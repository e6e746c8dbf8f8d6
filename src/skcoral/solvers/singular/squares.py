"""The least sum of squared correlations of p outputs in r < p dimensions, with its dual point."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.lowrank import welch
from skcoral.core.problem import Callback
from skcoral.solvers.singular.caps import descend_on_caps, descend_one, on_caps, squares
from skcoral.solvers.singular.dual import FrameDual, maximise_bound

_FIRST = 60  # gradients that are spent on the rank bound before the dual is asked
_GRADIENTS = 5e9  # r²p of the gradients once the dual has spoken
_STAGES = ((150, None), (1500, 6))  # gradients from all starts, and from so many of the best


def least_squares(
    A: Any,
    floors: Array,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    start: Any = None,
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
        on_caps(A, A if start is None else start, floors),
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
        U, _, more = descend_one(A, U, floors, bound=dual.bound, goal=0.5 * goal, max_iter=later)
        steps += more
    return U, dual, steps + dual.n_iter


def lowest(
    A: Array, starts: Array, floors: Array, *, bound: float, goal: float
) -> tuple[Array, int]:
    """The outputs of least sum of squares that descent from feasible ``starts`` finds."""
    used = 0
    for max_iter, count in _STAGES:
        starts = starts[:count]
        points, values, more = descend_on_caps(
            A, starts, floors, bound=bound, goal=goal, max_iter=max_iter
        )
        starts = np.stack([points[k] for k in np.argsort(values, kind="stable")])
        used += more
    return starts[0], used
