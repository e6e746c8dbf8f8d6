"""Matrix operations of the solvers: NumPy and LAPACK, or the library that holds the matrix.

A matrix of PyTorch stays on its device, and products and decompositions run there in float64.
Vectors, and everything that is decided from them, are NumPy's. PyTorch nearly agrees with the array
API standard, so its strict reference library, with which the tests run, works too.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
EPS = float(np.finfo(np.float64).eps)

_GRADED = 1e-6  # ratio of column lengths below which bidiagonal reduction loses too many digits
_LIBRARIES = ("torch", "array_api_strict")


def read_only(a: Any) -> Array:
    """Return ``a`` as a float64 array that cannot be written to (a view where possible)."""
    out = np.asarray(a, dtype=np.float64).view()
    out.flags.writeable = False
    return out


class Frozen:
    """Makes the arrays and mappings of a frozen dataclass read-only."""

    def __post_init__(self) -> None:
        for name, value in list(self.__dict__.items()):
            if isinstance(value, np.ndarray):
                value = read_only(value) if value.dtype.kind == "f" else value.view()
                value.flags.writeable = False
            elif isinstance(value, dict):
                value = MappingProxyType(dict(value))
            else:
                continue
            object.__setattr__(self, name, value)

    def __reduce__(self) -> Any:
        # mapping proxies cannot be pickled, and arrays would come back writable
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        proxies = {name: dict(v) for name, v in values.items() if isinstance(v, MappingProxyType)}
        return partial(type(self), **(values | proxies)), ()


def library(A: Any) -> Any:
    """The functions that work on ``A``: those of its own library, or else NumPy's."""
    if type(A) is np.ndarray:
        return np
    name = type(A).__module__.partition(".")[0]
    return sys.modules[name] if name in _LIBRARIES else np


def to_host(A: Any) -> Any:
    """``A`` as a NumPy array; what belongs to no other library is handed back as it is."""
    xp = library(A)
    if xp is np:
        return A
    return A.detach().cpu().numpy() if xp.__name__ == "torch" else np.asarray(A)


def to_device(a: Any, A: Any) -> Any:
    """The array ``a`` in the library and on the device of ``A``; one that lies there stays."""
    xp = library(A)
    if xp is np or library(a) is xp:
        return a
    return xp.asarray(a, device=A.device)


def zeros(shape: tuple[int, int], A: Any) -> Any:
    """A matrix of zeros in the library and on the device of ``A``."""
    xp = library(A)
    return xp.zeros(shape) if xp is np else xp.zeros(shape, dtype=xp.float64, device=A.device)


def identity(n: int, A: Any) -> Any:
    """The identity in the library and on the device of ``A``."""
    return plus_diagonal(zeros((n, n), A), 1.0)


def diagonal_matrix(values: Any) -> Any:
    """The matrix with these values on its diagonal, in the library that holds them."""
    return plus_diagonal(zeros((values.shape[0], values.shape[0]), values), values)


def submatrix(A: Any, rows: Index, columns: Index) -> Any:
    """A copy of some rows and columns."""
    if isinstance(A, np.ndarray):
        return A[np.ix_(rows, columns)]
    return A[to_device(rows[:, None], A), to_device(columns[None, :], A)]


def blocks(A: Any, B: Any, C: Any, D: Any) -> Any:
    """``[[A, B], [C, D]]``; zeros where C is None."""
    C = zeros((D.shape[0], A.shape[1]), A) if C is None else C
    return joined([joined([A, B]), joined([C, D])], 0)


def joined(parts: list[Any], axis: int = 1) -> Any:
    """Matrices side by side, or below each other."""
    xp = library(parts[0])
    return np.concatenate(parts, axis) if xp is np else xp.concat(parts, axis=axis)


def own_diagonal(A: Any) -> Any:
    """A copy of the diagonal, in the library of ``A``."""
    return 1.0 * (A.diagonal() if hasattr(A, "diagonal") else library(A).linalg.diagonal(A))


