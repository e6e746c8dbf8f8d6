"""What the dual point of a result proves, by its kind, and the prices that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.dual import numbers
from skcoral.bounds.enclosures import Enclosure, exactly
from skcoral.bounds.exact import floor_room, mean_room, rest_room
from skcoral.bounds.factored import factor_bound
from skcoral.bounds.support import support_bound
from skcoral.bounds.tradeoff import tradeoff_bound
from skcoral.certificates.attained import Attained
from skcoral.core.arrays import Array
from skcoral.core.lowrank import largest_residuals
from skcoral.core.results import Decorrelation, RestrictedDecorrelation, SingularDecorrelation
from skcoral.core.solution import Budget
from skcoral.core.tolerances import CORRELATED


@dataclass(frozen=True)
class Proved:
    """A lower bound of the residual, and its slopes in the floors.

    ``top`` is a common floor that no transformation within a budget exceeds; infinite for none.
    """

    bound: Enclosure
    slopes: Array
    top: float = np.inf


@singledispatch
def evaluate(result: Decorrelation, attained: Attained, R: Array, arithmetic: Arithmetic) -> Proved:
    """What the dual point of a result about ``R`` proves: (★), or the bound of a support."""
    dual = result.certificate
    lam = numbers(dual.arrays["multipliers"], (attained.k,), "`multipliers`", nonnegative=True)
    kappa = attained.scaled(lam)
    square = R, attained.B, kappa, dual.arrays["H"]
    asked = attained.floors, result.criterion, attained.weights
    bound = tradeoff_bound(arithmetic, *square, *asked)
    top = np.inf
    if isinstance(result.goal, Budget):
        reach = (exactly(result.goal.budget) - bound) / (attained.length * (2.0 * kappa)).total()
        top = float((reach + float(result.rho_min.max())).upper)
    return Proved(bound, 2.0 * lam, top)


@evaluate.register
def _(
    result: RestrictedDecorrelation, attained: Attained, R: Array, arithmetic: Arithmetic
) -> Proved:
    given = result.certificate, result.rho_min, R, arithmetic, result.anchors
    return Proved(support_bound(*given), 2.0 * result.weights)


def evaluate_factored(result: Decorrelation, A: Array, arithmetic: Arithmetic) -> Proved:
    """What the dual point of a result about ``AᵀA`` proves: (★), (★r) or (★★)."""
    given = result.certificate, result.criterion, result.pair_weights, result.rho_min
    proved, top = factor_bound(*given, A, arithmetic), np.inf
    if isinstance(result.goal, Budget):
        floor = float(result.rho_min.max())
        top = proved.highest_floor(result.goal.budget, result.criterion, floor)
    return Proved(proved.bound, proved.slopes, top)


def fidelity_rooms(
    result: Decorrelation, attained: Attained, R: Array, arithmetic: Arithmetic
) -> dict[str, Enclosure]:
    """By how much another exact decorrelator can exceed T, in what it is said to have most of."""
    given = result.certificate.arrays, attained, R, arithmetic
    if result.certificate.kind == "exact":
        return {"mean fidelity": mean_room(*given)}
    return {"floors": floor_room(*given), "mean fidelity": rest_room(*given)}


@singledispatch
def prices_of(result: Decorrelation, slopes: Array, largest: Array | None = None) -> Array:
    """∂objective/∂ρ_j: the slopes of the bound; infinite for a floor of one that costs anything.

    Near one the objective falls like the square root of ``1 - ρ_j``: its slope has no bound.
    ``largest`` is the largest residual correlation of each output, by default as reported. At full
    rank H shows whether a floor costs anything; of a singular matrix it need not.
    """
    H = result.certificate.arrays["H"]
    return _at_one(result, slopes, np.any(H - np.diag(np.diag(H)) != 0, axis=1))


@prices_of.register
def _(result: SingularDecorrelation, slopes: Array, largest: Array | None = None) -> Array:
    if not np.any(result.rho_min >= 1):
        return slopes  # pairs of many outputs are not looked at without need
    largest = largest_residuals(result.correlation) if largest is None else largest
    return _at_one(result, slopes, (largest > CORRELATED) & slopes.any())


@prices_of.register
def _(result: RestrictedDecorrelation, slopes: Array, largest: Array | None = None) -> Array:
    largest = largest_residuals(result.correlation) if largest is None else largest
    costs = (result.support.sum(axis=0) > 1) & (largest > CORRELATED)  # where there is a choice
    return np.where((result.rho_min >= 1) & costs, np.inf, slopes)


def _at_one(result: Decorrelation, slopes: Array, costs: NDArray[np.bool_]) -> Array:
    return np.where(result.rho_min >= 1, np.where(costs, np.inf, 0.0), slopes)
