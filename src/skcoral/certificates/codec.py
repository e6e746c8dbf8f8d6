"""Values, arrays and records as JSON: the one codec of certificate, model and moments files.

What JSON has no type for is an object with one ``$`` key: arrays, tuples, tables, and the
dataclasses that a file may hold. Python writes the shortest decimal that reads back as the same
float, so no bit is lost. The checksum finds truncation and accidental changes; it is no signature,
and a file can be altered together with it, so every field is validated by its declared type.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields
from itertools import chain
from typing import Any

import numpy as np

from skcoral.certificates.reading import check_type
from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
from skcoral.core.results import (
    Decorrelation,
    Notes,
    RestrictedDecorrelation,
    SingularDecorrelation,
    SingularThreshold,
    Threshold,
)
from skcoral.core.solution import Budget, Certificate, Floors, SupportSearch, VifLimit

#: What decoding a text that is not what it should be can end in.
DAMAGED = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
_ARRAY_KINDS = "bifU"  # truth values, whole numbers, floats and text; nothing that can run
_WORDS = {"inf", "-inf", "nan"}  # numbers that JSON does not have


def sealed(kind: str, version: int, content: Any) -> str:
    """The text of a file: what it is, a checksum, and its content."""
    envelope = {"format": kind, "version": version, "checksum": checksum(content)}
    return json.dumps({**envelope, "content": content}, allow_nan=False, ensure_ascii=False) + "\n"


def unsealed(data: bytes | str, kind: str, version: int, parts: set[str]) -> dict[str, Any]:
    """The content of a file of this kind and version with these parts, if its checksum fits."""
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    try:
        envelope = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except DAMAGED as error:
        raise ValueError(f"truncated, or not a {kind} file ({str(error)[:200]})") from error
    if not isinstance(envelope, dict) or envelope.get("format") != kind:
        came = envelope.get("format") if isinstance(envelope, dict) else type(envelope).__name__
        raise ValueError(f"not a {kind} file (its format is {str(came)[:60]!r})")
    written = envelope.get("version")
    if type(written) is not int or written != version:
        raise ValueError(
            f"format version {str(written)[:60]}, and this release reads version {version}: "
            "make the file again, or use the release that wrote it"
        )
    content = envelope.get("content")
    if set(envelope) != {"format", "version", "checksum", "content"} or not (
        isinstance(content, dict) and set(content) == parts
    ):
        raise ValueError(f"its parts are not those of a {kind} file")
    if envelope["checksum"] != checksum(content):
        raise ValueError("the content does not fit its checksum, so the file was altered")
    return content


def checksum(content: Any) -> str:
    """Digest of the content, whatever its white space and order."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is given twice: readers would differ on which one counts."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key is given twice")
    return entries


