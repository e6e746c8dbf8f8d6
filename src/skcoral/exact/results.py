"""Results of the exact regime: the threshold, and the best exact decorrelator for given floors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral._arrays import Array, cholesky, column_dots, to_device, to_host
from skcoral._linalg import gram_defect
from skcoral.certificates.settling import many_digits, mean_room
from skcoral.exact.largest_mean import BestExact, best_exact, mean_excess
from skcoral.exact.threshold import ExactThreshold, KeptThreshold, exact_threshold
from skcoral.exact.weighted import WeightedRoot
from skcoral.exceptions import NotCertifiedWarning
from skcoral.measures import residual_by
from skcoral.results import (
    EXACT_TOL,
    FLOOR_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
    Certificate,
    Criterion,
    Decorrelation,
    Status,
    Threshold,
)

Callback = Callable[[int, float, float], object]

# Below what is promised, so that rounding does not decide a re-check.
_AIM = 0.9
EDGE = _AIM * MEAN_TOL  # floors that can all be raised by this fraction at most are at the edge


def solve_threshold(
    R: Any,
    *,
    names: tuple[str, ...],
    tol: float = 1e-9,
    max_iter: int = 100,
    callback: Callback | None = None,
    threshold: KeptThreshold | None = None,
) -> Threshold:
    """Compute ρ★ of a correlation matrix with its certificate, unless it is known."""
    kept = threshold or KeptThreshold(R)
    found = kept.solve(tol=tol, max_iter=max_iter, callback=callback)
    zca = WeightedRoot(R, np.ones(R.shape[0]), cholesky(R)).fidelity
    result = Threshold(
        lower=found.lower,
        upper=found.upper,
        weights=found.weights,
        T=found.T,
        fidelity=found.fidelity,
        names=names,
        bounds={"zca": float(zca.min()), "trace": float(zca.mean())},
        certificate=_certificate(found),
        n_iter=found.n_iter,
        tol=min(tol, OPTIMAL_GAP),
    )
    if result.status != "optimal":
        warnings.warn(
            f"the threshold lies between {found.lower:.9g} and {found.upper:.9g}: the gap of "
            f"{found.gap:.1e} is wider than tol={tol:.1e} after {found.n_iter} steps. Both ends "
            "are valid; nearly collinear variables widen the gap by rounding.",
            NotCertifiedWarning,
            stacklevel=3,
        )
    return result


def solve_exact(
    R: Any,
    floors: Array | None,
    *,
    names: tuple[str, ...],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
    threshold: KeptThreshold | None = None,
) -> Decorrelation | BestExact:
    """Return the best exact decorrelator that meets the floors, or how they were refused.

    Parameters
    ----------
    R : array of shape (p, p)
        Correlation matrix, positive definite; the work is done where it lies.
    floors : ndarray of shape (p,) or None
        The least fidelity of each variable; None asks for the largest common floor.
    names : tuple of str
        The variables.
    criterion, pair_weights
        What the result reports as its (vanishing) objective.
    tol, max_iter, callback
        As in :func:`skcoral.decorrelate`.
    threshold : KeptThreshold, optional
        Where ρ★ of ``R`` is kept.
    """
    best = None
    if floors is not None:
        best = best_exact(R, floors, tol=_AIM * FLOOR_TOL, max_iter=max_iter, callback=callback)
        if best.feasible and _has_largest_mean(R, floors, best):
            return _result(R, floors, best, names, criterion, pair_weights, proved=True)
        if not best.feasible and best.trace_margin < -1e-6:
            return best  # proved to be out of reach by a clear margin
        tol = min(tol, _AIM * FLOOR_TOL)  # what does not bind may be short by a part of it
    # At the edge itself the weights grow without bound; the threshold problem does not mind.
    if floors is None:
        kept = threshold or KeptThreshold(R)
        edge = kept.solve(tol=tol, max_iter=max_iter, callback=callback)
    else:
        edge = exact_threshold(R, floors, tol=tol, max_iter=max_iter, callback=callback)
    if floors is None or best is None:
        floors = np.full(R.shape[0], min(edge.lower, 1.0))
        proved = edge.gap <= EDGE
    else:
        proved = edge.lower - 1 <= EDGE
        met = bool(np.all(edge.fidelity >= floors - _AIM * FLOOR_TOL))
        if best.feasible and not (met and proved):
            return _result(R, floors, best, names, criterion, pair_weights, proved=False)
        if not met:
            return best
    return _result(R, floors, edge, names, criterion, pair_weights, proved=proved)


def _has_largest_mean(R: Any, floors: Array, best: BestExact) -> bool:
    try:
        if many_digits(best.weights, best.T):
            excess = mean_room(to_host(R), floors, best.weights, best.S, best.T)
            return excess <= _AIM * MEAN_TOL
        excess = mean_excess(R, floors, best.weights, to_device(best.S, R), to_device(best.T, R))
    except np.linalg.LinAlgError:
        return False
    return excess <= _AIM * MEAN_TOL


def _result(
    R: Any,
    floors: Array,
    found: BestExact | ExactThreshold,
    names: tuple[str, ...],
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    proved: bool,
) -> Decorrelation:
    there = to_device(found.T, R)
    # Large weights show the rounding of correlations that vanish.
    defect = to_host(gram_defect(R, there, precise=pair_weights is not None))
    size = float(np.abs(defect).max())
    G = np.eye(R.shape[0]) + defect
    status: Status = "exact"
    if size > _AIM * EXACT_TOL:
        status = "not_converged"
        warnings.warn(
            f"the outputs are uncorrelated only to {size:.1e} (wanted: {EXACT_TOL:.0e}): the "
            "variables are too nearly collinear for double precision. Drop one of them or shrink R "
            "explicitly.",
            NotCertifiedWarning,
            stacklevel=4,
        )
    elif not proved:
        status = "best_found"
        warnings.warn(
            "the outputs are uncorrelated and every floor is met, but these were not proved to be "
            f"the largest fidelities after {found.n_iter} steps; a larger max_iter may help, "
            "unless nearly collinear variables leave no more digits.",
            NotCertifiedWarning,
            stacklevel=4,
        )
    return Decorrelation(
        T=found.T,
        correlation=G,
        fidelity=column_dots(R, there),
        rho_min=floors,
        criterion=criterion,
        objective=residual_by(criterion, G, np.eye(R.shape[0]), pair_weights=pair_weights),
        lower_bound=0.0,
        prices=np.zeros(R.shape[0]),
        weights=found.weights,
        status=status,
        names=names,
        certificate=_certificate(found),
        n_iter=found.n_iter,
        pair_weights=pair_weights,
    )


def _certificate(found: BestExact | ExactThreshold) -> Certificate:
    arrays = {"weights": found.weights, "S": found.S}
    if isinstance(found, BestExact):
        return Certificate("exact", arrays)
    if len(found.rest_S):
        arrays |= {"rest_weights": found.rest_weights, "rest_S": found.rest_S}
    return Certificate("threshold", arrays)
