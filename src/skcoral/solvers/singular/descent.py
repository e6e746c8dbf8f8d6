"""Descend on the caps by a spectral projected gradient, for the sum of squares and in general.

The caps are not convex, but the dual says how far down there is to go. Steps have the length of
Barzilai and Borwein, and a step is taken when it improves on the worst of the last few values
(Birgin, Martínez and Raydan, 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, column_dots, inner, to_device
from skcoral.solvers.singular.caps import on_caps

_MEMORY = 8  # values that a step is compared with


def squares(U: Any) -> float:
    """Sum of the squared correlations of the columns over the pairs, ``½(‖UUᵀ‖² - p)``."""
    F = U @ U.T
    return 0.5 * (inner(F, F) - float(U.shape[1]))


def _squares_and_gradient(U: Any) -> tuple[float, Any]:
    """The gradient along the sphere: its radial part would limit the length of the steps."""
    F = U @ U.T
    gradient = (2.0 * F) @ U
    gradient -= to_device(column_dots(U, gradient)[None, :], U) * U
    return 0.5 * (inner(F, F) - float(U.shape[1])), gradient


def squares_and_gradients(U: Array) -> tuple[Array, Array, Array]:
    """The same of stacked outputs, in NumPy, with the sums of squares once more."""
    F = U @ np.swapaxes(U, -1, -2)
    gradient = (2.0 * F) @ U
    gradient -= column_dots(U, gradient)[..., None, :] * U
    values = 0.5 * (np.einsum("kij,kij->k", F, F) - U.shape[-1])
    return values, gradient, values


def spectral_steps(
    A: Any, U: Any, floors: Array, smooth: Callable[[Any], tuple[float, Any]], step: float
) -> Iterator[tuple[Any, float]]:
    """The points of a descent with their values, from the feasible ``U`` until none is better.

    ``smooth`` returns the value and the gradient; ``step`` is the first multiple of the latter.
    """
    value, gradient = smooth(U)
    recent = [value]
    count = 0
    while True:
        yield U, value
        for _ in range(30):
            new = on_caps(A, U - step * gradient, floors)
            change = new - U
            value, new_gradient = smooth(new)
            if value <= max(recent) + 1e-4 * min(inner(gradient, change), 0.0):
                break
            step *= 0.3
        else:
            return
        turned = new_gradient - gradient
        across, along = inner(change, turned), inner(change, change)
        if not along > 0.0:
            return
        square = inner(turned, turned)
        if across <= 0.0 or square <= 0.0:
            step = min(10.0 * step, 0.5)
        else:
            step = across / square if count % 2 else along / across
        U, gradient = new, new_gradient
        recent = [*recent[1 - _MEMORY :], value]
        count += 1


def descend(
    A: Any,
    U: Any,
    floors: Array,
    *,
    bound: float,
    goal: float,
    max_iter: int,
    only_bound: bool = False,
    patience: int = 50,
    stall: float = 1e-9,
) -> tuple[Any, float, int]:
    """Lower the sum of squares from ``U``, until ``bound`` is met or nothing more is gained.

    Parameters
    ----------
    A, U : array of shape (r, p)
        The sources, and a feasible start.
    floors : ndarray of shape (p,)
        The least fidelities.
    bound : float
        What no feasible point can be below.
    goal : float
        Gap at which to stop, relative to ``max(1, bound)``.
    max_iter : int
        Largest number of gradients.
    only_bound : bool
        Give up where the distance to the bound no longer halves in ``patience`` steps.
    patience : int
        Steps after which progress is looked at.
    stall : float
        Progress in that many steps, relative to the value, that counts as none.

    Returns
    -------
    U, objective, n_iter
    """
    best, best_value, checked, count = U, float("inf"), float("inf"), 0
    enough = goal * max(1.0, abs(bound))
    # relative to ν = p/r, the gradient 2FU changes by the order of one per unit of U
    steps = spectral_steps(A, U, floors, _squares_and_gradient, 0.25 * A.shape[0] / U.shape[1])
    for count, (U, value) in enumerate(steps):
        if value < best_value:
            best, best_value = U, value
        if best_value - bound <= enough or count == max_iter:
            break
        if count % patience == 0:
            gain, left = checked - best_value, best_value - bound
            slow = gain <= 1e-3 * left and gain <= stall * max(1.0, abs(best_value))
            if slow or (only_bound and gain < left):
                break
            checked = best_value
    return best, best_value, count
