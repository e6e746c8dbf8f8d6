"""The largest common floor within a residual budget: the inverse function of the frontier.

The least residual is a convex, increasing function of the floor with known slope. Each floor tried
gives a tangent, and where the tangent meets the budget is a bound on what is possible.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.core import criteria
from skcoral.core.results import OPTIMAL_GAP, Decorrelation
from skcoral.exceptions import NotCertifiedWarning, warn
from skcoral.solvers.exact import Options, threshold_result
from skcoral.solvers.tradeoff.frontier import Node, Path
from skcoral.solvers.tradeoff.results import as_result


def solve_budget(R: Any, budget: float, options: Options) -> Decorrelation:
    """Find the largest common floor whose least residual stays within ``budget``.

    ``options.tol`` is the largest distance of the floor found from the upper bound on it, and the
    callback is called as ``callback(point, objective, lower_bound)`` after each floor tried. The
    floor is in ``rho_min`` of the result; ``details["rho_upper"]`` bounds the common floor of every
    transformation within the budget.
    """
    path = Path(R, options)
    everything = criteria.value(options.criterion, path.R, options.pair_weights)
    if budget >= everything:
        return _result(path.solve(1.0), budget, 1.0, options)
    if budget == 0 and path.zero is not None:
        node = path.solve(path.edge)
        lam, H, upper = path.zero.proof()
        bound = 2.0 * float(lam.sum()) * (node.rho - upper)
        proved = replace(node.solved, lam=lam, H=H, lower_bound=bound)
        return _result(Node(node.rho, proved, 2.0 * float(lam.sum())), budget, upper, options)
    if budget == 0:
        exact = threshold_result(R, path.threshold, options)
        upper = min(path.threshold.upper, 1.0)
        return replace(exact, details={"budget": budget, "rho_upper": upper})
    # Squares grow quadratically from the threshold, the other criteria linearly.
    power = 0.5 if options.criterion == "squared" else 1.0
    close = 0.1 * options.tol

    def excess(node: Node) -> float:
        value, slope = node.solved.objective, node.slope if np.isfinite(node.slope) else 0.0
        # What the gap of a point leaves open, no further floor can close.
        if value <= budget and budget - value <= max(close * slope, 3.0 * node.solved.gap):
            return 0.0
        # Aim a little below the budget, so that the last point is within it.
        return float((value + 0.5 * close * slope) ** power - budget**power)

    node = path.highest(excess, xtol=close)
    # Nearer to ρ★ no floor has an accurate dual point.
    nearest = float(np.cos(np.arccos(path.edge) * (1.0 - 5e-7)))
    if node.rho < nearest:
        path.solve(nearest)
    best = min(path.nodes.values(), key=lambda node: _reach(node, budget))
    upper = max(_reach(best, budget), node.rho)
    if _reach(node, budget) > upper + OPTIMAL_GAP:
        # The tangent of another point holds for every floor.
        solved = node.solved.proved_by(best.solved)
        bound = best.solved.lower_bound + best.slope * (node.rho - best.rho)
        node = Node(node.rho, replace(solved, lower_bound=bound), best.slope)
    return _result(node, budget, upper, options)


def _reach(node: Node, budget: float) -> float:
    """The common floor that no transformation within the budget exceeds, by the node's dual.

    ``φ(ρ) ≥ bound + slope (ρ - node.rho)`` for every ρ.
    """
    left = budget - node.solved.lower_bound
    return min(node.rho + left / node.slope, 1.0) if node.slope > 0 else 1.0


def _result(node: Node, budget: float, upper: float, options: Options) -> Decorrelation:
    # What the dual point that is returned proves, and nothing that was proved on the way.
    upper = max(_reach(node, budget), upper)
    short = upper - node.rho
    proved = short <= OPTIMAL_GAP
    floors = np.full(len(node.solved.lam), node.rho)
    result = as_result(node.solved, floors, options, warn=proved)
    status = result.status
    if not proved:
        warn(
            f"the common floor {node.rho:.9g} is within the budget, but only floors above "
            f"{upper:.9g} are proved to exceed it: a gap of {short:.2e} is open; "
            "a larger max_iter may close it.",
            NotCertifiedWarning,
        )
        status = "best_found" if status == "optimal" else status
    return replace(result, status=status, details={"budget": budget, "rho_upper": upper})
