"""How the transformer is fitted: to rows, to batches of rows, to moments."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from skcoral import api
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.results import Notes
from skcoral.data.correlation import CorrelationEstimate, estimate, estimate_rows, how_to_estimate
from skcoral.data.effects import Measured, measure_matrix, measure_rows
from skcoral.data.moments import Moments
from skcoral.estimator.rows import (
    batches,
    column_names,
    comes_in_batches,
    measure_rounding,
    named_rows,
    read_rows,
)
from skcoral.estimator.settings import check_settings, learns_in_batches, solve_for
from skcoral.exceptions import InvalidArgumentError, InvalidTableError, NotCertifiedWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from skcoral.core.arrays import Array
    from skcoral.core.lowrank import FactoredCorrelation
    from skcoral.core.results import Decorrelation, Threshold
    from skcoral.core.solution import Certificate

# Columns of a wide table from which on the effect is measured only on request: of 40 rows, that
# takes twice as long as the fit with 12,000 columns, and six times as long with 25,000.
_LONG = 10_000


class Fitting:
    """The part of :class:`~skcoral.CORAL` that is fitted, with the attributes this gives it."""

    T_: Array | LowRankTransform
    certificate_: Certificate
    correlation_: Array | FactoredCorrelation
    estimate_: CorrelationEstimate
    feature_names_in_: NDArray[Any]
    fidelity_: Array
    floors_: Array
    confidence_: Any
    mean_: Array
    moments_: Moments
    n_features_in_: int
    output_scale_: str
    prices_: Array
    result_: Decorrelation
    scale_: Array

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
            Nothing else depends on them.

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
                self._fit_rows(read_rows(self, X, reset=True), sample_weight, groups=groups)
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
        moments = Moments(column_names(self)) if first else self.moments_
        self.moments_ = moments.update(rows, sample_weight=sample_weight)
        for name in _SOLVED:
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
        generic = tuple(f"x{j}" for j in range(moments.n_features))
        self._set_columns(moments.names, named=moments.names != generic)
        return self._solve_moments(moments.copy())

    @property
    def n_samples_seen_(self) -> int:
        """Rows seen with a positive weight."""
        return self.moments_.n_rows

    @property
    def n_iter_(self) -> int:
        """Newton steps taken, for the threshold and the transformation together."""
        regular = self.estimate_.deficiency is None
        return self.result_.n_iter + (self.threshold_.n_iter if regular else 0)

    @cached_property
    def threshold_(self) -> Threshold:
        """The largest common fidelity that exact decorrelation of the columns allows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            return api.threshold(self.estimate_)

    @cached_property
    def measured_(self) -> Measured:
        """What the transformation does to the rows fitted, in figures."""
        if self.result_.on_rows is not None:
            return self.result_.on_rows
        return measure_rows(self.estimate_, self.result_, self.moments_)

    @property
    def components_(self) -> Array:
        """The transformation as it acts on the columns."""
        T = self.T_.toarray() if isinstance(self.T_, LowRankTransform) else self.T_
        components: Array = (T / self.scale_[:, None]).T
        original = self.output_scale_ == "original"
        return components * self.moments_.scale[:, None] if original else components

    @property
    def output_mean_(self) -> Array:
        """Mean of the outputs."""
        original = self.output_scale_ == "original"
        return self.moments_.mean if original else np.zeros(len(self.result_.names))

    def __getattr__(self, name: str) -> Any:
        if name not in _SOLVED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This CORAL is not fitted: {name} exists after fit.")
        if "result_" not in self.__dict__:
            self._solve_moments(self.moments_)
        return _PARTS[name](self) if name in _PARTS else self.__dict__[name]

    def __sklearn_is_fitted__(self) -> bool:
        return "moments_" in self.__dict__

    def _fit_near(
        self, rows: Array, names: tuple[str, ...], sample_weight: Any, near: Self | None
    ) -> Self:
        """Fit rows that were read before, from a model of the same settings for similar rows.

        The effect on the rows is measured when it is asked for.
        """
        self._set_columns(names)
        return self._fit_rows(rows, sample_weight, near=near, measure=False)

    def _fit_estimate(self, table: CorrelationEstimate, moments: Moments, **known: Any) -> Self:
        """Solve for correlations that were estimated before."""
        self._forget()
        check_settings(self)
        self._set_columns(moments.names)
        return self._solve(table, moments, **known)

    def _restore(self, *, estimate, result, threshold, moments, has_names):
        """Set the attributes of a fit that was read from a file."""
        check_settings(self)
        self._set_columns(moments.names, named=has_names)
        self.moments_, self.estimate_, self.result_ = moments, estimate, result
        self.output_scale_ = self.output_scale
        if threshold is not None:
            self.threshold_ = threshold
        return self

    def _set_columns(self, names: tuple[str, ...], named: bool = True) -> None:
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _fit_rows(self, rows: Any, sample_weight: Any, **known: Any) -> Self:
        how = {"covariance": self.covariance, **how_to_estimate(self)}
        table, moments = estimate_rows(rows, column_names(self), sample_weight, **how)
        return self._solve(table, moments, rows=rows, sample_weight=sample_weight, **known)

    def _fit_batches(self, X: Any, sample_weight: Any) -> None:
        if sample_weight is not None:
            raise InvalidArgumentError(
                "sample_weight goes with a table; let the iterator give pairs (rows, weights)."
            )
        self._check_batches()
        for where, rows, weights in batches(X):
            try:
                self.partial_fit(rows, sample_weight=weights)
            except InvalidTableError as error:
                raise InvalidTableError(f"{where}: {error}") from error
        if not self.__sklearn_is_fitted__():
            raise InvalidTableError("There was no batch with rows, so there is nothing to fit.")
        self._solve_moments(self.moments_)

    def _check_batches(self) -> None:
        try:
            learns_in_batches(self)
        except AttributeError as error:
            raise InvalidArgumentError(str(error)) from None

    def _solve_moments(self, moments: Moments) -> Self:
        check_settings(self)  # they may have changed since the rows came
        self._check_batches()
        self._solve(estimate(moments, **how_to_estimate(self)), moments)
        measure_rounding(self)
        return self

    def _solve(
        self,
        table: CorrelationEstimate,
        moments: Moments,
        *,
        rows: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        raised: Any = None,
        measured_on: Any = None,
        near: Any = None,
        measure: bool = True,
    ) -> Self:
        """Solve for the correlations ``table`` and set the fitted attributes.

        With ``rows``, what rounding costs is measured on them. ``raised`` are floors for the
        population, where they are known. The effect is measured on the moments or on the
        correlation matrix ``measured_on``; without ``measure``, when it is asked for. ``near`` is a
        model of a similar matrix to start from.
        """
        floors = None
        if self.confidence is not None:
            self.confidence_ = raised or self._confident_floors(rows, sample_weight, groups)
            floors = self.confidence_.floors
        regular = table.deficiency is None
        warm = None
        if near is not None and regular:
            warm, table.matrix.memory.near = near.result_, near.threshold_.weights
            table.matrix.memory.floor = float(warm.rho_min.min())
        result = solve_for(table, self, floors=floors, warm=warm)
        effect = None
        if measured_on is not None:
            effect = measure_matrix(measured_on, result.T, result.names)
        elif measure and (table.matrix.dense or len(table.names) <= _LONG):
            effect = measure_rows(table, result, moments)
        if regular:  # of a singular matrix it takes as long again: on request
            self.threshold_ = api.threshold(table)
        self.moments_, self.estimate_ = moments, table
        self.output_scale_ = self.output_scale  # a setting changed later waits for a new fit
        sure = "" if floors is None else self.confidence_.sentence()
        about = table.about or Notes.about
        notes = Notes(about, table.is_about_rows, table.guarantee, confidence=sure)
        self.result_ = replace(result, R=None, on_rows=effect, notes=notes)
        if rows is not None:
            measure_rounding(self, rows, sample_weight)
        return self

    def _confident_floors(self, rows: Any, sample_weight: Any, groups: Any) -> Any:
        from skcoral.stability import confident_floors

        names = self.__dict__.get("feature_names_in_")
        rows = rows if names is None else named_rows(rows, names)
        model: Any = self
        known = {"sample_weight": sample_weight, "groups": groups}
        return confident_floors(model, rows, confidence=model.confidence, **known)

    def _forget(self) -> None:
        for name in (*_SOLVED, "moments_", "confidence_"):
            self.__dict__.pop(name, None)


# What a fitted transformer takes from its estimate and its result.
_PARTS = {
    "T_": attrgetter("result_.T"),
    "certificate_": attrgetter("result_.certificate"),
    "correlation_": attrgetter("estimate_.R"),
    "fidelity_": attrgetter("result_.fidelity"),
    "floors_": attrgetter("result_.rho_min"),
    "mean_": attrgetter("estimate_.mean"),
    "prices_": attrgetter("result_.prices"),
    "scale_": attrgetter("estimate_.scale"),
}
_COMPUTED = ("components_", "measured_", "n_iter_", "output_mean_", "threshold_")
_SOLVED = ("estimate_", "result_", "output_scale_", *_PARTS, *_COMPUTED)
