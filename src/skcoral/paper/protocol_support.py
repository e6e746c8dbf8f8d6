"""The paper's way to solve its support-restricted problem: sequential quadratic programming."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skcoral._arrays import Array


def supported_end(
    R: Array, mask: NDArray[np.bool_], rho_min: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Minimise D2 over the allowed coefficients: value, violation and (unknown) determinant."""
    p = len(R)
    rows, columns = np.nonzero(mask)
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

    T = matrix(rng.normal(size=rows.size))
    RT = R @ T
    T *= np.where(np.diag(RT) < 0, -1.0, 1.0) / np.sqrt(np.einsum("ij,ij->j", T, RT))
    kept = {"fun": lambda x: fidelity_rows @ x - rho_min, "jac": lambda x: fidelity_rows}
    end = minimize(
        objective,
        T[rows, columns],
        jac=True,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": variance, "jac": variance_jacobian},
            {"type": "ineq", **kept},
        ],
        options={"maxiter": 500, "ftol": 1e-10},
    )
    missed = max(0.0, rho_min - float((fidelity_rows @ end.x).min()))
    return float(end.fun), max(missed, float(np.abs(variance(end.x)).max())), np.nan
