"""Certificate files: a result with its proof and its matrix as JSON, version 1.

Everything that is needed to verify the result is in the file, and nothing else. Python writes the
shortest decimal that reads back as the same float, so no bit is lost; infinite and undefined prices
are the texts "inf" and "nan". The checksum finds careless edits and truncation; against somebody
who means harm there are the claims.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any

import numpy as np

from skcoral.certificates.checking import check, prove
from skcoral.certificates.json_values import (
    array_of,
    check_keys,
    checksum_of,
    coded,
    correlations_of,
    largest_difference,
    names_of,
    no_constant,
    number_of,
    stored_factor,
    transform_of,
    unique_keys,
)
from skcoral.certificates.ledger import Check
from skcoral.certificates.reading import claimed_matrix
from skcoral.core.display import printable
from skcoral.core.files import replacing
from skcoral.core.limits import read_file
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.results import (
    Decorrelation,
    RestrictedDecorrelation,
    SingularDecorrelation,
    SingularThreshold,
    Status,
    Threshold,
)
from skcoral.core.solution import Budget, Certificate, Floors, Goal, VifLimit
from skcoral.core.tolerances import OPTIMAL_GAP, REPORTED_TOL
from skcoral.core.validation import check_names
from skcoral.exceptions import CertificateError, CoralError, TooLargeError

FORMAT, VERSION = "scikit-coral certificate", 1
_SHARED = {"what", "sources", "names", "R", "rank", "T", "fidelity"}
_THRESHOLD = ("lower", "upper", "zca", "trace")
# Numbers and arrays of a decorrelation that are written as they are.
_NUMBERS = ("objective", "lower_bound")
_ARRAYS = ("fidelity", "rho_min", "prices", "weights", "pair_weights", "anchors")
_DECORRELATION = {*_SHARED, *_NUMBERS, *_ARRAYS, "criterion", "status", "support", "budget"}
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
    T, matrix = getattr(result, "T", None), None
    if isinstance(T, LowRankTransform):
        if not largest_difference(stored_factor(result.certificate, T), R) <= REPORTED_TOL:
            raise CertificateError("the result is about another correlation matrix.")
        T = {"left": T.left, "right": T.right}
    else:
        matrix = claimed_matrix(result, R.toarray() if isinstance(R, FactoredCorrelation) else R)
    names = sources if sources is not None else getattr(R, "columns", None)
    if names is None and getattr(result, "anchors", None) is None:
        names = result.names
    is_threshold = isinstance(result, Threshold)
    claim: dict[str, Any] = {
        "what": "threshold" if is_threshold else "decorrelation",
        "sources": list(check_names(names, result.T.shape[0])),
        "names": list(result.names),
        "R": matrix,
        "rank": result.certificate.info.get("rank"),
        "T": T,
    }
    if isinstance(result, Threshold):
        claim |= {"fidelity": result.fidelity, "lower": result.lower, "upper": result.upper}
        claim |= result.bounds
    else:
        claim |= {name: getattr(result, name) for name in (*_ARRAYS, *_NUMBERS, "criterion")}
        goal, support = result.goal, result.certificate.arrays.get("support")
        claim |= {
            "status": result.status if result.is_certified else _OPEN,
            "support": None if support is None else np.asarray(support).astype(int),
            "budget": vars(goal) if isinstance(goal, Budget) else None,
        }
        if isinstance(goal, VifLimit):
            claim["vif"] = vars(goal)
    certificate = result.certificate
    proof = {"kind": certificate.kind, "arrays": certificate.arrays, "info": certificate.info}
    content = {"claim": coded(claim), "proof": coded(proof)}
    envelope = {"format": FORMAT, "version": VERSION, "checksum": checksum_of(content), **content}
    return json.dumps(envelope, allow_nan=False, ensure_ascii=False) + "\n"


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
    claim, proof = _content(data)
    limited = {"vif"} & set(claim)
    threshold = claim.get("what") == "threshold"
    wanted = {*_SHARED, *_THRESHOLD} if threshold else _DECORRELATION | limited
    check_keys(claim, wanted, "the claim")
    if claim["what"] not in ("threshold", "decorrelation"):
        raise CertificateError(f"a claim about {claim['what']!r} is not known.")
    rank = claim["rank"]
    if rank is not None and (type(rank) is not int or not rank > 0):
        raise CertificateError(f"a rank is a whole number above 0, or null; got {rank!r}.")
    arrays = {name: array_of(a, f"`{name}`") for name, a in proof["arrays"].items()}
    dual = Certificate(proof["kind"], arrays, proof["info"])
    for name, a in arrays.items():
        if not np.array_equal(dual.arrays[name], a):
            raise CertificateError(f"`{name}` is not symmetric.")
    if rank != proof["info"].get("rank"):
        raise CertificateError(f"the claim is of rank {rank}, the proof of another.")
    T, R = transform_of(claim["T"]), claim["R"]
    R = stored_factor(dual, T) if R is None else array_of(R, "`R`")
    if isinstance(R, np.ndarray) and (isinstance(T, LowRankTransform) or R.shape != (len(T),) * 2):
        raise CertificateError(f"`T` is {T.shape} and `R` is {R.shape}: they do not fit.")
    result = _threshold(claim, dual, T) if threshold else _decorrelation(claim, dual, T, R)
    if not isinstance(R, FactoredCorrelation):
        try:
            symmetric = np.array_equal(claimed_matrix(result, R), R)
        except CertificateError:
            raise
        except CoralError as error:
            raise CertificateError(str(error)) from error
        if not symmetric:
            raise CertificateError("`R` must be symmetric with ones on its diagonal.")
    sources = names_of(claim["sources"])
    if len(sources) != len(R):
        raise CertificateError(f"{len(R)} variables, and {len(sources)} names.")
    if getattr(result, "anchors", None) is None and sources != result.names:
        raise CertificateError("the outputs have other names than their sources.")
    return CertificateFile(result, R, sources)


def _content(data: bytes | str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Claim and proof of the text of a file, as its checksum says they are."""
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
    check_keys(envelope, {"format", "version", "checksum", "claim", "proof"}, "the file")
    claim, proof = envelope["claim"], envelope["proof"]
    if envelope["checksum"] != checksum_of({"claim": claim, "proof": proof}):
        raise CertificateError("the content does not fit its checksum: the file was altered.")
    check_keys(proof, {"kind", "arrays", "info"}, "the proof")
    if not all(isinstance(part, dict) for part in (claim, proof["arrays"], proof["info"])):
        raise CertificateError("a claim has parts, and a proof consists of arrays and settings.")
    return claim, proof


