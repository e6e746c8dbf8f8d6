"""From a source and the choices of a visitor to one correlation matrix, and to a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skcoral._frames import Judged, judge
from skcoral.app.settings import LIMITED, MODES, Settings, mask_from_text
from skcoral.app.sources import MatrixSource, Source, TableSource
from skcoral.core.deficiency import Deficiency
from skcoral.core.requirements import listing
from skcoral.core.results import Array
from skcoral.data.correlation import CorrelationEstimate, estimate, given_matrix
from skcoral.data.covariances import check_covariance, estimate_by
from skcoral.data.effects import Measured
from skcoral.data.moments import Moments
from skcoral.estimator.attributes import with_details
from skcoral.estimator.overfitting import measure_overfitting
from skcoral.estimator.rounding import measure_rounding
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import ConfidenceWarning, InvalidArgumentError, InvalidTableError
from skcoral.show import sentences as words
from skcoral.show.report.facts import can_hold_out
from skcoral.solvers.support import support_from_threshold
from skcoral.tables.notes import (
    doubtful_note,
    dropped_note,
    reading_notes,
    target_note,
    weights_note,
)
from skcoral.tables.table import labels_of

if TYPE_CHECKING:
    import pandas as pd

    from skcoral.estimator import CORAL
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
    """A correlation matrix with names, and the rows behind it where there are any."""

    key: tuple[Any, ...]  # different for different matrices; results are remembered under it
    source: Source
    estimate: CorrelationEstimate
    rows: Array | None = None  # the complete ones
    kept: NDArray[np.bool_] | None = None  # which rows of the table those are
    weights: str = ""  # the column whose values are ``sample_weight``
    sample_weight: Array | None = None
    moments: Moments | None = None
    given: Array | None = None  # the matrix as it came, where there are no rows

    @property
    def R(self) -> Array:
        """The correlation matrix to solve for."""
        return np.asarray(self.estimate.R)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.estimate.names

    @property
    def n_incomplete(self) -> int:
        """Rows that are left out because a value is missing."""
        return 0 if self.kept is None else int((~self.kept).sum())

    @property
    def deficiency(self) -> Deficiency | None:
        """Which variables are determined by others, or how few rows there are; None if neither."""
        return self.judged.deficiency

    @cached_property
    def judged(self) -> Judged:
        """The matrix as the solvers take it: checked once, with ρ★ once it is known."""
        return judge(self.estimate, on_singular="solve")

    @cached_property
    def plain(self) -> Moments:
        """Moments of the complete rows, every row counted once."""
        assert self.rows is not None
        return Moments(self.names).update(self.rows)

    @property
    def can_hold_out(self) -> bool:
        """Whether fidelity on new rows can be measured."""
        return self.rows is not None and can_hold_out(len(self.rows), len(self.names))

    def frame(self) -> pd.DataFrame:
        """The complete rows with names."""
        return named_rows(self.rows, self.names)


def pose(source: Source, settings: Settings) -> Problem:
    """Choose the variables and make their correlation matrix, or raise what is wrong with it."""
    kept = variables(source, settings)
    if len(kept) < 2:
        raise InvalidTableError(
            f"{source.label}: at least two variables are needed, {len(kept)} are chosen.\n"
            "Choose more columns."
        )
    most = most_variables(source)
    if len(kept) > most:
        raise InvalidTableError(
            f"{source.label}: {len(kept)} variables are chosen and {most} fit here.\n"
            "Choose fewer, or use the command: coral fit has no such limit."
        )
    key = (
        source.key,
        kept,
        settings.weights,
        settings.covariance,
    )
    if isinstance(source, TableSource):
        return _from_rows(source, kept, settings, key)
    places = [source.names.index(name) for name in kept]
    given = np.asarray(source.R[np.ix_(places, places)])
    return Problem(key, source, given_matrix(given, kept), given=given)


def most_variables(source: Source) -> int:
    """How many variables can be solved for while a visitor waits."""
    if not isinstance(source, TableSource):
        return MOST_VARIABLES
    n_rows = source.content.n_rows
    affordable = int(min(_MOST_WIDE, _WIDE_COST / max(n_rows, 1) ** 2))
    return affordable if affordable > max(n_rows, MOST_VARIABLES) else MOST_VARIABLES


def variables(source: Source, settings: Settings) -> tuple[str, ...]:
    """The columns that are chosen; those that look like ids or years only when asked for."""
    doubtful = {*source.doubtful} - {*settings.include}
    aside = {*settings.without, settings.weights, settings.target, *doubtful}
    return tuple(name for name in source.names if name not in aside)


def _from_rows(
    source: TableSource, kept: tuple[str, ...], settings: Settings, key: tuple[Any, ...]
) -> Problem:
    values = source.values[:, [source.names.index(name) for name in kept]]
    complete: Any = ~np.isnan(values).any(axis=1)
    weights = None
    if settings.weights:
        column = source.values[:, source.names.index(settings.weights)]
        complete &= ~np.isnan(column)
        weights = column[complete]
        if (weights < 0).any():
            raise InvalidTableError(
                f"{source.label}: column {settings.weights!r} has negative values.\n"
                "Weights say how much rows count: choose a column of zeros and positive numbers."
            )
    rows = values[complete]
    if not len(rows):
        raise InvalidTableError(
            f"{source.label}: no row has a value in all of the {len(kept)} columns.\n"
            "Leave out the columns with many missing values."
        )
    moments = Moments(kept).update(rows, sample_weight=weights)
    other = check_covariance(settings.covariance or None)
    if other is None:
        found = estimate(moments, on_singular="solve")
    else:
        found = estimate_by(other, rows, moments, sample_weight=weights, on_singular="solve")
    return Problem(key, source, found, rows, complete, settings.weights, weights, moments)


def mask(problem: Problem, settings: Settings) -> NDArray[np.bool_]:
    """The support: as edited, or where correlations are strong enough."""
    edited = mask_from_text(settings.mask, len(problem.names)) if settings.mask else None
    if edited is not None:
        return edited
    return np.asarray(support_from_threshold(problem.R, settings.link), dtype=bool)


def refuse_many(problem: Problem, settings: Settings) -> None:
    """Refuse what would take too long in this mode."""
    asked = {**MODES, **words.CRITERIA}
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


def notes(problem: Problem, settings: Settings) -> list[str]:
    """What was chosen, assumed and left out, in words, to stand next to the answer."""
    told = [target_note(settings.target)] if settings.target else []
    if problem.sample_weight is not None and problem.moments is not None:
        told.append(weights_note(problem.weights, problem.moments))
    return [*told, *doubts(problem)]


def doubts(problem: Problem) -> list[str]:
    """How the data may have been misread: cells and columns left out, and what was assumed."""
    source = problem.source
    if isinstance(source, MatrixSource):
        return [*source.said]
    told = reading_notes(source.table, source.content, problem.names)
    doubtful = {n: why for n, why in source.doubtful.items() if n not in problem.names}
    told.append(doubtful_note(doubtful, "Tick them in the side panel to use them."))
    broken = [(name, why) for name, why in source.left_out if name in source.unusable]
    if broken:
        shown = listing([f"{name or 'the row labels'} ({why})" for name, why in broken], quote="")
        told.append(f"Columns left out: {shown}.")
    told.append(dropped_note(problem.n_incomplete))
    return [note for note in told if note]


def arguments(problem: Problem, settings: Settings) -> dict[str, Any]:
    """The settings as the arguments of :class:`skcoral.CORAL`; ``groups`` is a column's name."""
    chosen: dict[str, Any] = {"rho_min": settings.floor}
    estimator = {"covariance": settings.covariance} if settings.covariance else {}
    own = {name: value for name, value in settings.own if name in problem.names}
    if settings.mode in LIMITED:
        chosen = {settings.mode: getattr(settings, settings.mode)}
    elif own:
        chosen["rho_min"] = {name: own.get(name, settings.floor) for name in problem.names}
    if settings.mode == "support":
        return chosen | {"support": mask(problem, settings)} | estimator
    floor = settings.floor if settings.mode == "floor" else None
    confident = settings.confidence and problem.rows is not None
    if confident and floor is not None and 0.0 < floor < 1.0:
        chosen["confidence"] = settings.confidence
        if settings.groups in group_columns(problem, settings):
            chosen["groups"] = settings.groups
    if settings.criterion != "squared" and settings.mode in ("floor", "budget"):
        chosen["criterion"] = settings.criterion
    return chosen | estimator


