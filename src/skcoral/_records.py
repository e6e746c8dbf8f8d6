"""What frozen results are made of: types of their fields, and arrays that cannot be written to."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skcoral._arrays import Array as Array
from skcoral._lowrank import FactoredCorrelation, LowRankTransform

Status = Literal["exact", "optimal", "best_found", "not_converged"]
Criterion = Literal["squared", "worst", "absolute"]


def read_only(a: Any) -> Array:
    """Return ``a`` as a float64 array that cannot be written to (a view where possible)."""
    out = np.asarray(a, dtype=np.float64).view()
    out.flags.writeable = False
    return out


def freeze(obj: Any, *fields: str) -> None:
    """Make array fields of a frozen record read-only."""
    for name in fields:
        if isinstance(getattr(obj, name), LowRankTransform | FactoredCorrelation):
            continue  # read-only by themselves
        object.__setattr__(obj, name, read_only(getattr(obj, name)))
