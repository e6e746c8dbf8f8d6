"""The highest common floor at which no variance inflation factor exceeds a limit.

With ``R = LLᵀ``, ``W = LᵀT`` and ``G = WᵀW``, the problem is

    maximise  γ   subject to   (LW)_jj ≥ γ,   ‖w_j‖ = 1,   (G⁻¹)_jj ≤ limit.

``(G⁻¹)_jj`` is convex in ``G``, and the best common fidelity for a given ``G`` is concave in it:
:mod:`~skcoral.solvers.tradeoff.inflation_path` solves this problem, and its multipliers bound the
floor of every other transformation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from skcoral.bounds.vif import proved_floor
from skcoral.core import criteria
from skcoral.core.arrays import Array, column_dots
from skcoral.core.linalg import inflation_factors
from skcoral.core.problem import Settings
from skcoral.core.solution import Solution, VifLimit
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.exact import threshold_solution
from skcoral.solvers.tradeoff.binding import correlation_of
from skcoral.solvers.tradeoff.frontier import Path
from skcoral.solvers.tradeoff.inflation_path import highest_floor


def solve_vif(R: Any, limit: float, settings: Settings) -> Solution:
    """Find the highest common floor whose largest VIF is at most ``limit``.

    The criterion says what the residual in the result is; every pair counts. The callback is called
    as ``callback(step, weighted, weakest)`` with two fidelities of each step, which meet at the
    answer.

    The floor is in ``rho_min`` of the solution. Its residual need not be the least: bound and
    slopes are those of the least squared residual at this floor. The goal holds the largest VIF
    reached, and a bound on the common floor of every transformation within the limit that the dual
    point proves.
    """
    if settings.pair_weights is not None:
        raise InvalidArgumentError(
            "pair_weights cannot be combined with a limit on the VIF: every pair counts in it."
        )
    path = Path(R, replace(settings, callback=None))
    if limit <= 1.0:
        exact = threshold_solution(R, path.threshold, settings)
        return _limited(exact, limit, min(path.threshold.upper, 1.0))
    if float(inflation_factors(path.R).max()) <= limit:
        return _limited(_at_floor(path, np.eye(len(path.R)), settings), limit, 1.0)
    best = highest_floor(path.R, limit, settings.callback)
    T = _within(path.R, best.point.outputs, limit)
    solution = _at_floor(path, T, settings)
    # the multipliers; see bounds/vif.py
    Y = best.proof.X * np.sqrt(best.sigma)
    arrays = {
        "vif_weights": best.proof.lam,
        "vif_H": 0.5 * (best.proof.H + best.proof.H.T),
        "vif_roots": np.diag(Y) / limit,
        "vif_vectors": Y,
    }
    upper = proved_floor(path.R, T, arrays, limit)
    if upper < 1.0:
        dual = solution.certificate
        solution = replace(solution, certificate=replace(dual, arrays={**dual.arrays, **arrays}))
    return _limited(solution, limit, max(min(upper, 1.0), float(solution.rho_min[0])))


def _at_floor(path: Path, T: Array, settings: Settings) -> Solution:
    """Compare T with the least squared residual at the floor that it keeps."""
    fidelity = column_dots(path.R, T)
    floor = min(float(fidelity.min()), 1.0)
    solved = path.solve(floor).solved
    G = correlation_of(path.R, T)
    objective = criteria.value(path.settings.criterion, G)
    solved = replace(solved, T=T, G=G, fidelity=fidelity, objective=objective)
    return solved.solution(np.full(len(T), floor), settings)


def _within(R: Array, outputs: Array, limit: float) -> Array:
    """The transformation to these outputs, kept within the limit after rounding."""
    L: Array = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    W, pull = outputs, 0.0
    while True:
        T = np.asarray(solve_triangular(L, W, lower=True, trans="T"))
        # corrected for the rounding of L⁻ᵀW, which shows where variables are nearly collinear
        actual, wanted = (np.linalg.cholesky(G) for G in (correlation_of(R, T), W.T @ W))
        T = np.asarray(T @ solve_triangular(actual, wanted.T, lower=True, trans="T"))
        if pull > 1e-9 or float(inflation_factors(correlation_of(R, T)).max()) <= limit:
            return T
        # Towards the orthogonal outputs next to them every VIF falls.
        pull = max(10.0 * pull, 1e-14)
        U, s, Vt = np.linalg.svd(outputs)
        W = (U * (1.0 + (1.0 - pull) * (s**2 - 1.0)) ** 0.5) @ Vt


def _limited(solution: Solution, limit: float, upper: float) -> Solution:
    largest = float(inflation_factors(solution.correlation).max())
    return replace(solution, goal=VifLimit(limit, largest, upper))