def group_columns(problem: Problem, settings: Settings) -> list[str]:
    """Columns that can say which rows belong together: those that are no variables."""
    if not isinstance(problem.source, TableSource):
        return []
    aside = {*problem.names, settings.weights, settings.target, ""}
    return [name for name in problem.source.table.names if name not in aside]


def outcome(problem: Problem, settings: Settings) -> Array | None:
    """The outcome of the complete rows, NaN where it is missing; None where none is named."""
    source = problem.source
    if not settings.target or not isinstance(source, TableSource):
        return None
    return np.asarray(source.values[problem.kept, source.names.index(settings.target)])


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
            _unfitted(problem, chosen),
            problem.frame(),
            confidence=chosen["confidence"],
            callback=callback,
            **known(problem, chosen),
        )


def _unfitted(problem: Problem, chosen: Mapping[str, Any]) -> CORAL:
    """The estimator with these settings."""
    from skcoral.estimator import CORAL

    return CORAL(**{name: value for name, value in chosen.items() if name != "groups"})


def fitted(
    problem: Problem, chosen: Mapping[str, Any], sure: ConfidentFloors | None = None
) -> CORAL:
    """The estimator solved with the arguments that :func:`arguments` gives.

    ``sure`` are the raised floors where a confidence is asked for.
    """
    model = _unfitted(problem, chosen)._fit_estimate(
        problem.estimate,
        problem.moments or Moments(problem.names),
        unweighted=None if problem.rows is None else problem.plain,
        judged=problem.judged,
        floors=None if sure is None else sure.floors,
        measured_on=problem.given,
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
