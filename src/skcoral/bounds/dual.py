"""Dual points as they are handed over: numbers of the right shape, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.exceptions import CertificateError

LARGEST = 1e100  # beyond it products leave the range of floating point


def numbers(
    value: Any,
    shape: tuple[int, ...],
    what: str,
    *,
    open_ended: bool = False,
    nonnegative: bool = False,
    symmetric: bool = False,
) -> Array:
    """Return an array of finite numbers of this shape; prices may also be infinite or undefined."""
    a = np.asarray(value)
    if a.dtype != np.float64 or a.shape != shape:
        raise CertificateError(f"{what} must be {_told(shape)}, got {_told(a.shape)} ({a.dtype}).")
    if not open_ended and not np.isfinite(a).all():
        raise CertificateError(f"{what} holds numbers that are not finite.")
    with np.errstate(invalid="ignore"):
        if np.any(np.abs(a[np.isfinite(a)]) > LARGEST):
            raise CertificateError(f"{what} holds numbers beyond {LARGEST:g}.")
    if nonnegative and np.any(a < 0):
        raise CertificateError(
            f"{what} holds a negative number ({a.min():.3g}): it proves nothing."
        )
    if symmetric and not np.array_equal(a, a.T):
        raise CertificateError(f"{what} is not symmetric.")
    return a


def number(value: Any, what: str) -> float:
    """Return one finite number."""
    if type(value) not in (float, int, np.float64, np.float32):  # subclasses may compare otherwise
        raise CertificateError(f"{what} must be a number, got {value!r}.")
    if not abs(float(value)) <= LARGEST:
        raise CertificateError(f"{what} must be finite, got {value!r}.")
    return float(value)


def multipliers_and_matrix(
    arrays: Mapping[str, Array], names: tuple[str, str], k: int
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Multipliers, the matrix that goes with them, and the outputs that it covers.

    Outputs without a multiplier are left out of the matrix.
    """
    first, second = (f"`{name}`" for name in names)
    weights, matrix = numbers(arrays[names[0]], (k,), first, nonnegative=True), arrays[names[1]]
    on = np.flatnonzero(weights > 0)
    if not len(on):
        raise CertificateError("all weights are zero: they prove nothing.")
    matrix = numbers(matrix, (len(on), len(on)), second, symmetric=True)
    return weights, matrix, on


def _told(shape: tuple[int, ...]) -> str:
    if not shape:
        return "one number"
    if len(shape) == 1:
        return f"{shape[0]} numbers"
    return " by ".join(map(str, shape)) + " numbers"
