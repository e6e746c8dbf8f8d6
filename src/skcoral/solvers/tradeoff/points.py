"""The problem of the interior-point method, its points, and where it starts.

Where the search for one trade-off ended: a feasible transformation with its dual point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import (
    Array,
    cholesky_or_none,
    diagonal_matrix,
    inner,
    inverse_factored,
    library,
    plus_diagonal,
    submatrix,
    to_device,
    to_host,
)
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import spectral_norm
from skcoral.core.problem import Settings
from skcoral.core.solution import Certificate, Floors, Goal, Solution
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.tradeoff.pairs import Bounded, Box, PairModel, Quadratic

Index = NDArray[np.intp]


class Problem:
    """A correlation matrix, floors in (0, 1], and which entries of H are unknown.

    ``live`` is True for the pairs that count. ``within`` is a problem with more variables, whose
    constants are shared.
    """

    def __init__(
        self, R: Any, floors: Array, live: NDArray[np.bool_], within: Problem | None = None
    ) -> None:
        self.R = R
        self.p = len(floors)
        self.floor_values = floors
        root = cholesky_or_none(R)
        if root is None:
            raise sla.LinAlgError("R is not positive definite to rounding")
        self.root = root
        self.fixed = floors >= 1.0
        free = ~self.fixed
        self.n_free = int(free.sum())
        self.any_fixed = self.n_free < self.p
        self.floors = to_device(floors, R)
        self.free = to_device(free.astype(np.float64), R)
        own = np.eye(self.p, dtype=bool)
        self.every = bool(np.all(live | own))
        self.pairs: Any
        if within is not None and within.every:
            self.pairs = within.pairs[: self.p, : self.p]
        else:
            self.pairs = to_device((live & ~own).astype(np.float64), R)
        if self.any_fixed:
            self.live = plus_diagonal(1.0 * self.pairs, self.free)
            self.block = self.free[:, None] * self.free[None, :]
            self.held = diagonal_matrix(1.0 - self.free)
        else:
            self.block, self.held = _constant(1.0, R), _constant(0.0, R)
            self.live = self.block if self.every else plus_diagonal(1.0 * self.pairs, 1.0)

    @cached_property
    def unknowns(self) -> tuple[Index, Index]:
        """Rows and columns of the unknown entries of H on and above the diagonal, in NumPy."""
        i, j = np.nonzero(np.triu(self.live))
        return i, j

    def restricted(self, members: Index) -> Problem:
        """Return the problem of some of the variables."""
        live = np.asarray(to_host(submatrix(self.pairs, members, members))) > 0
        R = submatrix(self.R, members, members)
        return Problem(R, self.floor_values[members], live, within=self)

    def definite(self, X: Any) -> Any:
        """Cholesky factor of the free block of ``X``, one elsewhere; None if not definite."""
        return cholesky_or_none(X if not self.any_fixed else X * self.block + self.held)

    def inverse(self, H: Any) -> Any:
        """Inverse of the free block of ``H``, zero elsewhere; None if not definite."""
        factor = self.definite(H)
        return None if factor is None else inverse_factored(factor) * self.block

    def outputs(self, H: Any, B: Any, lam: Any) -> Any:
        """T with ``T H = D_λ`` and the outputs that are their sources; ``B`` is the inverse."""
        T = lam[:, None] * B
        if not self.any_fixed:
            return T
        across = H * (1.0 - self.free)[:, None] * self.free[None, :]
        return T - across @ B + self.held


def _constant(value: float, R: Any) -> Any:
    """A matrix like ``R`` of one value, which takes no memory."""
    return library(R).broadcast_to(to_device(np.array(value), R), R.shape)


@dataclass(frozen=True)
class State:
    """An interior point; ``W`` is ``rootᵀ T``, so that ``RT = root W`` and ``TᵀRT = WᵀW``."""

    H: Any
    lam: Any
    z: Any
    T: Any
    W: Any
    P: Any
    model: PairModel

    def restricted(self, problem: Problem, members: Index) -> State:
        """Return the point of some of the variables, ``problem`` being theirs."""

        def block(A: Any) -> Any:
            return submatrix(A, members, members)

        at = to_device(members, self.lam)
        T = block(self.T)
        return State(
            block(self.H),
            self.lam[at],
            self.z[at],
            T,
            problem.root.T @ T,
            block(self.P),
            self.model.restricted(block),
        )


def start(problem: Problem, criterion: Criterion, omega: Array) -> State:
    """Start on the central path but for the squares: shrunken sources, H diagonal.

    ``t_j = (1 + ρ_j)/2`` times the source leaves the same room to the floor and to unit variance,
    so ``λ_j = μ/(1 - ρ_j)`` makes both products equal to about μ.
    """
    t = 0.5 * (1.0 + problem.floors)
    S = (t[:, None] * t[None, :]) * problem.R * problem.pairs  # symmetric to the last bit
    weights = to_device(omega, problem.R) * problem.pairs
    model: PairModel
    if criterion == "worst":
        worst = Bounded.worst(weights, problem.pairs, S)
        model, mu = worst, worst.products() / worst.count
    else:
        # H must outweigh the residual correlations that it takes over, or steps will be short.
        least = float(np.min((1.0 - problem.floor_values)[~problem.fixed]))
        mu = max(0.5 * inner(weights * S, S) / problem.p, 2.0 * least * spectral_norm(weights * S))
        mu = max(mu, 1e-3)
        if criterion == "squared":
            model = Quadratic(problem.pairs / (weights + (1.0 - problem.pairs)))
        else:
            model = Box.start(weights, problem.pairs, S, mu)
    return start_from(problem, model, mu)


def start_from(problem: Problem, model: PairModel, mu: float) -> State:
    """Start from shrunken sources with a given pair model."""
    floors, free = problem.floors, problem.free
    t = 0.5 * (1.0 + floors)
    lam = mu / (1.0 - floors + (1.0 - free)) * free
    z = (1.0 - floors) * free + (1.0 - free)
    T = diagonal_matrix(t)
    return State(
        H=diagonal_matrix(lam / t),
        lam=lam,
        z=z,
        T=T,
        W=problem.root.T * t[None, :],
        P=diagonal_matrix((1.0 - t * t) * free),
        model=model,
    )


_AIM = 0.9  # of the gap that "optimal" promises, so that rounding does not decide a re-check


@dataclass(frozen=True)
class Warm:
    """Where a neighbouring problem ended: H of all variables, and which floors bound."""

    H: Any
    binding: NDArray[np.bool_]


@dataclass(frozen=True)
class Solved:
    """A feasible transformation with its dual point."""

    T: Array
    G: Array
    fidelity: Array
    objective: float
    lower_bound: float
    lam: Array
    H: Array
    binding: NDArray[np.bool_]
    n_iter: int
    unique: bool = True  # whether ties were broken, so that no other answer is as good

    @property
    def gap(self) -> float:
        """``objective - lower_bound``."""
        return self.objective - self.lower_bound

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.gap <= _AIM * OPTIMAL_GAP * max(1.0, self.objective)

    def joined(self, other: Solved) -> Solved:
        """Return the better transformation of the two with the better bound."""
        best = self if self.objective <= other.objective else other
        return best.proved_by(self if self.lower_bound >= other.lower_bound else other)

    def proved_by(self, other: Solved) -> Solved:
        """Return this transformation with the dual point and the bound of another."""
        return replace(
            self, lower_bound=other.lower_bound, lam=other.lam, H=other.H, binding=other.binding
        )

    def prices(self, floors: Array) -> Array:
        """∂objective/∂ρ_j = 2 λ_j; infinite for a floor of one that costs anything.

        Near one the objective falls like the square root of ``1 - ρ_j``: its slope has no bound.
        """
        prices = 2.0 * self.lam
        ones = floors >= 1.0
        costs = np.max(np.abs(criteria.off(self.H)), axis=1, initial=0.0) > 0
        prices[ones] = np.where(costs[ones], np.inf, 0.0)
        return prices

    def solution(self, floors: Array, settings: Settings, goal: Goal | None = None) -> Solution:
        """As an answer for these floors, with (★) for a bound."""
        return Solution(
            T=self.T,
            correlation=self.G,
            fidelity=self.fidelity,
            rho_min=floors,
            objective=self.objective,
            lower_bound=self.lower_bound,
            certificate=Certificate(
                kind="tradeoff",
                arrays={"multipliers": self.lam, "H": self.H},
                info={"criterion": settings.criterion},
            ),
            n_iter=self.n_iter,
            slopes=2.0 * self.lam,
            converged=self.n_iter < settings.max_iter,
            unique=self.unique,
            goal=goal or Floors(),
        )
