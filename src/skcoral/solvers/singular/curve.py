"""Budgets and the frontier of a singular matrix: the least residual as a function of the floor."""

from __future__ import annotations

import numpy as np

from skcoral.core.arrays import Array, column_dots
from skcoral.core.linalg import largest_residuals
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.problem import Callback, Problem
from skcoral.core.results import Frontier
from skcoral.core.solution import Budget, Solution
from skcoral.exceptions import InfeasibleError
from skcoral.solvers.singular.pairs import criterion_of
from skcoral.solvers.singular.problem import NEAR, Answer, FrameProblem
from skcoral.solvers.singular.solver import frame_problem, solution_of
from skcoral.solvers.singular.threshold import frame_threshold

_FLOOR_DIGITS = 1e-9  # bounds on a floor that differ by no more count as equal
_LAST = 1e-5  # move of Newton's method whose square is below these digits
_ROUNDS = 20  # floors with a bound; some six where gaps are closed, two to four where they are open
_TRIALS = 20  # floors to which outputs are followed in a row
# shares of the budget that may be left over by that; 1e-8 throughout takes a third more time
_ROUGHLY, _CLOSELY = 1e-3, 1e-8
_GAIN = 1e-2  # of the open interval for the floor, by which a round has to raise it


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
    search = _Budget(problem, budget, settings.callback)
    answer, tightest = search.run()
    if not search.allows(answer):
        raise InfeasibleError(
            f"No transformation with a residual of {budget:.6g} ({criterion}) was found for this "
            f"matrix of rank {r}; {least:.6g} is proved to be impossible to go below, and what "
            f"was reached without any floor is {answer.objective:.6g}. Allow more."
        )
    floor, upper = _floor(answer), answer.highest_floor(budget)
    # the dual point of another floor may exclude more floors than that of the answer
    if tightest.highest_floor(budget) < upper - _FLOOR_DIGITS:
        upper = tightest.highest_floor(budget)
        answer.prove_by(tightest)
    goal = Budget(budget, max(upper, floor) if upper < 1.0 else 1.0)
    return solution_of(answer, goal)


class _Budget:
    """The search for the largest common floor within a budget."""

    def __init__(self, problem: FrameProblem, budget: float, callback: Callback | None) -> None:
        self.problem, self.budget, self.callback = problem, budget, callback
        self.count = 0

    def run(self) -> tuple[Answer, Answer]:
        """Let outputs and bounds meet from both sides.

        Return the answer at the largest floor within the budget (at a floor of zero where there is
        none), and the answer whose tangent excludes most floors.
        """
        tightest = self.visit(1.0)
        if self.allows(tightest):
            return tightest, tightest
        # 1. Outputs alone, followed from the sources down: about where the budget is met.
        inside = self.climb(tightest, 0.0, 1.0, closely=False)
        if inside is None:
            inside = self.visit(0.0)
            if not self.allows(inside):
                return inside, tightest
        guess, upper = _floor(inside), 1.0
        for _ in range(_ROUNDS):
            answer, before = self.visit(guess, inside.U), _floor(inside)
            reach = answer.highest_floor(self.budget)
            if reach < upper:
                upper, tightest = reach, answer
            if self.allows(answer) and guess >= before:
                inside = answer
            last, slope = guess, max(float(answer.proved.slopes.sum()), 1e-300)
            # where a residual as steep as the bound meets the budget
            guess += (self.budget - answer.objective) / slope - 0.1 * _FLOOR_DIGITS
            if answer.certified:
                # 2. The residual is convex: Newton's method comes down to the floor.
                if abs(upper - last) > _LAST:
                    guess = upper
                if abs(guess - last) <= _FLOOR_DIGITS:
                    break
                continue
            # 3. With a gap, better outputs are followed up to a floor where others may be better.
            inside = self.climb(answer, _floor(inside), upper, closely=True) or inside
            gain, left = _floor(inside) - before, upper - _floor(inside)
            if gain <= _GAIN * left or left <= _FLOOR_DIGITS or not self.problem.further:
                break
            guess = max(min(guess, upper), _floor(inside))
        return inside, tightest

    def allows(self, answer: Answer) -> bool:
        """Whether a residual is within the budget, but for rounding."""
        return answer.objective <= self.budget + 1e-9 * max(1.0, self.budget)

    def visit(self, floor: float, start: Array | None = None) -> Answer:
        """The best outputs and bound for a floor."""
        floors = np.full(self.problem.A.shape[1], floor)
        return self._reported(self.problem.solve(floors, start=start))

    def climb(self, near: Answer, low: float, high: float, *, closely: bool) -> Answer | None:
        """The highest floor between two to which outputs can be followed; None if there is none.

        By false position, until outputs nearly have the residual of the budget.
        """
        inside: Answer | None = None
        left = (_CLOSELY if closely else _ROUGHLY) * self.budget
        # excess over the budget at both ends, halved (Illinois) where an end does not move; the
        # lower one begins as a guess
        above = abs(near.objective - self.budget)
        below = -9.0 * above
        for _ in range(_TRIALS):
            excess = near.objective - self.budget
            if self.allows(near):
                below, above = min(excess, 0.0), 0.5 * above
            else:
                below, above = 0.5 * below, excess
            if high - low <= _FLOOR_DIGITS or (inside is near and excess >= -left):
                break
            share = np.clip(below / (below - above), 0.1, 0.9)
            floor = low + share * (high - low)
            moved = Answer(self.problem, np.full(self.problem.A.shape[1], floor))
            moved.descend(near.U[None], widest=NEAR if closely else np.inf)
            near = self._reported(moved)
            if self.allows(near):
                inside, low = near, floor
            else:
                high = floor
        return inside

    def _reported(self, answer: Answer) -> Answer:
        self.count += 1
        if self.callback is not None:
            self.callback(self.count, answer.objective, answer.lower_bound)
        return answer


def _floor(answer: Answer) -> float:
    return float(answer.floors[0])


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
    outputs = [answer.U for answer in points]
    fidelity = np.array([column_dots(problem.host, U) for U in outputs])
    worst = [largest_residuals(FactoredCorrelation(U)).max(initial=0.0) for U in outputs]
    total = np.array([criterion_of(U, "absolute") for U in outputs])
    steep = np.array([answer.proved.slopes.sum() for answer in points])
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
