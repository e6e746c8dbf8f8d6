"""CORAL as a scikit-learn transformer: tables in, decorrelated tables out, one column for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skcoral.core.display import Drawn, html
from skcoral.estimator.applying import (
    SourceCoefficients,
    in_container,
    invert,
    residual_of,
    source_coefficients,
)
from skcoral.estimator.fitting import Fitting
from skcoral.estimator.rows import column_names, read_outputs, read_rows
from skcoral.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


class CORAL(Fitting, OneToOneFeatureMixin, TransformerMixin, Drawn, BaseEstimator):
    """Decorrelate the columns of a table while each keeps a promised correlation with itself.

    Constrained Oblique Rotation with Anchored Loadings: with ``Z`` the standardised table and
    ``R`` its correlation matrix, the outputs ``Z T`` have unit variance,
    ``corr(Z t_j, Z_j) >= rho_min_j`` for every column, and the least residual correlation that
    this allows. The result comes with a lower bound that proves how good it is.

    The parameters, by group. Goal, one of: ``rho_min``, ``budget``, ``max_vif``,
    ``max_correlation``. What counts: ``criterion``, ``support``, ``pair_weights``, ``anchors``.
    Where R comes from: ``covariance``, ``confidence``, ``on_singular``. Output: ``output_scale``.
    Numerics: ``tol``, ``random_state``.

    Parameters
    ----------
    rho_min : float, array-like of shape (p,), dict or None, default=None
        Fidelity floors: one for all columns, one per column, or some by column name (the others
        have none). ``None``: as high as exact decorrelation allows.
    budget : float, optional
        Largest residual allowed; the common fidelity is then maximised. Excludes ``rho_min``.
    max_vif : float, optional
        Largest variance inflation factor allowed in the outputs: the highest floor that keeps to
        it, with a bound on every other. Excludes the others.
    max_correlation : float, optional
        Largest absolute correlation allowed between two outputs: the highest floor that keeps to
        it, certified. Excludes the others.
    criterion : {"squared", "worst", "absolute"}, default="squared"
        Residual: sum of squared correlations over the pairs, largest one, sum of absolute ones.
    support : array-like of shape (p, k) of bool, DataFrame, or float, optional
        Which coefficients of ``T`` may differ from zero (row: source, column: output); a number:
        those where the absolute correlation in ``correlation_`` exceeds it; a DataFrame with the
        columns ``source``, ``output``, ``lower`` and ``upper``: signs and intervals as well.
    pair_weights : array-like of shape (p, p), optional
        Weights of the pairs in the residual.
    anchors : array-like of shape (p, k), optional
        Composites of the standardised columns that the outputs stay close to, instead of the
        columns themselves.
    covariance : estimator, str or callable, optional
        What estimates ``R`` instead of the rows' own correlations: an estimator of
        ``sklearn.covariance`` or its name ("LedoitWolf", "OAS", "MinCovDet", …), or a function from
        standardised rows to a p × p matrix. Floors then hold for that matrix, and ``measured_``
        says what the rows themselves show.
    confidence : float, optional
        Raise the floors so that, with this confidence (0.95, say), the fidelities in the population
        that the rows come from keep ``rho_min``, and not only those of the rows; see
        :func:`skcoral.stability.confident_floors`. Clusters of rows are given to :meth:`fit` as
        ``groups``.
    on_singular : {"solve", "raise"}, default="solve"
        Tables of deficient rank (totals, duplicates, no more rows than columns) are solved for the
        least residual that their rank allows, with a warning that says why, or refused.
    output_scale : {"unit", "original"}, default="unit"
        Standardised outputs, or each output in the mean and standard deviation of its source
        (as ``correlation_`` has them: with ``covariance``, the rows' own are a little off).
    tol : float, default=1e-9
        Gap between residual and bound to aim at, relative to the residual where it exceeds one.
    random_state : int, default=0
        Seed of the random starts; only a ``support`` needs them.

    Attributes
    ----------
    T_ : ndarray of shape (p, k), or LowRankTransform
        Transformation of the standardised columns; the identity plus a product of two factors
        where columns are more than twice the rows.
    components_ : ndarray of shape (k, p)
        The same acting on the columns: outputs are
        ``(X - mean_) @ components_.T + output_mean_``. Of a wide table, formed when asked for.
    mean_, scale_ : ndarray of shape (p,)
        Mean and sample standard deviation of each column.
    output_mean_ : ndarray of shape (k,)
        Mean of the outputs: zero, or that of the columns when ``output_scale="original"``.
    measured_ : Measured
        What the transformation does to the rows fitted, in figures.
    correlation_ : ndarray of shape (p, p), or FactoredCorrelation
        The matrix ``R`` that was solved for.
    output_scale_ : str
        The scale of the outputs, as it was set for the fit.
    fidelity_ : ndarray of shape (k,)
        Correlation of each output with its source, for ``correlation_``.
    floors_ : ndarray of shape (k,)
        The floors in force; with ``confidence``, the raised ones.
    confidence_ : ConfidentFloors
        With ``confidence``: what holds for the population, and what it costs.
    threshold_ : Threshold
        The largest common fidelity that exact decorrelation of the columns allows (at deficient
        rank: the least residual), between two bounds.
    prices_ : ndarray of shape (k,)
        What one more unit of floor costs, in units of the residual.
    result_ : Decorrelation
        The whole result.
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

    _pictures: ClassVar[Mapping[str, str]] = {
        "fidelity": "FidelityDisplay",
        "correlations": "CorrelationDisplay",
        "coefficients": "TransformDisplay",
        "frontier": "FrontierDisplay",
    }
    _source = "from_estimator"
    __repr__ = BaseEstimator.__repr__

    def __init__(
        self,
        rho_min: float | ArrayLike | Mapping[str, float] | None = None,
        *,
        budget: float | None = None,
        max_vif: float | None = None,
        max_correlation: float | None = None,
        criterion: Literal["squared", "worst", "absolute"] = "squared",
        support: Any = None,
        pair_weights: Any = None,
        anchors: Any = None,
        covariance: Any = None,
        confidence: float | None = None,
        on_singular: Literal["solve", "raise"] = "solve",
        output_scale: Literal["unit", "original"] = "unit",
        tol: float = 1e-9,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        # Stored as given, so that clone and set_params work; `fit` judges them together.
        self.rho_min = rho_min
        self.budget = budget
        self.max_vif = max_vif
        self.max_correlation = max_correlation
        self.criterion = criterion
        self.support = support
        self.pair_weights = pair_weights
        self.anchors = anchors
        self.covariance = covariance
        self.confidence = confidence
        self.on_singular = on_singular
        self.output_scale = output_scale
        self.tol = tol
        self.random_state = random_state

    def transform(self, X: Any) -> Any:
        """Apply the transformation to rows, new or old.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows.

        Returns
        -------
        ndarray of shape (n, k), or DataFrame under ``set_output``
            The outputs, in the input's floating-point type.
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        out = self._centred_outputs(rows) + self.output_mean_
        return out.astype(rows.dtype, copy=False)

    def inverse_transform(self, X: Any) -> Any:
        """Recover the rows from their outputs.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Outputs of :meth:`transform`, in their order.

        Returns
        -------
        ndarray of shape (n, p), or DataFrame under ``set_output``
            The rows, up to rounding. Where outputs of a table of deficient rank do not determine
            them, those of least norm.

        Warns
        -----
        LeastNormWarning
            Different rows have the same outputs.
        """
        check_is_fitted(self)
        outputs = read_outputs(self, X)
        p, k = self.T_.shape
        if k < p:
            raise InvalidArgumentError(
                f"{k} anchored outputs do not determine {p} columns: there is no inverse."
            )
        units = outputs.astype(np.float64) - self.output_mean_
        if self.output_scale_ == "original":
            units /= self.moments_.scale
        Z = invert(self.T_, self.result_.rank, units)
        rows = Z * self.scale_ + self.mean_
        return in_container(self, rows.astype(outputs.dtype, copy=False), X, column_names(self))

    def source_coefficients(self, coef: Any, intercept: Any = 0.0) -> SourceCoefficients:
        """Turn coefficients on the outputs into coefficients on the original columns.

        Both give the same fitted values: the outputs are linear in the columns.

        Parameters
        ----------
        coef : array-like of shape (k,) or (n_targets, k)
            Coefficients of a linear model on the outputs, such as ``coef_`` of scikit-learn's.
        intercept : float or array-like of shape (n_targets,), default=0.0
            Its intercept.

        Returns
        -------
        SourceCoefficients
            ``coef`` of shape (p,) or (n_targets, p), and ``intercept``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import LinearRegression
        >>> from skcoral import CORAL
        >>> X, y = load_diabetes(return_X_y=True)
        >>> coral = CORAL(rho_min=0.9).fit(X)
        >>> model = LinearRegression().fit(coral.transform(X), y)
        >>> coef, intercept = coral.source_coefficients(model.coef_, model.intercept_)
        >>> bool(np.allclose(X @ coef + intercept, model.predict(coral.transform(X))))
        True
        """
        check_is_fitted(self)
        return source_coefficients(self, coef, intercept)

    def score(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the residual criterion on these rows, so that larger is better.

        It is measured on the correlation matrix of the outputs of these very rows; for the rows
        fitted (without ``covariance`` or unequal weights) it is ``-result_.objective``.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows, at least two.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            How much each row counts relative to the others.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        outputs = self._centred_outputs(rows)
        return -residual_of(self.result_, outputs, sample_weight=sample_weight)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
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
        # use the fitted result, not a parameter that may have changed since
        if self.__dict__.get("result_", self).anchors is None:
            return names
        return np.array(self.result_.names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def standardised(self, X: Any) -> np.ndarray:
        """Return what the transformation acts on: columns in units of ``scale_``.

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
        return self.estimate_.standardised(read_rows(self, X, reset=False))

    def summary(self) -> str:
        """Measured figures, what is proved, floors and ρ★: one line each."""
        if not self.__sklearn_is_fitted__():
            return f"{self!r}: not fitted yet."
        from skcoral.show.sentences import threshold

        summary = self.result_.summary()
        if self.result_.deficiency:
            return summary
        return f"{summary}\n{threshold(self.threshold_, self.result_)}"

    def loadings(self) -> pd.DataFrame:
        """``T_`` with names: what each output (column) is made of (rows: standardised columns)."""
        check_is_fitted(self)
        frame = self.result_.loadings()
        return frame.set_axis(list(column_names(self)), axis="index").rename_axis("source")

    def to_frame(self) -> pd.DataFrame:
        """One row per output: fidelity, floor, price and largest residual correlation."""
        check_is_fitted(self)
        return self.result_.to_frame()

    def _repr_html_(self) -> str:  # type: ignore[override]
        frame = self.to_frame if self.__sklearn_is_fitted__() else None
        return html(repr(self), self.summary(), frame)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _centred_outputs(self, rows: Any) -> Any:
        out = self.estimate_.standardised(rows) @ self.T_
        return out * self.moments_.scale if self.output_scale_ == "original" else out
