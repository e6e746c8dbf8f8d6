"""From what a visitor chose to one fitted estimator, for the screen and for downloads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.app.problem import Problem, floors, mask
from skcoral.app.settings import Settings
from skcoral.app.sources import TableSource
from skcoral.estimator.attributes import with_details
from skcoral.estimator.overfitting import measure_overfitting
from skcoral.estimator.rounding import measure_rounding
from skcoral.exceptions import ConfidenceWarning
from skcoral.measured import Measured
from skcoral.moments import Moments
from skcoral.tables.table import labels_of

if TYPE_CHECKING:
    from skcoral.estimator import CORAL
    from skcoral.stability import ConfidentFloors


def arguments(problem: Problem, settings: Settings) -> dict[str, Any]:
    """The settings as the arguments of :class:`skcoral.CORAL`; ``groups`` is a column's name."""
    if settings.mode == "support":
        return {"rho_min": floors(problem, settings), "support": mask(problem, settings)}
    chosen: dict[str, Any] = {"rho_min": floors(problem, settings)}
    if settings.mode == "budget":
        chosen = {"budget": settings.budget}
    elif settings.confidence and problem.rows is not None and 0.0 < settings.floor < 1.0:
        chosen["confidence"] = settings.confidence
        if settings.groups in group_columns(problem, settings):
            chosen["groups"] = settings.groups
        elif settings.block:
            chosen["block_length"] = "auto" if settings.block == "auto" else int(settings.block)
    if settings.criterion != "squared":
        chosen["criterion"] = settings.criterion
    return chosen


def group_columns(problem: Problem, settings: Settings) -> list[str]:
    """Columns that can say which rows belong together: those that are no variables."""
    if not isinstance(problem.source, TableSource):
        return []
    aside = {*problem.names, settings.weights, ""}
    return [name for name in problem.source.table.names if name not in aside]


def known(problem: Problem, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Weights and groups of the rows, where there are any, as ``fit`` takes them."""
    found: dict[str, Any] = {}
    if problem.sample_weight is not None:
        found["sample_weight"] = problem.sample_weight
    if "groups" in chosen:
        assert isinstance(problem.source, TableSource)
        labels = labels_of(problem.source.table.cells(chosen["groups"]))
        found["groups"] = np.array(labels, dtype=object)[problem.kept]
    return found


def raised(
    problem: Problem, chosen: Mapping[str, Any], callback: Callable[[int, int], object]
) -> ConfidentFloors:
    """The floors that hold for the population with the confidence that was chosen."""
    from skcoral.stability import confident_floors

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfidenceWarning)  # its sentence says the same
        return confident_floors(
            problem.frame(),
            chosen["rho_min"],
            confidence=chosen["confidence"],
            estimator=_unfitted(problem, chosen),
            block_length=chosen.get("block_length"),
            callback=callback,
            **known(problem, chosen),
        )


def _unfitted(problem: Problem, chosen: Mapping[str, Any]) -> CORAL:
    """The estimator with these settings; the shrinkage is the intensity that was found."""
    from skcoral.estimator import CORAL

    margins, moments = problem.estimate.margins, problem.moments
    settings: dict[str, Any] = {
        "shrinkage": problem.estimate.shrinkage or None,
        "margins": "none" if margins is None else margins.kind,
        "weight_kind": "auto" if moments is None else moments.weight_kind,
    }
    return CORAL(**{name: v for name, v in chosen.items() if name != "groups"}, **settings)


def fitted(
    problem: Problem, chosen: Mapping[str, Any], sure: ConfidentFloors | None = None
) -> CORAL:
    """The estimator solved with the arguments that :func:`arguments` gives.

    ``sure`` are the raised floors where a confidence is asked for.
    """
    is_matrix = problem.rows is None
    model = _unfitted(problem, chosen)._fit_estimate(
        problem.estimate,
        problem.moments or Moments(problem.names),
        unweighted=None if is_matrix else problem.plain,
        judged=problem.judged,
        floors=None if sure is None else sure.floors,
        measured_on=problem.given if is_matrix else None,
    )
    if sure is not None:
        model.confidence_ = sure
        model.result_ = with_details(model.result_, confidence=sure.sentence())
    return model


def measured(problem: Problem, model: CORAL) -> Measured:
    """The effect on the rows that a download holds, or on the matrix given."""
    if problem.rows is None:
        return model.measured_
    return replace(model.measured_, rows_given=len(problem.rows) + problem.n_incomplete)


def for_download(problem: Problem, model: CORAL, *, scale: str) -> CORAL:
    """The model on the screen with outputs in these units, and with what new rows can expect."""
    found = copy(model).set_params(output_scale=scale)
    found.output_scale_ = scale
    measure_rounding(found, problem.rows, problem.sample_weight)
    measure_overfitting(found, problem.rows, problem.sample_weight)
    return found