def _threshold(claim: dict[str, Any], dual: Certificate, T: Any) -> Threshold:
    found = {name: number_of(claim[name], f"`{name}`") for name in _THRESHOLD}
    kind = Threshold if claim["rank"] is None else SingularThreshold
    return kind(
        lower=found["lower"],
        upper=found["upper"],
        weights=dual.arrays.get("weights", np.zeros(0)),
        T=T,
        fidelity=array_of(claim["fidelity"], "`fidelity`"),
        names=names_of(claim["names"]),
        bounds={name: found[name] for name in ("zca", "trace")},
        certificate=dual,
        n_iter=0,
        tol=OPTIMAL_GAP,
    )


def _decorrelation(claim: dict[str, Any], dual: Certificate, T: Any, R: Any) -> Decorrelation:
    kind: type[Decorrelation] = Decorrelation if claim["rank"] is None else SingularDecorrelation
    if (claim["support"] is None) == (dual.kind == "support"):
        raise CertificateError("a support goes with a certificate of the kind 'support'.")
    if claim["support"] is not None:
        kind, support = RestrictedDecorrelation, array_of(claim["support"], "`support`")
        if not np.array_equal(support, dual.arrays.get("support", np.zeros(0))):
            raise CertificateError("the certificate is about another support than the claim.")
    with np.errstate(over="ignore", invalid="ignore"):
        G, uncorrelated = correlations_of(T, R)
    words: dict[Any, Status] = {"exact": "exact", "optimal": "optimal", _OPEN: "best_found"}
    if not isinstance(claim["status"], str) or claim["status"] not in words:
        told = f"a status is 'exact', 'optimal' or 'open', got {claim['status']!r}."
        raise CertificateError(told)
    if dual.is_exact and not uncorrelated:
        words[_OPEN] = "not_converged"
    fields: dict[str, Any] = {name: number_of(claim[name], f"`{name}`") for name in _NUMBERS}
    for name in _ARRAYS:
        given, words_too = claim[name], name in ("prices", "weights")
        if given is not None or name not in ("pair_weights", "anchors"):
            fields[name] = array_of(given, f"`{name}`", open_ended=words_too)
    return kind(
        T=T,
        correlation=G,
        criterion=claim["criterion"],
        status=words[claim["status"]],
        names=names_of(claim["names"]),
        certificate=dual,
        n_iter=0,
        goal=_goal(claim),
        **fields,
    )


def _goal(claim: dict[str, Any]) -> Goal:
    """What was asked for: the floors, or the highest one within a budget or a limit."""
    if claim["budget"] is not None and "vif" in claim:
        raise CertificateError("a floor is maximised within a budget or a limit, not both.")
    kind, name = (VifLimit, "vif") if "vif" in claim else (Budget, "budget")
    if claim[name] is None and name == "budget":
        return Floors()
    check_keys(claim[name], {field.name for field in fields_of(kind)}, f"the {name}")
    return kind(**{key: number_of(v, f"`{key}`") for key, v in claim[name].items()})
