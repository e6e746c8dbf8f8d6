"""The bound (★) of the trade-off for singular matrices.

(★) lets outputs leave the span of the sources and is valid for every R; it is tight at high
floors. The dual point is found for a matrix that is shrunk by 1e-14 or 1e-8, where the solver of
the trade-off works, and the bound is then evaluated for the matrix that was given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as sla

from skcoral.bounds.tradeoff import plain_bound
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.problem import Settings
from skcoral.core.solution import Solution
from skcoral.solvers.exact import solve_exact
from skcoral.solvers.singular.answer import LiftedProof
from skcoral.solvers.tradeoff import solve_tradeoff

# Towards the identity, for the search only: where R has null directions that H shares (duplicates)
# the bound loses the root of it; the larger one is for floors next to one.
_SHRUNK = (1e-14, 1e-8)
_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of an entry of the matrix
_RIDGES = (0.0, *np.geomspace(1e-11, 1e-5, 25))
_FEW = 40  # variables up to which the first is tried


def lifted_proof(
    A: Array,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    tol: float,
    max_iter: int,
) -> LiftedProof | None:
    """Search a dual point of (★); None where it proves nothing or none was found."""
    names = tuple(f"x{j}" for j in range(A.shape[1]))
    settings = Settings(names, criterion, pair_weights, tol=tol, max_iter=max_iter)
    for shrunk in _SHRUNK if A.shape[1] <= _FEW else _SHRUNK[1:]:
        R = (1.0 - shrunk) * (A.T @ A)
        np.fill_diagonal(R, 1.0)
        try:
            refused = solve_exact(R, floors, settings)
            if isinstance(refused, Solution):
                continue
            answer = solve_tradeoff(R, floors, settings, refused=refused)
        except (ArithmeticError, ValueError, RuntimeError):  # no digits left at this shrinkage
            continue
        lam, H = (np.array(answer.certificate.arrays.get(k, np.nan)) for k in ("multipliers", "H"))
        factor = _factor(H) if np.isfinite(lam).all() and np.isfinite(H).all() else None
        if factor is not None:
            own = sla.cho_solve((factor, True), (A * lam).T, check_finite=False).T
            return LiftedProof(lam, H, (own, A @ answer.T), answer.n_iter)
    return None


def lifted_bound(
    proof: LiftedProof,
    A: Array,
    U: Array,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
) -> float:
    """Evaluate (★) at feasible outputs ``U``, which is minus infinite where H is not definite."""
    if _factor(proof.H) is None:
        return -np.inf
    defect = U.T @ U
    np.fill_diagonal(defect, 0.0)  # the columns have unit length
    fidelity = np.where(floors >= 1.0, 1.0, np.einsum("ij,ij->j", A, U))
    given = proof.lam, proof.H, floors, criterion, pair_weights
    return plain_bound(*given, X=U, fidelity=fidelity, defect=defect, B=A)


def robust_bound(
    proof: LiftedProof,
    A: Array,
    U: Array,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    dropped: float = 0.0,
) -> tuple[float, LiftedProof]:
    """The best bound that holds for the given matrix, and its dual point.

    The matrix differs from ``AᵀA`` by the variances ``dropped`` with small eigenvalues and by
    rounding, of which ``λᵀ|H⁻¹|λ`` is the share that the bound loses: a nearly singular H is moved
    away from singularity where the bound gains by it.
    """
    best = -np.inf, proof
    for ridge in _RIDGES:
        moved = replace(proof, H=proof.H + ridge * np.eye(len(proof.H)))
        factor = _factor(moved.H)
        if factor is None:
            continue
        inverse = np.abs(sla.cho_solve((factor, True), np.eye(len(moved.H)), check_finite=False))
        loss = (dropped + _ROUNDING) * float(moved.lam @ inverse @ moved.lam)
        bound = lifted_bound(moved, A, U, floors, criterion, pair_weights) - loss
        if bound > best[0]:
            best = bound, moved
    return best


def _factor(H: Array) -> Array | None:
    factor, info = sla.lapack.dpotrf(H, lower=1, clean=1)
    return factor if info == 0 else None
