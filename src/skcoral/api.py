"""Threshold, decorrelation at given floors, largest floor within a budget, and the frontier.

A function validates what is asked, calls the solver, and has its solution certified. Solvers are
imported when they are needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.certificates.certify import certify, certify_frontier, certify_threshold
from skcoral.core.criteria import CRITERIA
from skcoral.core.problem import Callback, Problem
from skcoral.core.results import Decorrelation, Frontier, Threshold
from skcoral.core.solution import Solution
from skcoral.core.validation import (
    check_budget,
    check_choice,
    check_common_floors,
    check_count,
    check_floors,
    check_random_state,
    shown_value,
)
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.exact import BestExact, solve_exact, solve_threshold


def threshold(
    R: Any,
    *,
    tol: float = 1e-9,
    on_singular: str = "solve",
    callback: Callback | None = None,
) -> Threshold:
    """Return the largest fidelity that every variable can keep under exact decorrelation.

    Solves ``ρ★(R) = max_{TᵀRT = I} min_j e_jᵀRt_j`` exactly, through the convex problem
    ``min_{λ ≥ 0, Σλ = 1} tr (D_λ R D_λ)^{1/2}`` that has the same value. It lies between two
    bounds: ``lower`` is attained by the returned ``T``, and the weights λ prove that no exact
    decorrelator exceeds ``upper``.

    A singular ``R`` of rank r has no exact decorrelator. Its threshold is the largest common floor
    with the least sum of squares, ``(p²/r - p)/2``, and the bounds need not meet.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix; the result has the names of a DataFrame.
    tol : float, default=1e-9
        Gap below which the threshold counts as certified; the gap reached is usually far smaller.
    on_singular
        As in :func:`decorrelate`.
    callback : callable, optional
        Called as ``callback(iteration, upper, lower)`` before each step.

    Returns
    -------
    Threshold

    Warns
    -----
    NotCertifiedWarning
        The gap is wider than ``tol``; both bounds are valid all the same.
    SingularCorrelationWarning
        ``R`` is singular; the message names the relations.

    Examples
    --------
    >>> from skcoral import threshold  # two variables: (√(1+r) + √(1-r)) / 2
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
    problem = Problem.of(R, tol=tol, on_singular=on_singular, callback=callback)
    if problem.matrix.deficiency is not None:
        from skcoral.solvers.singular import singular_threshold

        return certify_threshold(singular_threshold(problem))
    return certify_threshold(solve_threshold(problem.matrix.on_device, problem.settings))


