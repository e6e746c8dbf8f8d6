"""The claims of results for matrices of rank r < p, judged through the factor A of the matrix.

Where R itself is given, T is judged through R as well; for tables with many more columns than rows
R is never formed, and everything is judged through the factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.definiteness import definite
from skcoral.bounds.frame import certified_factor, factor_error, factors_apart
from skcoral.certificates.ledger import Ledger
from skcoral.core.arrays import Array
from skcoral.core.tolerances import FACTOR_TOL
from skcoral.exceptions import CertificateError

_COUNTS = 1e-13  # relative to the largest eigenvalue, of a direction that counts


class FrameLedger(Ledger):
    """Claims about the rank of the matrix, and about a factor of it."""

    def __init__(
        self, result: Any, R: Array | None, factor: Array | None, arithmetic: Arithmetic
    ) -> None:
        super().__init__()
        self.result, self.R, self.factor, self.arithmetic = result, R, factor, arithmetic

    def claim_factor(self) -> Array:
        """The certificate's factor is one of the matrix given."""
        A = certified_factor(self.result.certificate, len(self.result.names))
        if self.R is not None:
            told = f"the factor of rank {len(A)} misses R by {{:.1e}}"
            self.within("factor", factor_error(A, self.R, self.arithmetic), FACTOR_TOL, told)
        if self.factor is not None:
            off = factors_apart(A, self.factor)
            self.within("factor", off, FACTOR_TOL, "another factor is given (off by {:.1e})")
        return A

    def claim_rank(self) -> None:
        """The rank that is claimed is that of R: what is beyond it does not count."""
        if self.R is not None:
            self._claim_directions(self.R)

    def _claim_directions(self, R: Array) -> None:
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
        self.claim(
            "rank",
            size <= FACTOR_TOL * len(R) and proof is not None,
            f"R has not the {rank} directions claimed: {size:.1e} is left beside them",
        )
