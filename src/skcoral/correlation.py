"""From a table to the correlation matrix that everything else is about.

Correlations come from :class:`~skcoral.moments.Moments` alone; the Ledoit–Wolf intensity needs the
rows themselves. What makes a matrix singular is described in terms
of the table: which columns are constant, copies or combinations of others, how many rows it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._linalg import correlation_of_covariance
from ._lowrank import FactoredCorrelation
from ._records import Frozen
from ._requirements import listing
from ._singular import Deficiency, of_table
from ._validation import check_shrinkage as check_shrinkage
from ._validation import judge_correlation
from .exceptions import InvalidTableError
from .moments import SMALLEST_SPREAD, Moments
from .results import Array


@dataclass(frozen=True)
class CorrelationEstimate(Frozen):
    """A correlation matrix with what is needed to standardise the rows it came from.

    Functions that take a named correlation matrix take this object as it is.

    Attributes
    ----------
    R : ndarray of shape (p, p), or FactoredCorrelation
        The correlation matrix, shrunk if asked; kept as a factor where columns are more than twice
        the rows.
    mean, scale : ndarray of shape (p,)
        Mean and sample standard deviation of each column.
    names : tuple of str
        The columns.
    n_rows : int
        Rows with a positive weight; 0 where a matrix was given.
    shrinkage : float
        The intensity that was used; 0 means that ``R`` is the sample's own matrix.
    weights : {"none", "frequency", "reliability"}
        Whether rows were weighted, and what the weights meant.
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
    shrinkage: float = 0.0
    weights: str = "none"
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
        """Whether ``R`` is the plain correlation matrix of the rows."""
        return not self.shrinkage and not self.source and self.weights == "none"

    @property
    def about(self) -> str:
        """What the guarantees are about, in a few words."""
        if not self.n_rows:
            shrunk = f"shrunk towards the identity by {self.shrinkage:.4g}"
            return f"the matrix {shrunk if self.shrinkage else 'given'}"
        rows = f"these {self.n_rows:,} rows" + " with their weights" * (self.weights != "none")
        if self.source:
            return f"the correlation matrix that {self.source} estimates from {rows}"
        if not self.shrinkage:
            return rows
        return (
            f"the correlation matrix of {rows}, shrunk towards the identity by {self.shrinkage:.4g}"
        )

    @property
    def guarantee(self) -> str:
        """One sentence saying which matrix the floors and the certificate are about."""
        return (
            f"Floors and certificate are about {self.about}; on others fidelities and residuals "
            "differ."
        )


def shrunk_matrix(
    R: Array, names: tuple[str, ...], intensity: float, *, scale: Array | None = None
) -> CorrelationEstimate:
    """A given correlation matrix, shrunk towards the identity; there are no rows behind it."""
    shrunk = (1.0 - intensity) * R
    np.fill_diagonal(shrunk, 1.0)
    p = len(R)
    scale = np.ones(p) if scale is None else scale
    return CorrelationEstimate(shrunk, np.zeros(p), scale, names, 0, intensity)


def estimate(
    moments: Moments,
    *,
    shrinkage: float = 0.0,
    on_singular: str = "raise",
) -> CorrelationEstimate:
    """Turn moments into a correlation matrix, or say why there is none.

    Parameters
    ----------
    moments : Moments
        Of the rows.
    shrinkage : float in [0, 1], default=0
        ``R`` becomes ``(1 - shrinkage) R + shrinkage I``.
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
    >>> from skcoral.correlation import estimate
    >>> from skcoral.moments import Moments
    >>> table = Moments.from_rows([[1.0, 2.0], [2.0, 1.0], [3.0, 6.0], [5.0, 4.0]])
    >>> estimate(table).R.round(6)
    array([[1.      , 0.550149],
           [0.550149, 1.      ]])
    """
    refuse_unusable(moments, shrinkage=shrinkage or float(on_singular == "solve"))
    R = sample_correlation(moments)
    if shrinkage:
        R *= 1.0 - shrinkage
        np.fill_diagonal(R, 1.0)
    R, found = judge_correlation(R, moments.names, scale=moments.scale)
    if found is not None:
        found = of_table(found, moments.n_rows)
        if on_singular == "raise":
            raise found.error()
    return CorrelationEstimate(
        R=R,
        mean=moments.mean,
        scale=moments.scale,
        names=moments.names,
        n_rows=moments.n_rows,
        shrinkage=shrinkage,
        weights=meaning(moments),
        deficiency=found,
        judged=True,
    )


