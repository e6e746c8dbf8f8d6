"""How the transformer is fitted: to rows, to batches of rows, to moments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from skcoral import api
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.results import Notes
from skcoral.data.correlation import (
    CorrelationEstimate,
    estimate,
    estimate_rows,
    how_to_estimate,
)
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

_LONG = 10_000  # columns of a wide table from which on the effect is measured only on request


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

    def __getattr__(self, name: str) -> Any:
        if name not in _SOLVED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This CORAL is not fitted: {name} exists after fit.")
        if "result_" not in self.__dict__:
            self._solve_moments(self.moments_)
        return self.__dict__[name] if name in self.__dict__ else _COMPUTED[name](self)

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
        elif measure and not (table.is_wide and len(table.names) > _LONG):
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


def _threshold(model: Any) -> Threshold:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.threshold_ = api.threshold(model.estimate_)
    return model.threshold_


def _measured(model: Any) -> Measured:
    if model.result_.on_rows is not None:
        return model.result_.on_rows
    model.measured_ = measure_rows(model.estimate_, model.result_, model.moments_)
    return model.measured_


def _components(model: Any) -> Any:
    T = model.T_.toarray() if isinstance(model.T_, LowRankTransform) else model.T_
    components = (T / model.scale_[:, None]).T
    original = model.output_scale_ == "original"
    return components * model.moments_.scale[:, None] if original else components


def _output_mean(model: Any) -> Any:
    if model.output_scale_ == "original":
        return model.moments_.mean
    return np.zeros(len(model.result_.names))


def _n_iter(model: Any) -> int:
    regular = model.estimate_.deficiency is None
    return model.result_.n_iter + (model.threshold_.n_iter if regular else 0)


# What a fitted transformer computes from ``moments_``, ``estimate_`` and ``result_``.
_COMPUTED: dict[str, Callable[[Any], Any]] = {
    "T_": lambda model: model.result_.T,
    "certificate_": lambda model: model.result_.certificate,
    "components_": _components,
    "correlation_": lambda model: model.estimate_.R,
    "fidelity_": lambda model: model.result_.fidelity,
    "floors_": lambda model: model.result_.rho_min,
    "mean_": lambda model: model.estimate_.mean,
    "measured_": _measured,
    "n_iter_": _n_iter,
    "output_mean_": _output_mean,
    "prices_": lambda model: model.result_.prices,
    "scale_": lambda model: model.estimate_.scale,
    "threshold_": _threshold,
}
_SOLVED = ("estimate_", "result_", "output_scale_", *_COMPUTED)
