"""Linear algebra beyond NumPy and SciPy: Gram matrices to full accuracy, conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack

from skcoral.core.arrays import (
    EPS,
    Array,
    cholesky_or_none,
    column_dots,
    diagonal,
    inner,
    largest,
    library,
    norm,
    one_norm,
    plus_diagonal,
    solve_lower,
    to_device,
    zeros,
)
from skcoral.core.lowrank import MANY, FactoredCorrelation
from skcoral.core.tolerances import SINGULAR_TOL

# The least pivot above which a Cholesky factor is accurate as it is: to 1e-12 in TᵀRT. At a tenth
# of it absolute sums over fifty variables keep open gaps of 1e-7.
_WEAK = 1e-2
_CHUNK = 256  # columns at a time, to bound the memory: those of ten thousand rows take 20 MB
_MANY_DIGITS = 1e5  # times the unit rounding of 1e-16 stays below what is promised of a number
_PART_OF_NONE = 1e-9  # of the null vectors: a variable with less takes part in no dependency
_CERTAINLY_REGULAR = 1e-10  # a condition estimate that leaves no doubt about the rank
_FEW_DIMENSIONS = 6  # in which a tree finds neighbours faster than all products do


def slices(A: Any, axis: int, count: int = 3) -> list[Any]:
    """``A`` as a sum of ``count`` matrices, all but the last of few bits below the largest entry.

    A sum along ``axis`` (the dimension that a product sums over) of products of those fits into 53
    bits, whatever its order, so that it is exact (Ozaki, Ogita, Oishi and Rump, 2012).
    """
    bits = (53 - (max(A.shape[axis], 2) - 1).bit_length()) // 2
    parts = []
    rest = A
    for _ in range(count - 1):
        _, exponent = np.frexp(largest(rest, axis))
        shift = to_device(np.ldexp(0.75, exponent + (53 - bits)), A)
        head = (rest + shift) - shift
        parts.append(head)
        rest = rest - head
    parts.append(rest)
    return parts


def _exact_product(A: Any, B: Any) -> tuple[Any, Any]:
    """``A @ B`` as an unevaluated sum of two matrices, good to about twice working precision.

    Both factors are split so that each partial product is free of rounding, and the partial
    products are added with compensation.
    """
    left, right = slices(A, 1), slices(B, 0)
    high: Any = 0.0
    low: Any = 0.0
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            if i + j < 4:  # the last pair is below the rounding of the sum
                high, lost = two_sum(high, a @ b)
                low += lost
    return high, low


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and what rounding took, exactly (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def precise_column_dots(A: Any, B: Any) -> Array:
    """``diag(AᵀB)`` in NumPy, to twice the working precision of its terms: they may cancel."""
    dots: list[float] = []
    for start in range(0, A.shape[1], _CHUNK):
        columns = slice(start, min(start + _CHUNK, A.shape[1]))
        left, right = slices(A[:, columns], 0), slices(B[:, columns], 0)
        parts = [column_dots(a, b) for a in left for b in right]
        dots += [math.fsum(terms) for terms in zip(*parts, strict=True)]
    return np.array(dots)


def precise_product(A: Any, B: Any) -> Any:
    """``A @ B``, rounded once: its terms may cancel."""
    high, low = _exact_product(A, B)
    return high + low


def regular_factor(R: Array, least: float) -> Array | None:
    """The Cholesky factor (lower triangle) if LAPACK estimates 1/condition above ``least``."""
    factor, failed = lapack.dpotrf(R, lower=1)
    if failed:
        return None
    rcond, _ = lapack.dpocon(factor, np.abs(R).sum(axis=0).max(), uplo="L")
    return np.asarray(factor) if rcond > least else None


def accurate_factor(R: Any) -> Any:
    """The lower Cholesky factor of ``R``, accurate even where R is nearly singular; None if not.

    The product of a computed factor L is off by roundings of R's largest entries, which ``TᵀRT``
    multiplies by cond(R). With ``E = R - LLᵀ`` to twice the working precision and Φ the lower half
    of ``L⁻¹EL⁻ᵀ``, ``L (I + Φ)`` is off by their square, and by roundings times cond(L).
    """
    factor = cholesky_or_none(R)
    if factor is None or float(diagonal(factor).min()) > _WEAK:
        return factor
    high, low = _exact_product(factor, factor.T)
    half = solve_lower(factor, (R - high) - low)
    lower = library(R).tril(solve_lower(factor, half.T))
    return factor + factor @ plus_diagonal(lower, -0.5 * diagonal(lower))


def gram_rounding(R: Any, T: Any) -> float:
    """Estimate the rounding error of a plain product ``TᵀRT``; zero if it is too large for one."""
    usual = EPS * norm(T) ** 2 * one_norm(R)
    return usual if usual < 1e-11 * np.sqrt(R.shape[0]) else 0.0


def gram_defect(R: Any, T: Any, *, precise: bool = False) -> Any:
    """Return ``TᵀRT - I``, accurate even when ``T`` is large because ``R`` is nearly singular.

    To 1e-11 or so, and as far as the digits of ``R`` and ``T`` go if ``precise``.
    """
    if not precise and gram_rounding(R, T) > 0:
        defect = T.T @ (R @ T)
        defect = plus_diagonal(defect, -1.0)
    else:
        defect = zeros((T.shape[1], T.shape[1]), T)
        for start in range(0, T.shape[1], _CHUNK):
            columns = slice(start, min(start + _CHUNK, T.shape[1]))
            high, low = _exact_product(R, T[:, columns])
            gram, rest = _exact_product(T.T, high)
            gram = plus_diagonal(gram, -1.0, first=start)
            defect[:, columns] = gram + (rest + T.T @ low)
    return (defect + defect.T) / 2


def of_unit_variance(R: Array, T: Array) -> Array:
    """``T`` with columns scaled to unit variance, as far as its digits go."""
    defect = np.diag(gram_defect(R, T, precise=True))
    return np.asarray(T / np.sqrt(1.0 + defect))


def raised_to_floors(R: Array, T: Array, sources: Array, floors: Array) -> Array:
    """Columns of unit variance, turned towards their sources where rounding took a floor from them.

    ``sources`` are columns of unit variance as well: those of the identity, or composites.
    """
    T = of_unit_variance(R, T)
    image = precise_product(R, sources)
    turn = 1e-16
    while turn < 1e-2:
        short = np.flatnonzero(column_dots(image, T) < floors)
        if not len(short):
            break
        T[:, short] = of_unit_variance(R, (1 - turn) * T[:, short] + turn * sources[:, short])
        turn *= 4.0
    return T


def make_exact(R: Any, T: Any) -> tuple[Any, Any]:
    """Push ``T`` onto the exact decorrelators of ``R``; return it with ``TᵀRT - I``.

    Newton-Schulz steps towards ``T (TᵀRT)^{-1/2}``, the nearest exact decorrelator; they converge
    quadratically and stop when rounding of ``T`` itself is about all that is left.
    """
    defect = gram_defect(R, T)
    size = norm(defect)
    for _ in range(6):  # each squares the defect, so rounding is reached from 0.5
        if size < 1e-14 * R.shape[0]:
            break
        candidate = T - 0.5 * (T @ defect)
        new_defect = gram_defect(R, candidate)
        new_size = norm(new_defect)
        if not new_size < 0.5 * size:
            break
        T, defect, size = candidate, new_defect, new_size
    return T, defect


def correlation_of_covariance(C: Array) -> Array:
    """``C`` scaled to a unit diagonal, symmetric to the last bit."""
    spread = np.sqrt(np.diag(C))
    R = C / spread[:, None] / spread
    R = 0.5 * (R + R.T)
    np.fill_diagonal(R, 1.0)
    return R


def conjugate_gradient(
    apply: Callable[[Any], Any],
    right: Any,
    precondition: Callable[[Any], Any],
    *,
    rtol: float,
    max_iter: int,
    small: Callable[[Any], bool] = lambda _: True,
    start: Any = None,
    noise: float = 1e-12,
) -> tuple[Any, Any, int]:
    """Solve ``apply(X) = right``, on the device of ``right``; ``apply`` is positive definite.

    Returns X, what is left of the right side, and the number of steps. The right side and the
    ``start`` are overwritten.

    Stops when the preconditioned residual is ``rtol`` times the preconditioned right side and the
    residual itself is ``small``, or where rounding leaves nothing to gain: ``noise`` of the goal.
    """
    residual = right
    Z = precondition(residual)
    rz = inner(residual, Z)
    goal = rtol * rtol * rz
    X = 0.0 * right if start is None else start
    if start is not None:
        residual -= apply(start)
        Z = precondition(residual)
        rz = inner(residual, Z)
    direction = Z
    steps = 0
    most = 1e40 * rz  # where the equations have no solution, the residual grows without bound
    while steps < max_iter and not rz > most:
        if not rz > goal and (rz <= noise * goal or small(residual)):
            break
        del Z
        image = apply(direction)
        steps += 1
        curvature = inner(direction, image)
        if not curvature > 0.0:
            break
        step = rz / curvature
        X += step * direction
        image *= step
        residual -= image
        del image
        Z = precondition(residual)
        rz, previous = inner(residual, Z), rz
        direction *= rz / previous
        direction += Z
    return X, residual, steps


def spectral_norm(A: Any) -> float:
    """Estimate the spectral norm of a symmetric matrix from below, by eight power iterations."""
    x = to_device(np.linspace(1.0, 2.0, A.shape[0])[:, None], A)
    size = 0.0
    for _ in range(8):
        x = A @ x
        size = norm(x)
        if size == 0.0:
            return 0.0
        x = x / size
    return size


def inflation_factors(R: Any) -> Array:
    """The diagonal of ``R⁻¹`` of a matrix that needs no check.

    Infinite for the variables that others determine, and for all where ``R`` is indefinite.
    """
    R = np.asarray(R, dtype=np.float64)
    factor = regular_factor(R, _CERTAINLY_REGULAR)
    if factor is not None:
        inverse, _ = lapack.dtrtri(factor, lower=1)
        return np.asarray((np.tril(inverse) ** 2).sum(axis=0), dtype=np.float64)
    values, vectors = np.linalg.eigh(R)
    if values[0] < -SINGULAR_TOL * values[-1]:
        return np.full(len(R), np.inf)
    null = values <= SINGULAR_TOL * values[-1]
    free = np.linalg.norm(vectors[:, null], axis=1) <= _PART_OF_NONE
    return np.where(free, (vectors[:, ~null] ** 2 / values[~null]).sum(axis=1), np.inf)


def largest_residuals(G: Any) -> Array:
    """The largest absolute correlation of each variable with another one."""
    if isinstance(G, FactoredCorrelation) and len(G.factor) <= _FEW_DIMENSIONS < MANY < len(G):
        return _largest_by_neighbours(G.factor)
    out = np.empty(len(G))
    for columns, block in blocks_of(G):
        size = np.abs(block)
        np.fill_diagonal(size[columns], 0.0)
        out[columns] = size.max(axis=0, initial=0.0)
    return out


def _largest_by_neighbours(U: Array) -> Array:
    """The same for unit vectors of few dimensions, in p log p operations instead of p².

    ‖u ∓ v‖² = 2 ∓ 2 uᵀv: the largest |uᵀv| is that of the nearest of all vectors and their
    opposites, u itself aside.
    """
    from scipy.spatial import KDTree

    p = U.shape[1]
    points = np.concatenate([U, -U], axis=1).T
    _, near = KDTree(points).query(points[:p], k=2)
    other = np.where(near[:, 0] == np.arange(p), near[:, 1], near[:, 0])
    products: Array = np.einsum("ij,ij->i", points[:p], points[other])
    return np.abs(products)


def blocks_of(G: Array | FactoredCorrelation) -> Iterator[tuple[slice, Array]]:
    """Some columns of a matrix at a time, with a diagonal of one; an ordinary one is one block."""
    if not isinstance(G, FactoredCorrelation):
        yield slice(0, len(G)), G
        return
    for start in range(0, len(G), _CHUNK):
        columns = slice(start, min(start + _CHUNK, len(G)))
        block = G.factor.T @ G.factor[:, columns]
        np.fill_diagonal(block[columns], 1.0)
        yield columns, block


def many_digits(dual: Array, T: Array, unit: float = 1.0) -> bool:
    """Whether a dual point and a transformation are so large that rounding takes over.

    ``unit`` is the size of what is proved.
    """
    steep = max(float(np.abs(dual).max(initial=0.0)) / unit, 1.0)
    size = float(np.abs(T).max()) ** 2 * np.sqrt(len(T))  # roundings of a sum add up like this
    return bool(steep * max(size, 1.0) > _MANY_DIGITS)
