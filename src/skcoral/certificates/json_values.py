"""Values of certificate files: numbers, arrays, names and matrices, judged as they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from skcoral.bounds.frame import certified_factor, factors_apart
from skcoral.certificates.reading import certificate_kind
from skcoral.core.arrays import Array
from skcoral.core.linalg import gram_defect
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.matrix import check_semidefinite
from skcoral.core.solution import Certificate
from skcoral.core.tolerances import EXACT_TOL
from skcoral.exceptions import CertificateError


def coded(value: Any) -> Any:
    """A value for JSON: arrays as lists, numbers that are not finite as texts."""
    if isinstance(value, Mapping):
        return {str(name): coded(v) for name, v in sorted(value.items())}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [coded(v) for v in value]
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def array_of(value: Any, what: str, *, open_ended: bool = False) -> Array:
    """Numbers of JSON as an array; texts and truth values are not numbers."""
    flat: list[Any] = [value]
    for _ in range(2):
        flat = [b for a in flat for b in (a if isinstance(a, list) else [a])]
    words = ("inf", "-inf", "nan") if open_ended else ()
    for a in flat:
        if a not in words if isinstance(a, str) else type(a) not in (int, float):
            raise CertificateError(f"{what} must consist of numbers, found {str(a)[:40]!r}.")
    try:
        return np.array(value, dtype=np.float64)
    except (ValueError, OverflowError, TypeError) as error:
        raise CertificateError(f"{what} must be an array of numbers ({error}).") from error


def number_of(value: Any, what: str) -> float:
    """One number."""
    if isinstance(value, list):
        raise CertificateError(f"{what} must be one number.")
    return float(array_of(value, what))


def names_of(value: Any) -> tuple[str, ...]:
    """Distinct names."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise CertificateError("names are a list of texts.")
    if len(set(value)) < len(value):
        raise CertificateError("names must be distinct.")
    return tuple(value)


def check_keys(value: Any, wanted: set[str], what: str) -> None:
    """Refuse an object with other keys than these."""
    found = set(value) if isinstance(value, dict) else set()
    if found != wanted:
        odd = ", ".join(sorted(map(str, found ^ wanted))[:6])
        raise CertificateError(
            f"{what} of a certificate file has other parts than it should: {odd}."
        )


def checksum_of(content: Mapping[str, Any]) -> str:
    """Digest of the content, whatever its white space and order."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def no_constant(name: str) -> float:
    """Refuse the constants that Python reads beyond JSON."""
    raise ValueError(f"{name} is not a number of JSON")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is given twice: readers would differ on which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def transform_of(value: Any) -> Any:
    """A transformation of JSON: a matrix, or the identity plus a product of two."""
    if not isinstance(value, dict):
        T = array_of(value, "`T`")
        if T.ndim != 2:
            raise CertificateError(f"`T` is a matrix, got shape {T.shape}.")
        return T
    check_keys(value, {"left", "right"}, "the transformation")
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
        return FactoredCorrelation(R.factor @ T), False
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
    matrix = check_semidefinite(given).R
    return float(np.abs(stored - matrix).max()) if stored.shape == matrix.shape else np.inf
