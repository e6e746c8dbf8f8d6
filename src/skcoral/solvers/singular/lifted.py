"""The bound (★) of the trade-off for singular matrices.

(★) lets outputs leave the span of the sources and is valid for every R; it is tight at high
floors. The dual point is found for a matrix that is shrunk a little, where the solver of the
trade-off works; the bound is then evaluated for the matrix that was given. This may differ
from ``AᵀA`` by small eigenvalues, which a bound for that matrix alone would pay for.
"""

from __future__ import annotations

import numpy as np

from skcoral.core.arrays import Array, cholesky_or_none
from skcoral.core.criteria import Criterion
from skcoral.core.problem import Settings
from skcoral.core.solution import Solution
from skcoral.solvers.exact import solve_exact
from skcoral.solvers.tradeoff.search import solve_floors

# Towards the identity, for the search only: where R has null directions that H shares (duplicates)
# the bound loses the root of it; the larger one is for tables with few rows, some of which have no
# digits left at the smaller one.
_SHRUNK = (1e-14, 1e-8)


def lifted_dual(
    A: Array,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    tol: float,
    max_iter: int,
    dropped: float = 0.0,
) -> tuple[dict[str, Array], Array, int] | None:
    """Search a dual point of (★); None where none is found.

    The matrix is shrunk by no less than the variance ``dropped`` with small eigenvalues. Returns
    the arrays of the certificate, outputs that it suggests, and the number of steps.
    """
    names = tuple(f"x{j}" for j in range(A.shape[1]))
    settings = Settings(names, criterion, pair_weights, tol=tol, max_iter=max_iter)
    for shrunk in _SHRUNK:
        R = (1.0 - max(shrunk, dropped)) * (A.T @ A)
        np.fill_diagonal(R, 1.0)
        try:
            refused = solve_exact(R, floors, settings)
            if isinstance(refused, Solution):
                continue
            solved = solve_floors(R, floors, settings, refused=[refused], bound_only=True)
        except (ArithmeticError, ValueError, RuntimeError):  # no digits left at this shrinkage
            continue
        finite = np.isfinite(solved.lam).all() and np.isfinite(solved.H).all()
        if finite and cholesky_or_none(solved.H) is not None:
            return {"multipliers": solved.lam, "H": solved.H}, A @ solved.T, solved.n_iter
    return None
