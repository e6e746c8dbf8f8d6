"""The claims of a result, each computed again from R, T and the dual point.

Nothing of a solver enters. The attained side comes from ``T`` and ``R``, the bound from the
inequality that the certificate's arrays plug into, and the status has to follow from the two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import UNIT, Arithmetic, Enclosure, exactly, up_to
from skcoral.bounds.columns import proved_columns
from skcoral.bounds.dual import multipliers_and_matrix, numbers, part
from skcoral.bounds.exact import floor_room, mean_room
from skcoral.bounds.frame import threshold_bound
from skcoral.bounds.rank import DualBound
from skcoral.bounds.tradeoff import Outputs
from skcoral.bounds.vif import least_unique, limited_room
from skcoral.certificates.evaluation import (
    Attained,
    FactorAttained,
    FactorOutputs,
    evaluate,
    left_open,
    prices_of,
)
from skcoral.certificates.ledger import Check, Ledger
from skcoral.certificates.reading import VIF_PARTS, anchors_and_weights, dual_parts
from skcoral.core import criteria
from skcoral.core import tolerances as tol
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation, RestrictedDecorrelation, Threshold
from skcoral.core.solution import Budget, VifLimit
from skcoral.exceptions import CertificateError

_ON_RIM = 1e-7  # a floor binds if the fidelity is no further above it


def check_decorrelation(
    result: Decorrelation, R: Array | None, factor: Array | None, arithmetic: Arithmetic
) -> Check:
    """Judge every claim of a decorrelation of ``R``, or of the matrix with this factor."""
    of_rank = "rank" in result.certificate.info
    if result.anchors is not None and of_rank:
        raise CertificateError("a rank below p is not combined with anchors.")
    if result.anchors is not None and factor is not None:
        result, R, factor = *_in_factor_space(result, factor, arithmetic), None
    claims = _Claims(result, R, factor, arithmetic)
    if of_rank:
        claims.claim_rank()
    claims.of_T()
    bound = claims.of_bound()
    if result.R is not None and R is not None:
        claims.within("R", np.abs(result.R - R).max(), tol.BOUND_TOL)
    return claims.verdict(max(float(bound.lower), 0.0), float(claims.attained.residual.upper))


def _in_factor_space(
    result: Decorrelation, factor: Array, arithmetic: Arithmetic
) -> tuple[Decorrelation, Array]:
    """The same claims about the vectors ``A T`` and ``A B``, whose matrix is the identity."""
    p = factor.shape[1]
    B, moved = anchors_and_weights(result, p)[0], []
    for what in (numbers(result.T, (p, len(result.names)), "`T`"), np.asarray(B)):
        middle, off = arithmetic.enclosed(factor, what).spread()
        if not np.all(off <= tol.FACTOR_TOL * np.linalg.norm(middle, axis=0)):
            raise CertificateError("outputs or anchors need more digits than floats have.")
        moved.append(middle)
    return replace(result, T=moved[0], anchors=moved[1], R=None), np.eye(len(factor))


class _Claims(Ledger):
    """The claims of one result."""

    result: Decorrelation
    attained: Any

    def __init__(
        self, result: Decorrelation, R: Array | None, factor: Array | None, arithmetic: Arithmetic
    ) -> None:
        super().__init__(result, R, factor, arithmetic)
        self.arrays = dual_parts(result)
        self.close = tol.REPORTED_TOL * max(1.0, abs(result.objective))
        self.A = self.claim_factor() if "factor" in self.arrays else None
        if R is not None:
            self.attained = Attained(result, R, arithmetic)
        elif self.A is not None:
            self.attained = FactorAttained(result, self.A, arithmetic)
        else:
            raise CertificateError("a certificate without a factor needs R itself.")

    def of_bound(self) -> Enclosure:
        """The claims that depend on the inequality; return the lower bound."""
        result, attained = self.result, self.attained
        if isinstance(result.goal, VifLimit):
            self.limit(result.goal)
        if result.certificate.is_exact:
            self.exact()
            return exactly(0.0)
        if isinstance(result, RestrictedDecorrelation):
            return self.support()
        proved, near = evaluate(result, attained, self.R, self.arithmetic), (tol.REPORTED_TOL, 0.0)
        if self.A is not None:
            near = tol.PRICE_TOL, tol.PRICE_TOL
        self.bound(proved)
        prices = prices_of(result, proved.slopes, attained.largest)
        self.claim_prices(prices, 0.5 * proved.slopes, near)
        return proved.bound

    def limit(self, goal: VifLimit) -> None:
        """A limit on the VIF: that it is kept, and the bound on the common floor within it.

        A VIF is compared by its reciprocal, the share of a variance that the other outputs leave.
        """
        least, largest = (1.0 / max(v, 1e-300) for v in (goal.max_vif, goal.largest_vif))
        unique = least_unique(self.attained.correlation, self.arithmetic)
        self.within("VIF", least - unique.lower, tol.BUDGET_TOL)
        self.within("largest VIF", (unique - largest).size(), tol.REPORTED_TOL)
        floor, room = self.common_floor("VIF"), exactly(np.inf)
        if set(self.arrays) >= VIF_PARTS:
            room = limited_room(self.arrays, goal.max_vif, self.attained)
        elif goal.max_vif == 1.0 and "S" in self.arrays:  # exact decorrelators only
            room = floor_room(self.arrays, self.attained)
        top = self.highest(goal.rho_upper, float((room + floor).upper))
        over = goal.rho_upper - max(top, floor)
        self.within("largest floor", over, tol.REPORTED_TOL)

    def common_floor(self, goal: str) -> float:
        """The one floor that there is within a budget or a limit."""
        floors = self.result.rho_min
        self.claim(goal, floors.min() == floors.max(), "the floors differ, and it is about one")
        return float(floors.max())

    def highest(self, reported: float, top: float) -> float:
        """A common floor that is not exceeded, as reported and as proved; none exceeds one."""
        top = top if top < 1.0 else 1.0
        self.within("largest floor", top - reported, tol.REPORTED_TOL)
        return top

    def of_T(self) -> None:
        """Unit variances and floors; correlations, fidelities and objective are those of T."""
        result, attained = self.result, self.attained
        self.within("unit variances", attained.variances.size(), tol.UNIT_VARIANCE_TOL)
        short = (exactly(result.rho_min) - attained.fidelity).upper
        self.within("floors", short, tol.FLOOR_TOL, f" ({result.names[int(np.argmax(short))]})")
        off = (attained.fidelity - result.fidelity).size()
        self.within("fidelity", off, tol.REPORTED_TOL)
        self.within("correlation", attained.misreported, tol.REPORTED_TOL)
        self.within("objective", (attained.residual - result.objective).size(), self.close)

    def support(self) -> Enclosure:
        """The bound on a support, its zeros and prices."""
        worst = self.attained.worst
        claim_support(self)
        proved = evaluate(self.result, self.attained, self.R, self.arithmetic)
        if self.result.status == "exact" or worst <= 0.5 * tol.EXACT_TOL:
            self.order(proved.bound)
            self.claim_status("exact", worst / tol.EXACT_TOL)
        else:
            self.bound(proved)
        return proved.bound

    def exact(self) -> None:
        """No residual, and the largest fidelities."""
        result, worst = self.result, self.attained.worst
        parts = ("weights", "S") if "S" in self.arrays else ("mean_weights", "mean_S")
        weights, _, _ = multipliers_and_matrix(self.arrays, parts, self.attained.k)
        self.claim_prices(np.zeros(self.attained.k), weights, (tol.REPORTED_TOL, 0.0))
        self.within("lower bound", abs(result.lower_bound), 0.0)
        # by how much another exact decorrelator can exceed T
        given, rooms = (self.arrays, self.attained), {}
        try:
            if "S" in self.arrays:
                rooms["floors"] = floor_room(*given)
            rooms["mean fidelity"] = mean_room(*given)
        except CertificateError:
            if result.status == "exact":
                raise
            rooms["mean fidelity"] = Enclosure(np.inf, np.inf)
        if isinstance(result.goal, Budget):
            # The floors of exact decorrelators bound those within a budget of zero, and no others.
            top = np.inf
            if "floors" in rooms and result.goal.budget == 0:
                top = float((rooms["floors"] + float(result.rho_min.max())).upper)
            self.budget(result.goal, top)
        if result.status == "exact":
            self.within("uncorrelated", worst, tol.EXACT_TOL)
            for what, room in rooms.items():
                self.within(f"largest {what}", room.upper, tol.MEAN_TOL)
        else:
            most = max(float(room.upper) for room in rooms.values())
            self.claim_status("exact", max(worst / tol.EXACT_TOL, most / tol.MEAN_TOL))

    def order(self, bound: Enclosure) -> None:
        """The bound is what the certificate proves, and lies below what T attains."""
        stated, low, high = self.result.lower_bound, float(bound.lower), float(bound.upper)
        attained = float(self.attained.residual.lower)
        self.within("lower bound", stated - max(low, 0.0), self.close)
        over = min(low, attained) - stated
        self.within("lower bound", over, tol.OPTIMAL_GAP * max(1.0, low))
        limit = tol.OPTIMAL_GAP * max(1.0, self.result.objective)
        self.within("bounds in order", high - attained, limit)

    def bound(self, proved: DualBound) -> None:
        """A lower bound, a budget, and the status that follows."""
        self.order(proved.bound)
        goal, floor = self.result.goal, float(self.result.rho_min.max())
        if isinstance(goal, Budget):
            self.budget(goal, proved.highest_floor(goal.budget, self.result.criterion, floor))
        gap = float((self.attained.residual - max(float(proved.bound.lower), 0.0)).upper)
        self.claim_status("optimal", left_open(goal, floor, gap, self.result.objective))

    def budget(self, goal: Budget, top: float) -> None:
        """Judge a budget and the bound ``top`` on its floor."""
        over = self.attained.residual.upper - goal.budget
        self.within("budget", over, tol.BUDGET_TOL * max(1.0, goal.budget))
        self.highest(goal.rho_upper, top)
        self.common_floor("budget")


def claim_support(ledger: Ledger) -> None:
    """Zeros off the support, and prices that follow from the slope of the criterion."""
    result = ledger.result
    if result.pair_weights is not None:
        raise CertificateError("a support is not combined with pair weights.")
    given = result.certificate.arrays["support"], result.rho_min, ledger.R, result.anchors
    columns = proved_columns(*given, ledger.arithmetic).columns
    mask, X = np.zeros(result.T.shape, dtype=np.bool_), np.zeros(result.T.shape)
    for j, one in enumerate(columns):
        mask[one.sources, j], X[one.sources, j] = True, one.anchor
    ledger.claim("support", not np.any(result.T[~mask]), "T is not zero off it")
    _claim_prices(ledger, X, np.array([one.reach for one in columns]))


def _claim_prices(ledger: Ledger, X: Array, reach: Array) -> None:
    """Prices are the multipliers of the floors at T, or said not to be known (NaN).

    ``X`` are the anchors as their supports see them.
    """
    result, R = ledger.result, ledger.R
    k, wide = len(result.names), result.support.sum(axis=0) > 1
    slope = part(result.certificate.arrays, "slope", k, k)
    if np.isnan(result.prices).all() and np.isnan(result.weights).all():
        return  # said not to be known
    image = R @ result.T
    G = result.T.T @ image
    if result.status != "exact":
        _claim_subgradient(ledger, result, slope, G)
    floors = result.rho_min / np.where(result.rho_min > 0, reach, 1.0)
    f = np.einsum("ij,ij->j", X, image)
    along = np.einsum("ij,ij->j", X, image @ slope)
    radial = np.einsum("ij,ji->i", G, slope)
    active = (floors > 0) & (floors < 1) & wide & (f - floors <= _ON_RIM)
    room = np.where(active, 1.0 - f * f, 1.0)
    multipliers = np.maximum(np.where(active, (along - f * radial) / room, 0.0), 0.0)
    multipliers = multipliers / np.where(active, reach, 1.0)
    prices = prices_of(result, 2.0 * multipliers)
    # Near a floor of one the multiplier is a small difference over a small one.
    digits = 64 * UNIT * multipliers / room
    ledger.claim_prices(prices, multipliers, (tol.PRICE_TOL, tol.PRICE_TOL), digits)


def _claim_subgradient(ledger: Ledger, result: Decorrelation, slope: Array, G: Array) -> None:
    """``slope`` is half a subgradient of the criterion: equality in Fenchel's inequality."""
    name, k = result.criterion, len(G)
    value = criteria.value(name, G) + (criteria.conjugate(name, slope) if name == "squared" else 0)
    gap = value - float(np.sum(slope * criteria.off(G)))
    inside = criteria.gauge(name, slope, criteria.pair_matrix(None, k)) <= 1 + tol.PRICE_TOL
    holds = inside and not np.any(np.diag(slope)) and abs(gap) <= tol.PRICE_TOL * max(1.0, value)
    ledger.claim("slope", holds, f"it is not a slope of the criterion at T ({gap:.1e})")


