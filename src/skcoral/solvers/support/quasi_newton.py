"""Limited-memory quasi-Newton descent for many starts at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array

Rows = NDArray[np.intp]
# Values (s,) and gradients (s, n) of points (s, n); the second argument says which starts they are.
Function = Callable[[Array, Rows], tuple[Array, Array]]

_MEMORY = 8  # pairs of steps and gradients
_BACKTRACKS = 20  # of at least a half: the last step is a millionth of the first
# Steps without a visible improvement after which a row is as good as rounding lets it be.
_PATIENCE = 3


@dataclass
class Descent:
    """Where a batch of starts ended: points, values and gradient lengths."""

    Z: Array
    value: Array
    slope: Array


def descend(
    function: Function,
    Z: Array,
    *,
    tol: float,
    max_iter: int,
    on_iteration: Callable[[float], None] | None = None,
) -> Descent:
    """Minimise ``function`` from every row of Z; no row ever gets worse than its start.

    A row stops when its gradient is shorter than ``tol`` or when rounding hides every further
    improvement; stopped rows leave the batch.
    """
    out = Z.copy()
    value, gradient = function(Z, np.arange(len(Z)))
    final = Descent(out, value.copy(), np.sqrt(_dot(gradient, gradient)))
    alive = np.flatnonzero(final.slope > tol)
    Z, value, gradient = Z[alive], value[alive], gradient[alive]
    pairs: list[tuple[Array, Array, Array]] = []
    scale = np.ones(len(alive))
    idle = np.zeros(len(alive))
    for _ in range(max_iter):
        if not len(alive):
            break
        direction = -_two_loops(gradient, pairs, scale)
        decrease = _dot(direction, gradient)
        uphill = decrease >= 0
        direction[uphill] = -gradient[uphill]
        decrease = _dot(direction, gradient)
        step = np.ones(len(alive))
        if not pairs:
            step = np.minimum(1.0, 1.0 / np.sqrt(-decrease))
        Z_new, value_new, gradient_new, moved = _backtrack(
            function, alive, Z, value, direction, decrease, step
        )
        s, y = Z_new - Z, gradient_new - gradient
        sy, yy = _dot(s, y), _dot(y, y)
        curved = sy > 1e-12 * np.sqrt(_dot(s, s) * yy)
        safe = np.where(curved, sy, 1.0)
        pairs = [*pairs[1 - _MEMORY :], (s, y, np.where(curved, 1.0 / safe, 0.0))]
        scale = np.where(curved, sy / np.where(curved, yy, 1.0), scale)
        for _, _, weight in pairs:
            weight[~moved] = 0.0
        idle = np.where(value - value_new > 1e-15 * np.abs(value), 0, idle + 1)
        Z, value, gradient = Z_new, value_new, gradient_new
        slope = np.sqrt(_dot(gradient, gradient))
        out[alive], final.value[alive], final.slope[alive] = Z, value, slope
        if on_iteration is not None:
            on_iteration(float(final.value.min()))
        keep = (slope > tol) & (idle < _PATIENCE)
        if not keep.all():
            alive, Z, value, gradient = alive[keep], Z[keep], value[keep], gradient[keep]
            scale, idle = scale[keep], idle[keep]
            pairs = [(a[keep], b[keep], c[keep]) for a, b, c in pairs]
    return final


def _two_loops(gradient: Array, pairs: list[tuple[Array, Array, Array]], scale: Array) -> Array:
    q = gradient.copy()
    coefficients = []
    for s, y, weight in reversed(pairs):
        a = weight * _dot(s, q)
        coefficients.append(a)
        q -= a[:, None] * y
    q *= scale[:, None]
    for (s, y, weight), a in zip(pairs, reversed(coefficients), strict=True):
        q += (a - weight * _dot(y, q))[:, None] * s
    return q


def _backtrack(
    function: Function,
    rows: Rows,
    Z: Array,
    value: Array,
    direction: Array,
    decrease: Array,
    step: Array,
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    Z_new = Z + step[:, None] * direction
    value_new, gradient_new = function(Z_new, rows)
    moved = value_new <= value + 1e-4 * step * decrease
    for _ in range(_BACKTRACKS):
        todo = np.flatnonzero(~moved)
        if not len(todo):
            break
        # Minimiser of the parabola through both values and the slope, kept within [0.1, 0.5].
        rise = value_new[todo] - value[todo] - step[todo] * decrease[todo]
        ratio = -0.5 * step[todo] * decrease[todo] / np.where(rise > 0, rise, np.inf)
        step[todo] *= np.clip(ratio, 0.1, 0.5)
        trial = Z[todo] + step[todo, None] * direction[todo]
        Z_new[todo] = trial
        value_new[todo], gradient_new[todo] = function(trial, rows[todo])
        moved[todo] = value_new[todo] <= value[todo] + 1e-4 * step[todo] * decrease[todo]
    failed = ~moved
    if failed.any():
        Z_new[failed], value_new[failed] = Z[failed], value[failed]
        _, gradient_new[failed] = function(Z[failed], rows[failed])
    return Z_new, value_new, gradient_new, moved


def _dot(a: Array, b: Array) -> Array:
    out: Array = np.einsum("sn,sn->s", a, b)
    return out
