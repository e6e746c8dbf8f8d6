"""What a matrix must be, and what is said when it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from skcoral.core.arrays import (
    Array,
    cholesky_or_none,
    diagonal,
    inverse_factored,
    largest,
    library,
    one_norm,
    plus_diagonal,
    to_host,
)
from skcoral.core.deficiency import (
    Deficiency,
    Relations,
    dropped_share,
    factor_of,
    linear_relations,
    spectrum,
)
from skcoral.core.deficiency import listing as listing
from skcoral.exceptions import (
    CoralError,
    InvalidCorrelationError,
    InvalidTableError,
)

# LAPACK's estimate of the condition number may be too low by a modest factor, so anything within
# two digits of the limit is looked at again with an eigenvalue decomposition.
_SUSPICIOUS_RCOND = 1e-10
_WEIGHT_RANGE = (1e-100, 1e100)  # squares of sample weights stay within float64
_ROUNDING = 1e-12  # how far below zero an eigenvalue may be, relative to the largest


def float_array(value: Any, what: str, error: type[CoralError]) -> tuple[Array, float]:
    """Return ``value`` in float64, with the rounding unit of the type it came in.

    Text is refused even where it reads like a number, and so are dates; what is masked or missing
    becomes NaN.
    """
    value = to_host(value)
    if hasattr(value, "toarray"):
        raise error(f"{what} must be a dense array, got a sparse one: use {what}.toarray().")
    columns = getattr(value, "columns", None)
    if columns is not None and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if np.ma.isMaskedArray(value) and value.dtype.kind in "biufO":
        value = np.where(np.ma.getmaskarray(value), np.nan, np.ma.getdata(value))
    try:
        raw = np.asarray(value)
    except ValueError:
        raise error(
            f"{what} must be a regular array of numbers, got ragged rows (of unequal length)."
        ) from None
    if raw.dtype.kind == "c":
        raise error(f"{what} must be real, got complex numbers.")
    if raw.dtype.kind in "biuf":
        out = raw.astype(np.float64, copy=False)
    else:
        if raw.dtype.kind in "SU":
            raw = np.asarray(value, dtype=object)  # numbers beside text became text as well
        out = np.empty(raw.shape)
        for position, cell in np.ndenumerate(raw):
            number = _number_or_none(cell)
            if number is None:
                told = "got" if not position else f"{_place(raw, position, columns)} is"
                text = isinstance(cell, str | bytes)
                raise error(
                    f"{what} must contain only numbers; {told} {'the text ' if text else ''}"
                    f"{shown_value(cell)}."
                )
            out[position] = number
    eps = float(np.finfo(raw.dtype).eps) if raw.dtype.kind == "f" else 0.0
    return out, max(eps, float(np.finfo(np.float64).eps))


def _number_or_none(cell: Any) -> float | None:
    """A cell that is not of a numeric type as a number; NaN if missing, None if something else."""
    if cell is None or type(cell).__name__ == "NAType":  # pandas' mark, without loading pandas
        return float("nan")
    if isinstance(cell, str | bytes | np.datetime64 | np.timedelta64 | np.void):
        return None
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")
    except (TypeError, ValueError):
        return None


def _place(raw: NDArray[Any], position: tuple[int, ...], columns: Any) -> str:
    """Where a cell is; in the first column of a table, what that usually means."""
    if columns is None or len(position) != 2:
        return f"entry {position if len(position) > 1 else position[0]}"
    names = [str(name) for name in columns]
    hint = ""
    if position[1] == 0 and [str(cell) for cell in raw[:, 0]] == names[1:]:
        hint = " (the names of the rows? Make them the index, as pandas.read_csv(..., index_col=0))"
    return f"row {position[0]} of column `{names[position[1]]}`{hint}"


def shown_value(value: Any, limit: int = 60) -> str:
    """A value that somebody gave, short enough for one line of a message."""
    try:
        text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    except ValueError:  # Python does not spell out whole numbers of thousands of digits
        text = f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= limit else f"{text[:limit]}..."


def real_number(value: Any, what: str, error: type[CoralError]) -> float:
    """Return a real number; reject strings and booleans."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise error(f"{what} must be one number, got {shown_value(value)}.")
    try:
        return float(value)
    except OverflowError:
        return float("-inf") if value < type(value)() else float("inf")


