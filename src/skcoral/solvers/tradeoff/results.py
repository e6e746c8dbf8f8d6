"""What was solved, judged: status, prices, certificate, and a warning where the gap is open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.results import OPTIMAL_GAP, Certificate, Criterion, Decorrelation, Status
from skcoral.exceptions import NotCertifiedWarning, warn
from skcoral.solvers.exact import Options

_AIM = 0.9  # of the gap that "optimal" promises, so that rounding does not decide a re-check


@dataclass(frozen=True)
class Warm:
    """Where a neighbouring problem ended: H of all variables, and which floors bound."""

    H: Any
    binding: NDArray[np.bool_]


@dataclass(frozen=True)
class Solved:
    """A feasible transformation with its dual point; the raw material of a result."""

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


def as_result(
    solved: Solved, floors: Array, options: Options, *, warn: bool = True
) -> Decorrelation:
    """Judge what was solved, and warn where the gap is open (unless the caller does)."""
    solved = replace(solved, lower_bound=max(solved.lower_bound, 0.0))  # no criterion is negative
    status: Status = "optimal"
    if not solved.certified:
        status = "not_converged" if solved.n_iter >= options.max_iter else "best_found"
        if warn:
            warn_open_gap(solved, options.criterion)
    return Decorrelation(
        T=solved.T,
        correlation=solved.G,
        fidelity=solved.fidelity,
        rho_min=floors,
        criterion=options.criterion,
        objective=solved.objective,
        lower_bound=solved.lower_bound,
        prices=solved.prices(floors),
        weights=solved.lam,
        status=status,
        names=options.names,
        certificate=Certificate(
            kind="tradeoff",
            arrays={"multipliers": solved.lam, "H": solved.H},
            info={"criterion": options.criterion},
        ),
        n_iter=solved.n_iter,
        pair_weights=options.pair_weights,
        details={} if options.criterion == "squared" else {"unique": solved.unique},
    )


def warn_open_gap(solved: Solved, criterion: Criterion) -> None:
    """Warn that optimality is not proved, with the numbers."""
    warn(
        f"the residual correlation {solved.objective:.9g} ({criterion}) is attained, but only "
        f"{solved.lower_bound:.9g} is proved to be the least: a gap of "
        f"{solved.gap:.2e} is open after {solved.n_iter} steps; "
        "a larger max_iter may close it, unless floors next to one or nearly collinear variables "
        "leave no more digits.",
        NotCertifiedWarning,
    )
