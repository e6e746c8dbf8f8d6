"""From a table to its correlation matrix.

Correlations come from :class:`~skcoral.data.moments.Moments`, or from another estimator: one of
scikit-learn, or a function. Errors and warnings about a singular matrix are about the table: which
columns are constant, copies or combinations of others, and how many rows are needed.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Frozen
from skcoral.core.deficiency import Deficiency
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.problem import Matrix, check_semidefinite, square_matrix, symmetric
from skcoral.core.validation import listing
from skcoral.data.moments import SMALLEST_SPREAD, Moments
from skcoral.data.wide import RowMoments, deficiency_of_rows
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
    InvalidTableError,
)


@dataclass(frozen=True)
class CorrelationEstimate(Frozen):
    """A correlation matrix with what is needed to standardise the rows it came from.

    Functions that take a correlation matrix take this object in its place.

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
        The linear relations of a matrix whose rank is below the number of columns.
    source : str
        The estimator of the matrix; empty if it is the sample correlation of the rows.

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

    @cached_property
    def matrix(self) -> Matrix:
        """The correlations as the solvers take them, with what is known of a deficient rank."""
        return Matrix(self.R, self.names, self.deficiency)

    def standardised(self, rows: Any) -> Any:
        """The rows that a transformation acts on: centred, in units of ``scale``."""
        return (rows - self.mean) / self.scale

    @property
    def is_about_rows(self) -> bool:
        """Whether ``R`` is the sample correlation matrix of the rows."""
        return not self.source

    @property
    def about(self) -> str:
        """What the certificate is about, in a few words."""
        if not self.n_rows:
            return "the matrix given"
        rows = f"these {self.n_rows:,} rows" + " with their weights" * self.weighted
        if self.source:
            return f"the correlation matrix that {self.source} estimates from {rows}"
        return rows

    @property
    def guarantee(self) -> str:
        """One sentence about the matrix that floors and certificate are about."""
        return (
            f"Floors and certificate are about {self.about}; on others fidelities and residuals "
            "differ."
        )


def given_matrix(
    R: Array, names: tuple[str, ...], *, scale: Array | None = None
) -> CorrelationEstimate:
    """A correlation matrix without rows behind it; warns where it is singular."""
    p, matrix = len(R), check_semidefinite(R, names)
    if matrix.deficiency is not None:
        matrix.deficiency.announce("solve")
    scale = np.ones(p) if scale is None else scale
    return CorrelationEstimate(matrix.R, np.zeros(p), scale, names, 0, deficiency=matrix.deficiency)


def estimate_rows(
    rows: Any,
    names: tuple[str, ...],
    sample_weight: Any = None,
    *,
    covariance: Any = None,
    dense: bool = False,
    on_singular: str = "solve",
) -> tuple[CorrelationEstimate, Moments]:
    """The correlations and the moments of rows; warns if the matrix is singular.

    With more than twice as many columns as rows, the rows are kept instead of a p × p matrix,
    unless a ``dense`` one is needed.
    """
    other = check_covariance(covariance)
    if rows.shape[1] > 2 * rows.shape[0] and other is None and not dense:
        moments: Moments = RowMoments(rows, names, sample_weight=sample_weight)
    else:
        moments = Moments(names).update(rows, sample_weight=sample_weight)
    if other is None:
        return estimate(moments, dense=dense, on_singular=on_singular), moments
    if sample_weight is not None:
        rows = rows[np.asarray(sample_weight, dtype=np.float64) > 0.0]
    return _estimate_by(other, rows, moments, on_singular=on_singular), moments


def how_to_estimate(estimator: Any) -> dict[str, Any]:
    """The arguments of :func:`estimate_rows` that follow from the settings of an estimator."""
    needs_matrix = estimator.support is not None or estimator.on_singular == "raise"
    return {"dense": needs_matrix, "on_singular": estimator.on_singular}


def estimate(
    moments: Moments, *, dense: bool = True, on_singular: str = "raise"
) -> CorrelationEstimate:
    """Turn moments into a correlation matrix.

    Parameters
    ----------
    moments : Moments
        Of the rows.
    dense : bool, default=True
        Whether moments that are kept as rows give a p × p matrix instead of its factor.
    on_singular : {"raise", "solve"}, default="raise"
        What to do with a singular matrix: raise an error, or warn and keep its linear relations in
        ``deficiency``.

    Raises
    ------
    InvalidTableError
        Constant columns, a single row, or too few rows for the number of columns.
    SingularCorrelationError
        Copies or linear combinations of columns; the message lists them.

    Examples
    --------
    >>> from skcoral.data.correlation import estimate
    >>> from skcoral.data.moments import Moments
    >>> table = Moments.from_rows([[1.0, 2.0], [2.0, 1.0], [3.0, 6.0], [5.0, 4.0]])
    >>> estimate(table).R.round(6)
    array([[1.      , 0.550149],
           [0.550149, 1.      ]])
    """
    R: Any
    deficiency: Deficiency | None
    if isinstance(moments, RowMoments) and not dense:
        check_usable(moments)
        few = deficiency_of_rows(moments)
        R, deficiency = FactoredCorrelation(few.factor), few
    else:
        R = sample_correlation(moments)
        matrix = check_semidefinite(R, moments.names, scale=moments.scale)
        R, deficiency = matrix.R, matrix.deficiency
        deficiency = None if deficiency is None else deficiency.of_table(moments.n_rows)
    if deficiency is not None:
        deficiency.announce(on_singular)
    return CorrelationEstimate(
        R=R,
        mean=moments.mean,
        scale=moments.scale,
        names=moments.names,
        n_rows=moments.n_rows,
        weighted=moments.is_weighted,
        deficiency=deficiency,
    )


