"""Criteria that are not smooth, from start to finish: first the criterion, then the tie-break.

The criterion decides the outputs whose floors have a price: they are the same in every optimum. It
may leave the others open (other pairs than the worst, pairs of weight zero). Among all optima, the
one with the least sum of squares is taken: the outputs already decided are held, as if they were
sources with floors of one, and the squares of the pairs of all others are minimised within what the
criterion allows. What that leaves open in turn is completed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skcoral.results import Criterion
from skcoral.tradeoff.binding import Candidate, negligible, settle
from skcoral.tradeoff.interior import Problem, Report, State, advance
from skcoral.tradeoff.pairs import Bounded, Box, PairModel, Quadratic

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_EARLY = 1e-5  # fall of complementarity after which the floors without a price are looked for
_SLIGHT = 1e-2  # multipliers below this are small
_CLEAR = 8.0  # ratio of multiplier and slack that leaves no doubt
_LEAST = 1e-16  # complementarity of the tie-break, whose multipliers may be small as well
_TIE = 1e-9  # what the tie-break may add to the worst pair, so that it has room to move


@dataclass(frozen=True)
class _Level:
    """The variables with a price, and the solution for them alone (None if there are none)."""

    members: Index
    state: State | None
    n_iter: int
    done: bool


_NOTHING = _Level(np.zeros(0, dtype=np.intp), None, 0, done=True)  # no pair that counts costs


def solve_levels(
    R: Array,
    floors: Array,
    omega: Array,
    criterion: Criterion,
    *,
    goal: float,
    max_iter: int,
    scale: float = 1.0,
    report: Report | None = None,
) -> Candidate:
    """Solve any criterion; ``omega`` (largest weight one) may contain zeros, floors may be one.

    ``goal`` is the complementarity at which to stop, ``scale`` the size of the multipliers at the
    start. ``report`` is told the points for all positive floors, if each of them counts.
    """
    counts = floors > 0
    # A variable none of whose pairs counts is left to the tie-break from the beginning.
    live = np.triu((omega > 0) & np.outer(counts, counts), 1)
    active = np.flatnonzero(live.any(axis=0) | live.any(axis=1))
    if not len(active):
        return _complete(R, floors, omega, criterion, _NOTHING, active, 0, max_iter)
    rows, cols = np.nonzero(live[np.ix_(active, active)])
    weights = omega[active[rows], active[cols]]
    problem = Problem(R[np.ix_(active, active)], floors[active], rows, cols)
    model, size = _first_model(criterion, weights, len(active))
    state = problem.start(model, scale * size)
    early = _EARLY * problem.mean_product(state)
    used = 0
    answer: Candidate | None = None
    report = report if len(active) == np.count_nonzero(counts) else None
    for target in (*(max(early * 0.1**k, goal) for k in range(4)), goal):
        progress = advance(
            problem, state, goal=target, max_iter=max_iter - used, rough=True, report=report
        )
        used += progress.n_iter
        state = progress.state
        if target > goal and not _separated(problem, state):
            continue
        level = _priced(problem, state, goal=goal, max_iter=max_iter - used)
        used += level.n_iter
        answer = _complete(R, floors, omega, criterion, level, active, used, max_iter)
        used = answer.n_iter
        if answer.settled or used >= max_iter or target == goal:
            break
    if answer is None:
        raise AssertionError("there is always a target")
    if not answer.settled and state.point.lam.max() < _SLIGHT**2:
        # Prices that vanish only in the limit: perhaps there is no cost at all.
        answer = _complete(R, floors, omega, criterion, _NOTHING, active, used, max_iter)
        used = answer.n_iter
    if answer.settled:
        return answer
    lam, H, T = _dual(state)
    return settle(R, floors, active, lam, H, T, used)


def _complete(
    R: Array,
    floors: Array,
    omega: Array,
    criterion: Criterion,
    level: _Level,
    active: Index,
    used: int,
    max_iter: int,
) -> Candidate:
    """Add the outputs that the criterion leaves open: uncorrelated if possible, or by squares."""
    lam, H, T = _dual(level.state)
    members = active[level.members]
    answer = settle(R, floors, members, lam, H, T, used)
    if answer.settled or not level.done:
        return answer
    worst = _worst_pair(level.state) if criterion == "worst" else 0.0
    broken = _break_ties(R, floors, omega, members, T, worst, max_iter - used)
    if broken is None:
        return answer
    return _join(R, floors, members, lam, H, broken, used + broken.n_iter)


def _first_model(criterion: Criterion, weights: Array, p: int) -> tuple[PairModel, float]:
    if criterion == "worst":
        return Bounded.worst(weights), 1.0 / p**2
    if criterion == "absolute":
        return Box.start(weights), 1.0
    return Quadratic(1.0 / weights, np.zeros(len(weights))), 1.0


def _priced(problem: Problem, state: State, *, goal: float, max_iter: int) -> _Level:
    """Drop the floors without a price, and solve for the others alone."""
    members = np.arange(len(problem.R))
    used = 0
    for _ in range(4):
        keep = _with_price(problem, state)
        if len(keep) < len(members):
            smaller = problem.restricted(state, keep)
            if smaller is None:
                break
            problem, state = smaller
            members = members[keep]
            if not len(problem.unknowns.rows):
                break
        progress = advance(problem, state, goal=goal, max_iter=max_iter - used)
        used += progress.n_iter
        state = progress.state
        if len(_with_price(problem, state)) == len(members):
            return _Level(members, state, used, progress.done)
    if not len(problem.unknowns.rows):
        return _NOTHING
    return _Level(members, state, used, done=False)


def _with_price(problem: Problem, state: State) -> Index:
    """The floors of one and those with ``λ_j`` away from zero, where ``λ_j z_j`` is constant."""
    lam = state.point.lam
    return np.flatnonzero(~problem.free | (lam > state.z * lam.max(initial=_SLIGHT)))


def _separated(problem: Problem, state: State) -> bool:
    """Whether each floor either clearly has a price or clearly has none."""
    lam, z = state.point.lam[problem.free], state.z[problem.free]
    ratio = lam / (z * lam.max(initial=_SLIGHT))
    return not np.any((ratio > 1.0 / _CLEAR) & (ratio < _CLEAR))


def _dual(state: State | None) -> tuple[Array, Array, Array]:
    """λ, H and T; the rows of floors of one get a diagonal that dominates them."""
    if state is None:
        return np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))
    point = state.point
    fixed = point.lam == 0.0
    own = np.where(fixed, np.abs(point.H).sum(axis=1), 0.0)
    return point.lam + own, point.H + np.diag(own), point.T


@dataclass(frozen=True)
class _Broken:
    """Which variables the tie-break decides, and the transformation of them and those before."""

    members: Index
    T: Array
    n_iter: int


def _worst_pair(state: State | None) -> float:
    if state is None or not isinstance(state.model, Bounded):
        return 0.0
    return float(np.max(np.abs(state.model.s) / state.model.c, initial=0.0))


def _break_ties(
    R: Array,
    floors: Array,
    omega: Array,
    members: Index,
    T: Array,
    worst: float,
    max_iter: int,
) -> _Broken | None:
    """Least squares of the other pairs, the outputs ``T`` of ``members`` held.

    Pairs that count may reach ``worst`` over their weight, or must vanish where that is zero.
    """
    others = np.setdiff1d(np.flatnonzero(floors > 0), members)
    if not len(others):
        return None
    every = np.concatenate([members, others])
    held, p = len(members), len(every)
    U = np.eye(p)
    U[:held, :held] = T
    sources = U.T @ R[np.ix_(every, every)] @ U
    sources[np.diag_indices(p)] = 1.0
    bounds = np.concatenate([np.ones(held), floors[others]])
    rows, cols = np.triu_indices(p, 1)
    rows, cols = rows[cols >= held], cols[cols >= held]
    weights = omega[every[rows], every[cols]]
    counts = weights > 0
    model: PairModel
    if worst > 10.0 * _TIE:
        room = (1.0 + _TIE) * worst + _TIE
        model = Bounded.squares(np.where(counts, room / np.where(counts, weights, 1.0), np.inf))
    else:
        model = Quadratic(np.where(counts, 0.0, 1.0), np.zeros(len(rows)))
    problem = Problem(sources, bounds, rows, cols)
    start = problem.start(model, 1.0)
    progress = advance(problem, start, goal=1e-8, max_iter=max_iter, rough=True)
    level = _priced(problem, progress.state, goal=_LEAST, max_iter=max_iter - progress.n_iter)
    if not level.done or level.state is None:
        return None
    used = progress.n_iter + level.n_iter
    keep = level.members
    return _Broken(every[keep], U[np.ix_(keep, keep)] @ level.state.point.T, used)


def _join(
    R: Array, floors: Array, members: Index, lam: Array, H: Array, broken: _Broken, used: int
) -> Candidate:
    """Put both levels together; the tie-break has no part in the proof."""
    order = np.argsort(broken.members)
    every = broken.members[order]
    at = np.searchsorted(every, members)
    all_lam = np.zeros(len(every))
    all_lam[at] = lam
    all_H = negligible(H, len(every))
    all_H[np.ix_(at, at)] = H
    return settle(R, floors, every, all_lam, all_H, broken.T[np.ix_(order, order)], used)
