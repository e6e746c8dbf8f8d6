"""Influence of single rows on the threshold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral import api
from skcoral.core.arrays import Array, Frozen
from skcoral.core.display import Shown
from skcoral.core.validation import check_count
from skcoral.estimator import CORAL
from skcoral.exceptions import CoralError, InvalidArgumentError
from skcoral.stability.resampling import Resampler
from skcoral.stability.sampling_errors import threshold_influence


@dataclass(frozen=True, repr=False)
class Influence(Shown, Frozen):
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
        Rows that were actually removed, in order of the change of ρ★, largest first.
    threshold_without : ndarray of shape (m,)
        ρ★ without each of them; NaN, and first, where the rows that remain determine none.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> report = influence(CORAL(), load_wine().data[:, :4])
    >>> len(report.first_order), list(report.to_frame().columns)
    (178, ['threshold_without', 'change', 'first_order'])
    """

    threshold: float
    labels: tuple[Any, ...]
    first_order: Array
    refitted: np.ndarray[Any, np.dtype[np.intp]]
    threshold_without: Array

    def _table(self) -> tuple[str, list[Any], dict[str, Array]]:
        """The rows that were left out, the most influential first."""
        columns = {
            "threshold_without": self.threshold_without,
            "change": self.threshold_without - self.threshold,
            "first_order": self.first_order[self.refitted],
        }
        return "row", [self.labels[i] for i in self.refitted], columns

    def summary(self) -> str:
        """The threshold with all rows, and without the row that moves it most."""
        start = f"ρ★ is {self.threshold:.4f} with all {len(self.labels)} rows"
        if not len(self.refitted):
            return f"{start}."
        label, value = self.labels[self.refitted[0]], self.threshold_without[0]
        without = "not determined" if np.isnan(value) else f"{value:.4f}"
        return f"{start} and {without} without row {label}, which moves it most."


def influence(
    estimator: CORAL, X: Any, *, sample_weight: Any = None, n_refits: int = 10
) -> Influence:
    """Find the rows with the largest influence on the threshold ρ★.

    With ``z`` a standardised row, ``z̃ = z T`` its outputs at the threshold, λ the threshold's
    weights and ν the degrees of freedom of the rows (their number less one, without weights), the
    derivative of ρ★ by the weight of that row is

        Σ_j λ_j z_j (z̃_j − ρ★ z_j) / (2 ν)

    (the envelope theorem: ρ★ is a minimum over λ, so only R moves; exact where λ is unique).
    Variables that do not bind have λ_j = 0 and do not contribute. The rows with the largest
    derivatives are then actually removed, one at a time.

    Parameters
    ----------
    estimator : CORAL
        Without ``covariance``: ρ★ depends on no other setting.
    X : array-like of shape (n, p)
        The rows.
    sample_weight : array-like of shape (n,), optional
        How much each row counts relative to the others.
    n_refits : int, default=10
        How many rows are actually removed.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.stability import influence
    >>> report = influence(CORAL(), load_wine().data, n_refits=3)
    >>> report.first_order.shape
    (178,)
    """
    n_refits = check_count("n_refits", n_refits, minimum=0)
    sample = Resampler(estimator, X, sample_weight=sample_weight, every_row=True)
    if sample.model.covariance is not None:
        raise InvalidArgumentError(
            "Influence is that of rows on their own correlations: leave out covariance."
        )
    sample.model.set_params(on_singular="raise")  # dependent columns have no ρ★
    n = len(sample.rows)
    weights = np.ones(n) if sample.weights is None else sample.weights
    # first order for all rows at once: the envelope theorem leaves only the change of R
    table = sample.table()
    threshold = api.threshold(table)
    psi = threshold_influence(table.standardised(sample.rows), threshold)
    first_order = -weights * psi / (weights.sum() - weights @ weights / weights.sum())
    # then the truth for the few rows that move ρ★ most
    ranked = np.argsort(-np.abs(first_order), kind="stable")
    chosen = ranked[weights[ranked] > 0][:n_refits]
    without = np.full(len(chosen), np.nan)
    for k, row in enumerate(chosen):
        # without this row there may be no threshold: NaN, ranked first
        with suppress(CoralError):
            without[k] = api.threshold(sample.table(np.delete(np.arange(n), row))).value
    change = np.where(np.isnan(without), np.inf, np.abs(without - threshold.value))
    order = np.argsort(-change, kind="stable")
    labels = tuple(X.index) if hasattr(X, "index") and not callable(X.index) else tuple(range(n))
    return Influence(threshold.value, labels, first_order, chosen[order], without[order])
