"""From a solution to a result: the one place that sets bound, status and prices.

Solvers work in rounded numbers. A dual point whose numbers are small proves its bound but for a
rounding that ``_AIM`` covers; where floors are next to one or variables nearly collinear, the
rounding exceeds what is promised, and the bound is evaluated again with every rounding enclosed.
A result says no more than its certificate proves.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Floats
from skcoral.certificates.claims import claim_support
from skcoral.certificates.evaluation import (
    Attained,
    evaluate,
    left_open,
    prices_of,
)
from skcoral.certificates.ledger import Ledger
from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.linalg import many_digits, of_unit_variance, precise_product, raised_to_floors
from skcoral.core.problem import Problem
from skcoral.core.results import (
    Decorrelation,
    Frontier,
    RestrictedDecorrelation,
    SingularDecorrelation,
    Status,
    Threshold,
)
from skcoral.core.solution import Answer, Floors, Solution
from skcoral.core.tolerances import (
    EXACT_TOL,
    FLOOR_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
)
from skcoral.exceptions import CertificateError, NotCertifiedWarning, warn

_AIM = 0.9  # of what is promised, so that rounding does not decide a re-check


def certify(problem: Problem, solution: Solution) -> Decorrelation:
    """Return the result with the bound, the status and the prices that the dual point proves.

    Warns where the gap is open.
    """
    R, dense = problem.sources.R, problem.sources.dense
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        result = _on_variables(problem, _reported(problem, solution))
        if dense and _rounding_matters(result):
            result = rechecked(result, R)
        result = replace(result, status=_status(result, solution.room))
        if isinstance(result, RestrictedDecorrelation):
            result = _with_known_prices(result, R)
    if not result.is_certified and not result.is_restricted:
        _warn(result)  # with restrictions the problem is not convex: an open gap is the rule
    return replace(result, R=R if dense else None)


def certify_threshold(result: Threshold) -> Threshold:
    """Return a threshold; warn where its ends are apart."""
    if result.status != "optimal" and result.rank == len(result.names):
        warn(
            f"The threshold lies between {result.lower:.9g} and {result.upper:.9g}: the gap of "
            f"{result.gap:.1e} is wider than tol={result.tol:.1e} after {result.n_iter} steps. "
            "Both ends are valid; nearly collinear variables widen the gap by rounding.",
            NotCertifiedWarning,
        )
    return result


def certify_frontier(curve: Frontier) -> Frontier:
    """Return a frontier; warn where points have an open gap."""
    is_open = curve.gap > OPTIMAL_GAP * np.maximum(1.0, curve.objective)
    if is_open.any():
        warn(
            f"{int(is_open.sum())} of the {len(curve)} floors left a gap open, the widest "
            f"{float(curve.gap[is_open].max()):.2e}; both ends of each are in the result.",
            NotCertifiedWarning,
        )
    return curve


def _reported(problem: Problem, solution: Solution) -> Decorrelation:
    """The result as the numbers of the solver have it, before its status."""
    kind, more = _type_of(problem, solution)
    exact = solution.certificate.is_exact
    shared = {f.name: getattr(solution, f.name) for f in fields(Answer)}
    shared["lower_bound"] = max(min(solution.lower_bound, solution.objective), 0.0)
    result = kind(
        criterion=problem.settings.criterion,
        prices=np.zeros(len(solution.rho_min)),
        weights=solution.slopes if exact else 0.5 * solution.slopes,
        status="best_found" if solution.converged else "not_converged",
        names=problem.matrix.names,
        pair_weights=problem.settings.pair_weights,
        **shared,
        **more,
    )
    return result if exact else replace(result, prices=prices_of(result, solution.slopes))


def _type_of(problem: Problem, solution: Solution) -> tuple[type[Decorrelation], dict[str, Any]]:
    """The type of the result, and its own fields."""
    if solution.certificate.kind == "support":
        anchors = None if problem.composites is None else problem.composites.B
        return RestrictedDecorrelation, {"search": solution.search, "anchors": anchors}
    if problem.matrix.deficiency is not None:
        return SingularDecorrelation, {"reason": problem.matrix.deficiency.explain()}
    return Decorrelation, {}


def _status(result: Decorrelation, room: float) -> Status:
    """What follows from residuals and gap; in the exact regime from the ``room`` of fidelities."""
    open_ended: Status = "not_converged" if result.status == "not_converged" else "best_found"
    if result.certificate.is_exact or result.is_restricted:
        uncorrelated = criteria.value("worst", result.correlation) <= _AIM * EXACT_TOL
        if uncorrelated and (result.is_restricted or room <= _AIM * MEAN_TOL):
            return "exact"
        if result.certificate.is_exact:
            return "best_found" if uncorrelated else "not_converged"
    floor = float(result.rho_min.max())
    left = left_open(result.goal, floor, result.gap, result.objective)
    return "optimal" if left <= _AIM else open_ended


def _on_variables(problem: Problem, result: Decorrelation) -> Decorrelation:
    """Coefficients on the variables instead of on the composites."""
    composites, R = problem.composites, problem.sources.R
    if composites is None or result.is_restricted:
        return result
    T = precise_product(composites.unit, result.T)
    if problem.sources.dense:
        # An exact decorrelator is not turned for a miss that does not count.
        exact = result.certificate.is_exact
        floors = result.rho_min - (0.5 * FLOOR_TOL if exact else 0.0)
        T = raised_to_floors(R, T, composites.unit, floors)
    return replace(result, T=T, anchors=composites.B)


def _rounding_matters(result: Decorrelation) -> bool:
    """Whether a dual point or T is so large that rounding shows in what is promised.

    For a matrix of deficient rank the best H of a trade-off is singular as well: however small its
    numbers, what H⁻¹ adds to the bound has lost digits.
    """
    if result.deficiency and result.certificate.kind == "tradeoff":
        return True
    # A residual above one is promised relative to itself.
    unit, arrays = max(result.objective, 1.0), result.certificate.arrays
    of_dual = () if result.certificate.is_exact else arrays.values()
    return any(many_digits(a, result.T, unit) for a in (np.ones(1), *of_dual))


def rechecked(result: Decorrelation, R: Array) -> Decorrelation:
    """Return the result with the numbers that T has, and the bound that its dual point proves."""
    result = replace(result, T=of_unit_variance(R, result.T))
    attained = Attained(result, R, Floats())
    result = replace(
        result,
        correlation=attained.correlation.spread(symmetric=True)[0],
        fidelity=attained.fidelity.middle,
        objective=float(attained.residual.middle),
    )
    return replace(result, lower_bound=min(_proved(result, attained, R), result.objective))


def _proved(result: Decorrelation, attained: Attained, R: Array) -> float:
    """The lower bound that the dual point proves; zero where there is none, or only rounding."""
    with suppress(CertificateError):
        return max(0.0, float(evaluate(result, attained, R, Floats()).bound.lower))
    return 0.0


def _with_known_prices(result: RestrictedDecorrelation, R: Array) -> Decorrelation:
    """Withdraw prices that do not follow from the slope of the criterion at T."""
    ledger = Ledger(result, R, None, Floats())
    with suppress(CertificateError):  # R is too nearly singular to say
        claim_support(ledger)
        if all(claim.holds for claim in ledger.claims if claim.name != "support"):
            return result
    unknown = np.full(len(result.names), np.nan)
    return replace(result, prices=unknown, weights=unknown)


def _warn(result: Decorrelation) -> None:
    """Say that optimality is not proved, with the numbers."""
    # What was asked decides which gap is told: of the outputs, the mean, the floor or the residual.
    goal, digits = result.goal, "unless nearly collinear variables leave no more digits"
    if result.certificate.is_exact and result.status == "not_converged":
        size = criteria.value("worst", result.correlation)
        message = (
            f"The outputs are uncorrelated only to {size:.1e} (wanted: {EXACT_TOL:.0e}): the "
            "variables are too nearly collinear for double precision. Drop one of them or shrink R "
            "explicitly."
        )
    elif result.certificate.is_exact:
        message = (
            "The outputs are uncorrelated and every floor is met, but these were not proved to be "
            f"the largest fidelities after {result.n_iter} steps; a larger max_iter may help, "
            f"{digits}."
        )
    elif not isinstance(goal, Floors) and goal.rho_upper - result.rho_min.max() > OPTIMAL_GAP:
        floor = float(result.rho_min.max())
        message = (
            f"Every variable keeps {floor:.9g} within the limit, but only floors above "
            f"{goal.rho_upper:.9g} are proved to exceed it: a gap of {goal.rho_upper - floor:.2e} "
            f"is open."
        )
    else:
        message = (
            f"The residual correlation {result.objective:.9g} ({result.criterion}) is attained, "
            f"but only {result.lower_bound:.9g} is proved to be the least: a gap of "
            f"{result.gap:.2e} is open after {result.n_iter} steps"
        )
        if result.deficiency:
            message += f" for this matrix of rank {result.rank}."
        else:
            message += f"; a larger max_iter may close it, {digits}, or floors are next to one."
    warn(message, NotCertifiedWarning)
