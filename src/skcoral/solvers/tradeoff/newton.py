"""Newton's method for the squared criterion once it is known which floors bind.

The equations of :mod:`~.interior` at τ = 0, with ``P = 0`` and ``z = 0``: every
floor is met with equality, ``λ`` follows from H by one linear solve, ``T = D_λ H⁻¹``, and what is
left is

    TᵀRT - I = stiffness ∘ off(H).

Where the squared criterion may be entered close to its optimum, from an exact decorrelator.

Two dual points are at hand. Weights w that prove the floors out of reach of exact decorrelation,
``tr S < wᵀρ``, are a direction of ascent ``(λ, H) = s (w, S)``: good just above the threshold. And
a transformation that meets the floors, here the exact one turned towards the sources, has
``off(H) = ω∘off(TᵀRT)`` if it is optimal, and ``T H = D_λ`` gives the diagonal: good from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.core.arrays import (
    cholesky_or_none,
    diagonal,
    inner,
    library,
    norm,
    own_diagonal,
    plus_diagonal,
    row_products,
    solve_factored,
    to_device,
    to_host,
)
from skcoral.solvers.exact import BestExact, ExactThreshold
from skcoral.solvers.tradeoff.binding import make_feasible
from skcoral.solvers.tradeoff.equations import Linearisation, equations
from skcoral.solvers.tradeoff.points import Problem, Quadratic

_ACCURACY = (1e-3, 0.1)  # of an iterated solve, in between as the residual: digits to be gained
_MAX_STEPS = 20  # between two changes of the binding floors; a start close by needs fewer
# Lengths of a step, and shorter ones before a floor leaves that the completion has called back:
# without these, chains of close variables drop and join the same floors time and again.
_LENGTHS, _SHORTER = (1.0, 0.5, 0.25), (0.1, 0.04)
# Share of the dual function that a further step has to gain: the root of it is about what T changes
# by. A thousand times more saves another step in many problems, and leaves outputs off by 5e-8.
_SETTLED = 1e-18
_FEASIBLE = 1e-9  # relative residual that counts as solved where rounding stops the method


@dataclass(frozen=True)
class Stationary:
    """A point at which every floor is met with equality.

    ``residual`` is what is left of the equations, ``value`` the concave dual function that they are
    the derivative of (unless outputs are held at their sources).
    """

    problem: Problem
    model: Quadratic
    H: Any
    B: Any
    lam: Any
    G: Any
    value: float

    @property
    def T(self) -> Any:
        """The transformation."""
        return self.problem.outputs(self.H, self.B, self.lam)

    @property
    def gradient(self) -> Any:
        """What is left of the equations."""
        left = plus_diagonal(self.G - self.model.residual(self.H), -1.0)
        return left if self.problem.live is self.problem.block else left * self.problem.live

    @cached_property
    def residual(self) -> float:
        """Norm of the gradient."""
        return norm(self.gradient)


def evaluate(problem: Problem, H: Any, model: Quadratic) -> Stationary | None:
    """Multipliers and correlations at ``H``; None outside the domain."""
    B = problem.inverse(H)
    K = None if B is None else cholesky_or_none(problem.with_held(problem.R * B))
    if K is None:
        return None
    free, fixed = problem.free, problem.any_fixed
    missing = problem.floors
    if fixed:
        missing = missing - row_products(problem.R, problem.outputs(H, B, 0.0 * missing).T)
    lam = solve_factored(K, missing * free)
    del K
    W = problem.root.T @ problem.outputs(H, B, lam)
    squares = float(diagonal(H).sum()) + 0.5 * inner(model.residual(H), H)
    value = inner(problem.floors * free, lam) - squares if not fixed else -np.inf
    return Stationary(problem, model, H, B, lam, W.T @ W, value)


@dataclass(frozen=True)
class Refined:
    """Where Newton's method stopped; ``idle`` are the floors that turned out not to bind."""

    H: Any
    lam: Any
    T: Any
    idle: NDArray[np.bool_]
    n_iter: int


