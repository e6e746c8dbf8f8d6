"""What frozen results are made of: types of their fields, and arrays that cannot be written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from skcoral.core.arrays import Array as Array
from skcoral.core.arrays import read_only as read_only

Status = Literal["exact", "optimal", "best_found", "not_converged"]
Criterion = Literal["squared", "worst", "absolute"]


_PLAIN = (float, str, int, tuple, type(None))  # values that cannot be changed anyway


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, bool], ...]:
    """Names of the fields of a dataclass, and whether a list in one is an array of numbers."""
    arrays = ("Any", "Array", "Array | None")
    return tuple((field.name, field.type in arrays) for field in fields(kind))


class Fidelities:
    """A result with one fidelity for each output."""

    fidelity: Array

    @property
    def min_fidelity(self) -> float:
        """The weakest correlation of an output with its source."""
        return float(self.fidelity.min())

    @property
    def mean_fidelity(self) -> float:
        """The mean correlation of the outputs with their sources."""
        return float(self.fidelity.mean())


class Frozen:
    """Makes the arrays and mappings of a frozen dataclass read-only."""

    def __post_init__(self) -> None:
        for name, of_numbers in _fields_of(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if isinstance(value, _PLAIN):
                continue
            numbers = of_numbers and isinstance(value, list)
            if numbers or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
                value = read_only(value)
            elif isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            elif isinstance(value, Mapping):
                value = MappingProxyType(dict(value))
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {
            key: dict(value) if isinstance(value, MappingProxyType) else value
            for key, value in self.__dict__.items()
        }  # mapping proxies cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()
