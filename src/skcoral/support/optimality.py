"""First-order conditions of a support problem: the multipliers of a point, and their form.

With ``dφ = Σ_ij H_ij dG_ij`` the Lagrangian of a supported transformation is the quadratic form

    Σ_ij H_ij w_i·w_j − 2 Σ_j λ_j (f_j − ρ_j) − tr H,    H = off(H) + Diag(h),

in the points u. Its Hessian is 2Q with blocks ``Q_kl = H_kl B_kᵀ B_l``, and if Q ⪰ 0 a stationary
point is globally optimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skcoral.results import Array
from skcoral.support.caps import Caps

_ON_RIM = 1e-7


@dataclass(frozen=True)
class Multipliers:
    """λ of the floors, H of the correlations, and the largest violation of stationarity."""

    floors: Array
    H: Array
    stationarity: float


def multipliers(caps: Caps, U: Array, half_slope: Array) -> Multipliers:
    """Multipliers of one point (p, m), given ``off(H)`` as the half-gradient of the criterion."""
    W = caps.outputs(U[None])[0]
    gradient = caps.pull_back((half_slope @ W)[None])[0]
    f = U[:, 0]
    fixed = caps.floors >= 1.0
    active = ~fixed & caps.on_rim(U, _ON_RIM)
    radial = np.einsum("ka,ka->k", gradient, U)
    # λ = (g₁ − f uᵀg) / (1 − f²), where the difference is taken before the division.
    across = np.einsum("ka,ka->k", gradient[:, 1:], U[:, 1:])
    side = np.where(active, np.einsum("ka,ka->k", U[:, 1:], U[:, 1:]), 1.0)
    lam = np.where(active, gradient[:, 0] - f * across / np.maximum(side, 1e-300), 0.0)
    lam = np.maximum(lam, 0.0)
    h = lam * f - radial
    # A column without freedom is stationary with any h: a large one keeps the form positive.
    ample = 1.0 + np.abs(radial) + 10.0 * np.abs(half_slope).sum(axis=1)
    h = np.where(fixed, ample, h)
    lam = np.where(fixed, ample + radial, lam)
    left = gradient + h[:, None] * U
    left[:, 0] -= lam
    return Multipliers(lam, half_slope + np.diag(h), float(np.abs(left).max()))


def quadratic_form(caps: Caps, H: Array) -> tuple[Array, NDArray[np.intp]]:
    """Q over the existing coefficients, and the position of each column's first one."""
    p, m = caps.p, caps.m
    slots = np.flatnonzero(caps.valid.ravel())
    vectors = caps.frames.reshape(p * m, p)[slots]
    owner = slots // m
    position = np.full(p * m, -1)
    position[slots] = np.arange(len(slots))
    return (vectors @ vectors.T) * H[np.ix_(owner, owner)], position[np.arange(p) * m]
