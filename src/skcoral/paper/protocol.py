"""The paper's own way to solve its problems, as a baseline: penalties and many random starts.

An augmented Lagrangian over a manifold, its inner problems solved by pymanopt's Riemannian trust
regions (extra ``paper``), from independent random starts; the best feasible end is kept. The paper
does not print its settings, but its results determine them. A penalty that starts at 10 and is
doubled until floors hold to 1e-4 ends at the five violations that its appendix prints, to every
digit; of 42 pairs of start and growth tried, no other does. Its thresholds have six right digits,
for which floors must hold to 1e-7. How it draws its starts is not known: here, uniformly on the
spheres and over the orthogonal group.

This is for comparison only. :func:`skcoral.threshold` and :func:`skcoral.decorrelate` solve the
same problems without starts and prove it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from skcoral.core.arrays import Array, Frozen
from skcoral.core.matrix import check_correlation, square_matrix
from skcoral.core.validation import check_count, check_floors, check_number, check_support
from skcoral.exceptions import InvalidArgumentError

VIOLATION = 1e-4  # of a floor: with the penalty and its growth, what the printed violations need
_THRESHOLD_VIOLATION = 1e-7  # six right digits of ρ★ need it
_PENALTY, _GROWTH = 10.0, 2.0
_ROUNDS, _STEPS = 30, 500  # at most
_GRADIENT = 1e-6

#: Where a start ends: value, violation and determinant.
End = tuple[float, float, float]


@dataclass(frozen=True)
class ProtocolRun(Frozen):
    """Where each random start of the paper's protocol ended.

    Attributes
    ----------
    problem : {"primal", "threshold"}
        What was solved: the residual D2 is minimised, the common fidelity maximised.
    values : ndarray of shape (n_starts,)
        D2, or the least fidelity, at the end of each start.
    violations : ndarray of shape (n_starts,)
        By how much the worst floor is missed there (zero for the threshold: its value counts it).
    determinants : ndarray of shape (n_starts,)
        +1 or -1, the orientation of the outputs at the end. For the threshold that is the component
        of the orthogonal group that the start is in and cannot leave. NaN under a support
        restriction.
    seconds : float
        For all starts together.

    Examples
    --------
    >>> run = run_protocol([[1.0, 0.8], [0.8, 1.0]], n_starts=2)
    >>> run.problem, len(run.values)
    ('threshold', 2)
    """

    problem: str
    values: Array
    violations: Array
    determinants: Array
    seconds: float

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which starts ended within the paper's tolerance."""
        return self.violations <= VIOLATION

    @property
    def best(self) -> float:
        """The value that the protocol would report; NaN if no start ended feasible."""
        ends = self.values[self.feasible]
        if not ends.size:
            return float("nan")
        return float(ends.min() if self.problem == "primal" else ends.max())

    def worse(self, certified: float, *, rel: float = 0.01) -> NDArray[np.bool_]:
        """Return which starts end with a worse value than ``certified`` by more than ``rel``."""
        if self.problem == "primal":
            return self.values > certified * (1 + rel)
        return self.values < certified * (1 - rel)

    def share_worse(self, certified: float, *, rel: float = 0.01) -> float:
        """Return the share of starts that end worse by more than ``rel``, or infeasible."""
        return float(np.mean(self.worse(certified, rel=rel) | ~self.feasible))


