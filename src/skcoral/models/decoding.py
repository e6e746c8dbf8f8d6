"""From the JSON of a file back to records, every field validated.

A checksum finds accidental changes only: a file can be altered together with its checksum, so
types, sizes and the agreement of the parts are checked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from skcoral.core import measures
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.deficiency import Deficiency, Relation
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.results import (
    Decorrelation,
    Notes,
    RestrictedDecorrelation,
    SingularDecorrelation,
    SingularThreshold,
    Status,
    Threshold,
)
from skcoral.core.solution import Budget, Certificate, Floors, Goal, SupportSearch, VifLimit
from skcoral.data.correlation import CorrelationEstimate
from skcoral.data.effects import Measured
from skcoral.data.moments import SMALLEST_SPREAD, Moments
from skcoral.exceptions import ModelFileError
from skcoral.solvers.singular.pairs import criterion_of

RECORDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Budget,
        Certificate,
        CorrelationEstimate,
        Decorrelation,
        Deficiency,
        FactoredCorrelation,
        Floors,
        LowRankTransform,
        Measured,
        Notes,
        Relation,
        RestrictedDecorrelation,
        SingularDecorrelation,
        SingularThreshold,
        SupportSearch,
        Threshold,
        VifLimit,
    )
}
ARRAY_KINDS = "bifU"
_DEEPEST = 40
_NOT_KNOWN = ("prices", "weights")  # of restricted answers, which are NaN then
_AGREEMENT = 1e-6
_LARGEST_COUNT = 2**53


def decoded(value: Any, kind: Any = None, depth: int = 0) -> Any:
    """Rebuild a value that was written; ``kind`` is the record that it must be."""
    if depth > _DEEPEST:
        raise ModelFileError(f"Entries are nested more than {_DEEPEST} deep.")
    found = _decoded(value, depth + 1)
    if kind is not None and not isinstance(found, kind):
        wanted = getattr(kind, "__name__", str(kind))
        raise ModelFileError(f"A {wanted} is expected, a {type(found).__name__} is there.")
    return found


def _decoded(value: Any, depth: int) -> Any:
    if isinstance(value, list):
        return [decoded(v, depth=depth) for v in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        return _array(value)
    if "$map" in value:
        return {decoded(k, depth=depth): decoded(v, depth=depth) for k, v in value["$map"]}
    if "$tuple" in value:
        return tuple(decoded(v, depth=depth) for v in value["$tuple"])
    if "$record" in value:
        return _record(value, depth)
    if "$frame" in value:
        import pandas as pd

        return pd.DataFrame(
            decoded(value["$frame"], np.ndarray | list, depth),
            columns=value["columns"],
            index=value.get("index"),
        )
    if "$series" in value:
        import pandas as pd

        return pd.Series(decoded(value["$series"], list, depth), index=value["index"])
    raise ModelFileError(f"An entry with the keys {sorted(value)[:5]} has no meaning here.")


def _array(value: dict[str, Any]) -> Any:
    """An array; its size is that of the list in the file, whatever the type and shape say."""
    cells, shape = value["$array"], value["shape"]
    if not isinstance(cells, list) or not isinstance(shape, list):
        raise ModelFileError("An array needs a list of values and a shape.")
    if "dtype" not in value:
        return np.array([float.fromhex(v) for v in cells]).reshape(shape)
    kind = str(value["dtype"])[1:2]
    if kind not in ARRAY_KINDS:
        raise ModelFileError(f"Arrays of the type {str(value['dtype'])[:20]!r} have no meaning.")
    if kind == "U":
        # As long as its texts are, not as it says.
        return np.array(cells, dtype=str).reshape(shape)
    size = np.dtype(value["dtype"])
    found = np.array(cells, dtype=size)
    return found.reshape(shape)


def _record(value: dict[str, Any], depth: int) -> Any:
    name = value["$record"]
    if name not in RECORDS:
        raise ModelFileError(f"A record {str(name)[:60]!r} has no meaning here.")
    given = {key: decoded(v, depth=depth) for key, v in value["fields"].items()}
    for field in fields(RECORDS[name]):
        if field.name in given:
            part: Any = given[field.name]
            if field.name in _NOT_KNOWN and isinstance(part, np.ndarray) and part.dtype.kind == "f":
                part = np.where(np.isnan(part), 0.0, part)
            _require(f"{name}.{field.name}", str(field.type), part)
    return RECORDS[name](**given)


def _is_numbers(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "bif"
        and not bool(np.isnan(value).any())
    )


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and abs(value) < 10**400 and not math.isnan(value)


#: What a field may hold, by its declared type.
_FITS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Array": ("an array of numbers", _is_numbers),
    # A matrix, or an object that stands for a large one.
    "Any": ("a matrix", lambda v: _is_numbers(v) or type(v).__name__ in RECORDS),
    "float": ("a number", _is_number),
    "int": ("a count", lambda v: type(v) is int and 0 <= v < _LARGEST_COUNT),
    "bool": ("true or false", lambda v: isinstance(v, bool)),
    "str": ("a text", lambda v: isinstance(v, str)),
    "tuple[str, ...]": (
        "names",
        lambda v: isinstance(v, tuple) and all(isinstance(name, str) for name in v),
    ),
    "Status": (f"one of {get_args(Status)}", lambda v: v in get_args(Status)),
    "Criterion": (f"one of {get_args(Criterion)}", lambda v: v in get_args(Criterion)),
    "Goal": ("a goal", lambda v: isinstance(v, Goal)),
    "Mapping[str, Any]": ("a mapping", lambda v: isinstance(v, Mapping)),
    "Mapping[str, float]": (
        "numbers by name",
        lambda v: isinstance(v, Mapping) and all(map(_is_number, v.values())),
    ),
    "Mapping[str, Array]": (
        "arrays by name",
        lambda v: isinstance(v, Mapping) and all(map(_is_numbers, v.values())),
    ),
}


def _require(where: str, declared: str, value: Any) -> None:
    """Refuse what does not fit the declared type of a field."""
    kind, _, optional = declared.partition(" | ")
    if value is None and optional == "None":
        return
    if kind in _FITS:
        wanted, fits = _FITS[kind]
        if not fits(value):
            raise ModelFileError(f"{where} must be {wanted}, it is a {type(value).__name__}.")
    elif kind in RECORDS and not isinstance(value, RECORDS[kind]):
        raise ModelFileError(f"{where} must be a {kind}, it is a {type(value).__name__}.")


def check_agreement(
    estimate: CorrelationEstimate,
    result: Decorrelation,
    threshold: Threshold | None,
    moments: Moments,
) -> None:
    """Refuse parts that contradict each other, or that no table leads to."""
    p, k = moments.n_features, len(result.names)
    if estimate.names != moments.names or estimate.R.shape != (p, p):
        raise ModelFileError("Its parts are about different columns.")
    for name, array in (("mean", estimate.mean), ("scale", estimate.scale)):
        if array.shape != (p,) or not np.isfinite(array).all():
            raise ModelFileError(f"The {name} must be one finite number per column.")
    if not (estimate.scale >= SMALLEST_SPREAD).all():
        raise ModelFileError("A scale is zero, negative, or too small for any table.")
    for name in ("fidelity", "rho_min", "prices", "weights"):
        if getattr(result, name).shape != (k,):
            raise ModelFileError(f"result.{name} must have one number per output.")
    found = result.on_rows
    if found is not None and (found.names != result.names or found.fidelity.shape != (k,)):
        raise ModelFileError("What was measured on its rows is about other outputs.")
    if not math.isfinite(result.objective) or result.lower_bound > result.objective + _AGREEMENT:
        raise ModelFileError("The residual and its lower bound contradict each other.")
    if threshold is not None and not (
        -_AGREEMENT <= threshold.lower <= threshold.upper + _AGREEMENT
    ):
        raise ModelFileError("The bounds of the threshold contradict each other.")
    if isinstance(result.T, np.ndarray) and not estimate.is_wide:
        _check_result(estimate.R, result, p, k)
    elif isinstance(result.T, LowRankTransform) and estimate.is_wide:
        _check_factors(estimate.R.factor, result, p)
    elif not estimate.is_wide or result.anchors is None:
        raise ModelFileError("Its transformation does not fit its correlations.")


def _check_factors(A: Array, result: Decorrelation, p: int) -> None:
    """The same for a wide table, in the dimensions of its rows."""
    T = result.T
    r = A.shape[0]
    if T.left.shape != (p, r) or T.right.shape != (r, p):
        raise ModelFileError("The factors of the transformation do not fit the columns.")
    if not (np.isfinite(T.left).all() and np.isfinite(T.right).all()):
        raise ModelFileError("The factors of the transformation must be finite.")
    U = A + (A @ T.left) @ T.right
    if not np.abs(np.linalg.norm(U, axis=0) - 1.0).max() <= _AGREEMENT:
        raise ModelFileError("The outputs of its transformation have no unit variance.")
    if np.abs(np.einsum("ij,ij->j", A, U) - result.fidelity).max() > _AGREEMENT:
        raise ModelFileError("Its fidelities are not those of its transformation.")
    residual = criterion_of(U, result.criterion, result.pair_weights)
    if abs(residual - result.objective) > _AGREEMENT * max(1.0, residual):
        raise ModelFileError("Its residual is not that of its transformation.")


def _check_result(R: Array, result: Decorrelation, p: int, k: int) -> None:
    """Recompute what a result says about its transformation."""
    T = result.T
    if T.shape != (p, k) or not np.isfinite(T).all():
        raise ModelFileError("The transformation must be finite, with a row for each column.")
    G = T.T @ R @ T
    # Large coefficients magnify the rounding of R.
    allowed = _AGREEMENT * max(1.0, 1e-8 * float(np.abs(T).max()) ** 2)
    if not np.abs(np.diag(G) - 1.0).max() <= allowed:
        raise ModelFileError("The outputs of its transformation have no unit variance.")
    if isinstance(result.correlation, np.ndarray) and (
        result.correlation.shape != G.shape or np.abs(result.correlation - G).max() > allowed
    ):
        raise ModelFileError("Its correlations are not those of its transformation.")
    if result.anchors is None:
        fidelity = np.diag(R @ T)
        if np.abs(fidelity - result.fidelity).max() > allowed:
            raise ModelFileError("Its fidelities are not those of its transformation.")
    residual = measures.residual_by(
        result.criterion, G, np.eye(k), pair_weights=result.pair_weights
    )
    if abs(residual - result.objective) > allowed * max(1.0, k * k, residual):
        raise ModelFileError("Its residual is not that of its transformation.")
