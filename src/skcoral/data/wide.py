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
from skcoral.data.moments import Moments
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
        self._centre(rows, weights)

    def _centre(self, rows: Array, weights: Array | None) -> None:
        if not len(rows):
            self._means, self.deviations = np.zeros(rows.shape[1]), rows
            return
        # measured from a row, which equals its constant columns exactly, and corrected twice
        with np.errstate(over="ignore", invalid="ignore"):
            centred = rows - rows[0]
            mean = rows[0].copy()
            for _ in range(2):
                each = centred.sum(axis=0) if weights is None else weights @ centred
                centred -= each / self.weight
                mean += each / self.weight
            self._means = mean
            centred = centred if weights is None else centred * np.sqrt(weights)[:, None]
            # in one order of summation, whatever that of the table: files read back the same sums
            self.deviations = np.ascontiguousarray(centred)
            self._check_finite_cells(self.squares)

    @property
    def mean(self) -> Array:
        """Weighted mean of each column."""
        return self._means

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

    def copy(self) -> Moments:
        """Return an independent copy."""
        return RowMoments.from_state(self.state())

    def as_moments(self) -> Moments:
        """The same as ordinary moments, with a p × p co-moment."""
        state = self.state()
        state.pop("deviations")
        zeros = np.zeros((self.n_features, self.n_features))
        state["mean"] = np.stack([self._means, np.zeros_like(self._means)])
        state["comoment"] = np.stack([self.comoment, zeros])
        return Moments.from_state(state)

    def _sums(self) -> dict[str, Array]:
        return {"mean": self._means, "deviations": self.deviations}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Moments:
        """Rebuild from what :meth:`state` returned."""
        few = cls.__new__(cls)
        few.names = check_names(state["names"], len(state["names"]))
        few._read_counts(state)
        few._means = np.array(state["mean"], dtype=np.float64)
        few.deviations = np.array(state["deviations"], dtype=np.float64)
        p = few.n_features
        numbers = np.r_[few.weight, few.squared_weight, few._means, few.deviations.ravel()]
        if (
            few._means.shape != (p,)
            or few.deviations.shape != (few.n_rows, p)
            or not np.isfinite(numbers).all()
            or few.weight < 0
        ):
            raise InvalidTableError(
                "These are no moments of any rows: a number is not finite, or the rows and columns "
                "do not fit together."
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
    pairs = duplicates(A)
    relations = [
        Relation(moments.names[j], ((_ratio(moments, A, i, j), moments.names[i]),))
        for i, j in pairs
    ]
    return Deficiency(A, lengths, relations, moments.n_rows)


def _ratio(moments: RowMoments, A: Array, i: int, j: int) -> float:
    """By which column i is multiplied to give column j, but for a constant."""
    return float(np.sign(A[:, i] @ A[:, j]) * moments.scale[j] / moments.scale[i])


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
