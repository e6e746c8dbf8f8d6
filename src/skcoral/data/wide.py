"""Moments of tables with no more rows than columns, kept as the rows themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcoral.core.arrays import Array
from skcoral.core.deficiency import Deficiency, Relation
from skcoral.core.tolerances import SINGULAR_TOL
from skcoral.core.validation import check_names, check_weights, float_array
from skcoral.data.moments import CompensatedSum, Moments
from skcoral.exceptions import InvalidTableError

_DUPLICATE = 1e-10  # distance of unit columns that count as copies of each other


class RowMoments(Moments):
    """Moments of few rows: the deviations from the mean (n × p) instead of a p × p co-moment.

    Rows added later turn them into ordinary :class:`~skcoral.data.moments.Moments`.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The rows.
    names : sequence of str
        The columns.
    sample_weight : array-like of shape (n,), optional
        How much each row counts relative to the others.
    """

    def __init__(
        self,
        X: ArrayLike,
        names: Sequence[str],
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        rows, _ = float_array(X, "A table", InvalidTableError)
        weights = check_weights(sample_weight, len(rows))
        if weights is not None:
            rows, weights = rows[weights > 0], weights[weights > 0]
        self.names = check_names(names, rows.shape[1])
        self._count(len(rows), weights)
        self._mean, self.deviations = CompensatedSum(np.zeros(rows.shape[1])), rows
        if not len(rows):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            self.deviations = self._centre(rows, weights)
            self._mean = CompensatedSum(self._mean.value)  # as files keep it
            if weights is not None:
                self.deviations *= np.sqrt(weights)[:, None]
            self._check_finite_cells(self.squares)

    @property
    def squares(self) -> Array:
        """Weighted sum of the squared deviations of each column."""
        return np.asarray(np.einsum("ij,ij->j", self.deviations, self.deviations))

    @property
    def comoment(self) -> Array:
        """The p × p co-moment, formed when asked for."""
        return np.asarray(self.deviations.T @ self.deviations)

    def update(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Moments:
        """Return ordinary moments of these rows and those of ``X``."""
        return self.as_moments().update(X, sample_weight=sample_weight)

    def merge(self, other: Moments) -> Moments:
        """Return ordinary moments of both tables together."""
        return self.as_moments().merge(other)

    def as_moments(self) -> Moments:
        """The same as ordinary moments, with a p × p co-moment."""
        moments = Moments(self.names)
        moments._read_counts(self.state())
        moments._mean, moments._comoment = self._mean, CompensatedSum(self.comoment)
        return moments

    def _sums(self) -> dict[str, Array]:
        return {"mean": self.mean, "deviations": self.deviations}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Moments:
        """Rebuild from what :meth:`state` returned."""
        few = cls.__new__(cls)
        few.names = check_names(state["names"], len(state["names"]))
        few._read_counts(state)
        few._mean = CompensatedSum(np.array(state["mean"], dtype=np.float64))
        few.deviations = np.array(state["deviations"], dtype=np.float64)
        p = few.n_features
        numbers = np.r_[few.weight, few.squared_weight, few.mean, few.deviations.ravel()]
        if (
            few.mean.shape != (p,)
            or few.deviations.shape != (few.n_rows, p)
            or not np.isfinite(numbers).all()
            or few.weight < 0
        ):
            raise InvalidTableError(
                "These cannot be the moments of a table: a number is not finite, or the rows and "
                "columns do not fit together."
            )
        return few


def deficiency_of_rows(moments: RowMoments) -> Deficiency:
    """Factor and rank of the correlation matrix of few rows, without forming it."""
    length = np.sqrt(moments.squares)
    Z = moments.deviations / length
    _, size, vt = np.linalg.svd(Z, full_matrices=False)
    # the rows are centred, so that one of them follows from the others
    counts = (size**2 > SINGULAR_TOL * size[0] ** 2) & (np.arange(len(size)) < moments.n_rows - 1)
    B = size[counts, None] * vt[counts]
    lengths = np.linalg.norm(B, axis=0)
    A = B / lengths
    relations = []
    for i, j in duplicates(A):
        times = float(np.sign(A[:, i] @ A[:, j]) * length[j] / length[i])  # but for a constant
        relations.append(Relation(moments.names[j], ((times, moments.names[i]),)))
    return Deficiency(A, lengths, relations, moments.n_rows)


def duplicates(A: Array) -> list[tuple[int, int]]:
    """Pairs (first, copy) of unit columns that are equal up to sign, in a few passes."""
    key = np.abs(np.random.default_rng(0).normal(size=len(A)) @ A)
    order = np.argsort(key, kind="stable")
    first: dict[int, int] = {}
    pairs = []
    for left, right in pairwise(order):
        if key[right] - key[left] > _DUPLICATE:
            continue
        if 1.0 - abs(float(A[:, left] @ A[:, right])) <= _DUPLICATE:
            low, high = sorted((first.get(int(left), int(left)), int(right)))
            first[int(left)] = first[int(right)] = low
            pairs.append((low, high))
    return sorted(pairs, key=lambda pair: pair[1])
