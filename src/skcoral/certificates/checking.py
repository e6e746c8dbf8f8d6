"""The two entrances: check in floating point, prove in ball arithmetic. The claims are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.certificates.claims import judge_decorrelation
from skcoral.certificates.enclosures import Array
from skcoral.certificates.ledger import Check
from skcoral.certificates.products import PRECISION, Arithmetic, Balls, Floats
from skcoral.certificates.reading import claimed_matrix
from skcoral.certificates.thresholds import judge_threshold
from skcoral.exceptions import CertificateError
from skcoral.results import Decorrelation, Threshold


def check(result: Threshold | Decorrelation, R: Any) -> Check:
    """Judge every claim of a result in floating point, with a bound of the rounding.

    What passes is true of the matrix given, not only of rounded numbers: :func:`prove` comes to the
    same verdict without relying on how sums are rounded.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : array-like of shape (p, p)
        The correlation matrix that it is claimed of.

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
    matrix = claimed_matrix(result, R)
    try:
        verdict = _judge(result, matrix, Floats(parts=2))
        if verdict.passed:
            return verdict
    except CertificateError:
        pass
    return _judge(result, matrix, Floats(parts=3))


def prove(result: Threshold | Decorrelation, R: Any) -> Check:
    """Judge every claim of a result in ball arithmetic: a theorem about the given matrix.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : array-like of shape (p, p)
        The correlation matrix; each entry stands for exactly the float it is.

    Returns
    -------
    Check
        With ``rigorous=True``.

    Notes
    -----
    Needs python-flint (``pip install "scikit-coral[rigorous]"``).

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
            "A proof in ball arithmetic needs python-flint: "
            'pip install "scikit-coral[rigorous]". `check` does without.'
        ) from None

    matrix = claimed_matrix(result, R)
    precision, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        proof = _judge(result, matrix, Balls(flint))
    finally:
        flint.ctx.prec = precision
    failed = [claim for claim in proof.claims if not claim.holds]
    if failed and all(claim.modest for claim in failed):
        # More digits prove more; a result is not held to more than floating point can see.
        seen = {claim.name for claim in check(result, R).claims if not claim.holds}
        problems = tuple(claim.problem for claim in failed if claim.name in seen)
        proof = replace(proof, passed=not problems, problems=problems)
    return proof


def _judge(result: Threshold | Decorrelation, R: Array, arithmetic: Arithmetic) -> Check:
    # Overflow and undefined operations end in intervals that prove nothing.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if isinstance(result, Threshold):
            return judge_threshold(result, R, arithmetic)
        return judge_decorrelation(result, R, arithmetic)
