"""The claims of results for matrices of rank r < p, judged through the factor A of the matrix.

Where R itself is given, T is judged through R as well; for tables with many more columns than rows
R is never formed, and everything is judged through the factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.branches import branched_bound
from skcoral.certificates.enclosures import Enclosure, exactly
from skcoral.certificates.frame_bounds import (
    certified_factor,
    criterion_bound,
    factor_error,
    factors_apart,
    output_blocks,
    output_squares,
    outputs_of,
    squares_bound,
    threshold_bound,
)
from skcoral.certificates.ledger import Check, Ledger
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import (
    FRAME_KINDS,
    agree,
    dual_parts,
    number,
    numbers,
    require_numbers_and_words,
    require_pair_weights,
)
from skcoral.exceptions import CertificateError
from skcoral.results import (
    CROWDED,
    FACTOR_TOL,
    FLOOR_TOL,
    OPTIMAL_GAP,
    PRICE_TOL,
    REPORTED_TOL,
    UNIT_VARIANCE_TOL,
    Certificate,
    Decorrelation,
    Threshold,
)


def expect_factor(
    ledger: Ledger,
    certificate: Certificate,
    p: int,
    R: Array | None,
    factor: Array | None,
    arithmetic: Arithmetic,
) -> Array:
    """The certificate's factor is one of the matrix given."""
    A = certified_factor(certificate, p)
    if R is not None:
        off = factor_error(A, R, arithmetic)
        ledger.expect(
            "factor",
            off <= FACTOR_TOL,
            f"the factor of rank {len(A)} misses R by {off:.1e}; an answer for an approximation of "
            "R is checked with its factor (factor=)",
        )
    if factor is not None:
        off = factors_apart(A, factor)
        ledger.expect("factor", off <= FACTOR_TOL, f"another factor is given (off by {off:.1e})")
    return A


def frame_bound(result: Decorrelation, A: Array, arithmetic: Arithmetic) -> tuple[Enclosure, Array]:
    """Lower bound of the criterion that a certificate of a frame proves, and its slopes."""
    certificate, p = result.certificate, A.shape[1]
    if result.anchors is not None:
        raise CertificateError("a frame is not combined with anchors.")
    if result.pair_weights is not None:
        if certificate.kind != "welch":
            raise CertificateError("a frame is not combined with pair weights.")
        return exactly(0.0), np.zeros(p)
    if certificate.kind == "branched":
        if result.criterion != "squared":
            raise CertificateError("parts of the caps are for the squared criterion.")
        return branched_bound(certificate, result.rho_min, A, arithmetic, result.weights)
    squares = squares_bound(certificate, result.rho_min, A, arithmetic)
    bound = criterion_bound(result.criterion, squares, p)
    slopes = 2.0 * certificate.arrays.get("multipliers", np.zeros(p))
    if slopes.any() and result.criterion == "worst":
        slopes = slopes * (0.5 * float(bound.lower) / float(squares.lower))
    return bound, slopes


def expect_frame_prices(
    ledger: Ledger, result: Decorrelation, slopes: Array, largest: Array
) -> None:
    """Prices are the slopes of the bound in the floors; infinite at a floor of one that costs.

    ``largest`` holds the largest residual correlation of each output.
    """
    costs = (largest > CROWDED) & slopes.any()
    prices = np.where(result.rho_min >= 1, np.where(costs, np.inf, 0.0), slopes)
    for name, reported, wanted in (
        ("prices", result.prices, prices),
        ("weights", result.weights, 0.5 * slopes),
    ):
        ledger.expect(
            name,
            np.all(agree(reported, wanted, PRICE_TOL)),
            f"the {name} do not follow from the multipliers",
        )


def judge_wide(result: Decorrelation, factor: Array, arithmetic: Arithmetic, expect: Any) -> Check:
    """Judge a decorrelation through the factor alone; ``expect`` has the claims about bounds."""
    p = len(result.names)
    require_numbers_and_words(result, p)
    if result.pair_weights is not None:
        require_pair_weights(result.pair_weights, p, result.names)
    if tuple(result.T.shape) != (p, p) or result.anchors is not None:
        raise CertificateError(f"a transformation of {p} by {p} is wanted, got {result.T.shape}.")
    kind, _ = dual_parts(result)
    if kind not in FRAME_KINDS:
        raise CertificateError(f"a certificate of the kind {kind!r} needs R itself.")
    ledger = Ledger()
    A = expect_factor(ledger, result.certificate, p, None, factor, arithmetic)
    _expect_rank(ledger, result, A)
    U, radius = outputs_of(result.T, A, arithmetic)
    squares, lengths = output_squares(U, radius, arithmetic)
    excess = float(lengths.size().max())
    ledger.expect(
        "unit variances", excess <= UNIT_VARIANCE_TOL, f"a variance differs from 1 by {excess:.1e}"
    )
    f = np.einsum("ij,ij->j", A, U)
    doubt = np.sqrt(np.sum(radius * radius, axis=0)) * 2 + 4e-16 * len(A)
    short = result.rho_min - f + doubt
    ledger.expect("floors", np.all(short <= FLOOR_TOL), f"a floor is missed by {short.max():.1e}")
    off = np.abs(result.fidelity - f) + doubt
    ledger.expect("fidelity", np.all(off <= REPORTED_TOL), "the fidelities are not those of T")
    reported = getattr(result.correlation, "factor", None)
    if reported is not None:
        apart = float(np.abs(reported - U).max()) if reported.shape == U.shape else np.inf
    else:
        apart = 0.0
        for columns, block in output_blocks(U, radius, arithmetic):
            apart = max(apart, float((block - result.correlation[:, columns]).size().max()))
    ledger.expect("correlation", apart <= REPORTED_TOL, "the correlations are not those of T")
    value = squares
    if result.criterion != "squared" or result.pair_weights is not None:
        value = _by_pairs(result, U, radius, arithmetic)
    ledger.expect(
        "objective",
        (value - result.objective).size() <= REPORTED_TOL * max(1.0, abs(result.objective)),
        f"the residual of T is {float(value.upper):.9g}, not {result.objective:.9g}",
    )
    bound, slopes = frame_bound(result, A, arithmetic)
    expect.expect_bound(ledger, result, bound, value)
    expect.expect_gap_word(ledger, result, bound, value)
    largest = np.zeros(p)
    if np.any(result.rho_min >= 1):
        for columns, block in output_blocks(U, radius, arithmetic):
            size = block.size()
            size[np.arange(columns.start, columns.stop), np.arange(size.shape[1])] = 0.0
            largest[columns] = size.max(axis=0)
    expect_frame_prices(ledger, result, slopes, largest)
    lower = max(float(bound.lower), 0.0)
    return ledger.verdict(lower, float(value.upper), rigorous=arithmetic.rigorous)


