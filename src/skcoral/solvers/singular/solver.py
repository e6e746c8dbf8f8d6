"""The least sum of squared correlations of p outputs in r < p dimensions, with its proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, to_device, to_host
from skcoral.core.lowrank import welch
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.singular.answer import Answer
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import descend, squares, squares_and_gradients
from skcoral.solvers.singular.dual import FrameDual, maximise_bound
from skcoral.solvers.singular.primal import newton_outputs
from skcoral.solvers.singular.proof import gap_of, proof_of
from skcoral.solvers.singular.starts import descend_all

Callback = Callable[[int, float, float], object]

_FIRST = 60  # gradients that are spent on the rank bound before the dual is asked
_GRADIENTS = 5e9  # r²p of the gradients once the dual has spoken
_COARSE = 1e-4  # accuracy of the bound at which the outputs are looked at first
_EFFORT = 3e5  # r²p of all further starts together, where the gap stays open
STARTS = 24  # from other places, where the gap stays open; with 12 some best minima are missed
_AROUND = (0.5, 1.0)  # displacements of the sources: larger ones rarely find the best minimum
_ROOM = 1e-15  # above the floors, for the rounding of what is computed from the outputs


def solve_squares(
    A: Any,
    floors: Array,
    *,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
    start: Any = None,
    starts: int = STARTS,
) -> Answer:
    """Solve for the squared criterion in the factor form.

    Parameters
    ----------
    A : array of shape (r, p)
        Factor of the correlation matrix, ``AᵀA = R``, with unit columns.
    floors : ndarray of shape (p,)
        The least fidelities, in [0, 1].
    tol : float
        Gap to aim at, relative to ``max(1, objective)``.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(iteration, objective, lower_bound)``.
    start : array of shape (r, p), optional
        Outputs of a neighbouring problem to start from.
    starts : int
        Further places to start from, where the gap stays open.

    Examples
    --------
    Three vectors in the plane cannot be closer to orthogonal than at 120 degrees.

    >>> import numpy as np
    >>> from skcoral.solvers.singular.solver import solve_squares
    >>> A = np.array([[1.0, 0.0, 0.8], [0.0, 1.0, 0.6]])
    >>> answer = solve_squares(A, np.array([0.5, 0.5, 0.5]))
    >>> round(answer.objective, 9)  # (p²/r - p)/2
    0.75
    """
    r, p = A.shape
    least = welch(p, r)
    goal = min(tol, 1e-3)
    U = on_caps(A, A if start is None else start, floors)
    U, value, steps = descend(
        A,
        U,
        floors,
        bound=least,
        goal=0.1 * goal,
        max_iter=_FIRST,
        only_bound=True,
        patience=8,
    )
    if callback is not None:
        callback(steps, value, least)
    if value - least <= goal * max(1.0, value):
        U = on_caps(A, U, floors, room=_ROOM)
        return Answer(U, max(squares(U), least), least, None, steps)

    def judge(dual: FrameDual) -> bool:
        nonlocal U, value
        candidate = on_caps(dual.point.B, dual.point.U, floors)
        reached = squares(candidate)
        if reached < value:
            U, value = dual.Q @ candidate, reached
        if callback is not None:
            callback(steps + dual.n_iter, value, dual.bound)
        return value - dual.bound <= 0.1 * goal * max(1.0, value)

    dual = maximise_bound(A, floors, goal=_COARSE, max_iter=max_iter, judge=judge)
    later = int(np.clip(_GRADIENTS / (r * r * p), 200, 2000))
    more = 0
    if not judge(dual):
        U, value, more = _lowered(A, U, floors, dual, 3 * _COARSE, later)
        # Where the relaxation is not tight, digits of the bound that the gap hides are not worth it
        hidden = 1e-2 * (value - dual.bound) / max(1.0, value)
        aim = hidden if hidden > _COARSE else 0.0
        dual = maximise_bound(
            A, floors, goal=max(aim, 0.3 * goal), max_iter=max_iter, judge=judge, resume=dual
        )
        U, value, again = _lowered(A, U, floors, dual, 0.5 * goal, later)
        more += again
    if value - dual.bound > OPTIMAL_GAP * max(1.0, value):
        starts = int(min(starts, _EFFORT / (r * r * p)))
        U, value, extra = _other_starts(A, U, value, floors, dual.bound, 0.1 * goal, later, starts)
        more += extra
    U = on_caps(A, U, floors, room=_ROOM)
    value = squares(U)
    n_iter = steps + dual.n_iter + more
    proof = proof_of(dual)
    bound = value - gap_of(proof, A, U, floors)
    if bound <= least:
        return Answer(U, value, least, None, n_iter)
    return Answer(U, max(value, bound), bound, proof, n_iter)


def _lowered(
    A: Any, U: Any, floors: Array, dual: FrameDual, goal: float, later: int
) -> tuple[Any, float, int]:
    """Lower the sum of squares by Newton's method, and by gradients where that is not enough."""
    U, value, steps = newton_outputs(U, floors, dual, goal=goal)
    if value - dual.bound > goal * max(1.0, value):
        U, value, more = descend(A, U, floors, bound=dual.bound, goal=goal, max_iter=later)
        steps += more
    return U, value, steps


def _other_starts(
    A: Any, U: Any, value: float, floors: Array, bound: float, goal: float, later: int, starts: int
) -> tuple[Any, float, int]:
    """Look around where the gap is open: saddle points, and other local minima.

    The displacements come from a fixed seed, so that the same problem has the same answer.
    """
    if not starts:
        return U, value, 0
    r, p = A.shape
    sources, best = np.asarray(to_host(A)), np.asarray(to_host(U))
    noise = np.random.default_rng(0).normal(size=(starts, r, p)) / np.sqrt(r)
    moved = sources + np.resize(_AROUND, starts)[:, None, None] * noise
    moved[0] = best + 0.1 * noise[0]  # off a saddle point
    stack = on_caps(sources, moved, floors)
    best, reached, count = descend_from(
        sources, stack, floors, best, bound=bound, goal=goal, max_iter=later
    )
    return (to_device(best, A), reached, count) if reached < value else (U, value, count)


def descend_from(
    A: Array,
    stack: Array,
    floors: Array,
    U: Array,
    *,
    bound: float,
    goal: float,
    max_iter: int,
) -> tuple[Array, float, int]:
    """Lower the sum of squares from each of the outputs in ``stack``.

    Returns the best of them and of ``U``, its value, and the number of gradients.
    """
    r, p = A.shape
    value, count = squares(U), 0
    for most in (min(150, max_iter), max_iter // 4):
        stack, values, steps = descend_all(
            A,
            stack,
            floors,
            squares_and_gradients,
            step=np.full(len(stack), 0.25 * r / p),
            max_iter=most,
            patience=50,
            enough=lambda v: np.minimum(1e-3 * (v - bound), 1e-9 * np.maximum(1.0, v)),
            is_reached=lambda least: least - bound <= goal * max(1.0, least),
        )
        count += steps
        first = int(values.argmin())
        if values[first] < value:
            U, value = stack[first], float(values[first])
        near = values < value + 0.1 * (value - bound)
        if value - bound <= goal * max(1.0, value) or not near.any():
            break
        stack = stack[near]
    return U, value, count
