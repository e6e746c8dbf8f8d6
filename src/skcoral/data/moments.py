"""Counts, means and co-moments of a table: updated by batch, merged across machines.

A correlation matrix needs one vector and one matrix of a table, and those of two tables merge into
those of both together (Chan, Golub and LeVeque, 1983).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skcoral.core.arrays import EPS, Array
from skcoral.core.limits import current
from skcoral.core.linalg import two_sum
from skcoral.core.validation import check_names, check_weights, column_labels, float_array, listing
from skcoral.exceptions import InvalidTableError

SMALLEST_SPREAD = 1e-150  # squares of smaller deviations leave the range of float64
_COUNTS = ("n_rows", "weight", "squared_weight")


class CompensatedSum:
    """A running sum of arrays that keeps the rounding errors (Neumaier)."""

    def __init__(self, total: Array, carry: Array | None = None) -> None:
        self.total = total
        self.carry = np.zeros_like(total) if carry is None else carry

    def plus(self, term: Array) -> CompensatedSum:
        """Return the sum with one more term."""
        total, lost = two_sum(self.total, term)
        return CompensatedSum(total, self.carry + lost)

    def minus(self, other: CompensatedSum) -> Array:
        """Return the difference of two sums."""
        return (self.total - other.total) + (self.carry - other.carry)

    @property
    def value(self) -> Array:
        """The sum, rounded once."""
        return self.total + self.carry

    def parts(self) -> Array:
        """Both parts, for storing."""
        return np.stack([self.total, self.carry])


class Moments:
    """Number of rows, weight, mean and co-moment of a table, one batch at a time.

    Rows are measured from the mean so far, which is kept to twice the usual number of digits, so
    that columns whose mean is 1e8 standard deviations away from zero lose nothing. The running sums
    are compensated: one batch of a million rows and a million batches of one row agree.

    Parameters
    ----------
    names : sequence of str
        The columns, in order.

    Attributes
    ----------
    n_rows : int
        Rows seen with a positive weight.
    weight, squared_weight : float
        Sum of the weights and of their squares; both equal to ``n_rows`` without weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.data.moments import Moments
    >>> X = np.array([[1.0, 10.0], [2.0, 30.0], [4.0, 20.0], [5.0, 40.0]])
    >>> parts = Moments.from_rows(X[:1]).merge(Moments.from_rows(X[1:]))
    >>> parts.mean
    array([ 3., 25.])
    >>> bool(np.allclose(parts.covariance, np.cov(X.T)))
    True
    """

    n_rows: int
    weight: float
    squared_weight: float

    def __init__(self, names: Sequence[str]) -> None:
        p = len(names)
        current().check("variables", p, "The table")  # before the matrix is allocated
        self.names = check_names(names, p)
        self._count(0, None)
        self._mean = CompensatedSum(np.zeros(p))
        self._comoment = CompensatedSum(np.zeros((p, p)))

    @classmethod
    def from_rows(
        cls,
        X: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Moments:
        """Summarise one table, named by ``names``, as in the DataFrame, or else x0, x1, … ."""
        rows, _ = float_array(X, "A table", InvalidTableError)
        if rows.ndim != 2:
            raise InvalidTableError(f"A table has two dimensions; got an array of {rows.ndim}.")
        if names is None:
            names = column_labels(X) or [f"x{j}" for j in range(rows.shape[1])]
        return cls(names).update(rows, sample_weight=sample_weight)

    def update(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Moments:
        """Add the rows of ``X``, with non-negative weights if given; return this object.

        The columns of a DataFrame must have the names of these moments, in the same order. Weights
        say how much a row counts relative to the others, as ``aweights`` of ``numpy.cov``: their
        scale does not matter.
        """
        batch = self._of_batch(X, sample_weight)
        if batch is not None:
            self._absorb(batch)
        return self

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both tables, of the same columns in the same order, together."""
        if not isinstance(other, Moments):
            raise InvalidTableError(
                f"Moments are merged with Moments, got {type(other).__name__}; "
                "Moments.from_rows(table) makes them."
            )
        if self.names != other.names:
            left = [name for name in self.names if name not in other.names]
            right = [name for name in other.names if name not in self.names]
            raise InvalidTableError(
                "Only moments of the same columns in the same order can be merged; only on the "
                f"left: {listing(left) or 'none'}; only on the right: {listing(right) or 'none'}"
                f"{'' if left or right else ' (they are in another order)'}."
            )
        both = self.copy()
        both._absorb(other)
        return both

    def copy(self) -> Moments:
        """Return an independent copy."""
        return type(self).from_state(self.state())

    def _count(self, n: int, weights: Array | None) -> None:
        """Set the counts to those of ``n`` rows."""
        self.n_rows, self.weight, self.squared_weight = n, float(n), float(n)
        if weights is not None:
            self.weight, self.squared_weight = float(weights.sum()), float(weights @ weights)

    @property
    def is_weighted(self) -> bool:
        """Whether some rows count more than others."""
        # without weights, and with equal ones, n Σw² = (Σw)²
        return self.squared_weight * self.n_rows > (1.0 + 1e-12) * self.weight**2

    @property
    def effective_rows(self) -> float:
        """Kish's ``(Σw)² / Σw²``: how many equally weighted rows would be as informative."""
        return self.weight**2 / self.squared_weight if self.n_rows else 0.0

    @property
    def degrees_of_freedom(self) -> float:
        """The divisor for an unbiased covariance: ``Σw − Σw² / Σw``."""
        if self.n_rows < 2:
            raise InvalidTableError(
                "A covariance needs at least two rows with a positive weight; got "
                f"{self.n_rows} {'sample' if self.n_rows == 1 else 'rows'}."
            )
        return self.weight - self.squared_weight / self.weight

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def mean(self) -> Array:
        """Weighted mean of each column."""
        return self._mean.value

    @property
    def comoment(self) -> Array:
        """Sum over the rows of weight times the product of the deviations from the mean."""
        return self._comoment.value

    @property
    def squares(self) -> Array:
        """The diagonal of the co-moment: weighted sum of squared deviations of each column."""
        return np.diag(self.comoment)

    @property
    def covariance(self) -> Array:
        """Unbiased sample covariance, ``comoment / degrees_of_freedom``."""
        return self.comoment / self.degrees_of_freedom

    @property
    def scale(self) -> Array:
        """Sample standard deviation of each column."""
        return np.sqrt(self.squares / self.degrees_of_freedom)

    def constant_columns(self) -> tuple[str, ...]:
        """Names of the columns without spread, up to the rounding of their values."""
        variance = self.squares / (self.weight or 1.0)
        # values that differ in the last bits only, as a computed constant does
        rounding = 8 * EPS * np.abs(self.mean)
        flat = np.sqrt(variance) <= np.maximum(rounding, SMALLEST_SPREAD)
        return self._where(flat)

    def _where(self, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(self.names[j] for j in np.flatnonzero(chosen))

    def state(self) -> dict[str, Any]:
        """All fields as plain values and arrays, for writing to a file."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"names": list(self.names), **counts, **self._sums()}

    def _sums(self) -> dict[str, Array]:
        return {"mean": self._mean.parts(), "comoment": self._comoment.parts()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Moments:
        """Rebuild moments, to the last bit, from what :meth:`state` returned."""
        moments = cls(state["names"])
        moments._read_counts(state)
        p = moments.n_features
        moments._mean = CompensatedSum(*np.array(state["mean"], dtype=np.float64).reshape(2, p))
        moments._comoment = CompensatedSum(
            *np.array(state["comoment"], dtype=np.float64).reshape(2, p, p)
        )
        totals = np.r_[moments.weight, moments.squared_weight]
        numbers = np.r_[totals, moments.mean, moments.comoment.ravel()]
        sizes = np.r_[moments.n_rows, totals, np.diag(moments.comoment)]
        if not np.isfinite(numbers).all() or (sizes < 0).any():
            raise InvalidTableError(
                "These cannot be the moments of a table: a number is not finite, or a count or sum "
                "of squares is negative."
            )
        return moments

    def _read_counts(self, state: dict[str, Any]) -> None:
        self.n_rows, self.weight = int(state["n_rows"]), float(state["weight"])
        self.squared_weight = float(state["squared_weight"])

    def __repr__(self) -> str:
        return f"Moments(n_rows={self.n_rows}, weight={self.weight:g}, p={self.n_features})"

    def _of_batch(self, X: ArrayLike, sample_weight: ArrayLike | None) -> Moments | None:
        """Moments of these rows, computed from the mean so far; None if all weights are zero."""
        rows = self._checked_rows(X)
        weights = check_weights(sample_weight, len(rows))
        if weights is not None and not weights.all():
            rows, weights = rows[weights > 0], weights[weights > 0]
        if len(rows) == 0:
            return None
        batch = Moments(self.names)
        batch._count(len(rows), weights)
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = batch._centre(rows, weights, self._mean.total if self.n_rows else None)
            scaled = deviations if weights is None else deviations * weights[:, None]
            batch._comoment = CompensatedSum(scaled.T @ deviations)
        return batch

    def _centre(self, rows: Array, weights: Array | None, origin: Array | None = None) -> Array:
        """Set the mean, measured from ``origin``, and return the deviations from it."""
        # a row has the values of constant columns exactly, which a computed mean has not
        self._mean = CompensatedSum(rows[0].copy() if origin is None else origin)
        # in one layout, so that frames and arrays of the same rows give the same bits
        deviations = np.subtract(rows, self._mean.total, order="C")
        total = deviations.sum(axis=0) if weights is None else weights @ deviations
        self._mean = self._mean.plus(total / self.weight)
        deviations -= total / self.weight
        return deviations

    def _combined(self, other: Moments) -> tuple[CompensatedSum, CompensatedSum]:
        """Mean and co-moment of both tables together: Chan's formulas."""
        total = self.weight + other.weight
        with np.errstate(over="ignore", invalid="ignore"):
            gap = other._mean.minus(self._mean)
            mean = self._mean.plus(gap * (other.weight / total))
            between = np.outer(gap, gap) * (self.weight * other.weight / total)
            return mean, self._comoment.plus(other._comoment.value).plus(between)

    def _absorb(self, other: Moments) -> None:
        if other.n_rows == 0:
            return
        mean, comoment = other._mean, other._comoment
        if self.n_rows:
            mean, comoment = self._combined(other)
        # checked before anything is stored, so that a refused batch changes nothing
        self._check_finite_cells(np.diag(comoment.value))
        self._mean, self._comoment = mean, comoment
        self.n_rows += other.n_rows
        self.weight += other.weight
        self.squared_weight += other.squared_weight

    def _checked_rows(self, X: ArrayLike) -> Array:
        rows, _ = float_array(X, "A table", InvalidTableError)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InvalidTableError(
                f"Expected rows of {self.n_features} columns ({listing(self.names)}); got an "
                f"array of shape {rows.shape}."
            )
        labels = column_labels(X)
        if labels is not None and labels != self.names:
            raise InvalidTableError(
                f"Expected rows of the columns {listing(self.names)}; got {listing(labels)}. "
                "Pick and order the columns by these names first."
            )
        return rows

    def _check_finite_cells(self, squares: Array) -> None:
        finite = np.isfinite(squares)
        if not finite.all():
            raise InvalidTableError(
                f"There is no mean or variance of {listing(self._where(~finite))}: values are "
                "missing, infinite, or so large that their squares overflow. Remove or fill such "
                "rows, or rescale the columns."
            )


def merge_all(parts: Iterable[Moments]) -> Moments:
    """Merge any number of moments, pairwise in a tree, into those of all rows together.

    Examples
    --------
    >>> parts = [Moments.from_rows([[1.0, 2.0], [3.0, 5.0]]), Moments.from_rows([[4.0, 4.0]])]
    >>> merge_all(parts).n_rows
    3
    """
    level = list(parts)
    if not level:
        raise InvalidTableError("There are no moments to merge.")
    while len(level) > 1:
        paired = [a.merge(b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[len(paired) * 2 :]
    return level[0]
