"""Newton's method over the weights λ: one driver for the threshold and for the largest mean.

Both minimise ``tr S - λᵀρ`` (``S = (D C D)^{1/2}``), over the simplex with ρ = 0 or over λ ≥ 1. A
problem says what it minimises and how far a point is from its optimum; directions are relative
changes ``d = dλ/λ``, because then the Hessian is that of :meth:`WeightedRoot.curvature`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import (
    Array,
    cholesky,
    cholesky_or_none,
    plus_diagonal,
    solve_factored,
    submatrix,
    to_device,
)
from skcoral._linalg import conjugate_gradient_matrix
from skcoral.exact.weighted import WeightedRoot

_NEAR = 1e-6  # residuals below this deserve accurate singular values
_NEARBY = 0.05  # relative changes below this leave the Laplacian a good preconditioner
_CG_STEPS = 30


class Problem(ABC):
    """A function of the weights, its constraints, and the state of the search for its minimum.

    Attributes
    ----------
    C, factor : array
        Positive definite matrix and its Cholesky factor.
    goal, close : float
        The search ends at a residual of ``goal``, or of ``close`` when it has stopped to fall.
    """

    def __init__(self, C: Any, *, goal: float, close: float) -> None:
        self.C = C
        self.factor = cholesky(C)
        self.goal = goal
        self.close = close
        self.n_iter = 0
        self.accurate = False

    def at(self, weights: Array) -> WeightedRoot:
        """Return the weighted root at these weights."""
        return WeightedRoot(self.C, weights, self.factor, accurate=self.accurate)

    @abstractmethod
    def value(self, root: WeightedRoot) -> float:
        """Return what is minimised."""

    @abstractmethod
    def gradient(self, root: WeightedRoot) -> Array:
        """Return its gradient in relative changes of the weights."""

    @abstractmethod
    def residual(self, root: WeightedRoot) -> float:
        """Return the distance from optimality: zero at the solution."""

    @abstractmethod
    def direction(self, root: WeightedRoot) -> Array | None:
        """Return the relative change to try; None if there is nowhere to go."""

    @abstractmethod
    def move(self, weights: Array, d: Array) -> Array:
        """Return feasible weights that change by about ``d``."""

    def finished(self, root: WeightedRoot) -> bool:
        """Whether the search can end here for a reason of its own."""
        return False


def minimise(problem: Problem, root: WeightedRoot, max_iter: int) -> WeightedRoot:
    """Take Newton steps until the problem is solved, rounding leaves no descent, or they run out.

    ``max_iter`` bounds ``problem.n_iter``, which counts on from where it stands.
    """
    best, best_root, stalled = np.inf, root, 0
    while True:
        residual = problem.residual(root)
        if residual < _NEAR:
            root.refine()
            residual = problem.residual(root)
        problem.accurate = root.refined and residual < _NEAR
        stalled = stalled + 1 if residual > 0.5 * best else 0
        if residual < best:
            best, best_root = residual, root
        if problem.finished(root) or residual <= problem.goal:
            return root
        if problem.n_iter >= max_iter or (stalled >= 2 and best <= problem.close):
            return best_root
        d = problem.direction(root)
        step = None if d is None else _backtrack(problem, root, d)
        if step is None:
            return root
        problem.n_iter += 1
        root = step


def stretch(d: Array) -> Array:
    """Factors that change by ``d`` to first order and stay within [1/20, 20].

    Weights that fall to zero do so linearly; those that grow without bound do so like ``1/(1-d)``,
    because their gradients tend to zero like ``1/λ``.
    """
    return np.where(d < 0, 1 + np.maximum(d, -0.95), 1 / (1 - np.minimum(d, 0.95)))


def newton_direction(
    root: WeightedRoot,
    gradient: Array,
    bend: Array,
    *,
    free: NDArray[np.bool_] | None = None,
    normal: Array | None = None,
    rtol: float | None,
) -> Array:
    """Solve ``(Hessian + Diag(bend)) d = -gradient``.

    Parameters
    ----------
    root, gradient, bend
        Where, and the rest of the equation.
    free : ndarray of bool, optional
        Which weights may change.
    normal : ndarray, optional
        Keep ``normalᵀ d = 0``.
    rtol : float or None
        Relative accuracy; None for that of the Laplacian, which otherwise is the preconditioner.
    """
    on = np.arange(len(gradient)) if free is None else np.flatnonzero(free)
    K = submatrix(root.laplacian(), on, on)
    if normal is not None:
        normal = normal[on]
        # Nothing changes where normalᵀ d = 0, but the matrix is definite without any bend.
        K = K + to_device(root.trace * normal[:, None], K) * to_device(normal[None, :], K)
    factor, ridge = None, 1e-14
    while factor is None:
        K = plus_diagonal(K, (bend + ridge * root.diagonal)[on])
        factor = cholesky_or_none(K)
        ridge *= 100
    across = np.zeros(len(on)) if normal is None else solve_factored(factor, normal)

    def precondition(r: Array) -> Array:
        y = solve_factored(factor, r)
        return y if normal is None else y - across * float((normal @ y) / (normal @ across))

    def apply(d: Array) -> Array:
        full = np.zeros(len(gradient))
        full[on] = d
        return (root.curvature(full) + bend * full)[on]

    full = np.zeros(len(gradient))
    if rtol is None:
        full[on] = precondition(-gradient[on])
    else:
        full[on], _, _ = conjugate_gradient_matrix(
            apply,
            -gradient[on],
            precondition,
            rtol=rtol,
            small=lambda _: True,
            max_iter=_CG_STEPS,
        )
    return full


def _backtrack(problem: Problem, root: WeightedRoot, d: Array) -> WeightedRoot | None:
    """Shorten the step until the value falls; None if rounding leaves no descent."""
    gradient, value = problem.gradient(root), problem.value(root)
    residual = problem.residual(root)
    noise = 4e-15 * (root.trace + abs(root.trace - value))
    length = 1.0
    while length > 1e-10:
        weights = problem.move(root.weights, length * d)
        expected = float(gradient @ (weights / root.weights - 1))
        candidate = problem.at(weights)
        if length * np.abs(d).max() < _NEARBY:
            candidate.take_laplacian(root)
        if expected < 0 and problem.value(candidate) - value <= 1e-4 * expected + noise:
            return candidate
        if abs(expected) < 1e-8 * root.trace:
            # Too close for the value to tell: is optimality nearer?
            candidate.refine()
            if problem.residual(candidate) < 0.5 * residual:
                return candidate
        if length < 0.01 and abs(expected) < noise:
            return None
        length *= 0.5
    return None
