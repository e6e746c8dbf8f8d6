"""The semidefinite relaxation handed to a general-purpose conic solver (cvxpy and Clarabel)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def solve(R: np.ndarray, floors: np.ndarray, criterion: str = "squared") -> float:
    """Least sum of squares, or least worst pair, by a cone of order 2p."""
    p = len(R)
    C, G = cp.Variable((p, p)), cp.Variable((p, p), symmetric=True)
    E = G - np.eye(p)
    loss = cp.max(cp.abs(E)) if criterion == "worst" else 0.5 * cp.sum_squares(E)
    problem = cp.Problem(
        cp.Minimize(loss),
        [cp.bmat([[R, C], [C.T, G]]) >> 0, cp.diag(G) == 1, cp.diag(C) >= floors],
    )
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)