def whole_number(text: str) -> int | None:
    """A text of decimal digits as a number; None for any other text, or more than 15 digits.

    Examples
    --------
    >>> whole_number("60"), whole_number("6.5"), whole_number("9" * 5000)
    (60, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= 15 else None


def square_matrix(value: Any, what: str, error: type[CoralError]) -> tuple[Array, float]:
    """A square array of numbers."""
    matrix, eps = float_array(value, what, error)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        came = f"an array of shape {matrix.shape}" if matrix.ndim else shown_value(value)
        hint = (
            " If these are rows of data, give their correlation matrix (numpy.corrcoef(X.T), or "
            "X.corr() of a DataFrame), or fit skcoral.CORAL to them."
            if matrix.ndim == 2 and matrix.size and error is InvalidCorrelationError
            else ""
        )
        raise error(f"{what} must be a square matrix, got {came}.{hint}")
    return matrix, eps


def check_finite(matrix: Array, names: Sequence[str], what: str, error: type[CoralError]) -> None:
    """Refuse NaN and infinity, by the names of the pair."""
    if np.isfinite(matrix).all():
        return
    bad = np.argwhere(~np.isfinite(matrix))
    i, j = bad[0]
    whole = [names[int(k)] for k in np.flatnonzero(~np.isfinite(matrix).any(axis=1))]
    hint = (
        f"Nothing at all is known about {listing(whole)}: a constant column? Drop it."
        if whole
        else "Fill it in, or drop one of the two."
    )
    raise error(
        f"{what} must be finite; {len(bad)} of its entries {'is' if len(bad) == 1 else 'are'} not, "
        f"the first between `{names[i]}` and `{names[j]}` ({matrix[i, j]}). {hint}"
    )


def check_symmetric(
    matrix: Array, names: Sequence[str], what: str, error: type[CoralError], tolerance: float
) -> None:
    """Refuse a matrix whose two halves differ, by the names of the pair."""
    difference = np.abs(matrix - matrix.T)
    if difference.max() > tolerance * np.abs(matrix).max():
        i, j = worst_pair(difference)
        raise error(
            f"{what} must be symmetric; between `{names[i]}` and `{names[j]}` it has "
            f"{matrix[i, j]:.9g} one way and {matrix[j, i]:.9g} the other. Fill in both halves "
            "alike."
        )


def check_unit_diagonal(matrix: Array, names: Sequence[str], tolerance: float) -> None:
    """Refuse covariances, with the way to convert them."""
    diagonal = np.diag(matrix)
    off = np.abs(diagonal - 1.0)
    if off.max() <= tolerance:
        return
    j = int(np.argmax(off))
    if diagonal.min() > 0.0:
        raise InvalidCorrelationError(
            f"The diagonal of a correlation matrix is 1, but that of `{names[j]}` is "
            f"{diagonal[j]:.9g}. This looks like a covariance matrix C: convert it with "
            "sd = numpy.sqrt(numpy.diag(C)); R = C / numpy.outer(sd, sd)."
        )
    j = int(np.argmin(diagonal))
    reason = "no variance is negative" if diagonal[j] < 0 else "a constant has no correlation"
    raise InvalidCorrelationError(
        f"The diagonal of a correlation matrix is 1, but that of `{names[j]}` is "
        f"{diagonal[j]:.9g}: {reason}; drop it."
    )


def regular_on_device(R: Any, rounding: float, tolerance: float) -> Array | None:
    """Return ``R`` in NumPy if the device that holds it finds a regular correlation matrix there.

    None where NumPy holds it, or where a check fails: those of the processor tell which.
    """
    xp = library(R)
    if xp is np or R.ndim != 2 or len(set(R.shape)) > 1 or R.shape[0] < 2 or R.dtype != xp.float64:
        return None
    off = float(np.max(np.abs(diagonal(R) - 1.0)))
    out = plus_diagonal(0.5 * (R + R.T), 1.0 - diagonal(R))
    size = float(np.max(largest(out, 0)))  # NaN if any entry is, and then all comparisons fail
    uneven = float(np.max(largest(R - R.T, 0)))
    if not (off <= rounding and size <= 1.0 + rounding and uneven <= rounding * size):
        return None
    factor = cholesky_or_none(out)
    if factor is None:
        return None
    condition = one_norm(out) * one_norm(inverse_factored(factor))
    limit = max(_SUSPICIOUS_RCOND, 100 * tolerance, 100 * R.shape[0] * np.finfo(np.float64).eps)
    return np.asarray(to_host(out)) if condition * limit < 1.0 else None


def deficiency_of(
    R: Array, names: tuple[str, ...], scale: Any, tolerance: float
) -> Deficiency | None:
    """Refuse indefinite matrices; say what is dependent in singular ones; None for the others.

    Eigenvalues up to ``tolerance`` times the largest count as zero.
    """
    factor, failed = lapack.dpotrf(R, lower=1)
    if not failed:
        rcond, _ = lapack.dpocon(factor, np.abs(R).sum(axis=0).max(), uplo="L")
        if rcond > max(_SUSPICIOUS_RCOND, 100 * tolerance):
            return None
    eigenvalues, vectors = spectrum(R)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if len(eigenvalues) == len(R) and smallest > tolerance * largest:
        return None
    if smallest < -max(_ROUNDING, tolerance) * largest:
        weights = np.abs(vectors[:, 0])
        heavy = [names[int(j)] for j in np.argsort(-weights)[:6] if weights[j] > 0.1]
        raise InvalidCorrelationError(
            f"R is not positive definite: its smallest eigenvalue is {smallest:.3g}, so it is not "
            f"the correlation matrix of any table. The contradiction is mostly among "
            f"{listing(heavy)}. Correlations computed pair by pair from incomplete rows do this: "
            "use the complete rows, or shrink R explicitly."
        )
    sd = None if scale is None else np.asarray(scale, dtype=np.float64)
    B = factor_of(R, eigenvalues, vectors, tolerance)
    lengths = np.linalg.norm(B, axis=0)
    if len(R) <= 2 * len(B):
        null = vectors[:, eigenvalues <= tolerance * largest].T
        found = Relations.of_null_directions(null, sd)
    else:
        found = Relations.of_factor(B, sd)
    return Deficiency(
        factor=B / lengths,
        dropped=dropped_share(lengths),
        lengths=lengths,
        relations=linear_relations(found, names, scale=sd),
        variables=[names[j] for j in found.linked],
        redundant=[names[j] for j in found.dependent.tolist()],
    )


def check_weights(sample_weight: Any, n: int) -> Array | None:
    """Return weights as an array, or None; refuse what is no weight."""
    if sample_weight is None:
        return None
    weights, _ = float_array(sample_weight, "sample_weight", InvalidTableError)
    if weights.shape != (n,):
        raise InvalidTableError(
            f"sample_weight must hold one number per row, shape ({n},); got shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidTableError(
            "sample_weight must be non-negative and finite; row "
            f"{int(np.argmax(~(np.isfinite(weights) & (weights >= 0))))} is not."
        )
    low, high = _WEIGHT_RANGE
    extreme = (weights > high) | ((weights > 0) & (weights < low))
    if extreme.any():
        raise InvalidTableError(
            f"sample_weight must lie between {low:g} and {high:g} where it is not zero; row "
            f"{int(np.argmax(extreme))} has {weights[extreme][0]:g}. Multiply all weights by one "
            "number that brings them near 1."
        )
    weights = weights.view()
    weights.flags.writeable = False
    return weights


def worst_pair(size: Array) -> tuple[int, int]:
    """Position of the largest entry."""
    i, j = np.unravel_index(int(np.argmax(size)), size.shape)
    return int(i), int(j)


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once, in order.

    Examples
    --------
    >>> repeated(["b", "a", "b", "c"])
    ['b']
    """
    return sorted(name for name, count in Counter(names).items() if count > 1)


