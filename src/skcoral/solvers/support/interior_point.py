"""Local optima of all three criteria, by an interior-point method on the caps.

The squares are smooth. The other two criteria are not, but they are linear in levels above the
correlations,

    worst     min s        with  −s ≤ G_ij ≤ s        (one level)
    absolute  min Σ e_ij   with  −e_ij ≤ G_ij ≤ e_ij  (a level per pair)

so a logarithmic barrier μ on these bounds, on the floors and on intervals of coefficients makes
them smooth. Primal-dual Newton steps on the tangents of the caps follow μ down, and their
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


@dataclass(frozen=True)
class Candidate:
    """A point (k, m) with its criterion and largest residual.

    ``half_slope`` is ``off(H)`` for the dual, ``converged`` whether the point is stationary.
    """

    U: Array
    value: float
    worst: float
    half_slope: Array
    converged: bool


def candidate(
    caps: Caps,
    U: Array,
    criterion: Criterion,
    half_slope: Array | None = None,
    *,
    converged: bool = False,
) -> Candidate:
    """Evaluate one point; its residuals are the half-gradient of the squares."""
    E = residuals(caps, U[None])
    value = float(criteria.values(criterion, E)[0])
    half = E[0] if half_slope is None else half_slope
    return Candidate(U, value, float(np.abs(E).max()), half, converged)


@dataclass(frozen=True)
class HalfSpaces:
    """Half-spaces ``normals · u_j ≥ offsets`` that points of the columns ``owner`` keep to."""

    owner: NDArray[np.intp]
    normals: Array  # (n, m)
    offsets: Array

    def room(self, U: Array) -> Array:
        """How far inside a point is."""
        return np.asarray(np.einsum("nm,nm->n", self.normals, U[self.owner]) - self.offsets)


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
    state, converged = path.follow(_inside(caps, U), first)
    half = None
    if criterion != "squared":
        half = symmetric(caps.k, 0.5 * (state.above - state.below))
    start, end = (candidate(caps, x, criterion, half, converged=converged) for x in (U, state.U))
    # A tie goes to the end, which is stationary to more digits.
    return end if end.value <= start.value + _TIE * max(start.value, 1e-3) else start


def symmetric(k: int, pairs: Array) -> Array:
    """Symmetric matrix with zero diagonal and these entries above it."""
    out = np.zeros((k, k))
    i, j = np.triu_indices(k, 1)
    out[i, j] = out[j, i] = pairs
    return out


@dataclass(frozen=True)
class _State:
    """A point, its outputs and correlations, the level of "worst", and the multipliers.

    ``above`` and ``below`` belong to ``G ≤ level`` and ``G ≥ −level``, ``pulls`` to the floors and
    the intervals.
    """

    U: Array
    W: Array
    G: Array
    level: float
    above: Array
    below: Array
    pulls: Array


@dataclass(frozen=True)
class _Step:
    """A Newton direction: the point's, the level's, the correlations', and what it promises."""

    U: Array
    level: float
    G: Array
    above: Array
    below: Array
    pulls: Array
    decrement: float
    shift: float


