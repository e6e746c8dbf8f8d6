"""The bound (★★) of a dual point, evaluated together with a feasible U so that no digits are lost.

For any ``N ⪰ 0``, ``λ ≥ 0``, ``κ ≥ 0`` with ``N + κ_j I ≻ 0`` and ``ν = (p - tr N)/r``, every
feasible U has

    D2 ≥ νp - p/2 - ½‖N + νI‖² + 2ρᵀλ - Σκ_j - Σ_j λ_j² a_jᵀ(N + κ_j I)⁻¹a_j                  (★★)

and with ``z_j = (N + κ_j I)u_j - λ_j a_j`` the difference of the two sides is the sum

    ½‖UUᵀ - N - νI‖² + Σ_j [2λ_j(a_jᵀu_j - ρ_j) + κ_j(1 - ‖u_j‖²) + z_jᵀ(N + κ_j I)⁻¹z_j]

of terms that are not negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import (
    Array,
    column_dots,
    column_sums,
    eigh,
    inner,
    plus_diagonal,
    to_device,
    to_host,
)
from skcoral.solvers.singular.answer import FrameProof, RankFactorProof
from skcoral.solvers.singular.dual import FrameDual

_EPS = float(np.finfo(np.float64).eps)
_LIFT = 5e7  # κ of floors of one, relative to the spread of N in their direction
_KEPT = 1e-6  # share of the least eigenvalue of N that a shift leaves


def proof_of(dual: FrameDual) -> FrameProof:
    """Finite multipliers from a maximisation, with N shifted to its smallest.

    Replacing N by ``N - cI`` and κ by ``κ + c`` changes nothing in (★★); the smaller N, the fewer
    digits cancel. Floors of one have their λ at infinity; a large κ comes as close as is needed.
    """
    point = dual.point
    shift = (1.0 - _KEPT) * float(point.n.min())
    n = point.n - shift
    kappa = point.kappa + shift
    pinned = ~np.isfinite(point.lam)
    lam = np.where(pinned, 0.0, point.lam)
    if pinned.any():
        lam[pinned], kappa[pinned] = at_source(np.diag(n), np.asarray(to_host(point.B))[:, pinned])
    N = (dual.Q * to_device(n[None, :], dual.Q)) @ dual.Q.T
    return FrameProof(N=0.5 * (N + N.T), lam=lam, kappa=kappa)


def at_source(N: Array, A: Array) -> tuple[Array, Array]:
    """Finite λ and κ of floors of one: the bound misses aᵀNa by the variance of N at a over κ."""
    image = N @ A
    energy = np.einsum("ij,ij->j", A, image)
    spread = np.sqrt(np.maximum(np.einsum("ij,ij->j", image, image) - energy**2, 0.0))
    kappa = _LIFT * np.maximum(spread, 1e-3 * max(float(np.diag(N).max()), 1e-3))
    return kappa + energy, kappa


def gap_of(proof: FrameProof, A: Any, U: Any, floors: Array) -> float:
    """How far the sum of squares of a feasible ``U`` can be above the bound of ``proof``."""
    r, p = A.shape
    values, Q = eigh(proof.N)
    n = np.maximum(np.asarray(to_host(values)), 0.0)
    B, V = Q.T @ A, Q.T @ U
    nu = (p - float(n.sum())) / r
    F = plus_diagonal(V @ V.T, -(n + nu))
    D = to_device(n[:, None], B) + to_device(proof.kappa[None, :], B)
    z = D * V - to_device(proof.lam[None, :], B) * B
    rest = column_sums(z * z / D)
    # a floor of one holds its column at the source, whatever the rounding of the two lengths
    pinned = floors >= 1.0
    slack = np.where(pinned, 0.0, column_dots(B, V) - floors)
    short = np.where(pinned, 0.0, 1.0 - column_dots(V, V))
    parts = 2.0 * proof.lam * slack + proof.kappa * short + rest
    return 0.5 * inner(F, F) + float(parts.sum()) + rounding_of_lengths(proof, floors)


def rounding_of_lengths(proof: FrameProof | RankFactorProof, floors: Array) -> float:
    """What the rounding of unit lengths is worth at the multipliers of floors of one."""
    return 0.5 * _EPS * float((proof.kappa + proof.lam)[floors >= 1.0].sum())
