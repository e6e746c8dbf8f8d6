"""First-order conditions of a support problem: multipliers, and Newton steps on a guessed face.

With ``dφ = Σ_ij H_ij dG_ij`` the Lagrangian of a supported transformation is the quadratic form

    Σ_ij H_ij w_i·w_j − 2 Σ_j λ_j (f_j − ρ_j) − tr H,    H = off(H) + Diag(h),

in the points u. Its Hessian is 2Q with blocks ``Q_kl = H_kl B_kᵀ B_l``, and if Q ⪰ 0 a stationary
point is globally optimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skcoral.results import Array, Criterion
from skcoral.support.caps import Caps
from skcoral.support.objectives import criterion_values, residuals

_ON_RIM = 1e-9


@dataclass(frozen=True)
class Multipliers:
    """λ of the floors, H of the correlations, and the largest violation of stationarity."""

    floors: Array
    H: Array
    stationarity: float


def multipliers(caps: Caps, U: Array, half_slope: Array, on_rim: float = _ON_RIM) -> Multipliers:
    """Multipliers of one point (p, m), given ``off(H)`` as the half-gradient of the criterion."""
    W = caps.outputs(U[None])[0]
    gradient = caps.pull_back((half_slope @ W)[None])[0]
    f = U[:, 0]
    fixed = caps.floors >= 1.0
    active = ~fixed & caps.on_rim(U, on_rim)
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


@dataclass(frozen=True)
class Face:
    """A point on which the active pairs are exactly active, with its half-gradient ``off(H)``."""

    U: Array
    value: float
    half_slope: Array
    converged: bool


@dataclass(frozen=True)
class Linearised:
    """The pairs' correlations and their derivatives over the existing coefficients."""

    G: Array
    jacobian: Array
    slots: NDArray[np.intp]


def linearise(caps: Caps, U: Array) -> Linearised:
    """Correlations of the pairs of one point (p, m), to first order."""
    p, m = caps.p, caps.m
    i, j = np.triu_indices(p, 1)
    slots = np.flatnonzero(caps.valid.ravel())
    W = caps.outputs(U[None])[0]
    reach = np.matmul(caps.frames, W.T)
    pairs = np.arange(len(i))
    jacobian = np.zeros((len(i), p, m))
    jacobian[pairs, i] = reach[i, :, j]
    jacobian[pairs, j] = reach[j, :, i]
    return Linearised(
        np.einsum("ka,ka->k", W[i], W[j]), jacobian.reshape(len(i), p * m)[:, slots], slots
    )


def newton_squared(caps: Caps, U: Array, *, tol: float = 1e-12, max_iter: int = 12) -> Array:
    """Refine a nearly optimal point of the squared criterion to full accuracy, or return it."""
    best, best_value = U, _value(caps, U, "squared")
    rim = _rim(caps, U)
    for _ in range(max_iter):
        E = residuals(caps, U[None])[0]
        state = multipliers(caps, U, E, 1e-7)
        line = linearise(caps, U)
        Q, first = quadratic_form(caps, state.H)
        hessian = 2.0 * (Q + line.jacobian.T @ line.jacobian)
        step = _solve_kkt(
            caps, U, line, hessian, 2.0 * line.jacobian.T @ line.G, first, rim, _no_rows(hessian)
        )
        if step is None or np.abs(step[0]).max() > 0.1:
            break
        d, _, lam = step
        rim = rim & ~(lam < 0)
        U = caps.onto_caps((U + d)[None])[0]
        value = _value(caps, U, "squared")
        if value <= best_value:
            best, best_value = U, value
        if np.abs(d).max() < tol:
            break
    return best


def newton_on_face(
    caps: Caps,
    U: Array,
    half_slope: Array,
    criterion: Criterion,
    *,
    tol: float = 1e-11,
    max_iter: int = 25,
) -> Face:
    """Settle a nearly optimal point of a sharp criterion where linear programmes only creep.

    The active pairs (equal to the maximum, or equal to zero) are guessed from the point, then
    Newton's method solves the optimality conditions on that face; pairs with a multiplier of the
    wrong sign leave the face and pairs that overtake it join.
    """
    first_value = _value(caps, U, criterion)
    unsettled = Face(U, first_value, half_slope, False)
    i, j = np.triu_indices(caps.p, 1)
    H_pairs = half_slope[i, j].copy()
    sign, face = _guess(criterion, residuals(caps, U[None])[0][i, j], H_pairs)
    rim = _rim(caps, U)
    for _ in range(max_iter):
        slope = symmetric(caps.p, H_pairs)
        Q, first = quadratic_form(caps, multipliers(caps, U, slope, 1e-6).H)
        step = _sharp_step(caps, U, 2.0 * Q, first, sign, face, rim, criterion)
        if step is None or np.abs(step[0]).max() > 0.3:
            break
        d, y, lam = step
        U = caps.onto_caps((U + d)[None])[0]
        H_pairs = _half_slopes(criterion, sign, face, y)
        G = residuals(caps, U[None])[0][i, j]
        changed = _revise(criterion, sign, face, y, G)
        wrong = rim & (lam < -1e-9)
        late = _rim(caps, U, 1e-12) & ~rim
        rim = (rim & ~wrong) | late
        if not (changed or wrong.any() or late.any()) and np.abs(d).max() < tol:
            value = _value(caps, U, criterion)
            if value <= first_value * (1 + 1e-12):
                return Face(U, value, symmetric(caps.p, H_pairs), True)
            break
    return unsettled


