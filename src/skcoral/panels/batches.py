"""Linear algebra of batches: arrays whose first axis is the batch, each matrix on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skcoral.results import Array

Mask = NDArray[np.bool_]


class Batch:
    """A dataclass of arrays with the batch as their first axis, some of which may be absent."""

    def take(self, at: Any) -> Self:
        """Return those of some problems."""
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*(None if value is None else value[at] for value in values))

    def put(self, at: Any, other: Self) -> None:
        """Replace those at some places."""
        for name, values in vars(self).items():
            if values is not None:
                values[at] = getattr(other, name)


def add_diagonal(A: Array, d: Any) -> None:
    """Add to the diagonals, in place."""
    rows = np.arange(A.shape[1])
    A[:, rows, rows] += d


def _each(function: Callable[..., Any], A: Array, *more: Array) -> Array:
    """A function of a batch, or of each matrix alone where one of them fails: NaN for that one."""
    try:
        return np.asarray(function(A, *more), dtype=np.float64)
    except np.linalg.LinAlgError:
        if len(A) == 1:
            return np.full((more or (A,))[0].shape, np.nan)
        parts = (_each(function, *(b[k : k + 1] for b in (A, *more))) for k in range(len(A)))
        return np.concatenate(list(parts))


def solve(A: Array, b: Array) -> Array:
    """Solutions of linear equations; NaN for a singular matrix."""
    return _each(np.linalg.solve, A, b)


def inverse(A: Array) -> Array:
    """Inverses; NaN for a singular matrix."""
    return _each(np.linalg.inv, A)


def cholesky(A: Array) -> Array:
    """Cholesky factors; NaN for a matrix that is not positive definite."""
    return _each(np.linalg.cholesky, A)
