"""Outputs that are feasible: unit vectors ``u_j`` with ``a_jᵀu_j ≥ ρ_j``, in r dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import Array, column_dots, column_parts, to_device

_EPS = float(np.finfo(np.float64).eps)


def on_caps(A: Any, V: Any, floors: Array, *, room: float = 0.0) -> Any:
    """The nearest points of the caps: unit length, and turned to the rim where below the floor.

    ``V`` may be a stack, and so may the floors. A column without any direction stays at its source.
    ``room`` is left above each floor, so that rounding in what is computed from the columns cannot
    miss it.
    """
    parts = column_parts(A)
    if len(parts) == 1:
        return _on_caps(A, V, floors, room)
    out = np.empty_like(V)
    for here in parts:
        out[..., here] = _on_caps(A[:, here], V[..., here], floors[..., here], room)
    return out


def _on_caps(A: Any, V: Any, floors: Array, room: float) -> Any:
    target = np.where(floors < 1.0, np.minimum(floors + room, 0.5 * (1.0 + floors)), 1.0)
    along = column_dots(A, V)
    away = V - to_device(along[..., None, :], V) * A
    # twice, because close to the source little is left and its rounding would grow with it
    away = away - to_device(column_dots(A, away)[..., None, :], V) * A
    across = np.sqrt(column_dots(away, away))
    size = np.hypot(along, across)
    nothing = across <= 4 * _EPS * np.maximum(size, 1e-300)
    inside = (size > 0.0) & (along >= target * size)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(nothing | (target >= 1.0), 1.0, np.where(inside, along / size, target))
        sine = np.sqrt(np.maximum((1.0 - cosine) * (1.0 + cosine), 0.0))
        factor = np.where(nothing | (cosine >= 1.0), 0.0, sine / np.where(nothing, 1.0, across))
    return to_device(cosine[..., None, :], V) * A + to_device(factor[..., None, :], V) * away
