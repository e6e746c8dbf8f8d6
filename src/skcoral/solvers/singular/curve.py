"""Budgets and the frontier of a singular matrix: the least residual as a function of the floor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.factored import factor_bound
from skcoral.core.arrays import Array, column_dots, to_device, to_host
from skcoral.core.deficiency import Deficiency
from skcoral.core.problem import Settings
from skcoral.core.results import Frontier
from skcoral.core.solution import Budget, Solution
from skcoral.exceptions import CertificateError, InfeasibleError
from skcoral.solvers.singular.answer import Answer
from skcoral.solvers.singular.outcome import frame_problem, solution_of
from skcoral.solvers.singular.pairs import largest_residuals
from skcoral.solvers.singular.problem import FrameProblem
from skcoral.solvers.singular.solver import Callback
from skcoral.solvers.singular.threshold import frame_threshold

_FLOOR_DIGITS = 1e-9  # bounds on a floor that differ by no more count as equal


def singular_budget(
    found: Deficiency,
    budget: float,
    settings: Settings,
    *,
    dense: bool = True,
    like: Any = None,
) -> Solution:
    """Find the largest common floor whose residual stays within ``budget``, at rank r < p.

    Raises
    ------
    InfeasibleError
        No transformation of this rank has a residual as small.
    """
    A = found.factor if like is None else to_device(found.factor, like)
    p = A.shape[1]
    problem = frame_problem(A, found, settings)
    criterion = problem.criterion
    if budget < problem.least * (1.0 - 1e-12):
        raise InfeasibleError(
            f"A residual of {budget:.6g} ({criterion}) is below {problem.least:.6g}, the least "
            f"that {p} variables of rank {found.rank} can have. Allow more, or drop variables that "
            "others determine."
        )
    budget = max(budget, problem.least)
    floor, answer, tightest = _largest_floor(problem, budget, settings.callback)
    if answer is None:
        raise InfeasibleError(
            f"No transformation with a residual of {budget:.6g} ({criterion}) was found for this "
            f"matrix of rank {found.rank}; {problem.least:.6g} is proved to be impossible to go "
            "below, and what was reached without any floor is "
            f"{problem.solve(np.zeros(p)).objective:.6g}. Allow more."
        )
    # The dual point of another floor may exclude more floors than that of the answer.
    solutions = []
    for dual in (answer, tightest):
        held = replace(answer, proof=dual.proof, share=dual.share)
        solutions.append(solution_of(problem, held, np.full(p, floor), found, dense=dense))
    own, other = (_highest_floor(each, budget, problem) for each in solutions)
    upper, solution = (own, solutions[0]) if own <= other + _FLOOR_DIGITS else (other, solutions[1])
    return replace(solution, goal=Budget(budget, max(upper, floor) if upper < 1.0 else 1.0))


def _highest_floor(solution: Solution, budget: float, problem: FrameProblem) -> float:
    """A common floor that no transformation within the budget exceeds, by the dual point."""
    given = solution.certificate, problem.criterion, problem.pair_weights, solution.rho_min
    try:
        proved = factor_bound(*given, np.asarray(to_host(problem.A)), Floats())
    except CertificateError:
        return np.inf
    return proved.highest_floor(budget, problem.criterion, float(solution.rho_min.max()))


def _largest_floor(
    problem: FrameProblem, budget: float, callback: Callback | None
) -> tuple[float, Answer | None, Answer]:
    """Bisect, with the tangents of the bound as a proof from above and as the next guess.

    Return the floor, the answer there, and the one whose tangent excludes most floors.
    """
    p = problem.A.shape[1]
    slack = 1e-9 * max(1.0, budget)
    count = 0

    def visit(floor: float, start: Any = None) -> Answer:
        nonlocal count
        count += 1
        answer = problem.solve(np.full(p, floor), start=start)
        if callback is not None:
            callback(count, answer.objective, answer.lower_bound)
        return answer

    best = tightest = visit(1.0)
    if best.objective <= budget + slack:
        return 1.0, best, best
    low, high, upper = 0.0, 1.0, 1.0
    inside: Answer | None = None
    guess = 0.9
    for _ in range(60):
        answer = visit(guess, None if inside is None else inside.U)
        slope = float(answer.slopes.sum())
        if slope > 0.0 and np.isfinite(slope):
            # the dual point bounds every common floor, linearly
            top = guess + (budget - answer.lower_bound) / slope
            if top < upper:
                upper, tightest = top, answer
        if answer.objective <= budget + slack:
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
    if inside is None:
        inside = visit(0.0)
        if inside.objective > budget + slack:
            return 0.0, None, tightest
    return low, inside, tightest


def singular_frontier(
    found: Deficiency,
    floors: Array | None,
    settings: Settings,
    *,
    n_points: int = 25,
    like: Any = None,
) -> Frontier:
    """Compute the frontier of a matrix of rank r < p: from the threshold to one by default."""
    A = found.factor if like is None else to_device(found.factor, like)
    p = A.shape[1]
    problem = frame_problem(A, found, settings)
    reached = frame_threshold(A, tol=problem.tol)
    edge = reached.lower
    if floors is None:
        # even in the angle, where the curve is smooth up to a floor of one
        angles = np.linspace(np.arccos(min(edge, 1.0)), 0.0, n_points if edge < 1.0 else 1)
        grid = np.cos(angles)
        grid[0] = min(edge, 1.0)
    else:
        grid = floors
    answers: dict[float, Answer] = {}
    start = reached.U
    for floor in sorted({float(floor) for floor in grid}):
        answer = problem.solve(np.full(p, floor), start=start if floor >= edge else None)
        answers[floor] = answer
        start = answer.U
        if settings.callback is not None:
            settings.callback(len(answers), answer.objective, answer.lower_bound)
    points = [answers[float(floor)] for floor in grid]
    outputs = [np.asarray(to_host(answer.U)) for answer in points]
    residuals = [largest_residuals(U) for U in outputs]
    fidelity = [column_dots(A, answer.U) for answer in points]
    slopes = [
        np.inf if floor >= 1.0 and answer.proof is not None else float(answer.slopes.sum())
        for floor, answer in zip(grid, points, strict=True)
    ]
    return Frontier(
        rho_min=grid,
        objective=np.array([answer.objective for answer in points]),
        lower_bound=np.array([answer.lower_bound for answer in points]),
        slope=np.array(slopes),
        worst_residual=np.array([most.max(initial=0.0) for most, _ in residuals]),
        mean_residual=np.array([mean for _, mean in residuals]),
        min_fidelity=np.array([f.min() for f in fidelity]),
        mean_fidelity=np.array([f.mean() for f in fidelity]),
        threshold=edge,
        criterion=problem.criterion,
        names=settings.names,
        pair_weights=problem.pair_weights,
    )
