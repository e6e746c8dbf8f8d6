"""Intervals for the threshold and the fidelities, by leaving rows out and by resampling them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral import api
from skcoral.core.arrays import Array, Frozen, Index
from skcoral.core.display import Shown
from skcoral.core.validation import check_count
from skcoral.estimator import CORAL
from skcoral.exceptions import CoralError, InvalidTableError, NotCertifiedWarning
from skcoral.stability.confidence import check_confidence
from skcoral.stability.resampling import Fitted, Resampler, mean_of, standardised
from skcoral.stability.sampling_errors import DRAWS, Draws, threshold_influence


@dataclass(frozen=True, repr=False)
class Bootstrap(Shown, Frozen):
    """Resampled thresholds and fidelities, with intervals.

    Attributes
    ----------
    names : tuple of str
        The outputs.
    threshold : float
        ρ★ of the table itself.
    threshold_estimate : float
        ρ★ of the population, as estimated: that of the table is too low on average.
    threshold_interval : tuple of float
        Interval for ρ★ of the population around that estimate; with ``covariance``, percentiles of
        the replicates reflected about the table's ρ★.
    threshold_samples : ndarray of shape (replicates,)
        ρ★ of each replicate.
    fidelity : ndarray of shape (k,)
        Of the estimator fitted to the table itself.
    fidelity_interval : ndarray of shape (2, k)
        Percentile intervals.
    confidence : float
        Of the intervals.
    n_failed : int
        Replicates that could not be fitted (resampling made them singular) and are left out.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> report = bootstrap(CORAL(), load_wine().data[:, :4], n_boot=20)
    >>> report.threshold_interval[0] < report.threshold < report.threshold_interval[1]
    True
    """

    names: tuple[str, ...]
    threshold: float
    threshold_estimate: float
    threshold_interval: tuple[float, float]
    threshold_samples: Array
    fidelity: Array
    fidelity_interval: Array
    confidence: float
    n_failed: int

    def _table(self) -> tuple[str, list[str], dict[str, Array]]:
        low, high = np.c_[self.threshold_interval, self.fidelity_interval]
        columns = {"estimate": np.r_[self.threshold, self.fidelity], "low": low, "high": high}
        return "quantity", ["threshold", *self.names], columns

    def summary(self) -> str:
        """The threshold of the table and its interval for the population, in one sentence."""
        low, high = self.threshold_interval
        failed = f"; {self.n_failed} more could not be fitted" if self.n_failed else ""
        return (
            f"ρ★ is {self.threshold:.4f} for these rows and lies between {low:.4f} and "
            f"{high:.4f} in the population, with a confidence of approximately "
            f"{self.confidence:g} (resampled tables: {len(self.threshold_samples)}{failed})."
        )


def bootstrap(
    estimator: CORAL,
    X: Any,
    *,
    n_boot: int = 200,
    confidence: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
    block_length: Any = None,
    random_state: int | None = 0,
) -> Bootstrap:
    """Intervals for the threshold and for each fidelity.

    Fidelities are those of refits to resampled rows, with percentile intervals: how much the fit
    itself varies. ρ★ of resampled rows lies below that of the table, as that of the table lies
    below the population's (noise looks like correlation), so percentiles would be too low twice;
    its interval comes from rows left out.

    Parameters
    ----------
    estimator : CORAL
        What is refitted.
    X : array-like of shape (n, p)
        The rows.
    n_boot : int, default=200
        Number of replicates.
    confidence : float, default=0.95
        Of the intervals.
    sample_weight, groups, block_length
        As in :func:`confident_floors`; rows in the order of time are drawn in blocks of this mean
        length (the stationary bootstrap).
    random_state : int or None, default=0
        Seed; ``None`` draws other rows each time.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.stability import bootstrap
    >>> report = bootstrap(CORAL(), load_wine().data, n_boot=20)
    >>> low, high = report.threshold_interval
    >>> 0.7 < low < report.threshold_estimate < high < 0.9
    True
    """
    n_boot = check_count("n_boot", n_boot, maximum=1_000_000)
    level = check_confidence(confidence)
    if random_state is not None:
        random_state = check_count("random_state", random_state, minimum=0)
    sample = Resampler(
        estimator, X, sample_weight=sample_weight, groups=groups, block_length=block_length
    )
    sample.model.set_params(on_singular="raise")  # dependent columns have no ρ★
    # fidelities vary as refits to resampled rows do
    full = sample.fit()
    seeds = np.random.SeedSequence(random_state).spawn(n_boot)
    tasks = ((sample.dependence.drawn(seed), full) for seed in seeds)
    samples = [s for s in sample.parallel(_replicate, tasks) if s is not None]
    if not samples:
        raise InvalidTableError(
            f"None of {n_boot} resampled tables could be fitted: there are too few different rows "
            "for this many columns. An estimator with covariance='LedoitWolf' can be resampled."
        )
    thresholds, fidelities = (np.array(values) for values in zip(*samples, strict=True))
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    value = api.threshold(full.table).value
    # ρ★ of resampled rows is biased twice: reflect it where no better interval can be had, which
    # needs rows to leave out and a matrix that is linear in them
    low, high = (2.0 * value - np.quantile(thresholds, tails)[::-1]).tolist()
    middle = 2.0 * value - float(thresholds.mean())
    if not full.table.source:
        with suppress(CoralError):  # leaving rows out of a short table may leave too few
            middle, low, high = threshold_interval(sample, value, tails, seed=random_state or 0)
    return Bootstrap(
        names=full.result.names,
        threshold=value,
        threshold_estimate=min(middle, 1.0),
        threshold_interval=(max(low, 0.0), min(high, 1.0)),
        threshold_samples=thresholds,
        fidelity=full.result.fidelity,
        fidelity_interval=np.quantile(fidelities, tails, axis=0),
        confidence=level,
        n_failed=n_boot - len(samples),
    )


def _replicate(sample: Resampler, part: Index, full: Fitted) -> tuple[float, Array] | None:
    """ρ★ and fidelities of a refit to rows drawn with replacement, where they suffice for one."""
    with warnings.catch_warnings(), suppress(CoralError):
        warnings.simplefilter("ignore", NotCertifiedWarning)
        again = sample.fit(part, warm=full.result)
        return api.threshold(again.table).value, again.result.fidelity
    return None


def threshold_interval(
    sample: Resampler, value: float, tails: Sequence[float], *, seed: int
) -> tuple[float, float, float]:
    """The estimate of ρ★ without its bias, and the two ends of its interval.

    ρ★ is a concave function of R, so that of a sample is too low on average. The weights λ and the
    root S of a fold give an upper bound that is linear in R, ``½ (tr(S⁻¹ D R D) + tr S)``; on the
    rows that the fold left out it is too high on average, by as much to second order. Half-way
    between the two lies the estimate, and the interval reaches from the lower less its error to the
    higher plus its error, which is the error of the mean of the rows' influence values

        ψ = ½ Σ_j λ_j z_j (z̃_j − ρ★ z_j)

    with λ, T and ρ★ from the fold that left the row out, studentised by draws. ``value`` is ρ★ of
    the table, and ``tails`` are the levels of the two ends.
    """
    upper, psi = sample.by_fold(_left_out, 10)
    bound = float(mean_of(upper[:, None], sample.weights)[0])
    spread, draws = Draws(sample.dependence, DRAWS, seed).errors(psi[:, None])
    width = float(spread[0]) * np.sqrt(1.0 + len(sample.names) / sample.dependence.n_effective)
    low, high = (width * np.quantile(draws[:, 0], tails)).tolist()
    low, high = min(value, bound) - high, max(value, bound) - low
    return 0.5 * (value + bound), low, high


def _left_out(sample: Resampler, train: Any, test: Any) -> tuple[Array, Array]:
    """What each row left out adds to the upper bound of a fold, and its influence."""
    fold = api.threshold(sample.table(train))
    Z = standardised(sample.rows, sample.weights)[test]
    psi = threshold_influence(Z, fold)
    # the bound itself, where the variances of the rows left out are put at one as R has them
    return fold.value + psi, psi
