"""Floors above what exact decorrelation allows: the least residual correlation, with its proof.

One interior-point method follows the central path for every criterion. Once the products separate
the floors that bind from those that do not, the binding ones are solved alone and the others are
completed exactly. The completion and the certificate judge the guess; where it was wrong, the path
is followed further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.exact import BestExact, ExactThreshold
from skcoral.results import Criterion, Decorrelation
from skcoral.tradeoff.results import Solved, as_result
from skcoral.tradeoff.search import Search, Warm

Callback = Callable[[int, float, float], object]
Exact = BestExact | ExactThreshold


def solve_tradeoff(
    R: Any,
    floors: Array,
    *,
    names: Sequence[str],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
    refused: Exact | None = None,
) -> Decorrelation:
    """Least residual correlation for floors that exact decorrelation cannot meet.

    Parameters
    ----------
    R : array of shape (p, p)
        Correlation matrix, positive definite. The work is done where it lies; the result is in
        NumPy.
    floors : ndarray of shape (p,)
        The least fidelity of each variable, in [0, 1].
    names : sequence of str
        The variables.
    criterion : {"squared", "worst", "absolute"}
        What is minimised. For "worst", the answer has the least sum of squares among the optima.
    pair_weights : ndarray of shape (p, p), optional
        Weights of the pairs; zero means that a pair does not matter.
    tol : float
        Gap to aim at, relative to ``max(1, objective)``.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(iteration, objective, lower_bound)`` after each step.
    refused : BestExact or ExactThreshold, optional
        How exact decorrelation was refused; computed if not given.

    Returns
    -------
    Decorrelation

    Warns
    -----
    NotCertifiedWarning
        The gap could not be closed; the answer is feasible all the same.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff import solve_tradeoff
    >>> R = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> answer = solve_tradeoff(R, np.array([0.95, 0.95]), names=["a", "b"], criterion="worst")
    >>> answer.status
    'optimal'
    >>> round(answer.objective, 6)  # cos(arccos 0.8 + 2 arccos 0.95)
    0.288035
    """
    solved = solve_floors(
        R,
        floors,
        criterion=criterion,
        pair_weights=pair_weights,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        refused=refused,
    )
    return as_result(
        solved,
        floors,
        names=names,
        criterion=criterion,
        pair_weights=pair_weights,
        max_iter=max_iter,
    )


def solve_from_neighbour(
    R: Any,
    floors: Array,
    neighbour: Decorrelation,
    *,
    names: Sequence[str],
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> Decorrelation | None:
    """Try Newton's method from the dual point of a neighbouring answer; None if it is too far.

    Parameters are those of :func:`solve_tradeoff`. A certified answer with a residual also proves
    that the floors are out of reach of exact decorrelation.
    """
    arrays = neighbour.certificate.arrays
    if criterion != "squared" or neighbour.certificate.kind != "tradeoff":
        return None
    lam = arrays["multipliers"]
    warm = Warm(arrays["H"], lam > 0)
    search = Search.of(R, floors, criterion, pair_weights, tol, max_iter, callback)
    solved = None if search is None else search.from_neighbour(warm)
    if solved is None or not solved.lower_bound > 0.0:
        return None
    return as_result(
        solved,
        floors,
        names=names,
        criterion=criterion,
        pair_weights=pair_weights,
        max_iter=max_iter,
    )


def solve_floors(
    R: Any,
    floors: Array,
    *,
    criterion: Criterion,
    pair_weights: Array | None,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    warm: Warm | None = None,
    rough: bool = False,
    refused: Exact | None = None,
) -> Solved:
    """Solve without judging: the numbers of :func:`solve_tradeoff` before status and warning."""
    search = Search.of(R, floors, criterion, pair_weights, tol, max_iter, callback)
    if search is None:
        return _nothing_counts(R, floors, tol, max_iter)
    search.exact = refused
    near = None
    if warm is not None and criterion == "squared":
        near = search.from_neighbour(warm, rough=rough)
    return search.run() if near is None else near


def _nothing_counts(R: Any, floors: Array, tol: float, max_iter: int) -> Solved:
    """All pair weights are zero: the objective is zero, and ties go to the least sum of squares."""
    p = len(floors)
    plain = solve_floors(
        R, floors, criterion="squared", pair_weights=None, tol=tol, max_iter=max_iter
    )
    H = 1e-15 * np.eye(p)
    return replace(plain, objective=0.0, lower_bound=-1e-15 * p, lam=np.zeros(p), H=H)
