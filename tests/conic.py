"""Conic programmes of cvxpy for comparison, on whatever processor the tests run."""

import contextlib
import warnings
from typing import Any

import numpy as np


def solve(problem: Any, **settings: float) -> float:
    """The optimal value by Clarabel; where rounding stops it early, by SCS.

    How far an interior-point method gets on a programme without interior is a matter of the last
    digits, which differ from one processor to the next.
    """
    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        with contextlib.suppress(cp.SolverError):
            problem.solve(solver=cp.CLARABEL, **settings)
        if problem.status == cp.OPTIMAL:
            return float(problem.value)
    problem.solve(solver=cp.SCS, eps_abs=1e-9, eps_rel=1e-9, max_iters=200_000)
    return float(problem.value)


def highest_floor(R: Any, limit: float) -> float:
    """The highest common floor within a limit on the VIF: ``G ⪰ e_j e_jᵀ / limit`` for every j."""
    import cvxpy as cp

    p, L = len(R), np.linalg.cholesky(R)
    W, G, floor = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True), cp.Variable()
    rules = [cp.bmat([[np.eye(p), W], [W.T, G]]) >> 0, cp.diag(G) == 1, cp.diag(L @ W) >= floor]
    rules += [G - np.outer(e, e) / limit >> 0 for e in np.eye(p)]
    return solve(cp.Problem(cp.Maximize(floor), rules))
