"""The verdict on a result: its claims one by one, and the two numbers that they stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.dual import definite
from skcoral.bounds.frame import certified_factor, factors_apart
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
        What is true instead; empty if it holds.

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


@dataclass(frozen=True)
class Check:
    """The verdict on a result.

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
    >>> verdict = check(threshold(R), R)
    >>> verdict.passed, verdict.problems
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
    """Collects claims about a result, each with the words for it if it does not hold."""

    R: Any  # None where everything is judged through the factor

    def __init__(self, result: Any, R: Array | None, factor: Array | None, arithmetic: Arithmetic):
        self.result, self.R, self.factor, self.arithmetic = result, R, factor, arithmetic
        self.claims: list[Claim] = []

    def claim(self, name: str, holds: object, instead: str) -> None:
        """Note a claim; what is not certainly true does not hold."""
        certain = bool(holds)
        self.claims.append(Claim(name, certain, "" if certain else f"{name}: {instead}"))

    def within(self, name: str, off: Any, tolerance: float, where: str = "") -> None:
        """Note that no entry of ``off`` exceeds the tolerance."""
        instead = f"off by {float(np.max(off)):.1e}, and {tolerance:.1e} is allowed{where}"
        self.claim(name, np.all(off <= tolerance), instead)

    def claim_status(self, best: str, left: float) -> None:
        """The status follows from what is left open, relative to what ``best`` allows.

        Between a half and the whole of that, ``best`` and the words for an open gap are all true.
        """
        status = self.result.status
        instead = f"{status!r}, but what is open is {left:.2g} times what {best!r} allows"
        certified = status in ("exact", "optimal")
        holds = status == best and left <= 1.0 if certified else left > 0.5
        self.claim("status", holds, instead)

    def claim_prices(
        self,
        prices: Array,
        weights: Array,
        near: tuple[float, float],
        rounding: Array | float = 0.0,
    ) -> None:
        """Prices and weights are these, relative to one or to them; infinite ones only exactly."""
        for name, wanted, tolerance in zip(
            ("prices", "weights"), (prices, weights), near, strict=True
        ):
            reported = getattr(self.result, name)
            with np.errstate(invalid="ignore"):
                off = np.abs(reported - wanted)
                agree = off <= tolerance * np.maximum(1.0, np.abs(wanted)) + rounding
            wrong = np.flatnonzero(~np.where(np.isfinite(wanted), agree, reported == wanted))
            names = ", ".join(self.result.names[j] for j in wrong[:4])
            self.claim(name, not len(wrong), f"{names} do not follow from the certificate")

    def verdict(self, lower: float, upper: float) -> Check:
        """The claims with the two numbers that they stand on."""
        problems = tuple(claim.problem for claim in self.claims if not claim.holds)
        rigorous = self.arithmetic.rigorous
        return Check(not problems, lower, upper, problems, rigorous, tuple(self.claims))

    def claim_factor(self) -> Array:
        """The certificate's factor is one of the matrix given.

        Where R itself is given, T is judged through R as well; for tables with many more columns
        than rows R is never formed, and everything is judged through the factor.
        """
        A = certified_factor(self.result.certificate, len(self.result.names))
        if self.R is not None:
            off = self.arithmetic.enclosed(A.T, A, minus=self.R).size()
            self.within("factor", off, FACTOR_TOL)
        if self.factor is not None:
            self.within("factor", factors_apart(A, self.factor), FACTOR_TOL)
        return A

    def claim_rank(self) -> None:
        """The rank r < p that is claimed is that of R: what is beyond it does not count."""
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
        proof = definite(self.arithmetic, *inside.spread(symmetric=True))
        fits = size <= FACTOR_TOL * len(R) and proof is not None
        self.claim("rank", fits, f"that of R is not {rank}, {size:.1e} is left beside so many")
