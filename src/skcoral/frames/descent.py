"""Descend on the caps: the sum of squares ``½‖UUᵀ‖²`` by a spectral projected gradient.

The caps are not convex, but the dual says how far down there is to go. Steps have the length of
Barzilai and Borwein, and a step is taken when it improves on the worst of the last few values
(Birgin, Martínez and Raydan, 2000).
"""

from __future__ import annotations

from typing import Any

from skcoral._arrays import Array, inner
from skcoral.frames.caps import on_caps

_MEMORY = 8  # values that a step is compared with


def squares(U: Any) -> float:
    """Sum of the squared correlations of the columns over the pairs, ``½(‖UUᵀ‖² - p)``."""
    F = U @ U.T
    return 0.5 * (inner(F, F) - float(U.shape[1]))


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
    p = U.shape[1]
    F = U @ U.T
    value = 0.5 * (inner(F, F) - p)
    best, best_value = U, value
    recent = [value]
    # relative to ν = p/r, the gradient 2FU changes by the order of one per unit of U
    gradient = F @ U
    step = 0.5 * A.shape[0] / p
    checked = value
    enough = goal * max(1.0, abs(bound))
    for count in range(max_iter):
        if best_value - bound <= enough:
            return best, best_value, count
        if count and count % patience == 0:
            gain, left = checked - best_value, best_value - bound
            slow = gain <= 1e-3 * left and gain <= stall * max(1.0, abs(best_value))
            if slow or (only_bound and gain < left):
                return best, best_value, count
            checked = best_value
        for _ in range(20):
            new = on_caps(A, U - step * gradient, floors)
            change = new - U
            slope = 2.0 * inner(gradient, change)
            F = new @ new.T
            new_value = 0.5 * (inner(F, F) - p)
            if new_value <= max(recent) + 1e-4 * min(slope, 0.0):
                break
            step *= 0.3
        else:
            return best, best_value, count
        new_gradient = F @ new
        turned = new_gradient - gradient
        across, along = inner(change, turned), inner(change, change)
        if not along > 0.0:
            return best, best_value, count
        if across <= 0.0:
            step = min(10.0 * step, 1.0)
        elif count % 2:
            step = across / inner(turned, turned)
        else:
            step = along / across
        U, gradient, value = new, new_gradient, new_value
        recent = [*recent[1 - _MEMORY :], value]
        if value < best_value:
            best, best_value = U, value
    return best, best_value, max_iter
