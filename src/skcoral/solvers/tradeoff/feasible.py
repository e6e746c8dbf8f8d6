"""Points that really are feasible: unit variance, and every fidelity at or above its floor.

Column j of a feasible ``T`` lies on the unit sphere of the metric ``R``, on the cap of directions
whose correlation with variable j is at least ``ρ_j``.

Outputs that are their sources: floors of one, or closer to one than an interior allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array, column_dots, diagonal, plus_diagonal, to_device, to_host
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import gram_defect, gram_rounding
from skcoral.solvers.tradeoff.binding import DualPoint

_UNIT = float(np.finfo(np.float64).eps) / 2
_VARIANCE = 1e-12  # a variance this close to one is left alone


def make_feasible(R: Any, T: Any, floors: Array, pinned: NDArray[np.bool_]) -> Any:
    """Scale the columns of ``T`` to unit variance and move them onto their caps, where R lies.

    A column below its floor is turned towards its source until it lies on the rim of the cap; so is
    a ``pinned`` one from inside (its floor binds, and the rim is where the optimum is). The other
    columns keep their direction.
    """
    T = T / to_device(np.sqrt(1.0 + _excess_variance(R, T))[None, :], R)
    f = column_dots(R, T)
    # Floors are kept by aiming above them by what rounding can take, here and when the fidelities
    # are computed again: an inner product of n terms is off by at most γ_n |x|ᵀ|y| in any order of
    # summation, γ_n = n u / (1 - n u) (Higham, 2002, section 3.1).
    gamma = R.shape[0] * _UNIT / (1.0 - R.shape[0] * _UNIT)
    room = 2.0 * gamma * column_dots(abs(R), abs(T))
    target = np.where(floors < 1.0, floors + np.minimum(room, 0.1 * (1.0 - floors)), 1.0)
    turn = pinned | (f < target)
    if not turn.any():
        return T
    away = plus_diagonal(1.0 * T, -f)
    # Close to the source little is left, and its rounding must not grow with it.
    away = plus_diagonal(away, -column_dots(R, away))
    length = np.sqrt(np.maximum(column_dots(away, R @ away), 0.0))
    # A column that is its source already, or has to be, stays there.
    reach = np.sqrt(np.maximum(1.0 - target**2, 0.0))
    stay = (length <= 0.0) | (reach <= 0.0)
    factor = np.where(stay, 0.0, reach / np.where(stay, 1.0, length))
    along = np.where(stay, 1.0, target)
    turned = _turned(T, away, factor, along, turn)
    # With R nearly singular, the length above is off by cond(R) roundings; measured again to full
    # accuracy, the part that does not touch the fidelity makes up for it.
    off = np.where(stay | ~turn, 0.0, _excess_variance(R, turned))
    if np.max(np.abs(off), initial=0.0) > _VARIANCE:
        factor = factor * np.sqrt(np.maximum(1.0 - off / np.where(stay, 1.0, reach) ** 2, 0.0))
        turned = _turned(T, away, factor, along, turn)
    return turned


def _turned(T: Any, away: Any, factor: Array, along: Array, turn: NDArray[np.bool_]) -> Any:
    """Replace the columns ``turn`` by ``factor`` times ``away`` plus ``along`` the source."""
    keep = np.where(turn, 0.0, 1.0)
    mixed = T * to_device(keep[None, :], T) + away * to_device((factor * turn)[None, :], T)
    return plus_diagonal(mixed, along * turn)


def _excess_variance(R: Any, T: Any) -> Array:
    """``diag(TᵀRT) - 1``, to full accuracy where rounding would show."""
    if gram_rounding(R, T) > 0:
        return column_dots(T, R @ T) - 1.0
    return diagonal(gram_defect(R, T))


def correlation_of(R: Any, T: Any, *, precise: bool = False) -> Any:
    """``TᵀRT`` to full accuracy; ``precise`` as in :func:`skcoral.core.linalg.gram_defect`."""
    return plus_diagonal(gram_defect(R, T, precise=precise), 1.0)


Index = NDArray[np.intp]

CLOSE = 1.0 - 5e-15  # floors above are solved as floors of one, and then corrected to first order
_LIFT = 1e9  # times the variables: how far the multipliers of floors of one are taken


def with_fixed(members: Index, lam: Array, H: Any, fixed: NDArray[np.bool_]) -> DualPoint:
    """Give the rows of floors of one a diagonal that dominates them; what grows is added later."""
    if not fixed.any():
        return DualPoint(members, lam, H)
    host = np.asarray(to_host(H))
    own = np.where(fixed, np.abs(criteria.off(host)).sum(axis=1) + 1e-15, 0.0)
    replaced = np.where(fixed, host.diagonal(), 0.0)
    return DualPoint(members, lam + own, H + to_device(np.diag(own - replaced), H))


def near_sources(
    R: Array, T: Array, H: Array, floors: Array, lam: Array
) -> tuple[Array, Array, Array]:
    """Correct outputs that were held at their sources for floors that are not quite one.

    To first order in the angle ``arccos ρ_j`` the output turns against the gradient ``T H_j`` of
    the criterion, and ``λ_j`` is the size of its tangential part over the angle.
    """
    close = np.flatnonzero((floors > CLOSE) & (floors < 1.0))
    K = criteria.off(H)[:, close]
    gradient = T @ K
    image = R @ gradient
    along = image[close, np.arange(len(close))]
    tangent = np.maximum(np.einsum("ij,ij->j", gradient, image) - along**2, 0.0)
    angle = np.sqrt(np.maximum(1.0 - floors[close] ** 2, np.finfo(np.float64).eps ** 2))
    price = np.sqrt(tangent) / angle
    T, lam, H = T.copy(), lam.copy(), H.copy()
    T[:, close] -= gradient / np.where(price > 0, price, np.inf)
    lam[close] = price
    least = np.abs(K).sum(axis=0) * 1e-6 + 1e-13
    H[close, close] = np.maximum(price * floors[close] - along, least)
    return T, lam, H


def lifted(lam: Array, H: Any, floors: Array) -> tuple[Array, Any]:
    """Take the multipliers of floors of one towards infinity, and H with them."""
    lift = np.where(floors >= 1.0, _LIFT * len(floors), 0.0)
    return lam + lift, plus_diagonal(1.0 * H, lift) if lift.any() else H


def subgradient(R: Array, criterion: Criterion, omega: Array) -> Array:
    """A subgradient of the criterion at the sources themselves, in the domain of the conjugate."""
    residual = criteria.off(R)
    if criterion == "squared":
        return np.asarray(omega * residual)
    if criterion == "absolute":
        return np.asarray(0.5 * omega * np.sign(residual))
    K = np.zeros_like(R)
    i, j = np.unravel_index(int(np.argmax(omega * np.abs(residual))), R.shape)
    K[i, j] = K[j, i] = 0.5 * omega[i, j] * np.sign(residual[i, j])
    return K
