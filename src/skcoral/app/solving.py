"""From what a visitor chose to the solution: the arguments, raised floors, fits and figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral import api
from skcoral.app.problem import Problem, floors, mask
from skcoral.app.settings import Settings
from skcoral.app.sources import TableSource
from skcoral.correlation import sample_correlation
from skcoral.estimator.attributes import with_details
from skcoral.exceptions import ConfidenceWarning
from skcoral.measured import Measured, measure_matrix
from skcoral.results import Decorrelation
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
            estimator=unfitted(problem, at_floors(problem, chosen)),
            block_length=chosen.get("block_length"),
            callback=callback,
            **known(problem, chosen),
        )


def at_floors(
    problem: Problem, chosen: Mapping[str, Any], sure: ConfidentFloors | None = None
) -> dict[str, Any]:
    """The arguments without a confidence, at the raised floors where these are known."""
    about = ("confidence", "groups", "block_length")
    plain = {name: value for name, value in chosen.items() if name not in about}
    if sure is not None:
        plain["rho_min"] = dict(zip(problem.names, sure.floors.tolist(), strict=True))
    return plain


def solve(
    problem: Problem, chosen: Mapping[str, Any], sure: ConfidentFloors | None = None
) -> Decorrelation:
    """Solve with the arguments that :func:`arguments` gives, at raised floors if there are any."""
    estimate = problem.estimate
    way = api.maximize_fidelity if "budget" in chosen else api.decorrelate
    result = way(problem.judged, **at_floors(problem, chosen, sure))
    result = with_details(result, about=estimate.about, is_about_rows=estimate.is_about_rows)
    return result if sure is None else with_details(result, confidence=sure.sentence())


def measured(problem: Problem, result: Decorrelation) -> Measured:
    """The effect on the rows that a download holds, or on the matrix given."""
    if problem.rows is None:
        return measure_matrix(problem.given, result.T, result.names)
    plain, maps = problem.plain, problem.estimate.margins
    return measure_matrix(
        sample_correlation(plain),
        result.T * (plain.scale / problem.estimate.scale)[:, None],
        result.names,
        rows_used=len(problem.rows),
        rows_given=len(problem.rows) + problem.n_incomplete,
        margins="none" if maps is None else maps.kind,
    )


def unfitted(problem: Problem, chosen: Mapping[str, Any], *, scale: str = "unit") -> CORAL:
    """The estimator with these settings; the shrinkage is the intensity that was found."""
    from skcoral.estimator import CORAL

    margins = problem.estimate.margins
    more: dict[str, Any] = {
        "output_scale": scale,
        "shrinkage": problem.estimate.shrinkage or None,
        "margins": "none" if margins is None else margins.kind,
    }
    if problem.moments is not None:
        more["weight_kind"] = problem.moments.weight_kind
    return CORAL(**{name: v for name, v in chosen.items() if name != "groups"}, **more)


def fitted(problem: Problem, chosen: Mapping[str, Any], *, scale: str = "unit") -> CORAL:
    """The estimator fitted to the rows of a table."""
    model = unfitted(problem, chosen, scale=scale)
    by_moments = model.margins == "none" and model.confidence is None
    if by_moments and problem.sample_weight is None and problem.moments is not None:
        return model.fit_moments(problem.moments)
    return model.fit(problem.frame(), **known(problem, chosen))
