"""Local optima of all three criteria, by an interior-point method on the caps.

The squares are smooth. The other two criteria are not, but they are linear in levels above the
correlations,

    worst     min s        with  −s ≤ G_ij ≤ s        (one level)
    absolute  min Σ e_ij   with  −e_ij ≤ G_ij ≤ e_ij  (a level per pair)

so a logarithmic barrier μ on these bounds, on the floors and on intervals of coefficients makes
them smooth. Primal-dual Newton steps on the tangents of the spheres follow μ down, and their
multipliers tend to those of the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from skcoral.core import criteria
from skcoral.core.arrays import Array, solve_factored
from skcoral.core.criteria import Criterion
from skcoral.solvers.support.caps import Caps
from skcoral.solvers.support.objectives import residuals

_SHRINK = 0.2  # of the barrier, each time that a point is centred
_CENTERED = 0.1  # decrement, in units of the barrier, at which it shrinks
_FIRST_BARRIER = 1e-3  # relative to the criterion
_LAST_BARRIER = 1e-13  # absolute
_TO_BOUNDARY = 0.99  # how far a step may go towards a bound
_TIE = 1e-11  # relative; the last barrier keeps the end this far from the best value
_STEPS = 300  # of Newton's method
# Added to the diagonal of a Hessian in turn, until it is positive definite.
_SHIFTS = (0.0, *(1e-3 * 4.0 ** np.arange(30)))


@dataclass(frozen=True)
class Candidate:
    """A point (k, m), its criterion and largest residual; ``half_slope`` is the dual's off(H)."""

    U: Array
    value: float
    worst: float
    half_slope: Array


def candidate(
    caps: Caps, U: Array, criterion: Criterion, half_slope: Array | None = None
) -> Candidate:
    """Evaluate one point; its residuals are the half-gradient of the squares."""
    E = residuals(caps, U[None])
    value = float(criteria.values(criterion, E)[0])
    return Candidate(U, value, float(np.abs(E).max()), E[0] if half_slope is None else half_slope)


@dataclass(frozen=True)
class HalfSpaces:
    """Half-spaces ``normals · u_j ≥ offsets`` that points of the columns ``owner`` keep to."""

    owner: NDArray[np.intp]
    normals: Array  # (n, m)
    offsets: Array


def refine(
    caps: Caps,
    U: Array,
    criterion: Criterion,
    *,
    within: HalfSpaces | None = None,
) -> Candidate:
    """Refine one point (k, m), which is inside the half-spaces; never makes it visibly worse."""
    none = HalfSpaces(np.zeros(0, dtype=np.intp), np.zeros((0, caps.m)), np.zeros(0))
    path = _Path(caps, criterion, within or none)
    first = _FIRST_BARRIER * max(candidate(caps, U, criterion).value, 1e-6)
    point, half = path.follow(_inside(caps, U), first)
    start, end = (candidate(caps, x, criterion, half) for x in (U, point))
    # A tie goes to the end, which is stationary to more digits.
    return end if end.value <= start.value + _TIE * max(start.value, 1e-3) else start


@dataclass(frozen=True)
class _Point:
    """A point, its outputs and correlations, the levels, and the distances from all bounds."""

    U: Array
    W: Array
    G: Array
    level: Array
    slack: Array