def diagonal(A: Any) -> Array:
    """The diagonal, in NumPy."""
    return np.asarray(to_host(own_diagonal(A)))


def plus_diagonal(A: Any, values: Any, *, first: int = 0) -> Any:
    """``A`` with ``values[j]`` added to the entries ``(first + j, j)``, in place where possible."""
    if hasattr(A, "diagonal"):
        below = A.diagonal(-first)
        if isinstance(A, np.ndarray):
            below.setflags(write=True)  # a view, which NumPy protects unless told otherwise
        below += values if isinstance(values, float) else to_device(values, A)
        return A
    here = np.arange(A.shape[1])
    rows, columns = np.arange(A.shape[0])[:, None], first + here[None, :]
    more = to_device(np.broadcast_to(to_host(values), here.shape)[None, :].copy(), A)
    return library(A).where(to_device(rows, A) == to_device(columns, A), A + more, A)


def symmetric(A: Any) -> Any:
    """``½ (A + Aᵀ)``, symmetric to the last bit."""
    total = A + A.T
    total *= 0.5
    return total


def scaled(A: Any, d: Array) -> Any:
    """``D A D`` for ``D = Diag(d)``."""
    if isinstance(A, np.ndarray):
        return A * (d[:, None] * d)
    d = to_device(d, A)
    return d[:, None] * A * d[None, :]


def inner(A: Any, B: Any) -> float:
    """``Σ A_ij B_ij``."""
    return float(np.vdot(A, B) if isinstance(A, np.ndarray) else library(A).sum(A * B))


def column_dots(A: Any, B: Any) -> Array:
    """``diag(AᵀB)``, in NumPy; of stacks too."""
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("...ij,...ij->...j", A, B))
    return np.asarray(to_host(library(A).sum(A * B, axis=-2)))


def column_sums(A: Any) -> Array:
    """The sum of each column, in NumPy."""
    return np.asarray(to_host(library(A).sum(A, axis=0)))


def row_products(A: Any, B: Any) -> Any:
    """``diag(ABᵀ)``, in the library of ``A``."""
    return np.einsum("ij,ij->i", A, B) if library(A) is np else library(A).sum(A * B, axis=1)


def largest_ratio(a: Any, b: Any) -> float:
    """The largest entry of ``a / b`` for positive ``b``; minus infinity where there is none."""
    if isinstance(a, np.ndarray):
        return float(np.max(a / b, initial=-np.inf))
    return float(library(a).max(a / b))


def norm(A: Any) -> float:
    """Frobenius norm."""
    return float(np.sqrt(inner(A, A)))


def one_norm(A: Any) -> float:
    """The largest sum of absolute values in a column."""
    xp = library(A)
    return float(np.max(to_host(xp.sum(xp.abs(A), axis=0))))


def largest(A: Any, axis: int) -> Array:
    """The largest absolute value along ``axis``, which is kept, in NumPy."""
    xp = library(A)
    if xp is np:
        return np.asarray(np.max(np.abs(A), axis=axis, keepdims=True, initial=0.0))
    reduce = xp.amax if hasattr(xp, "amax") else xp.max
    return np.asarray(to_host(reduce(xp.abs(A), axis=axis, keepdims=True)))


def eigh(A: Any, *, overwrite: bool = False) -> tuple[Any, Any]:
    """Eigenvalues in rising order and eigenvectors; ``overwrite`` gives ``A`` up to NumPy."""
    if not isinstance(A, np.ndarray):
        values, vectors = library(A).linalg.eigh(A)
        return values, vectors
    if len(A) == 1:  # SciPy 1.12 gives too little room for it
        return A[0], np.ones((1, 1))
    values, vectors, info = sla.lapack.dsyevd(A, lower=1, overwrite_a=overwrite)
    if info != 0:
        raise np.linalg.LinAlgError("the eigenvalues did not converge")
    return values, vectors


