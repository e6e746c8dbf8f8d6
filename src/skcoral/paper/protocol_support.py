"""The paper's way to solve its support-restricted problem: sequential quadratic programming."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from skcoral._arrays import Array
from skcoral._validation import check_correlation, check_support
from skcoral.paper.protocol import ProtocolRun, check_common_floor, run_starts


def protocol_support(
    R: ArrayLike,
    support: NDArray[np.bool_],
    rho_min: float,
    *,
    n_starts: int = 100,
    random_state: int = 0,
) -> ProtocolRun:
    """Minimise D2 over the allowed coefficients as the paper does, from random starts.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    support : ndarray of bool of shape (p, p)
        Allowed coefficients.
    rho_min : float
        Common floor.
    n_starts : int, default=100
        Random starts.
    random_state : int, default=0
        Seed of the starts.

    Returns
    -------
    ProtocolRun

    Examples
    --------
    >>> from skcoral.paper import protocol_support
    >>> R = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> run = protocol_support(R, np.eye(2, dtype=bool), 0.5, n_starts=2)
    >>> round(run.best, 6)  # nothing may be mixed, so the correlation stays
    0.36
    """
    R = check_correlation(R)
    p = len(R)
    rho_min = check_common_floor(rho_min)
    rows, columns = np.nonzero(check_support(support, p, [f"x{j}" for j in range(p)]))
    free = np.arange(rows.size)
    fidelity_rows = np.zeros((p, rows.size))
    fidelity_rows[columns, free] = R[columns, rows]

    def matrix(x: Array) -> Array:
        T = np.zeros((p, p))
        T[rows, columns] = x
        return T

    def objective(x: Array) -> tuple[float, Array]:
        T = matrix(x)
        RT = R @ T
        E = T.T @ RT
        np.fill_diagonal(E, 0.0)
        return float(np.sum(E * E)) / 2, (2 * RT @ E)[rows, columns]

    def variance(x: Array) -> Array:
        T = matrix(x)
        return np.einsum("ij,ij->j", T, R @ T) - 1.0

    def variance_jacobian(x: Array) -> Array:
        jacobian = np.zeros((p, rows.size))
        jacobian[columns, free] = 2 * (R @ matrix(x))[rows, columns]
        return jacobian

    constraints: list[dict[str, Any]] = [
        {"type": "eq", "fun": variance, "jac": variance_jacobian},
        {
            "type": "ineq",
            "fun": lambda x: fidelity_rows @ x - rho_min,
            "jac": lambda x: fidelity_rows,
        },
    ]

    def one(rng: np.random.Generator) -> tuple[float, float, float]:
        T = matrix(rng.normal(size=rows.size))
        RT = R @ T
        T *= np.where(np.diag(RT) < 0, -1.0, 1.0) / np.sqrt(np.einsum("ij,ij->j", T, RT))
        ended = minimize(
            objective,
            T[rows, columns],
            jac=True,
            method="SLSQP",
            constraints=constraints,
            options={"maxiter": 500, "ftol": 1e-10},
        )
        missed = max(0.0, rho_min - float((fidelity_rows @ ended.x).min()))
        off_unit = float(np.abs(variance(ended.x)).max())
        return float(ended.fun), max(missed, off_unit), np.nan

    return run_starts("primal", one, n_starts, random_state)
