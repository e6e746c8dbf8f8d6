"""Dual points that bound a support problem from below; what each proves is for the bound to say.

* frame: a symmetric Q = L⁻ᵀ M L⁻¹ (``R = L Lᵀ``) and η ≥ 0, the maximum of
  :mod:`skcoral.solvers.support.frame_relaxation`;
* lifted: λ ≥ 0 of the floors and a symmetric H with ``H ⊗ R ≻ 0`` on the support. With
  ``dφ = Σ_ij H_ij dG_ij`` at a stationary point its Lagrangian is the quadratic form

      Σ_ij H_ij w_i·w_j − 2 Σ_j λ_j (f_j − ρ_j) − tr H,    H = off(H) + Diag(h),

  in the points u, whose Hessian is twice that form, with blocks ``H_kl B_kᵀ B_l``: if that is
  positive semidefinite, the point is globally optimal;
* moments: sums of squares, :mod:`skcoral.solvers.support.moments`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from skcoral.core import criteria
from skcoral.core.arrays import EPS, Array
from skcoral.core.criteria import Criterion
from skcoral.solvers.support.caps import Caps
from skcoral.solvers.support.frame_relaxation import FrameBound

_ON_RIM = 1e-7  # a floor binds if the fidelity is no further above it
_MAX_FORM = 3000  # coefficients, the size of a matrix whose eigenvalues are wanted
# Trial shifts beyond the least one that makes Q semidefinite, relative to its norm. A point that is
# optimal but for rounding needs next to none; others are better a little inside, by up to half of
# the bound. Steps of four lose up to two per cent of it where floors are high.
_SHIFTS = np.geomspace(1e-11, 1.0, 45)

Arrays = dict[str, Array]


def frame_arrays(R: Array, bound: FrameBound) -> Arrays:
    """A dual point of the frame relaxation."""
    root = np.linalg.cholesky(R)
    half = sla.solve_triangular(root, bound.M, lower=True, trans="T")
    Q = sla.solve_triangular(root, half.T, lower=True, trans="T")
    return {"Q": 0.5 * (Q + Q.T), "eta": bound.eta}


def to_squares(criterion: Criterion, value: float) -> float:
    """The sum of squares, or the largest square, that says as much of a criterion."""
    return value if criterion == "squared" or (criterion == "absolute" and value > 1) else value**2


@dataclass(frozen=True)
class Multipliers:
    """λ of the floors, H of the correlations, and the largest violation of stationarity."""

    floors: Array
    H: Array
    stationarity: float


def multipliers(caps: Caps, U: Array, half_slope: Array) -> Multipliers:
    """Multipliers of one point (k, m), given ``off(H)`` as the half-gradient of the criterion."""
    W = caps.outputs(U[None])[0]
    gradient = caps.pull_back((half_slope @ W)[None])[0]
    f = U[:, 0]
    fixed = caps.floors >= 1.0
    active = ~fixed & caps.on_rim(U, _ON_RIM)
    radial = np.einsum("ka,ka->k", gradient, U)
    # λ = (g₁ − f uᵀg) / (1 − f²), where the difference is taken before the division.
    across = np.einsum("ka,ka->k", gradient[:, 1:], U[:, 1:])
    side = np.where(active, np.einsum("ka,ka->k", U[:, 1:], U[:, 1:]), 1.0)
    lam = np.where(active, gradient[:, 0] - f * across / side, 0.0)
    lam = np.maximum(lam, 0.0)
    h = np.where(fixed, 0.0, lam * f - radial)
    left = gradient + h[:, None] * U
    left[:, 0] -= lam
    left[fixed] = 0.0  # a column without freedom is stationary
    return Multipliers(lam, half_slope + np.diag(h), float(np.abs(left).max()))


def quadratic_form(caps: Caps, H: Array) -> tuple[Array, Array]:
    """Q and c: ``Σ_ij H_ij w_i · w_j = sᵀQs + 2 cᵀs`` but for a constant.

    s holds the entries of the columns that are not fixed.
    """
    free = caps.floors < 1.0
    slots = np.flatnonzero((caps.valid & free[:, None]).ravel())
    owner = slots // caps.m
    vectors = caps.frames.reshape(-1, caps.p)[slots]
    constants = np.where(free[:, None], 0.0, caps.frames[:, 0])
    Q = (vectors @ vectors.T) * H[np.ix_(owner, owner)]
    return Q, np.einsum("ap,ap->a", vectors, (H @ constants)[owner])


def lifted_points(space: Caps, at: Multipliers, criterion: Criterion) -> Iterator[Arrays]:
    """Dual points with the ``off(H)`` of a stationary point: as it stands, and definite.

    A point whose form is positive semidefinite is certified as it stands. Otherwise a shift ε makes
    it so and is paid for: but for a constant the bound is ``2 fᵀλ − λᵀKλ − cᵀQ⁻¹c − ε n``, with n
    free columns and K what ``Q⁻¹`` has in their first entries. λ is the positive part of ``K⁻¹f``,
    which differs from the best λ ≥ 0 by less than any bound shows.
    """
    # Into the domain of the conjugate: at an optimum this undoes a rounding.
    h = np.diag(np.diag(at.H))
    size = criteria.gauge(criterion, at.H, 1.0 - np.eye(space.k)) * (1.0 + 1e-14)
    H = h + (at.H - h) / max(1.0, size)
    free = space.floors < 1.0
    sizes = space.valid[free].sum(axis=1)
    if sizes.sum() > _MAX_FORM:
        return
    yield {"H": H, "multipliers": np.where(free, at.floors, 0.0)}
    Q, c = quadratic_form(space, H)
    # In the eigenbasis of Q every shift is a sum.
    values, vectors = np.linalg.eigh(Q)
    scale = float(np.abs(values).max(initial=1e-8))
    least = max(0.0, len(Q) * EPS * scale - float(values.min(initial=np.inf)))
    floored = free & (space.floors > 0)
    first = vectors[(np.cumsum(sizes) - sizes)[floored[free]]]
    pushed = vectors.T @ c

    def shifted(share: float) -> tuple[float, Arrays]:
        shift = least + share * scale
        inverse = 1.0 / (values + shift)
        K, f = (first * inverse) @ first.T, space.floors[floored] + first @ (inverse * pushed)
        lam = np.zeros(space.k)
        lam[floored] = np.maximum(np.linalg.solve(K, f), 0.0)
        value = (2.0 * f - K @ lam[floored]) @ lam[floored] - inverse @ pushed**2
        arrays = {"H": H + shift * np.eye(space.k), "multipliers": lam}
        return float(value - shift * free.sum()), arrays

    yield max(map(shifted, _SHIFTS), key=lambda point: point[0])[1]
