"""The claims of a threshold: both bounds, the weights behind them, and the analytic bounds."""

from __future__ import annotations

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.attained import Outputs
from skcoral.certificates.enclosures import Enclosure, exactly
from skcoral.certificates.inequalities import complete_square, floors_of, root_diagonal
from skcoral.certificates.largest_means import rest_room
from skcoral.certificates.ledger import Check, Ledger
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import (
    dual_parts,
    multipliers_and_matrix,
    require_threshold_fields,
)
from skcoral.exceptions import CertificateError
from skcoral.results import BOUND_TOL, EXACT_TOL, MEAN_TOL, OPTIMAL_GAP, REPORTED_TOL, Threshold


def judge_threshold(result: Threshold, R: Array, arithmetic: Arithmetic) -> Check:
    """Judge every claim of a threshold of the positive definite ``R``."""
    p = len(R)
    require_threshold_fields(result, p)
    kind, arrays = dual_parts(result)
    if kind != "threshold":
        raise CertificateError(f"a threshold has no certificate of the kind {kind!r}.")
    ledger = Ledger()
    ledger.expect(
        "least residual", result.least_residual == 0, "at full rank the least residual is 0"
    )
    outputs = Outputs(result.T, np.eye(p), np.full(p, result.lower), R, arithmetic)
    defect, fidelity = outputs.defect.square().total().sqrt(), outputs.fidelity
    ledger.expect(
        "uncorrelated",
        defect.upper <= EXACT_TOL,
        f"T leaves residual correlation: ‖TᵀRT - I‖ = {float(defect.upper):.1e}",
    )
    off = (fidelity - result.fidelity).size()
    ledger.expect(
        "fidelity",
        np.all(off <= REPORTED_TOL),
        f"the reported fidelities are not those of T (off by {float(off.max()):.1e})",
    )
    # T (TᵀRT)^{-1/2} decorrelates exactly, and its fidelities are this far from those of T at most.
    one = exactly(1.0)
    shift = (one + defect).sqrt() * (one / (one - defect).sqrt() - 1.0)
    least = Enclosure(np.min(fidelity.lower), np.min(fidelity.upper))
    lower = least - Enclosure(0.0, shift.upper)  # NaN, which proves nothing, if T is far from exact

    weights, S, on = multipliers_and_matrix(arrays, ("weights", "S"), p)
    total = exactly(weights).total()
    square = complete_square(arithmetic, R, np.eye(p)[:, on], weights[on], S, "S")
    near = result.upper  # the bound less this keeps its digits
    room = square.value(floors_of(np.full(len(on), near))) * -0.5 / total
    upper = room + near
    _expect_bounds(ledger, result, lower, upper)
    ledger.expect(
        "weights",
        np.array_equal(result.weights, weights)
        and abs(float(total.lower) - 1) <= REPORTED_TOL
        and abs(float(total.upper) - 1) <= REPORTED_TOL,
        "the weights are not those of the certificate, or do not sum to one",
    )
    try:
        most = float(rest_room(arrays, outputs, R, arithmetic).upper)
    except CertificateError:
        if result.status == "optimal":
            raise
        most = 0.0  # nothing is said of the mean while the threshold itself is open
    ledger.expect(
        "largest mean fidelity",
        most <= MEAN_TOL or result.status != "optimal",
        f"beside the outputs that bind, the mean fidelity could be {most:.1e} larger",
    )
    root = root_diagonal(arithmetic, R)
    mean = root.total() / float(p)
    smallest = Enclosure(np.min(root.lower), np.min(root.upper))
    for name, value in (("zca", smallest), ("trace", mean)):
        ledger.expect(
            f"{name} bound",
            (value - result.bounds[name]).size() <= REPORTED_TOL,
            f"the {name} bound of R is {float(value.upper):.9g}, not {result.bounds[name]:.9g}",
        )
    return ledger.verdict(float(lower.lower), float(upper.upper), rigorous=arithmetic.rigorous)


def _expect_bounds(ledger: Ledger, result: Threshold, lower: Enclosure, upper: Enclosure) -> None:
    low, high = float(lower.lower), float(upper.upper)
    ledger.expect("lower", result.lower <= low + BOUND_TOL, f"T attains only {low:.12g}")
    ledger.expect("upper", result.upper >= high - BOUND_TOL, f"the weights prove only {high:.12g}")
    # An understated bound would be true, but `value` is said to be what T attains.
    ledger.expect(
        "lower",
        result.lower >= float(lower.upper) - REPORTED_TOL,
        f"T attains {float(lower.upper):.9g}, and {result.lower:.9g} is reported",
    )
    ledger.expect(
        "upper",
        result.upper <= float(upper.lower) + REPORTED_TOL,
        f"the weights prove {high:.9g}, and {result.upper:.9g} is reported",
    )
    ledger.expect("bounds in order", lower.upper <= upper.lower + REPORTED_TOL, "the bounds cross")
    ledger.expect(
        "tol",
        0 < result.tol <= OPTIMAL_GAP,
        f"a threshold is certified up to a gap of {OPTIMAL_GAP:g} at most, not {result.tol:g}",
    )
    if result.status == "optimal":
        ledger.expect("gap", high - low <= result.tol + BOUND_TOL, f"the gap is {high - low:.1e}")
