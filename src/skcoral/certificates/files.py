"""Certificate files: a result with its proof and its matrix as JSON, version 3.

Everything that is needed to verify the result is in the file, and nothing else: notes and figures
that no claim is about are left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral.bounds.frame import certified_factor, factors_apart
from skcoral.certificates.checking import check, prove
from skcoral.certificates.codec import DAMAGED, RESULTS, sealed, unsealed
from skcoral.certificates.ledger import Check
from skcoral.certificates.reading import check_distinct, dual_parts, matrix_or_factor
from skcoral.core.display import printable
from skcoral.core.files import replacing
from skcoral.core.limits import read_file
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.problem import check_semidefinite
from skcoral.core.results import Decorrelation, Notes, Threshold
from skcoral.core.solution import SupportSearch
from skcoral.core.tolerances import REPORTED_TOL
from skcoral.core.validation import check_names
from skcoral.exceptions import CertificateError, TooLargeError

FORMAT, VERSION = "scikit-coral certificate", 3
#: Fields of a result that no claim is about, and what stands in their place.
_UNJUDGED: dict[str, Any] = {
    "notes": Notes(),
    "on_rows": None,
    "R": None,
    "unique": True,
    "reason": "",
    "search": SupportSearch(),
}


@dataclass(frozen=True)
class CertificateFile:
    """What a certificate file holds.

    Attributes
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : ndarray of shape (p, p), or FactoredCorrelation
        The correlation matrix that it is claimed of; kept as its factor in the certificate of a
        table with many more columns than rows.
    sources : tuple of str
        The variables of that matrix.

    Examples
    --------
    >>> from skcoral import threshold
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> file = parse_certificate(certificate_text(threshold(R), R))
    >>> file.verify().passed
    True
    """

    result: Threshold | Decorrelation
    R: Any
    sources: tuple[str, ...]

    def verify(self, R: Any = None, *, rigorous: bool = False) -> Check:
        """Judge the result; with ``R``, also whether the file is about that matrix.

        Parameters
        ----------
        R : array-like or DataFrame of shape (p, p), or FactoredCorrelation, optional
            The matrix that the reader has. It may differ from the one in the file by rounding.
        rigorous : bool
            In ball arithmetic instead of floating point.

        Raises
        ------
        CertificateError
            The file is about another matrix or other variables.
        """
        if R is not None:
            names = getattr(R, "columns", None)
            if names is not None and tuple(map(str, names)) != self.sources:
                raise CertificateError("the file is about other variables than the matrix given.")
            off = _largest_difference(self.R, R)
            if not off <= REPORTED_TOL:
                how = f"entries differ by up to {off:.1e}" if off < np.inf else "of another size"
                raise CertificateError(f"the file is about another correlation matrix: {how}.")
        return (prove if rigorous else check)(self.result, self.R)


def certificate_text(result: Threshold | Decorrelation, R: Any, *, sources: Any = None) -> str:
    """The text of a certificate file, for those who have no file to write to.

    Examples
    --------
    >>> from skcoral import threshold
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> "scikit-coral certificate" in certificate_text(threshold(R), R)
    True
    """
    matrix = None  # of a wide table, whose certificate holds a factor of it
    if isinstance(getattr(result, "T", None), LowRankTransform):
        if not _largest_difference(_stored_factor(result), R) <= REPORTED_TOL:
            raise CertificateError("the result is about another correlation matrix.")
    else:
        given = R.toarray() if isinstance(R, FactoredCorrelation) else R
        matrix, _ = matrix_or_factor(result, given)
    names = sources if sources is not None else getattr(R, "columns", None)
    if names is None and getattr(result, "anchors", None) is None:
        names = result.names
    names = list(check_names(names, result.T.shape[0]))
    content = {"result": _judged(result), "R": matrix, "sources": names}
    return sealed(FORMAT, VERSION, RESULTS.encode(content))


def save_certificate(
    result: Threshold | Decorrelation, R: Any, path: str | os.PathLike[str]
) -> None:
    """Write a result with its proof and its matrix to a JSON file, whole or not at all.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : array-like or DataFrame of shape (p, p), or FactoredCorrelation
        The correlation matrix that it is claimed of; of a table with many more columns than rows,
        what ``CORAL.correlation_`` is. Then no p × p array is formed or written.
    path : path
        Where to write; an existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from skcoral import decorrelate
    >>> from skcoral.certificates import load_certificate, save_certificate
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> path = tempfile.mkdtemp() + "/answer.json"
    >>> save_certificate(decorrelate(R, 0.95), R, path)
    >>> load_certificate(path).verify(R).passed
    True
    """
    with replacing(path) as stream:
        stream.write(certificate_text(result, R).encode())


def load_certificate(path: str | os.PathLike[str]) -> CertificateFile:
    """Read a certificate file; nothing in it is believed before it is verified.

    Raises
    ------
    CertificateError
        The file is no certificate of version 3, was altered, or misses a part.

    Examples
    --------
    >>> import tempfile
    >>> from skcoral import threshold
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> path = tempfile.mkdtemp() + "/proof.json"
    >>> save_certificate(threshold(R), R, path)
    >>> load_certificate(path).verify(R).passed
    True
    """
    label = printable(str(path))
    try:
        return parse_certificate(read_file(path, label))
    except TooLargeError as error:
        raise CertificateError(str(error)) from error
    except CertificateError as error:
        raise CertificateError(f"{label}: {error}") from error


def parse_certificate(data: bytes | str) -> CertificateFile:
    """Read the text of a certificate file.

    Examples
    --------
    >>> from skcoral import threshold
    >>> R = [[1.0, 0.8], [0.8, 1.0]]
    >>> parse_certificate(certificate_text(threshold(R), R)).sources
    ('x0', 'x1')
    """
    try:
        content = unsealed(data, FORMAT, VERSION, {"result", "R", "sources"})
        result = RESULTS.decode(content["result"], Threshold | Decorrelation)
        if RESULTS.encode(_judged(result)) != content["result"]:
            # a note that nobody judges, or a matrix of the proof that is not symmetric
            raise ValueError("the result is written in another way than it is read")
        sources, given = tuple(content["sources"]), RESULTS.decode(content["R"], np.ndarray | None)
        R = _stored_factor(result) if given is None else given
        matrix, _ = matrix_or_factor(result, R)
        if matrix is not None and not np.array_equal(matrix, given):
            raise ValueError("`R` must be symmetric with ones on its diagonal")
        check_distinct(sources)
    except CertificateError:
        raise
    except DAMAGED as error:
        raise CertificateError(
            f"not a valid certificate: {str(error)[:300].rstrip('.')}."
        ) from error
    if len(sources) != len(R):
        raise CertificateError(f"{len(R)} variables, and {len(sources)} names.")
    if getattr(result, "anchors", None) is None and sources != result.names:
        raise CertificateError("the outputs have other names than their sources.")
    return CertificateFile(result, R, sources)


def _judged(result: Any) -> Any:
    """The result with nothing but what the claims are about."""
    return replace(result, **{n: value for n, value in _UNJUDGED.items() if hasattr(result, n)})


def _stored_factor(result: Threshold | Decorrelation) -> FactoredCorrelation:
    """The matrix ``AᵀA`` of a result whose certificate holds A."""
    dual_parts(result)
    if "factor" not in result.certificate.arrays or not isinstance(result.T, LowRankTransform):
        raise CertificateError("without R, both the proof and T have to be kept as factors.")
    return FactoredCorrelation(certified_factor(result.certificate, result.T.shape[0]))


def _largest_difference(stored: Any, given: Any) -> float:
    """By how much the entries of two correlation matrices differ at most; infinite if in shape."""
    low = [isinstance(R, FactoredCorrelation) for R in (stored, given)]
    if all(low):
        return factors_apart(stored.factor, given.factor) if len(stored) == len(given) else np.inf
    stored = stored.toarray() if low[0] else stored
    given = given.toarray() if low[1] else check_semidefinite(given).R
    return float(np.abs(stored - given).max()) if stored.shape == given.shape else np.inf
