"""Points that really are feasible: unit variance, and every fidelity at or above its floor.

Column j of a feasible ``T`` lies on the unit sphere of the metric ``R``, on the cap of directions
whose correlation with variable j is at least ``ρ_j``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import beside, to_host
from skcoral._linalg import gram_defect

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_VARIANCE = 1e-12  # a variance this close to one is left alone


def on_caps(R: Any, T: Array, floors: Array, pinned: NDArray[np.bool_]) -> Array:
    """Scale the columns of ``T`` to unit variance and move them onto their caps.

    A column below its floor is turned towards its source until it lies on the rim of the cap; so is
    a ``pinned`` one from inside (its floor binds, and the rim is where the optimum is). The other
    columns keep their direction. Only the products that may need twice the working precision are
    formed where ``R`` lies.
    """
    there, R = R, to_host(R)
    T = T / np.sqrt(1.0 + np.diag(_defect(there, T)))
    f = np.einsum("ji,ij->j", R, T)
    # Room for the rounding of a product with a large column, so that f ≥ ρ also as computed.
    room = 4 * _EPS * np.einsum("ji,ij->j", np.abs(R), np.abs(T))
    target = np.where(floors < 1.0, floors + np.minimum(room, 0.1 * (1.0 - floors)), 1.0)
    turn = np.flatnonzero(pinned | (f < target))
    away = T[:, turn]
    column = np.arange(len(turn))
    away[turn, column] -= f[turn]
    # Close to the source little is left, and its rounding must not grow with it.
    away[turn, column] -= np.einsum("ij,ij->j", R[:, turn], away)
    length = np.sqrt(np.maximum(np.einsum("ij,ij->j", away, R @ away), 0.0))
    # A column that is its source already, or has to be, stays there.
    reach = np.sqrt(np.maximum(1.0 - target[turn] ** 2, 0.0))
    stay = (length <= 0.0) | (reach <= 0.0)
    away *= np.where(stay, 0.0, reach / np.where(stay, 1.0, length))
    along = np.where(stay, 1.0, target[turn])
    T[:, turn] = away
    T[turn, turn] += along
    # With R nearly singular, the length above is off by cond(R) roundings; measured again to full
    # accuracy, the part that does not touch the fidelity makes up for it.
    off = np.where(stay, 0.0, np.diag(_defect(there, T))[turn])
    if np.max(np.abs(off), initial=0.0) > _VARIANCE:
        away *= np.sqrt(np.maximum(1.0 - off / np.where(stay, 1.0, reach) ** 2, 0.0))
        T[:, turn] = away
        T[turn, turn] += along
    return T


def correlation_of(R: Any, T: Array) -> Array:
    """``TᵀRT`` to full accuracy."""
    G = _defect(R, T)
    G[np.diag_indices_from(G)] += 1.0
    return G


def _defect(R: Any, T: Array) -> Array:
    return np.asarray(to_host(gram_defect(R, beside(T, R))))
