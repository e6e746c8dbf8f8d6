"""The four questions: how far, at which floor, within which budget, and the whole curve.

This is the level where tables of correlations with names become arrays and back; everything below
works on plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skcoral._validation import (
    check_anchors,
    check_budget,
    check_choice,
    check_correlation,
    check_count,
    check_floors,
    check_names,
    check_pair_weights,
    check_positive,
)
from skcoral.exact import solve_exact, solve_threshold
from skcoral.exceptions import InvalidAnchorError, InvalidArgumentError, InvalidCorrelationError
from skcoral.results import Criterion, Decorrelation, Frontier, Threshold
from skcoral.support import pattern, solve_support
from skcoral.tradeoff import solve_budget, solve_tradeoff, trace_frontier

Array = NDArray[np.float64]
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
    matrix, names = _correlation(R)
    return solve_threshold(
        matrix,
        names=names,
        tol=check_positive("tol", tol),
        max_iter=check_count("max_iter", max_iter),
        callback=callback,
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
        Called as ``callback(iteration, objective, lower_bound)``.

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
    matrix, names = _correlation(R)
    criterion_ = cast(Criterion, check_choice("criterion", criterion, CRITERIA))
    tol, max_iter = check_positive("tol", tol), check_count("max_iter", max_iter)
    composites = None
    if anchors is not None:
        if support is not None or bounds is not None:
            raise InvalidArgumentError(
                "anchors cannot be combined with support or bounds: coefficients on composites "
                "and on single variables would be restricted at once. Use one of them."
            )
        composites = _Composites(matrix, names, anchors)
        matrix, names = composites.R, composites.names
    p = len(matrix)
    weights = _pair_weights(pair_weights, p, names)
    if support is not None or bounds is not None:
        if weights is not None:
            raise InvalidArgumentError("pair_weights cannot be combined with support or bounds.")
        return solve_support(
            matrix,
            np.zeros(p) if rho_min is None else _floors(rho_min, p, names),
            np.ones((p, p), dtype=bool) if support is None else pattern(support, names=names),
            names=names,
            criterion=criterion_,
            bounds=None if bounds is None else _bounds(bounds, names),
            tol=tol,
            max_iter=max_iter,
            n_starts=check_count("n_starts", n_starts),
            random_state=random_state,
            callback=callback,
        )
    floors = None if rho_min is None else _floors(rho_min, p, names)
    result = solve_exact(
        matrix,
        floors,
        names=names,
        criterion=criterion_,
        pair_weights=weights,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    if result is None:
        assert floors is not None  # a common floor of "as high as possible" is always within reach
        result = solve_tradeoff(
            matrix,
            floors,
            names=names,
            criterion=criterion_,
            pair_weights=weights,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
    return result if composites is None else composites.map_back(result)


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
    matrix, names = _correlation(R)
    composites = None if anchors is None else _Composites(matrix, names, anchors)
    if composites is not None:
        matrix, names = composites.R, composites.names
    result = solve_budget(
        matrix,
        check_budget(budget),
        names=names,
        criterion=cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
        pair_weights=_pair_weights(pair_weights, len(matrix), names),
        tol=check_positive("tol", tol),
        max_iter=check_count("max_iter", max_iter),
        callback=callback,
    )
    return result if composites is None else composites.map_back(result)


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
    matrix, names = _correlation(R)
    if anchors is not None:
        composites = _Composites(matrix, names, anchors)
        matrix, names = composites.R, composites.names
    floors = None
    if rho_min is not None:
        values = np.atleast_1d(np.asarray(rho_min, dtype=object))
        if values.ndim != 1 or not len(values):
            raise InvalidArgumentError(
                f"rho_min must be a list of common floors, got an array of shape {values.shape}."
            )
        floors = check_floors(values, len(values), [f"floor {k}" for k in range(len(values))])
    return trace_frontier(
        matrix,
        floors,
        names=names,
        criterion=cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
        pair_weights=_pair_weights(pair_weights, len(matrix), names),
        n_points=check_count("n_points", n_points, minimum=2),
        tol=check_positive("tol", tol),
        callback=callback,
    )


class _Composites:
    """Outputs anchored to composites ``Z b_j``: the same problem for their correlation matrix."""

    def __init__(self, R: Array, names: tuple[str, ...], anchors: Any) -> None:
        labels = list(getattr(anchors, "columns", ()))
        if labels and hasattr(anchors, "index"):
            anchors = (
                anchors.reindex(names) if set(map(str, anchors.index)) == set(names) else anchors
            )
        self.B = check_anchors(anchors, len(R), names)
        k = self.B.shape[1]
        self.names = check_names(labels or [f"anchor{j}" for j in range(k)], k)
        covariance = self.B.T @ R @ self.B
        self._unit = self.B / np.sqrt(np.diag(covariance))
        try:
            self.R = check_correlation(self._unit.T @ R @ self._unit, self.names)
        except InvalidCorrelationError as reason:
            raise InvalidAnchorError(f"The composites cannot be decorrelated: {reason}") from reason

    def map_back(self, result: Decorrelation) -> Decorrelation:
        return replace(result, T=self._unit @ result.T, anchors=self.B)


def _correlation(R: Any) -> tuple[Array, tuple[str, ...]]:
    """Turn what the user gave into an array and names."""
    columns = getattr(R, "columns", None)
    if columns is None:
        matrix = check_correlation(R)
        return matrix, check_names(None, len(matrix))
    labels = [str(name) for name in columns]
    index = getattr(R, "index", None)
    if index is not None and hasattr(index, "tolist"):
        rows = [str(name) for name in index]
        positions = [str(k) for k in range(len(rows))]
        if rows not in (labels, positions):
            raise InvalidCorrelationError(
                "Rows and columns of R must have the same names in the same order; row names begin "
                f"{rows[:4]}, column names {labels[:4]}. Try R = R.loc[R.columns]."
            )
    values = R.to_numpy()
    matrix = check_correlation(values, labels if len(labels) == len(values) else None)
    return matrix, check_names(labels, len(matrix))


def _by_name(value: Any, names: tuple[str, ...], what: str) -> Any:
    """Put a DataFrame with the variables' names into the order of ``names``; leave arrays alone."""
    if not (hasattr(value, "columns") and hasattr(value, "index")):
        return value
    if set(map(str, value.columns)) != set(names) or set(map(str, value.index)) != set(names):
        raise InvalidArgumentError(
            f"{what} is a DataFrame, so its rows and columns must be named like the variables; "
            f"wanted {list(names)[:6]}, got columns {list(map(str, value.columns))[:6]}."
        )
    named = value.set_axis(list(map(str, value.columns)), axis=1)
    named = named.set_axis(list(map(str, value.index)), axis=0)
    return named.loc[list(names), list(names)].to_numpy()


