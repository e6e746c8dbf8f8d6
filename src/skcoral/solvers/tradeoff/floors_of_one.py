"""Outputs that are their sources: floors of one, or closer to one than an interior allows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array, plus_diagonal, to_device, to_host
from skcoral.core.results import Criterion
from skcoral.solvers.tradeoff.binding import DualPoint

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
