"""From a correlation matrix to everything a fitted transformer knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral import api
from skcoral.correlation import CorrelationEstimate, sample_correlation
from skcoral.measured import Measured, measure_matrix
from skcoral.moments import Moments
from skcoral.results import Decorrelation, Threshold

SOLVED = (
    "T_",
    "certificate_",
    "components_",
    "correlation_",
    "estimate_",
    "fidelity_",
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


def solve(
    estimator: Any, table: CorrelationEstimate, moments: Moments, plain: Moments | None = None
) -> dict[str, Any]:
    """Solve for ``table`` as an estimator's settings ask; the attributes in ``SOLVED``.

    ``moments`` are those of the rows; ``plain`` those of what T acts on (scores, with margins)
    without weights, where they are known: the effect is measured on these.
    """
    settings = {
        "criterion": estimator.criterion,
        "pair_weights": estimator.pair_weights,
        "anchors": estimator.anchors,
        "tol": estimator.tol,
        "max_iter": estimator.max_iter,
    }
    if estimator.budget is not None:
        result = api.maximize_fidelity(table, estimator.budget, **settings)
    else:
        result = api.decorrelate(
            table,
            estimator.rho_min,
            support=estimator.support,
            random_state=estimator.random_state,
            **settings,
        )
    details = {
        "guarantee": table.guarantee,
        "about": table.about,
        "is_about_rows": table.is_about_rows,
    }
    result = replace(
        result,
        details={**result.details, **details},
        R=None,
        on_rows=_measured(table, result, plain, moments),
    )
    return attributes(table, result, api.threshold(table), estimator.output_scale, moments)


def _measured(
    table: CorrelationEstimate, result: Decorrelation, plain: Moments | None, moments: Moments
) -> Measured:
    source = moments if plain is None else plain
    # T acts on columns standardised as the estimate has it, with weights if there are any
    T = result.T * (source.scale / table.scale)[:, None]
    anchors = result.anchors
    if anchors is not None:
        anchors = anchors * (source.scale / table.scale)[:, None]
    return measure_matrix(
        sample_correlation(source),
        T,
        result.names,
        anchors=anchors,
        rows_used=source.n_rows,
        rows_given=source.n_rows,
        margins="none" if table.margins is None else table.margins.kind,
        weighted=plain is None and table.weights != "none",
    )


def attributes(
    table: CorrelationEstimate,
    result: Decorrelation,
    threshold: Threshold,
    output_scale: str,
    moments: Moments,
) -> dict[str, Any]:
    """Fitted attributes, by name, for a solution at hand."""
    components = (result.T / table.scale[:, None]).T
    output_mean = np.zeros(len(components))
    if output_scale == "original":
        components *= moments.scale[:, None]
        output_mean = moments.mean
    return {
        "T_": result.T,
        "certificate_": result.certificate,
        "components_": components,
        "correlation_": table.R,
        "estimate_": table,
        "fidelity_": result.fidelity,
        "margins_": table.margins,
        "mean_": table.mean,
        "measured_": result.on_rows,
        "n_iter_": threshold.n_iter + result.n_iter,
        "output_mean_": output_mean,
        # kept as it was, so that a setting changed later waits for the next fit
        "output_scale_": output_scale,
        "prices_": result.prices,
        "result_": result,
        "scale_": table.scale,
        "shrinkage_": table.shrinkage,
        "threshold_": threshold,
    }
