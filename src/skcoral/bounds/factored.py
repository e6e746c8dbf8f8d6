"""The bound for a matrix ``R = AᵀA`` of rank r < p, by the inequality that its dual point is of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.dual import numbers
from skcoral.bounds.enclosures import Enclosure, exactly
from skcoral.bounds.frame import criterion_bound, floors_of_columns, from_dual, spent
from skcoral.bounds.rank import rank_bound
from skcoral.bounds.tradeoff import tradeoff_bound
from skcoral.core.arrays import Array
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError


@dataclass(frozen=True)
class DualBound:
    """A lower bound of the criterion, and its slopes in the floors.

    ``tangent`` holds the bound that grows linearly with a common floor, of D2 (``of_squares``) or
    of the criterion itself, and the sum of its slopes.
    """

    bound: Enclosure
    slopes: Array
    tangent: tuple[Enclosure, Enclosure]
    of_squares: bool = True

    def highest_floor(self, budget: float, criterion: str, floor: float) -> float:
        """A common floor that no transformation within the budget exceeds; infinite for none."""
        p, limit = len(self.slopes), exactly(budget)
        if criterion == "worst" and self.of_squares:
            limit = limit.square() * max(p * (p - 1) / 2, 1.0)
        bound, slope = self.tangent
        top = float(((limit - bound) / slope + floor).upper)
        return np.inf if np.isnan(top) else top


def factor_bound(
    dual: Certificate,
    criterion: str,
    pair_weights: Array | None,
    rho_min: Array,
    A: Array,
    arithmetic: Arithmetic,
) -> DualBound:
    """What a dual point proves about the outputs of ``AᵀA``."""
    arrays, (r, p) = dual.arrays, A.shape
    lam = numbers(arrays["multipliers"], (p,), "`multipliers`", nonnegative=True)
    if dual.kind == "tradeoff":
        floors = floors_of_columns(A, rho_min, arithmetic)
        square = np.eye(r), A, lam, arrays["H"]
        bound = tradeoff_bound(arithmetic, *square, floors, criterion, pair_weights)
        return DualBound(bound, 2.0 * lam, _tangent(bound, lam), of_squares=False)
    if pair_weights is not None:
        if lam.any() or dual.kind != "frame":
            raise CertificateError("a frame is not combined with pair weights.")
        return DualBound(exactly(0.0), np.zeros(p), _tangent(exactly(0.0), lam))
    if dual.kind == "rank":
        if criterion != "squared":
            raise CertificateError("the kind 'rank' is for the squared criterion.")
        bound = rank_bound(arrays, rho_min, A, arithmetic)
        if not np.isfinite([bound.lower, bound.upper]).all():
            raise CertificateError("the dual point proves nothing.")
        return DualBound(bound, 2.0 * lam, _tangent(bound, lam))
    squares = from_dual(*spent(arrays, "multipliers", rho_min, A, arithmetic), p)
    bound, slopes = criterion_bound(criterion, squares, p), 2.0 * lam
    if not slopes.any() and criterion == "absolute":
        bound = bound.at_least(float(p - r))  # by the projection on the null space
    if slopes.any() and criterion == "worst":
        slopes = slopes * (0.5 * float(bound.lower) / float(squares.lower))
    return DualBound(bound, slopes, _tangent(squares, lam))


def _tangent(bound: Enclosure, lam: Array) -> tuple[Enclosure, Enclosure]:
    return bound, (exactly(lam) * 2.0).total()
