"""How much of a guarantee survives new rows: hold-out, bootstrap, influence of single rows.

A fidelity floor is met exactly on the rows fitted. On other rows of the same population it
fluctuates by about one over the square root of their number; these functions measure by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing

from . import api
from ._requirements import real_number
from ._validation import check_count
from .correlation import estimate, sample_correlation
from .estimator import CORAL
from .estimator.rows import column_names, read_rows
from .exceptions import CoralError, InvalidArgumentError, InvalidTableError
from .moments import Moments
from .results import Array, read_only

if TYPE_CHECKING:
    import pandas as pd


class _Frozen:
    """Makes every array field of a frozen dataclass read-only."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray) and value.dtype == np.float64:
                object.__setattr__(self, f.name, read_only(value))


@dataclass(frozen=True)
class Holdout(_Frozen):
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
    """

    names: tuple[str, ...]
    fidelity_fitted: Array
    fidelity_new: Array
    residual_fitted: Array
    residual_new: Array
    criterion_fitted: Array
    criterion_new: Array

    def to_frame(self) -> pd.DataFrame:
        """One row per output: means over the folds, and the worst fold on new rows."""
        import pandas as pd

        return pd.DataFrame(
            {
                "fidelity_fitted": self.fidelity_fitted.mean(axis=0),
                "fidelity_new": self.fidelity_new.mean(axis=0),
                "fidelity_new_worst": self.fidelity_new.min(axis=0),
                "residual_fitted": self.residual_fitted.mean(axis=0),
                "residual_new": self.residual_new.mean(axis=0),
                "residual_new_worst": self.residual_new.max(axis=0),
            },
            index=pd.Index(self.names, name="variable"),
        )

    def __repr__(self) -> str:
        return (
            f"Holdout(folds={len(self.criterion_new)}, least mean fidelity: fitted "
            f"{self.fidelity_fitted.mean(axis=0).min():.4f}, new "
            f"{self.fidelity_new.mean(axis=0).min():.4f}; criterion: fitted "
            f"{self.criterion_fitted.mean():.4g}, new {self.criterion_new.mean():.4g})"
        )


def holdout(estimator: CORAL, X: Any, *, cv: Any = 5) -> Holdout:
    """Fit on some rows and measure on the others.

    Parameters
    ----------
    estimator : CORAL
        Cloned for each fold; it need not be fitted.
    X : array-like of shape (n, p)
        The rows.
    cv : int, splitter or iterable, default=5
        A whole number deals the rows into that many folds at random with a fixed seed, so that a
        sorted table does no harm; otherwise as in scikit-learn.

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
    if isinstance(cv, Integral):
        cv = KFold(check_count("cv", cv, minimum=2), shuffle=True, random_state=0)
    fitted, new = [], []
    names: tuple[str, ...] = ()
    for fold, (train, test) in enumerate(check_cv(cv).split(X), start=1):
        if len(test) < 2:
            raise InvalidArgumentError(
                "Correlations on new rows need at least two of them, but a fold holds back "
                f"{len(test)}: choose fewer folds."
            )
        part, where = _safe_indexing(X, train), "fitted"
        try:
            model = clone(estimator).fit(part)
            fitted.append(_measure(model, part))
            part, where = _safe_indexing(X, test), "held back"
            new.append(_measure(model, part))
        except InvalidTableError as error:
            raise InvalidTableError(f"Fold {fold}, rows {where}: {error}") from error
        names = model.result_.names
    if not fitted:
        raise InvalidArgumentError("cv holds no fold, so there is nothing to fit.")
    seen, unseen = ([np.array(part) for part in zip(*side, strict=True)] for side in (fitted, new))
    return Holdout(names, seen[0], unseen[0], seen[1], unseen[1], seen[2], unseen[2])


