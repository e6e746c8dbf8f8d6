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

from skcoral.core.arrays import (
    Array,
    Index,
    block_triangular,
    columns_joined,
    diagonal,
    identity,
    inner,
    inverse_factored,
    library,
    own_diagonal,
    scaled,
    submatrix,
    to_device,
    to_host,
    zeros,
)
from skcoral.solvers.tradeoff.binding import (
    Outputs,
    binding_floors,
    decided_outputs,
    in_rows,
    make_feasible,
)
from skcoral.solvers.tradeoff.interior import Allowance, follow, start_from
from skcoral.solvers.tradeoff.points import Bounded, PairModel, Problem, Quadratic, State

TIE = 1e-9  # what the tie-break may add to the worst pair, so that it has room to move
# Of the sum of squares that the products make up at the end, where what is left of P shows in the
# pairs that count.
_SHARE = 1e-11
_START = 0.1  # products at its start
_CENTRED = 0.01  # least products where it starts from the centre


def break_ties(
    R: Any,
    floors: Array,
    omega: Array,
    members: Index,
    T: Any,
    worst: float,
    allowance: Allowance,
    near: tuple[State, Index] | None = None,
) -> Outputs | None:
    """Minimise the squares of the other pairs, the outputs ``T`` of ``members`` held.

    Pairs that count may reach ``worst`` over their weight, or must vanish where that is zero.
    ``near`` is where the first level ended, with its variables: far fewer steps lead on from there
    than from the sources. Returns the outputs decided on either level; the others are uncorrelated
    with all. None where the path does not end. ``allowance`` is charged for every step.
    """
    others = np.setdiff1d(np.flatnonzero(floors > 0), members)
    if not len(others):
        return None
    every = np.concatenate([members, others])
    held, p = len(members), len(every)
    U = identity(p, R)
    if held:
        U = columns_joined([submatrix(T, every, np.arange(held)), U[:, held:]])
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
        within = to_device(room, R)
        if near is not None and np.isin(others, near[1]).all():
            first = _from_centre(problem, within, counted, T, members, others, *near)
        else:
            S = sources * problem.pairs
            model = Bounded.squares(within, problem.pairs, counted, S, _START)
            first = start_from(problem, model, _START)
    else:
        model = Quadratic(to_device(np.where(live & ~counts, 1.0, 0.0), R))
        first = start_from(problem, model, _START)
    at = [first]
    del first  # large matrices: the path does not keep the point it begins at
    end = follow(problem, at.pop(), share=_SHARE, size_of=_squares, allowance=allowance)
    if not end.done:
        return None
    outputs, dropped = decided_outputs(problem, end.state)
    if isinstance(end.state.model, Quadratic):  # pairs that have to vanish may have a price
        size = _squares(problem.gram(end.state.T))
        outputs = outputs | binding_floors(problem, end.state, size)
    keep = np.flatnonzero(outputs)
    keep = keep[np.argsort(every[keep])]
    room = np.zeros(len(floors))
    room[every] = dropped
    among = submatrix(R, every, every)
    columns = make_feasible(among, U @ end.state.T, floors[every], outputs)
    columns = submatrix(columns, np.arange(p), keep)
    return Outputs(every[keep], in_rows(columns, every, len(floors)), room)


def _from_centre(
    problem: Problem,
    bounds: Any,
    bound: Any,
    T: Any,
    members: Index,
    others: Index,
    state: State,
    active: Index,
) -> State:
    """Start from the end of the first level: the centre of what it leaves open.

    There the derivatives of the logarithms of ``P``, ``z`` and the slacks balance, so that τ times
    them is nearly dual feasible for a τ beside which the residual correlations are small.
    """
    held, p = len(members), problem.p
    m, o = np.searchsorted(active, members), np.searchsorted(active, others)
    across, own_T = zeros((0, p), T), submatrix(state.T, o, o)
    if held:
        k = np.arange(held)
        across = library(T).linalg.solve(submatrix(T, members, k), submatrix(state.T, m, o))
        own_T = own_T - submatrix(T, others, k) @ across
    T = block_triangular(identity(held, state.T), across, own_T)
    nothing = zeros((held, p - held), state.T)
    P = block_triangular(zeros((held, held), state.T), nothing, submatrix(state.P, o, o))
    S = (problem.gram(T) + P) * problem.pairs
    own = own_diagonal(P) ** 0.5
    mu = max(_CENTRED, float(library(S).max(abs(S) * own[:, None] * own[None, :])))
    model = Bounded.squares(bounds, problem.pairs, bound, S, _CENTRED, 0.999)
    z = to_device(np.concatenate([np.ones(held), np.asarray(to_host(state.z))[o]]), state.T)
    free = problem.block
    H = mu * inverse_factored(problem.definite(P)) * free
    H = H + (model.a - model.b + model.s) * model.bound * (1.0 - free)
    return State(H, mu / z * problem.free, z, T, P, model)


def _squares(G: Any) -> float:
    """The sum of squares of the pairs, and never zero."""
    own = diagonal(G)
    return max(0.5 * (inner(G, G) - float(own @ own)), 1e-20)
