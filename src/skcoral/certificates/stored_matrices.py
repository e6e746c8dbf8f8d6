"""Transformations and matrices of certificate files: as arrays, or as factors of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral._linalg import gram_defect
from skcoral._lowrank import FactoredCorrelation, LowRankTransform
from skcoral._validation import judge_correlation
from skcoral.certificates.frame_bounds import certified_factor, factors_apart
from skcoral.certificates.json_values import array_of, require_keys
from skcoral.certificates.reading import certificate_kind
from skcoral.exceptions import CertificateError
from skcoral.results import EXACT_TOL, Certificate


def transform_of(value: Any) -> Any:
    """A transformation of JSON: a matrix, or the identity plus a product of two."""
    if not isinstance(value, dict):
        T = array_of(value, "`T`")
        if T.ndim != 2:
            raise CertificateError(f"`T` is a matrix, got shape {T.shape}.")
        return T
    require_keys(value, {"left", "right"}, "the transformation")
    left, right = (array_of(value[name], f"`{name}`") for name in ("left", "right"))
    if left.ndim != 2 or right.shape != left.shape[::-1]:
        raise CertificateError(f"factors of shape {left.shape} and {right.shape} do not fit.")
    return LowRankTransform(left, right)


def stored_factor(certificate: Certificate, T: Any) -> FactoredCorrelation:
    """The matrix ``AᵀA`` of a certificate that holds A."""
    certificate_kind(certificate)
    if "factor" not in certificate.arrays or not isinstance(T, LowRankTransform):
        raise CertificateError("without R, the proof needs a factor of it, and T those of its own.")
    return FactoredCorrelation(certified_factor(certificate, T.shape[0]))


def correlations_of(T: Any, R: Any) -> tuple[Any, bool]:
    """``TᵀRT`` in the form that R has, and whether it is the identity."""
    if isinstance(R, FactoredCorrelation):
        return FactoredCorrelation(T.apply(R.factor)), False
    G = np.eye(T.shape[1]) + gram_defect(R, T)  # to full accuracy, also of large T
    return 0.5 * (G + G.T), bool(np.all(np.abs(G - np.diag(np.diag(G))) <= EXACT_TOL))


def largest_difference(stored: Any, given: Any) -> float:
    """By how much the entries of two correlation matrices differ at most; infinite if in shape."""
    low = isinstance(stored, FactoredCorrelation), isinstance(given, FactoredCorrelation)
    if all(low):
        return factors_apart(stored.factor, given.factor) if len(stored) == len(given) else np.inf
    if any(low):
        factored, matrix = (stored, given) if low[0] else (given, stored)
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.shape != factored.shape:
            return np.inf
        return max(float(np.abs(matrix[:, c] - block).max()) for c, block in factored.blocks())
    matrix = judge_correlation(given)[0]
    return float(np.abs(stored - matrix).max()) if stored.shape == matrix.shape else np.inf
