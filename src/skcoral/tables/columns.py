"""The description of columns: what each of them holds, and which are the variables."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from skcoral._requirements import listing
from skcoral.exceptions import InvalidTableError
from skcoral.showing import shortened
from skcoral.tables.cells import filtered, is_dressed_number, plain_cells, remedy, shown
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
    n_numbers: int
    n_missing: int
    n_bad: int
    first_bad: tuple[int, str] | None
    first_infinite: int | None
    always: float | None
    doubt: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)

    def unusable(self, table: Table) -> str:
        """Why the column cannot be a variable; empty where it can."""
        if self.kind == "empty":
            excel = table.format == "excel"
            return "no values" + (" (formulas that were never computed?)" if excel else "")
        if not self.name:
            return "no name"
        if self.first_infinite is not None:
            return f"infinite in {table.unit} {self.first_infinite}"
        if self.always is not None:
            return f"always {self.always:g}"
        if self.first_bad is None:
            return "" if self.n_numbers > 1 else "only one value"
        row, cell = self.first_bad
        if self.kind == "mixed":
            more = f", and {self.n_bad - 1:,} more cells are not numbers" if self.n_bad > 1 else ""
            return f"{table.unit} {row} holds {cell!r}{more}"
        return f"no numbers, such as {cell!r}"


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
    scans = [_ColumnScan() for _ in table.names]
    n_rows = 0
    for batch in table.batches():
        n_rows += len(batch.rows)
        for scan, cells in zip(scans, batch.columns, strict=True):
            scan.add(table, cells, batch.rows)
        if on_batch is not None:
            on_batch(batch)
    columns = (scan.profile(name) for scan, name in zip(scans, table.names, strict=True))
    return TableProfile(n_rows, tuple(columns))


class _ColumnScan:
    """What one column holds, as far as it was read."""

    def __init__(self) -> None:
        self.n_numbers = self.n_bad = self.n_missing = self.n_sampled = self.n_dressed = 0
        self.first_bad: tuple[int, str] | None = None
        self.first_infinite: int | None = None
        self.low, self.high = np.inf, -np.inf
        self.watch = ColumnWatch()
        self.marks: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()

    def add(self, table: Table, cells: Any, rows: Sequence[int]) -> None:
        """Take in the cells of some rows."""
        values, wrong = table.numbers(cells, self.flags)
        missing = np.isnan(values) & ~wrong
        n_wrong, n_missing = int(np.count_nonzero(wrong)), int(np.count_nonzero(missing))
        self.n_bad += n_wrong
        self.n_missing += n_missing
        self.n_numbers += len(values) - n_wrong - n_missing
        if n_wrong:
            self._look_at_bad(cells, np.flatnonzero(wrong).tolist(), rows, table.decimal)
        self.low = np.fmin.reduce(values, initial=self.low)
        self.high = np.fmax.reduce(values, initial=self.high)
        if not self.n_bad:
            self.watch.add(values[np.isfinite(values)])
        if n_missing and self.n_numbers >= self.n_bad:
            texts = (str(c).strip() for c in plain_cells(filtered(cells, missing)) if c is not None)
            self.marks.update(shortened(text) for text in texts if text)
        if self.first_infinite is None and np.isinf(values).any():
            self.first_infinite = rows[int(np.argmax(np.isinf(values)))]

    def _look_at_bad(self, cells: Any, bad: list[int], rows: Sequence[int], decimal: str) -> None:
        if self.first_bad is None:
            self.first_bad = (rows[bad[0]], shown(cells, bad[0]))
        for i in bad[: _SAMPLE - self.n_sampled]:
            self.n_sampled += 1
            self.n_dressed += is_dressed_number(shown(cells, i), decimal)

    def profile(self, name: str) -> ColumnProfile:
        """The description of the column after its last row."""
        kind: Kind = "number" if not self.n_bad else "text"
        if not self.n_bad and not self.n_numbers:
            kind = "empty"
        elif self.n_bad and (self.n_numbers > self.n_bad or 2 * self.n_dressed > self.n_sampled):
            kind = "mixed"
        always, doubt = None, ""
        if kind == "number":
            always = _only_value(self.low, self.high) if self.n_numbers > 1 else None
            doubt = self.watch.reason(name) if always is None else ""
        return ColumnProfile(
            name,
            kind,
            self.n_numbers,
            self.n_missing,
            self.n_bad,
            self.first_bad,
            self.first_infinite,
            always,
            doubt,
            self.marks,
            self.flags,
        )


@dataclass(frozen=True)
class Selection:
    """Which columns are the variables, and which were left out and why.

    ``constant`` never change; ``doubtful`` look like ids, years or weights, with the reason.
    """

    variables: tuple[str, ...]
    constant: tuple[str, ...]
    doubtful: Mapping[str, str]


def select_variables(
    table: Table,
    content: TableProfile,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
) -> Selection:
    """Decide which columns are the variables and say why the others are not.

    As :func:`choose_columns`; constants are left out, too, and an error where they are named.
    """
    names = choose_columns(table, content, columns, exclude=exclude, include=include)
    constant = tuple(name for name in names if content.column(name).always is not None)
    if constant and columns is not None:
        value = content.column(constant[0]).always or 0.0
        kept = " in its first 15 digits" if abs(value) >= 2**53 else ""
        raise InvalidTableError(
            f"{table.label}: column {constant[0]!r} is always {value:g}{kept}, and a constant has "
            f"no correlation.\nLeave it out: --exclude {shlex.quote(constant[0])}"
        )
    aside = set(constant)
    varying = tuple(name for name in names if name not in aside)
    if len(varying) < 2:
        found = f"only {varying[0]!r}" if varying else "none"
        raise InvalidTableError(
            f"{table.label}: at least two columns that vary are needed, and there is {found}; "
            f"constant: {listing(constant, quote='')}.\nChoose columns that differ from row to row."
        )
    aside = {*names, *exclude}
    doubtful = {c.name: c.doubt for c in content.columns if c.name and c.doubt}
    doubtful = {n: why for n, why in doubtful.items() if n not in aside and columns is None}
    return Selection(varying, constant, doubtful)


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
    if columns and len(chosen) == 1:
        raise InvalidTableError(
            f"{table.label}: at least two variables are needed, and only {chosen[0]!r} is chosen.\n"
            "Name two or more columns."
        )
    if len(chosen) < 2:
        found = f"only {chosen[0]!r}" if chosen else "none"
        others = [name for name in wanted if name not in chosen]
        beside = f"; other columns: {listing(others)}" if others else ""
        raise InvalidTableError(
            f"{table.label}: at least two columns of numbers are needed, and there is {found}"
            f"{beside}.\n{_where_else(table, doubtful)}"
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


def _only_value(low: float, high: float) -> float | None:
    if not np.isfinite([low, high]).all():
        return None
    rounding = 8 * np.finfo(np.float64).eps * max(abs(low), abs(high))
    return float(low) if high - low <= rounding else None
