"""What a result may say of itself: its numbers and its status as a re-check will find them.

Solvers work in rounded numbers, and where floors are next to one or variables nearly collinear the
rounding of a bound exceeds what is promised about it. A solver that passes its result through here
says no more than its certificate proves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.bounds import exact as largest_means
from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.enclosures import Enclosure
from skcoral.bounds.frame import certified_factor
from skcoral.bounds.outputs import Outputs
from skcoral.bounds.support import support_bound
from skcoral.certificates.attained import Attained
from skcoral.certificates.claims import fidelity_rooms, tradeoff_bound
from skcoral.certificates.frame_claims import frame_proof
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import FRAME_KINDS, certificate_kind, dual_parts
from skcoral.certificates.supports import expect_support
from skcoral.core.arrays import Array
from skcoral.core.results import (
    EXACT_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
    REPORTED_TOL,
    Certificate,
    Decorrelation,
    Status,
)
from skcoral.exceptions import CertificateError, NotCertifiedWarning, warn

_MANY_DIGITS = 1e5  # times the unit rounding of 1e-16 stays below what is promised of a number
_AIM = 0.9  # of the gap that is promised, so that rounding does not decide a re-check


def settle(result: Decorrelation, R: Array) -> Decorrelation:
    """Return the result of a solver with the numbers and the status that its certificate proves."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        settled = _settle(result, R)
    if result.status in ("exact", "optimal") and settled.status not in ("exact", "optimal"):
        warn(
            f"the answer was found to be {result.status}, but floors next to one or nearly "
            "collinear variables leave too few digits to prove it: a gap of "
            f"{settled.gap:.1e} stays open.",
            NotCertifiedWarning,
        )
    return settled


def rounding_matters(result: Decorrelation) -> bool:
    """Whether rounding shows in what is promised: of large numbers, or of a singular matrix."""
    if result.certificate.kind not in {"tradeoff", *FRAME_KINDS} - {"welch"}:
        return False
    lifted = result.rank is not None and result.certificate.kind == "tradeoff"
    # A residual above one is promised relative to itself.
    unit = max(result.objective, 1.0)
    return lifted or any(many_digits(a, result.T, unit) for a in result.certificate.arrays.values())


def many_digits(dual: Array, T: Array, unit: float = 1.0) -> bool:
    """Whether a dual point and a transformation are so large that rounding takes over.

    ``unit`` is the size of what is proved.
    """
    steep = max(float(np.abs(dual).max(initial=0.0)) / unit, 1.0)
    size = float(np.abs(T).max()) ** 2 * np.sqrt(len(T))  # roundings of a sum add up like this
    return bool(steep * max(size, 1.0) > _MANY_DIGITS)


def mean_room(R: Array, rho_min: Array, weights: Array, S: Array, T: Array) -> float:
    """By how much the mean fidelity of an exact decorrelator can exceed that of T, proved.

    Infinite where ``S`` proves nothing.
    """
    arithmetic = Floats()
    outputs = Outputs(T, np.eye(len(R)), rho_min, R, arithmetic)
    try:
        room = largest_means.mean_room({"weights": weights, "S": S}, outputs, R, arithmetic)
    except CertificateError:
        return np.inf
    return float(room.upper)


def _settle(result: Decorrelation, R: Array) -> Decorrelation:
    attained = Attained(result, R, Floats())
    result = _with_numbers_of(attained, result)
    kind, arrays = dual_parts(result)
    if kind in ("exact", "threshold"):
        if not attained.worst <= _AIM * EXACT_TOL:
            return replace(result, status="not_converged")
        if result.status == "exact":
            rooms = fidelity_rooms(kind, arrays, attained, R, Floats())
            if not all(room.upper <= _AIM * MEAN_TOL for room in rooms.values()):
                return replace(result, status="best_found")
        return result
    bound = _bound(result, attained, R)
    if bound is None:
        result = _without_proof(result)
        bound = _bound(result, attained, R)
    support = kind.startswith("support")
    lower = 0.0 if bound is None else max(float(bound.lower), 0.0)
    status: Status = result.status
    if support and attained.worst <= _AIM * EXACT_TOL:
        status = "exact"
    else:
        closed = result.objective - lower <= _AIM * OPTIMAL_GAP * max(1.0, result.objective)
        # Within a budget the floor has a bound of its own.
        top = float(result.details["rho_upper"]) if "budget" in result.details else 0.0
        closed = closed and top - float(result.rho_min.max()) <= OPTIMAL_GAP
        status = "optimal" if closed else "best_found" if status in ("exact", "optimal") else status
    result = replace(result, lower_bound=min(lower, result.objective), status=status)
    return _with_known_prices(result, R) if support else result


