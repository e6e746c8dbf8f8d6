"""Solutions in the factor form: for floors, and for the largest floor of the least residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import Array, column_dots, to_device, to_host
from skcoral.core.criteria import Criterion
from skcoral.core.deficiency import Deficiency
from skcoral.core.linalg import precise_product
from skcoral.core.lowrank import FactoredCorrelation, transform_of
from skcoral.core.problem import Settings
from skcoral.core.results import Decorrelation, SingularThreshold
from skcoral.core.solution import Certificate, Floors, Goal, Solution
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.singular.answer import Answer, FrameProof, LiftedProof
from skcoral.solvers.singular.problem import FrameProblem
from skcoral.solvers.singular.solver import STARTS
from skcoral.solvers.singular.threshold import FrameThreshold, frame_threshold

_THRESHOLD_STEPS = 100  # of Newton's method, which needs some twenty


def solve_singular(
    found: Deficiency,
    floors: Array | None,
    settings: Settings,
    *,
    dense: bool = True,
    like: Any = None,
    warm: Decorrelation | None = None,
) -> Solution:
    """Least residual for a correlation matrix of rank r < p.

    Parameters
    ----------
    found : Deficiency
        With the factor of the matrix.
    floors : ndarray of shape (p,) or None
        The least fidelities; None: the largest common one at the least residual of the rank.
    settings : Settings
        Criterion, pair weights, tolerance.
    dense : bool
        Whether ``T`` and ``correlation`` are p × p arrays or factors.
    like : array, optional
        The matrix as the user gave it: the algebra runs in its library and on its device.
    warm : Decorrelation, optional
        The answer to a neighbouring problem of the same variables, such as the window before in a
        table of rolling windows. What its transformation makes of this matrix is where the search
        for outputs begins; one further start is tried instead of twelve. Bounds and certificate
        are found as without it.
    """
    A = found.factor if like is None else to_device(found.factor, like)
    if warm is not None and warm.T.shape[0] != A.shape[1]:  # coefficients on other variables
        warm = None
    problem = frame_problem(A, found, settings, starts=STARTS if warm is None else 1)
    start = None if warm is None else to_device(found.factor @ warm.T, A)
    if floors is None:
        reached = frame_threshold(A, tol=problem.tol)
        start = reached.U
        floors = np.full(A.shape[1], min(max(reached.lower, 0.0), 1.0))
    answer = problem.solve(floors, start=start, callback=settings.callback)
    return solution_of(problem, answer, floors, found, dense=dense)


def frame_problem(
    A: Any, found: Deficiency, settings: Settings, *, starts: int = STARTS
) -> FrameProblem:
    """The problem in factor form."""
    return FrameProblem(
        A,
        settings.criterion,
        settings.pair_weights,
        tol=settings.tol,
        max_iter=settings.max_iter,
        starts=starts,
        dropped=found.dropped,
    )


def solution_of(
    problem: FrameProblem,
    answer: Answer,
    floors: Array,
    found: Deficiency,
    *,
    dense: bool,
    goal: Goal | None = None,
) -> Solution:
    """An answer with its transformation and its dual point."""
    A, U = np.asarray(to_host(problem.A)), np.asarray(to_host(answer.U))
    G = FactoredCorrelation(U)
    return Solution(
        T=transform_of(A * found.lengths, U, dense=dense),
        correlation=G.toarray() if dense else G,
        fidelity=np.where(floors >= 1.0, 1.0, np.einsum("ij,ij->j", A, U)),
        rho_min=floors,
        objective=answer.objective,
        lower_bound=answer.lower_bound,
        certificate=dual_of(answer, A, problem.criterion, dense=dense),
        n_iter=answer.n_iter,
        slopes=answer.slopes,
        goal=goal or Floors(),
    )


def dual_of(answer: Answer, A: Array, criterion: Criterion, *, dense: bool = True) -> Certificate:
    """The dual point behind the lower bound: (★), (★r) or (★★), with zeros for the rank alone."""
    r, p = A.shape
    proof = answer.proof or FrameProof(np.zeros((r, r)), np.zeros(p), np.zeros(p))
    factor = {} if dense and isinstance(proof, LiftedProof) else {"factor": A}
    info = {"criterion": criterion, "rank": r}
    return Certificate(proof.kind, {**factor, **proof.arrays}, info)


def singular_threshold(
    found: Deficiency, settings: Settings, *, dense: bool = True, like: Any = None
) -> SingularThreshold:
    """Both ends of the largest common floor at which the residual has its least value.

    The callback is called as ``callback(iteration, upper, lower)`` at the end.
    """
    A = found.factor if like is None else to_device(found.factor, like)
    reached: FrameThreshold = frame_threshold(A, tol=settings.tol, max_iter=_THRESHOLD_STEPS)
    if settings.callback is not None:
        settings.callback(reached.n_iter, reached.upper, reached.lower)
    host, U = np.asarray(to_host(A)), np.asarray(to_host(reached.U))
    lower = reached.lower
    T = transform_of(host * found.lengths, U, dense=dense)
    if dense:  # as the digits of T have it: they are few where a direction is weak
        U = precise_product(host, T)
        length = np.sqrt(column_dots(U, U))
        T, U = T / length, U / length
        lower = float(column_dots(host, U).min())
    proof = reached.proof
    arrays = {"factor": host, "N": to_host(proof.N), "weights": proof.lam, "kappa": proof.kappa}
    return SingularThreshold(
        lower=lower,
        upper=max(reached.upper, lower),
        weights=proof.lam,
        T=T,
        fidelity=column_dots(host, U),
        names=settings.names,
        bounds={"zca": reached.zca, "trace": reached.trace},
        certificate=Certificate("frame_threshold", arrays, {"rank": len(host)}),
        n_iter=reached.n_iter,
        tol=min(settings.tol, OPTIMAL_GAP),
    )
