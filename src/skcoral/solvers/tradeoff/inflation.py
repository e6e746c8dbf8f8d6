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
from skcoral.core.measures import inflation_factors
from skcoral.core.results import LIMIT_GAP, Decorrelation
from skcoral.exceptions import InvalidArgumentError, NotCertifiedWarning, warn
from skcoral.solvers.exact import Options, threshold_result
from skcoral.solvers.tradeoff.feasible import correlation_of
from skcoral.solvers.tradeoff.frontier import Path
from skcoral.solvers.tradeoff.inflation_path import Limited, highest_floor
from skcoral.solvers.tradeoff.results import as_result


def solve_vif(R: Any, limit: float, options: Options) -> Decorrelation:
    """Find the highest common floor whose largest VIF is at most ``limit``.

    The criterion says what the residual in the result is; every pair counts. The callback is called
    as ``callback(step, weighted, weakest)`` with two fidelities of each step, which meet at the
    answer.

    The floor is in ``rho_min`` of the result. Its residual need not be the least: bound and prices
    are those of the least squared residual at this floor. ``details`` hold the limit ``"max_vif"``,
    the ``"largest_vif"`` reached, and ``"rho_upper"``, a bound on the common floor of every
    transformation within the limit that the certificate proves. Warns where the two are apart.
    """
    if options.pair_weights is not None:
        raise InvalidArgumentError(
            "pair_weights cannot be combined with a limit on the VIF: every pair counts in it."
        )
    path = Path(R, replace(options, callback=None))
    if limit <= 1.0:
        exact = threshold_result(R, path.threshold, options)
        return _limited(exact, limit, min(path.threshold.upper, 1.0))
    if float(inflation_factors(path.R).max()) <= limit:
        return _limited(_at_floor(path, np.eye(len(path.R)), options), limit, 1.0)
    found = highest_floor(path.R, limit, options.callback)
    T = _within(path.R, found, limit)
    result = _at_floor(path, T, options)
    floor, arrays = float(result.rho_min[0]), _proof(found, limit)
    upper = proved_floor(path.R, T, arrays, limit)
    if upper < 1.0:
        dual = result.certificate
        result = replace(result, certificate=replace(dual, arrays={**dual.arrays, **arrays}))
    upper = max(min(upper, 1.0), floor)
    if upper - floor > LIMIT_GAP:
        warn(
            f"every variable keeps {floor:.9g} with no VIF above {limit:g}, but only floors above "
            f"{upper:.9g} are proved to exceed this limit: nearly collinear variables leave no "
            "more digits.",
            NotCertifiedWarning,
        )
    return _limited(result, limit, upper)


def _at_floor(path: Path, T: Array, options: Options) -> Decorrelation:
    """Judge T by the least squared residual at the floor that it keeps."""
    fidelity = column_dots(path.R, T)
    floor = min(float(fidelity.min()), 1.0)
    solved = path.solve(floor).solved
    G = correlation_of(path.R, T)
    objective = criteria.value(path.options.criterion, G)
    solved = replace(solved, T=T, G=G, fidelity=fidelity, objective=objective)
    return as_result(solved, np.full(len(T), floor), options, warn=False)


def _within(R: Array, found: Limited, limit: float) -> Array:
    """The transformation to the outputs that were found, kept within the limit after rounding."""
    L: Array = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    W, pull = found.point.outputs, 0.0
    while True:
        T = _transformation(R, L, W)
        if pull > 1e-9 or float(inflation_factors(correlation_of(R, T)).max()) <= limit:
            return T
        # Towards the orthogonal outputs next to them every VIF falls.
        pull = max(10.0 * pull, 1e-14)
        U, s, Vt = np.linalg.svd(found.point.outputs)
        W = (U * (1.0 + (1.0 - pull) * (s**2 - 1.0)) ** 0.5) @ Vt


def _transformation(R: Array, L: Array, W: Array) -> Array:
    """``L⁻ᵀW``, corrected for its rounding, which shows where variables are nearly collinear."""
    T = np.asarray(solve_triangular(L, W, lower=True, trans="T"))
    actual, wanted = (np.linalg.cholesky(G) for G in (correlation_of(R, T), W.T @ W))
    return np.asarray(T @ solve_triangular(actual, wanted.T, lower=True, trans="T"))


def _proof(found: Limited, limit: float) -> dict[str, Array]:
    """The multipliers as arrays of the certificate; see :mod:`skcoral.bounds.vif`."""
    Y = found.proof.X * np.sqrt(found.sigma)
    return {
        "vif_weights": found.proof.lam,
        "vif_H": 0.5 * (found.proof.H + found.proof.H.T),
        "vif_roots": np.diag(Y) / limit,
        "vif_vectors": Y,
    }


def _limited(result: Decorrelation, limit: float, upper: float) -> Decorrelation:
    largest = float(inflation_factors(result.correlation).max())
    found = {"max_vif": limit, "largest_vif": largest, "rho_upper": upper}
    return replace(result, details=found)