class _Path:
    """The barrier problem of one criterion on the caps.

    Its bounds are, in this order: ``G ≤ level`` and ``G ≥ −level`` of every pair, which the squares
    do not have; the floors; the half-spaces.
    """

    def __init__(self, caps: Caps, criterion: Criterion, within: HalfSpaces) -> None:
        self.caps, self.within, self.criterion = caps, within, criterion
        self.i, self.j = np.triu_indices(caps.k, 1)
        self.n_levels = {"squared": 0, "worst": 1, "absolute": len(self.i)}[criterion]
        self.slots = np.flatnonzero(caps.valid.ravel())
        self.owner = self.slots // caps.m
        self.floored = np.flatnonzero((caps.floors > 0) & (caps.floors < 1))
        # A floor is a half-space as well, whose distance is known to more digits.
        self.bound = np.concatenate((self.floored, within.owner))
        poles = np.eye(caps.m)[np.zeros(len(self.floored), dtype=np.intp)]
        self.normals = np.concatenate((poles, within.normals))

    def follow(self, U: Array, barrier: float) -> tuple[Array, Array | None]:
        """Follow the barrier down; the point at its end, and the off(H) of its multipliers."""
        point = self._at(U, np.zeros(self.n_levels))
        if self.n_levels:
            sizes = np.abs(point.G).reshape(self.n_levels, -1)
            point = self._at(U, sizes.max(axis=1) + 2.0 * barrier)
        z = barrier / point.slack
        for _ in range(_STEPS):
            point, z, decrement = self._step(point, z, barrier)
            if decrement < _CENTERED * barrier:
                if barrier <= _LAST_BARRIER:
                    break
                barrier = max(_SHRINK * barrier, _LAST_BARRIER)
        n = len(self.i)
        return point.U, self._matrix(0.5 * (z[:n] - z[n : 2 * n])) if self.n_levels else None

    def _at(self, U: Array, level: Array) -> _Point:
        U = U / np.sqrt(np.einsum("ka,ka->k", U, U))[:, None]
        W = np.matmul(U[:, None], self.caps.frames)[:, 0]
        G = (W @ W.T)[self.i, self.j]
        room = np.einsum("nm,nm->n", self.within.normals, U[self.within.owner])
        pairs = (level - G, level + G) if self.n_levels else ()
        heights = self.caps.height(U)[self.floored]
        slack = np.concatenate((*pairs, heights, room - self.within.offsets))
        return _Point(U, W, G, level, slack)

    def _merit(self, at: _Point, barrier: float) -> float:
        if at.slack.min(initial=1.0) <= 0:
            return np.inf
        cost = float(at.level.sum() if self.n_levels else at.G @ at.G)
        return cost - barrier * float(np.log(at.slack).sum())

    def _matrix(self, pairs: Array) -> Array:
        """Symmetric matrix with zero diagonal and these entries above it."""
        out = np.zeros((self.caps.k, self.caps.k))
        out[self.i, self.j] = out[self.j, self.i] = pairs
        return out

    def _by_level(self, pairs: Array) -> Array:
        return np.asarray(pairs.reshape(self.n_levels, -1).sum(axis=1))

    def _step(self, at: _Point, z: Array, barrier: float) -> tuple[_Point, Array, float]:
        """A primal-dual Newton step and the decrement it promised.

        With multipliers z of the slacks s, the equations are those of ``z s = μ``, from which the
        changes of z and of the levels are eliminated.
        """
        caps, k, n, owner = self.caps, self.caps.k, len(self.i), self.owner
        centered, stiff = barrier / at.slack, z / at.slack
        # Derivatives by the correlations: first, second, and those that bend the spheres. Of the
        # levels e, 1 = Σ z and the equations of their slacks e ∓ G give the change as (tilt dG −
        # missing) / size.
        if self.n_levels:
            up, down = stiff[:n], stiff[n : 2 * n]
            total, tilt = up + down, up - down
            size = self._by_level(total)
            missing = 1.0 - self._by_level(centered[:n] + centered[n : 2 * n])
            slope = centered[:n] - centered[n : 2 * n] + tilt * (missing / size)
            bend = 4.0 * up * down / total if self.criterion == "absolute" else total
            pull = z[:n] - z[n : 2 * n]
        else:
            slope, bend, pull, missing = 2.0 * at.G, np.full(n, 2.0), 2.0 * at.G, np.zeros(0)
        first = len(z) - len(self.bound)
        # Projected to the tangents, where the rows of the half-spaces are zero in other columns.
        frames = (caps.frames - at.U[:, :, None] * at.W[:, None]).reshape(-1, caps.p)[self.slots]
        height = np.einsum("nm,nm->n", self.normals, at.U[self.bound])
        inward = self.normals - height[:, None] * at.U[self.bound]
        rows = np.where(self.bound[:, None] == owner, inward[:, self.slots % caps.m], 0.0)
        reach = frames @ at.W.T
        right = rows.T @ centered[first:] - np.einsum("al,al->a", reach, self._matrix(slope)[owner])
        curve = self._matrix(pull)
        radial = np.einsum("kl,kl->k", curve, at.W @ at.W.T)
        radial -= np.bincount(self.bound, z[first:] * height, minlength=k)
        curve[np.arange(k), np.arange(k)] = -radial
        # Row (k, l) of the Jacobian has two blocks, so its square is a product of entries.
        cross, bent = reach[:, owner], self._matrix(bend)[owner]
        hessian = curve[owner][:, owner] * (frames @ frames.T)
        hessian += bent[:, owner] * (cross * cross.T)
        same = owner[:, None] == owner
        hessian += same * ((reach * bent) @ reach.T)
        hessian += (rows.T * stiff[first:]) @ rows
        if self.criterion == "worst":
            along = np.einsum("al,al->a", reach, self._matrix(tilt)[owner])
            hessian -= np.outer(along, along / size)
        # In radial directions, which are none of the tangents, nothing moves.
        u = at.U.flat[self.slots]
        hessian += same * np.outer(u, np.abs(np.diag(hessian)).max() * u)
        solution = _solve(hessian, right)
        direction = np.zeros((k, caps.m))
        direction.flat[self.slots] = solution
        change = np.matmul(direction[:, None], caps.frames)[:, 0] @ at.W.T
        dG = (change + change.T)[self.i, self.j]
        fall = np.einsum("nm,nm->n", self.normals, direction[self.bound])
        rise, ds, decrement = at.level, fall, float(right @ solution)
        if self.n_levels:
            rise = (self._by_level(tilt * dG) - missing) / size
            ds = np.concatenate((rise - dG, rise + dG, fall))
            decrement += float(missing @ (missing / size))
        dz = centered - z - stiff * ds

        # Backtrack until the barrier function falls.
        length = _reach(at.slack, ds)
        value = self._merit(at, barrier)
        for _ in range(25):
            new = self._at(at.U + length * direction, at.level + length * rise)
            aim = value - 1e-4 * length * decrement + 1e-14 * abs(value)
            if self._merit(new, barrier) <= aim:
                break
            length *= 0.4
        return new, z + _reach(z, dz) * dz, decrement


def _reach(positive: Array, change: Array) -> float:
    """The largest step, at most one, that leaves every entry a hundredth of itself."""
    worst = float((-change / positive).max(initial=0.0))
    return 1.0 if worst <= _TO_BOUNDARY else _TO_BOUNDARY / worst


def _inside(caps: Caps, U: Array) -> Array:
    """Points strictly inside their caps: a little nearer to the axis, where there is a floor."""
    free = (caps.floors > 0) & (caps.floors < 1)
    out = U.copy()
    out[free, 1:] *= np.sqrt(1.0 - 1e-3)
    side = np.linalg.norm(out[free, 1:], axis=1)
    out[free, 0] = np.sqrt((1.0 - side) * (1.0 + side))
    return out


def _solve(matrix: Array, right: Array) -> Array:
    """Solve with the least of the shifts that makes the matrix positive definite."""
    diagonal = np.arange(len(matrix))
    for shift in _SHIFTS:
        shifted = matrix.copy()
        shifted[diagonal, diagonal] += shift
        factor, failed = dpotrf(shifted, lower=1)
        if not failed:
            break
    return np.asarray(solve_factored(factor, right))