#: The fidelities of T, the lower and the upper bound, and by how much a bound may be overstated.
_Sides = tuple[Enclosure, Enclosure, Enclosure, float]


def check_threshold(
    result: Threshold, R: Array | None, factor: Array | None, arithmetic: Arithmetic
) -> Check:
    """Judge every claim of a threshold of ``R``, or of the matrix with this factor."""
    arrays = dual_parts(result)
    ledger = Ledger(result, R, factor, arithmetic)
    both_ends = _low_rank if "factor" in arrays else _full_rank
    fidelity, lower, upper, over = both_ends(ledger, result)
    ledger.within("fidelity", (fidelity - result.fidelity).size(), tol.REPORTED_TOL)
    _claim_bounds(ledger, result, lower, upper, over)
    same = np.array_equal(result.weights, arrays["weights"])
    ledger.claim("weights", same, "they are not those of the certificate")
    return ledger.verdict(float(lower.lower), float(upper.upper))


def _full_rank(ledger: Ledger, result: Threshold) -> _Sides:
    """Both ends of ρ★."""
    p, arrays, given = len(result.T), result.certificate.arrays, (ledger.R, ledger.arithmetic)
    outputs = Outputs(result.T, np.eye(p), np.full(p, result.lower), *given)
    defect = outputs.defect.square().total().sqrt()
    ledger.within("uncorrelated", defect.upper, tol.EXACT_TOL)
    # T (TᵀRT)^{-1/2} decorrelates exactly, and its fidelities are this far from those of T at most.
    one = exactly(1.0)
    shift = (one + defect).sqrt() * (one / (one - defect).sqrt() - 1.0)
    # NaN, which proves nothing, if T is far from exact
    lower = outputs.fidelity.least() - up_to(float(shift.upper))

    total = exactly(part(arrays, "weights", p)).total()
    ledger.within("weights", (total - 1.0).size(), tol.REPORTED_TOL)
    upper = floor_room(arrays, outputs) + result.lower
    if result.status == "optimal":  # nothing is said of the mean while the threshold is open
        most = mean_room(arrays, outputs).upper
        ledger.within("largest mean fidelity", most, tol.MEAN_TOL)
    return outputs.fidelity, lower, upper, tol.BOUND_TOL