class _Path:
    """The barrier problem of one criterion on the caps."""

    def __init__(self, caps: Caps, criterion: Criterion, within: HalfSpaces) -> None:
        self.caps, self.worst, self.within = caps, criterion == "worst", within
        self.squared, self.absolute = criterion == "squared", criterion == "absolute"
        self.i, self.j = np.triu_indices(caps.k, 1)
        self.slots = np.flatnonzero(caps.valid[:, 1:].ravel())
        self.owner = self.slots // max(caps.m - 1, 1)
        self.same = self.owner[:, None] == self.owner
        self.floored = np.flatnonzero((caps.floors > 0) & (caps.floors < 1))
        # A floor is a half-space as well, whose distance is known to more digits.
        self.bound = np.concatenate((self.floored, within.owner))
        floors = np.zeros((len(self.floored), caps.m))
        floors[:, 0] = 1.0
        self.normals = np.concatenate((floors, within.normals))

    def follow(self, U: Array, barrier: float) -> tuple[_State, bool]:
        """Follow the barrier down; also whether the end is stationary."""
        state = self._begin(U, barrier)
        shift = 0.0
        for _ in range(_STEPS):
            step = self._newton(state, barrier, shift)
            shift = step.shift
            moved = self._advance(state, step, barrier)
            state = state if moved is None else moved
            if moved is None or step.decrement < _CENTERED * barrier:
                if barrier <= _LAST_BARRIER:
                    small = step.decrement <= 1e-8 * max(float(np.abs(state.G).max()), 1e-6)
                    return state, moved is not None or small
                barrier = max(_SHRINK * barrier, _LAST_BARRIER)
        return state, False

    def _begin(self, U: Array, barrier: float) -> _State:
        W, G = self._correlations(U)
        level = 0.0
        if self.worst:
            level = float(np.abs(G).max()) + 2.0 * barrier
        above, below = self._central(G, level, barrier)
        return _State(U, W, G, level, above, below, barrier / self._room(U))

    def _central(self, G: Array, level: float, barrier: float) -> tuple[Array, Array]:
        """Multipliers of the pairs at the centre; of the squares, which have none, the slopes."""
        if self.squared:
            return 2.0 * G, np.zeros(len(G))
        up, down = self._slacks(G, level, barrier)
        return barrier / up, barrier / down

    def _room(self, U: Array) -> Array:
        heights = self.caps.height(U)[self.floored]
        return np.concatenate((heights, self.within.room(U)))

    def _at(self, U: Array) -> tuple[Array, Array, Array]:
        U = U / np.sqrt(np.einsum("ka,ka->k", U, U))[:, None]
        return (U, *self._correlations(U))

    def _correlations(self, U: Array) -> tuple[Array, Array]:
        W = np.matmul(U[:, None], self.caps.frames)[:, 0]
        return W, (W @ W.T)[self.i, self.j]

    def _slacks(self, G: Array, level: float, barrier: float) -> tuple[Array, Array]:
        """``level − G`` and ``level + G``; the levels of "absolute" are the best for this G."""
        if self.worst:
            return level - G, level + G
        size = np.abs(G)
        root = np.sqrt(barrier * barrier + G * G)
        near, far = barrier + barrier * barrier / (root + size), barrier + root + size
        return np.where(G > 0, near, far), np.where(G > 0, far, near)

    def _merit(self, U: Array, G: Array, level: float, barrier: float) -> float:
        room = self._room(U)
        if self.squared:
            inside = room.min(initial=1.0) > 0
            return float(G @ G - barrier * np.log(room).sum()) if inside else np.inf
        up, down = self._slacks(G, level, barrier)
        if min(up.min(), down.min(), room.min(initial=1.0)) <= 0:
            return np.inf
        cost = level if self.worst else 0.5 * float(np.sum(up + down))
        logs = np.log(up * down).sum() + np.log(room).sum()
        return float(cost - barrier * logs)

    def _newton(self, state: _State, barrier: float, shift: float) -> _Step:
        """The primal-dual Newton direction, on a Hessian shifted until it is positive definite."""
        caps, k, owner = self.caps, self.caps.k, self.owner
        U, W, G = state.U, state.W, state.G
        room = self._room(U)
        # A reflection takes each point to an axis; its other rows span the tangent.
        v = U.copy()
        v[:, 0] += np.where(U[:, 0] < 0, -1.0, 1.0)
        scaled = v / (1.0 + np.abs(U[:, :1]))
        frames = caps.frames[:, 1:] - scaled[:, 1:, None] * np.matmul(v[:, None], caps.frames)
        frames = frames.reshape(-1, caps.p)[self.slots]
        # The half-spaces in the coordinates of the tangent, one row each, zero in other columns.
        across = np.einsum("nm,nm->n", v[self.bound], self.normals)[:, None]
        inward = self.normals[:, 1:] - scaled[self.bound, 1:] * across
        places = np.zeros((len(self.bound), k, caps.m - 1))
        places[np.arange(len(self.bound)), self.bound] = inward
        tangent = places.reshape(len(self.bound), k * (caps.m - 1))[:, self.slots]
        reach = frames @ W.T
        push_up, push_down = self._central(G, state.level, barrier)
        stiff_up = stiff_down = np.ones(len(G))
        if not self.squared:
            stiff_up, stiff_down = state.above * push_up, state.below * push_down
            stiff_up, stiff_down = stiff_up / barrier, stiff_down / barrier
        total, tilt = stiff_up + stiff_down, stiff_up - stiff_down
        bend = symmetric(k, 4.0 * stiff_up * stiff_down / total if self.absolute else total)
        gradient = np.einsum("al,al->a", reach, symmetric(k, push_up - push_down)[owner])
        gradient -= (barrier / room) @ tangent
        curve = symmetric(k, state.above - state.below)
        height = np.einsum("nm,nm->n", self.normals, U[self.bound])
        radial = np.einsum("kl,kl->k", curve, W @ W.T)
        radial -= np.bincount(self.bound, state.pulls * height, minlength=k)
        curve[np.arange(k), np.arange(k)] = -radial
        # Row (k, l) of the Jacobian has two blocks, so its square is a product of entries.
        cross = reach[:, owner]
        hessian = curve[owner][:, owner] * (frames @ frames.T)
        hessian += bend[owner][:, owner] * (cross * cross.T)
        inner = (reach * bend[owner]) @ reach.T
        hessian += self.same * inner + (tangent.T * (state.pulls / room)) @ tangent
        right, along, slack, size = gradient, np.zeros(len(owner)), 0.0, 1.0
        if self.worst:
            # The level is eliminated.
            along = np.einsum("al,al->a", reach, symmetric(k, tilt)[owner])
            size = float(total.sum())
            slack = 1.0 - float(np.sum(push_up + push_down))
            hessian -= np.outer(along, along / size)
            right = gradient + slack / size * along
        solution, shift = _solve_shifted(hessian, -right, 0.25 * shift)
        level = (float(along @ solution) - slack) / size if self.worst else 0.0

        full = np.zeros((k, caps.m - 1))
        full.flat[self.slots] = solution
        direction: Array = -scaled * np.einsum("ka,ka->k", v[:, 1:], full)[:, None]
        direction[:, 1:] += full
        change = np.matmul(direction[:, None], caps.frames)[:, 0] @ W.T
        dG = (change + change.T)[self.i, self.j]
        rise = level if self.worst else tilt * dG / total
        decrement = -float(gradient @ solution) - slack * level
        fall = np.einsum("nm,nm->n", self.normals, direction[self.bound])
        return _Step(
            direction,
            level,
            dG,
            push_up - state.above - stiff_up * (rise - dG),
            push_down - state.below - stiff_down * (rise + dG),
            barrier / room - state.pulls * (1.0 + fall / room),
            decrement,
            shift,
        )

    def _advance(self, state: _State, step: _Step, barrier: float) -> _State | None:
        """Backtrack until the barrier function falls; None if no length makes it fall."""
        room = self._room(state.U)
        length = min(1.0, 0.5 / max(float(np.abs(step.U).max()), 1e-300))
        fall = np.einsum("nm,nm->n", self.normals, step.U[self.bound])
        length = min(length, _reach(room, fall))
        if self.worst:
            length = min(
                length,
                _reach(state.level - state.G, step.level - step.G),
                _reach(state.level + state.G, step.level + step.G),
            )
        value = self._merit(state.U, state.G, state.level, barrier)
        for _ in range(25):
            level = state.level + length * step.level
            aim = value - 1e-4 * length * step.decrement + 1e-14 * abs(value)
            U, W, G = self._at(state.U + length * step.U)
            if self._merit(U, G, level, barrier) <= aim:
                break
            length *= 0.4
        else:
            return None
        above, below = self._central(G, level, barrier)
        if not self.squared:
            share = min(_reach(state.above, step.above), _reach(state.below, step.below))
            above, below = state.above + share * step.above, state.below + share * step.below
        pulls = state.pulls + _reach(state.pulls, step.pulls) * step.pulls
        return _State(U, W, G, level, above, below, pulls)