@dataclass(frozen=True)
class Bootstrap(_Frozen):
    """Resampled thresholds and fidelities, with percentile intervals.

    Attributes
    ----------
    names : tuple of str
        The outputs.
    threshold : float
        ρ★ of the table itself.
    threshold_interval : tuple of float
        Percentile interval for ρ★.
    threshold_samples : ndarray of shape (replicates,)
        ρ★ of each replicate.
    fidelity : ndarray of shape (k,)
        Of the estimator fitted to the table itself.
    fidelity_interval : ndarray of shape (2, k)
        Percentile intervals.
    fidelity_samples : ndarray of shape (replicates, k)
        Of the estimator refitted to each replicate.
    confidence : float
        Of the intervals.
    n_failed : int
        Replicates that could not be fitted (resampling made them singular) and are left out.
    """

    names: tuple[str, ...]
    threshold: float
    threshold_interval: tuple[float, float]
    threshold_samples: Array
    fidelity: Array
    fidelity_interval: Array
    fidelity_samples: Array
    confidence: float
    n_failed: int

    def to_frame(self) -> pd.DataFrame:
        """One row per output and one for ρ★: estimate and interval."""
        import pandas as pd

        low, high = self.fidelity_interval
        return pd.DataFrame(
            {
                "estimate": np.r_[self.threshold, self.fidelity],
                "low": np.r_[self.threshold_interval[0], low],
                "high": np.r_[self.threshold_interval[1], high],
            },
            index=pd.Index(["threshold", *self.names], name="quantity"),
        )

    def __repr__(self) -> str:
        low, high = self.threshold_interval
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        return (
            f"Bootstrap(threshold={self.threshold:.6f}, {self.confidence:.0%} interval "
            f"[{low:.6f}, {high:.6f}], {len(self.threshold_samples)} replicates{failed})"
        )


def bootstrap(
    X: Any,
    *,
    estimator: CORAL | None = None,
    n_boot: int = 200,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    callback: Callable[[int, int], object] | None = None,
) -> Bootstrap:
    """Percentile intervals for the threshold and for each fidelity, by resampling rows.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    estimator : CORAL, optional
        What is refitted; ``CORAL()`` unless given.
    n_boot : int, default=200
        Number of replicates.
    confidence : float, default=0.95
        Of the intervals.
    n_jobs : int, optional
        Processes, as in joblib. The rows drawn do not depend on it.
    random_state : int or None, default=0
        Seed; ``None`` draws other rows each time.
    callback : callable, optional
        Called with the number of replicates done and ``n_boot``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral.stability import bootstrap
    >>> report = bootstrap(load_wine().data, n_boot=20)
    >>> low, high = report.threshold_interval
    >>> 0.7 < low < high < 0.9
    True
    """
    from joblib import Parallel, delayed

    n_boot = check_count("n_boot", n_boot)
    if not 0.0 < real_number(confidence, "confidence", InvalidArgumentError) < 1.0:
        raise InvalidArgumentError(f"confidence lies between 0 and 1; got {confidence!r}.")
    if random_state is not None:
        random_state = check_count("random_state", random_state, minimum=0)
    model = clone(CORAL() if estimator is None else estimator)
    whole = clone(model).fit(X)
    seeds = np.random.SeedSequence(random_state).spawn(n_boot)
    tasks = (delayed(_replicate)(model, X, whole.n_samples_seen_, seed) for seed in seeds)
    samples = []
    for done, outcome in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(tasks), start=1):
        if outcome is not None:
            samples.append(outcome)
        if callback is not None:
            callback(done, n_boot)
    if not samples:
        raise InvalidTableError(
            f"None of {n_boot} resampled tables could be fitted: there are too few different rows "
            "for this many columns. An estimator with shrinkage can be resampled."
        )
    thresholds = np.array([s[0] for s in samples])
    fidelities = np.array([s[1] for s in samples])
    tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    low, high = np.quantile(thresholds, tails)
    return Bootstrap(
        names=whole.result_.names,
        threshold=whole.threshold_.value,
        threshold_interval=(float(low), float(high)),
        threshold_samples=thresholds,
        fidelity=whole.fidelity_,
        fidelity_interval=np.quantile(fidelities, tails, axis=0),
        fidelity_samples=fidelities,
        confidence=confidence,
        n_failed=n_boot - len(samples),
    )


