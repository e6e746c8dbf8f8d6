"""Certificate files: a result with its proof and its matrix as JSON, version 1.

Everything that is needed to verify the result is in the file, and nothing else. Python writes the
shortest decimal that reads back as the same float, so no bit is lost; infinite and undefined prices
are the texts "inf" and "nan". The checksum finds careless edits and truncation; against somebody
who means harm there are the claims.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skcoral._lowrank import FactoredCorrelation, LowRankTransform
from skcoral._validation import check_names
from skcoral.certificates.checking import check, prove
from skcoral.certificates.json_values import (
    array_of,
    checksum_of,
    names_of,
    no_constant,
    number_of,
    open_ended_list,
    optional_array,
    require_keys,
    unique_keys,
)
from skcoral.certificates.ledger import Check
from skcoral.certificates.reading import claimed_matrix
from skcoral.certificates.stored_matrices import (
    coded_transform,
    correlations_of,
    factor_of,
    largest_difference,
    stored_factor,
    transform_of,
)
from skcoral.exceptions import CertificateError, CoralError, TooLargeError
from skcoral.limits import read_file
from skcoral.results import (
    OPTIMAL_GAP,
    REPORTED_TOL,
    Certificate,
    Decorrelation,
    Status,
    Threshold,
)

FORMAT, VERSION = "scikit-coral certificate", 1
_TOP = {"format", "version", "checksum", "claim", "proof"}
_PROOF = {"kind", "arrays", "info"}
_SHARED = {"what", "sources", "names", "R", "rank", "T", "fidelity"}
_THRESHOLD = _SHARED | {"lower", "upper", "zca", "trace"}
_DECORRELATION = _SHARED | {
    "rho_min",
    "criterion",
    "objective",
    "lower_bound",
    "prices",
    "weights",
    "status",
    "pair_weights",
    "anchors",
    "support",
    "budget",
}
_LIMIT = {"max_vif", "largest_vif", "rho_upper"}
_OPEN = "open"  # both words for an open gap claim the same


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
            off = largest_difference(self.R, R)
            if not off <= REPORTED_TOL:
                told = f"entries differ by up to {off:.1e}" if off < np.inf else "of another size"
                raise CertificateError(f"the file is about another correlation matrix: {told}.")
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
    factored = isinstance(getattr(result, "T", None), LowRankTransform)
    if factored and not largest_difference(factor_of(result), R) <= REPORTED_TOL:
        raise CertificateError("the result is about another correlation matrix.")
    matrix = None if factored else claimed_matrix(result, R)
    names = sources if sources is not None else getattr(R, "columns", None)
    if names is None and getattr(result, "anchors", None) is None:
        names = result.names
    claim: dict[str, Any] = {
        "what": "threshold" if isinstance(result, Threshold) else "decorrelation",
        "sources": list(check_names(names, result.T.shape[0])),
        "names": list(result.names),
        "R": None if matrix is None else matrix.tolist(),
        "rank": result.rank,
        "T": coded_transform(result.T),
        "fidelity": result.fidelity.tolist(),
    }
    if isinstance(result, Threshold):
        claim |= {
            "lower": float(result.lower),
            "upper": float(result.upper),
            "zca": float(result.bounds["zca"]),
            "trace": float(result.bounds["trace"]),
        }
    else:
        claim |= _decorrelation_claim(result)
    certificate = result.certificate
    proof = {
        "kind": certificate.kind,
        "arrays": {name: a.tolist() for name, a in sorted(certificate.arrays.items())},
        "info": dict(sorted(certificate.info.items())),
    }
    content = {"claim": claim, "proof": proof}
    envelope = {"format": FORMAT, "version": VERSION, "checksum": checksum_of(content), **content}
    return json.dumps(envelope, allow_nan=False, ensure_ascii=False) + "\n"


def _decorrelation_claim(result: Decorrelation) -> dict[str, Any]:
    details = result.details
    budget = None
    if "budget" in details:
        budget = {"budget": float(details["budget"]), "rho_upper": float(details["rho_upper"])}
    support = details.get("support") if result.certificate.kind == "support" else None
    limit = {}
    if "max_vif" in details:
        limit = {"vif": {name: float(details[name]) for name in sorted(_LIMIT)}}
    return limit | {
        "rho_min": result.rho_min.tolist(),
        "criterion": result.criterion,
        "objective": float(result.objective),
        "lower_bound": float(result.lower_bound),
        "prices": open_ended_list(result.prices),
        "weights": open_ended_list(result.weights),
        "status": result.status if result.status in ("exact", "optimal") else _OPEN,
        "pair_weights": None if result.pair_weights is None else result.pair_weights.tolist(),
        "anchors": None if result.anchors is None else result.anchors.tolist(),
        "support": None if support is None else np.asarray(support).astype(int).tolist(),
        "budget": budget,
    }


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
    target = Path(path)
    text = certificate_text(result, R)
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def load_certificate(path: str | os.PathLike[str]) -> CertificateFile:
    """Read a certificate file; nothing in it is believed before it is verified.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    CertificateFile
        With ``verify``.

    Raises
    ------
    CertificateError
        The file is no certificate of version 1, was altered, or misses a part.

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
    try:
        data = read_file(path)
    except TooLargeError as error:
        raise CertificateError(str(error)) from error
    try:
        return parse_certificate(data)
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from error


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
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        envelope = json.loads(text, parse_constant=no_constant, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError, MemoryError) as error:
        raise CertificateError(f"not a certificate file ({type(error).__name__}).") from error
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise CertificateError(f"not a {FORMAT} file.")
    version = envelope.get("version")
    if type(version) is not int or version != VERSION:
        raise CertificateError(f"format version {version!r}; this release reads {VERSION}.")
    require_keys(envelope, _TOP, "the file")
    content = {"claim": envelope["claim"], "proof": envelope["proof"]}
    if envelope["checksum"] != checksum_of(content):
        raise CertificateError("the content does not fit its checksum: the file was altered.")
    claim, proof = content["claim"], content["proof"]
    threshold = isinstance(claim, dict) and claim.get("what") == "threshold"
    limited = {"vif"} & set(claim) if isinstance(claim, dict) else set()
    require_keys(claim, _THRESHOLD if threshold else _DECORRELATION | limited, "the claim")
    require_keys(proof, _PROOF, "the proof")
    rank = claim["rank"]
    if rank is not None and (type(rank) is not int or not rank > 0):
        raise CertificateError(f"a rank is a whole number above 0, or null; got {rank!r}.")
    if claim["what"] not in ("threshold", "decorrelation"):
        raise CertificateError(f"a claim about {claim['what']!r} is not known.")
    arrays, info = proof["arrays"], proof["info"]
    if not isinstance(arrays, dict) or not isinstance(info, dict):
        raise CertificateError("the proof consists of arrays and settings.")
    dual = Certificate(
        proof["kind"], {name: array_of(a, f"`{name}`") for name, a in arrays.items()}, info
    )
    for name, a in arrays.items():
        if not np.array_equal(dual.arrays[name], array_of(a, name)):
            raise CertificateError(f"`{name}` is not symmetric.")
    sources = names_of(claim["sources"])
    T = transform_of(claim["T"])
    R: Any = optional_array(claim["R"], "`R`")
    if R is None:
        R = stored_factor(dual, T)
    elif isinstance(T, LowRankTransform) or R.shape != (len(T), len(T)):
        raise CertificateError(f"`T` is {T.shape} and `R` is {R.shape}: they do not fit.")
    result = _threshold(claim, dual, T) if threshold else _decorrelation(claim, dual, T, R)
    if not isinstance(R, FactoredCorrelation):
        try:
            matrix = claimed_matrix(result, R)
        except CertificateError:
            raise
        except CoralError as error:
            raise CertificateError(str(error)) from error
        if not np.array_equal(matrix, R):
            raise CertificateError("`R` must be symmetric with ones on its diagonal.")
    if len(sources) != len(R):
        raise CertificateError(f"{len(R)} variables, and {len(sources)} names.")
    if getattr(result, "anchors", None) is None and sources != result.names:
        raise CertificateError("the outputs have other names than their sources.")
    return CertificateFile(result, R, sources)


