"""From a source and the choices of a visitor to variables, and to the settings of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.app.page import remember
from skcoral.app.settings import LIMITED, MODES, Settings
from skcoral.app.sources import Source
from skcoral.core.arrays import Array
from skcoral.core.limits import VISITOR, use
from skcoral.exceptions import InvalidArgumentError
from skcoral.workflow.dataset import Dataset, Request

#: With which floors hold for the population, where that is asked for.
CONFIDENCE = 0.95
#: More of them would make heat maps unreadable, and moves of a slider longer than a second.
MOST_VARIABLES = 100
#: Modes that would keep other visitors waiting with more variables than these.
LIMITS = {"support": 30, "max_vif": 30, "max_correlation": 60}


@dataclass(frozen=True)
class Problem:
    """The chosen variables of a source."""

    source: Source
    data: Dataset

    @property
    def R(self) -> Array:
        """The correlation matrix to solve for."""
        return np.asarray(self.data.estimate.R)

    def remember(self, what: Hashable, compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, or what it returned before for these variables."""
        return remember((self.source.key, self.data.request, what), compute)


def request_of(settings: Settings) -> Request:
    """Which columns a visitor wants as variables, and what others are for."""
    return Request(
        exclude=settings.without,
        include=settings.include,
        weights=settings.weights or None,
        target=settings.target or None,
        covariance=settings.covariance or None,
        in_memory=True,
        dense=True,
    )


def pose(source: Source, request: Request) -> Problem:
    """Choose the variables and estimate their correlations, or raise what is wrong with them."""
    with use(VISITOR):
        data = source.opened.choose(request)
        _ = data.estimate  # within the limits of a visitor
    return Problem(source, data)


def variables(source: Source, settings: Settings) -> tuple[str, ...]:
    """The columns that are chosen; those that look like ids or years only when asked for."""
    doubtful = {*source.opened.doubtful} - {*settings.include}
    aside = {*settings.without, settings.weights, settings.target, *doubtful}
    return tuple(name for name in source.names if name not in aside)


def check_mode(problem: Problem, mode: str) -> None:
    """Refuse what is impossible for this table in this mode, or would take too long."""
    if problem.data.estimate.deficiency is not None and mode in ("max_vif", "support"):
        why = "every VIF is infinite" if mode == "max_vif" else "it needs variables that do not"
        raise InvalidArgumentError(
            f"“{MODES[mode]}” has no answer for variables that determine each other: {why}.\n"
            "Leave some of them out, choose shrunk correlations of rows in the side panel, or take "
            "another mode."
        )
    limit, p = LIMITS.get(mode, MOST_VARIABLES), len(problem.data.names)
    if p > limit:
        raise InvalidArgumentError(
            f"“{MODES[mode]}” answers here for up to {limit} variables, and there are {p}.\nChoose "
            "fewer in the side panel, or use the command or the library, which have no such limit."
        )


def doubts(data: Dataset) -> list[str]:
    """How the data may have been misread: cells and columns left out, and what was assumed."""
    return data.doubts("To use one, add it to the variables in the side panel.", "empty")


def arguments(problem: Problem, settings: Settings) -> dict[str, Any]:
    """What a visitor asks for, as the settings of :class:`skcoral.CORAL`."""
    if settings.mode in LIMITED:
        return {settings.mode: getattr(settings, settings.mode)}
    named = {name: floor for name, floor in settings.own_floors if name in problem.data.names}
    floors = dict.fromkeys(problem.data.names, settings.floor) | named
    chosen: dict[str, Any] = {"rho_min": floors if named else settings.floor}
    if settings.mode == "support":
        return chosen | {"support": settings.support}
    is_open = settings.floor is not None and 0.0 < settings.floor < 1.0  # and can be raised
    if settings.population and is_open and problem.source.has_rows:
        chosen["confidence"] = CONFIDENCE
    return chosen


def groups(settings: Settings, chosen: Mapping[str, Any]) -> str | None:
    """The column of clusters, where floors are to hold for the population."""
    return settings.groups or None if "confidence" in chosen else None


def group_columns(problem: Problem) -> list[str]:
    """Columns that can say which rows belong together: those that are no variables."""
    if not problem.source.has_rows:
        return []
    request = problem.data.request
    aside = {request.weights, request.target, ""}
    return [name for name in problem.data.passed_through if name not in aside]
