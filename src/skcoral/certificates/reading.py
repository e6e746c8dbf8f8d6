"""What is claimed, and of which matrix: types, shapes, names and the parts of a certificate.

Everything here is decided on the numbers as they stand, without arithmetic. What does not even fit
together is refused with an error; what fits is handed to the claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from skcoral.bounds.columns import in_range
from skcoral.bounds.dual import LARGEST, numbers
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
from skcoral.core.solution import Certificate, Floors, Goal, VifLimit
from skcoral.exceptions import CertificateError, CoralError

#: What proves a bound on the floor within a limit on the VIF.
VIF_PARTS = {"vif_weights", "vif_H", "vif_roots", "vif_vectors"}

_STAR, _FLOORS, _MEAN = {"multipliers", "H"}, {"weights", "S"}, {"mean_weights", "mean_S"}
_EXACT = (set[str](), [_FLOORS | _MEAN, _FLOORS, _MEAN])
_RANK, _BOUND = {"criterion", "rank"}, {"criterion", "bound"}
#: The kinds of certificates that each type of result has: the settings of each kind, and the
#: arrays that it consists of, in one of several ways.
_KINDS: dict[type[Any], dict[str, tuple[set[str], list[set[str]]]]] = {
    Threshold: {"exact": _EXACT},
    SingularThreshold: {"frame_threshold": ({"rank"}, [{"factor", "N", "weights", "kappa"}])},
    Decorrelation: {
        "exact": _EXACT,
        "tradeoff": ({"criterion"}, [_STAR | VIF_PARTS, _STAR]),
    },
    SingularDecorrelation: {
        "tradeoff": (_RANK, [_STAR | {"factor"}, _STAR]),  # of a wide table with its factor
        "rank": (
            _RANK,
            [_STAR | {"factor", "diagonal"}, {"factor", "V", "multipliers", "kappa"}],
        ),
        "frame": (_RANK, [{"factor", "N", "multipliers", "kappa"}]),
    },
    RestrictedDecorrelation: {
        "support/lifted": (_BOUND, [_STAR | {"support", "slope"}]),
        "support/frame": (_BOUND | {"norm"}, [{"Q", "eta", "support", "slope"}]),
        "support/moments": (
            _BOUND,
            [{"S", "weights", "pairs", "floors", "support", "slope"}],
        ),
    },
}

#: The shapes of the fields of a result: p variables and k outputs.
_SHAPES = {"T": "pk", "correlation": "kk", "pair_weights": "kk", "R": "pp"}
_SHAPES |= dict.fromkeys(("fidelity", "rho_min", "prices", "weights"), "k")
_NOT_KNOWN = ("prices", "weights")  # of restricted answers, which are NaN then
_LARGEST_COUNT = 2**53  # beyond it a float does not hold every whole number


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


def matrix_or_factor(result: Any, R: Any) -> tuple[Array | None, Array | None]:
    """The matrix, or the factor of it, that a result is claimed of; refuse other variables."""
    # First what kind of thing each is, then that their sizes fit, then that their names do.
    check_result(result)
    matrix = factor = names = None
    anchors, outputs = getattr(result, "anchors", None), result.names
    if not isinstance(R, FactoredCorrelation):
        matrix, names = check_semidefinite(R).R, frame_names(R)
        p = len(matrix)
    else:
        factor = R.factor
        if "rank" not in result.certificate.info and anchors is None:
            raise CertificateError("a factor goes with results of rank below p; give R.")
        if factor.ndim != 2 or not np.isfinite(factor).all():
            raise CertificateError("the factor is no matrix, or holds numbers that are not finite.")
        p = factor.shape[1]
    if anchors is not None and np.ndim(anchors) != 2:
        raise CertificateError(f"anchors are a matrix, got shape {np.shape(anchors)}.")
    wanted = p if anchors is None else np.shape(anchors)[1]
    check_distinct(outputs)
    if len(outputs) != wanted:
        raise CertificateError(f"the result names {len(outputs)} outputs, and there are {wanted}.")
    check_fields(result, p)
    if names is None or anchors is not None or names == list(outputs):
        return matrix, factor
    if sorted(names) == sorted(outputs):
        raise CertificateError(
            "the variables of R are in another order than those of the result: use "
            "R.loc[list(result.names), list(result.names)]."
        )
    odd = next((a, b) for a, b in zip(outputs, names, strict=True) if a != b)
    raise CertificateError(
        f"the result is about other variables than R: `{odd[0]}` where R has `{odd[1]}`."
    )


def check_distinct(names: Any) -> None:
    """Refuse names that are not names."""
    check_type("`names`", "tuple[str, ...]", names)
    if len(set(names)) < len(names):
        raise CertificateError("the names of a result must be distinct.")


def dual_parts(result: Threshold | Decorrelation) -> Mapping[str, Array]:
    """Arrays of the certificate of a result, of a kind that it has: all parts and no others."""
    proof, info = result.certificate, result.certificate.info
    kinds = _KINDS.get(type(result), {})
    kind = f"support/{info.get('bound')}" if proof.kind == "support" else str(proof.kind)
    if kind not in kinds:
        raise CertificateError(
            f"a certificate of the kind {kind!r} does not belong to a {type(result).__name__}."
        )
    settings, ways = kinds[kind]
    # Of several ways to prove the same, messages are about the one that comes nearest.
    arrays = min(ways, key=lambda way: len(way ^ set(proof.arrays)))
    missing = sorted(arrays - set(proof.arrays))
    if missing:
        raise CertificateError(f"the certificate holds no array {' and '.join(missing)}.")
    if set(info) != settings or set(proof.arrays) != arrays:
        odd = sorted(map(str, {*info, *proof.arrays} ^ (arrays | settings)))
        raise CertificateError(
            f"a certificate of the kind {kind!r} consists of {', '.join(sorted(arrays | settings))}"
            f"; check {', '.join(odd)}."
        )
    if "criterion" in info and info["criterion"] != getattr(result, "criterion", None):
        raise CertificateError(
            f"the certificate is about the criterion {info['criterion']!r}, the result about "
            f"{getattr(result, 'criterion', None)!r}."
        )
    rank = info.get("rank", 1)
    if not (_is_count(rank) and rank):
        raise CertificateError(f"a rank is a whole number above 0, got {rank!r}.")
    limited = isinstance(getattr(result, "goal", None), VifLimit)
    if limited and type(result) is not Decorrelation:
        raise CertificateError(
            f"a limit on the VIF has no certificate that a {type(result).__name__} holds."
        )
    if not limited and VIF_PARTS & arrays:
        raise CertificateError("the certificate is about a limit on the VIF, the result is not.")
    return proof.arrays


def check_fields(result: Threshold | Decorrelation, p: int) -> None:
    """Refuse a result of p variables with a field of another type or shape than declared."""
    size = {"p": p, "k": len(result.names)}
    for record in (result, getattr(result, "goal", Floors())):
        for field in fields(record):
            what, value = f"`{field.name}`", getattr(record, field.name)
            check_type(what, str(field.type), value)
            if field.type == "float" and not abs(value) <= LARGEST:
                raise CertificateError(f"{what} must be finite, got {value!r}.")
            if field.name not in _SHAPES or value is None:
                continue
            shape = tuple(size[letter] for letter in _SHAPES[field.name])
            if not isinstance(value, LowRankTransform | FactoredCorrelation):
                numbers(value, shape, what, open_ended=field.name in _NOT_KNOWN)
            elif value.shape != shape:
                raise CertificateError(f"{what} must be {p} by {size['k']}, got {value.shape}.")


def check_type(what: str, declared: str, value: Any) -> None:
    """Refuse a value that does not fit the declared type of its field."""
    kind, _, optional = declared.partition(" | ")
    if kind not in _TYPES or (value is None and optional == "None"):
        return
    if what.strip("`").endswith(_NOT_KNOWN) and isinstance(value, np.ndarray):
        value = np.where(np.isnan(value), 0.0, value) if value.dtype.kind == "f" else value
    fits, wanted = _TYPES[kind]
    if not fits(value):
        got = f"got {value!r}"[:80] if np.isscalar(value) else f"not a {type(value).__name__}"
        raise CertificateError(f"{what} must be {wanted or declared}, {got}.")


def anchors_and_weights(result: Decorrelation, p: int) -> tuple[Array | None, Array | None]:
    """The anchors and the pair weights of a result about p variables, judged."""
    k, anchors, weights = len(result.names), result.anchors, result.pair_weights
    if np.any(result.rho_min < 0) or np.any(result.rho_min > 1):
        raise CertificateError("a floor lies outside [0, 1].")
    try:
        if anchors is not None:
            B = check_anchors(anchors, [f"source {j}" for j in range(p)])
            anchors = numbers(in_range(B), (p, k), "`anchors`")  # only directions matter
        if weights is not None:
            given, weights = weights, check_pair_weights(weights, result.names)
            if not np.array_equal(weights, given):
                raise CertificateError("pair_weights must be symmetric with a zero diagonal.")
    except CertificateError:
        raise
    except CoralError as error:
        raise CertificateError(str(error)) from error
    return anchors, weights


def _is_numbers(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "bif"
    return is_array and not bool(np.isnan(value).any())


def _is_number(value: Any) -> bool:  # of a subclass comparisons may mean anything
    return type(value) in (float, int, np.float64, np.float32) and not math.isnan(value)


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and 0 <= value < _LARGEST_COUNT


def _one_of(wanted: tuple[str, ...]) -> tuple[Callable[[Any], bool], str]:
    return lambda value: type(value) is str and value in wanted, f"one of {', '.join(wanted)}"


#: Whether a value fits, by the declared type of its field, and words for the type.
_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Any": (  # a matrix, or an object that stands for a large one
        lambda v: _is_numbers(v) or isinstance(v, LowRankTransform | FactoredCorrelation),
        "a matrix of numbers without nan",
    ),
    "Array": (_is_numbers, "an array of numbers without nan"),
    "float": (_is_number, "a number"),
    "int": (_is_count, "a whole number that is not negative"),
    "bool": (lambda v: isinstance(v, bool), ""),
    "str": (lambda v: isinstance(v, str), ""),
    "tuple[str, ...]": (
        lambda v: isinstance(v, tuple) and all(isinstance(name, str) for name in v),
        "a tuple of text",
    ),
    "Status": _one_of(get_args(Status)),
    "Criterion": _one_of(get_args(Criterion)),
    "Goal": (lambda v: isinstance(v, Goal), "Floors, Budget or VifLimit"),
    "Certificate": (lambda v: isinstance(v, Certificate), ""),
    "Mapping[str, Any]": (lambda v: isinstance(v, Mapping), ""),
    "Mapping[str, Array]": (
        lambda v: isinstance(v, Mapping) and all(map(_is_numbers, v.values())),
        "arrays by name",
    ),
}
