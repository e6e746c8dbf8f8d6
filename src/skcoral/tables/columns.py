"""What the columns of a table hold, and which of them are the variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral._requirements import listing
from skcoral.exceptions import InvalidTableError
from skcoral.measured import shortened
from skcoral.tables.cells import flags_of, is_dressed_number, remedy, shown
from skcoral.tables.roles import ColumnWatch
from skcoral.tables.table import Batch, Table

Kind = Literal["number", "text", "mixed", "empty"]

#: So many cells that are no numbers tell whether a column is text or numbers spelled strangely.
_SAMPLE = 100


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    ``kind`` is "number" (all cells that are not missing are numbers), "text" (at most half are),
    "mixed" (most are, or would be without their thousands separators, currency signs and the like,
    and ``first_bad`` says where the first that is not stands) or "empty". ``always`` is the one
    value of a column that has several and never changes, up to the rounding of a computation.
    ``doubt`` says why a column of numbers is hardly a variable (an id, a counter, years), and
    ``marks`` which cells were read as missing and how many of each, blanks aside; ``flags`` which
    letters behind numbers ("12.3 b") were left out.
    """

    name: str
    kind: Kind
    n_missing: int
    n_bad: int
    first_bad: tuple[int, str] | None
    first_infinite: int | None
    always: float | None
    doubt: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TableProfile:
    """What a table holds: its number of rows and one :class:`ColumnProfile` per column."""

    n_rows: int
    columns: tuple[ColumnProfile, ...]

    @property
    def marks(self) -> Counter[str]:
        """Which cells of columns of numbers were read as missing, and how many of each."""
        found: Counter[str] = Counter()
        for column in self.columns:
            if column.kind in ("number", "mixed"):
                found.update(column.marks)
        return found

    def column(self, name: str) -> ColumnProfile:
        """The profile of one column."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, ColumnProfile]:
        return {column.name: column for column in self.columns}


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
    watches = [ColumnWatch() for _ in range(width)]
    marks: list[Counter[str]] = [Counter() for _ in range(width)]
    flags: list[Counter[str]] = [Counter() for _ in range(width)]
    for batch in table.batches():
        n_rows += len(batch.rows)
        for j, cells in enumerate(batch.columns):
            values, wrong = table.numbers(cells)
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
            if not bad[j]:
                watches[j].add(values[np.isfinite(values)])
            if n_missing and good[j] >= bad[j]:
                marks[j].update(_marks(cells, np.isnan(values) & ~wrong))
            if good[j] >= bad[j]:
                flags[j].update(flags_of(cells))
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
    doubts = [
        watches[j].reason(name) if kinds[j] == "number" and always[j] is None else ""
        for j, name in enumerate(table.names)
    ]
    columns = map(
        ColumnProfile,
        table.names,
        kinds,
        missing,
        bad,
        first_bad,
        first_infinite,
        always,
        doubts,
        marks,
        flags,
    )
    return TableProfile(n_rows, tuple(columns))


def choose_columns(
    table: Table,
    content: TableProfile,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] | None = (),
) -> tuple[str, ...]:
    """Decide which columns are the variables: the named ones, or all that hold numbers.

    Ids, counters and years are left out unless they are named or in ``include`` (None: all of
    them). A column that is mostly numbers but not entirely is an error unless it is excluded:
    leaving it out in silence would hide a typing mistake.
    """
    if content.n_rows == 0:
        raise InvalidTableError(
            f"{table.label}: there is a header but no rows under it.\nGive a table with data."
        )
    for name in (*(columns or ()), *exclude, *(include or ())):
        table.index(name)
    left_out = set(exclude)
    wished = None if include is None or columns else set(include)
    doubtful: dict[str, str] = {}
    wanted = [name for name in columns or table.names if name not in left_out]
    chosen = []
    for name in wanted:
        column = content.column(name)
        if column.first_infinite is not None:
            raise InvalidTableError(
                f"{table.label}: {table.unit} {column.first_infinite}, column {name!r}: "
                "the number is infinite.\nCorrect it, clear it, or exclude the column."
            )
        if column.kind == "number" and column.doubt and wished is not None and name not in wished:
            doubtful[name] = column.doubt
        elif column.kind == "number" and (name or columns):
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
        twice = next(name for name, count in Counter(chosen).items() if count > 1)
        raise InvalidTableError(
            f"{table.label}: column {twice!r} is asked for twice.\nName each column once."
        )
    if len(chosen) < 2:
        found = f"only {chosen[0]!r}" if chosen else "none"
        raise InvalidTableError(
            f"{table.label}: at least two columns of numbers are needed, and there is {found} "
            f"among {listing(tuple(wanted))}.\n{_where_else(table, doubtful)}"
        )
    return tuple(chosen)


def _where_else(table: Table, doubtful: Mapping[str, str]) -> str:
    """What to do where too few columns hold numbers."""
    if doubtful:
        told = ", ".join(f"{name} {why}" for name, why in list(doubtful.items())[:4])
        return f"Left out: {told}. To use such columns: --include NAME."
    if table.other_sheets:
        return f"Choose another sheet (--sheet NAME): {', '.join(table.other_sheets[:8])}."
    return "Check the separator and the header, or choose other columns."


def _marks(cells: Any, missing: NDArray[np.bool_]) -> Iterator[str]:
    """The cells that were read as missing, blanks aside."""
    if hasattr(cells, "type"):
        return
    for i in np.flatnonzero(missing):
        cell = cells[i]
        text = "" if cell is None else str(cell).strip()
        if text:
            yield shortened(text)


def _kind(good: int, bad: int) -> Kind:
    if good == bad == 0:
        return "empty"
    if bad == 0:
        return "number"
    return "mixed" if good > bad else "text"


def _only_value(low: float, high: float) -> float | None:
    if not np.isfinite([low, high]).all():
        return None
    rounding = 8 * np.finfo(np.float64).eps * max(abs(low), abs(high))
    return float(low) if high - low <= rounding else None
