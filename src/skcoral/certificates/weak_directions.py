"""Results for a coarse rank tolerance: R as given, and what is left without its weak directions.

With ``R = BᵀB + WᵀW`` and ``B Wᵀ = 0``, W holds the directions that do not count (``dropped`` of
the certificate). The columns of B have lengths ``l_j ≤ 1``, and A has those columns as unit
vectors: ``AᵀA`` is the correlation matrix of what is left of the variables. Fidelities,
correlations, objective and bound of the result are about that matrix. T acts on the variables as
given and leaves the weak directions as they are; on what is left, standardised, it acts as
``diag(l) T diag(l)⁻¹``. So the outputs have unit variance by R as well, and an output of fidelity f
has there ``l_j² f + 1 - l_j²``, which is no less: the floors hold for R as given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral._lowrank import FactoredCorrelation, LowRankTransform
from skcoral.certificates.attained import FactorOutputs, Outputs
from skcoral.certificates.enclosures import exactly
from skcoral.certificates.frame_bounds import certified_factor, factor_error
from skcoral.certificates.ledger import Ledger
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import (
    certificate_kind,
    number,
    numbers,
    require_transformation,
)
from skcoral.exceptions import CertificateError
from skcoral.results import (
    BOUND_TOL,
    FACTOR_TOL,
    FLOOR_TOL,
    REPORTED_TOL,
    UNIT_VARIANCE_TOL,
    Certificate,
    Decorrelation,
    Threshold,
)

_COUNTS = 1e-13  # relative to the largest eigenvalue, between directions that count and others
_OF_R = ("amplification", "dropped_variance", "rank_tol")  # details about R as given


def has_weak_directions(certificate: Any) -> bool:
    """Whether directions with variance were left out of the matrix that the result is about."""
    return isinstance(certificate, Certificate) and "dropped" in certificate.arrays


def parts_of(certificate: Certificate, p: int) -> tuple[Array, Array, Array]:
    """The factor A of what is left, the lengths of its columns in R, and W."""
    certificate_kind(certificate)
    A = certified_factor(certificate, p)
    W = np.asarray(certificate.arrays["dropped"])
    W = numbers(W, (len(W) if W.ndim else 0, p), "`dropped`")
    left = 1.0 - np.einsum("ij,ij->j", W, W)
    if not np.all(left > 0.0):
        raise CertificateError("without its weak directions, nothing is left of a variable.")
    return A, np.sqrt(left), W


def given_factor(certificate: Certificate, p: int) -> Array:
    """A factor of R as given, from the parts in a certificate."""
    if not has_weak_directions(certificate):
        return certified_factor(certificate, p)
    A, lengths, W = parts_of(certificate, p)
    return np.vstack([A * lengths, W])


def what_is_left(T: Any, certificate: Certificate) -> tuple[Any, Any]:
    """The transformation of what is left, standardised, and the correlation matrix of that."""
    p = T.shape[0]
    require_transformation(T, p, p)
    A, lengths, _ = parts_of(certificate, p)
    left = FactoredCorrelation(A)
    T = _between(lengths, T, 1.0 / lengths)
    return T, left if isinstance(T, LowRankTransform) else left.toarray()


def reduced(result: Any) -> tuple[Any, Any]:
    """The result as one about the matrix of what is left, and that matrix."""
    certificate = result.certificate
    T, matrix = what_is_left(result.T, certificate)
    dense = certificate.kind == "tradeoff" and not isinstance(T, LowRankTransform)
    besides = {"dropped", "factor"} if dense else {"dropped"}
    arrays = {name: a for name, a in certificate.arrays.items() if name not in besides}
    changes: dict[str, Any] = {"T": T, "certificate": replace(certificate, arrays=arrays)}
    if isinstance(result, Decorrelation):
        kept = {name: v for name, v in result.details.items() if name not in _OF_R}
        changes |= {"details": kept, "R": None}
    return replace(result, **changes), matrix


def reduced_claims(result: Any) -> tuple[Any, Array | None, Array | None]:
    """The result about what is left, with the matrix of that as R or as a factor."""
    result, left = reduced(result)
    factored = isinstance(left, FactoredCorrelation)
    return (result, None, left.factor) if factored else (result, left, None)


def restored(result: Decorrelation, given: Decorrelation) -> Decorrelation:
    """A result about what is left, again with T on the variables as given."""
    A, lengths, W = parts_of(given.certificate, len(given.names))
    arrays = {**result.certificate.arrays, "factor": A, "dropped": W}
    return replace(
        result,
        T=_between(1.0 / lengths, result.T, lengths),
        certificate=replace(result.certificate, arrays=arrays),
        details={**given.details, **result.details},
    )


def expect_given(
    ledger: Ledger,
    result: Threshold | Decorrelation,
    R: Array | None,
    factor: Array | None,
    arithmetic: Arithmetic,
) -> None:
    """The claims about R as given: its weak directions, unit variances, floors."""
    p, T = len(result.names), result.T
    A, lengths, W = parts_of(result.certificate, p)
    B = A * lengths
    told = "with its weak directions, the factor is not one of the matrix given (off by {:.1e})"
    outputs: Outputs | FactorOutputs
    floors = np.full(p, result.lower) if isinstance(result, Threshold) else result.rho_min
    if R is not None:
        off = factor_error(np.vstack([B, W]), R, arithmetic)
        outputs = Outputs(T, np.eye(p), floors, R, arithmetic)
        variances = outputs.defect.diagonal()
        own = getattr(result, "R", None)
        if own is not None:
            apart = np.abs(own - R).max()
            ledger.within("R", apart, BOUND_TOL, "the result is about another R (off by {:.1e})")
    else:
        assert factor is not None
        off = _apart(np.vstack([B, W]), factor)
        outputs = FactorOutputs(T, np.vstack([B, W]), arithmetic)
        variances = outputs.variances
    ledger.within("factor", off, FACTOR_TOL, told)
    across = arithmetic.enclosed(B, W.T).size()
    told = "the weak directions are not uncorrelated with the others (off by {:.1e})"
    ledger.within("weak directions", across, FACTOR_TOL, told)
    if isinstance(T, LowRankTransform):
        changed = arithmetic.enclosed(W, T.left, T.right).size()
    else:
        changed = arithmetic.enclosed(W, T, minus=W).size()
    told = "T changes the weak directions (by {:.1e})"
    ledger.within("weak directions", changed, REPORTED_TOL, told)
    told = "by R as given, a variance differs from 1 by {:.1e}"
    ledger.within("unit variances", variances.size(), UNIT_VARIANCE_TOL, told)
    short = (exactly(floors) - outputs.fidelity).upper
    ledger.within("floors", short, FLOOR_TOL, "by R as given, a floor is missed by {:.1e}")
    _expect_figures(ledger, getattr(result, "details", {}), T, B, W)


def _expect_figures(ledger: Ledger, details: Any, T: Any, B: Array, W: Array) -> None:
    """The weak directions are the weakest, and what is said about them is true."""
    counted, weak = np.linalg.eigvalsh(B @ B.T), np.linalg.eigvalsh(W @ W.T)
    near = _COUNTS * counted[-1]
    told = "a direction that does not count has more variance than one that does"
    ledger.expect("weak directions", weak[-1] <= counted[0] + near, told)
    share = float(np.max(np.einsum("ij,ij->j", W, W)))
    largest = T.largest() if isinstance(T, LowRankTransform) else float(np.abs(T).max())
    for name, value in (("dropped_variance", share), ("amplification", largest)):
        reported, what = number(details.get(name, value), f"`{name}`"), name.replace("_", " ")
        told = f"the {what} is {value:.9g}, not {reported:.9g}"
        ledger.expect(what, abs(reported - value) <= REPORTED_TOL * max(1.0, value), told)
    if "rank_tol" in details:
        limit = number(details["rank_tol"], "`rank_tol`") * counted[-1]
        told = f"with a tolerance of {details['rank_tol']:g} the rank is not {len(B)}"
        fits = weak[-1] - near <= limit <= counted[0] + near
        ledger.expect("rank tolerance", fits, told)


def _apart(F: Array, other: Array) -> float:
    """How far ``FᵀF`` is from that of another factor; weak directions are not divided by."""
    if other.ndim != 2 or other.shape[1] != F.shape[1]:
        raise CertificateError(
            f"a factor with {F.shape[1]} columns is wanted, got shape {other.shape}."
        )
    Q = np.linalg.qr(np.vstack([F, other]).T)[0]
    F, other = F @ Q, other @ Q
    return float(np.linalg.norm(F.T @ F - other.T @ other, 2))


def _between(rows: Array, T: Any, columns: Array) -> Any:
    """``diag(rows) T diag(columns)``, of factors where rows times columns is one."""
    if isinstance(T, LowRankTransform):
        return LowRankTransform(rows[:, None] * T.left, T.right * columns)
    return rows[:, None] * T * columns
