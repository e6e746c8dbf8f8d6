"""Tables as batches of rows; a table in memory is one whose batches are kept.

A :class:`Table` knows its column names and can be read any number of times in batches of rows, so
that a file larger than memory and a small one are handled alike. Cells are not converted until
numbers are needed: what is not transformed can be written back unchanged.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.core.limits import current
from skcoral.core.validation import listing
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import LeftOut, filtered, plain_cells, remedy, shown, to_numbers

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["csv", "tsv", "parquet", "excel", "stata"]

BATCH_ROWS = 20_000
#: Rows of many columns come in smaller batches.
BATCH_CELLS = 2_000_000
_FRAME_CELLS = 2**20
_FEW_ROWS = 100  # a call for each column takes longer than its numbers
#: Bytes of cells that are kept after the first pass; larger tables are parsed in every pass.
KEPT_BYTES = 2**28


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of a table."""

    rows: Sequence[int]  # where each stands: line of a text file, row of a sheet or Parquet file
    columns: Sequence[Any]  # the cells of each: a pyarrow array, or Python objects
    fraction: float = 1.0  # how much of the file has been read when this batch ends

    def without(self, rows: set[int]) -> Batch:
        """The batch without the rows at some places."""
        kept = np.array([row not in rows for row in self.rows], dtype=bool)
        if kept.all():
            return self
        places = list(itertools.compress(self.rows, kept))
        return Batch(places, [filtered(cells, kept) for cells in self.columns], self.fraction)

    def parts(self, size: int) -> Iterator[Batch]:
        """The batch in parts of at most ``size`` rows."""
        if len(self.rows) <= size:
            yield self
            return
        for start in range(0, len(self.rows), size):
            part = slice(start, start + size)
            yield Batch(self.rows[part], [c[part] for c in self.columns], self.fraction)


#: Reads the rows from the start, at most so many at a time; only some columns where these are
#: given by their places.
Read = Callable[[int, Sequence[int] | None], Iterator[Batch]]


