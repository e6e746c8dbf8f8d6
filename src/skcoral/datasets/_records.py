"""Frozen containers: a table with its correlation matrix, or the matrix alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array, read_only
from skcoral._records import Frozen
from skcoral.correlation import sample_correlation
from skcoral.moments import Moments

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class NamedCorrelation(Frozen):
    """A correlation matrix, the names of its variables, and where it comes from.

    Attributes
    ----------
    correlation : ndarray of shape (p, p)
        Read-only, symmetric, unit diagonal.
    names : tuple of str
        The variables, in the order of the matrix.
    n_rows : int
        Rows of the table that the matrix was computed from.
    source, licence : str
        To be quoted wherever the numbers are shown.

    Examples
    --------
    >>> from skcoral.datasets import wdi_correlation
    >>> wdi = wdi_correlation()
    >>> wdi.n_rows, wdi.names[0]
    (137, 'fertility')
    """

    correlation: Array
    names: tuple[str, ...]
    n_rows: int
    source: str
    licence: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # NumPy before version 2 does not know copy=None.
        return (np.array if copy else np.asarray)(self.correlation, dtype=dtype)

    def to_frame(self) -> pd.DataFrame:
        """The matrix as a pandas table with the names on both sides."""
        import pandas as pd

        return pd.DataFrame(self.correlation, index=list(self.names), columns=list(self.names))


@dataclass(frozen=True)
class Dataset:
    """A complete table of numbers with its Pearson correlation matrix.

    Attributes
    ----------
    data : ndarray of shape (n, p)
        Rows are observations; read-only.
    names : tuple of str
        The columns of ``data``.
    rows : tuple of str
        Labels of the observations; empty where they have none.
    correlation : ndarray of shape (p, p)
        Pearson correlation matrix of ``data``; read-only.
    source, licence : str
        To be quoted wherever the numbers are shown.

    Examples
    --------
    >>> from skcoral.datasets import load_wine
    >>> load_wine().data.shape
    (178, 13)
    """

    data: Array
    names: tuple[str, ...]
    rows: tuple[str, ...]
    source: str
    licence: str
    correlation: Array = field(init=False)

    def __post_init__(self) -> None:
        correlation = sample_correlation(Moments.from_rows(self.data, names=self.names))
        for name, array in (("data", self.data), ("correlation", correlation)):
            object.__setattr__(self, name, read_only(array))

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame, with row labels where there are any."""
        import pandas as pd

        return pd.DataFrame(self.data, index=list(self.rows) or None, columns=list(self.names))
