"""The same settings fitted to other rows or weights, without what only a report needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from skcoral._requirements import checked_weights
from skcoral._validation import check_callback, check_jobs
from skcoral.correlation import CorrelationEstimate
from skcoral.estimator import CORAL
from skcoral.estimator.fitting import estimate_rows
from skcoral.estimator.rows import column_names, read_rows
from skcoral.estimator.settings import check_settings, faded
from skcoral.estimator.solution import answer
from skcoral.exceptions import NotCertifiedWarning, SingularCorrelationWarning
from skcoral.results import Array, Decorrelation

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Fitted:
    """A fit and what it takes to apply it to rows."""

    table: CorrelationEstimate
    result: Decorrelation

    def sources(self, rows: Array) -> Array:
        """What the outputs belong to: standardised columns or scores, or composites of them."""
        Z = self._standardised(rows)
        return Z if self.result.anchors is None else np.asarray(Z @ self.result.anchors)

    def outputs(self, rows: Array) -> Array:
        """The outputs of these rows."""
        return np.asarray(self._standardised(rows) @ self.result.T)

    def _standardised(self, rows: Array) -> Array:
        maps = self.table.margins
        return ((rows if maps is None else maps.transform(rows)) - self.table.mean) / (
            self.table.scale
        )


class Refits:
    """Fits an estimator's settings to parts of a table, or to the table with other weights.

    Parameters
    ----------
    estimator : CORAL or None
        The settings; ``CORAL()`` unless given.
    X : array-like of shape (n, p)
        The table.
    sample_weight : array-like of shape (n,), optional
        Weights of its rows.
    """

    def __init__(self, estimator: CORAL | None, X: Any, sample_weight: Any = None) -> None:
        self.model: Any = clone(CORAL() if estimator is None else estimator)
        self.model.confidence = None
        check_settings(self.model)
        rows = read_rows(self.model, X, reset=True, may_miss=self.model.missing == "em")
        self.rows: Array = np.ascontiguousarray(rows, dtype=np.float64)
        #: Whether values are missing, so that rows cannot be measured one by one.
        self.incomplete = bool(np.isnan(self.rows).any())
        self.names = column_names(self.model)
        weights = faded(self.model.halflife, len(rows), sample_weight)
        self.weights: Array | None = checked_weights(weights, len(rows))

    def table(self, part: Any = None, weights: Array | None = None) -> CorrelationEstimate:
        """The correlation matrix of the rows ``part``, or of all rows with other weights."""
        weights = self.weights if weights is None else weights
        rows = self.rows
        if part is not None:
            rows, weights = rows[part], None if weights is None else weights[part]
        with warnings.catch_warnings():
            # what the rows cannot determine is said of the whole table
            warnings.simplefilter("ignore", SingularCorrelationWarning)
            return estimate_rows(self.model, rows, self.names, weights)[0]

    @cached_property
    def whole(self) -> CorrelationEstimate:
        """The correlation matrix of the whole table."""
        return self.table()

    def fit(
        self,
        part: Any = None,
        weights: Array | None = None,
        *,
        floors: Array | None = None,
        warm: Decorrelation | None = None,
    ) -> Fitted:
        """Fit the rows ``part``, or all rows with other weights, at other floors."""
        table = self.table(part, weights)
        with warnings.catch_warnings():
            # of a refit, only how it does on other rows is of interest
            warnings.simplefilter("ignore", SingularCorrelationWarning)
            warnings.simplefilter("ignore", NotCertifiedWarning)
            return Fitted(table, answer(self.model, table, floors=floors, warm=warm))


def in_parallel(tasks: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Outcomes of joblib tasks in their order, whatever the number of processes."""
    from joblib import Parallel

    yield from Parallel(n_jobs=check_jobs(n_jobs), return_as="generator")(tasks)


def counter(callback: Progress | None, total: int) -> Callable[[], None]:
    """A function that tells ``callback`` how many of ``total`` steps are done, one more a call."""
    check_callback(callback)
    done = 0

    def step() -> None:
        nonlocal done
        done = min(done + 1, total)
        if callback is not None:
            callback(done, total)

    return step
