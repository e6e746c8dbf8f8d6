"""Which floors bind, and the outputs whose floors do not.

An output whose floor does not bind is uncorrelated with all others at the optimum. So the binding
outputs are solved among themselves, inside the span of their own sources, and the others are
completed exactly for the covariance that is left, with the largest mean fidelity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import (
    Array,
    block_symmetric,
    block_triangular,
    diagonal,
    identity,
    inner,
    library,
    submatrix,
    to_device,
    to_host,
    zeros,
)
from skcoral.solvers.exact import BestExact, best_exact, complement, complete_exactly
from skcoral.solvers.tradeoff.points import Problem, State

Index = NDArray[np.intp]

# Weights grow by up to twenty times a step where floors are out of reach: two or three steps tell
# them from the others. Relative to the largest, what puts the blame on a floor: at a tenth of it
# floors join that do not bind, and others in turn because of these.
_SEPARATED, _BLAMED = 1e3, 0.3
_MISSED = 1e-9  # a completed output misses its floor if it is short by more than this


@dataclass(frozen=True)
class Candidate:
    """A dual point, the transformation it stands for, and which floors bind there.

    ``lam`` is NumPy's, the matrices lie where R does. ``missed`` are the variables outside the
    binding set whose completed outputs do not meet their floors.
    """

    lam: Array
    H: Any
    T: Any
    binding: NDArray[np.bool_]
    missed: Index

    @property
    def complete(self) -> bool:
        """Whether every output meets its floor."""
        return not len(self.missed)


@dataclass(frozen=True)
class DualPoint:
    """Multipliers (NumPy) and H of some variables."""

    members: Index
    lam: Array
    H: Any


def binding_floors(
    problem: Problem, state: State, size: float, *, by_slack: bool = False
) -> NDArray[np.bool_]:
    """Guess which floors bind at a point of the central path, where all ``λ_j z_j`` are equal.

    A floor is taken to bind if its multiplier, relative to the objective of about ``size``, exceeds
    its slack, relative to the largest possible. Multipliers grow like ``(1 - ρ_j)^{-1/2}`` as
    floors tend to one. ``by_slack`` it need only exceed the cube of the slack: weights and chains
    of variables can make multipliers of binding floors small. The completion tells whether the
    guess is right.
    """
    room = np.maximum(1.0 - problem.floor_values, np.finfo(np.float64).tiny)
    price = np.asarray(to_host(state.lam)) * np.sqrt(room) / size
    slack = np.minimum(np.asarray(to_host(state.z)) / (2.0 * room), 1.0)
    return problem.fixed | (price > (slack**3 if by_slack else slack))


def enlarged(
    R: Any,
    floors: Array,
    binding: NDArray[np.bool_],
    known: dict[bytes, BestExact],
    *,
    once: bool = False,
) -> NDArray[np.bool_]:
    """The floors ``binding`` and those that have to bind beside them; ``once``: the first of them.

    Beside outputs made of the binding variables, exact ones may not meet all other floors. The
    weights that prove it are largest where a floor is to blame; these join, until the completion
    meets what is left. ``known`` is to hold that completion, the last one only.
    """
    binding = binding.copy()
    while not binding.all() and binding.tobytes() not in known:
        rest = np.flatnonzero(~binding)
        residual, _ = complement(R, np.flatnonzero(binding), rest)
        best = best_exact(residual, floors[rest], separated=_SEPARATED)
        if best.feasible:
            known.clear()
            known[binding.tobytes()] = best
            break
        binding[rest[best.weights > _BLAMED * best.weights.max()]] = True
        if once:
            break
    return binding


def complete(
    R: Any,
    floors: Array,
    T: Any,
    dual: DualPoint,
    members: Index | None = None,
    known: dict[bytes, BestExact] | None = None,
) -> Candidate:
    """Extend a transformation of ``members``, and a dual point of some of them, to all variables.

    ``members`` are those of the dual point unless given; ``known`` is as in :func:`enlarged`.
    """
    members = dual.members if members is None else members
    p = len(floors)
    if len(dual.members) == p:
        return Candidate(dual.lam, dual.H, T, np.ones(p, dtype=bool), members[:0])
    bind = np.zeros(p, dtype=bool)
    bind[members] = True
    rest = np.flatnonzero(~bind)
    missed = rest[:0]
    if len(rest):
        T, best = complete_exactly(R, floors, members, T, (known or {}).get(bind.tobytes()))
        if not best.feasible:  # ``members`` was too small
            short = best.fidelity < floors[rest] - _MISSED
            missed = rest[short] if short.any() else rest
    lam = np.zeros(p)
    lam[dual.members] = dual.lam
    H = extended(dual.H, dual.members, np.setdiff1d(np.arange(p), dual.members), R)
    return Candidate(lam, H, T, bind, missed)


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
    return submatrix(block_triangular(H, across, negligible * identity(len(rest), H)), order, order)


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
    first = block_symmetric(0.0 * H, across, best.S)
    every = np.concatenate([kept, joins])
    gain = float(best.weights @ floors - diagonal(best.S).sum())
    loss = inner(submatrix(stiffness, every, every) * first, first)
    step = gain / (0.5 * loss + 2.0 * float(diagonal(second).sum()))
    H = block_symmetric(H, step * across, step * best.S + step**2 * second)
    rest = np.setdiff1d(np.arange(R.shape[0]), every)
    return extended(H, every, rest, R)
