"""Data that need no network: Wine, and the correlation matrix of the development indicators."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np

from skcoral.datasets._records import Dataset, NamedCorrelation


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
        rows=(),
        source="Aeberhard and Forina (1992), Wine, UCI Machine Learning Repository",
        licence="CC BY 4.0",
    )


def wdi_correlation() -> NamedCorrelation:
    """Load the correlation matrix of eight World Development Indicators, 137 countries, 2019.

    Only the matrix is bundled; :func:`fetch_wdi` and :func:`load_wdi` give the table.

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
