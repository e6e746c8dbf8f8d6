"""From a file and the options of a table to its variables, their rows and correlations."""

from __future__ import annotations

import contextlib
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from skcoral._frames import Judged, judge
from skcoral.cli import console
from skcoral.cli.options import FileOptions, TableOptions
from skcoral.cli.run import UsageError
from skcoral.core.display import shortened
from skcoral.core.limits import current
from skcoral.core.results import Array, Decorrelation
from skcoral.data.correlation import CorrelationEstimate, estimate, given_matrix
from skcoral.data.effects import Measured, measure_matrix
from skcoral.data.moments import Moments
from skcoral.exceptions import (
    InvalidCorrelationError,
    InvalidTableError,
    SingularCorrelationWarning,
)
from skcoral.tables.columns import TableProfile, profile, select_variables
from skcoral.tables.matrices import NamedMatrix, matrix_in, read_matrix
from skcoral.tables.notes import (
    doubtful_note,
    dropped_note,
    reading_notes,
    target_note,
    weights_note,
)
from skcoral.tables.reading import open_table
from skcoral.tables.roles import Doubt
from skcoral.tables.table import Batch, Complete, Table, complete_rows, labels_of


@dataclass(frozen=True)
class Loaded:
    """An opened table whose columns have been looked at.

    ``doubtful`` are the columns that look like ids or years, with the reason; ``matrix`` is the
    correlation matrix where the file holds one; ``target`` is the outcome, which is no variable.
    """

    table: Table
    content: TableProfile
    names: tuple[str, ...]
    options: TableOptions
    constant: tuple[str, ...] = ()
    doubtful: Mapping[str, Doubt] = field(default_factory=dict)
    matrix: NamedMatrix | None = None
    target: str | None = None

    @property
    def passed_through(self) -> tuple[str, ...]:
        """The columns that are not variables."""
        variables = set(self.names)
        return tuple(name for name in self.table.names if name not in variables)

    @property
    def is_wide(self) -> bool:
        """Whether there are so few rows that these are held, and no matrix of all pairs."""
        return 2 * self.content.n_rows < len(self.names)

    def model(self, **settings: Any) -> Any:
        """A CORAL that estimates correlations as asked, with these settings."""
        from skcoral.estimator import CORAL

        return CORAL(covariance=self.options.covariance, **settings)

    @property
    def constant_note(self) -> str:
        """Which columns are left out because they never change."""
        return f"Constant, so left out: {console.listing(self.constant)}." if self.constant else ""

    @property
    def passed_through_note(self) -> str:
        """Which columns are written as they came."""
        constant = set(self.constant)
        told = [
            f"{n} (constant)" if n in constant else n or "the row labels"
            for n in self.passed_through
            if n not in self.doubtful and n != self.target
        ]
        return f"Columns left as they were: {console.listing(told)}." if told else ""

    def dropped_note(self, dropped: Sequence[int]) -> str:
        """Which rows are left out."""
        return dropped_note(len(dropped), dropped, self.table.unit)

    def weights_note(self, moments: Moments) -> str:
        """What the row weights were taken for, where there are any."""
        name = self.options.weights
        return "" if name is None else weights_note(name, moments)

    @property
    def target_note(self) -> str:
        """What becomes of the outcome, where one is named."""
        if self.target is None:
            return ""
        if self.matrix is None:
            return target_note(self.target)
        return f"{shortened(self.target)} is the outcome: it is left out of the variables."

    @property
    def notes(self) -> list[str]:
        """What was assumed and which columns were left out: said next to every answer."""
        if self.matrix is not None:
            told = [*self.table.assumed, self.matrix.sentence, self.target_note]
            return [sentence for sentence in told if sentence]
        example = shlex.quote(next(iter(self.doubtful), ""))
        weights = [name for name, why in self.doubtful.items() if why.kind == "weights"]
        how = f"To use one: --include {example}."
        if weights and self.options.weights is None:
            how += f" To weight the rows: --weights {shlex.quote(weights[0])}."
        doubt = doubtful_note(self.doubtful, how)
        by = self.options.covariance
        estimated = f"Correlations are estimated by {by}." if by else ""
        read = reading_notes(self.table, self.content, self.names)
        told = [self.target_note, *read, doubt, estimated]
        return [sentence for sentence in told if sentence]

    def rows(self, on_batch: Callable[[Batch], None] | None = None) -> Iterator[Complete]:
        """Complete rows of the variables, batch by batch."""
        return complete_rows(
            self.table,
            self.names,
            weights=self.options.weights,
            on_batch=on_batch,
        )