def _with_numbers_of(attained: Attained, result: Decorrelation) -> Decorrelation:
    """Replace what is reported of T where rounding has moved it."""
    near = 0.1 * REPORTED_TOL
    changes: dict[str, Any] = {}
    if not np.all(attained.misreported <= near):
        changes["correlation"] = attained.correlation.middle
    if not np.all((attained.fidelity - result.fidelity).size() <= near):
        changes["fidelity"] = attained.fidelity.middle
    if not (attained.residual - result.objective).size() <= near * max(1.0, result.objective):
        changes["objective"] = float(attained.residual.middle)
    return replace(result, **changes) if changes else result


def _bound(result: Decorrelation, attained: Attained, R: Array) -> Enclosure | None:
    """The lower bound that the certificate proves; None if rounding leaves too little of it."""
    for parts, digits in ((2, 1e-3), (3, 0.1)):
        arithmetic = Floats(parts=parts)
        try:
            kind, arrays = result.certificate.kind, result.certificate.arrays
            if kind == "tradeoff":
                bound = tradeoff_bound(result, arrays, attained, R, arithmetic)
            elif kind in FRAME_KINDS:
                A = certified_factor(result.certificate, len(R))
                bound = frame_proof(result, A, arithmetic).bound
            else:
                bound = support_bound(
                    result.certificate, result.rho_min, R, arithmetic, result.anchors
                )
        except CertificateError:
            continue
        if bound.upper - bound.lower <= digits * OPTIMAL_GAP * max(1.0, float(bound.upper)):
            return bound
    return None


def settle_factored(result: Decorrelation, A: Array) -> Decorrelation:
    """Return a result about a matrix ``AᵀA`` of rank below p as its certificate has it.

    The bounds on the residual and on the common floor within a budget, the prices and the status
    are those that a re-check will find.
    """
    floor, details = float(result.rho_min.max()), result.details
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            proof = frame_proof(result, A, Floats())
        except CertificateError:
            result = _without_proof(result)
            proof = frame_proof(result, A, Floats())
        top, weights = proof.highest_floor(result), 0.5 * proof.slopes
    # zero where nothing is proved
    lower = min(max(0.0, float(proof.bound.lower)), result.objective)
    closed = result.objective - lower <= _AIM * OPTIMAL_GAP * max(1.0, result.objective)
    if "budget" in details:
        top = max(top, floor) if top < 1.0 else 1.0
        closed = closed and top - floor <= _AIM * OPTIMAL_GAP
        details = {**details, "rho_upper": top}
    return replace(
        result,
        lower_bound=lower,
        weights=weights,
        prices=np.where(result.rho_min >= 1.0, result.prices, 2.0 * weights),
        status="optimal" if closed else "best_found",
        details=details,
    )


def proved_bound(R: Array, rho_min: Array, certificate: Certificate) -> float:
    """Lower bound that a certificate of kind "support" proves, from R and its arrays alone."""
    if isinstance(certificate, Certificate) and certificate.kind != "support":
        raise CertificateError(
            f"expected a certificate of kind 'support', got {certificate.kind!r}."
        )
    certificate_kind(certificate, without=("slope",))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = support_bound(certificate, rho_min, R, Floats())
    return max(float(bound.lower), 0.0)


def _without_proof(result: Decorrelation) -> Decorrelation:
    """Put the point that proves no more than zero in place of one that proves nothing."""
    kind, own, info = result.certificate.kind, result.certificate.arrays, result.certificate.info
    none, square = np.zeros(len(result.names)), np.zeros((len(result.names),) * 2)
    if kind == "support":
        sources = len(own["support"])
        arrays = {
            "P": np.zeros((sources, sources)),
            "eta": none,
            "support": own["support"],
            "slope": own["slope"],
        }
        info = {"bound": "frame", "criterion": result.criterion, "norm": "frobenius"}
        return replace(result, certificate=Certificate(kind, arrays, info))
    if kind in FRAME_KINDS:
        nothing = Certificate("welch", {"factor": own["factor"]}, info)
    else:
        nothing = Certificate(kind, {**own, "multipliers": none, "H": square}, info)
    details = {**result.details, "rho_upper": 1.0} if "budget" in result.details else result.details
    return replace(result, certificate=nothing, weights=none, prices=none, details=details)


def _with_known_prices(result: Decorrelation, R: Array) -> Decorrelation:
    """Withdraw prices that do not follow from the slope of the criterion at T."""
    ledger = Ledger()
    expect_support(ledger, result, R)
    if all(claim.holds for claim in ledger.claims if claim.name != "support"):
        return result
    unknown = np.full(len(result.names), np.nan)
    return replace(result, prices=unknown, weights=unknown)
