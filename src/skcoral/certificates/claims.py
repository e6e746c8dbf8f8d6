"""The claims of a decorrelation, each computed again from R, T and the dual point.

Nothing of a solver enters. The attained side comes from ``T`` and ``R``, the bound from the
inequality that the certificate's arrays plug into, and the status has to follow from the two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, exactly
from skcoral.bounds.dual import multipliers_and_matrix, number, numbers
from skcoral.bounds.exact import floor_room
from skcoral.bounds.vif import least_unique, limited_room
from skcoral.certificates import supports
from skcoral.certificates.evaluation import (
    Attained,
    FactorAttained,
    evaluate,
    evaluate_factored,
    fidelity_rooms,
    highest_floor,
    left_open,
    prices_of,
)
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import (
    VIF_PARTS,
    agree,
    certificate_info,
    check_fields,
    dual_parts,
)
from skcoral.core.arrays import Array
from skcoral.core.results import (
    Decorrelation,
    RestrictedDecorrelation,
)
from skcoral.core.solution import Budget, VifLimit
from skcoral.core.tolerances import (
    BOUND_TOL,
    BUDGET_TOL,
    EXACT_TOL,
    FACTOR_TOL,
    FLOOR_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
    PRICE_TOL,
    REPORTED_TOL,
    UNIT_VARIANCE_TOL,
)
from skcoral.exceptions import CertificateError


def check_decorrelation(
    result: Decorrelation, R: Array | None, factor: Array | None, arithmetic: Arithmetic
) -> tuple[Ledger, float, float]:
    """Judge every claim of a decorrelation of ``R``, or of the matrix with this factor.

    Also returns the bound and the residual.
    """
    of_rank = "rank" in certificate_info(result)
    if result.anchors is not None and of_rank:
        raise CertificateError("a rank below p is not combined with anchors.")
    if result.anchors is not None and factor is not None:
        result, R, factor = *_in_factor_space(result, factor, arithmetic), None
    claims = _Claims(result, R, factor, arithmetic)
    if of_rank:
        claims.claim_rank()
    if "factor" in claims.arrays:
        attained, bound = claims.frame()
    elif R is not None:
        attained = claims.attained = Attained(result, R, arithmetic)
        claims.of_T(attained)
        bound = claims.bound_by_kind(R)
    else:
        raise CertificateError("a certificate without a factor needs R itself.")
    if result.R is not None and R is not None:
        claims.within("R", np.abs(result.R - R).max(), BOUND_TOL)
    return claims, max(float(bound.lower), 0.0), float(attained.residual.upper)


def _in_factor_space(
    result: Decorrelation, factor: Array, arithmetic: Arithmetic
) -> tuple[Decorrelation, Array]:
    """The same claims about the vectors ``A T`` and ``A B``, whose matrix is the identity."""
    if factor.ndim != 2:
        raise CertificateError(f"a factor is a matrix, got shape {factor.shape}.")
    p = factor.shape[1]
    B, moved = check_fields(result, p)[0], []
    for what in (numbers(result.T, (p, len(result.names)), "`T`"), np.asarray(B)):
        found = arithmetic.enclosed(factor, what)
        off, length = (found - found.middle).size(), np.linalg.norm(found.middle, axis=0)
        if not np.all(off <= FACTOR_TOL * length):
            raise CertificateError("outputs or anchors need more digits than floats have.")
        moved.append(found.middle)
    return replace(result, T=moved[0], anchors=moved[1], R=None), np.eye(len(factor))


class _Claims(Ledger):
    """The claims of one result."""

    result: Decorrelation
    attained: Attained

    def __init__(
        self, result: Decorrelation, R: Array | None, factor: Array | None, arithmetic: Arithmetic
    ) -> None:
        super().__init__(result, R, factor, arithmetic)
        self.arrays = dual_parts(result)
        self.close = REPORTED_TOL * max(1.0, abs(number(result.objective, "`objective`")))

    def frame(self) -> tuple[Attained | FactorAttained, Enclosure]:
        """The claims of a frame; return what T attains, and the lower bound."""
        result, A = self.result, self.claim_factor()
        attained: Attained | FactorAttained
        if self.R is not None:
            attained = Attained(result, self.R, self.arithmetic)
        else:
            attained = FactorAttained(result, A, self.arithmetic)
        self.of_T(attained)
        proved = evaluate_factored(result, A, self.arithmetic)
        self.bound(proved.bound, attained.residual, highest_floor(result, proved))
        prices = prices_of(result, proved.slopes, attained.largest)
        self.prices(prices, 0.5 * proved.slopes, PRICE_TOL, PRICE_TOL)
        return attained, proved.bound

    def bound_by_kind(self, R: Array) -> Enclosure:
        """The claims that depend on the inequality, at full rank; return the lower bound."""
        if isinstance(self.result.goal, VifLimit):
            self.limit(self.result.goal, R)
        if self.result.certificate.is_exact:
            self.exact(R)
            return exactly(0.0)
        return self.support(R) if self.result.is_restricted else self.tradeoff(R)

    def limit(self, goal: VifLimit, R: Array) -> None:
        """A limit on the VIF: that it is kept, and the bound on the common floor within it.

        A VIF is compared by its reciprocal, the share of a variance that the other outputs leave.
        """
        least, largest = (1.0 / max(v, 1e-300) for v in (goal.max_vif, goal.largest_vif))
        unique = least_unique(self.attained.correlation, self.arithmetic)
        self.within("VIF", least - unique.lower, BUDGET_TOL)
        self.within("largest VIF", (unique - largest).size(), REPORTED_TOL)
        floor, room = self.common_floor("VIF"), exactly(np.inf)
        if set(self.arrays) >= VIF_PARTS:
            room = limited_room(self.arrays, goal.max_vif, self.attained, R, self.arithmetic)
        elif goal.max_vif == 1.0 and "S" in self.arrays:  # exact decorrelators only
            room = floor_room(self.arrays, self.attained, R, self.arithmetic)
        top = self.highest(goal.rho_upper, float((room + floor).upper))
        over = goal.rho_upper - max(top, floor)
        self.within("largest floor", over, REPORTED_TOL, modest=True)

    def common_floor(self, goal: str) -> float:
        """The one floor that there is within a budget or a limit."""
        floors = self.result.rho_min
        self.claim(goal, floors.min() == floors.max(), "one common floor belongs to it")
        return float(floors.max())

    def highest(self, reported: float, top: float) -> float:
        """A common floor that is not exceeded, as reported and as proved; none exceeds one."""
        top = top if top < 1.0 else 1.0
        self.within("largest floor", top - reported, REPORTED_TOL)
        return top

    def of_T(self, attained: Attained | FactorAttained) -> None:
        """Unit variances and floors; correlations, fidelities and objective are those of T."""
        result = self.result
        self.within("unit variances", attained.variances.size(), UNIT_VARIANCE_TOL)
        short = (exactly(result.rho_min) - attained.fidelity).upper
        self.within("floors", short, FLOOR_TOL, f" ({result.names[int(np.argmax(short))]})")
        off = (attained.fidelity - result.fidelity).size()
        self.within("fidelity", off, REPORTED_TOL)
        self.within("correlation", attained.misreported, REPORTED_TOL)
        self.within("objective", (attained.residual - result.objective).size(), self.close)

    def tradeoff(self, R: Array) -> Enclosure:
        """The bound of (★), a budget, and prices."""
        proved = evaluate(self.result, self.attained, R, self.arithmetic)
        self.bound(proved.bound, self.attained.residual, highest_floor(self.result, proved))
        prices = prices_of(self.result, proved.slopes, self.attained.largest)
        self.prices(prices, 0.5 * proved.slopes)
        return proved.bound

    def support(self, R: Array) -> Enclosure:
        """The bound on a support, its zeros and prices."""
        result, worst = self.result, self.attained.worst
        assert isinstance(result, RestrictedDecorrelation)
        supports.claim_support(self, result, R)
        bound = evaluate(result, self.attained, R, self.arithmetic).bound
        if result.status == "exact" or worst <= 0.5 * EXACT_TOL:
            self.order(bound, self.attained.residual)
            self.claim_status("exact", worst / EXACT_TOL)
        else:
            self.bound(bound, self.attained.residual)
        return bound

    def exact(self, R: Array) -> None:
        """No residual, and the largest fidelities."""
        result, worst = self.result, self.attained.worst
        parts = ("weights", "S") if "S" in self.arrays else ("mean_weights", "mean_S")
        weights, _, _ = multipliers_and_matrix(self.arrays, parts, self.attained.k)
        self.prices(np.zeros(self.attained.k), weights)
        self.within("lower bound", abs(result.lower_bound), 0.0)
        try:
            rooms = fidelity_rooms(result, self.attained, R, self.arithmetic)
        except CertificateError:
            if result.status == "exact":
                raise
            rooms = {"mean fidelity": Enclosure(np.inf, np.inf)}
        if isinstance(result.goal, Budget):
            # The floors of exact decorrelators bound those within a budget of zero, and no others.
            top = np.inf
            if "floors" in rooms and result.goal.budget == 0:
                top = float((rooms["floors"] + float(result.rho_min.max())).upper)
            self.budget(result.goal, self.attained.residual, top)
        if result.status == "exact":
            self.within("uncorrelated", worst, EXACT_TOL)
            for what, room in rooms.items():
                self.within(f"largest {what}", room.upper, MEAN_TOL)
        else:
            most = max(float(room.upper) for room in rooms.values())
            self.claim_status("exact", max(worst / EXACT_TOL, most / MEAN_TOL))

    def prices(
        self, prices: Array, weights: Array, near: float = REPORTED_TOL, near_weights: float = 0.0
    ) -> None:
        """Prices and weights are those that the dual point implies; infinite ones included."""
        result = self.result
        for name, reported, implied, tolerance in (
            ("prices", result.prices, prices, near),
            ("weights", result.weights, weights, near_weights),
        ):
            wrong = np.flatnonzero(~agree(reported, implied, tolerance))
            told = ", ".join(result.names[j] for j in wrong[:4])
            self.claim(name, not len(wrong), f"{told} do not follow from the certificate")

    def order(self, bound: Enclosure, residual: Enclosure) -> None:
        """The bound is what the certificate proves, and lies below what T attains."""
        stated, low, high = self.result.lower_bound, float(bound.lower), float(bound.upper)
        self.within("lower bound", stated - max(low, 0.0), self.close)
        over = min(low, float(residual.lower)) - stated
        self.within("lower bound", over, OPTIMAL_GAP * max(1.0, low), modest=True)
        limit = OPTIMAL_GAP * max(1.0, self.result.objective)
        self.within("bounds in order", high - float(residual.lower), limit)

    def bound(self, bound: Enclosure, residual: Enclosure, top: float = np.inf) -> None:
        """A lower bound, a budget, and the status that follows.

        ``top`` is a common floor that no transformation within the budget exceeds.
        """
        self.order(bound, residual)
        goal, floor = self.result.goal, float(self.result.rho_min.max())
        if isinstance(goal, Budget):
            self.budget(goal, residual, top)
        gap = float((residual - max(float(bound.lower), 0.0)).upper)
        self.claim_status("optimal", left_open(goal, floor, gap, self.result.objective))

    def budget(self, goal: Budget, residual: Enclosure, top: float) -> None:
        """Judge a budget and the bound ``top`` on its floor."""
        over = residual.upper - goal.budget
        self.within("budget", over, BUDGET_TOL * max(1.0, goal.budget))
        self.highest(goal.rho_upper, top)
        self.common_floor("budget")
