"""Margins: each column is replaced by its ranks or normal scores before anything else is done.

A monotone map per column, learnt from the fitted rows. The rows fitted get exactly their (average)
ranks, or the normal quantiles of these; a value in between gets a score in between, a value beyond
the ends gets that of the end. Correlations of ranks are Spearman's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ._validation import check_choice
from .results import Array, read_only

MARGINS = ("none", "ranks", "normal")


@dataclass(frozen=True, eq=False)
class Margins:
    """Monotone maps of the columns, as learnt by :func:`fit_margins`.

    Attributes
    ----------
    kind : {"ranks", "normal"}
        Ranks as fractions of the rows, (rank - 1/2) / n, or the normal quantiles of these.
    values, scores : tuple of ndarray
        For each column the distinct values in increasing order, and the score of each.

    Examples
    --------
    >>> maps = fit_margins("ranks", [[1.0], [10.0], [100.0]])
    >>> maps.transform([[10.0], [1000.0]]).round(3).tolist()
    [[0.5], [0.833]]
    """

    kind: str
    values: tuple[Array, ...]
    scores: tuple[Array, ...]

    def __post_init__(self) -> None:
        for name in ("values", "scores"):
            object.__setattr__(self, name, tuple(read_only(a) for a in getattr(self, name)))

    def transform(self, X: ArrayLike) -> Array:
        """Scores of rows, new or old; beyond the values fitted they stay at the ends."""
        return self._map(X, self.values, self.scores)

    def inverse_transform(self, scores: ArrayLike) -> Array:
        """Values whose scores these are, within the range of the rows fitted."""
        return self._map(scores, self.scores, self.values)

    def outside(self, X: ArrayLike) -> int:
        """How many rows have a value beyond those fitted in some column."""
        rows = np.asarray(X, dtype=np.float64)
        low = np.array([values[0] for values in self.values])
        high = np.array([values[-1] for values in self.values])
        return int(((rows < low) | (rows > high)).any(axis=1).sum())

    @staticmethod
    def _map(rows: ArrayLike, sources: Sequence[Array], targets: Sequence[Array]) -> Array:
        columns = np.asarray(rows, dtype=np.float64).T
        triples = zip(columns, sources, targets, strict=True)
        return np.column_stack([np.interp(column, old, new) for column, old, new in triples])

    @property
    def noun(self) -> str:
        """What the columns have become."""
        return {"ranks": "ranks", "normal": "normal scores"}[self.kind]


def fit_margins(kind: str, X: ArrayLike, *, sample_weight: Any = None) -> Margins | None:
    """Learn the map of each column; None for ``kind="none"``.

    Parameters
    ----------
    kind : {"none", "ranks", "normal"}
        What the columns become.
    X : array-like of shape (n, p)
        The rows.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; ranks are then shares of the total weight.

    Examples
    --------
    >>> from skcoral.margins import fit_margins
    >>> X = [[10.0], [1000.0], [10.0], [20.0]]
    >>> maps = fit_margins("ranks", X)
    >>> (4 * maps.transform(X) + 0.5).ravel()  # average ranks
    array([1.5, 4. , 1.5, 3. ])
    >>> maps.inverse_transform(maps.transform([[15.0]]))
    array([[15.]])
    """
    check_choice("margins", kind, MARGINS)
    if kind == "none":
        return None
    rows = np.asarray(X, dtype=np.float64)
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
    seen = weights > 0
    rows, weights = rows[seen], weights[seen]
    values, scores = [], []
    for column in rows.T:
        distinct, group = np.unique(column, return_inverse=True)
        size = np.bincount(group, weights=weights, minlength=len(distinct))
        share = (np.cumsum(size) - 0.5 * size) / size.sum()
        values.append(distinct)
        scores.append(share if kind == "ranks" else ndtri(share))
    return Margins(kind, tuple(values), tuple(scores))