def right_singular(A: Any) -> tuple[Any, Any]:
    """Singular values of a nonsingular matrix, and the right singular vectors as columns.

    On devices, where singular value decompositions are slow, they are the eigenvalues and vectors
    of the polar factor ``(AᵀA)^{1/2}``, which has the accuracy of a singular value decomposition.
    """
    if isinstance(A, np.ndarray):
        lengths = np.sqrt(column_dots(A, A))
        if lengths.min() < _GRADED * lengths.max():
            return _jacobi(A)
        _, values, vt = sla.svd(A, check_finite=False)
        return values, vt.T
    S = _orthogonal_factor(A).T @ A
    return eigh((S + S.T) / 2)


def _jacobi(A: Array) -> tuple[Array, Array]:
    """Singular values and right singular vectors by one-sided Jacobi rotations.

    Columns of any scale keep their relative accuracy (Drmač and Veselić, 2008).
    """
    scaled_values, _, V, work, _, info = sla.lapack.dgejsv(A, joba=0, jobu=3, jobv=0, jobt=0)
    if info != 0:
        raise sla.LinAlgError("the singular value decomposition did not converge")
    return np.asarray(scaled_values * (work[0] / work[1])), np.asarray(V)


def _orthogonal_factor(A: Any) -> Any:
    """``A (AᵀA)^{-1/2}`` by Newton's iteration, scaled as by Higham (1986)."""
    for _ in range(30):
        inverse = library(A).linalg.inv(A).T
        sizes = [one_norm(inverse), one_norm(inverse.T), one_norm(A), one_norm(A.T)]
        scale = (sizes[0] * sizes[1] / (sizes[2] * sizes[3])) ** 0.25
        following = 0.5 * scale * A + (0.5 / scale) * inverse
        change, A = norm(following - A), following
        if change < 1e-9 * norm(A):
            break
    return A


def cholesky(A: Any) -> Any:
    """The lower factor of a positive definite matrix."""
    factor = cholesky_or_none(A)
    if factor is None:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return factor


def cholesky_or_none(A: Any) -> Any:
    """The lower factor, or None where ``A`` is not positive definite."""
    xp = library(A)
    if xp is np:
        # LAPACK itself: at moderate sizes the checks around it cost more than the work.
        factor, info = sla.lapack.dpotrf(A, lower=1, clean=1)
        return factor if info == 0 else None
    if xp.__name__ == "torch":
        factor, info = xp.linalg.cholesky_ex(A)
        return factor if int(info) == 0 else None
    try:
        return xp.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None


def solve_factored(factor: Any, b: Any) -> Any:
    """Solve for a vector by the lower factor of the matrix, in the library that holds ``b``."""
    if isinstance(factor, np.ndarray):
        return sla.lapack.dpotrs(factor, b, lower=1)[0]
    half = solve_lower(factor, to_device(b, factor)[:, None])
    x = solve_lower(factor, half, transposed=True)[:, 0]
    return to_host(x) if isinstance(b, np.ndarray) else x


def inverse_factored(factor: Any) -> Any:
    """The inverse by the lower factor: small entries of a graded matrix stay accurate."""
    if isinstance(factor, np.ndarray):
        half, _ = sla.lapack.dtrtri(factor, lower=1)
    else:
        half = solve_lower(factor, identity(factor.shape[0], factor))
    return half.T @ half


def solve_lower(factor: Any, B: Any, *, transposed: bool = False) -> Any:
    """``L⁻¹B`` or ``L⁻ᵀB``."""
    xp = library(factor)
    if xp is np:
        return sla.lapack.dtrtrs(factor, B, lower=1, trans=1 if transposed else 0)[0]
    if xp.__name__ == "torch":
        return xp.linalg.solve_triangular(factor.T if transposed else factor, B, upper=transposed)
    return xp.linalg.solve(factor.T if transposed else factor, B)


def solve_positive(A: Any, B: Any) -> Any:
    """``A⁻¹ B`` for a positive definite ``A``."""
    if isinstance(A, np.ndarray):
        return solve_factored(cholesky(A), B)
    return library(A).linalg.solve(A, B)
