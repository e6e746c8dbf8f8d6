"""The claims of results for matrices of rank r < p, judged through the factor A of the matrix.

Where R itself is given, T is judged through R as well; for tables with many more columns than rows
R is never formed, and everything is judged through the factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.definiteness import definite
from skcoral.bounds.dual import number
from skcoral.bounds.enclosures import Enclosure, exactly
from skcoral.bounds.frame import (
    certified_factor,
    criterion_bound,
    factor_error,
    factors_apart,
    lifted_bound,
    squares_bound,
)
from skcoral.bounds.rank import rank_bound, rank_factor_bound
from skcoral.certificates.ledger import Ledger
from skcoral.core.arrays import Array
from skcoral.core.results import (
    CROWDED,
    FACTOR_TOL,
    REPORTED_TOL,
    Decorrelation,
)
from skcoral.exceptions import CertificateError

_COUNTS = 1e-13  # relative to the largest eigenvalue, of a direction that counts


#: Bounds of the sum of squares that say nothing about other criteria, by the certificate's kind.
_SQUARES_ONLY = {"rank": rank_bound, "rank_factor": rank_factor_bound}


class FrameLedger(Ledger):
    """Claims about the rank of the matrix, and about a factor of it."""

    def __init__(
        self, result: Any, R: Array | None, factor: Array | None, arithmetic: Arithmetic
    ) -> None:
        super().__init__()
        self.result, self.R, self.factor, self.arithmetic = result, R, factor, arithmetic

    def expect_factor(self) -> Array:
        """The certificate's factor is one of the matrix given."""
        A = certified_factor(self.result.certificate, len(self.result.names))
        if self.R is not None:
            told = f"the factor of rank {len(A)} misses R by {{:.1e}}"
            self.within("factor", factor_error(A, self.R, self.arithmetic), FACTOR_TOL, told)
        if self.factor is not None:
            off = factors_apart(A, self.factor)
            self.within("factor", off, FACTOR_TOL, "another factor is given (off by {:.1e})")
        return A

    def expect_rank(self) -> None:
        """The rank that is claimed is that of R: what is beyond it does not count."""
        R, rank, stated = self.R, self.result.rank, self.result.certificate.info.get("rank")
        told = f"the certificate is of rank {stated}, the result of rank {rank}"
        self.expect("rank", rank == stated, told)
        if rank is not None and rank == stated:
            if R is not None:
                self._expect_directions(R)
            self._expect_figures(getattr(self.result, "details", {}))

    def _expect_directions(self, R: Array) -> None:
        """R has as many directions as the rank that is claimed."""
        rank = self.result.rank
        if not 0 < rank < len(R):
            raise CertificateError(f"a rank of {rank} is not between 0 and {len(R)}.")
        values, vectors = np.linalg.eigh(R)
        A = (vectors * np.sqrt(np.maximum(values, 0.0))).T[-rank:]
        enclosed = self.arithmetic.enclosed
        beyond = enclosed(A.T, A, minus=R).size()
        size = float(np.sqrt(np.sum(beyond * beyond)))  # no eigenvalue of what is left exceeds it
        inside = enclosed(A, A.T, minus=_COUNTS * values[-1] * np.eye(len(A)))
        middle = 0.5 * (inside.middle + inside.middle.T)
        proof = definite(self.arithmetic, middle, (inside - middle).size())
        self.expect(
            "rank",
            size <= FACTOR_TOL * len(R) and proof is not None,
            f"R has not the {rank} directions claimed: {size:.1e} is left beside them",
        )

    def _expect_figures(self, details: Mapping[str, Any]) -> None:
        """What a result says about a matrix of this rank, and about its transformation."""
        r, p = self.result.rank, len(self.result.names)
        known = {"least_residual": 0.5 * (p * p / r - p)}
        if "amplification" in details:
            T = self.result.T
            known["amplification"] = T.largest() if hasattr(T, "left") else float(np.abs(T).max())
        for name, value in known.items():
            reported, what = number(details.get(name, value), f"`{name}`"), name.replace("_", " ")
            told = f"the {what} is {value:.9g}, not {reported:.9g}"
            self.expect(what, abs(reported - value) <= REPORTED_TOL * max(1.0, value), told)


@dataclass(frozen=True)
class FrameProof:
    """Lower bound of the criterion that a certificate proves, and its slopes in the floors.

    ``tangent`` holds the bound that grows linearly with a common floor, of D2 (``of_squares``) or
    of the criterion itself, and the sum of its slopes.
    """

    bound: Enclosure
    slopes: Array
    tangent: tuple[Enclosure, Enclosure] | None = None
    of_squares: bool = True

    def highest_floor(self, result: Decorrelation) -> float:
        """A common floor that no transformation within the budget exceeds."""
        if "budget" not in result.details or self.tangent is None:
            return np.inf
        p, limit = len(self.slopes), exactly(number(result.details["budget"], "the budget"))
        if result.criterion == "worst" and self.of_squares:
            limit = limit.square() * max(p * (p - 1) / 2, 1.0)
        bound, slope = self.tangent
        top = float(((limit - bound) / slope + float(result.rho_min.max())).upper)
        return np.inf if np.isnan(top) else top


def frame_proof(result: Decorrelation, A: Array, arithmetic: Arithmetic) -> FrameProof:
    """What the certificate of a frame proves."""
    certificate, p = result.certificate, A.shape[1]
    if certificate.kind == "tradeoff":
        given = result.criterion, result.pair_weights, result.rho_min
        bound = lifted_bound(certificate.arrays, *given, A, arithmetic)
        lam = certificate.arrays["multipliers"]
        return FrameProof(bound, 2.0 * lam, _tangent(bound, lam), of_squares=False)
    if result.pair_weights is not None:
        if certificate.kind != "welch":
            raise CertificateError("a frame is not combined with pair weights.")
        return FrameProof(exactly(0.0), np.zeros(p))
    if certificate.kind in _SQUARES_ONLY:
        if result.criterion != "squared":
            raise CertificateError(f"the kind {certificate.kind!r} is for the squared criterion.")
        evaluate = _SQUARES_ONLY[certificate.kind]
        bound = evaluate(certificate.arrays, result.rho_min, A, arithmetic)
        if not np.isfinite([bound.lower, bound.upper]).all():
            raise CertificateError("the dual point proves nothing.")
        lam = certificate.arrays["multipliers"]
        return FrameProof(bound, 2.0 * lam, _tangent(bound, lam))
    squares = squares_bound(certificate, result.rho_min, A, arithmetic)
    bound = criterion_bound(result.criterion, squares, p)
    if certificate.kind == "welch" and result.criterion == "absolute":
        bound = bound.at_least(float(p - len(A)))  # by the projection on the null space
    slopes = 2.0 * certificate.arrays.get("multipliers", np.zeros(p))
    tangent = _tangent(squares, 0.5 * slopes)
    if slopes.any() and result.criterion == "worst":
        slopes = slopes * (0.5 * float(bound.lower) / float(squares.lower))
    return FrameProof(bound, slopes, tangent)


def _tangent(bound: Enclosure, lam: Array) -> tuple[Enclosure, Enclosure]:
    return bound, (exactly(lam) * 2.0).total()


def frame_prices(result: Decorrelation, slopes: Array, largest: Array) -> Array:
    """Prices are the slopes of the bound in the floors; infinite at a floor of one that costs.

    ``largest`` holds the largest residual correlation of each output.
    """
    costs = (largest > CROWDED) & slopes.any()
    return np.where(result.rho_min >= 1, np.where(costs, np.inf, 0.0), slopes)
