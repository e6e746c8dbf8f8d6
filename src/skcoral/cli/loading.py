"""From a file and the table options to complete rows of numbers."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from skcoral.cli import console
from skcoral.cli.options import TableOptions
from skcoral.cli.running import UsageError
from skcoral.exceptions import InvalidCorrelationError, InvalidTableError
from skcoral.io.columns import TableProfile, choose_columns, profile
from skcoral.io.tables import Batch, Complete, Table, complete_rows, open_table
from skcoral.moments import Moments


@dataclass(frozen=True)
class Loaded:
    """An opened table whose columns have been looked at."""

    table: Table
    content: TableProfile
    names: tuple[str, ...]
    weights: str | None = None
    weight_kind: str = "auto"
    constant: tuple[str, ...] = ()

    @property
    def passed_through(self) -> tuple[str, ...]:
        """The columns that are not variables."""
        variables = set(self.names)
        return tuple(name for name in self.table.names if name not in variables)

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
        ]
        return f"Columns left as they were: {console.listing(told)}." if told else ""

    def rows(self, on_batch: Callable[[Batch], None] | None = None) -> Iterator[Complete]:
        """Complete rows of the variables, batch by batch."""
        return complete_rows(self.table, self.names, weights=self.weights, on_batch=on_batch)


def open_file(options: TableOptions) -> Table:
    """Open the table without reading its rows."""
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
        options.file,
        separator=separator,
        decimal=options.decimal or ".",
        encoding=options.encoding or "utf-8",
        sheet=options.sheet,
    )
    if options.sheet is not None and table.format != "excel":
        raise UsageError(
            f"{table.label}: --sheet is for Excel files, and this is none.\nLeave it out."
        )
    return table


def look_at(table: Table) -> TableProfile:
    """See what each column holds."""
    with console.progress(f"Looking at {table.label}") as tell:
        return profile(table, on_batch=lambda batch: tell(batch.fraction))


def load(options: TableOptions) -> Loaded:
    """Open a table, look at its columns and choose the variables."""
    table = open_file(options)
    content = look_at(table)
    weights = options.weights
    exclude = split_names(options.exclude, table)
    if weights is not None:
        table.index(weights)
        exclude = (*exclude, weights)
    columns = split_names(options.columns, table) or None
    if options.columns and columns is None:
        raise UsageError("--columns names no column.\nName two or more, or leave it out for all.")
    names = choose_columns(table, content, columns, exclude=exclude)
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
    return Loaded(table, content, varying, weights, options.weight_kind, constant)


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


def dropped_sentence(table: Table, dropped: Sequence[int]) -> str:
    """Which rows were left out, in words."""
    if not dropped:
        return ""
    what = f"{table.unit}s" if len(dropped) > 1 else table.unit
    return (
        f"{console.counted(len(dropped), 'row')} with missing values left out: "
        f"{what} {console.listing(dropped, 10)}."
    )
