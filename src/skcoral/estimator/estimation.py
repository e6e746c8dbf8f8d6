"""From rows or moments to a correlation estimate: a matrix, or the rows where they are few."""

from __future__ import annotations

from typing import Any

from skcoral.data.correlation import CorrelationEstimate, estimate
from skcoral.data.covariances import check_covariance, estimate_by
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments, estimate_few_rows
from skcoral.exceptions import SingularCorrelationWarning, warn

Estimated = tuple[CorrelationEstimate, Moments, Moments]


def estimate_rows(
    estimator: Any, rows: Any, names: tuple[str, ...], sample_weight: Any
) -> Estimated:
    """Estimate the correlation matrix of rows with an estimator's settings.

    Also returns the moments of the rows, with weights and without.
    """
    if rows.shape[1] > 2 * rows.shape[0] and not _needs_matrix(estimator):
        found = _from_few_rows(estimator, rows, names, sample_weight)
    else:
        found = _from_rows(estimator, rows, names, sample_weight)
    warn_if_singular(found[0])
    return found


def estimate_moments(estimator: Any, moments: Moments) -> CorrelationEstimate:
    """Estimate the correlation matrix from moments that were collected before."""
    if isinstance(moments, RowMoments) and not _needs_matrix(estimator):
        table = estimate_few_rows(moments)
    else:
        table = estimate(moments, on_singular=estimator.on_singular)
    warn_if_singular(table)
    return table


def warn_if_singular(table: CorrelationEstimate) -> None:
    """Warn about a matrix of deficient rank: which relations, or how few rows."""
    if table.deficiency is not None:
        warn(table.deficiency.warning(), SingularCorrelationWarning)


def _needs_matrix(estimator: Any) -> bool:
    """Whether a setting needs a p × p matrix even of few rows."""
    return (
        estimator.covariance is not None
        or estimator.support is not None
        or estimator.on_singular == "raise"
    )


def _from_rows(estimator: Any, rows: Any, names: tuple[str, ...], sample_weight: Any) -> Estimated:
    moments = Moments(names).update(rows, sample_weight=sample_weight)
    other = check_covariance(estimator.covariance)
    if other is None:
        table = estimate(moments, on_singular=estimator.on_singular)
    else:
        table = estimate_by(
            other,
            rows,
            moments,
            sample_weight=sample_weight,
            on_singular=estimator.on_singular,
        )
    if not table.weighted:
        return table, moments, moments
    return table, moments, Moments(names).update(rows)


def _from_few_rows(
    estimator: Any, rows: Any, names: tuple[str, ...], sample_weight: Any
) -> Estimated:
    moments = unweighted = RowMoments(rows, names, sample_weight=sample_weight)
    table = estimate_few_rows(moments)
    if table.weighted:
        unweighted = RowMoments(rows, names)
    return table, moments, unweighted