@dataclass(frozen=True)
class Influence(_Frozen):
    """How much each row moves the threshold ρ★.

    Attributes
    ----------
    threshold : float
        ρ★ with all rows.
    labels : tuple
        Index of a data frame, or row numbers.
    first_order : ndarray of shape (n,)
        Change of ρ★ if the row were removed, to first order: minus the row's weight times the
        exact derivative of ρ★ by that weight.
    refitted : ndarray of int of shape (m,)
        Rows that were really removed, the one that moves ρ★ most first.
    threshold_without : ndarray of shape (m,)
        ρ★ without each of them; NaN, and first, where the rows that remain determine none.
    """

    threshold: float
    labels: tuple[Any, ...]
    first_order: Array
    refitted: np.ndarray[Any, np.dtype[np.intp]]
    threshold_without: Array

    def to_frame(self) -> pd.DataFrame:
        """One row per row refitted, the most influential first."""
        import pandas as pd

        return pd.DataFrame(
            {
                "threshold_without": self.threshold_without,
                "change": self.threshold_without - self.threshold,
                "first_order": self.first_order[self.refitted],
            },
            index=pd.Index([self.labels[i] for i in self.refitted], name="row"),
        )

    def __repr__(self) -> str:
        shown = "".join(
            f"; without {self.labels[i]}: {value:.6f}"
            for i, value in zip(self.refitted[:3], self.threshold_without[:3], strict=True)
        )
        return f"Influence(threshold={self.threshold:.6f}{shown})"


def influence(X: Any, *, sample_weight: Any = None, n_refits: int = 10) -> Influence:
    """Find the rows that the threshold ρ★ hangs on.

    With ``z`` a standardised row, ``z̃ = z T`` its outputs at the threshold, λ the threshold's
    weights and W the sum of the sample weights, the derivative of ρ★ by the weight of that row is

        Σ_j λ_j z_j (z̃_j − ρ★ z_j) / (2 (W − 1))

    (the envelope theorem: ρ★ is a minimum over λ, so only R moves; exact where λ is unique).
    Variables that do not bind have λ_j = 0 and play no part. The rows with the largest derivatives
    are then removed in earnest, one at a time.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts.
    n_refits : int, default=10
        How many rows are removed in earnest.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral.stability import influence
    >>> report = influence(load_wine().data, n_refits=3)
    >>> report.first_order.shape
    (178,)
    """
    n_refits = check_count("n_refits", n_refits, minimum=0)
    reader = CORAL()
    rows = read_rows(reader, X, reset=True)
    n = len(rows)
    table = estimate(Moments(column_names(reader)).update(rows, sample_weight=sample_weight))
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    whole = api.threshold(table)
    Z = (rows - table.mean) / table.scale
    pull = (Z * (Z @ whole.T - whole.value * Z)) @ whole.weights
    first_order = -weights * pull / (2.0 * (weights.sum() - 1.0))
    ranked = np.argsort(-np.abs(first_order), kind="stable")
    chosen = ranked[weights[ranked] > 0][:n_refits]
    without = np.full(len(chosen), np.nan)
    for k, row in enumerate(chosen):
        kept = np.where(np.arange(n) == row, 0.0, weights)
        rest = Moments(table.names).update(rows, sample_weight=kept)
        # a row that the whole model hangs on may be the answer that was looked for
        with suppress(CoralError):
            without[k] = api.threshold(estimate(rest)).value
    change = np.where(np.isnan(without), np.inf, np.abs(without - whole.value))
    order = np.argsort(-change, kind="stable")
    labels = tuple(X.index) if hasattr(X, "index") and not callable(X.index) else tuple(range(n))
    return Influence(whole.value, labels, first_order, chosen[order], without[order])


def _measure(model: CORAL, X: Any) -> tuple[Array, Array, float]:
    """Fidelities, largest residual of each output, and the criterion, on these rows."""
    rows = read_rows(model, X, reset=False)
    sources = (rows - model.mean_) / model.scale_
    outputs = sources @ model.T_
    if model.result_.anchors is not None:
        sources = sources @ model.result_.anchors
    source, output = (Moments(model.result_.names).update(part) for part in (sources, outputs))
    sample_correlation(source)  # names the columns that are constant in these rows
    E = np.abs(sample_correlation(output) - np.eye(len(output.names)))
    together = ((sources - source.mean) * (outputs - output.mean)).sum(axis=0)
    fidelity = together / np.sqrt(np.diag(source.comoment) * np.diag(output.comoment))
    return fidelity, E.max(axis=0), -model.score(X)


def _replicate(model: CORAL, X: Any, n: int, seed: Any) -> tuple[float, Array] | None:
    """Refit on rows drawn with replacement; None where these do not determine the model."""
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n))
    try:
        again = clone(model).fit(X, sample_weight=counts)
    except CoralError:
        return None
    return again.threshold_.value, again.fidelity_
