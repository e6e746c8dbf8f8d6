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
    prices_of,
)
from skcoral.certificates.ledger import FrameLedger, Ledger
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
    LIMIT_GAP,
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
        off = np.abs(result.R - R).max()
        claims.within("R", off, BOUND_TOL, "the result is about another R (off by {:.1e})")
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


class _Claims(FrameLedger):
    """The claims of one result."""

    result: Decorrelation
    attained: Attained

    def __init__(
        self, result: Decorrelation, R: Array | None, factor: Array | None, arithmetic: Arithmetic
    ) -> None:
        super().__init__(result, R, factor, arithmetic)
        self.kind, self.arrays = dual_parts(result)
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
        limit, largest, reported = goal.max_vif, goal.largest_vif, goal.rho_upper
        unique = least_unique(self.attained.correlation, self.arithmetic)
        self.claim(
            "VIF",
            limit >= 1.0 and unique.lower >= 1.0 / limit - BUDGET_TOL,
            f"a VIF of {1 / max(float(unique.lower), 1e-300):.9g} exceeds the limit of {limit:.9g}",
        )
        self.claim(
            "largest VIF",
            largest >= 1.0 - REPORTED_TOL and (unique - 1.0 / largest).size() <= REPORTED_TOL,
            f"the largest VIF is {1.0 / max(float(unique.upper), 1e-300):.9g}, not {largest:.9g}",
        )
        floor, room = float(self.result.rho_min.max()), exactly(np.inf)
        told = "within a limit there is one common floor, here are several"
        self.claim("VIF", self.result.rho_min.min() == floor, told)
        if set(self.arrays) >= VIF_PARTS:
            room = limited_room(self.arrays, limit, self.attained, R, self.arithmetic)
        elif limit == 1.0 and "S" in self.arrays:  # exact decorrelators only
            room = floor_room(self.arrays, self.attained, R, self.arithmetic)
        top = float((room + floor).upper)
        top = top if top < 1.0 else 1.0
        self.claim(
            "largest floor",
            reported >= top - REPORTED_TOL,
            f"only floors above {top:.9g} are proved to exceed the limit, not {reported:.9g}",
        )
        self.claim(
            "largest floor",
            reported <= max(top, floor) + REPORTED_TOL,
            f"floors above {top:.9g} are proved to exceed the limit, not only above {reported:.9g}",
            modest=True,
        )
        if self.result.certificate.is_exact:
            return  # judged as an exact decorrelator
        closed, told = reported - floor, f"the bound on the floor leaves {reported - floor:.1e}"
        if self.result.status == "optimal":
            self.claim("status", closed <= LIMIT_GAP, told)
        else:
            told = f"{told}, so the status is 'optimal'"
            self.claim("status", closed > 0.5 * LIMIT_GAP, told, modest=True)

    def of_T(self, attained: Attained | FactorAttained) -> None:
        """Unit variances and floors; correlations, fidelities and objective are those of T."""
        result = self.result
        told = "a variance differs from 1 by {:.1e}"
        self.within("unit variances", attained.variances.size(), UNIT_VARIANCE_TOL, told)
        short = (exactly(result.rho_min) - attained.fidelity).upper
        where = f" ({result.names[int(np.argmax(short))]})"
        self.within("floors", short, FLOOR_TOL, "a floor is missed by {:.1e}", where)
        told = "the reported {} are not those of T (off by {{:.1e}})"
        off = (attained.fidelity - result.fidelity).size()
        self.within("fidelity", off, REPORTED_TOL, told.format("fidelities"))
        self.within("correlation", attained.misreported, REPORTED_TOL, told.format("correlations"))
        self.claim(
            "objective",
            (attained.residual - result.objective).size() <= self.close,
            f"the residual of T is {float(attained.residual.upper):.9g}, not "
            f"{result.objective:.9g}",
        )

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
        if result.status == "exact":
            self.order(bound, self.attained.residual)
            self.uncorrelated()
            return bound
        self.bound(bound, self.attained.residual)
        told = f"a residual of {worst:.1e} is none, so the status is 'exact'"
        self.claim("status", worst > 0.5 * EXACT_TOL, told, modest=True)
        return bound

    def exact(self, R: Array) -> None:
        """No residual, and the largest fidelities."""
        result = self.result
        parts = ("weights", "S") if "S" in self.arrays else ("mean_weights", "mean_S")
        weights, _, _ = multipliers_and_matrix(self.arrays, parts, self.attained.k)
        self.prices(np.zeros(self.attained.k), weights)
        told = f"without a trade-off the lower bound is 0, not {result.lower_bound:.9g}"
        self.claim("lower bound", result.lower_bound == 0.0, told)
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
        if result.status in ("exact", "best_found"):
            self.uncorrelated()
        if result.status == "exact":
            for what, room in rooms.items():
                told = f"the {what} could be {{:.1e}} higher"
                self.within(f"largest {what}", room.upper, MEAN_TOL, told)
        elif result.status == "best_found":
            more = any(room.upper > 0.5 * MEAN_TOL for room in rooms.values())
            told = "the certificate proves the largest fidelities, so the status is 'exact'"
            self.claim("status", more, told, modest=True)
        else:
            early, worst = result.status == "not_converged", self.attained.worst
            told = (
                f"a status of {result.status!r} does not follow from a residual of {worst:.1e} and "
                "a certificate of the exact regime"
            )
            self.claim("status", early and worst > 0.5 * EXACT_TOL, told, modest=early)

    def uncorrelated(self) -> None:
        """No residual correlation."""
        told = "not exact: a residual of {:.1e}"
        self.within("uncorrelated", self.attained.worst, EXACT_TOL, told)

    def prices(
        self, prices: Array, weights: Array, near: float = REPORTED_TOL, near_weights: float = 0.0
    ) -> None:
        """Prices and weights are those that the dual point implies; infinite ones included."""
        same = agree(self.result.prices, prices, near)
        wrong = [name for name, fine in zip(self.result.names, same, strict=True) if not fine]
        told = f"the prices of {', '.join(wrong[:4])} do not follow from the multipliers"
        self.claim("prices", not wrong, told)
        told = "the weights are not those of the certificate"
        self.claim("weights", np.all(agree(self.result.weights, weights, near_weights)), told)

    def order(self, bound: Enclosure, residual: Enclosure) -> None:
        """The bound is what the certificate proves, and lies below what T attains."""
        result, low, high = self.result, float(bound.lower), float(bound.upper)
        told = f"the certificate proves only {low:.9g}, not {result.lower_bound:.9g}"
        self.claim("lower bound", result.lower_bound <= max(low, 0.0) + self.close, told)
        least = min(low, float(residual.lower)) - OPTIMAL_GAP * max(1.0, low)
        told = f"the certificate proves {low:.9g}, and {result.lower_bound:.9g} is reported"
        self.claim("lower bound", result.lower_bound >= least, told, modest=True)
        self.claim(
            "bounds in order",
            high <= float(residual.lower) + OPTIMAL_GAP * max(1.0, result.objective),
            f"the bounds cross: {high:.9g} is proved to be the least, and T leaves "
            f"{float(residual.upper):.9g}",
        )

    def bound(self, bound: Enclosure, residual: Enclosure, top: float = np.inf) -> None:
        """A lower bound, a budget, and the status that follows.

        "Optimal" is held to a closed gap, the other words to an open one; ``top`` is a common floor
        that no transformation within the budget exceeds.
        """
        self.order(bound, residual)
        goal, status = self.result.goal, self.result.status
        if status == "exact":
            told = "'exact' needs a certificate of the exact regime, this is a trade-off"
            self.claim("status", False, told)
        if isinstance(goal, VifLimit):  # the status is about the floor
            return
        short = self.budget(goal, residual, top) if isinstance(goal, Budget) else 0.0
        gap = float((residual - max(float(bound.lower), 0.0)).upper)
        limit = OPTIMAL_GAP * max(1.0, self.result.objective)
        told = f"the gap is {gap:.1e}"
        if status == "optimal":
            self.claim("status", gap <= limit, told)
            told = f"the bound on the common floor leaves {short:.1e}"
            self.claim("status", short <= OPTIMAL_GAP, told)
        elif status != "exact":
            told, is_open = f"{told}, so the status is 'optimal'", short > 0.5 * OPTIMAL_GAP
            self.claim("status", is_open or gap > 0.5 * limit, told, modest=True)

    def budget(self, goal: Budget, residual: Enclosure, top: float) -> float:
        """Judge a budget and the bound ``top`` on its floor; return what that leaves open."""
        floors, budget, reported = self.result.rho_min, goal.budget, goal.rho_upper
        self.claim(
            "budget",
            residual.upper <= budget + BUDGET_TOL * max(1.0, budget),
            f"the budget of {budget:.9g} is exceeded: {float(residual.upper):.9g}",
        )
        told = "within a budget there is one common floor, here are several"
        self.claim("budget", floors.min() == floors.max(), told)
        told = f"only floors above {top:.9g} are proved to exceed the budget, not {reported:.9g}"
        self.claim("largest floor", reported >= (top if top < 1.0 else 1.0) - REPORTED_TOL, told)
        return reported - float(floors.max())
