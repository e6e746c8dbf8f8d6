"""Tables in: CSV, TSV, Parquet and Excel as one shape, read in batches, cells kept as they came.

A :class:`Table` knows its column names and can be read any number of times in batches of rows, so
that a file larger than memory and a small one take the same road. Cells are not converted until
somebody asks for numbers: what is not transformed can be written back untouched.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral.exceptions import InvalidTableError
from skcoral.io.cells import is_dressed_number, plain_cells, remedy, shown, to_numbers

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Format = Literal["csv", "tsv", "parquet", "excel"]
Kind = Literal["number", "text", "mixed", "empty"]

BATCH_ROWS = 20_000
#: So many cells that are no numbers tell whether a column is text or numbers spelled strangely.
_SAMPLE = 100


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of a table.

    Attributes
    ----------
    rows : sequence of int
        Where each row stands in its file: line of a text file, row of a sheet or Parquet file.
    columns : sequence
        One sequence of cells per column: strings, Python objects or a pyarrow array.
    fraction : float
        How much of the file has been read when this batch ends, in [0, 1].
    """

    rows: Sequence[int]
    columns: Sequence[Any]
    fraction: float = 1.0


@dataclass(frozen=True)
class Table:
    """A table that can be read again and again; see :func:`open_table`.

    Attributes
    ----------
    label : str
        The file's name, for messages.
    names : tuple of str
        Column names in file order, all different.
    unit : {"line", "row"}
        What ``Batch.rows`` counts.
    format : {"csv", "tsv", "parquet", "excel"}
        What the file is.
    separator, decimal : str
        Of a text file; kept so that output can be written alike.
    """

    label: str
    names: tuple[str, ...]
    unit: Literal["line", "row"]
    format: Format
    read: Callable[[int], Iterator[Batch]]
    separator: str = ","
    decimal: str = "."

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Batch]:
        """Read the rows from the start, at most ``size`` at a time."""
        return self.read(size)

    def index(self, name: str) -> int:
        """Position of a column; an unknown name is an error that suggests the nearest one."""
        if name in self.names:
            return self.names.index(name)
        near = difflib.get_close_matches(name, self.names, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has: {_listed(self.names)}."
        raise InvalidTableError(f"{self.label}: there is no column {name!r}.\n{hint}")

    def to_frame(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame: number columns as float, the others as they came."""
        import pandas as pd

        kinds = [c.kind for c in profile(self).columns]
        parts: list[dict[str, Any]] = []
        for batch in self.batches():
            cells: dict[str, Any] = {}
            for name, kind, column in zip(self.names, kinds, batch.columns, strict=True):
                if kind in ("number", "empty"):
                    cells[name] = to_numbers(column, self.decimal)[0]
                else:
                    cells[name] = pd.Series(plain_cells(column), dtype=object)
            parts.append(cells)
        if not parts:
            return pd.DataFrame({name: [] for name in self.names})
        frames = [pd.DataFrame(cells) for cells in parts]
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    ``kind`` is "number" (all cells that are not missing are numbers), "text" (at most half are),
    "mixed" (most are, or would be without their thousands separators, currency signs and the like,
    and ``first_bad`` says where the first that is not stands) or "empty". ``always`` is the one
    value of a column that has several and never changes, up to the rounding of a computation.
    """

    name: str
    kind: Kind
    n_missing: int
    n_bad: int
    first_bad: tuple[int, str] | None
    first_infinite: int | None
    always: float | None


@dataclass(frozen=True)
class TableProfile:
    """What a table holds: its number of rows and one :class:`ColumnProfile` per column."""

    n_rows: int
    columns: tuple[ColumnProfile, ...]

    def column(self, name: str) -> ColumnProfile:
        """The profile of one column."""
        return next(c for c in self.columns if c.name == name)


@dataclass(frozen=True)
class Complete:
    """The complete rows of a batch as numbers, and which rows those are.

    Attributes
    ----------
    values : ndarray of shape (n, p)
        The chosen columns of the complete rows.
    weights : ndarray of shape (n,) or None
        The weights column of the same rows, where one was asked for.
    kept : ndarray of bool
        Which rows of the batch are complete.
    dropped : list of int
        Where the others stand in the file.
    batch : Batch
        All rows as they came.
    """

    values: Array
    weights: Array | None
    kept: NDArray[np.bool_]
    dropped: list[int]
    batch: Batch


def open_table(
    source: str | Path | bytes | BinaryIO,
    *,
    name: str | None = None,
    format: Format | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    sheet: str | None = None,
) -> Table:
    r"""Open a table: a path, ``"-"`` for standard input, bytes, or an open binary file.

    Parameters
    ----------
    source : path, bytes or binary file
        The table. Compressed text (gzip, bzip2, xz, Zstandard, a zip of one file) is recognised by
        content.
    name : str, optional
        What to call the table in messages, and whose ending tells the format; the path by default.
    format : {"csv", "tsv", "parquet", "excel"}, optional
        Recognised from content and name by default.
    separator, decimal, encoding : str
        Dialect of a text file.
    sheet : str, optional
        Sheet of a workbook; the first by default.

    Returns
    -------
    Table

    Raises
    ------
    InvalidTableError
        The file is not a table; two lines say where and what to do.

    Examples
    --------
    >>> table = open_table(b"name,height\nAda,1.65\nAlan,1.78\n", name="people.csv")
    >>> table.names
    ('name', 'height')
    >>> [column.kind for column in profile(table).columns]
    ['text', 'number']
    """
    from skcoral.io import _sources

    return _sources.open_table(
        source,
        name=name,
        format=format,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        sheet=sheet,
    )


def sheet_names(
    source: str | Path | bytes | BinaryIO, *, name: str | None = None
) -> tuple[str, ...]:
    r"""The sheets of a workbook that hold cells; none for any other file.

    Examples
    --------
    >>> sheet_names(b"a,b\n1,2\n")
    ()
    """
    from skcoral.io import _sources

    return _sources.sheet_names(source, name)


def profile(table: Table, *, on_batch: Callable[[Batch], None] | None = None) -> TableProfile:
    """Read a table once and tell what each column holds.

    Parameters
    ----------
    table : Table
        From :func:`open_table`.
    on_batch : callable, optional
        Called after each batch, for a progress bar.
    """
    width = len(table.names)
    n_rows = 0
    good = [0] * width
    bad = [0] * width
    missing = [0] * width
    sampled = [0] * width
    dressed = [0] * width
    first_bad: list[tuple[int, str] | None] = [None] * width
    first_infinite: list[int | None] = [None] * width
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for batch in table.batches():
        n_rows += len(batch.rows)
        for j, cells in enumerate(batch.columns):
            values, wrong = to_numbers(cells, table.decimal)
            n_wrong = int(np.count_nonzero(wrong))
            n_missing = int(np.count_nonzero(np.isnan(values))) - n_wrong
            bad[j] += n_wrong
            missing[j] += n_missing
            good[j] += len(values) - n_wrong - n_missing
            if n_wrong and first_bad[j] is None:
                i = int(np.argmax(wrong))
                first_bad[j] = (batch.rows[i], shown(cells, i))
            for i in np.flatnonzero(wrong)[: _SAMPLE - sampled[j]]:
                sampled[j] += 1
                dressed[j] += is_dressed_number(shown(cells, int(i)), table.decimal)
            low[j] = np.fmin.reduce(values, initial=low[j])
            high[j] = np.fmax.reduce(values, initial=high[j])
            if first_infinite[j] is None and (infinite := np.isinf(values)).any():
                first_infinite[j] = batch.rows[int(np.argmax(infinite))]
        if on_batch is not None:
            on_batch(batch)
    kinds = [
        "mixed" if 2 * dressed[j] > sampled[j] else _kind(good[j], bad[j]) for j in range(width)
    ]
    always = [
        _only_value(low[j], high[j]) if kinds[j] == "number" and good[j] > 1 else None
        for j in range(width)
    ]
    columns = map(
        ColumnProfile, table.names, kinds, missing, bad, first_bad, first_infinite, always
    )
    return TableProfile(n_rows, tuple(columns))


def choose_columns(
    table: Table,
    content: TableProfile,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
) -> tuple[str, ...]:
    """Decide which columns are the variables: the named ones, or all that hold numbers.

    A column that is mostly numbers but not entirely is an error unless it is excluded: leaving it
    out in silence would hide a typing mistake.
    """
    if content.n_rows == 0:
        raise InvalidTableError(
            f"{table.label}: there is a header but no rows under it.\nGive a table with data."
        )
    for name in (*(columns or ()), *exclude):
        table.index(name)
    wanted = [name for name in columns or table.names if name not in set(exclude)]
    chosen = []
    for name in wanted:
        column = content.column(name)
        if column.first_infinite is not None:
            raise InvalidTableError(
                f"{table.label}: {table.unit} {column.first_infinite}, column {name!r}: "
                "the number is infinite.\nCorrect it, clear it, or exclude the column."
            )
        if column.kind == "number" and (name or columns):
            chosen.append(name)
        elif column.kind == "mixed" or (columns and column.kind == "text"):
            row, cell = column.first_bad or (0, "")
            raise InvalidTableError(
                f"{table.label}: {table.unit} {row}, column {name!r}: {cell!r} is not a number "
                f"({column.n_bad} such {'cell' if column.n_bad == 1 else 'cells'})."
                f"\n{remedy(cell, table.decimal)}"
            )
        elif columns:
            raise InvalidTableError(
                f"{table.label}: column {name!r} has no values at all.\nLeave it out."
            )
    if len(set(chosen)) < len(chosen):
        twice = next(name for name in chosen if chosen.count(name) > 1)
        raise InvalidTableError(
            f"{table.label}: column {twice!r} is asked for twice.\nName each column once."
        )
    if len(chosen) < 2:
        found = f"only {chosen[0]!r}" if chosen else "none"
        raise InvalidTableError(
            f"{table.label}: at least two columns of numbers are needed, and there is {found} "
            f"among {_listed(tuple(wanted))}.\n"
            "Check the separator and the header, or choose other columns."
        )
    return tuple(chosen)


def complete_rows(
    table: Table,
    names: Sequence[str],
    *,
    weights: str | None = None,
    on_batch: Callable[[Batch], None] | None = None,
) -> Iterator[Complete]:
    """Go through the table and give the complete rows of the columns ``names`` as numbers."""
    places = [table.index(name) for name in names]
    weight_place = None if weights is None else table.index(weights)
    for batch in table.batches():
        values = np.empty((len(batch.rows), len(places)))
        for k, (j, name) in enumerate(zip(places, names, strict=True)):
            values[:, k] = _numbers(table, batch, j, name)
        usable = np.asarray(~np.isnan(values).any(axis=1), dtype=np.bool_)
        w = None
        if weights is not None and weight_place is not None:
            w = _numbers(table, batch, weight_place, weights)
            usable = usable & ~np.isnan(w)
            if (w < 0).any():
                row = batch.rows[int(np.argmax(w < 0))]
                raise InvalidTableError(
                    f"{table.label}: {table.unit} {row}, column {weights!r}: a weight is negative."
                    "\nWeights count rows: use zero or more."
                )
            w = w[usable]
        dropped = [row for row, keep in zip(batch.rows, usable, strict=True) if not keep]
        yield Complete(values[usable], w, usable, dropped, batch)
        if on_batch is not None:
            on_batch(batch)


def _numbers(table: Table, batch: Batch, j: int, name: str) -> Array:
    values, wrong = to_numbers(batch.columns[j], table.decimal)
    unusable = wrong | np.isinf(values)
    if unusable.any():
        i = int(np.argmax(unusable))
        cell = shown(batch.columns[j], i)
        raise InvalidTableError(
            f"{table.label}: {table.unit} {batch.rows[i]}, column {name!r}: {cell!r} is not a "
            f"finite number.\n{remedy(cell, table.decimal)}"
        )
    return values


def _kind(good: int, bad: int) -> Kind:
    if good == bad == 0:
        return "empty"
    if bad == 0:
        return "number"
    return "mixed" if good > bad else "text"


def _only_value(low: float, high: float) -> float | None:
    rounding = 8 * np.finfo(np.float64).eps * max(abs(low), abs(high))
    return float(low) if high - low <= rounding else None


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(repr(name) for name in itertools.islice(names, limit))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
