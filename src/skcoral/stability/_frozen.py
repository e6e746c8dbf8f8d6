"""A base class of results whose arrays are read-only."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from skcoral.results import read_only


class Frozen:
    """Makes every array field of a frozen dataclass read-only."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray) and value.dtype == np.float64:
                object.__setattr__(self, f.name, read_only(value))
