"""Budgets and the frontier of a singular matrix: the least residual as a function of the floor."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import Array, column_dots
from skcoral.core.linalg import largest_residuals
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.problem import Callback, Problem
from skcoral.core.results import Frontier
from skcoral.core.solution import Budget, Solution
from skcoral.exceptions import InfeasibleError
from skcoral.solvers.singular.pairs import criterion_of
from skcoral.solvers.singular.problem import Answer, FrameProblem
from skcoral.solvers.singular.solver import frame_problem, solution_of
from skcoral.solvers.singular.threshold import frame_threshold

_FLOOR_DIGITS = 1e-9  # bounds on a floor that differ by no more count as equal


def singular_budget(asked: Problem, budget: float) -> Solution:
    """Find the largest common floor whose residual stays within ``budget``, at rank r < p.

    Raises
    ------
    InfeasibleError
        No transformation of this rank has a residual as small.
    """
    problem, settings = frame_problem(asked), asked.settings
    (r, p), least, criterion = problem.A.shape, problem.least, problem.criterion
    if budget < least * (1.0 - 1e-12):
        raise InfeasibleError(
            f"A residual of {budget:.6g} ({criterion}) is below {least:.6g}, the least that {p} "
            f"variables of rank {r} can have. Allow more, or drop variables that others determine."
        )
    budget = max(budget, least)
    answer, tightest = _largest_floor(problem, budget, settings.callback)
    if answer.objective > _allowed(budget):
        raise InfeasibleError(
            f"No transformation with a residual of {budget:.6g} ({criterion}) was found for this "
            f"matrix of rank {r}; {least:.6g} is proved to be impossible to go below, and what "
            f"was reached without any floor is {answer.objective:.6g}. Allow more."
        )
    floor, upper = float(answer.floors[0]), answer.highest_floor(budget)
    # the dual point of another floor may exclude more floors than that of the answer
    if tightest.highest_floor(budget) < upper - _FLOOR_DIGITS:
        upper = tightest.highest_floor(budget)
        answer.prove_by(tightest)
    goal = Budget(budget, max(upper, floor) if upper < 1.0 else 1.0)
    return solution_of(answer, goal)


def _allowed(budget: float) -> float:
    return budget + 1e-9 * max(1.0, budget)


def _largest_floor(
    problem: FrameProblem, budget: float, callback: Callback | None
) -> tuple[Answer, Answer]:
    """Bisect, with the tangents of the bound as a proof from above and as the next guess.

    Return the answer at the largest floor within the budget (at a floor of zero where there is
    none), and the answer whose tangent excludes most floors.
    """
    p, count = problem.A.shape[1], 0

    def visit(floor: float, start: Any = None) -> Answer:
        nonlocal count
        count += 1
        answer = problem.solve(np.full(p, floor), start=start)
        if callback is not None:
            callback(count, answer.objective, answer.lower_bound)
        return answer

    tightest = visit(1.0)
    if tightest.objective <= _allowed(budget):
        return tightest, tightest
    low, high, upper, guess = 0.0, 1.0, 1.0, 0.9
    inside: Answer | None = None
    for _ in range(60):
        answer = visit(guess, None if inside is None else inside.U)
        # the dual point bounds every common floor, linearly
        if answer.highest_floor(budget) < upper:
            upper, tightest = answer.highest_floor(budget), answer
        if answer.objective <= _allowed(budget):
            inside, low = answer, guess
        else:
            high = guess
        if upper - low <= 1e-9 or high - low <= 1e-9:
            break
        middle = 0.5 * (low + high)
        aimed = upper - 1e-3 * (upper - low) if answer.certified else middle
        if upper - low < 1e-6:
            aimed = upper - 1e-10
        guess = aimed if low < aimed < high else middle
    return visit(0.0) if inside is None else inside, tightest


def singular_frontier(asked: Problem, floors: Array | None, *, n_points: int = 25) -> Frontier:
    """Compute the frontier of a matrix of rank r < p: from the threshold to one by default."""
    problem, settings = frame_problem(asked), asked.settings
    p = problem.A.shape[1]
    edge = frame_threshold(problem.A)
    if floors is None:
        # even in the angle, where the curve is smooth up to a floor of one
        lowest = min(edge.lower, 1.0)
        floors = np.cos(np.linspace(np.arccos(lowest), 0.0, n_points if lowest < 1.0 else 1))
        floors[0] = lowest
    answers: dict[float, Answer] = {}
    start = edge.U
    for floor in sorted({float(floor) for floor in floors}):
        answer = problem.solve(np.full(p, floor), start=start if floor >= edge.lower else None)
        answers[floor], start = answer, answer.U
        if settings.callback is not None:
            settings.callback(len(answers), answer.objective, answer.lower_bound)
    points = [answers[float(floor)] for floor in floors]
    outputs = [answer.outputs for answer in points]
    fidelity = np.array([column_dots(problem.host, U) for U in outputs])
    worst = [largest_residuals(FactoredCorrelation(U)).max(initial=0.0) for U in outputs]
    total = np.array([criterion_of(U, "absolute") for U in outputs])
    steep = np.array([answer.slopes.sum() for answer in points])
    return Frontier(
        rho_min=floors,
        objective=np.array([answer.objective for answer in points]),
        lower_bound=np.array([answer.lower_bound for answer in points]),
        slope=np.where((floors >= 1.0) & (steep > 0.0), np.inf, steep),
        worst_residual=np.array(worst),
        mean_residual=total / max(0.5 * p * (p - 1), 1.0),
        min_fidelity=fidelity.min(axis=1),
        mean_fidelity=fidelity.mean(axis=1),
        threshold=edge.lower,
        criterion=problem.criterion,
        names=settings.names,
        pair_weights=problem.pair_weights,
    )