def sample_correlation(moments: Moments) -> Array:
    """Correlation matrix of the rows, which may be singular; constant columns are an error."""
    check_usable(moments)
    return correlation_of_covariance(moments.comoment)


def check_usable(moments: Moments) -> None:
    """Raise an error if there are no correlations: no rows, one row, or constant columns."""
    if moments.weight <= 0.0:
        raise InvalidTableError(
            "There are no rows to fit: there is none, or every sample weight is zero."
        )
    if moments.n_rows < 2:
        raise InvalidTableError(
            "Correlations need at least two rows with a positive weight; got 1 sample (n_samples="
            f"{moments.n_rows}) of {moments.n_features} columns ({listing(moments.names)})."
        )
    constant = moments.constant_columns()
    if constant:
        few, them = ("column is", "it") if len(constant) == 1 else ("columns are", "them")
        size = dict(zip(moments.names, np.abs(moments.mean), strict=True))
        tiny = [name for name in constant if 0 < size[name] < SMALLEST_SPREAD * 1e10]
        hint = (
            f" The values of {listing(tiny)} are so small that their squares vanish: if they "
            "differ, rescale them."
        ) * bool(tiny)
        raise InvalidTableError(
            f"{len(constant)} {few} constant in these {moments.n_rows} rows and without "
            f"correlation: {listing(constant)}. Leave {them} out." + hint
        )


def check_covariance(covariance: Any) -> Any:
    """Return an estimator, or a function from rows to a matrix; names are those of scikit-learn."""
    if covariance is None:
        return None
    if isinstance(covariance, str):
        import sklearn.covariance

        # EllipticEnvelope finds outliers, by an estimate that MinCovDet gives
        names = {
            n for n in sklearn.covariance.__all__ if inspect.isclass(getattr(sklearn.covariance, n))
        }
        names -= {"EllipticEnvelope"}
        if covariance not in names:
            raise InvalidArgumentError(
                f"covariance={covariance!r} is not an estimator of sklearn.covariance; choose one "
                f"of {', '.join(sorted(names))}."
            )
        return _made(getattr(sklearn.covariance, covariance))
    if inspect.isclass(covariance):
        return _made(covariance)
    if hasattr(covariance, "fit") or callable(covariance):
        return covariance
    raise InvalidArgumentError(
        "covariance must be an estimator with fit and covariance_ (such as those of "
        "sklearn.covariance), the name of one, or a function from rows to a matrix; got "
        f"{covariance!r}."
    )


def _made(kind: type[Any]) -> Any:
    """An estimator with its defaults, and a fixed seed if it is random (as MinCovDet is)."""
    made = kind()
    if "random_state" in getattr(made, "get_params", dict)():
        made.set_params(random_state=0)
    return made


def _estimate_by(
    covariance: Any, rows: Any, moments: Moments, *, on_singular: str
) -> CorrelationEstimate:
    """Estimate ``R`` by an estimator of covariance matrices, or a function from rows to a matrix.

    The estimator is given standardised columns, so that units do not matter. If the variances that
    it estimates differ from one, as robust ones do, columns are standardised by them. Unequal
    weights are refused, because such estimators take none.
    """
    check_usable(moments)
    if moments.is_weighted:
        raise InvalidArgumentError(
            "covariance= takes no weights: estimators of covariance matrices have none. Leave out "
            "the weights or covariance."
        )
    Z = (np.asarray(rows, dtype=np.float64) - moments.mean) / moments.scale
    C, centre = _covariance(covariance, Z, moments.names)
    matrix = check_semidefinite(correlation_of_covariance(C), moments.names)
    if matrix.deficiency is not None:
        matrix.deficiency.announce(on_singular)
    return CorrelationEstimate(
        R=matrix.R,
        mean=moments.mean + centre * moments.scale,
        scale=moments.scale * np.sqrt(np.diag(C)),
        names=moments.names,
        n_rows=moments.n_rows,
        deficiency=matrix.deficiency,
        source=_name_of(covariance),
    )


def _name_of(covariance: Any) -> str:
    """The name of an estimator or function."""
    return getattr(covariance, "__name__", type(covariance).__name__)


def _covariance(covariance: Any, Z: Array, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The estimated covariance matrix and centre of standardised rows."""
    centre = np.zeros(Z.shape[1])
    if hasattr(covariance, "fit"):
        from sklearn.base import clone

        fitted = clone(covariance).fit(Z)
        if not hasattr(fitted, "covariance_"):
            raise InvalidArgumentError(
                f"{_name_of(covariance)} has no covariance_ after fit, so it estimates no "
                "covariance matrix."
            )
        estimated, centre = fitted.covariance_, np.asarray(getattr(fitted, "location_", centre))
    else:
        estimated = covariance(Z)
    what = f"The matrix of {_name_of(covariance)}"
    C, _ = square_matrix(estimated, what, InvalidCorrelationError, len(names))
    C = symmetric(C, names, what, InvalidCorrelationError, 1e-6)
    if not (np.diag(C) > 0.0).all():
        raise InvalidCorrelationError(f"{what} has a variance that is not positive.")
    return C, centre
