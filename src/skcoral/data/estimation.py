"""From rows or moments to a correlation estimate: a matrix, or the rows where they are few."""

from __future__ import annotations

from typing import Any

from skcoral.data.correlation import CorrelationEstimate, estimate
from skcoral.data.covariances import check_covariance, estimate_by
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments, estimate_few_rows
from skcoral.exceptions import SingularCorrelationWarning, warn


def estimate_rows(
    rows: Any,
    names: tuple[str, ...],
    sample_weight: Any = None,
    *,
    covariance: Any = None,
    dense: bool = False,
    on_singular: str = "solve",
) -> tuple[CorrelationEstimate, Moments]:
    """The correlations of rows, and the moments of these rows.

    Where columns are more than twice the rows, the rows are kept instead of a p × p matrix, unless
    a ``dense`` one is needed.
    """
    other = check_covariance(covariance)
    if rows.shape[1] > 2 * rows.shape[0] and other is None and not dense:
        moments: Moments = RowMoments(rows, names, sample_weight=sample_weight)
    else:
        moments = Moments(names).update(rows, sample_weight=sample_weight)
    if other is None:
        return estimate_moments(moments, on_singular=on_singular), moments
    known = {"sample_weight": sample_weight, "on_singular": on_singular}
    table = estimate_by(other, rows, moments, **known)
    warn_if_singular(table)
    return table, moments


def estimate_moments(
    moments: Moments, *, dense: bool = False, on_singular: str = "solve"
) -> CorrelationEstimate:
    """The correlations of rows whose moments were collected before."""
    if isinstance(moments, RowMoments) and not dense:
        table = estimate_few_rows(moments)
    else:
        table = estimate(moments, on_singular=on_singular)
    warn_if_singular(table)
    return table


def warn_if_singular(table: CorrelationEstimate) -> None:
    """Warn about a matrix of deficient rank: which relations, or how few rows."""
    if table.deficiency is not None:
        warn(table.deficiency.warning(), SingularCorrelationWarning)


def how_to_estimate(estimator: Any) -> dict[str, Any]:
    """The settings of an estimator that say how correlations are estimated."""
    needs_matrix = estimator.support is not None or estimator.on_singular == "raise"
    return {"dense": needs_matrix, "on_singular": estimator.on_singular}
