"""What a search arrives at: a feasible transformation, its dual point, and what that proves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.problem import Settings
from skcoral.core.solution import Certificate, Floors, Goal, Solution
from skcoral.core.tolerances import OPTIMAL_GAP

_AIM = 0.9  # of the gap that "optimal" promises, so that rounding does not decide a re-check


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
    unique: bool = True  # whether ties were broken

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
        proof = self if self.lower_bound >= other.lower_bound else other
        return replace(
            best, lower_bound=proof.lower_bound, lam=proof.lam, H=proof.H, binding=proof.binding
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
