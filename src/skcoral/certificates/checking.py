"""The two entrances: check in floating point, prove in ball arithmetic. The claims are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import PRECISION, Arithmetic, Balls, Floats
from skcoral.bounds.dual import check_definite
from skcoral.certificates.claims import check_decorrelation, check_threshold
from skcoral.certificates.ledger import Check
from skcoral.certificates.reading import matrix_or_factor
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation, Threshold
from skcoral.core.tolerances import FACTOR_TOL
from skcoral.exceptions import CertificateError


def check(result: Threshold | Decorrelation, R: Any) -> Check:
    """Judge every claim of a result in floating point, with a bound of the rounding.

    What passes is true of the matrix given, not only of rounded numbers: :func:`prove` comes to the
    same verdict without relying on how sums are rounded.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : array-like of shape (p, p), or FactoredCorrelation
        The correlation matrix that it is claimed of; of a table with many more columns than rows
        what ``CORAL.correlation_`` is, any factor A with ``AᵀA = R``. Then R is not formed, and the
        cost is O(p r²).

    Returns
    -------
    Check

    Raises
    ------
    CertificateError
        Result, certificate and matrix do not belong together (shapes, names, unknown words,
        negative multipliers, S or H not positive definite).

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.certificates import check
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> check(threshold(R), R).passed
    True
    """
    given = matrix_or_factor(result, R)
    # Two parts take half the time of three; only where they prove too little are three needed.
    try:
        verdict = _checked(result, *given, Floats(parts=2))
        if verdict.passed:
            return verdict
    except CertificateError:
        pass
    return _checked(result, *given, Floats())


def prove(result: Threshold | Decorrelation, R: Any) -> Check:
    """Judge every claim of a result in ball arithmetic: a theorem about the given matrix.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : array-like of shape (p, p), or FactoredCorrelation
        The correlation matrix; each entry stands for exactly the float it is.

    Returns
    -------
    Check
        With ``rigorous=True``.

    Notes
    -----
    Needs python-flint (``pip install python-flint``).

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.certificates import prove
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> proof = prove(threshold(R), R)
    >>> proof.rigorous, proof.gap < 1e-9
    (True, True)
    """
    try:
        import flint
    except ImportError:
        raise ImportError(
            "A proof in ball arithmetic needs python-flint: pip install python-flint. "
            "`check` does without."
        ) from None

    given = matrix_or_factor(result, R)
    # The precision belongs to the process, whose other uses of flint get theirs back.
    precision, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        return _checked(result, *given, Balls(flint))
    finally:
        flint.ctx.prec = precision


def _checked(result: Any, R: Array | None, factor: Array | None, arithmetic: Arithmetic) -> Check:
    """Judge every claim."""
    # Overflow and undefined operations end in intervals that prove nothing.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if R is not None and "rank" not in result.certificate.info:
            # Independent composites say all there is to know about a singular R.
            composites = getattr(result, "anchors", None) is not None
            check_definite(arithmetic, R, slack=FACTOR_TOL if composites else 0.0)
        check_it: Any = check_threshold if isinstance(result, Threshold) else check_decorrelation
        verdict: Check = check_it(result, R, factor, arithmetic)
        return verdict
