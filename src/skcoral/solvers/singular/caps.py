"""Outputs in r dimensions: unit vectors ``u_j`` with ``a_jᵀu_j ≥ ρ_j``, and descent among them.

The caps are not convex, but the dual says how far down there is to go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Index, column_dots, inner, to_device
from skcoral.solvers.caps import nearest_on_cap
from skcoral.solvers.descent import Smooth, descend, inners

_STALL = 1e-9  # progress, relative to the value, that counts as none


def on_caps(A: Any, V: Any, floors: Array, *, room: float = 0.0) -> Any:
    """The nearest points of the caps: unit length, and turned to the rim where below the floor.

    ``V`` may be a stack, and so may the floors. A column without any direction stays at its source.
    ``room`` is left above each floor, so that rounding in what is computed from the columns cannot
    miss it.
    """
    target = np.where(floors < 1.0, np.minimum(floors + room, 0.5 * (1.0 + floors)), 1.0)
    along = column_dots(A, V)
    away = V - to_device(along[..., None, :], V) * A
    # twice, because close to the source little is left and its rounding would grow with it
    away = away - to_device(column_dots(A, away)[..., None, :], V) * A
    cosine, factor = nearest_on_cap(along, np.sqrt(column_dots(away, away)), target)
    return to_device(cosine[..., None, :], V) * A + to_device(factor[..., None, :], V) * away


def squares(U: Any) -> float:
    """Sum of the squared correlations of the columns over the pairs, ``½(‖UUᵀ‖² - p)``."""
    F = U @ U.T
    return 0.5 * (inner(F, F) - float(U.shape[1]))


def squares_and_gradients(U: Any, _: Index | None = None) -> tuple[Array, Any, Array]:
    """The sums of squares of stacked outputs, their gradients, and the sums once more.

    The gradients are along the sphere: the radial part would limit the length of the steps.
    """
    F = U @ (U.mT if hasattr(U, "mT") else np.swapaxes(U, -1, -2))
    gradient = (2.0 * F) @ U
    gradient -= to_device(column_dots(U, gradient)[:, None, :], U) * U
    values = 0.5 * (inners(F, F) - U.shape[-1])
    return values, gradient, values


def descend_on_caps(
    A: Any,
    starts: Any,
    floors: Array,
    smooth: Smooth = squares_and_gradients,
    *,
    bound: float,
    goal: float,
    max_iter: int,
    step: Array | None = None,
    patience: int = 50,
    enough: Callable[[Array], Array] | None = None,
) -> tuple[list[Any], Array, int]:
    """:func:`descend` from feasible ``starts`` (k, r, p); ``floors`` may be a row for each."""
    if enough is None:

        def enough(v: Array) -> Array:
            return np.minimum(1e-3 * (v - bound), _STALL * np.maximum(1.0, np.abs(v)))

    if step is None:  # relative to ν = p/r, the gradient 2FU changes by about one per unit of U
        step = np.full(starts.shape[0], 0.25 * A.shape[0] / A.shape[1])
    each = np.broadcast_to(floors, (starts.shape[0], starts.shape[-1]))
    return descend(
        starts,
        smooth,
        lambda V, live: on_caps(A, V, each[live]),
        step=step,
        max_iter=max_iter,
        patience=patience,
        enough=enough,
        bound=bound,
        goal=goal,
    )


def descend_one(A: Any, U: Any, floors: Array, **limits: Any) -> tuple[Any, float, int]:
    """:func:`descend_on_caps` from one start (r, p), in any library."""
    best, values, used = descend_on_caps(A, U[None, ...], floors, **limits)
    return best[0], float(values[0]), used