def refine(
    problem: Problem,
    at: list[Any],
    model: Quadratic,
    *,
    goal: float,
    max_iter: int,
    hold: bool = False,
    report: Callable[[Stationary], object] | None = None,
) -> Refined | None:
    """Solve for floors that all bind, to a residual of ``goal``; None if H is too far.

    It begins at the last H of ``at``, which is not kept.
    Stops early at floors that do not bind: their multipliers become negative, or would if a step
    were not cut short by the boundary of the domain. With ``hold``, for floors of which some are
    known to bind, shorter steps that keep all multipliers positive are preferred.
    """
    point = evaluate(problem, at.pop(), model)
    if point is None:
        return None
    size, steps, settled = problem.p**0.5, 0, False
    while True:
        idle = _negative(problem, point.lam)
        if idle.any() or settled or point.residual <= goal * size:
            return Refined(point.H, point.lam, point.T, idle, steps)
        if steps >= min(max_iter, _MAX_STEPS):
            break
        step = _direction(problem, point, model)
        if step is None:
            break
        steps += 1
        trial = _line_search(problem, point, step, model, hold)
        if trial is None:
            idle = _negative(problem, point.lam + step.lam)
            if idle.any() and not idle.all():
                return Refined(point.H, point.lam, point.T, idle, steps)
            break
        # The slope falls like the square of the residual.
        left = step.slope * (trial.residual / point.residual) ** 2
        settled = left <= _SETTLED * trial.value
        del step
        point = trial
        if report is not None:
            report(point)
    if point.residual > max(goal, _FEASIBLE) * size:
        return None
    return Refined(point.H, point.lam, point.T, idle, steps)


def _negative(problem: Problem, lam: Any) -> NDArray[np.bool_]:
    return ~problem.fixed & (np.asarray(to_host(lam)) <= 0.0)


@dataclass(frozen=True)
class _Direction:
    """Newton's changes of H and λ, and how fast the dual function rises along them."""

    V: Any
    lam: Any
    slope: float


def _direction(problem: Problem, point: Stationary, model: Quadratic) -> _Direction | None:
    """Newton's direction; None where its equations are singular to rounding."""
    none = 0.0 * point.lam
    C = problem.R @ point.T
    at = Linearisation(problem, point.H, point.B, C, point.G, point.lam, none, model.stiffness)
    accuracy = min(max(point.residual / problem.p**0.5, _ACCURACY[0]), _ACCURACY[1])
    try:
        system = equations(at, accuracy=accuracy)
        V, _ = system.solve(point.gradient, none)
    except sla.LinAlgError:  # iterated equations are formed, and factorised, while being solved
        return None
    if not np.isfinite(inner(V, V)):
        return None
    return _Direction(V, system.multipliers(V, none), inner(point.gradient, V))


def _line_search(
    problem: Problem, point: Stationary, step: _Direction, model: Quadratic, hold: bool
) -> Stationary | None:
    """Take the longest step that gains enough; shorter ones are cut by floors that do not bind.

    With ``hold`` it is the longest with positive multipliers, if there is one.
    """
    longest: Stationary | None = None
    for length in (*_LENGTHS, *(_SHORTER if hold else ())):
        trial = evaluate(problem, point.H + length * step.V, model)
        if trial is not None and (
            trial.residual < (1.0 - 0.3 * length) * point.residual
            or trial.value > point.value + 0.1 * length * step.slope
        ):
            if not hold or not _negative(problem, trial.lam).any():
                return trial
            longest = longest or trial
    return longest


def entry(problem: Problem, model: Quadratic, exact: BestExact | ExactThreshold) -> list[Any]:
    """Return the H of the better bound; empty if neither has positive multipliers throughout."""
    points = [_turned(problem, model, exact), _refuted(problem, model, exact)]
    known = [at for at in points if at is not None and float(library(at.lam).min(at.lam)) > 0.0]
    return [max(known, key=lambda at: at.value).H] if known else []


def _turned(
    problem: Problem, model: Quadratic, exact: BestExact | ExactThreshold
) -> Stationary | None:
    R, live = problem.R, problem.pairs
    T = make_feasible(
        R, to_device(exact.T, R), problem.floor_values, np.zeros(problem.p, dtype=bool)
    )
    C = R @ T
    G = T.T @ C
    K = live / (model.stiffness + (1.0 - live)) * G
    fidelity = own_diagonal(C)
    own = fidelity * row_products(C, K) - row_products(G, K)
    own = own / (1.0 - fidelity * fidelity + 1e-15)
    xp = library(R)
    least = 1e-3 * float(xp.mean(abs(own)))
    own = xp.where(own > least, own, least + 0.0 * own)
    return evaluate(problem, plus_diagonal(1.0 * K, own), model)


def _refuted(
    problem: Problem, model: Quadratic, exact: BestExact | ExactThreshold
) -> Stationary | None:
    if exact.S.shape[0] < problem.p:  # a threshold that some variables do not bind
        return None
    S = to_device(exact.S, problem.R) * problem.live
    gain = float(exact.weights @ problem.floor_values) - float(diagonal(S).sum())
    loss = 0.5 * inner(model.stiffness * S, S)
    return evaluate(problem, gain / loss * S, model) if min(gain, loss) > 0 else None
