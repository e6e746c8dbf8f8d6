"""What the criterion leaves open: among all optima, the one with the least sum of squares.

The criterion decides the outputs whose floors have a price: they are the same in every optimum. It
may leave the others open (other pairs than the worst, pairs of weight zero). The outputs already
decided are then held, as if they were sources with floors of one, and the squares of the pairs of
all others are minimised within what the criterion allows. What that leaves open in turn is
completed exactly. This second level has no part in the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import (
    Array,
    block_triangular,
    diagonal,
    identity,
    inner,
    row_products,
    scaled,
    submatrix,
    to_device,
    zeros,
)
from skcoral.tradeoff.binding import binding_floors
from skcoral.tradeoff.interior import follow_until
from skcoral.tradeoff.pairs import Bounded, PairModel, Quadratic
from skcoral.tradeoff.points import Problem, State, start_from

Index = NDArray[np.intp]

TIE = 1e-9  # what the tie-break may add to the worst pair, so that it has room to move
_SHARE = 1e-13  # of the sum of squares that the products make up when the tie-break stops
_TOLERANCE = 1e-11  # of the sum of squares by which its equations may be violated
_START = 0.1  # products at its start
_MAX_ITER = 50  # steps after which there is taken to be no feasible point


@dataclass(frozen=True)
class Decided:
    """The variables decided on either level, and their transformation."""

    members: Index
    T: Any
    n_iter: int


def break_ties(
    R: Any,
    floors: Array,
    omega: Array,
    members: Index,
    T: Any,
    worst: float,
    max_iter: int,
) -> Decided | None:
    """Minimise the squares of the other pairs, the outputs ``T`` of ``members`` held.

    Pairs that count may reach ``worst`` over their weight, or must vanish where that is zero.
    Returns None if no such outputs were found.
    """
    others = np.setdiff1d(np.flatnonzero(floors > 0), members)
    if not len(others):
        return None
    every = np.concatenate([members, others])
    held, p = len(members), len(every)
    U = identity(p, R)
    if held:
        across = zeros((held, p - held), R)
        U = block_triangular(T, across, identity(p - held, R))
    sources = U.T @ submatrix(R, every, every) @ U
    sources = scaled(sources, diagonal(sources) ** -0.5)
    bounds = np.concatenate([np.ones(held), floors[others]])
    live = ~np.eye(p, dtype=bool)
    live[:held, :held] = False
    weights = omega[np.ix_(every, every)]
    counts = live & (weights > 0)
    problem = Problem(sources, bounds, live)
    model: PairModel
    room = ((1.0 + TIE) * worst + TIE) / np.where(counts, weights, 1.0)
    if worst > 0.0 and np.max(room[counts], initial=0.0) > 10.0 * TIE:
        counted = to_device(counts.astype(np.float64), R)
        S = sources * problem.pairs
        model = Bounded.squares(to_device(room, R), problem.pairs, counted, S, _START)
    else:
        model = Quadratic(to_device(np.where(live & ~counts, 1.0, 0.0), R))
    max_iter = min(max_iter, _MAX_ITER)
    progress = follow_until(
        problem,
        start_from(problem, model, _START),
        share=_SHARE,
        tolerance=_TOLERANCE,
        size_of=_squares,
        max_iter=max_iter,
    )
    if not progress.done:
        return None
    state, used = progress.state, progress.n_iter
    keep = np.flatnonzero(binding_floors(problem, state, _squares(state)))
    if len(keep) < p:
        problem = problem.restricted(keep)
        progress = follow_until(
            problem,
            state.restricted(problem, keep),
            share=_SHARE,
            tolerance=_TOLERANCE,
            size_of=_squares,
            max_iter=max(max_iter - used, 0),
        )
        used += progress.n_iter
        state = progress.state
        if not progress.done:
            return None
    T = submatrix(U, keep, keep) @ state.T
    order = np.argsort(every[keep])
    return Decided(every[keep][order], submatrix(T, order, order), used)


def _squares(state: State) -> float:
    """The sum of squares at a state, and never zero."""
    G = state.W.T @ state.W
    own = row_products(state.W.T, state.W.T)
    return max(0.5 * (inner(G, G) - inner(own, own)), 1e-20)
