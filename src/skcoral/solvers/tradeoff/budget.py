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
    if budget == 0 and path.absolute is None:
        exact = threshold_solution(R, path.threshold, settings)
        return replace(exact, goal=Budget(budget, min(path.threshold.upper, 1.0)))
    # Squares grow quadratically from the threshold, the other criteria linearly.
    power = 0.5 if settings.criterion == "squared" else 1.0
    close = 0.1 * settings.tol

    def excess(node: Node) -> tuple[float, float]:
        value, slope = node.solved.objective, node.slope if np.isfinite(node.slope) else 0.0
        if node.rho <= path.edge:  # all that counts vanishes, up to rounding
            return -(budget**power), 0.0
        # What the gap of a point leaves open, no further floor can close.
        if value <= budget and budget - value <= max(close * slope, 3.0 * node.solved.gap):
            return 0.0, slope
        # Aim a little below the budget, so that the last point is within it.
        aim = max(value + 0.5 * close * slope, 0.0)
        return aim**power - budget**power, power * slope / max(aim, 1e-300) ** (1.0 - power)

    node = path.highest(excess, xtol=close)
    proofs = [*path.nodes.values(), *_beyond_zero(path, budget, settings)]
    best = min(proofs, key=lambda node: node.reach(budget))
    # Too close to ρ★ no floor has an accurate dual point: the tangent of one further off proves it.
    for share in (5e-7, 5e-6, 5e-5):
        further = float(np.cos(np.arccos(path.edge) * (1.0 - share)))
        if node.rho < further and best.reach(budget) > node.rho + settings.tol:
            best = min(best, path.solve(further), key=lambda node: node.reach(budget))
    upper = max(best.reach(budget), node.rho)
    if node.reach(budget) > upper + OPTIMAL_GAP:
        # The tangent of another point holds for every floor.
        bound = best.solved.lower_bound + best.slope * (node.rho - best.rho)
        proved = replace(node.solved, lam=best.solved.lam, H=best.solved.H, lower_bound=bound)
        node = Node(node.rho, proved, best.slope)
    return _solution(node, budget, upper, settings)


def _beyond_zero(path: Path, budget: float, settings: Settings) -> list[Node]:
    """The best proof of where the sum of absolute values vanishes, as one for the criterion.

    Every multiple of its dual point which lies in the domain of the criterion is one of the
    criterion. Squares charge the square of the multiple: the best is the one whose charge is the
    budget, and next to zero one that overstates the floor by ``_SHIFT``.
    """
    best = None if path.absolute is None else path.absolute.best_above_zero()
    if best is None:
        return []
    lam, H = best.solved.lam, best.solved.H
    if settings.criterion == "squared":
        charge = max(criteria.conjugate("squared", H, settings.pair_weights), 1e-300)
        scale = max(np.sqrt(budget / charge), _SHIFT * best.slope / charge)
    else:
        omega = criteria.pair_matrix(settings.pair_weights, len(lam))
        charge, scale = 0.0, (1.0 - 1e-13) / criteria.gauge(settings.criterion, H, omega)
    bound = scale * (best.solved.lower_bound - scale * charge)
    scaled = replace(best.solved, lam=scale * lam, H=scale * H, lower_bound=bound)
    return [Node(best.rho, scaled, scale * best.slope)]


def _solution(node: Node, budget: float, upper: float, settings: Settings) -> Solution:
    # What the dual point that is returned proves, and nothing that was proved on the way.
    goal = Budget(budget, max(node.reach(budget), upper))
    return node.solved.solution(np.full(len(node.solved.lam), node.rho), settings, goal)