def estimate_from_rows(
    X: ArrayLike,
    moments: Moments,
    *,
    sample_weight: ArrayLike | None = None,
    shrinkage: object = None,
    on_singular: str = "raise",
) -> CorrelationEstimate:
    """Estimate ``R`` with the rows at hand, as the Ledoit–Wolf intensity needs.

    ``moments`` are those of the rows, with the same weights; ``shrinkage`` is None, "auto" or a
    number in (0, 1].
    """
    refuse_unusable(moments, shrinkage=1.0)
    if isinstance(shrinkage, str) and shrinkage == "auto":
        intensity = ledoit_wolf(X, moments, sample_weight=sample_weight)
    else:
        intensity = check_shrinkage(shrinkage)
    return estimate(
        moments,
        shrinkage=intensity,
        on_singular=on_singular,
    )


def sample_correlation(moments: Moments) -> Array:
    """Correlation matrix of the rows summarised, singular or not; constant columns are refused."""
    _refuse_single_rows(moments)
    _refuse_constant(moments)
    return correlation_of_covariance(moments.comoment)


def ledoit_wolf(X: ArrayLike, moments: Moments, *, sample_weight: ArrayLike | None = None) -> float:
    """Ledoit–Wolf intensity for shrinking the correlation matrix of ``X`` towards the identity.

    It minimises the expected squared distance to the true matrix, as estimated from the rows:
    ``min(1, Σ_k w_k ‖z_k z_kᵀ − R‖² / (n Σ w_k ‖R − I‖²))`` for the standardised rows ``z_k`` and
    ``n`` the effective number of rows (Ledoit and Wolf, 2004).
    """
    R = sample_correlation(moments)
    total = moments.weight
    spread = np.sqrt(np.diag(moments.comoment) / total)
    lengths = (((np.asarray(X, dtype=np.float64) - moments.mean) / spread) ** 2).sum(axis=1)
    weights = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    noise = float((weights * lengths**2).sum()) / total - float((R**2).sum())
    distance = float((R**2).sum()) - len(R)
    if distance <= 0.0:  # R is the identity already, as it always is for a single column
        return 0.0
    return min(1.0, max(0.0, noise / (moments.effective_rows * distance)))


def meaning(moments: Moments) -> str:
    """Whether rows were weighted unequally, and what the weights mean."""
    # without weights, and with equal ones, n Σw² = (Σw)²
    if moments.squared_weight * moments.n_rows / moments.weight**2 - 1.0 <= 1e-12:
        return "none"
    return "frequency" if moments.weights_count_rows else "reliability"


def _refuse_constant(moments: Moments) -> None:
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
            f"correlation: {listing(constant)}. Drop them; shrinkage cannot help here." + hint
        )


def _refuse_single_rows(moments: Moments) -> None:
    if moments.n_rows < 2:
        raise InvalidTableError(
            "Correlations need at least two rows with a positive weight; got 1 sample (n_samples="
            f"{moments.n_rows}) of {moments.n_features} columns ({listing(moments.names)})."
        )


def refuse_unusable(moments: Moments, *, shrinkage: float) -> None:
    """Refuse tables without correlations: no rows, one row, constant columns, too few rows."""
    n, p = moments.n_rows, moments.n_features
    if moments.weight <= 0.0:
        raise InvalidTableError(
            "There are no rows to fit: none came, or every sample weight is zero."
        )
    _refuse_single_rows(moments)
    _refuse_constant(moments)
    if n <= p and not shrinkage:
        raise InvalidTableError(
            f"{n} rows cannot determine the correlations of {p} columns "
            f"({listing(moments.names)}): the matrix has rank {n - 1} at most, and no exact "
            f"decorrelator exists. Give at least {p + 1} rows, use fewer columns, or shrink "
            "explicitly with shrinkage='auto' (Ledoit–Wolf) or a number in (0, 1]; the guarantee "
            "is then about the shrunk matrix."
        )
