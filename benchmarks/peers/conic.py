"""The semidefinite relaxation handed to a general-purpose conic solver (cvxpy and Clarabel)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def solve(R: np.ndarray, floors: np.ndarray) -> float:
    """Least sum of squares, by a cone of order 2p."""
    p = len(R)
    C, G = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True)
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(G - np.eye(p))),
        [cp.bmat([[R, C], [C.T, G]]) >> 0, cp.diag(G) == 1, cp.diag(C) >= floors],
    )
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)
