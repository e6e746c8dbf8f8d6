"""From a table to the correlation matrix that everything else is about.

Correlations come from :class:`~skcoral.data.moments.Moments` alone. What makes a matrix singular is
described in terms of the table: which columns are constant, copies or combinations of others, how
many rows it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Frozen
from skcoral.core.deficiency import Deficiency, of_table
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.matrix import check_semidefinite
from skcoral.core.validation import listing
from skcoral.data.moments import SMALLEST_SPREAD, Moments
from skcoral.exceptions import InvalidTableError


@dataclass(frozen=True)
class CorrelationEstimate(Frozen):
    """A correlation matrix with what is needed to standardise the rows it came from.

    Functions that take a named correlation matrix take this object as it is.

    Attributes
    ----------
    R : ndarray of shape (p, p), or FactoredCorrelation
        The correlation matrix; kept as a factor where columns are more than twice the rows.
    mean, scale : ndarray of shape (p,)
        Mean and sample standard deviation of each column.
    names : tuple of str
        The columns.
    n_rows : int
        Rows with a positive weight; 0 where a matrix was given.
    weighted : bool
        Whether some rows count more than others.
    deficiency : Deficiency or None
        What is known about a matrix whose rank is below the number of columns.
    source : str
        What estimated the matrix, where it is not the rows' own.
    judged : bool
        Whether the matrix was checked when it was estimated, and need not be again.

    Examples
    --------
    >>> rows = [[1.0, 2.0], [2.0, 4.5], [3.0, 5.0], [4.0, 9.0]]
    >>> estimate(Moments.from_rows(rows)).guarantee
    'Floors and certificate are about these 4 rows; on others fidelities and residuals differ.'
    """

    R: Any
    mean: Array
    scale: Array
    names: tuple[str, ...]
    n_rows: int
    weighted: bool = False
    deficiency: Deficiency | None = None
    source: str = ""
    judged: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, under the attribute where data frames keep them."""
        return self.names

    def to_numpy(self) -> Array:
        """Return the correlation matrix."""
        return self.R.toarray() if isinstance(self.R, FactoredCorrelation) else self.R

    def standardised(self, rows: Any) -> Any:
        """What a transformation acts on: rows in units of ``scale``."""
        return (rows - self.mean) / self.scale

    @property
    def is_wide(self) -> bool:
        """Whether ``R`` is kept as a factor, because columns are many more than rows."""
        return isinstance(self.R, FactoredCorrelation)

    @property
    def is_about_rows(self) -> bool:
        """Whether ``R`` is the correlation matrix of the rows, weighted if they are."""
        return not self.source

    @property
    def about(self) -> str:
        """What the guarantees are about, in a few words."""
        if not self.n_rows:
            return "the matrix given"
        rows = f"these {self.n_rows:,} rows" + " with their weights" * self.weighted
        if self.source:
            return f"the correlation matrix that {self.source} estimates from {rows}"
        return rows

    @property
    def guarantee(self) -> str:
        """One sentence saying which matrix the floors and the certificate are about."""
        return (
            f"Floors and certificate are about {self.about}; on others fidelities and residuals "
            "differ."
        )


def given_matrix(
    R: Array, names: tuple[str, ...], *, scale: Array | None = None
) -> CorrelationEstimate:
    """A correlation matrix without rows behind it."""
    p = len(R)
    scale = np.ones(p) if scale is None else scale
    return CorrelationEstimate(R, np.zeros(p), scale, names, 0)


def estimate(
    moments: Moments,
    *,
    on_singular: str = "raise",
) -> CorrelationEstimate:
    """Turn moments into a correlation matrix, or say why there is none.

    Parameters
    ----------
    moments : Moments
        Of the rows.
    on_singular : {"raise", "solve"}, default="raise"
        Whether a matrix of deficient rank is refused, or described in ``deficiency``.

    Raises
    ------
    InvalidTableError
        Constant columns, a single row, or too few rows for the number of columns.
    SingularCorrelationError
        Copies or linear combinations of columns; the message spells them out.

    Examples
    --------
    >>> from skcoral.data.correlation import estimate
    >>> from skcoral.data.moments import Moments
    >>> table = Moments.from_rows([[1.0, 2.0], [2.0, 1.0], [3.0, 6.0], [5.0, 4.0]])
    >>> estimate(table).R.round(6)
    array([[1.      , 0.550149],
           [0.550149, 1.      ]])
    """
    check_usable(moments)
    if on_singular == "raise":
        _check_rows_suffice(moments)
    R = sample_correlation(moments)
    matrix = check_semidefinite(R, moments.names, scale=moments.scale)
    found = matrix.deficiency
    if found is not None:
        found = of_table(found, moments.n_rows)
        if on_singular == "raise":
            raise found.error()
    return CorrelationEstimate(
        R=matrix.R,
        mean=moments.mean,
        scale=moments.scale,
        names=moments.names,
        n_rows=moments.n_rows,
        weighted=moments.is_weighted,
        deficiency=found,
        judged=True,
    )


def sample_correlation(moments: Moments) -> Array:
    """Correlation matrix of the rows summarised, singular or not; constant columns are refused."""
    _check_groups(moments)
    _check_varying(moments)
    return correlation_of_covariance(moments.comoment)


def _check_varying(moments: Moments) -> None:
    constant = moments.constant_columns()
    if constant:
        few = "column is" if len(constant) == 1 else "columns are"
        size = dict(zip(moments.names, np.abs(moments.mean), strict=True))
        tiny = [name for name in constant if 0 < size[name] < SMALLEST_SPREAD * 1e10]
        hint = (
            f" The values of {listing(tiny)} are so small that their squares vanish: should they "
            "differ after all, rescale them."
        ) * bool(tiny)
        raise InvalidTableError(
            f"{len(constant)} {few} constant in these {moments.n_rows} rows and so without "
            f"correlation: {listing(constant)}. Drop them." + hint
        )


def _check_groups(moments: Moments) -> None:
    if moments.n_rows < 2:
        raise InvalidTableError(
            "Correlations need at least two rows with a positive weight; got 1 sample (n_samples="
            f"{moments.n_rows}) of {moments.n_features} columns ({listing(moments.names)})."
        )


def check_usable(moments: Moments) -> None:
    """Refuse tables without correlations: no rows, one row, constant columns."""
    if moments.weight <= 0.0:
        raise InvalidTableError(
            "There are no rows to fit: none came, or every sample weight is zero."
        )
    _check_groups(moments)
    _check_varying(moments)


def _check_rows_suffice(moments: Moments) -> None:
    n, p = moments.n_rows, moments.n_features
    if n <= p:
        raise InvalidTableError(
            f"{n} rows cannot determine the correlations of {p} columns "
            f"({listing(moments.names)}): the matrix has rank {n - 1} at most, and no exact "
            f"decorrelator exists. Give at least {p + 1} rows, use fewer columns, or shrink "
            "explicitly with covariance='LedoitWolf'; the guarantee is then about the shrunk "
            "matrix."
        )
