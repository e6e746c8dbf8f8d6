"""What is claimed, and of which matrix: types, shapes, names and the parts of a certificate.

Everything here is decided on the numbers as they stand, without arithmetic. What does not even fit
together is refused with an error; what fits is handed to the claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from skcoral.bounds.columns import in_range
from skcoral.bounds.dual import number, numbers
from skcoral.core.arrays import Array
from skcoral.core.composites import check_anchors
from skcoral.core.criteria import Criterion
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.problem import check_pair_weights, check_semidefinite, frame_names
from skcoral.core.results import (
    Decorrelation,
    RestrictedDecorrelation,
    SingularDecorrelation,
    SingularThreshold,
    Status,
    Threshold,
)
from skcoral.core.solution import Budget, Certificate, Floors, VifLimit
from skcoral.exceptions import CertificateError, CoralError

#: The arrays and settings that each kind of certificate consists of.
PARTS: dict[str, tuple[set[str], set[str]]] = {
    "exact": (set(), set()),
    "tradeoff": ({"multipliers", "H"}, {"criterion"}),
    "rank": ({"factor", "H", "multipliers", "diagonal"}, {"criterion", "rank"}),
    "frame": ({"factor", "N", "multipliers", "kappa"}, {"criterion", "rank"}),
    "frame_threshold": ({"factor", "N", "weights", "kappa"}, {"rank"}),
    "support/lifted": ({"multipliers", "H", "support", "slope"}, {"bound", "criterion"}),
    "support/frame": ({"Q", "eta", "support", "slope"}, {"bound", "criterion", "norm"}),
    "support/moments": (
        {"S", "weights", "pairs", "floors", "support", "slope"},
        {"bound", "criterion"},
    ),
}

#: What proves a bound on the floor within a limit on the VIF.
VIF_PARTS = {"vif_weights", "vif_H", "vif_roots", "vif_vectors"}

#: Groups of arrays that a kind may have besides; of each all or none, and not an empty certificate.
FURTHER = {
    "exact": [{"weights", "S"}, {"mean_weights", "mean_S"}],
    "tradeoff": [VIF_PARTS],
}

#: The kinds that results of each type have, and whether these name a rank.
_KINDS: dict[type[Any], set[tuple[str, bool]]] = {
    Threshold: {("exact", False)},
    SingularThreshold: {("frame_threshold", True)},
    Decorrelation: {("exact", False), ("tradeoff", False)},
    SingularDecorrelation: {("tradeoff", True), ("rank", True), ("frame", True)},
    RestrictedDecorrelation: {("support", False)},
}

#: What H and the diagonal of a bound of the rank are replaced by in factor form.
_FACTORED_RANK = {"factor", "V", "multipliers", "kappa"}


def check_result(result: Any) -> None:
    """Refuse what carries no certificate."""
    if not isinstance(result, Threshold | Decorrelation):
        raise CertificateError(
            "a certificate comes with a Threshold or a Decorrelation, got "
            f"{type(result).__name__}; of a fitted CORAL, use result_ or threshold_ with "
            "correlation_."
        )
    proof: Any = result.certificate
    if not isinstance(proof, Certificate):
        raise CertificateError(f"a Certificate is wanted, got {type(proof).__name__}.")


def claimed_matrix(result: Any, R: Any) -> Array:
    """Return ``R`` as an array; refuse what carries no certificate, and other variables."""
    check_result(result)
    matrix: Array = check_semidefinite(R).R
    names, p = frame_names(R), len(matrix)
    anchors, own = getattr(result, "anchors", None), result.names
    if anchors is not None and np.ndim(anchors) != 2:
        raise CertificateError(f"anchors are a matrix, got shape {np.shape(anchors)}.")
    wanted = p if anchors is None else np.shape(anchors)[1]
    check_distinct(own)
    check_transformation(result.T, p, wanted)
    if len(own) != wanted:
        raise CertificateError(f"the result names {len(own)} outputs, and has {wanted}.")
    if names is None or anchors is not None or names == list(own):
        return matrix
    if sorted(names) == sorted(own):
        raise CertificateError(
            "the variables of R are in another order than those of the result: use "
            "R.loc[list(result.names), list(result.names)]."
        )
    odd = next((a, b) for a, b in zip(own, names, strict=True) if a != b)
    raise CertificateError(
        f"the result is about other variables than R: `{odd[0]}` where R has `{odd[1]}`."
    )


def check_distinct(names: Any) -> None:
    """Refuse names that are not names."""
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise CertificateError("the names of a result must be a tuple of text.")
    if len(set(names)) < len(names):
        raise CertificateError("the names of a result must be distinct.")


def agree(reported: Array, wanted: Array, tolerance: float, rounding: Any = 0.0) -> Any:
    """Where prices are the wanted ones, relative to one or to them; infinite ones only exactly."""
    with np.errstate(invalid="ignore"):
        off = np.abs(reported - wanted)
        near = off <= tolerance * np.maximum(1.0, np.abs(wanted)) + rounding
    return np.where(np.isfinite(wanted), near, reported == wanted)


def certificate_kind(certificate: Certificate) -> str:
    """Kind of a certificate with all of its parts: nothing missing, nothing beside."""
    kind, info = certificate.kind, certificate.info
    if kind == "support":
        kind = f"support/{info.get('bound')}"
    if not isinstance(kind, str) or kind not in PARTS:
        raise CertificateError(f"no certificate of the kind {kind!r} is known.")
    arrays, settings = PARTS[kind]
    if kind == "rank" and "V" in certificate.arrays:
        arrays = _FACTORED_RANK
    if kind == "tradeoff" and "rank" in info:  # of a wide table: with its factor
        settings, arrays = settings | {"rank"}, arrays | ({"factor"} & set(certificate.arrays))
    groups = FURTHER.get(kind, [])
    arrays = arrays.union(*(g for g in groups if g & set(certificate.arrays))) or groups[0]
    missing = sorted(arrays - set(certificate.arrays))
    if missing:
        raise CertificateError(f"the certificate holds no array {' and '.join(missing)}.")
    if set(info) != settings or set(certificate.arrays) != arrays:
        found = sorted(map(str, {*info, *certificate.arrays} ^ (arrays | settings)))
        raise CertificateError(
            f"a certificate of the kind {kind!r} consists of {', '.join(sorted(arrays | settings))}"
            f"; check {', '.join(found)}."
        )
    return kind


def dual_parts(result: Threshold | Decorrelation) -> Mapping[str, Array]:
    """Arrays of the certificate of a result, whose criterion it has to share."""
    kind, info = certificate_kind(result.certificate), result.certificate.info
    if "criterion" in info and info["criterion"] != getattr(result, "criterion", None):
        raise CertificateError(
            f"the certificate is about the criterion {info['criterion']!r}, the result about "
            f"{getattr(result, 'criterion', None)!r}."
        )
    bare, of_rank = kind.partition("/")[0], "rank" in info
    if (bare, of_rank) not in _KINDS.get(type(result), ()):
        raise CertificateError(
            f"a certificate of the kind {kind!r} does not belong to a {type(result).__name__}."
        )
    if of_rank:
        _check_rank(info["rank"])
    arrays = result.certificate.arrays
    _check_goal(getattr(result, "goal", Floors()), kind, of_rank, set(arrays))
    return arrays


def _check_rank(rank: Any) -> None:
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise CertificateError(f"a rank is a whole number above 0, got {rank!r}.")


def _check_goal(goal: Any, kind: str, of_rank: bool, parts: set[str]) -> None:
    """Refuse a goal that is none, or that the certificate is not about."""
    if not isinstance(goal, Floors | Budget | VifLimit):
        raise CertificateError(f"a goal is Floors, Budget or VifLimit, got {goal!r}.")
    for name, value in vars(goal).items():
        number(value, f"`{name}`")
    limited = isinstance(goal, VifLimit)
    if limited and (of_rank or kind not in ("exact", "tradeoff")):
        kind = f"{kind!r} of a singular matrix" if of_rank else repr(kind)
        raise CertificateError(f"a limit on the VIF has no certificate of the kind {kind}.")
    if not limited and VIF_PARTS & parts:
        raise CertificateError("the certificate is about a limit on the VIF, the result is not.")


def check_fields(result: Decorrelation, p: int) -> tuple[Array | None, Array | None]:
    """Check every field of a result for type and shape; return anchors and pair weights."""
    k = len(result.names)
    check_transformation(result.T, p, k)
    if not isinstance(result.correlation, FactoredCorrelation):
        numbers(result.correlation, (k, k), "`correlation`")
    for name in ("fidelity", "rho_min"):
        numbers(getattr(result, name), (k,), f"`{name}`")
    for name in ("prices", "weights"):
        numbers(getattr(result, name), (k,), f"`{name}`", open_ended=True)
    for name in ("objective", "lower_bound"):
        number(getattr(result, name), f"`{name}`")
    if np.any(result.rho_min < 0) or np.any(result.rho_min > 1):
        raise CertificateError("a floor lies outside [0, 1].")
    _check_word(result.criterion, get_args(Criterion), "criterion")
    _check_word(result.status, get_args(Status), "status")
    _check_count(result.n_iter)
    if result.R is not None:
        numbers(result.R, (p, p), "`R`")
    anchors, weights = result.anchors, result.pair_weights
    try:
        if anchors is not None:
            B = check_anchors(anchors, [f"source {j}" for j in range(p)])
            anchors = numbers(in_range(B), (p, k), "`anchors`")  # only directions matter
        if weights is not None:
            given = numbers(weights, (k, k), "`pair_weights`")
            weights = check_pair_weights(given, result.names)
            if not np.array_equal(weights, given):
                raise CertificateError("pair_weights must be symmetric with a zero diagonal.")
    except CertificateError:
        raise
    except CoralError as error:
        raise CertificateError(str(error)) from error
    return anchors, weights


def check_threshold_fields(result: Threshold, p: int) -> None:
    """Check every field of a threshold for type and shape."""
    check_transformation(result.T, p, p)
    numbers(result.fidelity, (p,), "`fidelity`")
    numbers(result.weights, (p,), "`weights`")
    for name in ("lower", "upper", "tol"):
        number(getattr(result, name), f"`{name}`")
    _check_count(result.n_iter)


def check_transformation(T: Any, p: int, k: int) -> None:
    """Refuse what is no transformation of p variables into k outputs."""
    if not isinstance(T, LowRankTransform):
        numbers(T, (p, k), "the transformation `T`")
    elif T.shape != (p, k):
        raise CertificateError(f"the transformation `T` must be {p} by {k}, got {T.shape}.")


def _check_word(value: Any, words: tuple[str, ...], what: str) -> None:
    if type(value) is not str or value not in words:
        raise CertificateError(f"{what} must be one of {', '.join(words)}; got {value!r}.")


def _check_count(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise CertificateError(f"n_iter must be a number of steps, got {value!r}.")
