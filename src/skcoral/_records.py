"""What frozen results are made of: types of their fields, and arrays that cannot be written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from skcoral._arrays import Array as Array
from skcoral._arrays import read_only as read_only

Status = Literal["exact", "optimal", "best_found", "not_converged"]
Criterion = Literal["squared", "worst", "absolute"]


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
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            numbers = isinstance(value, list) and field.type in ("Any", "Array", "Array | None")
            if numbers or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
                value = read_only(value)
            elif isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            elif isinstance(value, Mapping):
                value = MappingProxyType(dict(value))
            object.__setattr__(self, field.name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {
            key: dict(value) if isinstance(value, MappingProxyType) else value
            for key, value in self.__dict__.items()
        }  # mapping proxies cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()
