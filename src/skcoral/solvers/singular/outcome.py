"""Answers in the factor form as results: transformation, status, prices, certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skcoral.certificates.settling import settle_factored
from skcoral.core.arrays import Array, column_dots, to_device, to_host
from skcoral.core.deficiency import Deficiency
from skcoral.core.linalg import precise_product
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform, transform_of
from skcoral.core.results import (
    CROWDED,
    OPTIMAL_GAP,
    Certificate,
    Criterion,
    Decorrelation,
    Status,
    Threshold,
)
from skcoral.exceptions import NotCertifiedWarning, warn
from skcoral.solvers.singular.answer import Answer
from skcoral.solvers.singular.pairs import largest_residuals
from skcoral.solvers.singular.point import welch
from skcoral.solvers.singular.problem import FrameProblem
from skcoral.solvers.singular.solver import STARTS, Callback
from skcoral.solvers.singular.threshold import FrameThreshold, frame_threshold


def solve_singular(
    found: Deficiency,
    floors: Array | None,
    *,
    names: Sequence[str],
    max_iter: int = 200,
    callback: Callback | None = None,
    dense: bool = True,
    there: Any = None,
    warm: Decorrelation | None = None,
    **settings: Any,
) -> Decorrelation:
    """Least residual for a correlation matrix of rank r < p.

    Parameters
    ----------
    found : Deficiency
        With the factor of the matrix.
    floors : ndarray of shape (p,) or None
        The least fidelities; None: the largest common one at the least residual of the rank.
    names : sequence of str
        The variables.
    max_iter, callback, **settings
        As in :func:`skcoral.decorrelate`: criterion, pair_weights and tol.
    dense : bool
        Whether ``T`` and ``correlation`` are p × p arrays or factors.
    there : array, optional
        The matrix as the user gave it: the algebra runs in its library and on its device.
    warm : Decorrelation, optional
        The answer to a neighbouring problem of the same variables, such as the window before in a
        table of rolling windows. What its transformation makes of this matrix is where the search
        for outputs begins; one further start is tried instead of twelve. Bounds and certificate
        are found as without it.

    Warns
    -----
    NotCertifiedWarning
        The gap is open; the answer is feasible all the same.
    """
    A = found.factor if there is None else to_device(found.factor, there)
    if warm is not None and warm.T.shape[0] != A.shape[1]:  # coefficients on other variables
        warm = None
    problem = FrameProblem(
        A,
        max_iter=max_iter,
        starts=STARTS if warm is None else 1,
        dropped=found.dropped,
        **settings,
    )
    start = None if warm is None else to_device(found.factor @ warm.T, A)
    if floors is None:
        reached = frame_threshold(A, tol=problem.tol)
        start = reached.U
        floors = np.full(A.shape[1], min(max(reached.lower, 0.0), 1.0))
    answer = problem.solve(floors, start=start, callback=callback)
    result = as_result(problem, answer, floors, found, names=names, dense=dense)
    if result.certificate.kind == "tradeoff" and not dense:  # R is not there to settle it by
        result = settle_factored(result, found.factor)
    if result.status != "optimal":
        warn(
            f"the residual correlation {result.objective:.9g} ({result.criterion}) is attained, "
            f"but only {result.lower_bound:.9g} is proved to be the least: a gap of "
            f"{result.gap:.2e} stays open for this matrix of rank {found.rank}.",
            NotCertifiedWarning,
        )
    return result


def as_result(
    problem: FrameProblem,
    answer: Answer,
    floors: Array,
    found: Deficiency,
    *,
    names: Sequence[str],
    dense: bool,
    details: dict[str, Any] | None = None,
) -> Decorrelation:
    """An answer with its transformation, prices, status and certificate."""
    A, U = np.asarray(to_host(problem.A)), np.asarray(to_host(answer.U))
    status: Status = "optimal" if answer.certified else "best_found"
    T = transform_of(A * found.lengths, U, dense=dense)
    G = FactoredCorrelation(U)
    amplification = T.largest() if isinstance(T, LowRankTransform) else float(np.abs(T).max())
    return Decorrelation(
        T=T,
        correlation=G.toarray() if dense else G,
        fidelity=np.where(floors >= 1.0, 1.0, np.einsum("ij,ij->j", A, U)),
        rho_min=floors,
        criterion=problem.criterion,
        objective=answer.objective,
        lower_bound=min(answer.lower_bound, answer.objective),
        prices=_prices(answer, floors, U),
        weights=0.5 * answer.slopes,
        status=status,
        names=tuple(names),
        certificate=certificate_of(answer, A, problem.criterion, dense=dense),
        n_iter=answer.n_iter,
        pair_weights=problem.pair_weights,
        details={
            "least_residual": welch(A.shape[1], A.shape[0]),
            "amplification": amplification,
            "deficiency": found.told(),
            **(details or {}),
        },
        rank=found.rank,
    )


def certificate_of(
    answer: Answer,
    A: Array,
    criterion: Criterion,
    *,
    dense: bool = True,
) -> Certificate:
    """The dual point behind the lower bound: (★), (★r), (★★), or none."""
    proof, info = answer.proof, {"criterion": criterion, "rank": A.shape[0]}
    if proof is None:
        return Certificate("welch", {"factor": A}, info)
    factor = {} if dense and proof.kind == "tradeoff" else {"factor": A}
    return Certificate(proof.kind, {**factor, **proof.arrays}, info)


def _prices(answer: Answer, floors: Array, U: Array) -> Array:
    """Derivatives by the floors; infinite at a floor of one that costs anything."""
    prices = np.array(answer.slopes)
    ones = floors >= 1.0
    if ones.any():
        prices[ones] = np.where(largest_residuals(U)[0][ones] > CROWDED, np.inf, 0.0)
        if answer.proof is None:
            prices[ones] = 0.0
    return prices


def singular_threshold(
    found: Deficiency,
    *,
    names: Sequence[str],
    tol: float = 1e-9,
    max_iter: int = 100,
    callback: Callback | None = None,
    dense: bool = True,
    there: Any = None,
) -> Threshold:
    """Both ends of the largest common floor at which the residual has its least value.

    Parameters
    ----------
    found, names, tol, max_iter, dense, there
        As in :func:`solve_singular`.
    callback : callable, optional
        Called as ``callback(iteration, upper, lower)`` at the end.

    Warns
    -----
    NotCertifiedWarning
        The two ends do not meet within ``tol``.
    """
    A = found.factor if there is None else to_device(found.factor, there)
    reached: FrameThreshold = frame_threshold(A, tol=tol, max_iter=max_iter)
    if callback is not None:
        callback(reached.n_iter, reached.upper, reached.lower)
    host, U = np.asarray(to_host(A)), np.asarray(to_host(reached.U))
    r, p = host.shape
    lower = reached.lower
    T = transform_of(host * found.lengths, U, dense=dense)
    if dense:  # as the digits of T have it: they are few where a direction is weak
        U = precise_product(host, T)
        length = np.sqrt(column_dots(U, U))
        T, U = T / length, U / length
        lower = float(column_dots(host, U).min())
    proof = reached.proof
    arrays = {"factor": host, "N": to_host(proof.N), "weights": proof.lam, "kappa": proof.kappa}
    return Threshold(
        lower=lower,
        upper=max(reached.upper, lower),
        weights=proof.lam,
        T=T,
        fidelity=column_dots(host, U),
        names=tuple(names),
        bounds={"zca": reached.zca, "trace": reached.trace},
        certificate=Certificate("frame_threshold", arrays, {"rank": r}),
        n_iter=reached.n_iter,
        tol=min(tol, OPTIMAL_GAP),
        rank=r,
        least_residual=welch(p, r),
    )
