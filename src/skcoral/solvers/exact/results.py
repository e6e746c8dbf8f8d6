"""Results of the exact regime: the threshold, and the best exact decorrelator for given floors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.certificates.settling import many_digits, mean_room
from skcoral.core.arrays import Array, column_dots, to_host
from skcoral.core.linalg import gram_defect
from skcoral.core.measures import residual_by
from skcoral.core.results import (
    EXACT_TOL,
    FLOOR_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
    Certificate,
    Decorrelation,
    Status,
    Threshold,
)
from skcoral.exceptions import NotCertifiedWarning, warn
from skcoral.solvers.exact.largest_mean import BestExact, best_exact, mean_excess
from skcoral.solvers.exact.options import Options
from skcoral.solvers.exact.threshold import ExactThreshold, exact_threshold

# Below what is promised, so that rounding does not decide a re-check.
_AIM = 0.9
EDGE = _AIM * MEAN_TOL  # floors that can all be raised by this fraction at most are at the edge


def solve_threshold(R: Any, options: Options) -> Threshold:
    """Compute ρ★ of a correlation matrix with its certificate, unless it is known."""
    found = _threshold(R, options)
    result = Threshold(
        lower=found.lower,
        upper=found.upper,
        weights=found.weights,
        T=to_host(found.T),
        fidelity=found.fidelity,
        names=options.names,
        bounds={"zca": float(found.start.min()), "trace": float(found.start.mean())},
        certificate=_certificate(found),
        n_iter=found.n_iter,
        tol=min(options.tol, OPTIMAL_GAP),
    )
    if result.status != "optimal":
        warn(
            f"the threshold lies between {found.lower:.9g} and {found.upper:.9g}: the gap of "
            f"{found.gap:.1e} is wider than tol={options.tol:.1e} after {found.n_iter} steps. "
            "Both ends are valid; nearly collinear variables widen the gap by rounding.",
            NotCertifiedWarning,
        )
    return result


def _threshold(R: Any, options: Options) -> ExactThreshold:
    kept = options.kept_threshold(R)
    return kept.solve(tol=options.tol, max_iter=options.max_iter, callback=options.callback)


def solve_exact(R: Any, floors: Array | None, options: Options) -> Decorrelation | BestExact:
    """Return the best exact decorrelator that meets the floors, or how they were refused.

    The work is done where ``R`` lies. Without floors, the largest common one is asked for.
    """
    if floors is None:
        return threshold_result(R, _threshold(R, options), options)
    limits: dict[str, Any] = {"max_iter": options.max_iter, "callback": options.callback}
    best = best_exact(R, floors, tol=_AIM * FLOOR_TOL, **limits)
    if best.feasible and _has_largest_mean(R, floors, best):
        return _result(R, floors, best, options, proved=True)
    if not best.feasible and best.trace_margin < -1e-6:
        # Proved to be out of reach by a clear margin; kept where memory is not scarce.
        return replace(best, T=to_host(best.T), S=to_host(best.S))
    # For floors at the edge the weights grow without bound; those of the threshold problem do not.
    # Floors that do not bind may be missed by a part of the tolerance.
    edge = exact_threshold(R, floors, tol=min(options.tol, _AIM * FLOOR_TOL), **limits)
    met = bool(np.all(edge.fidelity >= floors - _AIM * FLOOR_TOL))
    if met and (edge.lower - 1 <= EDGE or not best.feasible):
        return _result(R, floors, edge, options, proved=edge.lower - 1 <= EDGE)
    return _result(R, floors, best, options, proved=False) if best.feasible else best


def _has_largest_mean(R: Any, floors: Array, best: BestExact) -> bool:
    T = to_host(best.T)
    try:
        if many_digits(best.weights, T):
            excess = mean_room(to_host(R), floors, best.weights, to_host(best.S), T)
        else:
            excess = mean_excess(R, floors, best.weights, best.S, best.T, precise=False)
    except np.linalg.LinAlgError:
        return False
    return excess <= _AIM * MEAN_TOL


def threshold_result(R: Any, edge: ExactThreshold, options: Options) -> Decorrelation:
    """The decorrelator that attains the threshold, as an answer to the largest common floor."""
    floors = np.full(R.shape[0], min(edge.lower, 1.0))
    return _result(R, floors, edge, options, proved=edge.gap <= EDGE)


def _result(
    R: Any,
    floors: Array,
    found: BestExact | ExactThreshold,
    options: Options,
    *,
    proved: bool,
) -> Decorrelation:
    # Large weights show the rounding of correlations that vanish.
    defect = to_host(gram_defect(R, found.T, precise=options.pair_weights is not None))
    size = float(np.abs(defect).max())
    identity = np.eye(R.shape[0])
    result = Decorrelation(
        T=to_host(found.T),
        correlation=identity + defect,
        fidelity=column_dots(R, found.T),
        rho_min=floors,
        criterion=options.criterion,
        objective=residual_by(
            options.criterion, identity + defect, identity, pair_weights=options.pair_weights
        ),
        lower_bound=0.0,
        prices=np.zeros(R.shape[0]),
        weights=found.weights,
        status="exact",
        names=options.names,
        certificate=_certificate(found),
        n_iter=found.n_iter,
        pair_weights=options.pair_weights,
    )
    if size > _AIM * EXACT_TOL:
        status: Status = "not_converged"
        warning = (
            f"the outputs are uncorrelated only to {size:.1e} (wanted: {EXACT_TOL:.0e}): the "
            "variables are too nearly collinear for double precision. Drop one of them or shrink R "
            "explicitly."
        )
    elif not proved:
        status = "best_found"
        warning = (
            "the outputs are uncorrelated and every floor is met, but these were not proved to be "
            f"the largest fidelities after {found.n_iter} steps; a larger max_iter may help, "
            "unless nearly collinear variables leave no more digits."
        )
    else:
        return result
    warn(warning, NotCertifiedWarning)
    return replace(result, status=status)


def _certificate(found: BestExact | ExactThreshold) -> Certificate:
    arrays = {"weights": found.weights, "S": to_host(found.S)}
    if isinstance(found, BestExact):
        return Certificate("exact", arrays)
    if found.rest_S is not None:
        arrays |= {"rest_weights": found.rest_weights, "rest_S": to_host(found.rest_S)}
    return Certificate("threshold", arrays)
