"""Newton's method for the squared criterion once it is known which floors bind.

The equations of :mod:`skcoral.tradeoff.interior` at τ = 0, with ``P = 0`` and ``z = 0``: every
floor is met with equality, ``λ`` follows from H by one linear solve, ``T = D_λ H⁻¹``, and what is
left is

    TᵀRT - I = stiffness ∘ off(H).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral._arrays import (
    cholesky_or_none,
    inner,
    inverse_factored,
    library,
    norm,
    row_products,
    solve_lower_factored,
)
from skcoral.tradeoff.equations import Linearisation, equations
from skcoral.tradeoff.pairs import Quadratic, Response
from skcoral.tradeoff.points import Problem

_ACCURACY = 1e-2  # of an iterated solve: close by, Newton's method gains these digits a step
_ROUNDING = 1e-11  # relative residual below which no further digit is expected
_MAX_STEPS = 16  # a start close by needs fewer
_FEASIBLE = 1e-9  # relative residual that counts as solved where rounding stops the method


@dataclass(frozen=True)
class Stationary:
    """A point at which every floor is met with equality.

    ``residual`` is what is left of the equations, ``value`` the concave dual function that they are
    the derivative of (unless outputs are held at their sources).
    """

    H: Any
    B: Any
    lam: Any
    T: Any
    C: Any
    G: Any
    gradient: Any
    residual: float
    value: float


def evaluate(problem: Problem, H: Any, model: Quadratic) -> Stationary | None:
    """Multipliers, transformation and residual at ``H``; None outside the domain."""
    factor = problem.definite(H)
    if factor is None:
        return None
    B = inverse_factored(factor)
    free, fixed = problem.free, problem.fixed.any()
    T = 0.0 * B
    if fixed:
        B = B * problem.block
        across = H * (1.0 - free)[:, None] * free[None, :]
        T = problem.held - across @ B
    on = problem.block
    K = cholesky_or_none(problem.R * B * on + problem.held)
    if K is None:
        return None
    reached = row_products(problem.R, T.T) if fixed else 0.0 * free
    lam = solve_lower_factored(K, (problem.floors - reached) * free)
    T = T + lam[:, None] * B
    W = problem.root.T @ T
    G = W.T @ W
    gradient = (G - problem.identity - model.residual(H)) * problem.live
    squares = inner(H, problem.identity) + 0.5 * inner(model.residual(H), H)
    value = inner(problem.floors * free, lam) - squares if not fixed else -np.inf
    return Stationary(H, B, lam, T, problem.root @ W, G, gradient, norm(gradient), value)


def refine(
    problem: Problem, H: Any, model: Quadratic, *, max_iter: int
) -> tuple[Stationary | None, int]:
    """Solve for floors that all bind, from a point close by; None if it is not close enough.

    Stops at a multiplier that is not positive: that floor does not bind. Returns the point and the
    number of steps.
    """
    point = evaluate(problem, H, model)
    if point is None:
        return None, 0
    xp, size = library(point.lam), problem.p**0.5
    slow = 0
    steps = 0
    while point.residual > _ROUNDING * size and steps < min(max_iter, _MAX_STEPS) and slow < 6:
        if float(xp.min(point.lam + (1.0 - problem.free))) <= 0.0:
            return point, steps
        at = Linearisation(
            R=problem.R,
            H=point.H,
            B=point.B,
            C=point.C,
            G=point.G,
            P=0.0 * point.G,
            lam=point.lam,
            z=0.0 * point.lam,
            floors=problem.floors,
            free=problem.free,
            live=problem.live,
            stiffness=model.stiffness,
            identity=problem.identity,
        )
        try:
            system = equations(at, accuracy=_ACCURACY)
        except sla.LinAlgError:
            break
        response = Response(model.stiffness, model.residual(point.H))
        V, _ = system.solve(point.gradient, 0.0 * point.lam, response)
        if not np.isfinite(inner(V, V)):
            break  # the equations are singular to rounding
        steps += 1
        length = 1.0
        trial = None
        while length > 0.1:
            trial = evaluate(problem, point.H + length * V, model)
            if trial is not None and (
                trial.residual < (1.0 - 0.3 * length) * point.residual
                or trial.value > point.value + 0.1 * length * inner(point.gradient, V)
            ):
                break
            trial, length = None, 0.5 * length
        if trial is None:
            break
        slow = slow + 1 if trial.residual > 0.3 * point.residual else 0
        point = trial
    if point.residual > _FEASIBLE * size:
        return None, steps
    return point, steps
