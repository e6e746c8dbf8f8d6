"""Where the heavy algebra runs: NumPy and LAPACK, or the library that holds the matrix.

A matrix of PyTorch or CuPy stays on its device, and products and decompositions run there in
float64. Vectors, and everything that is decided from them, are NumPy's. These are the only
operations on matrices that the exact regime needs; beyond their names PyTorch and CuPy agree with
the array API standard on them, so its strict reference library works too.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


_LIBRARIES = ("torch", "cupy", "array_api_strict")


def library(A: Any) -> Any:
    """The functions that work on ``A``: those of its own library, or else NumPy's."""
    name = type(A).__module__.partition(".")[0]
    return sys.modules[name] if name in _LIBRARIES else np


def to_host(A: Any) -> Any:
    """``A`` as a NumPy array; what belongs to no other library is handed back as it is."""
    xp = library(A)
    if xp is np:
        return A
    if xp.__name__ == "torch":
        return A.detach().cpu().numpy()
    return A.get() if xp.__name__ == "cupy" else np.asarray(A)


def beside(a: Array | Index, A: Any) -> Any:
    """The NumPy array ``a`` in the library and on the device of ``A``."""
    xp = library(A)
    if xp is np:
        return a
    if xp.__name__ == "cupy":
        with A.device:
            return xp.asarray(a)
    return xp.asarray(a, device=A.device)


def block(A: Any, rows: Index, columns: Index) -> Any:
    """A copy of some rows and columns."""
    if isinstance(A, np.ndarray):
        return A[np.ix_(rows, columns)]
    return A[beside(rows[:, None], A), beside(columns[None, :], A)]


def diagonal(A: Any) -> Array:
    """The diagonal, in NumPy."""
    own = hasattr(A, "diagonal")
    return np.asarray(to_host(A.diagonal() if own else library(A).linalg.diagonal(A)))


def plus_diagonal(A: Any, value: float, *, first: int = 0) -> Any:
    """``A`` with ``value`` added to the entries ``(first + j, j)``; NumPy's in place."""
    here = np.arange(A.shape[1])
    if isinstance(A, np.ndarray):
        A[first + here, here] += value
        return A
    rows, columns = np.arange(A.shape[0])[:, None], first + here[None, :]
    return library(A).where(beside(rows, A) == beside(columns, A), A + value, A)


def scaled(A: Any, d: Array) -> Any:
    """``D A D`` for ``D = Diag(d)``."""
    if isinstance(A, np.ndarray):
        return A * np.outer(d, d)
    d = beside(d, A)
    return d[:, None] * A * d[None, :]


def column_dots(A: Any, B: Any) -> Array:
    """``diag(AᵀB)``, in NumPy."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("ij,ij->j", A, B))
    return np.asarray(to_host(library(A).sum(A * B, axis=0)))


def row_dots(A: Any, B: Any) -> Array:
    """``diag(ABᵀ)``, in NumPy."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", A, B))
    return np.asarray(to_host(library(A).sum(A * B, axis=1)))


def norm(A: Any) -> float:
    """Frobenius norm."""
    return float(np.linalg.norm(A) if isinstance(A, np.ndarray) else library(A).sum(A * A) ** 0.5)


def one_norm(A: Any) -> float:
    """The largest sum of absolute values in a column."""
    xp = library(A)
    return float(np.max(to_host(xp.sum(xp.abs(A), axis=0))))


def largest(A: Any, axis: int) -> Array:
    """The largest absolute value along ``axis``, which is kept, in NumPy."""
    xp = library(A)
    reduce = xp.amax if hasattr(xp, "amax") else xp.max
    return np.asarray(to_host(reduce(xp.abs(A), axis=axis, keepdims=True)))


def eigh(A: Any) -> tuple[Any, Any]:
    """Eigenvalues in rising order and eigenvectors; ``A`` may be overwritten."""
    if isinstance(A, np.ndarray):
        values, vectors = sla.eigh(A, overwrite_a=True, check_finite=False)
    else:
        values, vectors = library(A).linalg.eigh(A)
    return values, vectors


def right_singular(A: Any) -> tuple[Any, Any]:
    """Singular values in falling order, and the right singular vectors as rows."""
    if isinstance(A, np.ndarray):
        _, values, vt = sla.svd(A, check_finite=False)
    else:
        _, values, vt = library(A).linalg.svd(A)
    return values, vt


def cholesky(A: Any) -> Any:
    """The lower factor of a positive definite matrix."""
    if isinstance(A, np.ndarray):
        return sla.cholesky(A, lower=True, check_finite=False)
    return library(A).linalg.cholesky(A)


def solve_positive(A: Any, B: Any) -> Any:
    """``A⁻¹ B`` for a positive definite ``A``."""
    if isinstance(A, np.ndarray):
        return sla.cho_solve(sla.cho_factor(A, lower=True, check_finite=False), B)
    return library(A).linalg.solve(A, B)
