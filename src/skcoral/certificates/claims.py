"""The claims of a decorrelation, each computed again from R, T and the dual point.

Nothing of a solver enters. The attained side comes from ``T`` and ``R``, the bound from the
inequality that the certificate's arrays plug into, and the status has to follow from the two.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates import supports
from skcoral.certificates.attained import Attained
from skcoral.certificates.enclosures import Enclosure, exactly
from skcoral.certificates.inequalities import (
    complete_square,
    conjugate,
)
from skcoral.certificates.inflation import expect_limit
from skcoral.certificates.largest_means import floor_room, mean_room, rest_room
from skcoral.certificates.ledger import Check, Ledger
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import (
    FRAME_KINDS,
    agree,
    dual_parts,
    multipliers_and_matrix,
    number,
)
from skcoral.certificates.wide_claims import expect_factor, expect_frame_prices, frame_bound
from skcoral.exceptions import CertificateError
from skcoral.results import (
    BOUND_TOL,
    BUDGET_TOL,
    CROWDED,
    EXACT_TOL,
    FACTOR_TOL,
    FLOOR_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
    REPORTED_TOL,
    UNIT_VARIANCE_TOL,
    Decorrelation,
)


def judge_decorrelation(result: Decorrelation, R: Array, arithmetic: Arithmetic) -> Check:
    """Judge every claim of a decorrelation of the positive definite ``R``."""
    attained = Attained(result, R, arithmetic)
    kind, arrays = dual_parts(result)
    ledger = Ledger()
    if kind not in (*FRAME_KINDS, "tradeoff"):
        ledger.expect(
            "rank", result.rank is None, f"a certificate of full rank, and a rank of {result.rank}"
        )
    if result.R is not None:
        off = float(np.abs(result.R - R).max())
        ledger.expect("R", off <= BOUND_TOL, f"the result is about another R (off by {off:.1e})")
    expect_feasible(ledger, result, attained)
    expect_reported(ledger, result, attained)
    if "max_vif" in result.details:
        expect_limit(ledger, result, attained, R, arithmetic)
    if kind in ("exact", "threshold"):
        bound = exactly(0.0)
        _judge_exact(ledger, result, kind, arrays, attained, R, arithmetic)
    elif kind in FRAME_KINDS:
        A = expect_factor(ledger, result.certificate, len(R), R, None, arithmetic)
        bound, slopes = frame_bound(result, A, arithmetic)
        expect_bound(ledger, result, bound, attained.residual)
        expect_gap_word(ledger, result, bound, attained.residual)
        expect_frame_prices(ledger, result, slopes, attained.largest)
        _expect_rank(ledger, result, R)
    elif kind == "tradeoff":
        _expect_rank(ledger, result, R)
        bound = _judge_tradeoff(ledger, result, arrays, attained, R, arithmetic)
    else:
        supports.expect_support(ledger, result, R)
        bound = supports.support_bound(result.certificate, result.rho_min, R, arithmetic)
        expect_bound(ledger, result, bound, attained.residual)
        if result.status == "exact":
            _expect_uncorrelated(ledger, attained)
        else:
            expect_gap_word(ledger, result, bound, attained.residual)
            ledger.expect(
                "status",
                attained.worst > 0.5 * EXACT_TOL,
                f"a residual of {attained.worst:.1e} is none, so the status is 'exact'",
                modest=True,
            )
    lower, upper = max(float(bound.lower), 0.0), float(attained.residual.upper)
    return ledger.verdict(lower, upper, rigorous=arithmetic.rigorous)


def _expect_rank(ledger: Ledger, result: Decorrelation, R: Array) -> None:
    """The rank that is claimed is that of R: what is beyond it does not count."""
    stated = result.certificate.info.get("rank")
    ledger.expect("rank", result.rank == stated, f"the certificate is of rank {stated}")
    if result.rank is not None:
        inside = 0 < result.rank < len(R)
        values = np.linalg.eigvalsh(R)
        beyond, last = values[: len(R) - result.rank], values[-result.rank] if inside else 0.0
        size = float(np.abs(beyond).max(initial=0.0))
        ledger.expect(
            "rank",
            inside and size <= FACTOR_TOL * len(R) and last > 1e-13 * values[-1],
            f"R has not the {result.rank} directions claimed: the last is {last:.1e}, the next "
            f"{size:.1e}",
        )


def expect_feasible(ledger: Ledger, result: Decorrelation, attained: Attained) -> None:
    """Unit variances and floors."""
    excess = float(np.diag(attained.defect.size()).max())
    ledger.expect(
        "unit variances", excess <= UNIT_VARIANCE_TOL, f"a variance differs from 1 by {excess:.1e}"
    )
    short = (exactly(result.rho_min) - attained.fidelity).upper
    j = int(np.argmax(short))
    ledger.expect(
        "floors",
        np.all(short <= FLOOR_TOL),
        f"a floor is missed by {short[j]:.1e} ({result.names[j]})",
    )


def expect_reported(ledger: Ledger, result: Decorrelation, attained: Attained) -> None:
    """Correlations, fidelities and objective are those of T."""
    ledger.expect(
        "correlation",
        np.all(attained.misreported <= REPORTED_TOL),
        "the reported correlations are not those of T "
        f"(off by {float(attained.misreported.max()):.1e})",
    )
    off = (attained.fidelity - result.fidelity).size()
    ledger.expect(
        "fidelity",
        np.all(off <= REPORTED_TOL),
        f"the reported fidelities are not those of T (off by {float(off.max()):.1e})",
    )
    ledger.expect(
        "objective",
        (attained.residual - result.objective).size() <= _close(result.objective),
        f"the residual of T is {float(attained.residual.upper):.9g}, not {result.objective:.9g}",
    )


def expect_bound(
    ledger: Ledger, result: Decorrelation, bound: Enclosure, residual: Enclosure
) -> None:
    """The bound is what the certificate proves, and lies below what T attains."""
    close = _close(result.objective)
    low, high = float(bound.lower), float(bound.upper)
    ledger.expect(
        "lower bound",
        result.lower_bound <= max(low, 0.0) + close,
        f"the certificate proves only {low:.9g}, not {result.lower_bound:.9g}",
    )
    ledger.expect(
        "lower bound",
        result.lower_bound >= min(low, float(residual.lower)) - OPTIMAL_GAP * max(1.0, low),
        f"the certificate proves {low:.9g}, and {result.lower_bound:.9g} is reported",
        modest=True,
    )
    ledger.expect(
        "bounds in order",
        high <= float(residual.lower) + OPTIMAL_GAP * max(1.0, result.objective),
        f"the bounds cross: {high:.9g} is proved to be the least, and T leaves "
        f"{float(residual.upper):.9g}",
    )


def _judge_tradeoff(
    ledger: Ledger,
    result: Decorrelation,
    arrays: Mapping[str, Array],
    attained: Attained,
    R: Array,
    arithmetic: Arithmetic,
) -> Enclosure:
    bound = tradeoff_bound(result, arrays, attained, R, arithmetic)
    multipliers = arrays["multipliers"]
    expect_bound(ledger, result, bound, attained.residual)
    open_floor = False
    if "budget" in result.details:
        slope = (attained.length * (2.0 * attained.scaled(multipliers))).total()
        reach = (exactly(number(result.details["budget"], "the budget")) - bound) / slope
        top = float((reach + float(result.rho_min.max())).upper)
        open_floor = _expect_budget(ledger, result, attained, top)
    expect_gap_word(ledger, result, bound, attained.residual, open_floor=open_floor)
    ledger.expect(
        "weights",
        np.array_equal(result.weights, multipliers),
        "the weights are not the multipliers of the certificate",
    )
    prices = 2.0 * multipliers
    costs = np.any(arrays["H"] - np.diag(np.diag(arrays["H"])) != 0, axis=1)
    if result.rank is not None and multipliers.any():  # H need not show what T leaves
        costs = attained.largest > CROWDED
    prices = np.where(result.rho_min >= 1, np.where(costs, np.inf, 0.0), prices)
    expect_equal_prices(ledger, result, prices)
    return bound


def tradeoff_bound(
    result: Decorrelation,
    arrays: Mapping[str, Array],
    attained: Attained,
    R: Array,
    arithmetic: Arithmetic,
) -> Enclosure:
    """Return what ``φ ≥ 2ρᵀλ - tr H - φ*(off H) - tr(D R D H⁻¹)`` proves."""
    multipliers, H, on = multipliers_and_matrix(arrays, ("multipliers", "H"), attained.k)
    if not len(on):
        return exactly(0.0)  # no criterion is negative
    kappa = attained.scaled(multipliers)[on]
    square = complete_square(arithmetic, R, attained.B[:, on], kappa, H, "H")
    penalty, outside = conjugate(result.criterion, H, attained.weights[np.ix_(on, on)])
    bound = (square.value(attained.floors[on]) - penalty) / outside
    if not np.isfinite(bound.lower):
        raise CertificateError("the certificate proves nothing: its bound is not finite.")
    return bound


def expect_equal_prices(ledger: Ledger, result: Decorrelation, prices: Array) -> None:
    """The prices are those that the multipliers of the floors imply; infinite ones included."""
    same = agree(result.prices, prices, REPORTED_TOL)
    wrong = [name for name, fine in zip(result.names, same, strict=True) if not fine]
    ledger.expect(
        "prices",
        not wrong,
        f"the prices of {', '.join(wrong[:4])} do not follow from the multipliers",
    )


def fidelity_rooms(
    kind: str, arrays: Mapping[str, Array], attained: Attained, R: Array, arithmetic: Arithmetic
) -> dict[str, Enclosure]:
    """By how much another exact decorrelator can exceed T, in what it is said to have most of."""
    if kind == "exact":
        return {"mean fidelity": mean_room(arrays, attained, R, arithmetic)}
    return {
        "floors": floor_room(arrays, attained, R, arithmetic),
        "mean fidelity": rest_room(arrays, attained, R, arithmetic),
    }


def _judge_exact(
    ledger: Ledger,
    result: Decorrelation,
    kind: str,
    arrays: Mapping[str, Array],
    attained: Attained,
    R: Array,
    arithmetic: Arithmetic,
) -> None:
    weights, _, _ = multipliers_and_matrix(arrays, ("weights", "S"), attained.k)
    ledger.expect(
        "weights",
        np.array_equal(result.weights, weights),
        "the weights are not those of the certificate",
    )
    ledger.expect(
        "lower bound",
        result.lower_bound == 0.0,
        f"without a trade-off the lower bound is 0, not {result.lower_bound:.9g}",
    )
    expect_equal_prices(ledger, result, np.zeros(attained.k))
    try:
        rooms = fidelity_rooms(kind, arrays, attained, R, arithmetic)
    except CertificateError:
        if result.status == "exact":
            raise
        rooms = {"mean fidelity": Enclosure(np.inf, np.inf)}
    top = np.inf
    if "floors" in rooms:
        top = float((rooms["floors"] + float(result.rho_min.max())).upper)
    if "budget" in result.details:
        # The floors of exact decorrelators bound those within a budget of zero, and no others.
        nothing = number(result.details["budget"], "the budget") == 0
        _expect_budget(ledger, result, attained, top if nothing else np.inf)
    if result.status == "exact":
        _expect_uncorrelated(ledger, attained)
        for what, room in rooms.items():
            most = float(room.upper)
            ledger.expect(
                f"largest {what}", most <= MEAN_TOL, f"the {what} could be {most:.1e} higher"
            )
    elif result.status == "best_found":
        _expect_uncorrelated(ledger, attained)
        ledger.expect(
            "status",
            any(room.upper > 0.5 * MEAN_TOL for room in rooms.values()),
            "the certificate proves the largest fidelities, so the status is 'exact'",
            modest=True,
        )
    else:
        ledger.expect(
            "status",
            result.status == "not_converged" and attained.worst > 0.5 * EXACT_TOL,
            f"a status of {result.status!r} does not follow from a residual of "
            f"{attained.worst:.1e} and a certificate of the exact regime",
            modest=result.status == "not_converged",
        )


def _expect_uncorrelated(ledger: Ledger, attained: Attained) -> None:
    ledger.expect(
        "uncorrelated",
        attained.worst <= EXACT_TOL,
        f"not exact: a residual of {attained.worst:.1e}",
    )


def expect_gap_word(
    ledger: Ledger,
    result: Decorrelation,
    bound: Enclosure,
    residual: Enclosure,
    *,
    open_floor: bool = False,
) -> None:
    """Hold "optimal" to a closed gap, and the other words to an open one."""
    gap = float((residual - max(float(bound.lower), 0.0)).upper)
    limit = OPTIMAL_GAP * max(1.0, result.objective)
    told = f"the gap is {gap:.1e}"
    if result.status == "optimal":
        ledger.expect("status", gap <= limit, told)
        ledger.expect("status", not open_floor, "the bound on the common floor leaves a gap")
    elif result.status == "exact":
        ledger.expect(
            "status", False, "'exact' needs a certificate of the exact regime, this is a trade-off"
        )
    else:
        ledger.expect(
            "status",
            open_floor or gap > 0.5 * limit,
            f"{told}, so the status is 'optimal'",
            modest=True,
        )


def _expect_budget(ledger: Ledger, result: Decorrelation, attained: Attained, top: float) -> bool:
    """Judge a budget and the bound ``top`` on its floor; return whether that leaves a gap."""
    budget = number(result.details["budget"], "the budget")
    reported = number(result.details.get("rho_upper", 1.0), "the bound on the floor")
    ledger.expect(
        "budget",
        attained.residual.upper <= budget + BUDGET_TOL * max(1.0, budget),
        f"the budget of {budget:.9g} is exceeded: {float(attained.residual.upper):.9g}",
    )
    common = bool(np.all(result.rho_min == result.rho_min[0]))
    ledger.expect("budget", common, "within a budget there is one common floor, here are several")
    ledger.expect(
        "largest floor",
        reported >= (top if top < 1.0 else 1.0) - REPORTED_TOL,
        f"only floors above {top:.9g} are proved to exceed the budget, not {reported:.9g}",
    )
    return not reported - float(result.rho_min[0]) <= OPTIMAL_GAP


def _close(value: float) -> float:
    return REPORTED_TOL * max(1.0, abs(value))