def open_file(options: FileOptions) -> Table:
    """Open the table without reading its rows."""
    return open_table(options.file, **_reading(options))


def _reading(options: FileOptions) -> dict[str, Any]:
    """How the file is to be read, as the arguments of ``open_table``."""
    separator = options.separator
    return {
        "separator": "\t" if separator in ("tab", "\\t") else separator,
        "decimal": options.decimal,
        "encoding": options.encoding,
        "sheet": options.sheet,
        "na": tuple(options.na or ()),
    }


def look_at(table: Table) -> TableProfile:
    """See what each column holds."""
    with console.progress(f"Looking at {table.label}") as tell:
        return profile(table, on_batch=lambda batch: tell(batch.fraction))


def load(
    options: TableOptions, labels: Sequence[str | None] = (), target: str | None = None
) -> Loaded:
    """Open a table or a matrix, look at its columns and choose the variables.

    ``labels`` are columns of dates or groups, and so no variables; nor is the outcome, ``target``.
    """
    if target is not None and target in (options.weights, *labels):
        raise UsageError(
            f"--target {target!r} has another use as well: it holds weights, dates or groups.\n"
            "Name the column that the variables are to explain."
        )
    if options.matrix:
        table, content, given = read_matrix(options.file, **_reading(options))
        return _part_of_matrix(given, options, table, content, target)
    table = open_file(options)
    content = look_at(table)
    matrix = matrix_in(table, content) if options.matrix is None else None
    if matrix is not None:
        return _part_of_matrix(matrix, options, table, content, target)
    exclude = split_names(options.exclude, table)
    for other in (options.weights, target, *labels):
        if other is not None:
            table.index(other)
            exclude = (*exclude, other)
    columns = split_names(options.columns, table) or None
    if options.columns and columns is None:
        raise UsageError("--columns names no column.\nName two or more, or leave it out for all.")
    include = split_names(options.include, table)
    chosen = select_variables(table, content, columns, exclude=exclude, include=include)
    return Loaded(
        table,
        content,
        chosen.variables,
        options,
        chosen.constant,
        chosen.doubtful,
        target=target,
    )


def _part_of_matrix(
    matrix: NamedMatrix,
    options: TableOptions,
    table: Table,
    content: TableProfile,
    target: str | None,
) -> Loaded:
    refuse_row_options(
        table.label,
        {
            "--weights": options.weights is not None,
            "--covariance": options.covariance is not None,
        },
    )
    named = replace(table, names=matrix.names)
    wanted = split_names(options.columns, named) or matrix.names
    exclude = (*split_names(options.exclude, named), *([] if target is None else [target]))
    for name in (*wanted, *exclude):
        named.index(name)
    names = tuple(name for name in wanted if name not in exclude)
    if len(set(names)) < 2:
        raise InvalidTableError(
            f"{table.label}: at least two variables are needed.\nChoose more of them."
        )
    return Loaded(table, content, names, options, matrix=matrix.part(names), target=target)


def refuse_row_options(label: str, given: Mapping[str, bool]) -> None:
    """Refuse options that are about rows, for a file that holds a matrix."""
    for option, is_given in given.items():
        if is_given:
            raise UsageError(
                f"{label}: {option} needs rows, and the file holds a matrix.\n"
                "Leave it out, or say --no-matrix if these are rows of data."
            )


@contextlib.contextmanager
def naming(table: Table) -> Iterator[None]:
    """Put the name of the file before errors about the numbers of a table."""
    try:
        yield
    except (InvalidTableError, InvalidCorrelationError) as error:
        if not str(error).startswith(table.label):
            error.args = (f"{table.label}: {error}", *error.args[1:])
        raise


def split_names(values: Sequence[str] | None, table: Table) -> tuple[str, ...]:
    """Names given one per option or separated by commas; a column with a comma is kept whole."""
    names: list[str] = []
    for value in values or ():
        if value in table.names:
            names.append(value)
        else:
            names.extend(part.strip() for part in value.split(",") if part.strip())
    return tuple(names)


def require_room(loaded: Loaded, advice: str = "") -> None:
    """Refuse a table whose rows are needed all at once and do not fit, before they are read."""
    n_rows, p = loaded.content.n_rows, len(loaded.names)
    what = f"{n_rows:,} rows of {p:,} columns are {n_rows * p:,} numbers to hold in memory"
    current().require(
        "cells", n_rows * p, loaded.table.label, what, advice or "Choose fewer columns (--columns)."
    )


