"""The paper's own way to solve its problems, as a baseline: penalties and many random starts.

An augmented Lagrangian over a manifold, its inner problems solved by Riemannian trust regions, from
independent random starts; the best feasible end is kept. The paper does not print its settings, but
its results betray them. A penalty that starts at 10 and is doubled until floors hold to 1e-4 ends
at the five violations that its appendix prints, to every digit; of 42 pairs of start and growth
tried, no other does. Its thresholds have six right digits, for which floors must hold to 1e-7. How
it draws its starts stays open: here, uniform on the spheres and over the orthogonal group.

This is for comparison only. :func:`skcoral.threshold` and :func:`skcoral.decorrelate` solve the
same problems without starts and prove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skcoral._requirements import real_number, square_matrix
from skcoral._validation import check_correlation, check_count, check_floors
from skcoral.exceptions import InvalidArgumentError, InvalidFloorError
from skcoral.paper._trust_region import HessianProduct, Manifold, minimise
from skcoral.results import read_only

Array = NDArray[np.float64]

VIOLATION = 1e-4
_THRESHOLD_VIOLATION = 1e-7
_PENALTY = 10.0
_GROWTH = 2.0
_ROUNDS = 30
_GRADIENT = 1e-6
_STEPS = 500


@dataclass(frozen=True)
class ProtocolRun:
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
    >>> run = protocol_threshold([[1.0, 0.8], [0.8, 1.0]], n_starts=2)
    >>> run.problem, len(run.values)
    ('threshold', 2)
    """

    problem: str
    values: Array
    violations: Array
    determinants: Array
    seconds: float

    def __post_init__(self) -> None:
        for name in ("values", "violations", "determinants"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

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

    def share_worse(self, certified: float, *, rel: float = 0.01) -> float:
        """Return the share of starts that end worse than ``certified`` by more than ``rel``."""
        if self.problem == "primal":
            worse = self.values > certified * (1 + rel)
        else:
            worse = self.values < certified * (1 - rel)
        return float(np.mean(worse | ~self.feasible))


def protocol_primal(
    R: ArrayLike, rho_min: float, *, n_starts: int = 100, random_state: int = 0
) -> ProtocolRun:
    """Minimise D2 subject to common floors as the paper does, on the oblique manifold.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
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
    >>> from skcoral.paper import protocol_primal
    >>> run = protocol_primal([[1.0, 0.6], [0.6, 1.0]], 0.97, n_starts=3)
    >>> abs(run.best - 0.02304) < 1e-4  # cos²(arccos 0.6 + 2 arccos 0.97)
    True
    """
    R, root = _matrix_and_root(R)
    p = len(R)
    rho_min = check_common_floor(rho_min)

    def one(rng: np.random.Generator) -> tuple[float, float, float]:
        W = rng.normal(size=(p, p))
        W = _descend(root, rho_min, W / np.linalg.norm(W, axis=0))
        fidelity = np.einsum("ij,ij->j", root, W)
        value = _squared_residual(W.ravel())[0]
        return value, float(max(0.0, rho_min - fidelity.min())), float(np.sign(np.linalg.det(W)))

    return run_starts("primal", one, n_starts, random_state)


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
    >>> from skcoral.measures import fidelity
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
    W = _descend(root, check_common_floor(rho_min), root @ start)
    return np.asarray(np.linalg.solve(root, W), dtype=np.float64)


def _descend(root: Array, rho_min: float, W: Array) -> Array:
    manifold = Manifold(len(W), orthogonal=False)
    return _augmented(manifold, _squared_residual, root, W.ravel(), rho_min).reshape(W.shape)


def _squared_residual(x: Array) -> tuple[float, Array, HessianProduct]:
    """D2 with its derivatives, as a function of the outputs' directions."""
    p = math.isqrt(x.size)
    W = x.reshape(p, p)
    E = W.T @ W
    np.fill_diagonal(E, 0.0)

    def hessian(v: Array) -> Array:
        V = v.reshape(p, p)
        cross = V.T @ W
        cross = cross + cross.T
        np.fill_diagonal(cross, 0.0)
        return (2 * (V @ E + W @ cross)).ravel()

    return float(np.sum(E * E)) / 2, (2 * W @ E).ravel(), hessian


def protocol_threshold(R: ArrayLike, *, n_starts: int = 100, random_state: int = 0) -> ProtocolRun:
    """Maximise the common fidelity over the orthogonal group as the paper does.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    n_starts : int, default=100
        Random starts, uniform over the orthogonal group.
    random_state : int, default=0
        Seed of the starts.

    Returns
    -------
    ProtocolRun

    Examples
    --------
    >>> from skcoral.paper import protocol_threshold
    >>> run = protocol_threshold([[1.0, 0.6], [0.6, 1.0]], n_starts=4)
    >>> round(run.best, 3)
    0.949
    """
    R, root = _matrix_and_root(R)
    p = len(R)
    target = np.zeros(p * p + 1)
    target[-1] = -1.0

    def objective(x: Array) -> tuple[float, Array, HessianProduct]:
        return -float(x[-1]), target, np.zeros_like

    def one(rng: np.random.Generator) -> tuple[float, float, float]:
        Q, triangle = np.linalg.qr(rng.normal(size=(p, p)))
        Q = Q * np.where(np.diag(triangle) < 0, -1.0, 1.0)
        x = np.append(Q.ravel(), np.einsum("ij,ij->j", root, Q).min())
        x = _augmented(Manifold(p, orthogonal=True), objective, root, x, None)
        Q = x[:-1].reshape(p, p)
        value = float(np.einsum("ij,ij->j", root, Q).min())
        return value, 0.0, float(np.sign(np.linalg.det(Q)))

    return run_starts("threshold", one, n_starts, random_state)


def _augmented(
    manifold: Manifold,
    objective: Callable[[Array], tuple[float, Array, HessianProduct]],
    root: Array,
    x: Array,
    rho_min: float | None,
) -> Array:
    """Minimise under ``floor - fidelity ≤ 0``; without ``rho_min`` the floor is the last scalar."""
    p = manifold.p
    allowed = _THRESHOLD_VIOLATION if rho_min is None else VIOLATION
    penalty = _PENALTY
    multipliers = np.zeros(p)

    def shortfall(x: Array) -> Array:
        floor = x[-1] if rho_min is None else rho_min
        return np.asarray(floor - np.einsum("ij,ij->j", root, x[: p * p].reshape(p, p)))

    def pull(m: Array, like: Array) -> Array:
        out = np.empty_like(like)
        out[: p * p] = -(root * m).ravel()
        out[p * p :] = m.sum()
        return out

    def push(v: Array) -> Array:
        change = -np.einsum("ij,ij->j", root, v[: p * p].reshape(p, p))
        return change + v[-1] if rho_min is None else change

    for _ in range(_ROUNDS):

        def evaluate(
            x: Array, penalty: float = penalty, multipliers: Array = multipliers
        ) -> tuple[float, Array, HessianProduct]:
            value, gradient, hessian = objective(x)
            m = np.maximum(0.0, multipliers + penalty * shortfall(x))

            def augmented_hessian(v: Array) -> Array:
                return hessian(v) + pull(penalty * (m > 0) * push(v), v)

            augmented = float(m @ m - multipliers @ multipliers) / (2 * penalty)
            return value + augmented, gradient + pull(m, x), augmented_hessian

        x = minimise(manifold, evaluate, x, tol=_GRADIENT, max_iter=_STEPS)
        g = shortfall(x)
        multipliers = np.maximum(0.0, multipliers + penalty * g)
        if g.max() < allowed:
            break
        penalty *= _GROWTH
    return x


def run_starts(
    problem: str,
    one: Callable[[np.random.Generator], tuple[float, float, float]],
    n_starts: int,
    random_state: int,
) -> ProtocolRun:
    """Run ``one`` from independent random streams: value, violation, determinant of each end."""
    start = perf_counter()
    sequence = np.random.SeedSequence(check_count("random_state", random_state, minimum=0))
    seeds = sequence.spawn(check_count("n_starts", n_starts))
    ends = np.array([one(np.random.default_rng(seed)) for seed in seeds])
    return ProtocolRun(problem, ends[:, 0], ends[:, 1], ends[:, 2], perf_counter() - start)


def check_common_floor(rho_min: float) -> float:
    """Return a floor that all variables share."""
    return float(check_floors(real_number(rho_min, "rho_min", InvalidFloorError), 1, ("x0",))[0])


def _matrix_and_root(R: ArrayLike) -> tuple[Array, Array]:
    matrix = check_correlation(R)
    values, vectors = np.linalg.eigh(matrix)
    return matrix, (vectors * np.sqrt(values)) @ vectors.T