def _pair_weights(pair_weights: Any, p: int, names: tuple[str, ...]) -> Array | None:
    if pair_weights is None:
        return None
    return check_pair_weights(_by_name(pair_weights, names, "pair_weights"), p, names)


def _floors(rho_min: Any, p: int, names: tuple[str, ...]) -> Array:
    if hasattr(rho_min, "to_dict") and hasattr(rho_min, "index"):
        rho_min = rho_min.to_dict()
    return check_floors(rho_min, p, names)


def _bounds(bounds: Any, names: tuple[str, ...]) -> tuple[Array, Array]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidArgumentError(
            "bounds must be a pair (lower, upper) of matrices or numbers, one bound per "
            f"coefficient of T; got {type(bounds).__name__}."
        )
    shape = (len(names), len(names))
    out = []
    for side, value in zip(("lower", "upper"), bounds, strict=True):
        array = np.asarray(_by_name(value, names, f"bounds ({side})"), dtype=np.float64)
        if array.shape not in ((), shape) or np.isnan(array).any():
            raise InvalidArgumentError(
                f"The {side} bounds must be one number or a {shape[0]} by {shape[1]} matrix "
                f"without NaN (use infinity for no bound); got shape {array.shape}."
            )
        out.append(np.broadcast_to(array, shape).copy())
    return out[0], out[1]
