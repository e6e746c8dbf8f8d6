"""How the transformer is fitted: to rows, to batches of rows, to moments."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from skcoral.data.estimation import estimate_moments, estimate_rows, how_to_estimate
from skcoral.data.moments import Moments
from skcoral.estimator.attributes import COMPUTED, SOLVED, confident, solve, with_notes
from skcoral.estimator.overfitting import measure_overfitting
from skcoral.estimator.rounding import measure_rounding
from skcoral.estimator.rows import batches, column_names, comes_in_batches, read_rows
from skcoral.estimator.settings import check_batches, check_settings, learns_in_batches
from skcoral.exceptions import InvalidArgumentError, InvalidTableError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from skcoral.core.certificate import Certificate
    from skcoral.core.lowrank import FactoredCorrelation, LowRankTransform
    from skcoral.core.results import Array, Decorrelation, Threshold
    from skcoral.data.correlation import CorrelationEstimate
    from skcoral.data.effects import Measured


class Fitting:
    """The part of :class:`~skcoral.CORAL` that is fitted, with the attributes this gives it."""

    T_: Array | LowRankTransform
    certificate_: Certificate
    components_: Array
    correlation_: Array | FactoredCorrelation
    estimate_: CorrelationEstimate
    feature_names_in_: NDArray[Any]
    fidelity_: Array
    floors_: Array
    confidence_: Any
    mean_: Array
    measured_: Measured
    moments_: Moments
    n_features_in_: int
    n_iter_: int
    output_mean_: Array
    output_scale_: str
    prices_: Array
    result_: Decorrelation
    scale_: Array
    threshold_: Threshold

    def fit(
        self,
        X: Any,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the transformation from a table, or from an iterator of batches of rows.

        Parameters
        ----------
        X : array-like of shape (n, p), or iterator of such
            The rows. An iterator is read once, batch by batch, through :meth:`partial_fit`; it may
            also give pairs ``(rows, sample_weight)``. Batches without rows are passed over.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            How much each row counts relative to the others, as ``aweights`` of ``numpy.cov``.
        groups : array-like of shape (n,), optional
            Labels of clusters, with ``confidence``: rows of a cluster count as one observation.

        Returns
        -------
        CORAL
            This object, fitted.
        """
        self._forget()
        check_settings(self)
        with ExitStack() as undo:
            # also where an iterator breaks off: a part of the rows makes no model
            undo.callback(self._forget)
            if comes_in_batches(X):
                self._fit_batches(X, sample_weight)
            else:
                rows = read_rows(self, X, reset=True)
                self._fit_rows(rows, sample_weight, groups)
            undo.pop_all()
        return self

    @available_if(learns_in_batches)
    def partial_fit(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows; the transformation is computed when it is next needed.

        Any number of rows will do, one included. After the last batch the result is that of
        :meth:`fit` on all rows together. ``covariance`` and ``confidence`` need all rows at once:
        with them there is no ``partial_fit``.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`; no iterator.

        Returns
        -------
        CORAL
            This object.
        """
        check_settings(self)
        first = not self.__sklearn_is_fitted__()
        rows = read_rows(self, X, reset=first)
        names = column_names(self)
        moments = Moments(names) if first else self.moments_
        self.moments_ = moments.update(rows, sample_weight=sample_weight)
        for name in SOLVED:
            self.__dict__.pop(name, None)
        return self

    def fit_moments(self, moments: Moments) -> Self:
        """Learn the transformation from moments alone, collected anywhere and merged.

        Parameters
        ----------
        moments : Moments
            Of all the rows to fit; :meth:`partial_fit` may add more.

        Returns
        -------
        CORAL
            This object, fitted.
        """
        self._forget()
        if not isinstance(moments, Moments):
            raise InvalidArgumentError(
                f"fit_moments takes Moments, got {type(moments).__name__}; rows go to fit."
            )
        self.n_features_in_ = moments.n_features
        self.__dict__.pop("feature_names_in_", None)
        if moments.names != column_names(self):
            self.feature_names_in_ = np.array(moments.names, dtype=object)
        self._solve_moments(moments)
        self.moments_ = moments.copy()
        return self

    @property
    def n_samples_seen_(self) -> int:
        """Rows seen with a positive weight."""
        return self.moments_.n_rows

    def __getattr__(self, name: str) -> Any:
        if name not in SOLVED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This CORAL is not fitted: {name} exists after fit.")
        if "result_" not in self.__dict__:
            self._solve_moments(self.moments_)
        return self.__dict__[name] if name in self.__dict__ else COMPUTED[name](self)

    def __sklearn_is_fitted__(self) -> bool:
        return "moments_" in self.__dict__

    def _fit_near(
        self, rows: Array, names: tuple[str, ...], sample_weight: Any, near: Self | None
    ) -> Self:
        """Fit rows that were read before, from a model of the same settings for similar rows.

        The effect on the rows is measured when it is asked for.
        """
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self._fit_rows(rows, sample_weight, None, near=near, measure=False)
        return self

    def _fit_rows(self, rows: Any, sample_weight: Any, groups: Any, **how: Any) -> None:
        estimating = {"covariance": self.covariance, **how_to_estimate(self)}
        table, moments = estimate_rows(rows, column_names(self), sample_weight, **estimating)
        self._solve_estimate(table, moments, rows, sample_weight, groups, **how)

    def _solve_estimate(
        self,
        table: CorrelationEstimate,
        moments: Moments,
        rows: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        raised: Any = None,
        **how: Any,
    ) -> None:
        """Solve for correlations, with floors raised for the population where that is asked for.

        ``raised`` are these floors where they are known. With ``rows``, what rounding and new rows
        cost is measured on them.
        """
        self.moments_ = moments
        floors = None
        if self.confidence is not None:
            self.confidence_ = raised or confident(self, rows, sample_weight, groups)
            floors = self.confidence_.floors
        solve(self, table, moments, floors=floors, **how)
        if floors is not None:
            self.result_ = with_notes(self.result_, confidence=self.confidence_.sentence())
        if rows is not None:
            measure_rounding(self, rows, sample_weight)
            measure_overfitting(self, rows, sample_weight)

    def _fit_batches(self, X: Any, sample_weight: Any) -> None:
        check_batches(self)
        if sample_weight is not None:
            raise InvalidArgumentError(
                "sample_weight goes with a table; let the iterator give pairs (rows, weights)."
            )
        for where, rows, weights in batches(X):
            try:
                self.partial_fit(rows, sample_weight=weights)
            except InvalidTableError as error:
                raise InvalidTableError(f"{where}: {error}") from error
        if not self.__sklearn_is_fitted__():
            raise InvalidTableError("There was no batch with rows, so there is nothing to fit.")
        self._solve_moments(self.moments_)

    def _solve_moments(self, moments: Moments) -> None:
        check_settings(self)  # they may have changed since the rows came
        check_batches(self)
        table = estimate_moments(moments, **how_to_estimate(self))
        solve(self, table, moments)
        measure_rounding(self)

    def _fit_estimate(self, table: CorrelationEstimate, moments: Moments, **known: Any) -> Self:
        """Solve for correlations that were estimated before."""
        self._forget()
        check_settings(self)
        self.n_features_in_ = moments.n_features
        self.feature_names_in_ = np.array(moments.names, dtype=object)
        self._solve_estimate(table, moments, **known)
        return self

    def _restore(self, *, estimate, result, threshold, moments, has_names):
        """Set the attributes of a fit that was read from a file."""
        check_settings(self)
        self.n_features_in_ = moments.n_features
        if has_names:
            self.feature_names_in_ = np.array(moments.names, dtype=object)
        self.moments_, self.estimate_, self.result_ = moments, estimate, result
        self.output_scale_ = self.output_scale
        if threshold is not None:
            self.threshold_ = threshold
        return self

    def _forget(self) -> None:
        for name in (*SOLVED, "moments_", "confidence_"):
            self.__dict__.pop(name, None)