@dataclass(frozen=True)
class Table:
    r"""A table that can be read again and again; see :func:`skcoral.tables.open_table`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skcoral.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.csv")
    ...     _ = path.write_text("a;b\n1,5;2\n2,5;4\n")
    ...     table = open_table(path)
    >>> table.names, table.separator, table.decimal
    (('a', 'b'), ';', ',')
    """

    label: str  # the file's name, for messages
    names: tuple[str, ...]  # of the columns in file order, all different
    unit: Literal["line", "row"]  # what ``Batch.rows`` counts
    format: Format
    read: Read
    separator: str = ","  # of a text file, so that output can be written alike
    decimal: str = "."
    encoding: str = "utf-8"  # with "-sig" where the text begins with a mark
    n_rows: int | None = None  # where the file tells without being read
    thousands: str = ""  # the mark between groups of three digits, if there is one
    na: tuple[str, ...] = ()  # marks of missing values besides the usual ones
    recognised: frozenset[str] = frozenset()  # of separator, decimal, encoding and sheet
    header_at: int = 1  # line or row of the names
    units_at: int | None = None  # that of words under the names, which is left out
    sheet: str = ""  # of a workbook
    other_sheets: tuple[str, ...] = ()  # of the workbook, not read
    #: Lines or rows that hold a note instead of cells, as of the last time the table was read.
    skipped: list[tuple[int, str]] = field(default_factory=list)
    #: Rows that are totals of the others, with their labels; found by ``columns.profile``.
    totals: list[tuple[int, str]] = field(default_factory=list)

    def numbers(
        self, cells: Any, left_out: LeftOut | None = None
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Cells of a column as numbers; NaN where missing or wrong, the latter also in the mask."""
        typed = self.format in ("parquet", "stata")
        marks = self.decimal, self.na, self.thousands
        return to_numbers(cells, *marks, typed=typed, left_out=left_out)

    def batches(
        self, size: int = BATCH_ROWS, columns: Sequence[str] | None = None
    ) -> Iterator[Batch]:
        """Read the rows from the start, at most ``size`` at a time, fewer of many columns.

        Of the ``columns`` that are named, or of all.
        """
        places = None if columns is None else [self.index(name) for name in columns]
        width = len(self.names if places is None else places)
        batches = self.read(max(1, min(size, BATCH_CELLS // max(1, width))), places)
        totals = {row for row, _ in self.totals}
        return (batch.without(totals) for batch in batches) if totals else batches

    def part(self, names: Sequence[str]) -> Table:
        """The table of some columns."""
        places = [self.index(name) for name in names]

        def read(size: int, chosen: Sequence[int] | None) -> Iterator[Batch]:
            return self.read(size, places if chosen is None else [places[j] for j in chosen])

        return replace(self, names=tuple(names), read=read)

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

    def frames(
        self,
        columns: Sequence[str] | None = None,
        *,
        sample_weight: str | None = None,
        size: int | None = None,
    ) -> Iterator[Any]:
        r"""Data frames of numbers, batch by batch, as :meth:`skcoral.CORAL.fit` takes them.

        Parameters
        ----------
        columns : sequence of str, optional
            All of them by default; a cell that is no number is an error.
        sample_weight : str, optional
            The column of the rows' weights: pairs of frames and weights are given then.
        size : int, optional
            Rows of a batch; 8 MiB of numbers by default.

        Examples
        --------
        >>> from skcoral.tables import open_table
        >>> table = open_table(b"a,b\n1,2\n2,4.5\n3,5\n")
        >>> [frame.shape for frame in table.frames(size=2)]
        [(2, 2), (1, 2)]
        """
        import pandas as pd

        chosen = [name for name in columns or self.names if name != sample_weight]
        wanted = chosen if sample_weight is None else [*chosen, sample_weight]
        if len(set(wanted)) < len(wanted):
            raise InvalidTableError(f"{self.label}: a column is chosen more than once.")
        size = size or max(1, _FRAME_CELLS // max(1, len(wanted)))
        for batch in self.batches(size, wanted):
            cells = zip(wanted, batch.columns, strict=True)
            frame = pd.DataFrame({n: finite_numbers(self, c, batch.rows, n) for n, c in cells})
            yield frame if sample_weight is None else (frame[chosen], frame[sample_weight])

    def cells(self, name: str) -> list[Any]:
        """All cells of one column, as Python objects."""
        return [c for batch in self.batches(columns=[name]) for c in plain_cells(batch.columns[0])]

    def to_numpy(self, columns: Sequence[str]) -> Array:
        """Some columns as numbers, NaN where there is none."""
        parts = (
            np.column_stack([self.numbers(cells)[0] for cells in batch.columns])
            for batch in self.batches(columns=columns)
        )
        return np.concatenate(list(parts))

    def to_frame(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame: number columns as float, the others as they came."""
        import pandas as pd

        from skcoral.tables.columns import profile

        content = profile(self)
        current().require("cells", content.n_rows * len(self.names), self.label)
        found: dict[str, list[Any]] = {name: [] for name in self.names}
        numeric = {column.name for column in content.columns if column.kind in ("number", "empty")}
        for batch in self.batches():
            for name, cells in zip(self.names, batch.columns, strict=True):
                found[name].extend(
                    self.numbers(cells)[0] if name in numeric else plain_cells(cells)
                )
        return pd.DataFrame(
            {n: pd.Series(c, dtype=float if n in numeric else object) for n, c in found.items()}
        )


def empty_table(label: str, names: tuple[str, ...]) -> Table:
    """A table without rows, which gives a matrix its label and names."""
    return Table(label, names, "line", "csv", lambda size, places: iter(()))


class KeepBatches:
    """Reads a table and keeps its batches if they are small enough, so that it is parsed once."""

    def __init__(self, read: Read) -> None:
        self._read: Read | None = read
        self._kept: list[Batch] = []

    def __call__(self, size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        """Read the rows, or give those that were kept."""
        if self._read is None:
            for batch in self._kept:
                for part in batch.parts(size):
                    yield _chosen(part, places)
            return
        found: list[Batch] | None = []
        kept_bytes = 0
        for batch in self._read(size, None):
            yield _chosen(batch, places)
            if found is not None:
                kept_bytes += sum(getattr(cells, "nbytes", 0) for cells in batch.columns)
                found.append(batch)
                if kept_bytes > KEPT_BYTES:
                    found = None
        if found is not None:
            self._kept, self._read = found, None


def held(batch: Batch) -> Read:
    """Reads a table that is in memory as one batch."""
    return lambda size, places: _chosen(batch, places).parts(size)


def _chosen(batch: Batch, places: Sequence[int] | None) -> Batch:
    if places is None:
        return batch
    return Batch(batch.rows, [batch.columns[j] for j in places], batch.fraction)


@dataclass(frozen=True)
class Complete:
    """The complete rows of a batch as numbers, with their weights where these were asked for.

    ``kept`` tells which rows of the batch are complete, and ``dropped`` where the others stand in
    the file.
    """

    values: Array
    weights: Array | None
    kept: NDArray[np.bool_]
    dropped: list[int]
    batch: Batch


def complete_rows(
    table: Table,
    names: Sequence[str],
    *,
    weights: str | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    size: int = BATCH_ROWS,
) -> Iterator[Complete]:
    """Go through the table and give the complete rows of the columns ``names`` as numbers."""
    places = [table.index(name) for name in names]
    weight_place = None if weights is None else table.index(weights)
    for batch in table.batches(size):
        values = _numbers_of_many(table, [batch.columns[j] for j in places], len(batch.rows))
        if values is None:
            values = np.empty((len(batch.rows), len(places)))
            for k, (j, name) in enumerate(zip(places, names, strict=True)):
                values[:, k] = finite_numbers(table, batch.columns[j], batch.rows, name)
        usable: Any = ~np.isnan(values).any(axis=1)
        w = None
        if weights is not None and weight_place is not None:
            w = finite_numbers(table, batch.columns[weight_place], batch.rows, weights)
            usable = usable & ~np.isnan(w)
            if (w < 0).any():
                row = batch.rows[int(np.argmax(w < 0))]
                raise InvalidTableError(
                    f"{table.label}: {table.unit} {row}, column {weights!r}: a weight is negative."
                    "\nWeights say how much rows count: use zero or more."
                )
            w = w[usable]
        dropped = [batch.rows[int(i)] for i in np.flatnonzero(~usable)]
        yield Complete(values[usable], w, usable, dropped, batch)
        if on_batch is not None:
            on_batch(batch)


def _numbers_of_many(table: Table, columns: Sequence[Any], n_rows: int) -> Array | None:
    """Finite numbers of many columns and few rows, converted in one go; None for other columns."""
    import pyarrow as pa

    kinds = {getattr(column, "type", None) for column in columns}
    if n_rows > _FEW_ROWS or len(kinds) > 1 or None in kinds:
        return None
    values, wrong = table.numbers(pa.concat_arrays(columns))
    if wrong.any() or np.isinf(values).any():
        return None
    return values.reshape(len(columns), n_rows).T.copy()


def labels_of(cells: Any) -> list[str | None]:
    """Cells as text; None for those without any."""
    return [None if cell is None or cell == "" else str(cell) for cell in plain_cells(cells)]


def finite_numbers(table: Table, cells: Any, rows: Sequence[int], name: str) -> Array:
    """Cells of a column as numbers, NaN where missing; anything else is an error."""
    values, wrong = table.numbers(cells)
    unusable = wrong | np.isinf(values)
    if unusable.any():
        i = int(np.argmax(unusable))
        cell = shown(cells, i)
        raise InvalidTableError(
            f"{table.label}: {table.unit} {rows[i]}, column {name!r}: {cell!r} is not a "
            f"finite number.\n{remedy(cell, table.decimal)}"
        )
    return values