def _value(caps: Caps, U: Array, criterion: Criterion) -> float:
    return float(criterion_values(criterion, residuals(caps, U[None]))[0])


def _rim(caps: Caps, U: Array, width: float = 1e-6) -> NDArray[np.bool_]:
    return caps.on_rim(U, width)


def symmetric(p: int, pairs: Array) -> Array:
    """Symmetric matrix with zero diagonal and these entries above it."""
    out = np.zeros((p, p))
    i, j = np.triu_indices(p, 1)
    out[i, j] = out[j, i] = pairs
    return out


def _no_rows(hessian: Array) -> tuple[Array, Array]:
    return np.zeros((0, len(hessian))), np.zeros(0)


def _guess(criterion: Criterion, G: Array, half: Array) -> tuple[Array, NDArray[np.bool_]]:
    sign = np.where(G < 0, -1.0, 1.0)
    # Complementarity: on the face the multiplier outweighs the slack, off it the other way round.
    if criterion == "worst":
        face = 2.0 * np.abs(half) > np.abs(G).max() - np.abs(G)
    else:
        face = np.abs(G) < 1.0 - 2.0 * np.abs(half)
    return sign, face


def _half_slopes(criterion: Criterion, sign: Array, face: NDArray[np.bool_], y: Array) -> Array:
    half = np.zeros(len(sign)) if criterion == "worst" else 0.5 * sign
    half[face] = 0.5 * (sign[face] * y if criterion == "worst" else y)
    return half


def _revise(criterion: Criterion, sign: Array, face: NDArray[np.bool_], y: Array, G: Array) -> bool:
    """Change the face in place where a multiplier or a pair says so."""
    members = np.flatnonzero(face)
    if criterion == "worst":
        level = np.abs(G[members]).max()
        leaving = members[y < -1e-10]
        joining = np.flatnonzero(~face & (np.abs(G) > level * (1 + 1e-12)))
        sign[joining] = np.where(G[joining] < 0, -1.0, 1.0)
    else:
        beyond = np.abs(y) > 1 + 1e-10
        leaving = members[beyond]
        sign[leaving] = np.sign(y[beyond])
        joining = np.flatnonzero(~face & (sign * G < -1e-12))
    face[leaving] = False
    face[joining] = True
    return bool(len(leaving) or len(joining))


def _sharp_step(
    caps: Caps,
    U: Array,
    hessian: Array,
    first: NDArray[np.intp],
    sign: Array,
    face: NDArray[np.bool_],
    rim: NDArray[np.bool_],
    criterion: Criterion,
) -> tuple[Array, Array, Array] | None:
    """Newton step with the pairs of the face held active."""
    line = linearise(caps, U)
    if criterion == "absolute":
        gradient = (sign[~face, None] * line.jacobian[~face]).sum(axis=0)
        rows = line.jacobian[face], -line.G[face]
        return _solve_kkt(caps, U, line, hessian, gradient, first, rim, rows)
    # The level of the maximum is one more variable, with cost one.
    count = int(face.sum())
    rows_worst = np.hstack((sign[face, None] * line.jacobian[face], -np.ones((count, 1))))
    gap = sign[face] * line.G[face] - np.abs(line.G).max()
    gradient = np.append(np.zeros(len(line.slots)), 1.0)
    hessian = np.pad(hessian, ((0, 1), (0, 1)))
    return _solve_kkt(caps, U, line, hessian, gradient, first, rim, (rows_worst, -gap))


def _solve_kkt(
    caps: Caps,
    U: Array,
    line: Linearised,
    hessian: Array,
    gradient: Array,
    first: NDArray[np.intp],
    rim: NDArray[np.bool_],
    rows: tuple[Array, Array],
) -> tuple[Array, Array, Array] | None:
    """Minimise the quadratic model subject to rows, unit lengths and the floors on the rim.

    Returns the step (p, m), the multipliers of the rows and those of the floors.
    """
    p, m = caps.p, caps.m
    n, width = len(line.slots), len(gradient)
    spheres = np.zeros((p, width))
    spheres[line.slots // m, np.arange(n)] = 2.0 * U.ravel()[line.slots]
    floors = np.zeros((int(rim.sum()), width))
    floors[np.arange(len(floors)), first[rim]] = -2.0
    constraints = np.vstack((rows[0], spheres, floors))
    offset = np.concatenate((rows[1], np.zeros(p), -2.0 * (caps.floors - U[:, 0])[rim]))
    k = len(constraints)
    system = np.block([[hessian, constraints.T], [constraints, np.zeros((k, k))]])
    solution = np.linalg.lstsq(system, np.concatenate((-gradient, offset)), rcond=1e-14)[0]
    if not np.isfinite(solution).all():
        return None
    d = np.zeros(p * m)
    d[line.slots] = solution[:n]
    dual = solution[width:]
    lam = np.zeros(p)
    lam[rim] = dual[len(rows[0]) + p :]
    return d.reshape(p, m), dual[: len(rows[0])], lam
