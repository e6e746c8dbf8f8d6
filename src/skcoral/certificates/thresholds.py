"""The claims of a threshold: both bounds, and the weights behind them."""

from __future__ import annotations

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, exactly, up_to
from skcoral.bounds.dual import multipliers_and_matrix
from skcoral.bounds.exact import mean_room
from skcoral.bounds.frame import threshold_bound
from skcoral.bounds.tradeoff import Outputs, complete_square, floors_of
from skcoral.certificates.evaluation import FactorOutputs
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.reading import dual_parts
from skcoral.core import tolerances as tol
from skcoral.core.arrays import Array
from skcoral.core.results import Threshold
from skcoral.exceptions import CertificateError

#: The fidelities of T, the lower and the upper bound, and by how much a bound may be overstated.
_Sides = tuple[Enclosure, Enclosure, Enclosure, float]


def check_threshold(
    result: Threshold, R: Array | None, factor: Array | None, arithmetic: Arithmetic
) -> tuple[Ledger, float, float]:
    """Judge every claim of a threshold of ``R``, or of the matrix with this factor.

    Also returns both bounds.
    """
    arrays = dual_parts(result)
    ledger = Ledger(result, R, factor, arithmetic)
    if "factor" in arrays:
        fidelity, lower, upper, over = _low_rank(ledger, result, arithmetic)
    elif R is not None:
        fidelity, lower, upper, over = _full_rank(ledger, result, R, arithmetic)
    else:
        raise CertificateError("this result is judged with R itself.")
    ledger.within("fidelity", (fidelity - result.fidelity).size(), tol.REPORTED_TOL)
    _claim_bounds(ledger, result, lower, upper, over)
    same = np.array_equal(result.weights, arrays["weights"])
    ledger.claim("weights", same, "they are not those of the certificate")
    return ledger, float(lower.lower), float(upper.upper)


def _full_rank(ledger: Ledger, result: Threshold, R: Array, arithmetic: Arithmetic) -> _Sides:
    """Both ends of ρ★."""
    p, arrays = len(R), result.certificate.arrays
    outputs = Outputs(result.T, np.eye(p), np.full(p, result.lower), R, arithmetic)
    defect = outputs.defect.square().total().sqrt()
    ledger.within("uncorrelated", defect.upper, tol.EXACT_TOL)
    # T (TᵀRT)^{-1/2} decorrelates exactly, and its fidelities are this far from those of T at most.
    one = exactly(1.0)
    shift = (one + defect).sqrt() * (one / (one - defect).sqrt() - 1.0)
    # NaN, which proves nothing, if T is far from exact
    lower = outputs.fidelity.least() - up_to(float(shift.upper))

    weights, S, on = multipliers_and_matrix(arrays, ("weights", "S"), p)
    total = exactly(weights).total()
    ledger.within("weights", (total - 1.0).size(), tol.REPORTED_TOL)
    near = result.upper  # the bound less this keeps its digits
    floors = floors_of(np.full(len(on), near))
    square = complete_square(arithmetic, R, np.eye(p)[:, on], weights[on], S, floors, "`S`")
    upper = square * -0.5 / total + near
    if result.status == "optimal":  # nothing is said of the mean while the threshold is open
        most = mean_room(arrays, outputs, R, arithmetic).upper
        ledger.within("largest mean fidelity", most, tol.MEAN_TOL)
    return outputs.fidelity, lower, upper, tol.BOUND_TOL


def _low_rank(ledger: Ledger, result: Threshold, arithmetic: Arithmetic) -> _Sides:
    """Both ends of the largest common floor at the least residual of the rank."""
    A = ledger.claim_factor()
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
    told = f"it must be above 0 and at most {tol.OPTIMAL_GAP:g}, got {result.tol:g}"
    ledger.claim("tol", 0 < result.tol <= tol.OPTIMAL_GAP, told)
    if result.status == "optimal":
        ledger.within("gap", high - low, result.tol + over)
