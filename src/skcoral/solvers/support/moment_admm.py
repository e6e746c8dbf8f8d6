"""The relaxation by second-order moments, solved by the alternating direction method.

One step projects onto the moments, where the equations hold, and onto the positive semidefinite
blocks; their difference gives multipliers, and any multipliers give a bound (theory: moments).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from skcoral.bounds.moments import MomentDual
from skcoral.core.arrays import Array
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.support.moments import Blocks, Relaxation

#: Seconds of processor time after which a search for a bound by moments ends.
TIME_LIMIT = 300.0

_STEPS = 100_000
_CHECK = 25  # steps from one bound to the next
_RELAXATION = 1.8  # beyond 1.9 the steps of small problems begin to oscillate
_PENALTY = 0.15
# The bound profits from small dual residuals: the primal one may be this many times larger.
_RATIO = 15.0
_CHANGE = 1.2
# The search ends where this many checks close less than this share of the gap to the goal.
_PATIENCE = 40
_STALLED = 3e-4
# Relative residual of the equations where floors couple them: each step starts from the last one.
_EQUATIONS = 1e-6


def bound_by_moments(
    relaxation: Relaxation,
    goal: float,
    tell: Callable[[float], bool],
) -> MomentDual:
    """Maximise the bound until it reaches ``goal``, the value of the best transformation known.

    ``tell`` is given the best bound from time to time, and ends the search by returning True; so
    does the processor time.
    """
    end = time.process_time() + TIME_LIMIT
    objective = relaxation.objective()
    constants = relaxation.blocks(np.zeros((relaxation.N, relaxation.N)))
    shift = relaxation.collected(constants)
    scale = relaxation.diagonal()
    penalty, state = _PENALTY, constants
    x = np.zeros_like(objective)
    best: tuple[float, Array, Array, Blocks] = (-np.inf, x, x, constants)
    previous, history = constants, list[float]()
    for step in range(1, _STEPS + 1):
        right = relaxation.collected(state) - shift
        x = _least_squares(relaxation, right - objective / penalty, scale, x)
        moments = relaxation.blocks(x)
        reflected = [2.0 * X - V for X, V in zip(moments, state, strict=True)]
        cone = relaxation.projected(reflected)
        state = [V + _RELAXATION * (P - X) for V, P, X in zip(state, cone, moments, strict=True)]
        if step % _CHECK == 0:
            duals = [penalty * (P - A) for P, A in zip(cone, reflected, strict=True)]
            S, constant, weights = relaxation.completed(duals)
            S, value = relaxation.best_corner(S, constant)
            if value > best[0]:
                best = (value, S, weights, duals)
            stop = tell(best[0])
            history.append(best[0])
            past = history[-min(len(history), _PATIENCE)]
            stalled = len(history) > _PATIENCE and best[0] - past <= _STALLED * (goal - best[0])
            primal, dual = _distance(cone, moments), penalty * _distance(cone, previous)
            if stop or best[0] >= goal or stalled or time.process_time() > end:
                break
            factor = _CHANGE if primal > 3 * _RATIO * dual else 1.0
            factor = 1 / _CHANGE if 3 * primal < _RATIO * dual else factor
            penalty *= factor
            state = [P + (V - P) / factor for P, V in zip(cone, state, strict=True)]
        previous = cone
    return relaxation.in_products(*best[1:])


def _least_squares(relaxation: Relaxation, right: Array, scale: Array, start: Array) -> Array:
    """Free parts whose blocks are nearest: directly where nothing couples them."""
    if not (len(relaxation.floored) or relaxation.worst):
        right[0, 0] = 0.0
        return right / scale
    solution, _, _ = conjugate_gradient(
        relaxation.normal, right, lambda r: r / scale, rtol=_EQUATIONS, max_iter=50, start=start
    )
    return np.asarray(solution)


def _distance(A: Blocks, B: Blocks) -> float:
    return float(np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(A, B, strict=True))))
