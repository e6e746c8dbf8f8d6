"""Bundled data: Wine, and the correlation matrix of the World Development Indicators."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array, Frozen, read_only
from skcoral.data.correlation import sample_correlation
from skcoral.data.moments import Moments

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
    source: str
    licence: str
    correlation: Array = field(init=False)

    def __post_init__(self) -> None:
        correlation = sample_correlation(Moments.from_rows(self.data, names=self.names))
        for name, array in (("data", self.data), ("correlation", correlation)):
            object.__setattr__(self, name, read_only(array))

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.data, columns=list(self.names))


def load_wine() -> Dataset:
    """Load the Wine data: 178 wines, 13 chemical and visual measurements.

    Returns
    -------
    Dataset
        With ``data``, ``names`` and ``correlation``; the table is the one bundled with
        scikit-learn.

    Examples
    --------
    >>> from skcoral.datasets import load_wine
    >>> wine = load_wine()
    >>> wine.data.shape, wine.names[6], round(float(wine.correlation[5, 6]), 3)
    ((178, 13), 'flavanoids', 0.865)
    """
    from sklearn.datasets import load_wine as bundled_wine

    wine = bundled_wine()
    return Dataset(
        np.asarray(wine.data, dtype=np.float64),
        names=tuple(map(str, wine.feature_names)),
        source="Aeberhard and Forina (1992), Wine, UCI Machine Learning Repository",
        licence="CC BY 4.0",
    )


def wdi_correlation() -> NamedCorrelation:
    """Load the correlation matrix of eight World Development Indicators, 137 countries, 2019.

    Only the matrix is bundled: ``examples/world_bank.py`` fetches the table.

    Returns
    -------
    NamedCorrelation
        With ``correlation`` (8×8), ``names``, ``n_rows`` and the attribution that the licence of
        the data (CC BY 4.0) asks for.

    Examples
    --------
    >>> from skcoral.datasets import wdi_correlation
    >>> wdi = wdi_correlation()
    >>> wdi.names[0], wdi.n_rows, round(float(abs(wdi.correlation[5, 6])), 6)
    ('fertility', 137, 0.905617)
    """
    text = files("skcoral.datasets").joinpath("data/wdi_2019_correlation.json").read_text("utf-8")
    stored = json.loads(text)
    p = len(stored["names"])
    R = np.eye(p)
    R[np.triu_indices(p, 1)] = stored["upper_triangle"]
    return NamedCorrelation(
        R + np.triu(R, 1).T,
        names=tuple(stored["names"]),
        n_rows=int(stored["n_rows"]),
        source=stored["source"],
        licence=stored["licence"],
    )
