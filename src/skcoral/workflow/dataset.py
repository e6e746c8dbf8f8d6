"""The variables of a table: their rows, read once, their correlations, and models of them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral import api
from skcoral.choosing import FloorComparison, compare_floors
from skcoral.core.arrays import Array, Mask
from skcoral.core.display import shortened
from skcoral.core.limits import current
from skcoral.core.results import Decorrelation, Threshold
from skcoral.data.correlation import (
    CorrelationEstimate,
    estimate,
    estimate_rows,
    given_matrix,
)
from skcoral.data.effects import Measured, measure_matrix, measure_rows
from skcoral.data.leverage import DominantRow, dominant_rows
from skcoral.data.moments import Moments
from skcoral.exceptions import InvalidCorrelationError, InvalidTableError
from skcoral.tables import notes
from skcoral.tables.columns import TableProfile
from skcoral.tables.matrices import NamedMatrix
from skcoral.tables.table import Complete, Table, complete_rows
from skcoral.tables.variables import column_of_groups

if TYPE_CHECKING:
    from skcoral.estimator import CORAL
    from skcoral.workflow.fit import Fit

#: Given what is being done, a context that takes the fraction done (None: unknown).
Progress = Callable[[str], AbstractContextManager[Callable[[float | None], None]]]
#: Tables with more numbers than this (160 MB) are read in parts instead of being held in memory.
IN_MEMORY = 20_000_000


def quiet(label: str) -> AbstractContextManager[Callable[[float | None], None]]:
    """Show no progress."""
    return contextlib.nullcontext(lambda fraction: None)


@dataclass(frozen=True)
class Request:
    """Which columns are variables, what others are for, and how correlations are estimated."""

    columns: tuple[str, ...] = ()  # the variables; all that hold numbers by default
    exclude: tuple[str, ...] = ()  # columns that are no variables
    include: tuple[str, ...] = ()  # variables that look like ids, years or weights
    weights: str | None = None  # the column of row weights, no variable
    target: str | None = None  # the outcome, no variable
    labels: tuple[str, ...] = ()  # further columns that are no variables: dates, groups
    covariance: str | None = None  # an estimator of scikit-learn for the correlations
    in_memory: bool = False  # all rows are needed at once
    dense: bool = False  # a p × p matrix is needed, however few the rows are


@dataclass(frozen=True)
class Rows:
    """The complete rows of a table in memory."""

    values: Array
    weights: Array | None
    places: list[int]  # where each stands in the file
    usable: Mask  # which rows of the table they are


@dataclass(frozen=True)
class Dataset:
    """The chosen variables of a table, or of a matrix; see :meth:`OpenedFile.choose`."""

    table: Table
    content: TableProfile
    names: tuple[str, ...]
    _: KW_ONLY
    #: Columns of numbers that are left out with the reason: they never change, or look like ids.
    constant: Mapping[str, str] = field(default_factory=dict)
    doubtful: Mapping[str, str] = field(default_factory=dict)
    matrix: NamedMatrix | None = None  # where the file holds one
    request: Request = Request()
    progress: Progress = field(default=quiet, compare=False)
    #: Where incomplete rows stand in the file, as far as it was read.
    incomplete: list[int] = field(default_factory=list)

    @property
    def passed_through(self) -> tuple[str, ...]:
        """The columns that are not variables."""
        variables = set(self.names)
        return tuple(name for name in self.table.names if name not in variables)

    @property
    def unmentioned(self) -> tuple[str, ...]:
        """The columns of a table that are not variables, and that no note names."""
        named = {*self.constant, *self.doubtful, self.request.target}
        others = self.passed_through if self.matrix is None else ()
        return tuple(name for name in others if name not in named)

    @property
    def is_wide(self) -> bool:
        """Whether there are so few rows that these are held, and no matrix of all pairs."""
        return 2 * self.content.n_rows < len(self.names)

    @cached_property
    def rows(self) -> Rows | None:
        """The complete rows in memory; None where the table is long, or a matrix."""
        request, n_numbers = self.request, self.content.n_rows * len(self.names)
        needed = self.is_wide or request.in_memory or request.covariance is not None
        if self.matrix is not None or not (needed or n_numbers <= min(IN_MEMORY, current().cells)):
            return None
        shape = f"{self.content.n_rows:,} rows of {len(self.names):,} columns"
        what = f"{shape} are {n_numbers:,} numbers to hold in memory"
        advice = (
            "Choose fewer columns (--columns). Without --confidence and --covariance, long tables "
            "of coral fit are read in parts."
        )
        current().check("cells", n_numbers, self.table.label, what, advice)
        values, weights, usable = [], [], []
        places: list[int] = []
        for part in self.complete_rows():
            values.append(part.values)
            weights += [] if part.weights is None else [part.weights]
            usable.append(part.usable)
            places += itertools.compress(part.batch.rows, part.usable)
        w = np.concatenate(weights) if weights else None
        return Rows(np.concatenate(values), w, places, np.concatenate(usable))

    def known(self, groups: str | None = None) -> dict[str, Any]:
        """Weights and groups of the rows in memory, as ``fit`` takes them."""
        rows, known = self.rows, {}
        if rows is not None and rows.weights is not None:
            known["sample_weight"] = rows.weights
        if rows is not None and groups is not None:
            labels = np.array(self.table.labels(groups), dtype=object)
            known["groups"] = labels[rows.usable]
        return known

    @property
    def suggested_groups(self) -> tuple[str, int] | None:
        """The column whose labels may name clusters, with the number of labels."""
        return column_of_groups(self.table, self.content, self.request.target)

    def outcome(self) -> tuple[Array | None, str]:
        """The outcome of the rows in memory; or none, and a sentence that says why."""
        target = self.request.target
        if target is None:
            return None, ""
        if self.matrix is not None:
            return None, f"No regression of {target}: the file holds a matrix and no rows."
        why = self.content.columns[target].unusable(self.table)
        if not why and self.rows is not None:
            return np.asarray(self.table.to_numpy([target])[self.rows.usable, 0]), ""
        why = why and f"the column is no number that varies ({why})"
        return None, f"No regression of {target}: {why or 'the table is large'}."

    def complete_rows(self) -> Iterator[Complete]:
        """Read the complete rows batch by batch, and note where the others stand."""
        self.incomplete.clear()
        n_rows = 0
        with self.progress(f"Reading {self.table.label}") as tell:
            for part in complete_rows(self.table, self.names, weights=self.request.weights):
                self.incomplete.extend(part.dropped)
                n_rows += len(part.values)
                yield part
                tell(part.batch.fraction)
        if n_rows < 2:
            some = "only one row has" if n_rows else "no row has"
            raise InvalidTableError(
                f"{self.table.label}: {some} a value in all of the {len(self.names)} columns.\n"
                "Give two rows or more, or leave out the columns with many missing values "
                "(--exclude)."
            )

    @cached_property
    def _estimated(self) -> tuple[CorrelationEstimate, Moments]:
        """The correlations, and the moments of the rows behind them."""
        with self.naming():
            if self.matrix is not None:
                given = given_matrix(self.matrix.R, self.names, scale=self.matrix.scale)
                return given, Moments(self.names)
            if self.rows is None:
                moments = Moments(self.names)
                for part in self.complete_rows():
                    moments.update(part.values, sample_weight=part.weights)
                return estimate(moments, on_singular="solve"), moments
            return estimate_rows(
                self.rows.values,
                self.names,
                self.rows.weights,
                covariance=self.request.covariance,
                dense=self.request.dense,
            )

    @property
    def estimate(self) -> CorrelationEstimate:
        """The correlations of the variables."""
        return self._estimated[0]

    @property
    def moments(self) -> Moments:
        """Counts and moments of the complete rows, weighted where weights are asked for."""
        return self._estimated[1]

    @cached_property
    def threshold(self) -> Threshold:
        """The highest fidelity of exact decorrelation, or of the least residual."""
        with self.progress("Solving"), self.naming():
            return api.threshold(self.estimate)

    @cached_property
    def floors(self) -> FloorComparison:
        """What usual floors give, on these rows, and which one is recommended."""
        measure = None if self.estimate.is_about_rows else self.measure
        with self.progress("Comparing floors"):
            return compare_floors(self.estimate, measure=measure)

    def measure(self, result: Decorrelation) -> Measured:
        """The effect of a result on the rows, or for the matrix."""
        if self.matrix is not None:
            return measure_matrix(self.matrix.R, result.T, result.names)
        return measure_rows(self.estimate, result, self.moments)

    def effect_of(self, model: CORAL) -> Measured | None:
        """The effect of a model fitted before; None where rows or columns do not show any.

        These are fewer than three rows, columns that are constant in them, or too many of both.
        """
        with contextlib.suppress(InvalidTableError):
            if self.moments.n_rows > 2:
                measured = measure_rows(model.estimate_, model.result_, self.moments)
                return replace(measured, rows_given=self.content.n_rows)
        return None

    def fit(
        self,
        settings: Mapping[str, Any],
        *,
        groups: str | None = None,
        raised: Any = None,
        thorough: bool = True,
    ) -> Fit:
        """Fit a model with these settings.

        ``groups`` is a column of clusters, and ``raised`` are the floors for the population, where
        they were computed before; unless it is ``thorough``, neither rounding nor the loss on new
        rows is measured.
        """
        from skcoral.estimator import CORAL
        from skcoral.workflow.fit import Fit

        model, estimate = CORAL(covariance=self.request.covariance, **settings), self.estimate
        with self.progress("Solving"), self.naming():
            if self.matrix is None and self.rows is None:
                return Fit(self, model.fit_moments(self.moments), groups)
            known: dict[str, Any] = {"raised": raised}
            if self.matrix is not None:
                known["measured_on"] = self.matrix.R
            elif thorough and self.rows is not None:
                known |= {"rows": self.rows.values, **self.known(groups)}
            return Fit(self, model._fit_estimate(estimate, self.moments, **known), groups)

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Put the name of the file before errors about the numbers of the table."""
        try:
            yield
        except (InvalidTableError, InvalidCorrelationError) as error:
            label = self.table.label
            if not str(error).startswith(label):
                error.args = (f"{label}: {error}", *error.args[1:])
            raise

    @cached_property
    def dominant(self) -> tuple[DominantRow, ...]:
        """Rows that alone make a correlation strong, where rows are in memory already."""
        rows: Rows | None = self.__dict__.get("rows")
        if rows is None or self.is_wide:
            return ()
        return dominant_rows(rows.values, rows.places, self.names, rows.weights)

    def choices(self) -> list[str]:
        """What was asked for besides the variables: outcome, weights, estimator."""
        request, sentences = self.request, []
        if request.target is not None:
            stays = "" if self.matrix is not None else " and stays as it is"
            outcome = shortened(request.target)
            sentences.append(f"{outcome} is the outcome: it is left out of the variables{stays}.")
        if request.weights is not None:
            n_complete = self.content.n_rows - len(self.incomplete)
            n_idle = n_complete - self.moments.n_rows  # of weight zero
            idle = f" Not used, of weight zero: {n_idle:,} row{'s' * (n_idle > 1)}." * (n_idle > 0)
            sentences.append(
                f"Rows are weighted by {shortened(request.weights)}; they tell as much as "
                f"{self.moments.effective_rows:,.0f} equally weighted rows. All figures are "
                f"weighted.{idle}"
            )
        if request.covariance is not None:
            sentences.append(f"Correlations are estimated by {request.covariance}.")
        return sentences

    def doubts(self, how: str = "", outcome: notes.Outcome = "unused") -> list[str]:
        """How the file may have been misread: what was recognised and left out.

        ``how`` says how to use columns that look like ids, ``outcome`` what becomes of incomplete
        rows.
        """
        if self.matrix is not None:
            return [*notes.assumed(self.table), self.matrix.sentence]
        variables = [self.content.columns[name] for name in self.names]
        unit = self.table.unit
        sentences = [
            *notes.reading_notes(self.table, self.content, self.names),
            notes.left_out_note("Constant, so left out", self.constant),
            notes.left_out_note("Not used as variables", self.doubtful, how),
            notes.incomplete_note(self.incomplete, unit, outcome, variables),
            *(row.sentence(unit) for row in self.dominant[:3]),
        ]
        return [sentence for sentence in sentences if sentence]
