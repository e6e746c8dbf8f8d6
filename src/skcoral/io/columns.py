"""What the columns of a table hold, and which of them are the variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from skcoral.exceptions import InvalidTableError
from skcoral.io.cells import is_dressed_number, remedy, shown
from skcoral.io.tables import Batch, Table, listed

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
    left_out = set(exclude)
    wanted = [name for name in columns or table.names if name not in left_out]
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
        twice = next(name for name, count in Counter(chosen).items() if count > 1)
        raise InvalidTableError(
            f"{table.label}: column {twice!r} is asked for twice.\nName each column once."
        )
    if len(chosen) < 2:
        found = f"only {chosen[0]!r}" if chosen else "none"
        raise InvalidTableError(
            f"{table.label}: at least two columns of numbers are needed, and there is {found} "
            f"among {listed(tuple(wanted))}.\n"
            "Check the separator and the header, or choose other columns."
        )
    return tuple(chosen)


def _kind(good: int, bad: int) -> Kind:
    if good == bad == 0:
        return "empty"
    if bad == 0:
        return "number"
    return "mixed" if good > bad else "text"


def _only_value(low: float, high: float) -> float | None:
    rounding = 8 * np.finfo(np.float64).eps * max(abs(low), abs(high))
    return float(low) if high - low <= rounding else None
