"""From a source and the choices of a visitor to variables, and to the settings of a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skcoral.app.settings import LIMITED, MODES, Settings, mask_from_text
from skcoral.app.sources import Source
from skcoral.core.arrays import Array
from skcoral.core.deficiency import Deficiency
from skcoral.core.limits import VISITOR, use
from skcoral.estimator.on_rows import measure_overfitting, measure_rounding
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import ConfidenceWarning, InvalidArgumentError, InvalidTableError
from skcoral.show import sentences
from skcoral.show.report.facts import can_hold_out
from skcoral.solvers.support import support_from_threshold
from skcoral.workflow.dataset import Dataset, Request
from skcoral.workflow.fit import Fit

if TYPE_CHECKING:
    import pandas as pd

    from skcoral.stability import ConfidentFloors

MOST_VARIABLES = 100
#: A table with few rows costs rows² × columns and may have more of them.
_MOST_WIDE, _WIDE_COST = 1000, 5e6
#: Modes that would keep other visitors waiting with more variables than these.
LIMITS = {"support": 30, "max_vif": 30, "max_correlation": 60, "worst": 60, "absolute": 60}
#: A solution for the worst pair or for absolute values takes as long as dozens of the others: its
#: curve has fewer points, and for many variables none.
_FEW_POINTS = ((16, 11), (32, 7))


@dataclass(frozen=True)
class Problem:
    """The chosen variables of a source; results are remembered under ``key``."""

    key: tuple[Any, ...]
    source: Source
    data: Dataset

    @property
    def R(self) -> Array:
        """The correlation matrix to solve for."""
        return np.asarray(self.data.estimate.R)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.data.names

    @property
    def deficiency(self) -> Deficiency | None:
        """Which variables are determined by others, or how few rows there are; None if neither."""
        return self.data.judged.deficiency

    @property
    def can_hold_out(self) -> bool:
        """Whether fidelity on new rows can be measured."""
        rows = self.data.rows
        return rows is not None and can_hold_out(len(rows.values), len(self.names))

    def frame(self) -> pd.DataFrame:
        """The complete rows with names."""
        assert self.data.rows is not None
        return named_rows(self.data.rows.values, self.names)


def key_of(source: Source, settings: Settings) -> tuple[Any, ...]:
    """What tells problems apart."""
    chosen = variables(source, settings)
    return (source.key, chosen, settings.weights, settings.target, settings.covariance)


def pose(source: Source, settings: Settings) -> Problem:
    """Choose the variables and estimate their correlations, or raise what is wrong with them."""
    request = Request(
        exclude=settings.without,
        include=settings.include,
        weights=settings.weights or None,
        target=settings.target or None,
        covariance=settings.covariance or None,
        in_memory=True,
        dense=True,
    )
    with use(VISITOR):
        data = source.opened.choose(request)
        most = most_variables(source)
        if len(data.names) > most:
            raise InvalidTableError(
                f"{source.label}: {len(data.names)} variables are chosen and {most} fit here.\n"
                "Choose fewer, or use the command: coral fit has no such limit."
            )
        _ = data.judged  # within the limits of a visitor
    return Problem(key_of(source, settings), source, data)


def most_variables(source: Source) -> int:
    """How many variables can be solved for while a visitor waits."""
    if not source.has_rows:
        return MOST_VARIABLES
    n_rows = source.opened.content.n_rows
    affordable = int(min(_MOST_WIDE, _WIDE_COST / max(n_rows, 1) ** 2))
    return affordable if affordable > max(n_rows, MOST_VARIABLES) else MOST_VARIABLES


def variables(source: Source, settings: Settings) -> tuple[str, ...]:
    """The columns that are chosen; those that look like ids or years only when asked for."""
    doubtful = {*source.opened.doubtful} - {*settings.include}
    aside = {*settings.without, settings.weights, settings.target, *doubtful}
    return tuple(name for name in source.names if name not in aside)


def mask(problem: Problem, settings: Settings) -> NDArray[np.bool_]:
    """The support: as edited, or where correlations are strong enough."""
    edited = mask_from_text(settings.mask, len(problem.names)) if settings.mask else None
    if edited is not None:
        return edited
    return np.asarray(support_from_threshold(problem.R, settings.link), dtype=bool)


def refuse_many(problem: Problem, settings: Settings) -> None:
    """Refuse what would take too long in this mode."""
    asked = {**MODES, **sentences.CRITERIA}
    way = settings.mode if settings.mode in LIMITS else settings.criterion
    limit = LIMITS.get(way, most_variables(problem.source))
    if len(problem.names) > limit:
        raise InvalidArgumentError(
            f"“{asked[way]}” answers here for up to {limit} variables, and there are "
            f"{len(problem.names)}.\nChoose fewer in the side panel, or use the command or the "
            "library, which have no such limit."
        )


def curve_points(problem: Problem, criterion: str) -> int:
    """How many points of the frontier can be computed while a visitor waits."""
    if criterion == "squared":
        return 25 if len(problem.names) <= MOST_VARIABLES and problem.deficiency is None else 7
    return next((n for limit, n in _FEW_POINTS if len(problem.names) <= limit), 0)


def doubts(problem: Problem) -> list[str]:
    """How the data may have been misread: cells and columns left out, and what was assumed."""
    data, source = problem.data, problem.source
    if not (source.has_rows or source.is_file):
        return [source.note] if source.note and not source.public else []
    left_out = [f"{name} (always {data.content.column(name).always:g})" for name in data.constant]
    told = data.doubts("To use them, add them to the variables in the side panel.", "empty")
    return [*told, *([f"Constant, so left out: {', '.join(left_out)}."] if left_out else [])]


def arguments(problem: Problem, settings: Settings) -> dict[str, Any]:
    """What a visitor asks for, as the settings of :class:`skcoral.CORAL`."""
    chosen: dict[str, Any] = {"rho_min": settings.floor}
    own = {name: value for name, value in settings.own if name in problem.names}
    if settings.mode in LIMITED:
        chosen = {settings.mode: getattr(settings, settings.mode)}
    elif own:
        chosen["rho_min"] = {name: own.get(name, settings.floor) for name in problem.names}
    if settings.mode == "support":
        return chosen | {"support": mask(problem, settings)}
    floor = settings.floor if settings.mode == "floor" else None
    if settings.confidence and problem.source.has_rows and floor is not None and 0.0 < floor < 1.0:
        chosen["confidence"] = settings.confidence
    if settings.criterion != "squared" and settings.mode in ("floor", "budget"):
        chosen["criterion"] = settings.criterion
    return chosen


def groups(problem: Problem, settings: Settings) -> str | None:
    """The column of clusters, where floors are to hold for the population."""
    asked = "confidence" in arguments(problem, settings)
    return settings.groups if asked and settings.groups in group_columns(problem) else None


def group_columns(problem: Problem) -> list[str]:
    """Columns that can say which rows belong together: those that are no variables."""
    if not problem.source.has_rows:
        return []
    request = problem.data.request
    aside = {request.weights, request.target, ""}
    return [name for name in problem.data.passed_through if name not in aside]


def raised(
    problem: Problem, settings: Settings, callback: Callable[[int, int], object]
) -> ConfidentFloors:
    """The floors that hold for the population with the confidence that was chosen."""
    from skcoral.stability import confident_floors

    chosen = arguments(problem, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfidenceWarning)  # its sentence says the same
        return confident_floors(
            problem.data.model(chosen),
            problem.frame(),
            confidence=chosen["confidence"],
            callback=callback,
            **problem.data.known(groups(problem, settings)),
        )


def fitted(problem: Problem, chosen: Mapping[str, Any], sure: ConfidentFloors | None = None) -> Fit:
    """Fit the settings that :func:`arguments` gives; ``sure`` are floors raised before."""
    return problem.data.fit(chosen, raised=sure, thorough=False)


def for_download(fit: Fit, *, scale: str) -> Fit:
    """The fit on the screen with outputs in these units, and with what new rows can expect."""
    model, rows = copy(fit.model).set_params(output_scale=scale), fit.data.rows
    model.output_scale_ = scale
    if rows is not None:
        measure_rounding(model, rows.values, rows.weights)
        measure_overfitting(model, rows.values, rows.weights)
    return Fit(fit.data, model, fit.groups)
