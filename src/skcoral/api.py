"""The four questions: how far, at which floor, within which budget, and the whole curve.

Input with names is turned into arrays, judged, and handed to the solvers below, which know only
plain arrays. Each question loads its own solver: the first answer does not wait for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from skcoral._arrays import beside
from skcoral._frames import (
    Composites,
    named_correlation,
    read_bounds,
    read_floors,
    read_pair_weights,
)
from skcoral._validation import (
    check_budget,
    check_callback,
    check_choice,
    check_count,
    check_floors,
    check_positive,
    check_random_state,
)
from skcoral.certificates.settling import rounding_matters, settle
from skcoral.exact import solve_exact, solve_threshold
from skcoral.exceptions import InvalidArgumentError
from skcoral.results import Criterion, Decorrelation, Frontier, Threshold

Callback = Callable[[int, float, float], object]
CRITERIA = ("squared", "worst", "absolute")


def threshold(
    R: Any, *, tol: float = 1e-9, max_iter: int = 100, callback: Callback | None = None
) -> Threshold:
    """Return the largest fidelity that every variable can keep under exact decorrelation.

    Solves ``ρ★(R) = max_{TᵀRT = I} min_j e_jᵀRt_j`` exactly, through the convex problem
    ``min_{λ ≥ 0, Σλ = 1} tr (D_λ R D_λ)^{1/2}`` that has the same value. The answer is one number
    between two bounds: ``lower`` is attained by the returned ``T``, and the weights λ prove that no
    exact decorrelator exceeds ``upper``.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix, positive definite. Names of a DataFrame are kept.
    tol : float, default=1e-9
        Gap below which the threshold counts as certified; what is reached is usually far smaller.
    max_iter : int, default=100
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(iteration, upper, lower)`` before each step.

    Returns
    -------
    Threshold
        With ``value``, ``lower``, ``upper``, ``gap``, ``weights``, ``binding``, ``T``,
        ``fidelity``, and the analytic ``bounds`` of ZCA-cor and the trace.

    Warns
    -----
    NotCertifiedWarning
        The gap is wider than ``tol``; both bounds are valid all the same.

    Examples
    --------
    Two variables with correlation r: ``(√(1+r) + √(1-r)) / 2``.

    >>> from skcoral import threshold
    >>> th = threshold([[1.0, 0.6], [0.6, 1.0]])
    >>> round(th.value, 9)
    0.948683298
    >>> th.gap < 1e-12
    True

    References
    ----------
    Fulton, Fulton, Sharma and Tomić, "CORAL: Constrained Oblique Rotation with Anchored Loadings
    for Fidelity-Constrained Decorrelation", section 3.
    """
    matrix, names = named_correlation(R)
    return solve_threshold(
        beside(matrix, R),
        names=names,
        tol=check_positive("tol", tol),
        max_iter=check_count("max_iter", max_iter),
        callback=check_callback(callback),
    )


def decorrelate(
    R: Any,
    rho_min: Any = None,
    *,
    criterion: str = "squared",
    pair_weights: Any = None,
    support: Any = None,
    bounds: Any = None,
    anchors: Any = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    n_starts: int = 100,
    random_state: int | np.random.Generator | None = 0,
    callback: Callback | None = None,
) -> Decorrelation:
    """Return the transformation with the least residual correlation that keeps every floor.

        minimise  φ(off(TᵀRT))   subject to   t_jᵀRt_j = 1,   e_jᵀRt_j ≥ rho_min_j

    Where the floors allow exact decorrelation, the answer is the exact decorrelator with the
    largest mean fidelity (ZCA-cor itself if it meets the floors); above, it is the least residual,
    with a dual bound that proves it. Dense problems are deterministic and globally solved.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix, positive definite. Names of a DataFrame are kept.
    rho_min : float, sequence, mapping by name, or None
        Floors: the least correlation of each output with its own source, in [0, 1]. A mapping sets
        some of them, the others have none. None means as high as exact decorrelation allows (with
        ``support`` or ``bounds``: no floor).
    criterion : {"squared", "worst", "absolute"}
        Sum of squared residual correlations over pairs, the largest absolute one, or the sum of
        absolute ones.
    pair_weights : array-like or DataFrame of shape (p, p), optional
        Which pairs matter, and how much.
    support : mask, mapping, DataFrame, edge list, optional
        Which sources may enter which output; see :func:`skcoral.support.pattern`. Everything else
        is exactly zero. This problem is not convex: the status says what is proved.
    bounds : pair of array-like of shape (p, p), optional
        Least and largest value of each coefficient of ``T``; infinite where free.
    anchors : array-like or DataFrame of shape (p, k), optional
        Anchor the outputs to k composites (columns of coefficients on the standardised variables)
        instead of the variables.
    tol : float, default=1e-9
        Gap to aim at, relative to ``max(1, objective)``.
    max_iter : int, default=200
        Largest number of Newton steps.
    n_starts, random_state
        Starts of the support-restricted search; dense problems have none.
    callback : callable, optional
        Called as ``callback(iteration, objective, lower_bound)``. Before that, while an exact
        answer is looked for, the two numbers are a bound on the mean fidelity and the weakest
        margin over the floors.

    Returns
    -------
    Decorrelation

    Warns
    -----
    NotCertifiedWarning
        The answer is feasible but its gap is open.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> decorrelate(R, 0.85).status  # 0.894 is possible without any residual
    'exact'
    >>> answer = decorrelate(R, 0.95)
    >>> answer.status, round(float(answer.correlation[0, 1]), 6)
    ('optimal', 0.288035)
    >>> answer.gap < 1e-7
    True
    """
    given, names = named_correlation(R)
    matrix = given
    criterion_ = cast(Criterion, check_choice("criterion", criterion, CRITERIA))
    tol, max_iter = check_positive("tol", tol), check_count("max_iter", max_iter)
    composites = None
    if anchors is not None:
        if support is not None or bounds is not None:
            raise InvalidArgumentError(
                "anchors cannot be combined with support or bounds: coefficients on composites "
                "and on single variables would be restricted at once. Use one of them."
            )
        composites = Composites(matrix, names, anchors)
        matrix, names = composites.R, composites.names
    p = len(matrix)
    weights = read_pair_weights(pair_weights, p, names)
    if support is not None or bounds is not None:
        if weights is not None:
            raise InvalidArgumentError("pair_weights cannot be combined with support or bounds.")
        from skcoral.support import pattern, solve_support

        found = solve_support(
            matrix,
            np.zeros(p) if rho_min is None else read_floors(rho_min, p, names),
            np.ones((p, p), dtype=bool) if support is None else pattern(support, names=names),
            names=names,
            criterion=criterion_,
            bounds=None if bounds is None else read_bounds(bounds, names),
            tol=tol,
            max_iter=max_iter,
            n_starts=check_count("n_starts", n_starts),
            random_state=check_random_state(random_state),
            callback=check_callback(callback),
        )
        return replace(found, R=given)
    floors = None if rho_min is None else read_floors(rho_min, p, names)
    result = solve_exact(
        matrix if composites else beside(matrix, R),
        floors,
        names=names,
        criterion=criterion_,
        pair_weights=weights,
        tol=tol,
        max_iter=max_iter,
        callback=check_callback(callback),
    )
    if result is None:
        assert floors is not None  # a common floor of "as high as possible" is always within reach
        from skcoral.tradeoff import solve_tradeoff

        result = solve_tradeoff(
            matrix if composites else beside(matrix, R),
            floors,
            names=names,
            criterion=criterion_,
            pair_weights=weights,
            tol=tol,
            max_iter=max_iter,
            callback=check_callback(callback),
        )
    if composites is not None:
        result = composites.map_back(result)
    elif rounding_matters(result):
        result = settle(result, matrix)
    return replace(result, R=given)


def maximize_fidelity(
    R: Any,
    budget: float,
    *,
    criterion: str = "squared",
    pair_weights: Any = None,
    anchors: Any = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> Decorrelation:
    """Return the transformation with the largest common floor whose residual stays in a budget.

        maximise  γ   subject to   e_jᵀRt_j ≥ γ,   t_jᵀRt_j = 1,   φ(off(TᵀRT)) ≤ budget

    the paper's dual problem. The least residual is a convex, increasing function of the floor, so
    this is its inverse: one certified solve on the frontier.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix, positive definite.
    budget : float
        Residual that is acceptable, in the units of ``criterion``: a sum of squares, the largest
        |r|, or the sum of |r|.
    criterion, pair_weights, anchors, tol, max_iter, callback
        As in :func:`decorrelate`.

    Returns
    -------
    Decorrelation
        ``rho_min`` holds the common floor γ that was achieved.

    Examples
    --------
    >>> from skcoral import maximize_fidelity
    >>> answer = maximize_fidelity([[1.0, 0.8], [0.8, 1.0]], budget=0.3, criterion="worst")
    >>> round(float(answer.rho_min[0]), 6)
    0.951936
    """
    given, names = named_correlation(R)
    matrix = given
    composites = None if anchors is None else Composites(matrix, names, anchors)
    if composites is not None:
        matrix, names = composites.R, composites.names
    from skcoral.tradeoff import solve_budget

    result = solve_budget(
        matrix if composites else beside(matrix, R),
        check_budget(budget),
        names=names,
        criterion=cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
        pair_weights=read_pair_weights(pair_weights, len(matrix), names),
        tol=check_positive("tol", tol),
        max_iter=check_count("max_iter", max_iter),
        callback=check_callback(callback),
    )
    if composites is not None:
        result = composites.map_back(result)
    elif rounding_matters(result):
        result = settle(result, matrix)
    return replace(result, R=given)


def frontier(
    R: Any,
    rho_min: Any = None,
    *,
    criterion: str = "squared",
    pair_weights: Any = None,
    anchors: Any = None,
    n_points: int = 25,
    tol: float = 1e-9,
    callback: Callback | None = None,
) -> Frontier:
    """Return the least residual correlation as a function of the common floor.

    Zero up to the threshold ρ★, convex and increasing after it, and equal to the residual of the
    untransformed variables at one.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix, positive definite.
    rho_min : sequence of float, optional
        Common floors at which to evaluate the curve; by default a grid from ρ★ to 1 that is dense
        where the curve bends.
    n_points : int, default=25
        Size of that grid.
    criterion, pair_weights, anchors, tol, callback
        As in :func:`decorrelate`; the callback receives the point number instead of the iteration.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> from skcoral import frontier
    >>> curve = frontier([[1.0, 0.8], [0.8, 1.0]], rho_min=[0.8, 0.9, 1.0])
    >>> [round(float(v), 6) for v in curve.objective]
    [0.0, 0.000637, 0.64]
    """
    matrix, names = named_correlation(R)
    if anchors is not None:
        composites = Composites(matrix, names, anchors)
        matrix, names = composites.R, composites.names
    floors = None
    if rho_min is not None:
        values = np.atleast_1d(np.asarray(rho_min, dtype=object))
        if values.ndim != 1 or not len(values):
            raise InvalidArgumentError(
                f"rho_min must be a list of common floors, got an array of shape {values.shape}."
            )
        floors = check_floors(values, len(values), [f"floor {k}" for k in range(len(values))])
    from skcoral.tradeoff import trace_frontier

    return trace_frontier(
        beside(matrix, R) if anchors is None else matrix,
        floors,
        names=names,
        criterion=cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
        pair_weights=read_pair_weights(pair_weights, len(matrix), names),
        n_points=check_count("n_points", n_points, minimum=2),
        tol=check_positive("tol", tol),
        callback=check_callback(callback),
    )
