"""The largest common floor within a residual budget: the inverse function of the frontier.

The least residual is a convex, increasing function of the floor with known slope. Each floor tried
gives a tangent, and where the tangent meets the budget is a bound on what is possible.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.exact import KeptThreshold, solve_exact
from skcoral.exceptions import NotCertifiedWarning
from skcoral.results import OPTIMAL_GAP, Criterion, Decorrelation
from skcoral.tradeoff import criteria
from skcoral.tradeoff.frontier import Node, Path
from skcoral.tradeoff.results import as_result

Callback = Callable[[int, float, float], object]
_NEAREST = 1e-6  # of the way from ρ★: nearer floors have no dual point that is worth its digits


def solve_budget(
    R: Any,
    budget: float,
    *,
    names: Sequence[str],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
    threshold: KeptThreshold | None = None,
) -> Decorrelation:
    """Find the largest common floor whose least residual stays within ``budget``.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation matrix, positive definite.
    budget : float
        Largest acceptable value of the criterion.
    names : sequence of str
        The variables.
    criterion, pair_weights, max_iter
        As in :func:`solve_tradeoff`.
    tol : float
        Largest distance of the floor found from the upper bound on it.
    callback : callable, optional
        Called as ``callback(point, objective, lower_bound)`` after each floor tried.
    threshold : KeptThreshold, optional
        Where ρ★ of ``R`` is kept.

    Returns
    -------
    Decorrelation
        With the floor in ``rho_min``; ``details["rho_upper"]`` bounds the common floor of every
        transformation within the budget.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff import solve_budget
    >>> R = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> answer = solve_budget(R, 0.3, names=["a", "b"], criterion="worst")
    >>> round(float(answer.rho_min[0]), 6)
    0.951936
    """
    path = Path(
        R,
        criterion=criterion,
        pair_weights=pair_weights,
        tol=tol,
        max_iter=max_iter,
        threshold=threshold,
    )
    p = len(path.R)
    everything = criteria.value(criterion, path.R, pair_weights)
    details = {"budget": budget, "rho_upper": 1.0}
    if budget >= everything:
        node = path.solve(1.0)
        return _result(node, p, names, criterion, pair_weights, max_iter, details)
    if budget == 0 and criteria.pair_matrix(pair_weights, p)[np.triu_indices(p, 1)].all():
        exact = solve_exact(
            R,
            None,
            names=tuple(names),
            criterion=criterion,
            pair_weights=pair_weights,
            tol=tol,
            threshold=path.kept,
        )
        if isinstance(exact, Decorrelation):
            details["rho_upper"] = min(path.threshold.upper, 1.0)
            return replace(exact, details=details)
    node, details["rho_upper"] = _invert(path, budget, everything, tol, callback)
    return _result(node, p, names, criterion, pair_weights, max_iter, details)


def _invert(
    path: Path, budget: float, everything: float, tol: float, callback: Callback | None
) -> tuple[Node, float]:
    """Return the best floor within the budget and a bound on every other one."""
    inside = path.solve(path.edge)
    low, high = path.edge, 1.0
    # Squares grow quadratically from the threshold, the other criteria linearly.
    power = 0.5 if path.criterion == "squared" else 1.0
    share = max((budget / everything) ** power, _NEAREST)
    guess = float(np.cos(np.arccos(path.edge) * (1.0 - 0.5 * share)))
    upper, tangent = 1.0, inside
    for count in range(1, 61):
        node = path.solve(guess)
        value, slope = node.solved.objective, node.slope
        if callback is not None:
            callback(count, value, node.solved.lower_bound)
        if slope > 0:
            # φ(ρ) ≥ bound + slope (ρ - guess) for every ρ, so φ(ρ) ≤ budget caps ρ.
            cap = guess + (budget - node.solved.lower_bound) / slope
            upper, tangent = (cap, node) if cap < upper else (upper, tangent)
        if value <= budget:
            inside, low = node, guess
        else:
            high = guess
        # What the gap of a single solve leaves open, no further floor can close.
        blur = 4.0 * max(node.solved.gap, 0.0) / slope if slope > 0 else 0.0
        if upper - inside.rho <= max(0.1 * tol, blur) or high - low <= 4e-16:
            break
        guess = _next(node, low, high, upper, budget, power, tol)
    if _reach(inside, budget) > max(upper, inside.rho) + OPTIMAL_GAP:
        inside = _proved_by(tangent, inside)
    return inside, max(upper, inside.rho)


def _reach(node: Node, budget: float) -> float:
    """The common floor that no transformation within the budget exceeds, by the node's dual."""
    left = budget - node.solved.lower_bound
    return min(node.rho + left / node.slope, 1.0) if node.slope > 0 else 1.0


def _proved_by(tangent: Node, node: Node) -> Node:
    """``node`` with the dual point of another one, whose tangent holds for every floor.

    Below a budget of 1e-10 or so nothing is left to solve, and ρ★ itself has no dual point.
    """
    dual = tangent.solved
    bound = dual.lower_bound + tangent.slope * (node.rho - tangent.rho)
    solved = replace(node.solved, lower_bound=bound, lam=dual.lam, H=dual.H, binding=dual.binding)
    return Node(node.rho, solved, tangent.slope)


def _next(
    node: Node, low: float, high: float, upper: float, budget: float, power: float, tol: float
) -> float:
    """Newton's step: far away in the power of the objective that is nearly linear, else as is.

    Close by, the tangents' bound is better than the step needs to be; aiming a little below it ends
    within the budget.
    """
    value, slope = node.solved.objective, node.slope
    if slope > 0 and value > 0 and not 0.5 * budget < value < 2.0 * budget:
        guess = node.rho + (budget**power - value**power) / (power * value ** (power - 1.0) * slope)
    else:
        blur = max(node.solved.gap, 0.0) / slope if slope > 0 else 0.0
        guess = upper - max(0.05 * tol, 1e-3 * abs(upper - node.rho), 1.5 * blur)
    return guess if low < guess < high else 0.5 * (low + high)


def _result(
    node: Node,
    p: int,
    names: Sequence[str],
    criterion: Criterion,
    pair_weights: Array | None,
    max_iter: int,
    details: dict[str, float],
) -> Decorrelation:
    # What the dual point that is returned proves, and nothing that was proved on the way.
    details["rho_upper"] = max(_reach(node, details["budget"]), details["rho_upper"])
    short = details["rho_upper"] - node.rho
    proved = short <= OPTIMAL_GAP
    result = as_result(
        node.solved,
        np.full(p, node.rho),
        names=names,
        criterion=criterion,
        pair_weights=pair_weights,
        max_iter=max_iter,
        stacklevel=4,
        warn=proved,
    )
    status = result.status
    if not proved:
        warnings.warn(
            f"the common floor {node.rho:.9g} is within the budget, but only floors above "
            f"{details['rho_upper']:.9g} are proved to exceed it: a gap of {short:.2e} is open; "
            "a larger max_iter may close it.",
            NotCertifiedWarning,
            stacklevel=4,
        )
        status = "best_found" if status == "optimal" else status
    return replace(result, status=status, details=details)