@dataclass(frozen=True)
class Correlations:
    """The correlations of a table, as estimated and as the solvers take them."""

    estimate: CorrelationEstimate
    dropped: list[int]
    weights_note: str = ""
    plain: Moments | None = None  # of the rows without weights; none where a matrix is given

    def measured(self, result: Decorrelation) -> Measured:
        """The figures that a fit with this result prints: on the rows, or for the matrix."""
        from skcoral.estimator.attributes import measured_on_rows

        if self.plain is None:
            return measure_matrix(self.estimate.R, result.T, result.names)
        return measured_on_rows(self.estimate, result, self.plain, self.plain)

    @cached_property
    def judged(self) -> Judged:
        """The matrix as the solvers take it."""
        return judge(self.estimate, on_singular="solve")

    def record(self, loaded: Loaded) -> dict[str, Any]:
        """What the correlations were estimated from, for machines."""
        return {
            "file": loaded.table.label,
            "rows": self.estimate.n_rows or None,  # 0 where the file holds a matrix
            "dropped_rows": self.dropped,
            "notes": [*loaded.notes, *filter(None, [self.weights_note])],
            "constant": list(loaded.constant),
            "target": loaded.target,
        }

    def notes(self, loaded: Loaded) -> list[str]:
        """The same for people."""
        dropped = loaded.dropped_note(self.dropped)
        return [*loaded.notes, loaded.constant_note, dropped, self.weights_note]


def correlations(loaded: Loaded) -> Correlations:
    """Read the rows of a table, or take the matrix that the file holds."""
    if loaded.matrix is not None:
        given = loaded.matrix
        return Correlations(given_matrix(given.R, given.names, scale=given.scale), [])
    if loaded.is_wide or loaded.options.covariance is not None:
        from skcoral.estimator.estimation import estimate_rows

        require_room(loaded)
        held = hold(loaded)
        model, weights = loaded.model(), held.known
        with naming(loaded.table), warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularCorrelationWarning)  # told with the answer
            found, moments, plain = estimate_rows(
                model, held.values, loaded.names, weights.get("sample_weight")
            )
        return Correlations(found, held.dropped, loaded.weights_note(moments), plain)
    moments = Moments(loaded.names)
    plain = moments if loaded.options.weights is None else Moments(loaded.names)
    dropped: list[int] = []
    for part in read_rows(loaded, dropped):
        moments.update(part.values, sample_weight=part.weights)
        if plain is not moments:
            plain.update(part.values)
    with naming(loaded.table):
        found = estimate(moments, on_singular="solve")
    return Correlations(found, dropped, loaded.weights_note(moments), plain)


@dataclass(frozen=True)
class Held:
    """Rows in memory, their weights and groups as ``fit`` takes them, and the rows left out.

    ``outcome`` is that of the same rows, NaN where it is no number.
    """

    values: Array
    known: dict[str, Any]
    dropped: list[int]
    outcome: Array | None = None


def hold(loaded: Loaded, groups: str | None = None) -> Held:
    """Read all rows: the numbers only, as the cells that they are made of take more room."""
    outcome: list[Array] = []
    dropped: list[int] = []
    values: list[Array] = []
    found: dict[str, list[Array]] = {"sample_weight": [], "groups": []}
    for part in read_rows(loaded, dropped):
        values.append(part.values)
        if part.weights is not None:
            found["sample_weight"].append(part.weights)
        if groups is not None:
            cells = labels_of(part.batch.columns[loaded.table.index(groups)])
            found["groups"].append(np.array(cells, dtype=object)[part.kept])
        if loaded.target is not None:
            cells = part.batch.columns[loaded.table.index(loaded.target)]
            outcome.append(loaded.table.numbers(cells)[0][part.kept])
    known = {name: np.concatenate(parts) for name, parts in found.items() if parts}
    y = np.concatenate(outcome) if outcome else None
    return Held(np.concatenate(values), known, dropped, y)


def read_rows(loaded: Loaded, dropped: list[int]) -> Iterator[Complete]:
    """Read the complete rows once, in batches that have some; note where the others stand."""
    n_rows = 0
    with console.progress(f"Reading {loaded.table.label}") as tell:
        for part in loaded.rows(lambda batch: tell(batch.fraction)):
            dropped.extend(part.dropped)
            n_rows += len(part.values)
            if len(part.values):
                yield part
    if n_rows < 2:
        found = "only one row has" if n_rows else "no row has"
        raise InvalidTableError(
            f"{loaded.table.label}: {found} a value in all of the {len(loaded.names)} columns.\n"
            "Give two rows or more, or leave out the columns with many missing values (--exclude)."
        )
