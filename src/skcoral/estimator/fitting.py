"""From rows to a judged correlation matrix: as moments, or as the rows where they are few."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.correlation import (
    CorrelationEstimate,
    check_shrinkage,
    estimate,
    estimate_from_rows,
)
from skcoral.covariances import check_covariance, effective_rows, em_moments, estimate_by
from skcoral.exceptions import SingularCorrelationWarning
from skcoral.few_rows import RowMoments, estimate_few_rows
from skcoral.margins import fit_margins
from skcoral.moments import Moments


def is_wide(estimator: Any, rows: Any) -> bool:
    """Whether a p × p matrix is to be avoided: more than twice as many columns as rows."""
    n, p = rows.shape
    needs_matrix = (
        estimator.shrinkage is not None
        or estimator.covariance is not None
        or estimator.support is not None
        or estimator.on_singular == "raise"
    )
    return p > 2 * n and not needs_matrix


def estimate_rows(
    estimator: Any, rows: Any, names: tuple[str, ...], sample_weight: Any
) -> tuple[CorrelationEstimate, Moments, Moments]:
    """Judge the rows of a table.

    Returns
    -------
    table : CorrelationEstimate
    moments : Moments
        Of the columns as they are.
    plain : Moments
        Of what the transformation acts on (scores, with margins), without weights.
    """
    if estimator.missing == "em" and np.isnan(rows).any():
        table, moments, plain = _incomplete(estimator, rows, names, sample_weight)
    elif is_wide(estimator, rows):
        table, moments, plain = _few_rows(estimator, rows, names, sample_weight)
    else:
        moments = Moments(names, weight_kind=estimator.weight_kind)
        moments.update(rows, sample_weight=sample_weight)
        settings: dict[str, Any] = {
            "sample_weight": sample_weight,
            "margins": estimator.margins,
            "on_singular": estimator.on_singular,
            "rank_tol": estimator.rank_tol,
        }
        other = check_covariance(estimator.covariance)
        if other is None:
            table = estimate_from_rows(rows, moments, shrinkage=estimator.shrinkage, **settings)
        else:
            table = estimate_by(other, rows, moments, **settings)
        plain = moments
        if table.margins is not None or table.weights != "none":
            scores = rows if table.margins is None else table.margins.transform(rows)
            plain = Moments(names).update(scores)
    tell_deficiency(table)
    return table, moments, plain


def _incomplete(
    estimator: Any, rows: Any, names: tuple[str, ...], sample_weight: Any
) -> tuple[CorrelationEstimate, Moments, Moments]:
    moments = em_moments(
        rows, names, sample_weight=sample_weight, weight_kind=estimator.weight_kind
    )
    table = estimate(
        moments,
        shrinkage=check_shrinkage(estimator.shrinkage),
        on_singular=estimator.on_singular,
        rank_tol=estimator.rank_tol,
    )
    known = f"EM (each pair known from {effective_rows(rows):,} rows or more)"
    # the effect is measured on complete rows, where there are enough of them
    complete = Moments(names).update(rows[~np.isnan(rows).any(axis=1)])
    enough = complete.n_rows > 2 and not complete.constant_columns()
    return replace(table, source=known), moments, complete if enough else moments


def estimate_moments(estimator: Any, moments: Moments, shrinkage: float) -> CorrelationEstimate:
    """Judge moments that were collected before."""
    if isinstance(moments, RowMoments) and not shrinkage and estimator.on_singular == "solve":
        table = estimate_few_rows(moments, rank_tol=estimator.rank_tol)
    else:
        table = estimate(
            moments,
            shrinkage=shrinkage,
            on_singular=estimator.on_singular,
            rank_tol=estimator.rank_tol,
        )
    tell_deficiency(table)
    return table


def tell_deficiency(table: CorrelationEstimate) -> None:
    """Warn about a matrix of deficient rank: which relations, or how few rows."""
    if table.deficiency is not None:
        warnings.warn(table.deficiency.warning(), SingularCorrelationWarning, stacklevel=5)


def _few_rows(
    estimator: Any, rows: Any, names: tuple[str, ...], sample_weight: Any
) -> tuple[CorrelationEstimate, Moments, Moments]:
    kind = estimator.weight_kind
    moments = RowMoments(rows, names, sample_weight=sample_weight, weight_kind=kind)
    maps, scores, table_rows = None, None, rows
    if estimator.margins != "none" and moments.n_rows > 1:
        maps = fit_margins(estimator.margins, rows, sample_weight=sample_weight)
    if maps is not None:
        table_rows = maps.transform(rows)
        scores = RowMoments(table_rows, names, sample_weight=sample_weight, weight_kind=kind)
    table = estimate_few_rows(moments, margins=maps, scores=scores, rank_tol=estimator.rank_tol)
    plain = moments if scores is None else scores
    if table.weights != "none":
        plain = RowMoments(table_rows, names)
    return table, moments, plain
