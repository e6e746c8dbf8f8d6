"""The front of the support solver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skcoral.exact import KeptThreshold
from skcoral.results import Array, Criterion, Decorrelation
from skcoral.support.bounded import solve_within
from skcoral.support.multistart import SupportProblem, solve_unbounded
from skcoral.support.pattern import Mask
from skcoral.support.search import Callback


def solve_support(
    R: Array,
    floors: Array,
    mask: Mask,
    *,
    names: tuple[str, ...],
    criterion: Criterion = "squared",
    bounds: tuple[Array, Array] | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    n_starts: int = 100,
    random_state: int | np.random.Generator | None = 0,
    callback: Callback | None = None,
    warm: Array | Sequence[Array] | None = None,
    threshold: KeptThreshold | None = None,
) -> Decorrelation:
    """Least residual correlation among the transformations with a given support.

        minimise φ(off(TᵀRT))  subject to  t_jᵀRt_j = 1,  f_j ≥ ρ_j,  T_ij = 0 off the support

    The problem is not convex. Structured starts come first; if a bound already meets their best,
    that is the answer. Otherwise random starts follow, each along up to three routes (directly, by
    way of the problem without floors, by way of higher floors), and hops from the best of them.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation matrix.
    floors : ndarray of shape (p,)
        Fidelity floors. The sign of a column is free, so a floor of zero asks for nothing.
    mask : ndarray of bool, shape (p, p)
        True where ``T[i, j]`` may differ from zero.
    names : tuple of str
        The variables.
    criterion : {"squared", "worst", "absolute"}
        What to minimise.
    bounds : pair of ndarray of shape (p, p), optional
        Least and largest value of each coefficient, infinite where free. The sign of a column is
        then no longer free, and ``f_j ≥ 0`` is required also for a floor of zero.
    tol : float
        Relative gap at which an answer counts as proved optimal.
    max_iter : int
        Quasi-Newton steps per route.
    n_starts : int
        Starts at most, structured ones included.
    random_state : int, Generator or None
        Source of the random starts.
    callback : callable, optional
        Called as ``callback(iteration, objective, lower_bound)``.
    warm : ndarray of shape (p, p) or a sequence of them, optional
        Transformations to start from as well, such as the solution for a smaller support or higher
        floors; the answer is never worse than any of them that is feasible.
    threshold : KeptThreshold, optional
        Where ρ★ of ``R`` is kept.

    Returns
    -------
    Decorrelation
        ``details`` holds the support, the degrees of freedom, the number of starts, how many of
        them reached the best value, the name of the lower bound and the violation of stationarity.

    Raises
    ------
    InfeasibleError
        The bounds on coefficients leave some output no admissible column.

    Examples
    --------
    >>> R = 0.5 ** np.abs(np.subtract.outer(range(4), range(4)))
    >>> neighbours = np.abs(np.subtract.outer(range(4), range(4))) <= 1
    >>> chain = solve_support(R, np.zeros(4), neighbours, names=("a", "b", "c", "d"))
    >>> chain.status
    'exact'
    >>> bool(chain.T[~neighbours].any())
    False
    """
    problem = SupportProblem(
        R,
        floors,
        mask,
        names=names,
        criterion=criterion,
        tol=tol,
        max_iter=max_iter,
        n_starts=n_starts,
        random_state=random_state,
        callback=callback,
        warm=warm,
        threshold=threshold or KeptThreshold(R),
    )
    return solve_unbounded(problem) if bounds is None else solve_within(problem, bounds)


def support_frontier(
    R: Array,
    rho_min: Sequence[float],
    mask: Mask,
    *,
    names: tuple[str, ...],
    criterion: Criterion = "squared",
    n_starts: int = 100,
    random_state: int | np.random.Generator | None = 0,
) -> list[Decorrelation]:
    """Solve for several common floors, highest first, each started from the solution above it.

    A transformation that meets a floor meets every lower one, so the objectives never increase as
    the floor goes down.

    Parameters
    ----------
    R : ndarray of shape (p, p)
        Correlation matrix.
    rho_min : sequence of float
        Common floors, in any order.
    mask : ndarray of bool, shape (p, p)
        True where ``T[i, j]`` may differ from zero.
    names : tuple of str
        The variables.
    criterion : {"squared", "worst", "absolute"}
        What to minimise.
    n_starts : int
        Starts per floor.
    random_state : int, Generator or None
        Source of the random starts.

    Returns
    -------
    list of Decorrelation
        In the order of ``rho_min``.

    Examples
    --------
    >>> from skcoral.datasets import make_system
    >>> from skcoral.support import support_from_threshold, support_frontier
    >>> R = make_system(6)
    >>> mask = support_from_threshold(R, 0.2)
    >>> curve = support_frontier(R, [0.9, 0.99], mask, names=tuple("abcdef"), n_starts=5)
    >>> curve[0].objective <= curve[1].objective
    True
    """
    values = np.asarray(rho_min, dtype=np.float64)
    solved: dict[int, Decorrelation] = {}
    warm: Array | None = None
    for k in np.argsort(-values, kind="stable"):
        solved[int(k)] = solve_support(
            R,
            np.full(len(R), values[k]),
            mask,
            names=names,
            criterion=criterion,
            n_starts=n_starts,
            random_state=random_state,
            warm=warm,
        )
        warm = solved[int(k)].T
    return [solved[k] for k in range(len(values))]
