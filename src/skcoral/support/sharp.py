"""Sharp optima of the worst-pair and absolute criteria, by a barrier that is followed to zero.

Neither criterion is smooth at its optimum. With a logarithmic barrier both are, and the barrier's
slopes tend to the multipliers of the optimum:

    worst     φ_μ(G) = min_s  s − μ Σ log(s² − G²)
    absolute  φ_μ(G) = Σ min_e e − μ log(e² − G²)

Dense Newton steps on the caps follow μ down; :func:`newton_on_face` finishes to full accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from skcoral.results import Array, Criterion
from skcoral.support.geometry import Caps
from skcoral.support.kkt import linearise, newton_on_face, quadratic_form, symmetric
from skcoral.support.objectives import criterion_values, residuals

_SHRINK = 0.2
_LAST_BARRIER = 1e-11
_ROUGH_BARRIER = 1e-7


@dataclass(frozen=True)
class Polished:
    """A refined point (p, m): its value, ``off(H)`` for the dual, and whether it settled."""

    U: Array
    value: float
    half_slope: Array
    converged: bool


@dataclass(frozen=True)
class _Smoothed:
    value: float
    slope: Array
    curvature: Array
    coupling: Array | None


def refine(
    caps: Caps, U: Array, criterion: Criterion, *, rough: bool = False, max_iter: int = 300
) -> Polished:
    """Refine one point (p, m) for "worst" or "absolute"; never makes it worse.

    A rough refinement stops early: it tells candidates apart at a third of the cost.
    """
    last = _ROUGH_BARRIER if rough else _LAST_BARRIER
    start, start_value = U, _criterion(caps, U, criterion)
    U = _inside(caps, U)
    barrier = 1e-3 * max(start_value, 1e-6)
    n_iter, settled = 0, False
    slope, lam = np.zeros(caps.p * (caps.p - 1) // 2), np.zeros(caps.p)
    while n_iter < max_iter:
        n_iter += 1
        moved, U, slope, lam, decrement = _newton(caps, U, criterion, barrier)
        if not moved or decrement < (0.1 if rough or barrier > last else 1e-6) * barrier:
            if barrier <= last:
                settled = True
                break
            barrier = max(_SHRINK * barrier, last)
    half = symmetric(caps.p, 0.5 * slope)
    if rough:
        value, best = min((start_value, start), (_criterion(caps, U, criterion), U), key=_first)
        return Polished(best, value, half, False)
    face = newton_on_face(caps, _onto_rims(caps, U, lam), half, criterion)
    candidates = [(start_value, start), (_criterion(caps, U, criterion), U)]
    if face.converged:
        candidates.append((face.value, face.U))
        half = face.half_slope
    value, best = min(candidates, key=_first)
    return Polished(best, value, half, settled or face.converged)


def _first(item: tuple[float, Array]) -> float:
    return item[0]


def _criterion(caps: Caps, U: Array, criterion: Criterion) -> float:
    return float(criterion_values(criterion, residuals(caps, U[None]))[0])


def _inside(caps: Caps, U: Array, share: float = 1e-3) -> Array:
    """Move points strictly inside their caps."""
    inner = caps.floors + share * (1.0 - caps.floors)
    low = (caps.floors > 0) & (caps.floors < 1) & (U[:, 0] < inner)
    out = U.copy()
    side = np.linalg.norm(U[:, 1:], axis=1)
    room = np.sqrt(1.0 - inner**2)
    out[low, 0] = inner[low]
    out[low, 1:] *= (room[low] / np.maximum(side[low], 1e-300))[:, None]
    return out


def _onto_rims(caps: Caps, U: Array, lam: Array) -> Array:
    """Put the columns whose floor carries a multiplier exactly on it."""
    bound = (caps.floors > 0) & (caps.floors < 1) & (lam > U[:, 0] - caps.floors)
    out = U.copy()
    side = np.linalg.norm(U[:, 1:], axis=1)
    room = np.sqrt(1.0 - caps.floors**2)
    out[bound, 0] = caps.floors[bound]
    out[bound, 1:] *= (room[bound] / np.maximum(side[bound], 1e-300))[:, None]
    return out


def _smoothed(G: Array, barrier: float, criterion: Criterion) -> _Smoothed:
    if criterion == "absolute":
        root = np.sqrt(barrier**2 + G * G)
        e = barrier + root
        value = float(np.sum(e - barrier * np.log(2.0 * barrier * e)))
        return _Smoothed(value, G / e, (1.0 - G * G / (root * e)) / e, None)
    squares = G * G
    top = float(np.abs(G).max())
    # The level solves Σ 2μs/(s² − G²) = 1; in t = s − top the equation is safe from cancellation.
    low, high = 0.0, 2.0 * barrier * len(G) + top
    t = barrier
    room = top * top - squares
    for _ in range(100):
        s = top + t
        slack = room + t * (2.0 * top + t)
        excess = float(np.sum(2.0 * barrier * s / slack)) - 1.0
        low, high = (t, high) if excess > 0 else (low, t)
        new = t + excess / float(np.sum(2.0 * barrier * (s * s + squares) / slack**2))
        new = new if low < new < high else 0.5 * (low + high)
        if abs(new - t) <= 1e-15 * t:
            break
        t = new
    s = top + t
    slack = room + t * (2.0 * top + t)
    curvature = 2.0 * barrier * (s * s + squares) / slack**2
    coupling = -4.0 * barrier * s * G / slack**2 / np.sqrt(curvature.sum())
    value = s - barrier * float(np.log(slack).sum())
    return _Smoothed(value, 2.0 * barrier * G / slack, curvature, coupling)


def _merit(caps: Caps, U: Array, criterion: Criterion, barrier: float) -> float:
    free = (caps.floors > 0) & (caps.floors < 1)
    room = U[free, 0] - caps.floors[free]
    if np.any(room <= 0):
        return np.inf
    i, j = np.triu_indices(caps.p, 1)
    G = residuals(caps, U[None])[0][i, j]
    return _smoothed(G, barrier, criterion).value - barrier * float(np.log(room).sum())


def _newton(
    caps: Caps, U: Array, criterion: Criterion, barrier: float
) -> tuple[bool, Array, Array, Array, float]:
    """One damped Newton step; also the slopes of the pairs and floors where it started."""
    p, m = caps.p, caps.m
    line = linearise(caps, U)
    smooth = _smoothed(line.G, barrier, criterion)
    free = (caps.floors > 0) & (caps.floors < 1)
    room = np.where(free, U[:, 0] - caps.floors, 1.0)
    lam = np.where(free, 0.5 * barrier / room, 0.0)
    gradient = line.jacobian.T @ smooth.slope
    owner = line.slots // m
    point = U.ravel()[line.slots]
    own = np.flatnonzero(line.slots % m == 0)
    gradient[own] -= 2.0 * lam
    radial = np.bincount(owner, weights=gradient * point, minlength=p)
    H = symmetric(p, 0.5 * smooth.slope) - np.diag(0.5 * radial)
    hessian = 2.0 * quadratic_form(caps, H)[0]
    hessian += line.jacobian.T @ (smooth.curvature[:, None] * line.jacobian)
    if smooth.coupling is not None:
        along = line.jacobian.T @ smooth.coupling
        hessian -= np.outer(along, along)
    hessian[own, own] += np.where(free, barrier / room**2, 0.0)
    radii = np.zeros((len(line.slots), p))
    radii[np.arange(len(line.slots)), owner] = point
    tangent = gradient - radii @ radial
    direction = -_positive_solve(_on_tangents(hessian, radii), tangent)
    decrement = -float(gradient @ direction)
    value = _merit(caps, U, criterion, barrier)
    flat = np.zeros(p * m)
    flat[line.slots] = direction
    step = flat.reshape(p, m)
    length = min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
    for _ in range(30):
        trial = U + length * step
        trial = trial / np.linalg.norm(trial, axis=1, keepdims=True)
        if _merit(caps, trial, criterion, barrier) <= value - 1e-4 * length * decrement:
            return True, trial, smooth.slope, lam, decrement
        length *= 0.4
    return False, U, smooth.slope, lam, decrement


def _on_tangents(hessian: Array, radii: Array) -> Array:
    """The Hessian on steps that keep every length to first order; positive along the radii."""
    across = hessian @ radii
    core = radii.T @ across
    size = max(float(np.abs(np.diag(hessian)).max()), 1.0)
    core = core + size * np.eye(len(core))
    mixed = across @ radii.T
    return np.asarray(hessian - mixed - mixed.T + radii @ core @ radii.T)


def _positive_solve(matrix: Array, right: Array) -> Array:
    """Solve with the least diagonal shift, on a geometric scale, that makes the matrix positive."""
    size = float(np.abs(np.diag(matrix)).max()) if len(matrix) else 1.0
    shift = 0.0
    for _ in range(60):
        try:
            factor = sla.cho_factor(matrix + shift * np.eye(len(matrix)), lower=True)
        except np.linalg.LinAlgError:
            shift = max(4.0 * shift, 1e-12 * size, 1e-3)
            continue
        out: Array = sla.cho_solve(factor, right)
        return out
    return right / size
