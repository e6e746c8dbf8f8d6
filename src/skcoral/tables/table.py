"""Tables in: CSV, TSV, Parquet and Excel as one shape, read in batches, cells kept as they came.

A :class:`Table` knows its column names and can be read any number of times in batches of rows, so
that a file larger than memory and a small one take the same road. Cells are not converted until
somebody asks for numbers: what is not transformed can be written back untouched.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array
from skcoral._requirements import listing
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import plain_cells, remedy, shown, to_numbers

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["csv", "tsv", "parquet", "excel"]

BATCH_ROWS = 20_000
#: Rows of many columns come in smaller batches.
BATCH_CELLS = 2_000_000
#: Tables of no more cells are kept after they were read, and not parsed a second time.
_KEPT_CELLS = 500_000


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
    thousands : str
        The mark between groups of three digits in a text file, if there is one.
    n_rows : int or None
        Number of rows, where the file tells without being read.
    na : tuple of str
        Marks of missing values besides the usual ones.
    assumed : tuple of str
        What was recognised in the file and not said by the caller, in sentences.
    other_sheets : tuple of str
        Sheets of the workbook that were not read.
    skipped : list of (int, str)
        Lines that hold a note instead of cells, as of the last time that the table was read.
    """

    label: str
    names: tuple[str, ...]
    unit: Literal["line", "row"]
    format: Format
    read: Callable[[int], Iterator[Batch]]
    separator: str = ","
    decimal: str = "."
    n_rows: int | None = None
    thousands: str = ""
    na: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    other_sheets: tuple[str, ...] = ()
    skipped: list[tuple[int, str]] = field(default_factory=list)

    def numbers(self, cells: Any) -> tuple[Array, NDArray[np.bool_]]:
        """Cells of a column as numbers; NaN where missing or wrong, the latter also in the mask."""
        return to_numbers(cells, self.decimal, self.na, self.thousands)

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Batch]:
        """Read the rows from the start, at most ``size`` at a time, fewer of many columns."""
        return self.read(max(1, min(size, BATCH_CELLS // max(1, len(self.names)))))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Position of a column; an unknown name is an error that suggests the nearest one."""
        if name in self._places:
            return self._places[name]
        near = difflib.get_close_matches(name[:200], self.names[:1000], n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has: {listing(self.names)}."
        raise InvalidTableError(f"{self.label}: there is no column {name!r}.\n{hint}")

    def to_frame(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame: number columns as float, the others as they came."""
        import pandas as pd

        from skcoral.limits import current
        from skcoral.tables.columns import profile

        content = profile(self)
        what = f"{content.n_rows:,} rows of {len(self.names):,} columns are too many cells"
        current().require("cells", content.n_rows * len(self.names), self.label, what)
        kinds = [c.kind for c in content.columns]
        parts: list[dict[str, Any]] = []
        for batch in self.batches():
            cells: dict[str, Any] = {}
            for name, kind, column in zip(self.names, kinds, batch.columns, strict=True):
                if kind in ("number", "empty"):
                    cells[name] = self.numbers(column)[0]
                else:
                    cells[name] = pd.Series(plain_cells(column), dtype=object)
            parts.append(cells)
        if not parts:
            return pd.DataFrame({name: [] for name in self.names})
        frames = [pd.DataFrame(cells) for cells in parts]
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


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
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    na: Sequence[str] = (),
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
    separator, decimal, encoding : str, optional
        Dialect of a text file; recognised by default, and ``assumed`` says what was.
    sheet : str, optional
        Sheet of a workbook; the first that holds a table by default.
    na : sequence of str
        Marks of missing values besides those in `skcoral.tables.cells.MISSING`.

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
    >>> from skcoral.tables.columns import profile
    >>> [column.kind for column in profile(table).columns]
    ['text', 'number']
    """
    from skcoral.tables import sources

    table = sources.open_table(
        source,
        name=name,
        format=format,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        sheet=sheet,
        na=tuple(na),
    )
    return replace(table, read=_ReadOnce(table.read))


class _ReadOnce:
    """Keep the batches of a small table after the first complete pass."""

    def __init__(self, read: Callable[[int], Iterator[Batch]]) -> None:
        self._read = read
        self._kept: dict[int, list[Batch]] = {}

    def __call__(self, size: int) -> Iterator[Batch]:
        if size in self._kept:
            yield from self._kept[size]
            return
        batches: list[Batch] = []
        cells = 0
        for batch in self._read(size):
            cells += len(batch.rows) * len(batch.columns)
            if cells <= _KEPT_CELLS:
                batches.append(batch)
            else:
                batches.clear()
            yield batch
        if cells <= _KEPT_CELLS:
            self._kept[size] = batches


def sheet_names(
    source: str | Path | bytes | BinaryIO, *, name: str | None = None
) -> tuple[str, ...]:
    r"""The sheets of a workbook that hold cells; none for any other file.

    Examples
    --------
    >>> sheet_names(b"a,b\n1,2\n")
    ()
    """
    from skcoral.tables import sources

    return sources.sheet_names(source, name)


def read_text(source: str | Path | bytes, *, encoding: str | None = None) -> str:
    """The whole text of a small file, in its encoding."""
    from skcoral.tables import sources

    return sources.read_text(source, encoding)


def complete_rows(
    table: Table,
    names: Sequence[str],
    *,
    weights: str | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    size: int = BATCH_ROWS,
    may_miss: bool = False,
) -> Iterator[Complete]:
    """Go through the table and give the complete rows of the columns ``names`` as numbers.

    With ``may_miss`` one value is enough, and NaN stands where others are missing.
    """
    places = [table.index(name) for name in names]
    weight_place = None if weights is None else table.index(weights)
    for batch in table.batches(size):
        values = np.empty((len(batch.rows), len(places)))
        for k, (j, name) in enumerate(zip(places, names, strict=True)):
            values[:, k] = _numbers(table, batch, j, name)
        gone = np.isnan(values)
        usable: Any = ~(gone.all(axis=1) if may_miss else gone.any(axis=1))
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


def column_labels(table: Table, name: str) -> NDArray[Any]:
    """The cells of a column as text; None where there is none."""
    place = table.index(name)
    found = [label for batch in table.batches() for label in labels_of(batch.columns[place])]
    return np.array(found, dtype=object)


def labels_of(cells: Any) -> list[str | None]:
    """Cells as text; None for those without any."""
    cells = cells.to_pylist() if hasattr(cells, "to_pylist") else cells
    return [None if cell is None or cell == "" else str(cell) for cell in cells]


def _numbers(table: Table, batch: Batch, j: int, name: str) -> Array:
    values, wrong = table.numbers(batch.columns[j])
    unusable = wrong | np.isinf(values)
    if unusable.any():
        i = int(np.argmax(unusable))
        cell = shown(batch.columns[j], i)
        raise InvalidTableError(
            f"{table.label}: {table.unit} {batch.rows[i]}, column {name!r}: {cell!r} is not a "
            f"finite number.\n{remedy(cell, table.decimal)}"
        )
    return values