class Codec:
    """Encodes and decodes plain values, arrays, tables and these records."""

    def __init__(self, *records: type[Any]) -> None:
        self.records = {kind.__name__: kind for kind in records}

    def encode(self, value: Any, where: str = "the file") -> Any:
        """Plain JSON for a value; ``where`` is its place in messages."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"$float": repr(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.ndarray) and value.dtype.kind in _ARRAY_KINDS:
            return _encoded_array(value)
        if isinstance(value, Mapping):
            pairs = [(key, self.encode(v, where)) for key, v in value.items()]
            if all(isinstance(key, str) and key[:1] != "$" for key in value):
                return dict(pairs)
            return {"$map": [[self.encode(key, where), v] for key, v in pairs]}
        if isinstance(value, tuple | list):
            items = [self.encode(v, where) for v in value]
            return {"$tuple": items} if isinstance(value, tuple) else items
        if type(value).__name__ in self.records:
            parts = {f.name: self.encode(getattr(value, f.name), where) for f in fields(value)}
            return {"$record": type(value).__name__, **parts}
        if hasattr(value, "columns") and hasattr(value, "to_numpy"):
            cells = value.to_numpy()
            cells = cells.tolist() if cells.dtype == object else cells  # text beside numbers: rows
            rows = list(map(str, value.index)) if hasattr(value, "index") else None
            table = {"columns": list(map(str, value.columns)), "index": rows}
            return {"$frame": self.encode(cells, where), **table}
        if hasattr(value, "index") and hasattr(value, "to_dict"):
            return {
                "$series": self.encode(list(value), where),
                "index": list(map(str, value.index)),
            }
        raise ValueError(
            f"{where} holds a {type(value).__name__}, which has no place in a file; use numbers, "
            "text, lists, dicts or arrays of numbers"
        )

    def decode(self, value: Any, kind: Any = object) -> Any:
        """Rebuild a value that was encoded; ``kind`` is the type that it must have."""
        decoded = self._decoded(value)
        if not isinstance(decoded, kind):
            wanted = getattr(kind, "__name__", str(kind))
            raise ValueError(f"{wanted} is expected, got {type(decoded).__name__}")
        return decoded

    def _decoded(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._decoded(v) for v in value]
        if not isinstance(value, dict):
            return value
        if not any(key.startswith("$") for key in value):
            return {key: self._decoded(v) for key, v in value.items()}
        if "$float" in value:
            return float(value["$float"])
        if "$array" in value:
            return _array(**{key.removeprefix("$"): v for key, v in value.items()})
        if "$map" in value:
            return {self._decoded(key): self._decoded(v) for key, v in value["$map"]}
        if "$tuple" in value:
            return tuple(self.decode(value["$tuple"], list))
        if "$record" in value:
            return self._record(**value)
        if "$frame" in value:
            import pandas as pd

            cells = self.decode(value["$frame"], np.ndarray | list)
            return pd.DataFrame(cells, columns=value["columns"], index=value["index"])
        if "$series" in value:
            import pandas as pd

            return pd.Series(self.decode(value["$series"], list), index=value["index"])
        raise ValueError(f"an entry with the keys {sorted(value)[:5]} has no meaning here")

    def _record(self, **value: Any) -> Any:
        name = value.pop("$record")
        if name not in self.records:
            raise ValueError(f"a record {str(name)[:60]!r} has no meaning here")
        kind, given = self.records[name], {key: self._decoded(v) for key, v in value.items()}
        for field in fields(kind):
            check_type(f"{name}.{field.name}", str(field.type), given[field.name])
            if field.type == "float":
                given[field.name] = float(given[field.name])
        return kind(**given)


def _encoded_array(a: Any) -> dict[str, Any]:
    """Nested lists, with the type where it is not float64 and the shape where it is lost."""
    cells = a.tolist()
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        cells = np.array([v if math.isfinite(v) else repr(v) for v in a.ravel().tolist()], object)
        cells = cells.reshape(a.shape).tolist()
    more: dict[str, Any] = {} if a.dtype == np.float64 else {"dtype": a.dtype.str}
    return {"$array": cells, **more, **({} if a.size else {"shape": list(a.shape)})}


def _array(array: Any, dtype: str = "<f8", shape: Any = None) -> Any:
    """An array; its size is that of the list in the file, whatever type and shape say."""
    kind = np.dtype(dtype).kind
    if kind not in _ARRAY_KINDS:
        raise ValueError(f"arrays of the type {dtype[:20]!r} have no meaning")
    if kind == "f":
        _check_numbers(array)
    # Texts are as long as they are, not as the type says.
    made = np.array(array, dtype=str if kind == "U" else np.dtype(dtype))
    return made if shape is None else made.reshape(shape)


def _check_numbers(cells: Any) -> None:
    """Refuse nested lists that hold texts or truth values: neither are numbers."""
    leaves: list[Any] = [cells]
    while list in (kinds := set(map(type, leaves))):
        leaves = list(chain.from_iterable(leaves))
    if kinds - {float, int}:
        odd = {a for a in leaves if type(a) not in (float, int)} - _WORDS
        if odd:
            raise ValueError(f"an array of numbers holds {str(odd.pop())[:40]!r}")


RESULTS = Codec(
    *(Budget, Certificate, Decorrelation, FactoredCorrelation, Floors, LowRankTransform, Notes),
    *(RestrictedDecorrelation, SingularDecorrelation, SingularThreshold, SupportSearch, Threshold),
    VifLimit,
)
