"""What the criterion leaves open: among all optima, the one with the least sum of squares.

The criterion decides the outputs whose floors have a price: they are the same in every optimum. It
may leave the others open (other pairs than the worst, pairs of weight zero). The outputs already
decided are then held, as if they were sources with floors of one, and the squares of the pairs of
all others are minimised within what the criterion allows. What that leaves open in turn is
completed exactly. This second level has no part in the proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import (
    Array,
    Index,
    diagonal,
    identity,
    inner,
    joined,
    scaled,
    submatrix,
    to_device,
    to_host,
)
from skcoral.solvers.tradeoff.binding import (
    CLOSE,
    binding_floors,
    decided_outputs,
    in_rows,
    make_feasible,
)
from skcoral.solvers.tradeoff.interior import Allowance, follow, start_from
from skcoral.solvers.tradeoff.points import Bounded, PairModel, Problem, Quadratic

TIE = 1e-9  # what the tie-break may add to the worst pair, so that it has room to move
# Of the sum of squares that the products make up at the end, where what is left of P shows in the
# pairs that count: at ten times it, a budget of zero can be exceeded.
_SHARE = 1e-12
_START = 0.1  # products at its start


def break_ties(
    R: Any,
    floors: Array,
    omega: Array | None,
    members: Index,
    T: Any,
    worst: float,
    allowance: Allowance,
) -> tuple[Index, Any, Array] | None:
    """Minimise the squares of the other pairs, the outputs ``T`` of ``members`` held.

    Pairs that count may reach ``worst`` over their weight, or must vanish where that is zero.
    Returns the outputs decided on either level, their columns with a row for every variable, and
    by how much the floors of the others, which are uncorrelated with all, may be missed until these
    are moved onto theirs. None where the path does not end. ``allowance`` counts every step.
    """
    others = np.setdiff1d(np.flatnonzero(floors > 0), members)
    if not len(others):
        return None
    every = np.concatenate([members, others])
    held, p = len(members), len(every)
    U = identity(p, R)
    if held:
        U = joined([submatrix(T, every, np.arange(held)), U[:, held:]])
    sources = U.T @ submatrix(R, every, every) @ U
    sources = scaled(sources, diagonal(sources) ** -0.5)
    # Here too, floors next to one leave an interior that rounding fills.
    bounds = np.concatenate([np.ones(held), np.where(floors > CLOSE, 1.0, floors)[others]])
    live = ~np.eye(p, dtype=bool)
    live[:held, :held] = False
    problem = Problem(sources, bounds, live)
    # The first point is not kept: large matrices.
    end = follow(
        problem,
        start_from(problem, _model(problem, criteria.weights_among(omega, every), worst), _START),
        share=_SHARE,
        size_of=_squares,
        allowance=allowance,
    )
    if not end.done:
        return None
    outputs = problem.fixed
    if isinstance(end.state.model, Quadratic):  # pairs that have to vanish may have a price
        outputs = binding_floors(problem, end.state, _squares(problem.gram(end.state.T)))
    outputs, dropped = decided_outputs(problem, end.state, outputs)
    room = np.zeros(len(floors))
    room[every] = dropped
    keep = np.flatnonzero(outputs)
    keep = keep[np.argsort(every[keep])]
    among = submatrix(R, every, every)
    columns = make_feasible(among, U @ end.state.T, floors[every], outputs)
    columns = submatrix(columns, np.arange(p), keep)
    return every[keep], in_rows(columns, every, len(floors)), room


def _model(problem: Problem, weights: Array, worst: float) -> PairModel:
    """Squares, within bounds where pairs count."""
    pairs = to_host(problem.pairs)
    counts = (pairs > 0) & (weights > 0)
    room = ((1.0 + TIE) * worst + TIE) / np.where(counts, weights, 1.0)
    if not worst > 0.0 or np.max(room[counts], initial=0.0) <= 10.0 * TIE:
        return Quadratic(to_device(np.where(counts, 0.0, pairs), problem.R))
    counted = to_device(1.0 * counts, problem.R)
    S = problem.R * problem.pairs
    return Bounded.squares(to_device(room, problem.R), problem.pairs, counted, S, _START)


def _squares(G: Any) -> float:
    """The sum of squares of the pairs, and never zero."""
    own = diagonal(G)
    return max(0.5 * (inner(G, G) - float(own @ own)), 1e-20)
