"""The worst pair of many small matrices at once: from squares, along N, to its own equations.

``N`` times the worst pair plus the squares is solved for growing N from a neighbour's point; its
limit is the worst pair with its tie-break, the least squares. How fast H grows with N shows which
pairs and floors have a price in the limit. Their equations are then solved alone, and the outputs
without a price by the least squares within the worst pair, as in
:mod:`skcoral.tradeoff.lexicographic`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skcoral.panels.batched_exact import assemble, complement, largest_means
from skcoral.panels.batched_newton import SOLVED, Points, Problems, newton, pairs_of
from skcoral.panels.batched_tradeoff import Tradeoffs, certified
from skcoral.panels.batches import Mask
from skcoral.results import Array
from skcoral.tradeoff.lexicographic import TIE

_RATIO = 10.0  # by which N grows from level to level
_SHORTER = 3  # attempts, each with the root of the ratio
_LEVELS = 4  # at which the limit is tried
_ROUGH, _TIGHT = 0.03, 1e-3  # residuals, relative to the worst pair, on the way and at its end
_GROWS = 0.5  # logarithmic derivative in N that separates what has a price in the limit
_CHANGES, _STEPS = 6, 2  # corrections of which pairs are worst, and steps between them


def beyond_squares(R: Array, floors: Array, squares: Tradeoffs) -> tuple[Array, Array, Array]:
    """Where :func:`worst_pairs` starts without a neighbour: multipliers, H and N."""
    problem = Problems.squares(R, floors, squares.multipliers > 0)
    total = np.abs(np.where(problem.pairs, squares.H, 0.0)).sum(axis=(1, 2))
    problem = replace(problem, worst=0.5 * total)
    points, _, slope = _follow(problem, squares.H)
    points, problem, _, _ = _ahead(problem, points, slope, _ROUGH)
    assert problem.worst is not None
    return np.where(problem.free, points.lam, 0.0), points.H, problem.worst


def worst_pairs(
    R: Array, floors: Array, multipliers: Array, H: Array, worst: Array
) -> tuple[Tradeoffs, Array, Array]:
    """Solve from points that are close to those of ``worst`` (N) times the worst pair plus squares.

    Returns the results, and multipliers and H at that N, where a neighbour may start.
    """
    problem = replace(Problems.squares(R, floors, multipliers > 0), worst=worst)
    points, good, slope = _follow(problem, H)
    first = np.where(problem.free, points.lam, 0.0), points.H.copy()
    found = certified(
        R, floors, problem.free, points.T, points.lam, H, np.zeros(len(H), dtype=bool)
    )
    at = np.arange(len(H))
    for _ in range(_LEVELS):
        on = np.flatnonzero(good)
        at, points, problem, slope = at[on], points.take(on), problem.take(on), slope[on]
        if not len(at):
            break
        points, problem, good, slope = _ahead(problem, points, slope, _TIGHT)
        now = _limit(problem, points, slope)
        found.put(at[now.solved], now.take(now.solved))
        good &= ~now.solved  # which pairs are worst shows at a larger N
    return found, *first


def _follow(problem: Problems, H: Array, goal: float = _ROUGH) -> tuple[Points, Mask, Array]:
    """Solve at the current N; the points, success, and the derivative in N."""
    found = newton(problem, H, goal * np.maximum(problem.residual(H)[1], 1e-3))
    points = found.points
    at_level = problem.pairs & (np.abs(points.H) >= points.level[:, None, None])
    push = np.sign(points.H) * at_level
    push /= np.maximum(at_level.sum(axis=(1, 2)), 1)[:, None, None]
    return points, found.binding(problem), points.direction(found.factors, push)


def _ahead(
    problem: Problems, points: Points, slope: Array, goal: float
) -> tuple[Points, Problems, Mask, Array]:
    """Go along the derivative to a larger N, with shorter steps where that does not succeed."""
    assert problem.worst is not None
    reached, done = points.take(slice(None)), np.zeros(len(slope), dtype=bool)
    N, slopes = problem.worst.copy(), slope.copy()
    at, ratio = np.arange(len(slope)), _RATIO
    for _ in range(_SHORTER):
        own = replace(problem.take(at), worst=ratio * problem.worst[at])
        H = own.start(points.H[at] + ((ratio - 1.0) * problem.worst[at])[:, None, None] * slope[at])
        there, good, ahead = _follow(own, H, goal)
        kept = at[good]
        reached.put(kept, there.take(good))
        N[kept], slopes[kept], done[kept] = ratio * N[kept], ahead[good], True
        at, ratio = at[~good], ratio**0.5
        if not len(at):
            break
    return reached, replace(problem, worst=N), done, slopes


def _limit(problem: Problems, points: Points, slope: Array) -> Tradeoffs:
    """From a large N to the limit: prices of pairs and floors, then the tie-break."""
    assert problem.worst is not None
    R, floors, N = problem.R, problem.floors, problem.worst[:, None]
    p = R.shape[1]
    rows = np.arange(p)
    grows = N * slope[:, rows, rows] > _GROWS * points.H[:, rows, rows]
    excess = np.abs(points.H) - points.level[:, None, None]
    signs = np.sign(points.H) * (problem.pairs & pairs_of(grows & problem.free, grows))
    signs *= (excess >= 0.0) & (N[:, :, None] * signs * slope > _GROWS * excess)
    priced, H, T, lam, level = _prices(R, floors, signs, slope, points.level)
    ok = np.asarray(level > 100.0 * TIE)
    # outputs with a price are held; the others follow by the least squares within the worst pair
    held = np.where(priced[:, None, :] & priced[:, :, None], T, 0.0)
    held[:, rows, rows] += ~priced
    sources = held.transpose(0, 2, 1) @ (R @ held)
    sources[:, rows, rows] = 1.0
    free = problem.free & ~priced & ok[:, None]
    caps = np.broadcast_to(((1.0 + TIE) * level + TIE)[:, None, None], R.shape)
    rest = Problems(sources, floors, free, pairs_of(free, free | priced), priced, caps=caps)
    found = newton(rest, points.H)
    has: Mask = np.asarray(free.any(axis=1))
    ok = ok & np.asarray(found.binding(rest) | ~has)
    decided = priced | free
    T = np.where(has[:, None, None], held @ found.points.T, held)
    T = np.where(decided[:, None, :], T, 0.0)
    idle = np.flatnonzero(ok & ~decided.all(axis=1))
    if len(idle):
        residual, mix = complement(R[idle], decided[idle])
        left = np.where(decided, 0.0, floors)[idle]
        means = largest_means(residual, left, np.ones(left.shape))
        T[idle] = assemble(decided[idle], T[idle], means.T, mix)
        ok[idle] &= means.solved
    return certified(R, floors, decided, T, lam, H, ok, worst=True)


def _prices(
    R: Array, floors: Array, signs: Array, H: Array, level: Array
) -> tuple[Mask, Array, Array, Array, Array]:
    """Solve for the worst pairs, correcting which they are; level zero where that fails."""
    n, p = floors.shape
    solved = np.zeros(n, dtype=bool)
    level = level.copy()
    lam, T, H = np.zeros((n, p)), np.zeros(R.shape), H.copy()
    at = np.arange(n)
    for _ in range(_CHANGES):
        free = (signs[at] != 0).any(axis=2)
        problem = Problems(
            R[at], floors[at], free, signs[at] != 0, worst=np.ones(len(at)), signs=signs[at]
        )
        off = (signs[at] * H[at]).sum(axis=(1, 2))
        scale = (1.0 + (signs[at] != 0).sum(axis=(1, 2)) * level[at]) / np.where(off > 0, off, 1.0)
        found = newton(problem, H[at] * scale[:, None, None], SOLVED, _STEPS)
        points = found.points
        H[at], T[at], lam[at] = points.H, points.T, np.where(free, points.lam, 0.0)
        level[at] = points.level
        size = points.level[:, None, None]
        wrong = signs[at] * points.H < 0.0
        missed = pairs_of(free, free) & (signs[at] == 0) & (np.abs(points.G) > size * (1 + 1e-9))
        negative = free & (points.lam <= 0.0)
        missed &= ~(negative[:, :, None] | negative[:, None, :])
        wrong |= (signs[at] != 0) & (negative[:, :, None] | negative[:, None, :])
        changed = (wrong | missed).any(axis=(1, 2))
        solved[at] = found.done & ~changed & (points.level > 0.0)
        new = np.where(wrong, 0.0, np.where(missed, np.sign(points.G), signs[at]))
        again = (changed | ~found.done) & np.isfinite(points.value)
        signs[at[again]] = new[again]
        at = at[again]
        if not len(at):
            break
    priced = (signs != 0).any(axis=2)
    return priced, H, T, lam, np.where(solved, level, 0.0)
