"""Support problems solved and certified, and what their answers are compared with."""

import numpy as np
import pytest
import scipy.optimize as so

from skcoral.certificates.certify import certify
from skcoral.core.problem import Problem
from skcoral.solvers.support.solver import SupportProblem
from skcoral.solvers.support.solver import solve_support as solve


def solve_support(R, floors, mask, *, criterion="squared", callback=None, **options):
    problem = Problem.of(R, criterion=criterion, callback=callback)
    return certify(problem, solve(SupportProblem(problem, floors, mask, **options)))


def value(criterion, R, T):
    r = np.abs((T.T @ R @ T)[np.triu_indices(T.shape[1], 1)])
    return float({"squared": r @ r, "worst": r.max(), "absolute": r.sum()}[criterion])


def fidelity(R, B, T):
    return np.diag(B.T @ R @ T) / np.sqrt(np.diag(B.T @ R @ B) * np.diag(T.T @ R @ T))


def assert_feasible(R, mask, result, B=None):
    """Zeros, unit variances, floors and the objective, by their definitions."""
    T, B = result.T, np.eye(len(R)) if B is None else B
    assert not T[~mask].any()
    np.testing.assert_allclose(np.diag(T.T @ R @ T), 1, atol=1e-11)
    np.testing.assert_allclose(result.fidelity, fidelity(R, B, T), atol=1e-9)
    assert (result.fidelity >= result.rho_min - 1e-15).all()
    assert result.objective == pytest.approx(value(result.criterion, R, T), abs=1e-10)
    assert result.lower_bound <= result.objective


def by_slsqp(R, mask, rho, n, seed=0, B=None, box=None, criterion="squared"):
    """Least residual by sequential quadratic programming from several starts, the paper's way.

    Other criteria than squares are linear in levels above the correlations: one, or one a pair.
    """
    rows, columns = np.nonzero(mask)
    B = np.eye(len(R)) if B is None else B
    unit = B / np.sqrt(np.diag(B.T @ R @ B))
    pairs = np.triu_indices(mask.shape[1], 1)
    levels = {"squared": 0, "worst": 1, "absolute": len(pairs[0])}[criterion]

    def build(x):
        T = np.zeros(mask.shape)
        T[rows, columns] = x[levels:]
        return T

    def objective(x):
        if levels:
            return x[:levels].sum(), (np.arange(len(x)) < levels) * 1.0
        T = build(x)
        E = T.T @ R @ T
        np.fill_diagonal(E, 0.0)
        return 0.5 * np.sum(E * E), (2.0 * R @ T @ E)[rows, columns]

    def above(x, sign):
        return x[:levels] + sign * (build(x).T @ R @ build(x))[pairs]

    asked = [
        {"type": "eq", "fun": lambda x: np.diag(build(x).T @ R @ build(x)) - 1.0},
        {"type": "ineq", "fun": lambda x: np.diag(unit.T @ R @ build(x)) - rho},
    ]
    if levels:
        asked += [{"type": "ineq", "fun": above, "args": (sign,)} for sign in (1.0, -1.0)]
    limits = None
    if box is not None:
        inside = np.column_stack([side[rows, columns] for side in box])
        limits = np.vstack([np.tile([0.0, np.inf], (levels, 1)), inside])
    rng, best = np.random.default_rng(seed), np.inf
    for _ in range(n):
        T = build(np.r_[np.ones(levels), rng.normal(size=len(rows))])
        T *= np.sign(np.diag(unit.T @ R @ T)) / np.sqrt(np.diag(T.T @ R @ T))
        options = {"maxiter": 300, "ftol": 1e-13}
        end = so.minimize(
            objective,
            np.r_[np.ones(levels), T[rows, columns]],
            jac=True,
            method="SLSQP",
            bounds=limits,
            constraints=asked,
            options=options,
        )
        if np.abs(asked[0]["fun"](end.x)).max() < 1e-7 and asked[1]["fun"](end.x).min() > -1e-7:
            best = min(best, value(criterion, R, build(end.x)))
    return best
