"""Descend from many starts at once by spectral projected gradients.

Steps have the length of Barzilai and Borwein, and a step is taken when it improves on the worst of
the last few values (Birgin, Martínez and Raydan, 2000). At a few variables a step costs nearly the
same for one start and for a hundred, so that points are stacked along a first axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Index, inner, to_device

Smooth = Callable[[Any, Index], tuple[Array, Any, Array]]

_MEMORY = 8  # values that a step is compared with
_SHORTER = 0.3  # factor of a step that was not taken
_SHORTEST, _LONGEST = 1e-16, 1e8  # relative to the first step


def descend(
    starts: Any,
    smooth: Smooth,
    project: Callable[[Any, Index], Any],
    *,
    step: Array,
    max_iter: int,
    patience: int,
    enough: Callable[[Array], Array],
    bound: float = 0.0,
    goal: float = -np.inf,
) -> tuple[list[Any], Array, int]:
    """Lower a criterion from each of the feasible ``starts``, a stack; in NumPy unless it is one.

    ``smooth`` returns the values and gradients of stacked points, and what the best points are
    chosen by; ``project`` makes points feasible; both are told which of the starts are left.
    ``step`` is the first one of each start. All end when one of them is within ``goal`` of the
    ``bound``, relative to ``max(1, value)``, or after ``max_iter`` gradients. One of them ends
    where it gains less in ``patience`` steps than ``enough`` says of its value. Returns the best
    point of each start, its value, and the number of gradients.
    """
    value, gradient, measured = smooth(starts, np.arange(len(step)))
    best, best_value = [starts[k, ...] for k in range(len(step))], measured.copy()
    least, checked, first = value.copy(), value.copy(), step
    recent = np.repeat(value[:, None], _MEMORY, axis=1)
    live, U, used = np.arange(len(step)), starts, 0
    for count in range(max_iter):
        if best_value.min() - bound <= goal * max(1.0, abs(float(best_value.min()))):
            break
        new = project(U - to_device(step[:, None, None], U) * gradient, live)
        change = new - U
        value, new_gradient, measured = smooth(new, live)
        used += len(live)
        taken = value <= recent.max(axis=1) + 1e-4 * np.minimum(inners(gradient, change), 0.0)
        turned = new_gradient - gradient
        # The two lengths of Barzilai and Borwein, in turn: sᵀy / yᵀy and sᵀs / sᵀy.
        along, across = inners(change, change), inners(change, turned)
        square = inners(turned, turned)
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
        # The best is kept by what points are chosen by, which the smooth criterion only approaches.
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
            step, first = step[on], first[on]
    return best, best_value, used


def inners(A: Any, B: Any) -> Array:
    """``Σ A_ij B_ij`` of each matrix of a stack, in NumPy."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("kij,kij->k", A, B))
    return np.array([inner(A, B)])
