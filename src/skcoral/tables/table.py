"""Tables as batches of rows; a table in memory is one whose batches are kept.

A :class:`Table` knows its column names and can be read any number of times in batches of rows, so
that a file larger than memory and a small one are handled alike. Cells are not converted until
numbers are needed: what is not transformed can be written back unchanged.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from skcoral.core.arrays import Array, Mask
from skcoral.core.limits import current
from skcoral.core.validation import listing
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import Marks, plain_cells, selected, to_numbers

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["csv", "tsv", "parquet", "excel", "stata"]

BATCH_ROWS = 20_000
#: Rows of many columns come in smaller batches.
BATCH_CELLS = 2_000_000
_FEW_ROWS = 100  # a call for each column takes longer than its numbers
#: Bytes of cells that are kept after the first pass; larger tables are parsed in every pass.
KEPT_BYTES = 2**28


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of a table."""

    rows: Sequence[int]  # where each stands: line of a text file, row of a sheet or Parquet file
    columns: Sequence[Any]  # the cells of each, a pyarrow array
    fraction: float = 1.0  # how much of the file has been read when this batch ends

    def without(self, rows: set[int]) -> Batch:
        """The batch without the rows at some places."""
        chosen = ~np.isin(self.rows, [*rows])
        columns = [selected(cells, chosen) for cells in self.columns]
        return replace(self, rows=np.asarray(self.rows)[chosen].tolist(), columns=columns)

    def parts(self, size: int) -> Iterator[Batch]:
        """The batch in parts of at most ``size`` rows."""
        for start in range(0, len(self.rows), size):
            rows = self.rows[start : start + size]
            yield Batch(rows, [c.slice(start, size) for c in self.columns], self.fraction)


#: Reads the rows from the start, at most so many at a time.
Read = Callable[[int], Iterator[Batch]]


@dataclass(frozen=True)
class Table:
    r"""A table that can be read again and again; see :func:`skcoral.tables.open_table`.

    Examples
    --------
    >>> from skcoral.tables import open_table
    >>> table = open_table(b"a;b\n1,5;2\n2,5;4\n", name="two.csv")
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

    def __post_init__(self) -> None:
        """Refuse two columns with the same name, or with none."""
        seen: dict[str, int] = {}
        for place, name in enumerate(self.names, start=1):
            if name in seen:
                what = f"the name {name!r}" if name else "no name"
                raise InvalidTableError(
                    f"{self.label}: {self.unit} {self.header_at}: columns {seen[name]} and {place} "
                    f"both have {what}.\nGive every column a name of its own."
                )
            seen[name] = place

    def numbers(self, cells: Any, left_out: Marks | None = None) -> tuple[Array, Mask]:
        """Cells of a column as numbers; NaN where missing or wrong, the latter also in the mask."""
        typed = self.format in ("parquet", "stata")
        return to_numbers(cells, self.decimal, self.na, typed=typed, left_out=left_out)

    def numbers_of_all(
        self,
        columns: Sequence[Any],
        left_out: Sequence[Marks] = (),
    ) -> Iterator[tuple[Array, Mask]]:
        """The numbers of each column; in one go where there are many columns and few rows."""
        if columns and len(columns[0]) <= _FEW_ROWS and len({c.type for c in columns}) == 1:
            unusual: Marks = Counter()
            values, wrong = self.numbers(pa.concat_arrays(columns), unusual)
            if not unusual:
                shape = len(columns), -1
                return zip(values.reshape(shape), wrong.reshape(shape), strict=True)
        return (self.numbers(c, count) for c, count in zip_longest(columns, left_out))

    def numbers_in(self, batch: Batch, names: Sequence[str]) -> Array:
        """Some columns of a batch as numbers, NaN where there is none."""
        cells = [batch.columns[self.index(name)] for name in names]
        numbers = [values for values, _ in self.numbers_of_all(cells)]
        return np.reshape(numbers, (len(names), len(batch.rows))).T

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Batch]:
        """Read the rows from the start, at most ``size`` at a time, fewer of many columns."""
        batches = self.read(max(1, min(size, BATCH_CELLS // len(self.names))))
        totals = {row for row, _ in self.totals}
        return (batch.without(totals) for batch in batches) if totals else batches

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

    def cells(self, name: str) -> list[Any]:
        """All cells of one column, as Python objects."""
        j = self.index(name)
        return [cell for batch in self.batches() for cell in plain_cells(batch.columns[j])]

    def labels(self, name: str) -> list[str | None]:
        """The cells of a column as text; None for those without any."""
        return [None if cell is None or cell == "" else str(cell) for cell in self.cells(name)]

    def to_numpy(self, columns: Sequence[str]) -> Array:
        """Some columns as numbers, NaN where there is none."""
        parts = [self.numbers_in(batch, columns) for batch in self.batches()]
        return np.concatenate([np.empty((0, len(columns))), *parts])

    def to_frame(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame: number columns as float, the others as they came."""
        import pandas as pd

        from skcoral.tables.columns import profile

        content = profile(self)
        current().check("cells", content.n_rows * len(self.names), self.label)
        numeric = [n for n, c in content.columns.items() if c.kind in ("number", "empty")]
        columns: dict[str, Any] = dict(zip(numeric, self.to_numpy(numeric).T, strict=True))
        for name in self.names:
            if name not in columns:
                columns[name] = pd.Series(self.cells(name), dtype=object)
        return pd.DataFrame({name: columns[name] for name in self.names})


def keeping(read: Read) -> Read:
    """Read a table and keep its batches if they are small enough, so that it is parsed once."""
    cache: list[Batch] | None = None

    def batches(size: int) -> Iterator[Batch]:
        nonlocal cache
        if cache is not None:
            for batch in cache:
                yield from batch.parts(size)
            return
        seen: list[Batch] = []
        n_bytes = 0
        for batch in read(size):
            yield batch
            n_bytes += sum(cells.nbytes for cells in batch.columns)
            if n_bytes <= KEPT_BYTES:
                seen.append(batch)
            else:
                seen.clear()
        if n_bytes <= KEPT_BYTES:
            cache = seen

    return batches


@dataclass(frozen=True)
class Complete:
    """The complete rows of a batch as numbers, with their weights where these were asked for."""

    values: Array
    weights: Array | None
    usable: Mask  # which rows of the batch are complete
    dropped: list[int]  # where the others stand in the file
    batch: Batch


def complete_rows(
    table: Table, names: Sequence[str], *, weights: str | None = None
) -> Iterator[Complete]:
    """Go through the table and give the complete rows of the columns ``names`` as numbers.

    Cells of these columns that are no numbers were refused when the columns were chosen.
    """
    wanted = [*names, *([] if weights is None else [weights])]
    for batch in table.batches():
        values = table.numbers_in(batch, wanted)
        usable: Any = ~np.isnan(values).any(axis=1)
        dropped = [int(batch.rows[i]) for i in np.flatnonzero(~usable).tolist()]
        w = None
        if weights is not None:
            w, values = values[:, -1], values[:, :-1]
            if (w < 0).any():
                row = batch.rows[int(np.argmax(w < 0))]
                raise InvalidTableError(
                    f"{table.label}: {table.unit} {row}, column {weights!r}: a weight is negative."
                    "\nWeights say how much rows count: use zero or more."
                )
            w = w[usable]
        yield Complete(np.ascontiguousarray(values[usable]), w, usable, dropped, batch)
