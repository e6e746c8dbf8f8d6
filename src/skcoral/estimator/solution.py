"""From a correlation matrix to everything a fitted transformer knows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from skcoral import api
from skcoral._lowrank import LowRankTransform
from skcoral.choosing import solve_for
from skcoral.correlation import CorrelationEstimate, sample_correlation
from skcoral.exceptions import NotCertifiedWarning
from skcoral.few_rows import RowMoments
from skcoral.measured import Measured, measure_few_rows, measure_matrix
from skcoral.moments import Moments
from skcoral.results import Decorrelation, Threshold

SOLVED = (
    "T_",
    "certificate_",
    "components_",
    "correlation_",
    "estimate_",
    "fidelity_",
    "floors_",
    "mean_",
    "margins_",
    "measured_",
    "n_iter_",
    "output_mean_",
    "output_scale_",
    "prices_",
    "result_",
    "scale_",
    "shrinkage_",
    "threshold_",
)
_LONG = 10_000  # columns of a wide table whose effect is measured only when asked for


def solve(
    estimator: Any,
    table: CorrelationEstimate,
    moments: Moments,
    plain: Moments | None = None,
    *,
    floors: Any = None,
) -> dict[str, Any]:
    """Solve for ``table`` as an estimator's settings ask; the attributes in ``SOLVED``.

    ``moments`` are those of the rows; ``plain`` those of what T acts on (scores, with margins)
    without weights, where they are known: the effect is measured on these. ``floors`` replace those
    of the settings.
    """
    result = answer(estimator, table, floors=floors)
    details = {
        "guarantee": table.guarantee,
        "about": table.about,
        "is_about_rows": table.is_about_rows,
    }
    result = replace(
        result,
        details={**result.details, **details},
        R=None,
        on_rows=None if _is_long(table) else _measured(table, result, plain, moments),
    )
    # of a singular matrix it takes as long as the answer itself, and is found when asked for
    threshold = None if table.deficiency is not None else api.threshold(table)
    return attributes(table, result, threshold, estimator.output_scale, moments)


def answer(
    estimator: Any,
    table: CorrelationEstimate,
    *,
    floors: Any = None,
    warm: Decorrelation | None = None,
) -> Decorrelation:
    """The transformation for ``table`` as an estimator's settings ask, at other floors if given."""
    settings = {
        "pair_weights": estimator.pair_weights,
        "anchors": estimator.anchors,
        "tol": estimator.tol,
        "max_iter": estimator.max_iter,
        "on_singular": estimator.on_singular,
        "rank_tol": estimator.rank_tol,
    }
    floors = estimator.rho_min if floors is None else floors
    if floors is None:
        return solve_for(table, estimator, **settings)
    return api.decorrelate(
        table,
        floors,
        criterion=estimator.criterion,
        support=estimator.support,
        random_state=estimator.random_state,
        warm=warm,
        **settings,
    )


def confident(estimator: Any, rows: Any, sample_weight: Any, groups: Any) -> Any:
    """The floors raised for the population, as an estimator's settings ask."""
    from skcoral.stability import confident_floors

    names = estimator.__dict__.get("feature_names_in_")
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    return confident_floors(
        rows,
        estimator.rho_min,
        confidence=estimator.confidence,
        simultaneous=estimator.simultaneous,
        # weights that fade are in sample_weight already
        estimator=clone(estimator).set_params(halflife=None),
        sample_weight=sample_weight,
        groups=groups,
        block_length=estimator.block_length,
    )


def told(result: Decorrelation, **sentences: str) -> Decorrelation:
    """The result with more to say in its details."""
    return replace(result, details={**result.details, **sentences})


def _is_long(table: CorrelationEstimate) -> bool:
    """Whether looking at every pair of columns takes longer than the solution."""
    return table.is_wide and len(table.names) > _LONG


def _measured(
    table: CorrelationEstimate, result: Decorrelation, plain: Moments | None, moments: Moments
) -> Measured:
    source = moments if plain is None else plain
    margins = "none" if table.margins is None else table.margins.kind
    if isinstance(source, RowMoments) and table.is_wide:
        Z = source.deviations / table.scale
        targets = Z if result.anchors is None else Z @ result.anchors
        return measure_few_rows(Z, Z @ result.T, targets, result.names, margins=margins)
    # T acts on columns standardised as the estimate has it, with weights if there are any
    T = result.T * (source.scale / table.scale)[:, None]
    anchors = result.anchors
    if anchors is not None:
        anchors = anchors * (source.scale / table.scale)[:, None]
    found = measure_matrix(
        sample_correlation(source),
        T,
        result.names,
        anchors=anchors,
        rows_used=source.n_rows,
        rows_given=max(source.n_rows, moments.n_rows),
        margins=margins,
        weighted=plain is None and table.weights != "none",
    )
    # without complete rows, the figures are those that the estimate implies
    if table.source.startswith("EM"):
        return replace(found, complete=True, rows_used=0 if source is moments else source.n_rows)
    return found


def attributes(
    table: CorrelationEstimate,
    result: Decorrelation,
    threshold: Threshold | None,
    output_scale: str,
    moments: Moments,
) -> dict[str, Any]:
    """Fitted attributes, by name, for a solution at hand; some wait until they are asked for."""
    known = {
        "T_": result.T,
        "certificate_": result.certificate,
        "correlation_": table.R,
        "estimate_": table,
        "fidelity_": result.fidelity,
        "floors_": result.rho_min,
        "margins_": table.margins,
        "mean_": table.mean,
        "n_iter_": (0 if threshold is None else threshold.n_iter) + result.n_iter,
        "output_mean_": moments.mean if output_scale == "original" else np.zeros(len(result.names)),
        # kept as it was, so that a setting changed later waits for the next fit
        "output_scale_": output_scale,
        "prices_": result.prices,
        "result_": result,
        "scale_": table.scale,
        "shrinkage_": table.shrinkage,
    }
    if threshold is not None:
        known["threshold_"] = threshold
    if result.on_rows is not None:
        known["measured_"] = result.on_rows
    if not isinstance(result.T, LowRankTransform):
        known["components_"] = components(result.T, table.scale, output_scale, moments)
    return known


def components(T: Any, scale: Any, output_scale: str, moments: Moments) -> Any:
    """The transformation of the columns as they are, one row per output."""
    dense = T.toarray() if isinstance(T, LowRankTransform) else T
    out = (dense / scale[:, None]).T
    return out * moments.scale[:, None] if output_scale == "original" else out


def late(estimator: Any, name: str) -> Any:
    """An attribute of a singular or wide fit that is found when it is asked for.

    The threshold is kept; components of a wide table (p × p) are not.
    """
    if name == "measured_":
        estimator.measured_ = _measured(
            estimator.estimate_, estimator.result_, None, estimator.moments_
        )
        return estimator.measured_
    if name == "threshold_":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            estimator.threshold_ = api.threshold(estimator.estimate_)
        return estimator.threshold_
    return components(estimator.T_, estimator.scale_, estimator.output_scale_, estimator.moments_)
