"""What was solved, judged: status, prices, certificate, and a warning where the gap is open."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array
from skcoral.exceptions import NotCertifiedWarning
from skcoral.results import OPTIMAL_GAP, Certificate, Criterion, Decorrelation, Status
from skcoral.tradeoff import criteria

_AIM = 0.9  # of the gap that "optimal" promises, so that rounding does not decide a re-check


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

    @property
    def gap(self) -> float:
        """``objective - lower_bound``."""
        return self.objective - self.lower_bound

    def joined(self, other: Solved) -> Solved:
        """Return the better transformation of the two with the better bound."""
        best = self if self.objective <= other.objective else other
        dual = self if self.lower_bound >= other.lower_bound else other
        return replace(
            best, lower_bound=dual.lower_bound, lam=dual.lam, H=dual.H, binding=dual.binding
        )

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.gap <= _AIM * OPTIMAL_GAP * max(1.0, self.objective)


def as_result(
    solved: Solved,
    floors: Array,
    *,
    names: Sequence[str],
    criterion: Criterion,
    pair_weights: Array | None,
    max_iter: int,
    stacklevel: int = 3,
    warn: bool = True,
) -> Decorrelation:
    """Judge what was solved, and warn where the gap is open (unless the caller does)."""
    solved = replace(solved, lower_bound=max(solved.lower_bound, 0.0))  # no criterion is negative
    status: Status = "optimal"
    if not solved.certified:
        status = "not_converged" if solved.n_iter >= max_iter else "best_found"
        if warn:
            warn_open_gap(solved, criterion, stacklevel=stacklevel + 1)
    return Decorrelation(
        T=solved.T,
        correlation=solved.G,
        fidelity=solved.fidelity,
        rho_min=floors,
        criterion=criterion,
        objective=solved.objective,
        lower_bound=solved.lower_bound,
        prices=prices_of(solved, floors),
        weights=solved.lam,
        status=status,
        names=tuple(names),
        certificate=Certificate(
            kind="tradeoff",
            arrays={"multipliers": solved.lam, "H": solved.H},
            info={"criterion": criterion},
        ),
        n_iter=solved.n_iter,
        pair_weights=pair_weights,
    )


def warn_open_gap(solved: Solved, criterion: Criterion, *, stacklevel: int) -> None:
    """Warn that optimality is not proved, with the numbers."""
    warnings.warn(
        f"the residual correlation {solved.objective:.9g} ({criterion}) is attained, but only "
        f"{solved.lower_bound:.9g} is proved to be the least: a gap of "
        f"{solved.objective - solved.lower_bound:.2e} is open after {solved.n_iter} steps; "
        "a larger max_iter may close it, unless floors next to one or nearly collinear variables "
        "leave no more digits.",
        NotCertifiedWarning,
        stacklevel=stacklevel + 1,
    )


def prices_of(solved: Solved, floors: Array) -> Array:
    """∂objective/∂ρ_j = 2 λ_j; infinite for a floor of one that costs anything.

    Near one the objective falls like the square root of ``1 - ρ_j``, so its slope has no bound.
    """
    prices = 2.0 * solved.lam
    ones = floors >= 1.0
    costs = np.max(np.abs(criteria.off(solved.H)), axis=1, initial=0.0) > 0
    prices[ones] = np.where(costs[ones], np.inf, 0.0)
    return prices
