"""Spectral projected gradients from several starts at once, for problems of a few variables.

The steps are those of :mod:`~.descent`. What a step costs is mostly the same for one
start and for twelve, so that outputs are stacked along a first axis; a start that gains nothing
more is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skcoral.core.arrays import Array
from skcoral.solvers.singular.caps import on_caps

_MEMORY = 8  # values that a step is compared with
_SHORTER = 0.3  # factor of a step that was not taken
_SHORTEST, _LONGEST = 1e-16, 1e8  # relative to the first step


def descend_all(
    A: Array,
    starts: Array,
    floors: Array,
    smooth: Callable[[Array], tuple[Array, Array, Array]],
    *,
    step: Array,
    max_iter: int,
    patience: int,
    enough: Callable[[Array], Array],
    is_reached: Callable[[float], bool] = lambda _: False,
) -> tuple[Array, Array, int]:
    """Lower a criterion from each of the feasible ``starts``, of shape (k, r, p).

    Parameters
    ----------
    A : ndarray of shape (r, p)
        The sources.
    starts : ndarray of shape (k, r, p)
        Feasible outputs.
    floors : ndarray of shape (p,)
        The least fidelities.
    smooth : callable
        Values and gradients of stacked outputs, and what the best point is chosen by.
    step : ndarray of shape (k,)
        First multiples of the gradients.
    max_iter : int
        Largest number of gradients of each start.
    patience : int
        Steps after which progress is looked at.
    enough : callable
        Progress of starts with these values, in that many steps, that counts as none.
    is_reached : callable
        Whether the least value so far ends the search.

    Returns
    -------
    best, values, n_iter
        The best point of each start.
    """
    value, gradient, measured = smooth(starts)
    best, best_value = starts.copy(), measured.copy()
    least, checked, first = value.copy(), np.full(len(value), np.inf), step
    recent = np.repeat(value[:, None], _MEMORY, axis=1)
    live, U, used = np.arange(len(starts)), starts, 0
    for count in range(max_iter):
        if is_reached(float(best_value.min())):
            break
        new = on_caps(A, U - step[:, None, None] * gradient, floors)
        change = new - U
        value, new_gradient, measured = smooth(new)
        used += len(live)
        slope = np.minimum(np.einsum("kij,kij->k", gradient, change), 0.0)
        taken = value <= recent.max(axis=1) + 1e-4 * slope
        turned = new_gradient - gradient
        along, across = (np.einsum("kij,kij->k", change, b) for b in (change, turned))
        square = np.einsum("kij,kij->k", turned, turned)
        with np.errstate(divide="ignore", invalid="ignore"):
            spectral = across / square if count % 2 else along / across
        curved = (across > 0.0) & (square > 0.0)
        longer = np.where(curved, spectral, np.minimum(10.0 * step, np.maximum(0.5, first)))
        step = np.where(taken, np.minimum(longer, _LONGEST * first), _SHORTER * step)
        U = np.where(taken[:, None, None], new, U)
        gradient = np.where(taken[:, None, None], new_gradient, gradient)
        recent[taken, count % _MEMORY] = value[taken]
        better = taken & (measured < best_value[live])
        best[live[better]], best_value[live[better]] = new[better], measured[better]
        least[live] = np.where(taken, np.minimum(least[live], value), least[live])
        on = (step > _SHORTEST * first) & ~(taken & (along <= 0.0))
        if count % patience == patience - 1:
            on &= checked[live] - least[live] > enough(value)
            checked[live] = least[live]
        if not on.any():
            break
        if not on.all():
            live, U, gradient, recent = live[on], U[on], gradient[on], recent[on]
            step, first = step[on], first[on]
    return best, best_value, used
