"""The largest common floor within a residual budget: the inverse function of the frontier.

The least residual is a convex, increasing function of the floor with known slope. Each floor tried
gives a tangent, and where the tangent meets the budget is a bound on what is possible.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.core import criteria
from skcoral.core.problem import Settings
from skcoral.core.solution import Budget, Solution
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.exact import threshold_solution
from skcoral.solvers.tradeoff.frontier import Node, Path

_SHIFT = 1e-9  # by which a finite multiple of a dual point overstates a floor for squares


def solve_budget(R: Any, budget: float, settings: Settings) -> Solution:
    """Find the largest common floor whose least residual stays within ``budget``.

    ``settings.tol`` is the largest distance of the floor found from the upper bound on it, and the
    callback is called as ``callback(point, objective, lower_bound)`` after each floor tried. The
    floor is in ``rho_min`` of the solution, and its goal bounds the common floor of every
    transformation within the budget.
    """
    path = Path(R, settings)
    if budget >= path.everything:
        return _solution(path.solve(1.0), budget, 1.0, settings)
    best = None if path.absolute is None else path.absolute.best_above_zero()
    if budget == 0 and best is not None:
        node = _proved(path.solve(path.edge), best, settings)
        return _solution(node, budget, node.rho, settings)
    if budget == 0:
        exact = threshold_solution(R, path.threshold, settings)
        return replace(exact, goal=Budget(budget, min(path.threshold.upper, 1.0)))
    # Squares grow quadratically from the threshold, the other criteria linearly.
    power = 0.5 if settings.criterion == "squared" else 1.0
    close = 0.1 * settings.tol

    def excess(node: Node) -> tuple[float, float]:
        value, slope = node.solved.objective, node.slope if np.isfinite(node.slope) else 0.0
        # What the gap of a point leaves open, no further floor can close.
        if value <= budget and budget - value <= max(close * slope, 3.0 * node.solved.gap):
            return 0.0, slope
        # Aim a little below the budget, so that the last point is within it.
        aim = max(value + 0.5 * close * slope, 0.0)
        return aim**power - budget**power, power * slope / max(aim, 1e-300) ** (1.0 - power)

    node = path.highest(excess, xtol=close)
    best = min(path.nodes.values(), key=lambda node: node.reach(budget))
    upper = max(best.reach(budget), node.rho)
    if node.reach(budget) > upper + OPTIMAL_GAP:
        # The tangent of another point holds for every floor.
        bound = best.solved.lower_bound + best.slope * (node.rho - best.rho)
        proved = replace(node.solved, lam=best.solved.lam, H=best.solved.H, lower_bound=bound)
        node = Node(node.rho, proved, best.slope)
    return _solution(node, budget, upper, settings)


def _proved(node: Node, best: Node, settings: Settings) -> Node:
    """The highest floor at which the criterion vanishes, proved by the sum of absolute values.

    Every multiple of the dual point ``best`` of that sum which lies in the domain of the criterion
    is one of the criterion; squares charge its square.
    """
    omega = criteria.pair_matrix(settings.pair_weights, len(node.solved.lam))
    lam, H = best.solved.lam, best.solved.H
    if settings.criterion == "squared":
        charge = criteria.conjugate("squared", H, settings.pair_weights)
        scale = _SHIFT * best.slope / max(charge, 1e-300)
    else:
        charge, scale = 0.0, (1.0 - 1e-13) / criteria.gauge(settings.criterion, H, omega)
    slope = scale * best.slope
    bound = scale * (best.solved.lower_bound - scale * charge) + slope * (node.rho - best.rho)
    proved = replace(node.solved, lam=scale * lam, H=scale * H, lower_bound=bound)
    return Node(node.rho, proved, slope)


def _solution(node: Node, budget: float, upper: float, settings: Settings) -> Solution:
    # What the dual point that is returned proves, and nothing that was proved on the way.
    goal = Budget(budget, max(node.reach(budget), upper))
    return node.solved.solution(np.full(len(node.solved.lam), node.rho), settings, goal)
