"""Conic programmes of cvxpy for comparison, on whatever processor the tests run."""

import contextlib
import warnings
from typing import Any


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
