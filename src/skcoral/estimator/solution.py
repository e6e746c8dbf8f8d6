"""From a correlation matrix to everything a fitted transformer knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skcoral import api
from skcoral.correlation import CorrelationEstimate
from skcoral.results import Decorrelation, Threshold

SOLVED = (
    "T_",
    "certificate_",
    "components_",
    "correlation_",
    "estimate_",
    "fidelity_",
    "mean_",
    "n_iter_",
    "output_scale_",
    "prices_",
    "result_",
    "scale_",
    "shrinkage_",
    "threshold_",
)


def solve(estimator: Any, table: CorrelationEstimate) -> dict[str, Any]:
    """Solve for ``table`` as an estimator's settings ask; the attributes in ``SOLVED``."""
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
    result = replace(result, details={**result.details, "guarantee": table.guarantee})
    return attributes(table, result, api.threshold(table), estimator.output_scale)


def attributes(
    table: CorrelationEstimate, result: Decorrelation, threshold: Threshold, output_scale: str
) -> dict[str, Any]:
    """Fitted attributes, by name, for a solution at hand."""
    components = (result.T / table.scale[:, None]).T
    if output_scale == "original":
        components *= table.scale[:, None]
    return {
        "T_": result.T,
        "certificate_": result.certificate,
        "components_": components,
        "correlation_": table.R,
        "estimate_": table,
        "fidelity_": result.fidelity,
        "mean_": table.mean,
        "n_iter_": threshold.n_iter + result.n_iter,
        # kept as it was, so that a setting changed later waits for the next fit
        "output_scale_": output_scale,
        "prices_": result.prices,
        "result_": result,
        "scale_": table.scale,
        "shrinkage_": table.shrinkage,
        "threshold_": threshold,
    }