def run_protocol(
    R: ArrayLike,
    rho_min: float | None = None,
    *,
    support: NDArray[np.bool_] | None = None,
    n_starts: int = 100,
    random_state: int = 0,
) -> ProtocolRun:
    """Solve one of the paper's problems as the paper does, from random starts.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    rho_min : float, optional
        Common floor under which D2 is minimised, on the oblique manifold. Without it the common
        fidelity is maximised over the orthogonal group.
    support : ndarray of bool of shape (p, p), optional
        Allowed coefficients; sequential quadratic programming is used with them.
    n_starts : int, default=100
        Random starts.
    random_state : int, default=0
        Seed of the starts.

    Returns
    -------
    ProtocolRun

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.paper import run_protocol
    >>> R = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> run = run_protocol(R, 0.97, n_starts=3)
    >>> abs(run.best - 0.02304) < 1e-4  # cos²(arccos 0.6 + 2 arccos 0.97)
    True
    >>> round(run_protocol(R, n_starts=4).best, 3)  # the threshold
    0.949
    >>> run = run_protocol(R, 0.5, support=np.eye(2, dtype=bool), n_starts=2)
    >>> round(run.best, 6)  # nothing may be mixed, so the correlation stays
    0.36
    """
    R, root = _matrix_and_root(R)
    floor = None if rho_min is None else _check_common_floor(rho_min)
    mask = None
    if support is not None:
        mask = check_support(support, [f"x{j}" for j in range(len(R))])

    def end(rng: np.random.Generator) -> End:
        if mask is not None:
            return _supported_end(R, mask, floor or 0.0, rng)
        return _threshold_end(root, rng) if floor is None else _primal_end(root, floor, rng)

    start = perf_counter()
    sequence = np.random.SeedSequence(check_count("random_state", random_state, minimum=0))
    seeds = sequence.spawn(check_count("n_starts", n_starts, maximum=1_000_000))
    ends = np.array([end(np.random.default_rng(seed)) for seed in seeds])
    problem = "threshold" if floor is None and support is None else "primal"
    return ProtocolRun(problem, ends[:, 0], ends[:, 1], ends[:, 2], perf_counter() - start)


def protocol_from(R: ArrayLike, rho_min: float, T: ArrayLike) -> Array:
    """Follow the paper's method from a given transformation instead of random starts.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    rho_min : float
        Common floor.
    T : array-like of shape (p, p)
        Where to start: a transformation with unit-variance columns.

    Returns
    -------
    ndarray of shape (p, p)
        The transformation where it ends, its floors missed by less than 1e-4.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> from skcoral.datasets import make_system
    >>> from skcoral.core.measures import fidelity
    >>> from skcoral.paper import protocol_from
    >>> R = make_system(6)
    >>> T = protocol_from(R, 0.99, decorrelate(R, 0.99).T)
    >>> f"{0.99 - fidelity(R, T).min():.2e}"  # the violation that the paper prints
    '9.51e-05'
    """
    R, root = _matrix_and_root(R)
    start, _ = square_matrix(T, "T", InvalidArgumentError)
    if start.shape != R.shape:
        raise InvalidArgumentError(f"T must be of shape {R.shape}, as R is; got {start.shape}.")
    W = _minimise(root, root @ start, _check_common_floor(rho_min))
    return np.asarray(np.linalg.solve(root, W), dtype=np.float64)


def _primal_end(root: Array, rho_min: float, rng: np.random.Generator) -> End:
    W = rng.normal(size=root.shape)
    W = _minimise(root, W / np.linalg.norm(W, axis=0), rho_min)
    missed = rho_min - np.einsum("ij,ij->j", root, W).min()
    return _squared_residual(W)[0], float(max(0.0, missed)), float(np.sign(np.linalg.det(W)))


def _threshold_end(root: Array, rng: np.random.Generator) -> End:
    Q, triangle = np.linalg.qr(rng.normal(size=root.shape))
    Q = Q * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    lowest = np.einsum("ij,ij->j", root, Q).min(keepdims=True)
    Q, _ = _minimise(root, [Q, lowest])
    return float(np.einsum("ij,ij->j", root, Q).min()), 0.0, float(np.sign(np.linalg.det(Q)))


def _supported_end(
    R: Array, mask: NDArray[np.bool_], rho_min: float, rng: np.random.Generator
) -> End:
    """Minimise D2 over the allowed coefficients by sequential quadratic programming."""
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


def _squared_residual(W: Array) -> tuple[float, Array]:
    """D2 as a function of the outputs' directions, and their residual correlations."""
    E = W.T @ W
    np.fill_diagonal(E, 0.0)
    return float(np.sum(E * E)) / 2, E


