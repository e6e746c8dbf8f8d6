"""Descend on the caps by spectral projected gradients, from one start or from several at once.

The caps are not convex, but the dual says how far down there is to go. Steps have the length of
Barzilai and Borwein, and a step is taken when it improves on the worst of the last few values
(Birgin, Martínez and Raydan, 2000). At a few variables a step costs nearly the same for one start
and for twelve, so that outputs are stacked along a first axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, column_dots, inner, to_device
from skcoral.solvers.singular.caps import on_caps

Smooth = Callable[[Any], tuple[Array, Any, Array]]

_MEMORY = 8  # values that a step is compared with
_SHORTER = 0.3  # factor of a step that was not taken
_SHORTEST, _LONGEST = 1e-16, 1e8  # relative to the first step
_STALL = 1e-9  # progress, relative to the value, that counts as none


def squares(U: Any) -> float:
    """Sum of the squared correlations of the columns over the pairs, ``½(‖UUᵀ‖² - p)``."""
    F = U @ U.T
    return 0.5 * (inner(F, F) - float(U.shape[1]))


def squares_and_gradients(U: Any) -> tuple[Array, Any, Array]:
    """The sums of squares of stacked outputs, their gradients, and the sums once more.

    The gradients are along the sphere: the radial part would limit the length of the steps.
    """
    F = U @ (U.mT if hasattr(U, "mT") else np.swapaxes(U, -1, -2))
    gradient = (2.0 * F) @ U
    gradient -= to_device(column_dots(U, gradient)[:, None, :], U) * U
    values = 0.5 * (_inner(F, F) - U.shape[-1])
    return values, gradient, values


def descend(
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
    """Lower a criterion from each of the feasible ``starts`` (k, r, p); in NumPy unless k = 1.

    ``floors`` are those of all starts, or a row for each.
    ``smooth`` returns the values and gradients of stacked outputs, and what the best points are
    chosen by. All starts end when one of them is within ``goal`` of the ``bound``, relative to
    ``max(1, value)``, or after ``max_iter`` gradients. One of them ends where it gains less in
    ``patience`` steps than ``enough`` says of its value. Returns the best point of each start,
    its value, and the number of gradients.
    """
    if enough is None:

        def enough(v: Array) -> Array:
            return np.minimum(1e-3 * (v - bound), _STALL * np.maximum(1.0, np.abs(v)))

    if step is None:  # relative to ν = p/r, the gradient 2FU changes by about one per unit of U
        step = np.full(starts.shape[0], 0.25 * A.shape[0] / A.shape[1])
    value, gradient, measured = smooth(starts)
    best, best_value = [starts[k, ...] for k in range(starts.shape[0])], measured.copy()
    least, checked, first = value.copy(), value.copy(), step
    recent = np.repeat(value[:, None], _MEMORY, axis=1)
    floors = np.broadcast_to(floors, (starts.shape[0], starts.shape[-1]))
    live, U, used = np.arange(starts.shape[0]), starts, 0
    for count in range(max_iter):
        if best_value.min() - bound <= goal * max(1.0, abs(float(best_value.min()))):
            break
        new = on_caps(A, U - to_device(step[:, None, None], U) * gradient, floors)
        change = new - U
        value, new_gradient, measured = smooth(new)
        used += len(live)
        taken = value <= recent.max(axis=1) + 1e-4 * np.minimum(_inner(gradient, change), 0.0)
        turned = new_gradient - gradient
        along, across = _inner(change, change), _inner(change, turned)
        square = _inner(turned, turned)
        with np.errstate(divide="ignore", invalid="ignore"):
            spectral = across / square if count % 2 else along / across
        curved = (across > 0.0) & (square > 0.0)
        longer = np.where(curved, spectral, np.minimum(10.0 * step, np.maximum(0.5, first)))
        step = np.where(taken, np.minimum(longer, _LONGEST * first), _SHORTER * step)
        if taken.all():
            U, gradient = new, new_gradient
        elif taken.any():
            U = np.where(taken[:, None, None], new, U)
            gradient = np.where(taken[:, None, None], new_gradient, gradient)
        recent[taken, count % _MEMORY] = value[taken]
        for i in np.flatnonzero(taken & (measured < best_value[live])):
            best[live[i]], best_value[live[i]] = new[int(i), ...], measured[i]
        least[live] = np.where(taken, np.minimum(least[live], value), least[live])
        on = (step > _SHORTEST * first) & ~(taken & (along <= 0.0))
        if count % patience == patience - 1:
            on &= checked[live] - least[live] > enough(least[live])
            checked[live] = least[live]
        if not on.any():
            break
        if not on.all():
            live, U, gradient, recent = live[on], U[on], gradient[on], recent[on]
            step, first, floors = step[on], first[on], floors[on]
    return best, best_value, used


def descend_one(A: Any, U: Any, floors: Array, **limits: Any) -> tuple[Any, float, int]:
    """:func:`descend` from one start (r, p), in any library."""
    best, values, used = descend(A, U[None, ...], floors, **limits)
    return best[0], float(values[0]), used


def _inner(A: Any, B: Any) -> Array:
    """``Σ A_ij B_ij`` of each matrix of a stack, in NumPy."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("kij,kij->k", A, B))
    return np.array([inner(A, B)])