def check_complete(rows: NDArray[Any], names: Sequence[str], *, may_miss: bool = False) -> None:
    """Refuse, by column, infinite values and (unless ``may_miss``) missing ones."""
    # the sum is not finite if any cell is not, and is cheaper than a mask of all cells
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return
    told = []
    kinds = (("missing values (NaN)", np.isnan), ("infinite values (inf)", np.isinf))
    for kind, mask in kinds[may_miss:]:
        bad = mask(rows)
        columns = [name for name, hit in zip(names, bad.any(axis=0), strict=True) if hit]
        if columns:
            first = int(np.flatnonzero(bad.any(axis=1))[0])
            told.append(f"{kind} in {listing(columns)}, first in row {first}")
    if told:
        raise InvalidTableError(
            f"The table has {'; '.join(told)}. Drop these rows, or fill them (scikit-learn's "
            "SimpleImputer goes before this step in a pipeline)."
        )


def column_labels(X: Any) -> tuple[str, ...] | None:
    """Names of a DataFrame's columns; None without any, or if some are not text."""
    labels = tuple(getattr(X, "columns", ()))
    return labels if labels and all(isinstance(name, str) for name in labels) else None


def different_columns(left: Sequence[str], right: Sequence[str]) -> str:
    """How two sets of columns differ, in a sentence."""
    only_left = [name for name in left if name not in set(right)]
    only_right = [name for name in right if name not in set(left)]
    if not only_left and not only_right:
        return f"The same columns in another order: {listing(left)} against {listing(right)}."
    return (
        "Only moments of the same columns can be merged; "
        f"only on the left: {listing(only_left) or 'none'}; "
        f"only on the right: {listing(only_right) or 'none'}."
    )