def _by_pairs(result: Decorrelation, U: Array, radius: Array, arithmetic: Arithmetic) -> Enclosure:
    total, p = exactly(0.0), U.shape[1]
    for columns, block in output_blocks(U, radius, arithmetic):
        here = np.arange(columns.start, columns.stop)
        above = np.arange(p)[:, None] < here[None, :]
        weights = np.ones((p, len(here)))
        if result.pair_weights is not None:
            weights = result.pair_weights[:, columns]
        size = block.absolute() * np.where(above, weights, 0.0)
        if result.criterion == "squared":
            size = block.square() * np.where(above, weights, 0.0)
        if result.criterion == "worst":
            most = size.greatest()
            total = Enclosure(max(total.lower, most.lower), max(total.upper, most.upper))
        else:
            total = total + size.total()
    return total


def _expect_rank(ledger: Ledger, result: Decorrelation | Threshold, A: Array) -> None:
    ledger.expect(
        "rank", result.rank == len(A), f"the certificate is of rank {len(A)}, not {result.rank}"
    )


def judge_frame_threshold(
    result: Threshold, R: Array | None, factor: Array | None, arithmetic: Arithmetic
) -> Check:
    """Judge both ends of the largest common floor at the least residual of the rank."""
    p = len(result.names)
    kind, _ = dual_parts(result)
    if kind != "frame_threshold":
        raise CertificateError(f"a rank of {result.rank}, and a certificate of kind {kind!r}.")
    number(result.least_residual, "`least_residual`")
    ledger = Ledger()
    A = expect_factor(ledger, result.certificate, p, R, factor, arithmetic)
    _expect_rank(ledger, result, A)
    U, radius = outputs_of(result.T, A, arithmetic)
    squares, lengths = output_squares(U, radius, arithmetic)
    least = (exactly(float(p * p)) / float(len(A)) - float(p)) * 0.5
    scale = max(1.0, float(least.upper))
    ledger.expect(
        "unit variances", lengths.size().max() <= UNIT_VARIANCE_TOL, "a variance is not one"
    )
    ledger.expect(
        "least residual",
        (squares - least).size() <= OPTIMAL_GAP * scale
        and (least - result.least_residual).size() <= REPORTED_TOL * scale,
        "T does not have the least residual of the rank",
    )
    f = np.einsum("ij,ij->j", A, U)
    doubt = float(np.max(np.sqrt(np.sum(radius * radius, axis=0)) * 2)) + 4e-16 * len(A)
    numbers(result.fidelity, (p,), "`fidelity`")
    ledger.expect(
        "fidelity",
        float(np.abs(result.fidelity - f).max()) + doubt <= REPORTED_TOL,
        "the fidelities are not those of T",
    )
    low = float(f.min()) - doubt
    number(result.lower, "`lower`"), number(result.upper, "`upper`"), number(result.tol, "`tol`")
    ledger.expect("lower", abs(result.lower - low) <= REPORTED_TOL, f"T attains {low:.12g}")
    upper = threshold_bound(result.certificate, A, arithmetic)
    high = max(min(float(upper.upper), 1.0), low)
    ledger.expect("bounds in order", low <= float(upper.upper) + REPORTED_TOL, "the bounds cross")
    ledger.expect("upper", abs(result.upper - high) <= REPORTED_TOL, f"the proof gives {high:.9g}")
    ledger.expect("tol", 0 < result.tol <= OPTIMAL_GAP, f"a gap of {result.tol:g} is not closed")
    ledger.expect(
        "weights",
        np.array_equal(result.weights, result.certificate.arrays["weights"]),
        "the weights are not those of the certificate",
    )
    size = np.linalg.svd(A, compute_uv=False)
    trace = min(float(size.sum() / np.sqrt(p * len(A))), 1.0)
    left, _, right = np.linalg.svd(A, full_matrices=False)
    polar = left @ right
    zca = float(np.min(np.einsum("ij,ij->j", A, polar) / np.linalg.norm(polar, axis=0)))
    for name, value in (("trace", trace), ("zca", zca)):
        given = number(result.bounds.get(name), f"`bounds[{name!r}]`")
        ledger.expect(f"{name} bound", abs(given - value) <= REPORTED_TOL, f"{name} is {value:.9g}")
    return ledger.verdict(low, high, rigorous=arithmetic.rigorous)