class _Lagrangian:
    """The augmented Lagrangian of the floors: D2 at a floor, or minus a floor that is free."""

    def __init__(self, root: Array, rho_min: float | None, multipliers: Array, penalty: float):
        self.root, self.rho_min = root, rho_min
        self.multipliers, self.penalty = multipliers, penalty

    def shortfall(self, *point: Array) -> Array:
        """By how much each fidelity misses the floor, which is in the point or given."""
        wanted = self.rho_min if self.rho_min is not None else point[1]
        return np.asarray(wanted - np.einsum("ij,ij->j", self.root, point[0]))

    def updated(self, *point: Array) -> Array:
        """The multipliers after a step."""
        return np.maximum(0.0, self.multipliers + self.penalty * self.shortfall(*point))

    def cost(self, *point: Array) -> float:
        m = self.updated(*point)
        free = self.rho_min is None
        value = -float(point[1][0]) if free else _squared_residual(point[0])[0]
        return value + float(m @ m - self.multipliers @ self.multipliers) / (2 * self.penalty)

    def gradient(self, *point: Array) -> Any:
        m = self.updated(*point)
        if self.rho_min is None:
            return [-self.root * m, m.sum(keepdims=True) - 1.0]
        return 2 * point[0] @ _squared_residual(point[0])[1] - self.root * m

    def hessian(self, *point_and_direction: Array) -> Any:
        half = len(point_and_direction) // 2
        point, (V, *floor) = point_and_direction[:half], point_and_direction[half:]
        W = point[0]
        change = sum(floor) - np.einsum("ij,ij->j", self.root, V)
        change = self.penalty * (self.updated(*point) > 0) * change
        if floor:
            return [-self.root * change, change.sum(keepdims=True)]
        cross = V.T @ W
        cross = cross + cross.T
        np.fill_diagonal(cross, 0.0)
        return 2 * (V @ _squared_residual(W)[1] + W @ cross) - self.root * change


def _minimise(root: Array, point: Any, rho_min: float | None = None) -> Any:
    """Minimise under ``floor - fidelity ≤ 0``; without ``rho_min`` the floor is free."""
    import pymanopt
    from pymanopt.manifolds import Euclidean, Oblique, Product, Stiefel
    from pymanopt.optimizers import TrustRegions

    if rho_min is None:
        allowed = _THRESHOLD_VIOLATION
        manifold = Product([Stiefel(*root.shape, retraction="polar"), Euclidean(1)])
    else:
        allowed, manifold = VIOLATION, Oblique(*root.shape)

    def smooth(method: Callable[..., Any]) -> Any:
        # pymanopt counts the ``self`` of a bound method as one of its arguments.
        return pymanopt.function.numpy(manifold)(lambda *arguments: method(*arguments))

    solver = TrustRegions(max_iterations=_STEPS, min_gradient_norm=_GRADIENT, verbosity=0)
    penalty, multipliers = _PENALTY, np.zeros(len(root))
    for _ in range(_ROUNDS):
        of = _Lagrangian(root, rho_min, multipliers, penalty)
        problem = pymanopt.Problem(
            manifold,
            smooth(of.cost),
            euclidean_gradient=smooth(of.gradient),
            euclidean_hessian=smooth(of.hessian),
        )
        point = solver.run(problem, initial_point=point).point
        parts = (point,) if rho_min is not None else tuple(point)
        if of.shortfall(*parts).max() < allowed:
            break
        multipliers = of.updated(*parts)
        penalty *= _GROWTH
    return point


def _check_common_floor(rho_min: float) -> float:
    number = check_number("rho_min", rho_min)
    return float(check_floors(number, ("x0",))[0])


def _matrix_and_root(R: ArrayLike) -> tuple[Array, Array]:
    matrix = check_correlation(R)
    values, vectors = np.linalg.eigh(matrix)
    return matrix, (vectors * np.sqrt(values)) @ vectors.T