def _reach(positive: Array, change: Array) -> float:
    """The largest step, at most one, that leaves every entry a hundredth of itself."""
    worst = float((-change / positive).max(initial=0.0))
    return 1.0 if worst <= _TO_BOUNDARY else _TO_BOUNDARY / worst


def _inside(caps: Caps, U: Array, share: float = 1e-3) -> Array:
    """Move points strictly inside their caps, keeping their directions from the first axis."""
    free = (caps.floors > 0) & (caps.floors < 1)
    low = free & (caps.height(U) < share * (1.0 - caps.floors))
    sides = np.sqrt((1.0 - share) * caps.spread[low])
    out = U.copy()
    now = np.linalg.norm(U[low, 1:], axis=1)
    out[low, 0] = np.sqrt((1.0 - sides) * (1.0 + sides))
    out[low, 1:] *= (sides / np.maximum(now, 1e-300))[:, None]
    return out


def _solve_shifted(matrix: Array, right: Array, shift: float) -> tuple[Array, float]:
    """Solve with a diagonal shift, on a geometric scale, that makes the matrix positive definite.

    Starts from ``shift``; also returns the shift that was used.
    """
    if not len(right):  # no column has any freedom
        return right, 0.0
    size = max(float(np.abs(np.diag(matrix)).max()), 1e-300)
    shift = shift if shift > 1e-6 else 0.0
    diagonal = np.arange(len(matrix))
    for _ in range(60):
        shifted = matrix.copy()
        shifted[diagonal, diagonal] += shift
        factor, failed = dpotrf(shifted, lower=1)
        if not failed:
            return solve_factored(factor, right), shift
        shift = max(4.0 * shift, 1e-12 * size, 1e-3)
    return right / size, shift
