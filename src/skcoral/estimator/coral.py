"""CORAL as a scikit-learn transformer: tables in, decorrelated tables out, one column for one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skcoral import measures
from skcoral.correlation import check_shrinkage, estimate, estimate_from_rows, sample_correlation
from skcoral.estimator.rounding import judge_rounding
from skcoral.estimator.rows import batches, column_names, comes_in_batches, read_outputs, read_rows
from skcoral.estimator.settings import check_settings, learns_in_batches, require_batches
from skcoral.estimator.solution import SOLVED, attributes, solve
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.moments import Moments


class CORAL(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Decorrelate the columns of a table while each keeps a promised correlation with itself.

    Constrained Oblique Rotation with Anchored Loadings: with ``Z`` the standardised table and
    ``R`` its correlation matrix, the outputs ``Z T`` have unit variance,
    ``corr(Z t_j, Z_j) >= rho_min_j`` for every column, and the least residual correlation that
    this allows. The answer comes with a lower bound that proves how good it is.

    Parameters
    ----------
    rho_min : float, array-like of shape (p,), dict or None, default=None
        Fidelity floors: one for all columns, one per column, or some by column name (the others
        have none). ``None``: as high as exact decorrelation allows.
    budget : float, optional
        Largest residual allowed; the common fidelity is then maximised. Excludes ``rho_min``.
    criterion : {"squared", "worst", "absolute"}, default="squared"
        Residual: sum of squared correlations over the pairs, largest one, sum of absolute ones.
    support : array-like of shape (p, p) of bool, optional
        Which coefficients of ``T`` may differ from zero (row: source, column: output).
    pair_weights : array-like of shape (p, p), optional
        Weights of the pairs in the residual.
    anchors : array-like of shape (p, k), optional
        Composites of the standardised columns that the outputs stay close to, instead of the
        columns themselves.
    shrinkage : None, "auto" or float in (0, 1], default=None
        Shrink ``R`` towards the identity, by the Ledoit–Wolf intensity or by the one given. This is
        the explicit way to fit tables with no more rows than columns; the guarantee is then about
        the shrunk matrix, and ``result_.details["guarantee"]`` says so.
    margins : {"none", "ranks", "normal"}, default="none"
        What is decorrelated: the columns, their ranks (Spearman's correlations) or their normal
        scores. ``Z`` is then the standardised table of ranks or scores, and fidelities are
        correlations with these. The map of each column is kept and applied to new rows; see
        :mod:`skcoral.margins`.
    weight_kind : {"auto", "frequency", "reliability"}, default="auto"
        What ``sample_weight`` means: how many times a row occurs, or how much it counts relative
        to the others, whatever the scale. "auto" takes whole numbers as frequencies.
    output_scale : {"unit", "original"}, default="unit"
        Standardised outputs, or each output in the mean and standard deviation of its source
        (as ``correlation_`` has them: with shrinkage, the rows' own are a little off).
    tol : float, default=1e-9
        Largest gap between residual and bound, relative to the residual where it exceeds one.
    max_iter : int, default=200
        Newton steps at most.
    random_state : int, default=0
        Seed of the random starts; only a ``support`` needs them.

    Attributes
    ----------
    T_ : ndarray of shape (p, k)
        Transformation of the standardised columns.
    components_ : ndarray of shape (k, p)
        The same acting on the columns (their scores, with margins): outputs are
        ``(X - mean_) @ components_.T + output_mean_``.
    mean_, scale_ : ndarray of shape (p,)
        Mean and sample standard deviation of each column, or of its scores with margins.
    output_mean_ : ndarray of shape (k,)
        Mean of the outputs: zero, or that of the columns when ``output_scale="original"``.
    margins_ : Margins or None
        The maps of the columns to ranks or normal scores.
    measured_ : Measured
        What the transformation does to the rows fitted, in figures.
    correlation_ : ndarray of shape (p, p)
        The matrix ``R`` that was solved for, shrunk if asked.
    shrinkage_ : float
        The intensity used; 0 without shrinkage.
    output_scale_ : str
        The scale of the outputs, as it was set for the fit.
    fidelity_ : ndarray of shape (k,)
        Correlation of each output with its source, for ``correlation_``.
    threshold_ : Threshold
        The largest common fidelity that exact decorrelation of the columns allows, between two
        bounds.
    prices_ : ndarray of shape (k,)
        What one more unit of floor costs, in units of the residual.
    result_ : Decorrelation
        The whole answer.
    estimate_ : CorrelationEstimate
        ``correlation_`` with where it comes from.
    certificate_ : Certificate
        The numbers that prove it; see :mod:`skcoral.certificates`.
    n_iter_ : int
        Newton steps taken, for the threshold and the transformation together.
    moments_ : Moments
        Count, mean and co-moment of the rows seen.
    n_samples_seen_ : int
        Rows seen with a positive weight.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (p,)
        Column names, when the table had any.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> X = load_wine(as_frame=True).data
    >>> coral = CORAL(rho_min=0.8).fit(X)
    >>> bool(coral.fidelity_.min() >= 0.8 - 1e-12)
    True
    >>> round(coral.threshold_.value, 6)
    0.826231
    >>> list(coral.set_output(transform="pandas").transform(X).columns[:3])
    ['alcohol', 'malic_acid', 'ash']
    """

    def __init__(
        self,
        rho_min=None,
        *,
        budget=None,
        criterion="squared",
        support=None,
        pair_weights=None,
        anchors=None,
        shrinkage=None,
        margins="none",
        weight_kind="auto",
        output_scale="unit",
        tol=1e-9,
        max_iter=200,
        random_state=0,
    ):
        self.rho_min = rho_min
        self.budget = budget
        self.criterion = criterion
        self.support = support
        self.pair_weights = pair_weights
        self.anchors = anchors
        self.shrinkage = shrinkage
        self.margins = margins
        self.weight_kind = weight_kind
        self.output_scale = output_scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None):
        """Learn the transformation from a table, or from an iterator of batches of rows.

        Parameters
        ----------
        X : array-like of shape (n, p), or iterator of such
            The rows. An iterator is read once, batch by batch, through :meth:`partial_fit`; it may
            also give pairs ``(rows, sample_weight)``. Batches without rows are passed over.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            How often or how much each row counts; see ``weight_kind``.

        Returns
        -------
        CORAL
            This object, fitted.
        """
        self._forget()
        check_settings(self)
        with ExitStack() as undo:
            # also where an iterator breaks off: half of the rows are no model
            undo.callback(self._forget)
            if comes_in_batches(X):
                self._fit_batches(X, sample_weight)
            else:
                self._fit_rows(read_rows(self, X, reset=True), sample_weight)
            undo.pop_all()
        return self

    @available_if(learns_in_batches)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add a batch of rows; the transformation is computed when it is next needed.

        Any number of rows will do, one included. After the last batch the result is that of
        :meth:`fit` on all rows together. Margins and the Ledoit–Wolf intensity need all rows at
        once: with these settings there is no ``partial_fit``.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            How often or how much each row counts; see ``weight_kind``.

        Returns
        -------
        CORAL
            This object.
        """
        check_settings(self)
        first = not self.__sklearn_is_fitted__()
        rows = read_rows(self, X, reset=first)
        moments = self._no_moments() if first else self.moments_
        self.moments_: Moments = moments.update(rows, sample_weight=sample_weight)
        for name in SOLVED:
            self.__dict__.pop(name, None)
        return self

    def fit_moments(self, moments):
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

    def transform(self, X):
        """Apply the transformation to rows, new or old.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows.

        Returns
        -------
        ndarray of shape (n, k)
            The outputs, in the input's floating-point type.
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        out = self._centred_outputs(rows) + self.output_mean_
        return out.astype(rows.dtype, copy=False)

    def inverse_transform(self, X):
        """Recover the rows from their outputs.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Outputs of :meth:`transform`, in their order.

        Returns
        -------
        ndarray of shape (n, p)
            The rows, up to rounding (with margins, within the range of the rows fitted).
        """
        check_is_fitted(self)
        outputs = read_outputs(self, X)
        k, p = self.components_.shape
        if k < p:
            raise InvalidArgumentError(
                f"{k} anchored outputs do not determine {p} columns: there is no inverse."
            )
        units = outputs.astype(np.float64) - self.output_mean_
        if self.output_scale_ == "original":
            units /= self.moments_.scale
        try:
            Z = np.linalg.solve(self.T_.T, units.T).T
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(
                "The transformation is singular (the support leaves outputs that are combinations "
                "of each other): there is no inverse."
            ) from None
        rows = Z * self.scale_ + self.mean_
        if self.margins_ is not None:
            rows = self.margins_.inverse_transform(rows)
        return rows.astype(outputs.dtype, copy=False)

    def score(self, X, y=None, sample_weight=None):
        """Return minus the residual criterion on these rows, so that larger is better.

        It is measured on the correlation matrix of the outputs of these very rows; for the rows
        fitted (without shrinkage or unequal weights) it is ``-result_.objective``.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows, at least two.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            How often or how much each row counts.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        outputs = Moments(self.result_.names)
        outputs.update(self._centred_outputs(rows), sample_weight=sample_weight)
        G = sample_correlation(outputs)
        return -measures.residual_by(
            self.result_.criterion, G, np.eye(len(G)), pair_weights=self.result_.pair_weights
        )

    def get_feature_names_out(self, input_features=None):
        """Names of the outputs: those of the columns, or of the composites when anchored.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names to use when the table had none.

        Returns
        -------
        ndarray of str
        """
        names = super().get_feature_names_out(input_features)
        # a solution at hand knows better than a setting that may have changed since
        known = self.__dict__.get("result_", self)
        if known.anchors is None:
            return names
        return np.array(self.result_.names, dtype=object)

    @property
    def n_samples_seen_(self) -> int:
        """Rows seen with a positive weight."""
        return self.moments_.n_rows

    def __getattr__(self, name: str) -> Any:
        if name in SOLVED:
            if not self.__sklearn_is_fitted__():
                raise NotFittedError(f"This CORAL is not fitted: {name} exists after fit.")
            self._solve_moments(self.moments_)
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "moments_" in self.__dict__

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def standardised(self, X):
        """Return what the transformation acts on: columns, or scores, in units of ``scale_``.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows.

        Returns
        -------
        ndarray of shape (n, p)
            Fidelities are correlations of the outputs with these.
        """
        check_is_fitted(self)
        return (self._scores(read_rows(self, X, reset=False)) - self.mean_) / self.scale_

    def _no_moments(self) -> Moments:
        return Moments(column_names(self), weight_kind=self.weight_kind)

    def _fit_rows(self, rows: Any, sample_weight: Any) -> None:
        moments = self._no_moments().update(rows, sample_weight=sample_weight)
        self.moments_ = moments
        table = estimate_from_rows(
            rows,
            moments,
            sample_weight=sample_weight,
            margins=self.margins,
            shrinkage=self.shrinkage,
        )
        plain = moments
        if table.margins is not None or table.weights != "none":
            scores = rows if table.margins is None else table.margins.transform(rows)
            plain = Moments(moments.names).update(scores)
        self.__dict__.update(solve(self, table, moments, plain))
        judge_rounding(self, rows, sample_weight)

    def _fit_batches(self, X: Any, sample_weight: Any) -> None:
        require_batches(self)
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
        require_batches(self)
        table = estimate(moments, shrinkage=check_shrinkage(self.shrinkage))
        self.__dict__.update(solve(self, table, moments))
        judge_rounding(self)

    def _scores(self, rows: Any) -> Any:
        return rows if self.margins_ is None else self.margins_.transform(rows)

    def _centred_outputs(self, rows: Any) -> Any:
        return (self._scores(rows) - self.mean_) @ self.components_.T

    def _restore(self, *, estimate, result, threshold, moments, has_names):
        """Take over a solution that was computed before, as read from a file."""
        check_settings(self)
        self.n_features_in_ = moments.n_features
        if has_names:
            self.feature_names_in_ = np.array(moments.names, dtype=object)
        self.moments_ = moments
        self.__dict__.update(attributes(estimate, result, threshold, self.output_scale, moments))
        return self

    def _forget(self) -> None:
        for name in (*SOLVED, "moments_"):
            self.__dict__.pop(name, None)
