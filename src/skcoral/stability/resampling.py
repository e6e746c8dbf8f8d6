"""The same settings fitted to parts of a table, or to rows drawn from it with replacement."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation
from skcoral.core.validation import check_weights
from skcoral.data.correlation import CorrelationEstimate, estimate_rows, how_to_estimate
from skcoral.estimator import CORAL
from skcoral.estimator.rows import column_names, read_rows
from skcoral.estimator.settings import check_settings, solve_for
from skcoral.exceptions import InvalidArgumentError, NotCertifiedWarning, SingularCorrelationWarning
from skcoral.stability.dependence import read_dependence


@dataclass(frozen=True)
class Fitted:
    """A fit and what it takes to apply it to rows."""

    table: CorrelationEstimate
    result: Decorrelation

    def outputs_and_sources(self, rows: Array) -> tuple[Array, Array]:
        """Outputs of these rows, and the standardised columns or composites they belong to."""
        return self.result.outputs_and_sources(self.table.standardised(rows))


def mean_of(values: Array, weights: Array | None) -> Array:
    """Weighted mean of each column."""
    if weights is None:
        return np.asarray(values.mean(axis=0))
    return np.asarray(weights @ values / weights.sum())


def standardised(values: Array, weights: Array | None) -> Array:
    """Columns with mean zero and mean square one, weighted."""
    centred = values - mean_of(values, weights)
    size = np.sqrt(mean_of(centred * centred, weights))
    return np.asarray(centred / np.where(size > 0.0, size, 1.0))


class Resampler:
    """Fits an estimator's settings to folds of a table, or to rows drawn from it.

    The arguments are those of :func:`~skcoral.stability.confident_floors`; rows of weight zero
    are no observations and left out, unless ``every_row`` is to have its place.
    """

    def __init__(
        self,
        estimator: CORAL,
        X: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        block_length: Any = None,
        every_row: bool = False,
    ) -> None:
        if not isinstance(estimator, CORAL):
            raise InvalidArgumentError(
                "The estimator comes first, then the rows, as in holdout(CORAL(rho_min=0.9), X); "
                f"got {type(estimator).__name__} first."
            )
        self.model: Any = clone(estimator)
        self.model.confidence = None  # refits are plain: raising floors is what they are for
        check_settings(self.model)
        rows = read_rows(self.model, X, reset=True)
        self.rows: Array = np.ascontiguousarray(rows, dtype=np.float64)
        self.names = column_names(self.model)
        self.weights: Array | None = check_weights(sample_weight, len(rows))
        self.dependence = read_dependence(self.rows, groups, block_length, self.weights)
        self.counted: Any = slice(None)
        if not every_row and self.weights is not None and block_length is None:
            # nor is a group an observation that has rows of weight zero alone
            self.counted = self.weights > 0.0
            codes = self.dependence.groups
            self.rows, self.weights = self.rows[self.counted], self.weights[self.counted]
            codes = None if codes is None else codes[self.counted]
            self.dependence = read_dependence(self.rows, codes, None, self.weights)

    def weights_of(self, part: Any) -> Array | None:
        """The weights of the rows ``part``."""
        return None if self.weights is None else self.weights[part]

    def table(self, part: Any = slice(None)) -> CorrelationEstimate:
        """The correlation matrix of the rows ``part``, or of all rows."""
        with warnings.catch_warnings():
            # warnings are given for the whole table only
            warnings.simplefilter("ignore", SingularCorrelationWarning)
            how = {"covariance": self.model.covariance, **how_to_estimate(self.model)}
            return estimate_rows(self.rows[part], self.names, self.weights_of(part), **how)[0]

    def fit(
        self,
        part: Any = slice(None),
        *,
        floors: Array | None = None,
        warm: Decorrelation | None = None,
    ) -> Fitted:
        """Fit the rows ``part``, or all rows, at other floors."""
        table = self.table(part)
        with warnings.catch_warnings():
            # of a refit, only how it does on other rows is of interest
            warnings.simplefilter("ignore", SingularCorrelationWarning)
            warnings.simplefilter("ignore", NotCertifiedWarning)
            return Fitted(table, solve_for(table, self.model, floors=floors, warm=warm))

    def sides(self, fit: Fitted) -> tuple[Array, Array]:
        """Outputs and sources of all rows by this fit, standardised with their weights."""
        outputs, sources = fit.outputs_and_sources(self.rows)
        return standardised(outputs, self.weights), standardised(sources, self.weights)

    def by_fold(
        self, function: Callable[..., tuple[Array, Array]], n_folds: int, *args: Any
    ) -> tuple[Array, Array]:
        """``function(self, train, test, *args)`` of each fold: its two arrays, for all rows."""
        splits = list(self.dependence.folds(n_folds))
        tasks = [(*split, *args) for split in splits]
        first, second = zip(*self.parallel(function, tasks), strict=True)
        order = np.argsort(np.concatenate([test for _, test in splits]))
        return np.concatenate(first)[order], np.concatenate(second)[order]

    def parallel(self, function: Callable[..., Any], tasks: Iterable[Any]) -> Any:
        """``function(self, *task)`` of each task, in as many processes as joblib is told."""
        from joblib import Parallel, delayed

        return Parallel()(delayed(function)(self, *task) for task in tasks)