def decorrelate(
    R: Any,
    rho_min: Any = None,
    *,
    criterion: str = "squared",
    pair_weights: Any = None,
    support: Any = None,
    bounds: Any = None,
    anchors: Any = None,
    proof: str = "quick",
    tol: float = 1e-9,
    max_iter: int = 200,
    on_singular: str = "solve",
    n_starts: int = 100,
    random_state: int | np.random.Generator | None = 0,
    warm: Decorrelation | None = None,
    callback: Callback | None = None,
) -> Decorrelation:
    """Return the transformation with the least residual correlation that keeps every floor.

        minimise  φ(off(TᵀRT))   subject to   t_jᵀRt_j = 1,   e_jᵀRt_j ≥ rho_min_j

    If the floors allow exact decorrelation, the answer is the exact decorrelator with the largest
    mean fidelity (ZCA-cor if it meets the floors). Otherwise it has the least residual, with a dual
    bound that proves it.

    The outputs of a singular ``R`` of rank r span r dimensions, so that their sum of squares is at
    least ``(p²/r - p)/2``. ``T`` is then the transformation nearest to the identity with the
    optimal outputs, and the result has their ``rank``.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix; the result has the names of a DataFrame.
    rho_min : float, sequence, mapping by name, or None
        Floors: the least correlation of each output with its source, in [0, 1]. Variables that a
        mapping does not name have none. None means as high as exact decorrelation allows (for a
        singular ``R`` the least sum of squares; with ``support`` or ``bounds`` there is no floor).
    criterion : {"squared", "worst", "absolute"}
        Sum of squared residual correlations over pairs, the largest absolute one, or the sum of
        absolute ones.
    pair_weights : array-like or DataFrame of shape (p, p), optional
        How much each pair counts in the criterion; 1 by default.
    support : mask, mapping, DataFrame, edge list or number, optional
        Which sources may enter which output (:func:`skcoral.solvers.support.pattern`); a
        number allows those whose ``|R_ij|`` exceeds it. A DataFrame with the columns ``source``,
        ``output``, ``lower`` and ``upper`` bounds coefficients as well. This problem is not convex,
        and the gap of the answer may be open: see ``status``.
    bounds : pair of array-like of shape (p, p), optional
        Least and largest value of each coefficient of ``T``; infinite where free. A least value of
        zero fixes the sign.
    anchors : array-like or DataFrame of shape (p, k), optional
        Anchor the outputs to k composites (columns of coefficients on the standardised variables)
        instead of the variables. ``support`` and ``bounds`` then have k columns as well.
    proof : {"quick", "moments"}
        With ``support`` or ``bounds``: how hard to look for a lower bound. "moments" narrows the
        gap that the quick bounds leave, which takes minutes if columns are many. It ends when the
        bound meets the objective, the callback returns True, or 300 seconds of processor time
        (``TIME_LIMIT`` of ``skcoral.solvers.support.moments``) have passed.
    tol : float, default=1e-9
        Gap to aim at, relative to ``max(1, objective)``.
    max_iter : int, default=200
        Largest number of Newton steps.
    on_singular : {"solve", "raise"}
        Solve a singular ``R`` for its least residual, with a warning that names the relations, or
        raise :class:`~skcoral.exceptions.SingularCorrelationError`.
    n_starts, random_state
        Number of starts of the search with ``support`` or ``bounds``, and their seed.
    warm : Decorrelation, optional
        The answer to a similar problem of the same variables: with other floors, or a matrix from
        nearly the same rows. Above the threshold the squared criterion starts from its dual point,
        which saves Newton steps and changes the answer by rounding only. Singular matrices and
        ``support`` are searched from its outputs as well; if these meet floors and support, the
        answer is no worse.
    callback : callable, optional
        Called as ``callback(iteration, objective, lower_bound)``; during the search for an exact
        answer, with a bound on the mean fidelity and the smallest margin over the floors.

    Returns
    -------
    Decorrelation

    Warns
    -----
    NotCertifiedWarning
        The answer is feasible, and its gap is open.
    SingularCorrelationWarning
        ``R`` is singular; the message names the relations.

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
    problem = Problem.of(
        R,
        criterion=criterion,
        pair_weights=pair_weights,
        anchors=anchors,
        tol=tol,
        max_iter=max_iter,
        on_singular=on_singular,
        callback=callback,
    )
    matrix, settings, p = problem.matrix, problem.settings, len(problem.matrix)
    n_starts = check_count("n_starts", n_starts, maximum=1_000_000)
    check_random_state(random_state)
    is_answer = isinstance(warm, Decorrelation)
    if warm is not None and not (is_answer and warm.T.shape == (len(problem.sources), p)):
        shown = f"one of shape {warm.T.shape}" if is_answer else shown_value(warm)
        raise InvalidArgumentError(
            f"warm must be an answer of decorrelate or maximize_fidelity with {p} outputs of "
            f"{len(problem.sources)} variables; got {shown}."
        )
    restricted = support is not None or bounds is not None
    if check_choice("proof", proof, ("quick", "moments")) == "moments" and not restricted:
        raise InvalidArgumentError(
            "proof='moments' goes with support or bounds; other answers need no further proof."
        )
    floors = None if rho_min is None else check_floors(rho_min, matrix.names)
    if restricted:
        if pair_weights is not None:
            raise InvalidArgumentError("pair_weights cannot be combined with support or bounds.")
        from skcoral.solvers.support.pattern import read_restrictions
        from skcoral.solvers.support.solver import SupportProblem, solve_support

        solution = solve_support(
            SupportProblem(
                problem,
                np.zeros(p) if floors is None else floors,
                *read_restrictions(problem, support, bounds),
                n_starts=n_starts,
                random_state=random_state,
                warm=None if warm is None else warm.T @ np.eye(p),  # also of a wide table
                by_moments=proof == "moments",
            )
        )
        return certify(problem, solution)
    if matrix.deficiency is not None:
        from skcoral.solvers.singular import solve_singular

        return certify(problem, solve_singular(problem, floors, warm=warm))
    answer: Solution | BestExact | None = None
    if warm is not None and floors is not None:
        from skcoral.solvers.tradeoff import solve_from_neighbour

        answer = solve_from_neighbour(matrix.on_device, floors, warm, settings)
    if answer is None:
        answer = solve_exact(matrix.on_device, floors, settings)
    if isinstance(answer, BestExact):
        assert floors is not None  # "as high as possible" is always within reach
        from skcoral.solvers.tradeoff import solve_tradeoff

        refused: list[Any] = [answer]  # large matrices, which the solver takes out of the list
        answer = None
        answer = solve_tradeoff(matrix.on_device, floors, settings, refused=refused)
    return certify(problem, answer)


def maximize_fidelity(
    R: Any,
    budget: float,
    *,
    criterion: str = "squared",
    pair_weights: Any = None,
    anchors: Any = None,
    tol: float = 1e-9,
    on_singular: str = "solve",
    callback: Callback | None = None,
) -> Decorrelation:
    """Return the transformation with the largest common floor whose residual is within a budget.

        maximise  γ   subject to   e_jᵀRt_j ≥ γ,   t_jᵀRt_j = 1,   φ(off(TᵀRT)) ≤ budget

    the paper's dual problem. The least residual is a convex, increasing function of the floor, and
    this is its inverse: one certified point of the frontier. With ``criterion="vif"`` the objective
    of the result is a sum of squares that need not be the least.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix.
    budget : float
        The most that may remain, in the units of ``criterion``: a sum of squares, the largest
        ``|r|``, the sum of ``|r|``, or the largest VIF.
    criterion : {"squared", "worst", "absolute", "vif"}
        What the budget limits.
    pair_weights, anchors, tol, on_singular, callback
        As in :func:`decorrelate`.

    Returns
    -------
    Decorrelation
        ``rho_min`` holds the common floor γ attained, and no transformation within the budget has
        one above ``goal.rho_upper``.

    Examples
    --------
    >>> from skcoral import maximize_fidelity
    >>> answer = maximize_fidelity([[1.0, 0.8], [0.8, 1.0]], budget=0.3, criterion="worst")
    >>> round(float(answer.rho_min[0]), 6)
    0.951936
    """
    by_vif = check_choice("criterion", criterion, (*CRITERIA, "vif")) == "vif"
    problem = Problem.of(
        R,
        criterion="squared" if by_vif else criterion,
        pair_weights=pair_weights,
        anchors=anchors,
        tol=tol,
        on_singular=on_singular,
        callback=callback,
    )
    matrix, settings = problem.matrix, problem.settings
    # VIFs are infinite at every floor where the matrix is singular; residuals have a least value.
    if by_vif:
        matrix.regular("A limit on the VIF")
        amount = check_budget(budget, "The largest VIF", least=1.0)
    else:
        amount = check_budget(budget)
    if matrix.deficiency is not None:
        from skcoral.solvers.singular import singular_budget

        return certify(problem, singular_budget(problem, amount))
    from skcoral.solvers.tradeoff import solve_budget, solve_vif

    solve = solve_vif if by_vif else solve_budget
    return certify(problem, solve(matrix.on_device, amount, settings))


def frontier(
    R: Any,
    rho_min: Any = None,
    *,
    criterion: str = "squared",
    pair_weights: Any = None,
    anchors: Any = None,
    n_points: int = 25,
    tol: float = 1e-9,
    on_singular: str = "solve",
    callback: Callback | None = None,
) -> Frontier:
    """Return the least residual correlation as a function of the common floor.

    It is zero up to ρ★ (for a singular ``R`` the least residual of its rank) and increases to the
    residual of the untransformed variables at a floor of one.

    Parameters
    ----------
    R : array-like or DataFrame of shape (p, p)
        Correlation matrix.
    rho_min : sequence of float, optional
        Common floors; by default from ρ★ to 1, evenly spaced along the curve.
    n_points : int, default=25
        Size of that grid, at most 10,000.
    criterion, pair_weights, anchors, tol, on_singular, callback
        As in :func:`decorrelate`; the callback receives the number of the point.

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
    problem = Problem.of(
        R,
        criterion=criterion,
        pair_weights=pair_weights,
        anchors=anchors,
        tol=tol,
        on_singular=on_singular,
        callback=callback,
    )
    matrix, settings = problem.matrix, problem.settings
    floors = None if rho_min is None else check_common_floors(rho_min)
    check_count("n_points", n_points, minimum=2, maximum=10_000)
    # A singular matrix has no threshold for the curve to begin at.
    if matrix.deficiency is not None:
        from skcoral.solvers.singular import singular_frontier

        return certify_frontier(singular_frontier(problem, floors, n_points=n_points))
    from skcoral.solvers.tradeoff import trace_frontier

    return certify_frontier(trace_frontier(matrix.on_device, floors, settings, n_points=n_points))