def _low_rank(ledger: Ledger, result: Threshold) -> _Sides:
    """Both ends of the largest common floor at the least residual of the rank."""
    A, arithmetic = ledger.claim_factor(), ledger.arithmetic
    ledger.claim_rank()
    r, p = A.shape
    outputs = FactorOutputs(result.T, A, arithmetic)
    ledger.within("unit variances", outputs.variances.size(), tol.UNIT_VARIANCE_TOL)
    least = (exactly(float(p * p)) / float(r) - float(p)) * 0.5
    over = (outputs.squares - least).size() / max(1.0, float(least.upper))
    ledger.within("least residual", over, tol.OPTIMAL_GAP)
    upper = threshold_bound(result.certificate, A, arithmetic)
    upper = Enclosure(*(min(float(u), 1.0) for u in (upper.lower, upper.upper)))
    return outputs.fidelity, outputs.fidelity.least(), upper, tol.REPORTED_TOL


def _claim_bounds(
    ledger: Ledger, result: Threshold, lower: Enclosure, upper: Enclosure, over: float
) -> None:
    low, high = float(lower.lower), float(upper.upper)
    ledger.within("lower", result.lower - low, over)
    ledger.within("upper", high - result.upper, over)
    # An understated bound would be true, but `value` is said to be what T attains.
    most, least = float(lower.upper), float(upper.lower)
    ledger.within("lower", most - result.lower, tol.REPORTED_TOL)
    ledger.within("upper", result.upper - least, tol.REPORTED_TOL)
    ledger.within("bounds in order", most - least, tol.REPORTED_TOL)
    problem = f"it must be above 0 and at most {tol.OPTIMAL_GAP:g}, got {result.tol:g}"
    ledger.claim("tol", 0 < result.tol <= tol.OPTIMAL_GAP, problem)
    if result.status == "optimal":
        ledger.within("gap", high - low, result.tol + over)
