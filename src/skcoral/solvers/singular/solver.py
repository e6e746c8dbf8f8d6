"""Solutions for a matrix of rank r < p: for floors, and for the largest floor of least residual."""

from __future__ import annotations

import numpy as np

from skcoral.core.arrays import Array, column_dots, to_device
from skcoral.core.linalg import precise_product
from skcoral.core.lowrank import FactoredCorrelation, transform_of
from skcoral.core.problem import Problem
from skcoral.core.results import Decorrelation, SingularThreshold
from skcoral.core.solution import Certificate, Floors, Goal, Solution
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.singular.problem import STARTS, Answer, FrameProblem
from skcoral.solvers.singular.threshold import frame_threshold


def solve_singular(
    asked: Problem, floors: Array | None, *, warm: Decorrelation | None = None
) -> Solution:
    """Least residual for a correlation matrix of rank r < p.

    Without floors, the largest common one at the least residual of the rank is asked for. The
    algebra runs in the library and on the device of the matrix that was given. What the
    transformation of ``warm``, the answer to a neighbouring problem, makes of this matrix is where
    the search for outputs begins, and one further start is tried instead of many; bounds are found
    as without it.
    """
    p = len(asked.matrix)
    if warm is not None and warm.T.shape[0] != p:  # coefficients on other variables
        warm = None
    problem = frame_problem(asked, starts=STARTS if warm is None else 1)
    start = None if warm is None else problem.host @ warm.T
    if floors is None:
        edge = frame_threshold(problem.A)
        start, floors = edge.U, np.full(p, min(max(edge.lower, 0.0), 1.0))
    return solution_of(problem.solve(floors, start=start, callback=asked.settings.callback))


def frame_problem(asked: Problem, *, starts: int = STARTS) -> FrameProblem:
    """The problem in factor form, in the library and on the device of the matrix given."""
    matrix, settings, known = asked.matrix, asked.settings, asked.matrix.deficiency
    assert known is not None
    A = known.factor if matrix.like is None else to_device(known.factor, matrix.like)
    goal = settings.criterion, settings.pair_weights, settings.tol, settings.max_iter
    return FrameProblem(A, *goal, starts, known.dropped, known.lengths, matrix.dense)


def solution_of(answer: Answer, goal: Goal | None = None) -> Solution:
    """An answer with its transformation and its dual point."""
    A, U, floors = answer.problem.host, answer.U, answer.floors
    lengths, dense = answer.problem.lengths, answer.problem.dense
    G, dual = FactoredCorrelation(U), answer.certificate
    if dense and dual.kind == "tradeoff":  # (★) is about the matrix as it is
        dual = Certificate(dual.kind, {k: dual.arrays[k] for k in ("multipliers", "H")}, dual.info)
    return Solution(
        T=transform_of(A * lengths, U, dense=dense),
        correlation=G.toarray() if dense else G,
        fidelity=np.where(floors >= 1.0, 1.0, column_dots(A, U)),
        rho_min=floors,
        objective=answer.objective,
        lower_bound=answer.lower_bound,
        certificate=dual,
        n_iter=answer.n_iter,
        slopes=answer.proved.slopes,
        unique=answer.problem.criterion == "squared",
        goal=goal or Floors(),
    )


def singular_threshold(asked: Problem) -> SingularThreshold:
    """Both ends of the largest common floor at which the residual has its least value.

    The callback is called as ``callback(iteration, upper, lower)`` at the end.
    """
    problem, settings = frame_problem(asked), asked.settings
    edge = frame_threshold(problem.A)
    if settings.callback is not None:
        settings.callback(edge.n_iter, edge.upper, edge.lower)
    host, U, lower = problem.host, edge.U, edge.lower
    T = transform_of(host * problem.lengths, U, dense=problem.dense)
    if problem.dense:  # as the digits of T have it: they are few where a direction is weak
        U = precise_product(host, T)
        length = np.sqrt(column_dots(U, U))
        T, U = T / length, U / length
        lower = float(column_dots(host, U).min())
    return SingularThreshold(
        lower=lower,
        upper=max(edge.upper, lower),
        weights=edge.certificate.arrays["weights"],
        T=T,
        fidelity=column_dots(host, U),
        names=settings.names,
        certificate=edge.certificate,
        n_iter=edge.n_iter,
        tol=min(settings.tol, OPTIMAL_GAP),
    )
