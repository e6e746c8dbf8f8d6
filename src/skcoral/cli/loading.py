"""From a file and the table options to complete rows of numbers."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skcoral.cli import console
from skcoral.cli.options import TableOptions
from skcoral.cli.running import UsageError
from skcoral.correlation import CorrelationEstimate, estimate, sample_correlation
from skcoral.exceptions import InvalidCorrelationError, InvalidTableError
from skcoral.few_rows import RowMoments, estimate_few_rows
from skcoral.io._sources import format_of_name
from skcoral.io.columns import TableProfile, choose_columns, profile
from skcoral.io.matrices import parse_matrix
from skcoral.io.notes import doubtful_note, reading_notes
from skcoral.io.recognised import NamedMatrix, matrix_in, named_matrix
from skcoral.io.roles import ROW_WEIGHTS
from skcoral.io.tables import Batch, Complete, Table, complete_rows, open_table, read_text
from skcoral.limits import current
from skcoral.moments import Moments
from skcoral.results import Array

_PIPED = "standard input"


@dataclass(frozen=True)
class Loaded:
    """An opened table whose columns have been looked at."""

    table: Table
    content: TableProfile
    names: tuple[str, ...]
    weights: str | None = None
    weight_kind: str = "auto"
    constant: tuple[str, ...] = ()
    doubtful: Mapping[str, str] = field(default_factory=dict)
    matrix: NamedMatrix | None = None

    @property
    def passed_through(self) -> tuple[str, ...]:
        """The columns that are not variables."""
        variables = set(self.names)
        return tuple(name for name in self.table.names if name not in variables)

    @property
    def is_wide(self) -> bool:
        """Whether there are so few rows that these are held, and no matrix of all pairs."""
        return 2 * self.content.n_rows < len(self.names)

    @property
    def constant_sentence(self) -> str:
        """Which columns were left out because they never change, in words."""
        return f"Constant, so left out: {console.listing(self.constant)}." if self.constant else ""

    @property
    def passed_through_sentence(self) -> str:
        """Which columns are written as they came, in words."""
        constant = set(self.constant)
        told = [
            f"{n} (constant)" if n in constant else n or "the row labels"
            for n in self.passed_through
            if n not in self.doubtful
        ]
        return f"Columns left as they were: {console.listing(told)}." if told else ""

    @property
    def notes(self) -> list[str]:
        """What was assumed and which columns were left out: said next to every answer."""
        if self.matrix is not None:
            return [*self.table.assumed, self.matrix.sentence]
        example = shlex.quote(next(iter(self.doubtful), ""))
        weights = [name for name, why in self.doubtful.items() if why == ROW_WEIGHTS]
        how = f"To use one: --include {example}."
        if weights and self.weights is None:
            how += f" To weight the rows: --weights {shlex.quote(weights[0])}."
        doubt = doubtful_note(self.doubtful, how)
        told = [*reading_notes(self.table, self.content, self.names), doubt]
        return [sentence for sentence in told if sentence]

    def rows(self, on_batch: Callable[[Batch], None] | None = None) -> Iterator[Complete]:
        """Complete rows of the variables, batch by batch."""
        return complete_rows(self.table, self.names, weights=self.weights, on_batch=on_batch)


def open_file(options: TableOptions, data: bytes | None = None) -> Table:
    """Open the table without reading its rows; ``data`` is what was piped in, if it is at hand."""
    separator = options.separator
    if separator is not None:
        separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if len(separator) != 1:
            raise UsageError(
                f"--separator must be one character, not {separator!r}.\n"
                "Examples: --separator ';'   --separator tab"
            )
    if options.decimal not in (None, ".", ","):
        raise UsageError(f"--decimal must be '.' or ',', not {options.decimal!r}.\nChoose one.")
    table = open_table(
        options.file if data is None else data,
        name=None if data is None else _PIPED,
        separator=separator,
        decimal=options.decimal,
        encoding=options.encoding,
        sheet=options.sheet,
        na=tuple(options.na),
    )
    if options.sheet is not None and table.format != "excel":
        raise UsageError(
            f"{table.label}: --sheet is for Excel files, and this is not one.\nLeave it out."
        )
    return table


def look_at(table: Table) -> TableProfile:
    """See what each column holds."""
    with console.progress(f"Looking at {table.label}") as tell:
        return profile(table, on_batch=lambda batch: tell(batch.fraction))


def load(options: TableOptions) -> Loaded:
    """Open a table or a matrix, look at its columns and choose the variables."""
    # A matrix may be read twice, as a table and as plain text, and a pipe only once.
    data = sys.stdin.buffer.read() if options.matrix and options.file == "-" else None
    try:
        table = open_file(options, data)
        content = look_at(table)
        matrix = None
        if options.matrix is not False:
            matrix = matrix_in(table, content, asked=bool(options.matrix))
    except (InvalidTableError, InvalidCorrelationError) as first:
        if not options.matrix or format_of_name(options.file) in ("excel", "parquet"):
            raise
        try:
            table, content, matrix = _pasted_matrix(options, data)
        except InvalidCorrelationError:
            if isinstance(first, InvalidCorrelationError):
                raise first from None
            raise
    if matrix is not None:
        return _choose_from(matrix, options, table, content)
    weights = options.weights
    exclude = split_names(options.exclude, table)
    for other in (weights, options.groups):
        if other is not None:
            table.index(other)
            exclude = (*exclude, other)
    columns = split_names(options.columns, table) or None
    if options.columns and columns is None:
        raise UsageError("--columns names no column.\nName two or more, or leave it out for all.")
    include = split_names(options.include, table)
    names = choose_columns(table, content, columns, exclude=exclude, include=include)
    constant = tuple(name for name in names if content.column(name).always is not None)
    if constant and columns is not None:
        value = content.column(constant[0]).always
        raise InvalidTableError(
            f"{table.label}: column {constant[0]!r} is always {value:g}, and a constant has no "
            f"correlation.\nLeave it out: --exclude {shlex.quote(constant[0])}"
        )
    aside = set(constant)
    varying = tuple(name for name in names if name not in aside)
    if len(varying) < 2:
        found = f"only {varying[0]!r}" if varying else "none"
        raise InvalidTableError(
            f"{table.label}: at least two columns that vary are needed, and there is {found}; "
            f"constant: {console.listing(constant)}.\nChoose columns that differ from row to row."
        )
    aside = {*names, *exclude}
    doubtful = {
        c.name: c.doubt for c in content.columns if c.name and c.doubt and c.name not in aside
    }
    if columns is not None:
        doubtful = {}
    return Loaded(table, content, varying, weights, options.weight_kind, constant, doubtful)


def _pasted_matrix(
    options: TableOptions, data: bytes | None
) -> tuple[Table, TableProfile, NamedMatrix | None]:
    """Read a matrix without names or with one triangle only, the way people write them."""
    label = options.file if data is None else _PIPED
    text = read_text(options.file if data is None else data, encoding=options.encoding)
    numbers, names = parse_matrix(text)
    matrix = named_matrix(numbers, names, label, has_labels=True, asked=True)
    table = Table(label, names, "line", "csv", lambda size: iter(()))
    return table, TableProfile(len(names), ()), matrix


def _choose_from(
    matrix: NamedMatrix, options: TableOptions, table: Table, content: TableProfile
) -> Loaded:
    """Some of the variables of a matrix."""
    if options.weights is not None:
        raise UsageError(
            f"{table.label}: a matrix has no rows to be weighted.\nLeave out --weights, or say "
            "--no-matrix if these are rows of data."
        )
    named = replace(table, names=matrix.names)
    wanted = split_names(options.columns, named) or matrix.names
    exclude = split_names(options.exclude, named)
    for name in (*wanted, *exclude):
        named.index(name)
    names = tuple(name for name in wanted if name not in exclude)
    if len(set(names)) < 2:
        raise InvalidTableError(
            f"{table.label}: at least two variables are needed.\nChoose more of them."
        )
    return Loaded(table, content, names, matrix=matrix.part(names))


@dataclass(frozen=True)
class Correlations:
    """A correlation matrix that may be singular, and how to get one that can be solved for."""

    R: Any
    solvable: Callable[[], Any]
    scale: Array
    n_rows: int | None
    dropped: list[int]


def correlations(loaded: Loaded) -> Correlations:
    """Read the rows of a table, or take the matrix that the file holds."""
    matrix = loaded.matrix
    if matrix is not None:
        found = matrix
        scale = np.ones(len(found.R)) if found.scale is None else found.scale
        return Correlations(found.R, lambda: found, scale, None, [])
    if loaded.is_wide:
        return _of_few_rows(loaded)
    moments, dropped = gather(loaded)
    with naming(loaded.table):
        R = sample_correlation(moments)

    def solvable() -> CorrelationEstimate:
        return estimate(moments, on_singular="solve")

    return Correlations(R, solvable, moments.scale, moments.n_rows, dropped)


def _of_few_rows(loaded: Loaded) -> Correlations:
    """Correlations of a table with many more columns than rows, kept as a factor."""
    require_room(loaded)
    values: list[Array] = []
    weights: list[Array] = []
    dropped: list[int] = []
    for part in loaded.rows():
        values.append(part.values)
        dropped.extend(part.dropped)
        if part.weights is not None:
            weights.append(part.weights)
    rows = np.concatenate(values) if values else np.empty((0, len(loaded.names)))
    require_rows(loaded, len(rows))
    with naming(loaded.table):
        moments = RowMoments(
            rows,
            loaded.names,
            sample_weight=np.concatenate(weights) if weights else None,
            weight_kind=loaded.weight_kind,
        )
        table = estimate_few_rows(moments)
    return Correlations(table.R, lambda: table, moments.scale, moments.n_rows, dropped)


@contextlib.contextmanager
def naming(table: Table) -> Iterator[None]:
    """Let what is wrong with the numbers of a table be told with the name of its file."""
    try:
        yield
    except (InvalidTableError, InvalidCorrelationError) as error:
        if not str(error).startswith(table.label):
            error.args = (f"{table.label}: {error}", *error.args[1:])
        raise


def split_names(values: Sequence[str], table: Table) -> tuple[str, ...]:
    """Names given one per option or separated by commas; a name that has a comma wins."""
    names: list[str] = []
    for value in values:
        if value in table.names:
            names.append(value)
        else:
            names.extend(part.strip() for part in value.split(",") if part.strip())
    return tuple(names)


def gather(loaded: Loaded) -> tuple[Moments, list[int]]:
    """Moments of the complete rows, and where the incomplete ones stand."""
    require_rows(loaded, loaded.content.n_rows)
    moments = Moments(loaded.names, weight_kind=loaded.weight_kind)
    dropped: list[int] = []
    n_rows = 0
    with console.progress(f"Reading {loaded.table.label}") as tell:
        for part in loaded.rows(lambda batch: tell(batch.fraction)):
            if len(part.values):
                moments.update(part.values, sample_weight=part.weights)
            dropped.extend(part.dropped)
            n_rows += len(part.values)
    require_rows(loaded, n_rows)
    return moments, dropped


def require_rows(loaded: Loaded, n_rows: int) -> None:
    """Refuse a table with fewer than two complete rows."""
    if n_rows < 2:
        found = "only one row has" if n_rows else "no row has"
        raise InvalidTableError(
            f"{loaded.table.label}: {found} a value in all of the {len(loaded.names)} columns.\n"
            "Give two rows or more, or leave out the columns with many missing values (--exclude)."
        )


def require_room(loaded: Loaded, advice: str = "") -> None:
    """Refuse a table whose rows are needed all at once and do not fit, before they are read."""
    n_rows, p = loaded.content.n_rows, len(loaded.names)
    what = f"{n_rows:,} rows of {p:,} columns are {n_rows * p:,} numbers to hold in memory"
    current().require(
        "cells", n_rows * p, loaded.table.label, what, advice or "Choose fewer columns (--columns)."
    )


def dropped_sentence(table: Table, dropped: Sequence[int]) -> str:
    """Which rows were left out, in words."""
    if not dropped:
        return ""
    what = f"{table.unit}s" if len(dropped) > 1 else table.unit
    return (
        f"{console.counted(len(dropped), 'row')} with missing values left out: "
        f"{what} {console.listing(dropped, 10)}."
    )
