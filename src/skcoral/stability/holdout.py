"""Hold-out: fit on some rows, measure on the others; compare with the raw table and with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.model_selection import KFold, PredefinedSplit, TimeSeriesSplit, check_cv

from skcoral.core.arrays import Array, Frozen
from skcoral.core.display import Drawn, shortened
from skcoral.core.linalg import largest_residuals
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.results import Decorrelation
from skcoral.core.tolerances import EXACT_TOL
from skcoral.core.validation import check_count
from skcoral.estimator import CORAL
from skcoral.estimator.applying import residual_of
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.stability.resampling import Fitted, Resampler, mean_of, standardised

LeftOut = Literal["rows", "groups", "later", "others"]
_PROCEDURES: Mapping[LeftOut, str] = {
    "rows": "without one part of the rows and measured on it",
    "groups": "without one part of the groups and measured on their rows",
    "later": "on the rows before a date and measured on rows that follow",
    "others": "on some rows and measured on others",
}


@dataclass(frozen=True, repr=False)
class Holdout(Drawn, Frozen):
    """Fidelity and residual correlation on the rows fitted and on rows left out, fold by fold.

    Attributes
    ----------
    names : tuple of str
        The outputs.
    fidelity_fitted, fidelity_new : ndarray of shape (folds, k)
        Correlation of each output with its source, on the rows fitted and on those left out.
    residual_fitted, residual_new : ndarray of shape (folds, k)
        Largest absolute correlation of each output with another one.
    criterion_fitted, criterion_new : ndarray of shape (folds,)
        The residual that was minimised, on the rows fitted and on those left out.
    criterion_raw : ndarray of shape (folds,)
        The same for the sources as they are, on the rows left out.
    criterion_noise : ndarray of shape (folds,)
        The same for independent normal numbers, as many as the rows left out: what sampling alone
        leaves on average.
    left_out : {"rows", "groups", "later", "others"}
        What a fold leaves out: rows at random, whole groups, what follows a date, or whatever the
        splitter given leaves out.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> report = holdout(CORAL(rho_min=0.8), load_wine().data, cv=2)
    >>> report.fidelity_new.shape
    (2, 13)
    """

    names: tuple[str, ...]
    fidelity_fitted: Array
    fidelity_new: Array
    residual_fitted: Array
    residual_new: Array
    criterion_fitted: Array
    criterion_new: Array
    criterion_raw: Array
    criterion_noise: Array
    left_out: LeftOut

    _pictures: ClassVar[Mapping[str, str]] = {"fidelity": "HoldoutDisplay"}

    def summary(self) -> str:
        """Fidelity and residual on rows left out, and on the rows fitted."""
        fitted, new = (f.mean(axis=0) for f in (self.fidelity_fitted, self.fidelity_new))
        weakest = int(np.argmin(new))
        return (
            f"{self.procedure()}: the weakest fidelity is {fitted.min():.4f} on the rows fitted "
            f"and {new.min():.4f} on those left out ({shortened(self.names[weakest])}).\n"
            f"{self.sentence()}"
        )

    def procedure(self) -> str:
        """What was fitted and what was left out."""
        return f"Fitted {len(self.criterion_new)} times {_PROCEDURES[self.left_out]}"

    def sentence(self) -> str:
        """The residual on new rows, between that of the raw table and that of pure noise."""
        fitted = float(self.criterion_fitted.mean())
        fitted = 0.0 if fitted < EXACT_TOL else fitted
        return (
            f"Residual on rows left out: {self.criterion_new.mean():.4g} "
            f"({fitted:.4g} on the rows fitted). On the same rows the "
            f"untransformed columns have {self.criterion_raw.mean():.4g}, and independent random "
            f"columns of the same sizes have {self.criterion_noise.mean():.4g} on average."
        )

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        """Means over the folds, and the worst fold on new rows."""
        columns = {
            "fidelity_fitted": self.fidelity_fitted.mean(axis=0),
            "fidelity_new": self.fidelity_new.mean(axis=0),
            "fidelity_new_worst": self.fidelity_new.min(axis=0),
            "residual_fitted": self.residual_fitted.mean(axis=0),
            "residual_new": self.residual_new.mean(axis=0),
            "residual_new_worst": self.residual_new.max(axis=0),
        }
        return "variable", self.names, columns


def holdout(
    estimator: CORAL, X: Any, *, cv: Any = 5, sample_weight: Any = None, groups: Any = None
) -> Holdout:
    """Fit on some rows and measure on the others.

    Parameters
    ----------
    estimator : CORAL
        Cloned for each fold; it need not be fitted.
    X : array-like of shape (n, p)
        The rows.
    cv : int, splitter or iterable, default=5
        A whole number assigns the rows to that many folds at random with a fixed seed, whatever
        the order of the table, and evenly by weight. But groups stay whole, and a table whose
        index holds dates is fitted on the past and measured on what follows. Otherwise as in
        scikit-learn, such as ``TimeSeriesSplit(5, gap=20)`` for rows in the order of time.
    sample_weight, groups
        As in :func:`confident_floors`; weights count in the fits and in the measures.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.stability import holdout
    >>> report = holdout(CORAL(rho_min=0.8), load_wine().data)
    >>> bool(report.fidelity_fitted.min() >= 0.8 - 1e-9)
    True
    >>> bool(report.criterion_new.mean() > report.criterion_fitted.mean())
    True
    """
    by_number = isinstance(cv, Integral)  # else dependent rows are the splitter's business
    known = {"sample_weight": sample_weight, "groups": groups if by_number else None}
    sample = Resampler(estimator, X, **known, every_row=not by_number)
    groups = sample.dependence.groups if by_number else groups
    kind, splits = _splits(sample, X, cv, groups)
    fitted, new, noise = [], [], []
    for fold, (train, test) in enumerate(splits, start=1):
        if len(test) < 2:
            raise InvalidArgumentError(
                "Correlations on new rows need at least two of them, but a fold holds back "
                f"{len(test)}: choose fewer folds."
            )
        where = "fitted"  # an error says on which side of which fold it arose
        try:
            fit = sample.fit(train, floors=_raised(sample, estimator, train, groups))
            fitted.append(_measure(sample, fit, train))
            where = "held back"
            new.append(_measure(sample, fit, test))
        except InvalidTableError as error:
            raise InvalidTableError(f"Among the rows {where} in fold {fold}: {error}") from error
        noise.append(_noise(fit.result, len(sample.rows[test]), sample.weights_of(test)))
    if not fitted:
        raise InvalidArgumentError("cv holds no fold, so there is nothing to fit.")
    seen, unseen = ([np.array(part) for part in zip(*side, strict=True)] for side in (fitted, new))
    return Holdout(
        names=fit.result.names,
        fidelity_fitted=seen[0],
        fidelity_new=unseen[0],
        residual_fitted=seen[1],
        residual_new=unseen[1],
        criterion_fitted=seen[2],
        criterion_new=unseen[2],
        criterion_raw=unseen[3],
        criterion_noise=np.array(noise),
        left_out=kind,
    )


def _raised(sample: Resampler, estimator: CORAL, train: Any, groups: Any) -> Array | None:
    """The floors of a fold, raised by its own rows where the estimator has a confidence."""
    if estimator.confidence is None:
        return None
    its_groups = None if groups is None else np.asarray(groups)[train]
    rows, weights = named_rows(sample.rows[train], sample.names), sample.weights_of(train)
    return clone(estimator).fit(rows, sample_weight=weights, groups=its_groups).floors_


def _splits(sample: Resampler, X: Any, cv: Any, groups: Any) -> tuple[LeftOut, Any]:
    """What is left out, and pairs of rows fitted and rows left out."""
    if not isinstance(cv, Integral):
        return "others", check_cv(cv).split(X, groups=groups)
    folds, known = check_count("cv", cv, minimum=2), sample.dependence
    if known.groups is not None:
        return "groups", known.folds(folds)
    time = _times(X)
    if time is not None:
        order = np.argsort(time[sample.counted], kind="stable")
        ahead = TimeSeriesSplit(folds).split(order)
        return "later", [(order[train], order[test]) for train, test in ahead]
    if sample.weights is not None and np.ptp(sample.weights) > 0.0:
        # Dealt out by weight, so that each fold holds its share of the rows that count.
        shuffled = np.random.default_rng(0).permutation(len(sample.rows))
        dealt = shuffled[np.argsort(-sample.weights[shuffled], kind="stable")]
        return "rows", PredefinedSplit(np.argsort(dealt) % folds).split()
    return "rows", KFold(folds, shuffle=True, random_state=0).split(sample.rows)


def _times(X: Any) -> Any:
    """The dates that index a table, as whole numbers; None where it has none."""
    index: Any = getattr(X, "index", None)
    kind = str(getattr(index, "dtype", ""))
    return index.asi8 if kind.startswith(("datetime", "period")) else None


def _measure(sample: Resampler, fit: Fitted, part: Any) -> tuple[Array, Array, float, float]:
    """Fidelities, largest residual of each output, and the criterion after and before."""
    weights = sample.weights_of(part)
    outputs, sources = fit.outputs_and_sources(sample.rows[part])
    # names the columns that are constant in these rows
    raw = residual_of(fit.result, sources, sample_weight=weights)
    after = residual_of(fit.result, outputs, sample_weight=weights)
    u, v = standardised(outputs, weights), standardised(sources, weights)
    share = 1.0 / len(u) if weights is None else (weights / weights.sum())[:, None]
    G = FactoredCorrelation(u * np.sqrt(share))
    return mean_of(u * v, weights), largest_residuals(G), after, raw


def _noise(result: Decorrelation, n_rows: int, weights: Array | None) -> float:
    """Mean criterion of independent normal columns of the same size, with these weights of rows.

    The largest correlation, and those of weighted rows, are measured on 20 such tables. Otherwise
    that of each pair has the mean square ``1 / (n - 1)`` and the mean size
    ``Γ((n - 1) / 2) / (√π Γ(n / 2))``.
    """
    p, omega = len(result.names), result.pair_weights
    if result.criterion == "worst" or weights is not None:
        rng = np.random.default_rng(0)
        tables = (rng.normal(size=(n_rows, p)) for _ in range(20))
        residuals = [residual_of(result, table, sample_weight=weights) for table in tables]
        return float(np.mean(residuals))
    pairs = 0.5 * p * (p - 1) if omega is None else 0.5 * float(np.sum(omega))
    if result.criterion == "squared":
        return pairs / (n_rows - 1)
    mean_size = np.exp(gammaln(0.5 * n_rows - 0.5) - gammaln(0.5 * n_rows)) / np.sqrt(np.pi)
    return pairs * float(mean_size)
