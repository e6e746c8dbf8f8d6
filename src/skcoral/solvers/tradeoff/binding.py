"""Which floors bind, the outputs whose floors do not, and points that really are feasible.

An output whose floor does not bind is uncorrelated with all others at the optimum. So the binding
outputs are solved among themselves, inside the span of their own sources, and the others are
completed exactly for the covariance that is left, with the largest mean fidelity.

Column j of a feasible ``T`` lies on the unit sphere of the metric ``R``, on the cap of directions
whose correlation with variable j is at least ``ρ_j``. With a floor of one, or closer to one than an
interior allows, it is its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import (
    EPS,
    Array,
    Index,
    blocks,
    column_dots,
    diagonal,
    identity,
    inner,
    joined,
    library,
    plus_diagonal,
    submatrix,
    to_device,
    to_host,
    zeros,
)
from skcoral.core.linalg import gram_defect, gram_rounding
from skcoral.solvers.exact import best_exact, complement, complete_exactly
from skcoral.solvers.tradeoff.points import Problem, State

# Weights grow by up to twenty times a step where floors are out of reach: two or three steps tell
# them from the others. Relative to the largest, what puts the blame on a floor: at a tenth of it
# floors join that do not bind, and others in turn because of these.
_SEPARATED, _BLAMED = 1e3, 0.3
CLOSE = 1.0 - 5e-15  # floors above are solved as floors of one, and then corrected to first order
_LIFT = 1e9  # times the variables: how far the multipliers of fixed outputs are taken
_UNIT = EPS / 2
_VARIANCE = 1e-12  # a variance this close to one is left alone


@dataclass(frozen=True)
class Candidate:
    """A dual point, the transformation it stands for, and which floors bind there.

    ``lam`` is NumPy's, the matrices lie where R does. ``complete`` tells whether the outputs whose
    floors do not bind meet these as well.
    """

    lam: Array
    H: Any
    T: Any
    binding: NDArray[np.bool_]
    complete: bool


@dataclass(frozen=True)
class DualPoint:
    """Multipliers (NumPy) and H of some variables."""

    members: Index
    lam: Array
    H: Any


def binding_floors(problem: Problem, state: State, size: float) -> NDArray[np.bool_]:
    """Guess which floors bind at a point of the central path, where all ``λ_j z_j`` are equal.

    A floor is taken to bind if its multiplier, relative to the objective of about ``size``, exceeds
    its slack, relative to the largest possible. Multipliers grow like ``(1 - ρ_j)^{-1/2}`` as
    floors tend to one. The completion tells whether the guess is right.
    """
    room = np.maximum(1.0 - problem.floor_values, np.finfo(np.float64).tiny)
    price = np.asarray(to_host(state.lam)) * np.sqrt(room) / size
    slack = np.minimum(np.asarray(to_host(state.z)) / (2.0 * room), 1.0)
    return problem.fixed | (price > slack)


def decided_outputs(
    problem: Problem, state: State, binding: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Array]:
    """Add to the ``binding`` outputs those that correlate with others at the end of a path.

    An output without a price is uncorrelated with all others at the optimum, and what it has
    outside the span of the sources, ``P_jj``, does not vanish along the path. Prices can fall over
    many orders of magnitude without a gap. An output whose ``P_jj`` exceeds its correlations is
    taken to have none; in between either does no harm. Also returns what to first order the floor
    of such an output may be missed by, twice the correlations that are given up.
    """
    G = to_host(problem.gram(state.T) + state.P)
    largest = np.max(np.abs(G) * to_host(problem.pairs), axis=0, initial=0.0)
    decided = binding | (diagonal(state.P) <= largest)
    return decided, np.where(decided, 0.0, 2.0 * largest)


def in_rows(T: Any, rows: Index, p: int) -> Any:
    """The rows of ``T`` at these places among ``p``, zeros elsewhere."""
    rest = np.setdiff1d(np.arange(p), rows)
    order = np.argsort(np.concatenate([rows, rest]))
    more = joined([T.T, zeros((T.shape[1], len(rest)), T)]).T if len(rest) else T
    return submatrix(more, order, np.arange(T.shape[1]))


def enlarged(R: Any, floors: Array, members: Index) -> NDArray[np.bool_]:
    """The floors of ``members`` and those that have to bind beside them.

    Beside outputs made of the binding variables, exact ones may not meet all other floors. The
    weights that prove it are largest where a floor is to blame; these join, until the completion
    meets what is left.
    """
    binding = np.zeros(len(floors), dtype=bool)
    binding[members] = True
    while not binding.all():
        rest = np.flatnonzero(~binding)
        residual, _ = complement(R, np.flatnonzero(binding), rest)
        best = best_exact(residual, floors[rest], separated=_SEPARATED)
        if best.feasible:
            break
        binding[rest[best.weights > _BLAMED * best.weights.max()]] = True
    return binding


def complete(
    R: Any,
    floors: Array,
    T: Any,
    dual: DualPoint,
    members: Index | None = None,
) -> Candidate:
    """Extend a transformation of ``members``, and a dual point of some of them, to all variables.

    ``members`` are those of the dual point unless given.
    """
    members = dual.members if members is None else members
    p, is_complete = len(floors), True
    if len(dual.members) == p:
        return Candidate(dual.lam, dual.H, T, np.ones(p, dtype=bool), True)
    binding = np.zeros(p, dtype=bool)
    binding[members] = True
    if not binding.all():
        T, best = complete_exactly(R, floors, members, T)
        T = _without_rounding(R, _without_rounding(R, T, binding), binding)
        is_complete = best.feasible
    lam = np.zeros(p)
    lam[dual.members] = dual.lam
    H = extended(dual.H, dual.members, np.setdiff1d(np.arange(p), dual.members), R)
    return Candidate(lam, H, T, binding, is_complete)


def _without_rounding(R: Any, T: Any, kept: NDArray[np.bool_]) -> Any:
    """Take out what rounding left of the correlations of completed outputs; ``kept`` stay.

    With R nearly singular these are off by cond(R) roundings, and the absolute sum adds up the
    errors of all pairs. To first order in ``E = TᵀRT - I`` the others lose the kept outputs times
    ``G_kk⁻¹ E_kc``, and half of their own ``E_cc``. Errors of 1e-4 need that twice.
    """
    if gram_rounding(R, T) > 0:
        return T
    E = gram_defect(R, T)
    k, c, every = np.flatnonzero(kept), np.flatnonzero(~kept), np.arange(len(kept))
    change = 0.5 * submatrix(T, every, c) @ submatrix(E, c, c)
    if len(k):
        G = plus_diagonal(submatrix(E, k, k), 1.0)
        mix = library(R).linalg.solve(G, submatrix(E, k, c))
        change = change + submatrix(T, every, k) @ mix
    order = np.argsort(np.concatenate([k, c]))
    nothing = zeros((len(kept), len(k)), T)
    return T - submatrix(joined([nothing, change]), every, order)


def extended(H: Any, members: Index, rest: Index, R: Any) -> Any:
    """``H`` of some variables as one of all; the bound wants H ≻ 0, so the others get a little."""
    if not len(rest):
        return submatrix(H, np.argsort(members), np.argsort(members))
    if not len(members):
        return 1e-16 * identity(len(rest), R)
    largest = float(np.max(diagonal(H), initial=0.0))
    negligible = 1e-13 * (min(largest, 1.0) or 1e-3)
    order = np.argsort(np.concatenate([members, rest]))
    across = zeros((len(members), len(rest)), H)
    return submatrix(blocks(H, across, None, negligible * identity(len(rest), H)), order, order)


def with_joined(problem: Problem, stiffness: Any, kept: Index, H: Any, T: Any, joins: Index) -> Any:
    """``H`` of all variables where those in ``joins`` begin to bind beside the ``kept`` ones.

    The weights w that refute their floors are a direction of ascent. To first order in the step s
    the outputs are still those of the completion: ``λ_j = s w_j``, ``H_jj = s S_jj`` with
    ``S = (D R̃ D)^{1/2}``, and ``H_Sj = λ_j T_S⁻¹ R_SS⁻¹ R_Sj``. The step maximises the bound to
    second order.
    """
    R, floors = problem.R, problem.floor_values[joins]
    residual, mix = complement(R, kept, joins)
    best = best_exact(residual, floors)
    across = library(R).linalg.solve(T, mix) * to_device(best.weights, R)[None, :]
    second = across.T @ library(R).linalg.solve(H, across)
    first = blocks(0.0 * H, across, across.T, best.S)
    every = np.concatenate([kept, joins])
    gain = float(best.weights @ floors - diagonal(best.S).sum())
    loss = inner(submatrix(stiffness, every, every) * first, first)
    step = gain / (0.5 * loss + 2.0 * float(diagonal(second).sum()))
    H = blocks(H, step * across, step * across.T, step * best.S + step**2 * second)
    rest = np.setdiff1d(np.arange(R.shape[0]), every)
    return extended(H, every, rest, R)


def make_feasible(R: Any, T: Any, floors: Array, pinned: NDArray[np.bool_]) -> Any:
    """Scale the columns of ``T`` to unit variance and move them onto their caps, where R lies.

    A column below its floor is turned towards its source until it lies on the rim of the cap; so is
    a ``pinned`` one from inside (its floor binds, and the rim is where the optimum is). The other
    columns keep their direction.
    """
    T = T / to_device(np.sqrt(1.0 + _excess_variance(R, T))[None, :], R)
    f = column_dots(R, T)
    # Floors are kept by aiming above them by what rounding can take, here and when the fidelities
    # are computed again: an inner product of n terms is off by at most γ_n |x|ᵀ|y| in any order of
    # summation, γ_n = n u / (1 - n u) (Higham, 2002, section 3.1).
    gamma = R.shape[0] * _UNIT / (1.0 - R.shape[0] * _UNIT)
    room = 2.0 * gamma * column_dots(abs(R), abs(T))
    target = np.where(floors < 1.0, floors + np.minimum(room, 0.1 * (1.0 - floors)), 1.0)
    turn = pinned | (f < target)
    if not turn.any():
        return T
    away = plus_diagonal(1.0 * T, -f)
    # Close to the source little is left, and its rounding must not grow with it.
    away = plus_diagonal(away, -column_dots(R, away))
    length = np.sqrt(np.maximum(column_dots(away, R @ away), 0.0))
    # A column that is its source already, or has to be, stays there.
    reach = np.sqrt(np.maximum(1.0 - target**2, 0.0))
    stay = (length <= 0.0) | (reach <= 0.0)
    factor = np.where(stay, 0.0, reach / np.where(stay, 1.0, length))
    along = np.where(stay, 1.0, target)
    turned = _turned(T, away, factor, along, turn)
    # With R nearly singular, the length above is off by cond(R) roundings; measured again to full
    # accuracy, the part that does not touch the fidelity makes up for it.
    off = np.where(stay | ~turn, 0.0, _excess_variance(R, turned))
    if np.max(np.abs(off), initial=0.0) > _VARIANCE:
        factor = factor * np.sqrt(np.maximum(1.0 - off / np.where(stay, 1.0, reach) ** 2, 0.0))
        turned = _turned(T, away, factor, along, turn)
    return turned


def _turned(T: Any, away: Any, factor: Array, along: Array, turn: NDArray[np.bool_]) -> Any:
    """Replace the columns ``turn`` by ``factor`` times ``away`` plus ``along`` the source."""
    keep = np.where(turn, 0.0, 1.0)
    mixed = T * to_device(keep[None, :], T) + away * to_device((factor * turn)[None, :], T)
    return plus_diagonal(mixed, along * turn)


def _excess_variance(R: Any, T: Any) -> Array:
    """``diag(TᵀRT) - 1``, to full accuracy where rounding would show."""
    if gram_rounding(R, T) > 0:
        return column_dots(T, R @ T) - 1.0
    return diagonal(gram_defect(R, T))


def correlation_of(R: Any, T: Any, *, precise: bool = False) -> Any:
    """``TᵀRT`` to full accuracy; ``precise`` as in :func:`skcoral.core.linalg.gram_defect`."""
    return plus_diagonal(gram_defect(R, T, precise=precise), 1.0)


def with_fixed(members: Index, lam: Array, H: Any, fixed: NDArray[np.bool_]) -> DualPoint:
    """Take the multipliers of outputs that are their sources towards infinity, and H with them."""
    lift = np.where(fixed, _LIFT * len(fixed), 0.0)
    return DualPoint(members, lam + lift, plus_diagonal(1.0 * H, lift) if fixed.any() else H)


def near_sources(
    R: Array, T: Array, H: Array, floors: Array, lam: Array
) -> tuple[Array, Array, Array]:
    """Correct outputs that were held at their sources for floors that are not quite one.

    To first order in the angle ``arccos ρ_j`` the output turns against the gradient ``T H_j`` of
    the criterion, and ``λ_j`` is the size of its tangential part over the angle.
    """
    close = np.flatnonzero((floors > CLOSE) & (floors < 1.0))
    K = criteria.off(H)[:, close]
    gradient = T @ K
    image = R @ gradient
    along = image[close, np.arange(len(close))]
    tangent = np.maximum(np.einsum("ij,ij->j", gradient, image) - along**2, 0.0)
    angle = np.sqrt(np.maximum(1.0 - floors[close] ** 2, EPS**2))
    price = np.sqrt(tangent) / angle
    T, lam, H = T.copy(), lam.copy(), H.copy()
    T[:, close] -= gradient / np.where(price > 0, price, np.inf)
    lam[close] = price
    least = np.abs(K).sum(axis=0) * 1e-6 + 1e-13
    H[close, close] = np.maximum(price * floors[close] - along, least)
    return T, lam, H
