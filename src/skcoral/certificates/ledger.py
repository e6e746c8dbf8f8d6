"""The verdict on a result: its claims one by one, and the two numbers that they stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.dual import definite
from skcoral.bounds.frame import certified_factor, factor_error, factors_apart
from skcoral.core.arrays import Array
from skcoral.core.tolerances import FACTOR_TOL
from skcoral.exceptions import CertificateError

_COUNTS = 1e-13  # relative to the largest eigenvalue, of a direction that counts


@dataclass(frozen=True)
class Claim:
    """One statement of a result and whether it holds.

    Attributes
    ----------
    name : str
        What is claimed: "unit variances", "floors", "lower bound" and so on.
    holds : bool
        Whether it is certainly true, rounding included.
    problem : str
        What was found instead; empty if it holds.
    modest : bool
        Whether the claim is refused for saying less than is proved, not more.

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.certificates import check
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> all(claim.holds for claim in check(threshold(R), R).claims)
    True
    """

    name: str
    holds: bool
    problem: str = ""
    modest: bool = False


@dataclass(frozen=True)
class Check:
    """What a re-check found.

    Attributes
    ----------
    passed : bool
        Whether every claim of the result holds.
    lower, upper : float
        The two numbers, computed again: for a threshold ``lower ≤ ρ★ ≤ upper``; for a
        decorrelation ``lower ≤ least possible residual ≤ upper``, ``upper`` being the residual
        that ``T`` really leaves.
    problems : tuple of str
        What does not hold, in words; empty if ``passed``.
    rigorous : bool
        Whether rounding was enclosed by ball arithmetic, or by error bounds of floating point.
    claims : tuple of Claim
        Everything that was judged, in order.

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.certificates import check
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> found = check(threshold(R), R)
    >>> found.passed, found.problems
    (True, ())
    """

    passed: bool
    lower: float
    upper: float
    problems: tuple[str, ...]
    rigorous: bool = False
    claims: tuple[Claim, ...] = field(default=(), repr=False)

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        kind = "proved" if self.rigorous else "re-checked"
        verdict = "passed" if self.passed else "FAILED: " + "; ".join(self.problems)
        return f"Check({self.lower:.9g} to {self.upper:.9g}, gap {self.gap:.1e}, {kind}, {verdict})"


class Ledger:
    """Collects claims."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []

    def claim(self, name: str, holds: object, problem: str, *, modest: bool = False) -> None:
        """Note a claim; what is not certainly true does not hold."""
        certain = bool(holds)
        self.claims.append(Claim(name, certain, "" if certain else problem, modest))

    def within(self, name: str, off: Any, tolerance: float, problem: str, where: str = "") -> None:
        """Note that no entry of ``off`` exceeds the tolerance; ``problem`` tells the largest."""
        self.claim(name, np.all(off <= tolerance), problem.format(float(np.max(off))) + where)

    def verdict(self, lower: float, upper: float, *, rigorous: bool) -> Check:
        """Close the list."""
        problems = tuple(claim.problem for claim in self.claims if not claim.holds)
        return Check(not problems, lower, upper, problems, rigorous, tuple(self.claims))


class FrameLedger(Ledger):
    """With claims about the rank r < p of the matrix, and about a factor of it.

    Where R itself is given, T is judged through R as well; for tables with many more columns than
    rows R is never formed, and everything is judged through the factor.
    """

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
        R, rank = self.R, self.result.rank
        if R is None:
            return
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
