"""Problems: a correlation matrix with what is asked about it, validated when they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from skcoral.core.arrays import (
    EPS,
    Array,
    cholesky_or_none,
    diagonal,
    inverse_factored,
    largest,
    library,
    one_norm,
    plus_diagonal,
    to_device,
    to_host,
)
from skcoral.core.criteria import CRITERIA, Criterion, off
from skcoral.core.deficiency import Deficiency, deficiency_of
from skcoral.core.linalg import regular_factor
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.tolerances import SINGULAR_TOL, SYMMETRY_TOL
from skcoral.core.validation import (
    WEIGHT_RANGE,
    check_choice,
    check_count,
    check_names,
    check_positive,
    float_array,
    in_order,
    listing,
    require,
    shown_value,
)
from skcoral.exceptions import CoralError, InvalidArgumentError, InvalidCorrelationError

if TYPE_CHECKING:
    from skcoral.core.composites import Composites

Callback = Callable[[int, float, float], object]
# Estimates of a condition number may be too low by a modest factor. Within two digits of the limit
# the eigenvalues decide.
_MARGIN = 100.0


@dataclass
class Memory:
    """What is remembered between questions about one matrix: ρ★, and where its search begins."""

    near: Array | None = None  # weights of the threshold of a similar matrix
    floor: float | None = None  # the answer of that matrix to the same budget
    threshold: Any = None
    tol: float = np.inf
    max_iter: int = 0


@dataclass(frozen=True)
class Matrix:
    """A validated correlation matrix, with the names and the linear relations of its variables.

    The functions of :mod:`skcoral.api` take it in place of an array, so that several questions
    about one matrix share the validation and ρ★.
    """

    R: Any  # a factor for tables with many more columns than rows
    names: tuple[str, ...]
    deficiency: Deficiency | None
    like: Any = None  # the array that was given, on its device
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def on_device(self) -> Any:
        """``R`` in the library and on the device of the array given; that array if it is equal."""
        R, xp = to_device(self.R, self.like), library(self.like)
        same = xp is not np and self.like.dtype == R.dtype and bool(xp.all(self.like == R))
        return self.like if same else R

    @property
    def dense(self) -> bool:
        """Whether ``R`` is an ordinary array."""
        return not isinstance(self.R, FactoredCorrelation)

    def __len__(self) -> int:
        return len(self.names)

    def regular(self, what: str = "Exact decorrelation") -> Array:
        """The matrix; an error if it is singular, because ``what`` needs full rank."""
        if self.deficiency is not None:
            raise self.deficiency.error(what)
        return np.asarray(self.R)


@dataclass(frozen=True)
class Settings:
    """Names of the outputs, and settings as in :func:`skcoral.decorrelate`."""

    names: tuple[str, ...]
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    callback: Callback | None = None
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True)
class Problem:
    """A question: about which variables, which outputs, and with which settings."""

    sources: Matrix  # of the variables
    matrix: Matrix  # of the variables or composites that the outputs are anchored to
    settings: Settings
    composites: Composites | None = None

    @classmethod
    def of(
        cls,
        R: Any,
        *,
        criterion: str = "squared",
        pair_weights: Any = None,
        anchors: Any = None,
        tol: float = 1e-9,
        max_iter: int = 200,
        on_singular: str = "solve",
        callback: Callback | None = None,
    ) -> Problem:
        """Validate the arguments of a question."""
        # The matrix first: all other messages are in the names of its variables.
        sources = check_matrix(R, on_singular=on_singular)
        composites = None
        if anchors is not None:
            from skcoral.core.composites import Composites

            composites = Composites(sources, anchors)
        matrix = sources if composites is None else composites.matrix
        wanted = "a function of three arguments (iteration, objective, lower bound)"
        require(callback is None or callable(callback), "callback", wanted, callback)
        settings = Settings(
            matrix.names,
            cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
            None if pair_weights is None else check_pair_weights(pair_weights, matrix.names),
            check_positive("tol", tol),
            check_count("max_iter", max_iter),
            callback,
            matrix.memory,
        )
        return cls(sources, matrix, settings, composites)


def check_matrix(R: Any, *, on_singular: Any = "raise") -> Matrix:
    """Return a validated matrix; warn or raise, as ``on_singular`` says, if it is singular."""
    check_choice("on_singular", on_singular, ("solve", "raise"))
    known = getattr(R, "matrix", R)  # an estimate has one
    if isinstance(known, Matrix):
        return known
    matrix = check_semidefinite(R)
    if matrix.deficiency is not None:
        matrix.deficiency.announce(on_singular)
    return matrix


def check_correlation(R: Any) -> Array:
    """Return ``R`` as a symmetric float64 array of full rank; an error says why it is not one."""
    return check_matrix(R).regular()


def check_semidefinite(
    R: Any, names: Sequence[Any] | None = None, *, scale: Array | None = None
) -> Matrix:
    """Return ``R`` with names and linear relations; an error says why it is no correlation matrix.

    Rounding in the symmetry and the diagonal (relative 1e-8, or that of a narrower input type) is
    corrected; nothing else is altered. With ``scale``, the standard deviations, linear relations
    are in the original units.
    """
    if names is None:
        regular = _regular_on_device(R)
        if regular is not None:
            return Matrix(regular, check_names(None, len(regular)), None, R)
    matrix, eps = square_matrix(R, "R", InvalidCorrelationError)
    labels = check_names(frame_names(R) if names is None else names, len(matrix))
    rounding = max(SYMMETRY_TOL, 16 * eps)
    out = symmetric(matrix, labels, "R", InvalidCorrelationError, rounding)
    _check_unit_diagonal(out, labels, rounding)
    np.fill_diagonal(out, 1.0)
    i, j = _largest_entry(np.abs(out))
    if abs(out[i, j]) > 1.0 + rounding:
        raise InvalidCorrelationError(
            f"Correlations lie in [-1, 1], but that of `{labels[i]}` and `{labels[j]}` is "
            f"{out[i, j]:.12g}."
        )
    # Eigenvalues are computed only where the estimate of the condition leaves the rank in doubt.
    tolerance = max(SINGULAR_TOL, len(out) * eps)
    deficiency = None
    if regular_factor(out, _MARGIN * tolerance) is None:
        deficiency = deficiency_of(out, labels, scale, tolerance)
    return Matrix(out, labels, deficiency, R)


def _regular_on_device(R: Any) -> Array | None:
    """Return ``R`` as a NumPy array if checks on its device show it to be regular.

    None for NumPy arrays, and if a check fails: the checks on the processor then say which.
    """
    xp = library(R)
    if xp is np or R.ndim != 2 or len(set(R.shape)) > 1 or R.shape[0] < 2 or R.dtype != xp.float64:
        return None
    off = float(np.max(np.abs(diagonal(R) - 1.0)))
    out = plus_diagonal(0.5 * (R + R.T), 1.0 - diagonal(R))
    size = float(np.max(largest(out, 0)))  # NaN if any entry is, and then all comparisons fail
    uneven = float(np.max(largest(R - R.T, 0)))
    if not (off <= SYMMETRY_TOL and size <= 1.0 + SYMMETRY_TOL and uneven <= SYMMETRY_TOL * size):
        return None
    factor = cholesky_or_none(out)
    if factor is None:
        return None
    condition = one_norm(out) * one_norm(inverse_factored(factor))
    limit = _MARGIN * max(SINGULAR_TOL, R.shape[0] * EPS)
    return np.asarray(to_host(out)) if condition * limit < 1.0 else None


def frame_names(R: Any) -> list[str] | None:
    """Names of the variables of a DataFrame, of whichever library; None for anything else."""
    columns = getattr(R, "columns", None)
    if columns is None:
        return None
    labels = [str(name) for name in columns]
    index = getattr(R, "index", None)
    if index is not None and hasattr(index, "tolist"):
        rows = [str(name) for name in index]
        if rows not in (labels, [str(k) for k in range(len(rows))]):
            raise InvalidCorrelationError(
                "Rows and columns of R must have the same names in the same order; row names begin "
                f"{rows[:4]}, column names {labels[:4]}."
                + (" Try R = R.loc[R.columns]." if set(rows) == set(labels) else "")
            )
    return labels


def square_matrix(
    value: Any, what: str, error: type[CoralError], p: int | None = None
) -> tuple[Array, float]:
    """A square array of numbers (p by p if given), with the rounding unit of its given type."""
    matrix, eps = float_array(value, what, error)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        shown = f"an array of shape {matrix.shape}" if matrix.ndim else shown_value(value)
        hint = (
            " If these are rows of data, give their correlation matrix (numpy.corrcoef(X.T), or "
            "X.corr() of a DataFrame), or fit skcoral.CORAL to them."
            if matrix.ndim == 2 and matrix.size and error is InvalidCorrelationError
            else ""
        )
        raise error(f"{what} must be a square matrix, got {shown}.{hint}")
    if p is not None and len(matrix) != p:
        raise error(
            f"{what} must be {p} by {p}, one row and one column per variable; got shape "
            f"{matrix.shape}."
        )
    return matrix, eps


def symmetric(
    matrix: Array, names: Sequence[str], what: str, error: type[CoralError], tolerance: float
) -> Array:
    """The mean of a finite matrix and its transpose; refuse, by names, what is not symmetric."""
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        i, j = bad[0]
        empty = [names[int(k)] for k in np.flatnonzero(~np.isfinite(matrix).any(axis=1))]
        hint = (
            f"No entry of {listing(empty)} is: is it a constant column? Drop it."
            if empty
            else "Fill it in, or drop the variable."
        )
        where = (
            f"between `{names[i]}` and `{names[j]}`" if i != j else f"that of `{names[i]}` itself"
        )
        raise error(
            f"{what} must be finite; {len(bad)} of its entries {'is' if len(bad) == 1 else 'are'} "
            f"not, the first {where} ({matrix[i, j]}). {hint}"
        )
    difference = np.abs(matrix - matrix.T)
    i, j = _largest_entry(difference)
    if difference[i, j] > tolerance * np.abs(matrix).max():
        raise error(
            f"{what} must be symmetric; between `{names[i]}` and `{names[j]}` it has "
            f"{matrix[i, j]:.9g} one way and {matrix[j, i]:.9g} the other. Fill in both halves "
            "alike."
        )
    return np.asarray(0.5 * matrix + 0.5 * matrix.T)


def _check_unit_diagonal(matrix: Array, names: Sequence[str], tolerance: float) -> None:
    """Raise an error if the diagonal is not one, and say how to convert a covariance matrix."""
    values = np.diag(matrix)
    off = np.abs(values - 1.0)
    if off.max() <= tolerance:
        return
    j = int(np.argmax(off) if values.min() > 0.0 else np.argmin(values))
    reason = ": variances are positive; drop it."
    if values[j] > 0.0:
        reason = (
            ". This looks like a covariance matrix C: convert it with "
            "sd = numpy.sqrt(numpy.diag(C)); R = C / numpy.outer(sd, sd)."
        )
    raise InvalidCorrelationError(
        f"The diagonal of a correlation matrix is 1, but that of `{names[j]}` is "
        f"{values[j]:.9g}{reason}"
    )


def _largest_entry(size: Array) -> tuple[int, int]:
    """Position of the largest entry of a matrix."""
    i, j = np.unravel_index(int(np.argmax(size)), size.shape)
    return int(i), int(j)


def check_pair_weights(pair_weights: Any, names: Sequence[str]) -> Array:
    """Return the weights of the pairs: symmetric, finite, non-negative, with a zero diagonal.

    The diagonal of the input is ignored.
    """
    given = in_order(pair_weights, (names, names), "pair_weights")
    W, eps = square_matrix(given, "pair_weights", InvalidArgumentError, len(names))
    tolerance = max(SYMMETRY_TOL, 16 * eps)
    W = symmetric(off(W), names, "pair_weights", InvalidArgumentError, tolerance)
    i, j = _largest_entry(-W)
    if W[i, j] < 0.0:
        raise InvalidArgumentError(
            f"pair_weights must not be negative; that of `{names[i]}` and `{names[j]}` "
            f"is {W[i, j]:.6g}."
        )
    low, high = WEIGHT_RANGE
    if W.any() and not low <= W.max() <= high:
        raise InvalidArgumentError(
            f"pair_weights reach {W.max():.3g}, where their squares leave the range of floating "
            "point; only their ratios matter, so divide them by their largest."
        )
    return W
