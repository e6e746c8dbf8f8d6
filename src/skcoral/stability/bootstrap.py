"""Percentile intervals by resampling rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from skcoral._requirements import real_number
from skcoral._validation import check_count
from skcoral.estimator import CORAL
from skcoral.exceptions import (
    CoralError,
    InvalidArgumentError,
    InvalidTableError,
    SingularCorrelationWarning,
)
from skcoral.results import Array
from skcoral.stability._frozen import Frozen

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bootstrap(Frozen):
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
    if whole.result_.rank is None:
        model.set_params(on_singular="raise")  # rows that were lost would change the question
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


def _replicate(model: CORAL, X: Any, n: int, seed: Any) -> tuple[float, Array] | None:
    """Refit on rows drawn with replacement; None where these do not determine the model."""
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n))
    try:
        with warnings.catch_warnings():
            # what the rows cannot determine was said of the whole table
            warnings.simplefilter("ignore", SingularCorrelationWarning)
            again = clone(model).fit(X, sample_weight=counts)
    except CoralError:
        return None
    return again.threshold_.value, again.fidelity_