def _threshold(claim: Mapping[str, Any], dual: Certificate, T: Any) -> Threshold:
    return Threshold(
        lower=number_of(claim["lower"], "`lower`"),
        upper=number_of(claim["upper"], "`upper`"),
        weights=dual.arrays.get("weights", np.zeros(0)),
        T=T,
        fidelity=array_of(claim["fidelity"], "`fidelity`"),
        names=names_of(claim["names"]),
        bounds={name: number_of(claim[name], f"`{name}`") for name in ("zca", "trace")},
        certificate=dual,
        n_iter=0,
        tol=OPTIMAL_GAP,
        rank=claim["rank"],
        least_residual=_least_residual(claim),
    )


def _least_residual(claim: Mapping[str, Any]) -> float:
    """What the rank alone leaves, ``(p²/r - p)/2``."""
    p = len(claim["names"]) if isinstance(claim["names"], list) else 0
    return 0.5 * (p * p / claim["rank"] - p) if claim["rank"] else 0.0


def _decorrelation(claim: Mapping[str, Any], dual: Certificate, T: Any, R: Any) -> Decorrelation:
    status = claim["status"]
    if status not in ("exact", "optimal", _OPEN):
        raise CertificateError(f"a status is 'exact', 'optimal' or 'open', got {status!r}.")
    details: dict[str, Any] = {}
    if claim["support"] is not None:
        details["support"] = array_of(claim["support"], "`support`")
    if (claim["support"] is None) == (dual.kind == "support"):
        raise CertificateError("a support goes with a certificate of the kind 'support'.")
    if claim["budget"] is not None:
        require_keys(claim["budget"], {"budget", "rho_upper"}, "the budget")
        details |= {name: number_of(v, f"`{name}`") for name, v in claim["budget"].items()}
    if "vif" in claim:
        require_keys(claim["vif"], _LIMIT, "the limit on the VIF")
        if claim["budget"] is not None:
            raise CertificateError("a floor is maximised within a budget or a limit, not both.")
        details |= {name: number_of(v, f"`{name}`") for name, v in claim["vif"].items()}
    with np.errstate(over="ignore", invalid="ignore"):
        G, uncorrelated = correlations_of(T, R)
    word: Status = "best_found"
    if status != _OPEN:
        word = status
    elif dual.kind in ("exact", "threshold") and not uncorrelated:
        word = "not_converged"
    return Decorrelation(
        T=T,
        correlation=G,
        fidelity=array_of(claim["fidelity"], "`fidelity`"),
        rho_min=array_of(claim["rho_min"], "`rho_min`"),
        criterion=claim["criterion"],
        objective=number_of(claim["objective"], "`objective`"),
        lower_bound=number_of(claim["lower_bound"], "`lower_bound`"),
        prices=array_of(claim["prices"], "`prices`", open_ended=True),
        weights=array_of(claim["weights"], "`weights`", open_ended=True),
        status=word,
        names=names_of(claim["names"]),
        certificate=dual,
        n_iter=0,
        pair_weights=optional_array(claim["pair_weights"], "`pair_weights`"),
        anchors=optional_array(claim["anchors"], "`anchors`"),
        details=details,
        rank=claim["rank"],
    )
