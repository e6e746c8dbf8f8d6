"""The exact regime: the threshold, and the best exact decorrelator for given floors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import Array, column_dots, to_host
from skcoral.core.linalg import gram_defect, many_digits
from skcoral.core.problem import Memory, Settings
from skcoral.core.results import Threshold
from skcoral.core.solution import Certificate, Solution
from skcoral.core.tolerances import FLOOR_TOL, MEAN_TOL, OPTIMAL_GAP
from skcoral.solvers.exact.largest_mean import BestExact, best_exact, mean_excess
from skcoral.solvers.exact.newton import Callback
from skcoral.solvers.exact.threshold import ExactThreshold, exact_threshold

# Below what is promised, so that rounding does not decide a re-check.
_AIM = 0.9
EDGE = _AIM * MEAN_TOL  # floors that can all be raised by this fraction at most are at the edge


def kept_threshold(
    R: Any,
    memory: Memory,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> ExactThreshold:
    """ρ★ of a matrix: solved when first asked for, and again only for more accuracy.

    The callback is not called where it is known.
    """
    tried = tol >= memory.tol and max_iter <= memory.max_iter
    if memory.threshold is None or not (tried or memory.threshold.gap <= tol):
        limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "callback": callback}
        memory.threshold = exact_threshold(R, near=memory.near, **limits)
        memory.tol, memory.max_iter = tol, max_iter
    threshold: ExactThreshold = memory.threshold
    return threshold


def _threshold(R: Any, settings: Settings) -> ExactThreshold:
    limits: dict[str, Any] = {"max_iter": settings.max_iter, "callback": settings.callback}
    return kept_threshold(R, settings.memory, tol=settings.tol, **limits)


def solve_threshold(R: Any, settings: Settings) -> Threshold:
    """Compute ρ★ of a correlation matrix with its dual point, unless it is known."""
    edge = _threshold(R, settings)
    return Threshold(
        lower=edge.lower,
        upper=edge.upper,
        weights=edge.weights,
        T=to_host(edge.T),
        fidelity=edge.fidelity,
        names=settings.names,
        certificate=_certificate(edge),
        n_iter=edge.n_iter,
        tol=min(settings.tol, OPTIMAL_GAP),
    )


def solve_exact(R: Any, floors: Array | None, settings: Settings) -> Solution | BestExact:
    """Return the best exact decorrelator that meets the floors, or how they were refused.

    The work is done where ``R`` lies. Without floors, the largest common one is asked for.
    """
    if floors is None:
        return threshold_solution(R, _threshold(R, settings), settings)
    limits: dict[str, Any] = {"max_iter": settings.max_iter, "callback": settings.callback}
    best = best_exact(R, floors, tol=_AIM * FLOOR_TOL, **limits)
    room = _mean_room(R, floors, best) if best.feasible else np.inf
    if room <= _AIM * MEAN_TOL:
        return exact_solution(R, floors, best, settings, room)
    if not best.feasible and best.trace_margin < -1e-6:
        # Proved to be out of reach by a clear margin; kept where memory is not scarce.
        return replace(best, T=to_host(best.T), S=to_host(best.S))
    # For floors at the edge the weights grow without bound; those of the threshold problem do not.
    # Floors that do not bind may be missed by a part of the tolerance.
    edge = exact_threshold(R, floors, tol=min(settings.tol, _AIM * FLOOR_TOL), **limits)
    met = bool(np.all(edge.fidelity >= floors - _AIM * FLOOR_TOL))
    if met and (edge.lower - 1 <= EDGE or not best.feasible):
        return exact_solution(R, floors, edge, settings, edge.lower - 1)
    return exact_solution(R, floors, best, settings, room) if best.feasible else best


def _mean_room(R: Any, floors: Array, best: BestExact) -> float:
    """By how much the mean fidelity could be larger; infinite where nothing is proved."""
    precise = many_digits(best.weights, to_host(best.T))
    try:
        return mean_excess(R, floors, best.weights, best.S, best.T, precise=precise)
    except np.linalg.LinAlgError:
        return np.inf


def threshold_solution(R: Any, edge: ExactThreshold, settings: Settings) -> Solution:
    """The decorrelator that attains the threshold, as an answer to the largest common floor."""
    floors = np.full(R.shape[0], min(edge.lower, 1.0))
    return exact_solution(R, floors, edge, settings, edge.gap)


def exact_solution(
    R: Any,
    floors: Array,
    best: BestExact | ExactThreshold,
    settings: Settings,
    room: float,
) -> Solution:
    """An exact decorrelator, and by how much its fidelities could be larger."""
    # Large weights show the rounding of correlations that vanish.
    defect = to_host(gram_defect(R, best.T, precise=settings.pair_weights is not None))
    G = np.eye(R.shape[0]) + defect
    return Solution(
        T=to_host(best.T),
        correlation=G,
        fidelity=column_dots(R, best.T),
        rho_min=floors,
        objective=criteria.value(settings.criterion, G, settings.pair_weights),
        lower_bound=0.0,
        certificate=_certificate(best),
        n_iter=best.n_iter,
        slopes=best.weights,
        room=room,
    )


def _certificate(best: BestExact | ExactThreshold) -> Certificate:
    if isinstance(best, BestExact):
        arrays = {"mean_weights": best.weights, "mean_S": to_host(best.S)}
    else:
        arrays = {"weights": best.weights, "S": to_host(best.S)}
        if best.rest_S is not None:
            arrays |= {"mean_weights": best.rest_weights, "mean_S": to_host(best.rest_S)}
    return Certificate("exact", arrays)
