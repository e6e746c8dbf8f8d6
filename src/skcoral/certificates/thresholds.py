"""The claims of a threshold: both bounds, and the weights behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, exactly, up_to
from skcoral.bounds.dual import multipliers_and_matrix
from skcoral.bounds.exact import mean_room
from skcoral.bounds.frame import threshold_bound
from skcoral.bounds.tradeoff import Outputs, complete_square, floors_of
from skcoral.certificates.evaluation import FactorOutputs
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import (
    check_threshold_fields,
    dual_parts,
)
from skcoral.core.arrays import Array
from skcoral.core.results import Threshold
from skcoral.core.tolerances import (
    BOUND_TOL,
    EXACT_TOL,
    MEAN_TOL,
    OPTIMAL_GAP,
    REPORTED_TOL,
    UNIT_VARIANCE_TOL,
)
from skcoral.exceptions import CertificateError


@dataclass(frozen=True)
class _Found:
    """What T attains, and what the dual point proves."""

    fidelity: Enclosure
    lower: Enclosure
    upper: Enclosure
    overstated: float  # by how much a bound may be


def check_threshold(
    result: Threshold, R: Array | None, factor: Array | None, arithmetic: Arithmetic
) -> tuple[Ledger, float, float]:
    """Judge every claim of a threshold of ``R``, or of the matrix with this factor.

    Also returns both bounds.
    """
    check_threshold_fields(result, len(result.names))
    arrays = dual_parts(result)
    ledger = Ledger(result, R, factor, arithmetic)
    if "factor" in arrays:
        found = _low_rank(ledger, result, arithmetic)
    elif R is not None:
        found = _full_rank(ledger, result, R, arithmetic)
    else:
        raise CertificateError("this result is judged with R itself.")
    off = (found.fidelity - result.fidelity).size()
    ledger.within("fidelity", off, REPORTED_TOL)
    _claim_bounds(ledger, result, found)
    same = np.array_equal(result.weights, arrays["weights"])
    ledger.claim("weights", same, "they are not those of the certificate")
    return ledger, float(found.lower.lower), float(found.upper.upper)


def _full_rank(ledger: Ledger, result: Threshold, R: Array, arithmetic: Arithmetic) -> _Found:
    """Both ends of ρ★."""
    p, arrays = len(R), result.certificate.arrays
    outputs = Outputs(result.T, np.eye(p), np.full(p, result.lower), R, arithmetic)
    defect = outputs.defect.square().total().sqrt()
    ledger.within("uncorrelated", defect.upper, EXACT_TOL)
    # T (TᵀRT)^{-1/2} decorrelates exactly, and its fidelities are this far from those of T at most.
    one = exactly(1.0)
    shift = (one + defect).sqrt() * (one / (one - defect).sqrt() - 1.0)
    # NaN, which proves nothing, if T is far from exact
    lower = outputs.fidelity.least() - up_to(float(shift.upper))

    weights, S, on = multipliers_and_matrix(arrays, ("weights", "S"), p)
    total = exactly(weights).total()
    ledger.within("weights", (total - 1.0).size(), REPORTED_TOL)
    near = result.upper  # the bound less this keeps its digits
    floors = floors_of(np.full(len(on), near))
    square = complete_square(arithmetic, R, np.eye(p)[:, on], weights[on], S, floors, "`S`")
    upper = square * -0.5 / total + near
    if result.status == "optimal":  # nothing is said of the mean while the threshold is open
        most = mean_room(arrays, outputs, R, arithmetic).upper
        ledger.within("largest mean fidelity", most, MEAN_TOL)
    return _Found(outputs.fidelity, lower, upper, BOUND_TOL)


def _low_rank(ledger: Ledger, result: Threshold, arithmetic: Arithmetic) -> _Found:
    """Both ends of the largest common floor at the least residual of the rank."""
    A = ledger.claim_factor()
    ledger.claim_rank()
    r, p = A.shape
    outputs = FactorOutputs(result.T, A, arithmetic)
    ledger.within("unit variances", outputs.variances.size(), UNIT_VARIANCE_TOL)
    least = (exactly(float(p * p)) / float(r) - float(p)) * 0.5
    over = (outputs.squares - least).size() / max(1.0, float(least.upper))
    ledger.within("least residual", over, OPTIMAL_GAP)
    upper = threshold_bound(result.certificate, A, arithmetic)
    upper = Enclosure(*(min(float(u), 1.0) for u in (upper.lower, upper.upper)))
    return _Found(outputs.fidelity, outputs.fidelity.least(), upper, REPORTED_TOL)


def _claim_bounds(ledger: Ledger, result: Threshold, found: _Found) -> None:
    low, high, over = float(found.lower.lower), float(found.upper.upper), found.overstated
    ledger.within("lower", result.lower - low, over)
    ledger.within("upper", high - result.upper, over)
    # An understated bound would be true, but `value` is said to be what T attains.
    most, least = float(found.lower.upper), float(found.upper.lower)
    ledger.within("lower", most - result.lower, REPORTED_TOL)
    ledger.within("upper", result.upper - least, REPORTED_TOL)
    ledger.within("bounds in order", most - least, REPORTED_TOL)
    told = f"a threshold is certified up to a gap of {OPTIMAL_GAP:g} at most, not {result.tol:g}"
    ledger.claim("tol", 0 < result.tol <= OPTIMAL_GAP, told)
    if result.status == "optimal":
        ledger.within("gap", high - low, result.tol + over)
