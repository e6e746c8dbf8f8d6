"""The description of columns: what each of them holds, and which are the variables."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from skcoral.core.arrays import EPS, Array, Mask
from skcoral.core.display import shortened
from skcoral.core.validation import listing
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import plain_cells, selected
from skcoral.tables.cells import (
    Marks,
    is_like_a_number,
    labelled_totals,
    remedy,
    shown,
)
from skcoral.tables.roles import ColumnWatch
from skcoral.tables.table import Table

Kind = Literal["number", "text", "mixed", "empty"]

#: Rows that may be labelled as totals; where there are more, the label means something else.
_MOST_TOTALS = 2
#: Rows that it takes besides a total that has no label, and how well their sums must agree.
_FEWEST_PARTS, _ROUNDING_OF_TOTALS = 3, 1e-5
#: So many cells that are no numbers tell whether a column is text or numbers spelled strangely.
_SAMPLE = 100


class ColumnProfile:
    """What one column holds, as far as it was read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_rows = self.n_numbers = self.n_missing = self.n_bad = 0  # cells; bad are the rest
        self.first_bad: tuple[int, str] | None = None  # where it stands, and what it is
        self.first_infinite: int | None = None
        self.marks: Counter[str] = Counter()  # cells that were read as missing, blanks aside
        self.left_out: Marks = Counter()  # of cells that count as numbers
        self._n_sampled = self._n_formatted = 0
        self.watch = ColumnWatch()
        self.has_leading_zeros = False  # as codes have, which are no numbers to be written
        self.sums = np.zeros(2)  # of the numbers, and of their sizes
        self.ends = np.full(2, np.nan)  # the numbers of the first and of the last row

    def add(
        self, table: Table, cells: Any, rows: Sequence[int], values: Array, wrong: Mask
    ) -> None:
        """Take in the cells of some rows, and their numbers."""
        missing = np.isnan(values) & ~wrong
        n_wrong, n_missing = int(np.count_nonzero(wrong)), int(np.count_nonzero(missing))
        self.n_bad += n_wrong
        self.n_missing += n_missing
        self.n_numbers += len(values) - n_wrong - n_missing
        if n_wrong:
            bad = np.flatnonzero(wrong).tolist()
            self.first_bad = self.first_bad or (int(rows[bad[0]]), shown(cells, bad[0]))
            for i in bad[: _SAMPLE - self._n_sampled]:
                self._n_sampled += 1
                self._n_formatted += is_like_a_number(shown(cells, i), table.decimal)
        if len(values):
            self.ends = np.array([self.ends[0] if self.n_rows else values[0], values[-1]])
            self.n_rows += len(values)
        if not self.n_bad:
            finite = values[np.isfinite(values)]
            self.sums += [finite.sum(), np.abs(finite).sum()]
            self.watch.add(finite)
            if self.watch.is_whole and table.unit == "line" and not self.has_leading_zeros:
                codes = pc.match_substring_regex(cells, r"^\s*0\d")
                self.has_leading_zeros = bool(pc.any(codes).as_py())
        if n_missing and self.n_numbers >= self.n_bad:
            texts = (str(c).strip() for c in plain_cells(selected(cells, missing)) if c is not None)
            self.marks.update(shortened(text) for text in texts if text)
        if self.first_infinite is None and np.isinf(values).any():
            self.first_infinite = int(rows[int(np.argmax(np.isinf(values)))])

    @property
    def kind(self) -> Kind:
        """What the cells that are not missing are.

        "number": all of them are numbers; "text": at most half are; "mixed": most are, or would be
        with the other decimal mark; "empty": there are none.
        """
        if not self.n_bad:
            return "number" if self.n_numbers else "empty"
        mixed = self.n_numbers > self.n_bad or 2 * self._n_formatted > self._n_sampled
        return "mixed" if mixed else "text"

    @cached_property
    def constant(self) -> str:
        """The one number of a column that has several and never changes, in words; else empty."""
        low, high = float(self.watch.low), float(self.watch.high)
        if self.kind != "number" or self.n_numbers < 2 or self.first_infinite is not None:
            return ""
        if high - low > 8 * EPS * max(abs(low), abs(high)):
            return ""
        # Long codes are equal only in the digits that a float has.
        return f"always {low:g}" + (" in its first 15 digits" if abs(low) >= 2**53 else "")

    @cached_property
    def doubt(self) -> str:
        """Why a column of numbers is hardly a variable (an id, a counter, years)."""
        varies = self.kind == "number" and not self.constant
        return self.watch.doubt(self.name) if varies else ""

    @property
    def is_unreadable(self) -> bool:
        """Whether this is a column of numbers with cells that are no finite numbers."""
        return self.kind == "mixed" or (self.kind == "number" and self.first_infinite is not None)

    @property
    def is_written_as_number(self) -> bool:
        """Whether a file with types holds numbers in place of the texts of this column.

        Codes stay text: those with leading zeros, and those too long for a float's digits.
        """
        size = max(abs(float(self.watch.low)), abs(float(self.watch.high)))
        is_code = self.has_leading_zeros or (self.watch.is_whole and size >= 2**53)
        return self.kind == "number" and not is_code

    def unusable(self, table: Table) -> str:
        """Why the column cannot be a variable; empty where it can."""
        if self.kind == "empty":
            excel = table.format == "excel"
            return "no values" + (" (formulas that were never computed?)" if excel else "")
        if not self.name:
            return "no name"
        if self.first_infinite is not None:
            return f"{table.unit} {self.first_infinite}: infinite"
        if self.constant:
            return self.constant
        if self.first_bad is None:
            return "" if self.n_numbers > 1 else "only one value"
        row, cell = self.first_bad
        if self.kind == "mixed":
            more = f", and {self.n_bad - 1:,} more" if self.n_bad > 1 else ""
            return f"{table.unit} {row}: {cell!r}{more}"
        return f"no numbers, such as {cell!r}"


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


def profile(table: Table, tell: Callable[[float], None] = lambda fraction: None) -> TableProfile:
    """Read a table once and say what each column holds; ``tell`` is given the fraction read.

    Rows that are totals of the others are left out from then on, and the table read again.
    """
    columns = tuple(map(ColumnProfile, table.names))
    places: list[int] = []  # of the first and the last row
    labels: list[tuple[int, str]] = []
    n_rows = 0
    for batch in table.batches():
        n_rows += len(batch.rows)
        if len(batch.rows):
            places = [places[0] if places else int(batch.rows[0]), int(batch.rows[-1])]
        numbers = table.numbers_of_all(batch.columns, [column.left_out for column in columns])
        for column, cells, converted in zip(columns, batch.columns, numbers, strict=True):
            column.add(table, cells, batch.rows, *converted)
            if column.kind == "text" and len(labels) <= _MOST_TOTALS:
                labels += labelled_totals(cells, batch.rows)
        tell(batch.fraction)
    if n_rows > _FEWEST_PARTS and not table.totals:
        totals = [(row, label) for row, label in labels if row in places]
        totals = totals if len(labels) <= _MOST_TOTALS else []
        totals = totals or [(places[k], "") for k in (1, 0) if _is_total(columns, k)][:1]
        if totals:
            table.totals.extend(dict(totals).items())
            return profile(table, tell)
    return TableProfile(n_rows, columns)


def _is_total(columns: Sequence[ColumnProfile], end: int) -> bool:
    """Whether all numbers of the first or the last row are the sums of the others, to rounding."""
    numeric = [c for c in columns if c.kind == "number" and not (c.doubt or c.constant)]
    if len(numeric) < 2 or min(c.n_numbers for c in numeric) < _FEWEST_PARTS + 1:
        return False
    values = np.array([c.ends[end] for c in numeric])
    sums, sizes = np.array([c.sums for c in numeric]).T
    equal = np.abs(sums - 2.0 * values) <= _ROUNDING_OF_TOTALS * sizes
    return bool(equal.all() and (values != 0).sum() >= 2)


def select_variables(
    table: Table,
    content: TableProfile,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] | None = (),
    may_be_constant: bool = False,
) -> tuple[tuple[str, ...], dict[str, str], dict[str, str]]:
    """Decide which columns are the variables: the named ones, or all that hold numbers.

    Returned with them are those that never change, and those in doubt, each with the reason.

    Ids, counters and years are left out unless they are named or in ``include`` (None: all of
    them). A column that is mostly numbers but not entirely is an error unless it is excluded:
    leaving it out silently would hide a typing mistake. Constants are left out as well, and an
    error where they are named, unless a column ``may_be_constant``.
    """
    if content.n_rows == 0:
        what_to_do = "Choose another sheet" if table.other_sheets else "Give a table with data"
        raise InvalidTableError(
            f"{table.label}: there is a header but no rows under it.\n{what_to_do}."
        )
    for name in (*(columns or ()), *exclude, *(include or ())):
        table.index(name)
    left_out = set(exclude)
    wished = None if include is None or columns else set(include)
    doubtful: dict[str, str] = {}
    wanted = [name for name in columns or table.names if name not in left_out]
    chosen, unreadable = [], []
    for name in wanted:
        column = content.column(name)
        if column.is_unreadable or (columns and column.kind in ("text", "empty")):
            unreadable.append(column)
        elif column.kind == "number" and column.doubt and wished is not None and name not in wished:
            doubtful[name] = column.doubt
        elif column.kind == "number" and (name or columns):
            chosen.append(name)
    if unreadable:
        raise no_numbers(table, unreadable)
    if len(set(chosen)) < len(chosen):
        twice = next(name for name, count in Counter(chosen).items() if count > 1)
        raise InvalidTableError(
            f"{table.label}: column {twice!r} is asked for twice.\nName each column once."
        )
    constants = {name: content.column(name).constant for name in chosen if not may_be_constant}
    constants = {name: why for name, why in constants.items() if why}
    if constants and columns is not None:
        name, why = next(iter(constants.items()))
        raise InvalidTableError(
            f"{table.label}: column {name!r} is {why}, and a constant has no correlation.\n"
            f"Leave it out: --exclude {shlex.quote(name)}"
        )
    varying = tuple(name for name in chosen if name not in constants)
    if len(varying) < 2:
        advice = "Check the separator and the header, or choose other columns."
        if columns:
            advice = "Name two or more columns that are to be variables."
        elif doubtful:
            advice = "To use columns that look like ids or years: --include NAME."
        elif table.other_sheets:
            listed = ", ".join(table.other_sheets[:8])
            advice = f"Choose another sheet (--sheet NAME): {listed}."
        reasons = {n: doubtful.get(n) or content.column(n).unusable(table) for n in wanted}
        usable = [name for name in varying if not reasons[name]]  # one value does not vary
        available = f"only {usable[0]!r}" if usable else "none"
        asked = [name for name in columns or table.names if name in left_out]
        reasons |= dict.fromkeys(asked, "as asked")
        unused = listing([f"{name} ({why})" for name, why in reasons.items() if why], quote="")
        raise InvalidTableError(
            f"{table.label}: at least two columns of numbers that vary are needed, and there is "
            f"{available}{f'; left out: {unused}' if unused else ''}.\n{advice}"
        )
    return varying, constants, {name: why for name, why in doubtful.items() if name}


def no_numbers(table: Table, columns: Sequence[ColumnProfile]) -> InvalidTableError:
    """Name all columns that cannot be read, with the first offending cell of each."""
    reasons = [f"{column.name!r} ({column.unusable(table)})" for column in columns]
    what = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
    problem = f"{what} cannot be read as numbers: {listing(reasons, 20, quote='')}."
    cells = [column.first_bad[1] for column in columns if column.first_bad is not None]
    advice = remedy(cells[0], table.decimal) if cells else "Correct it, or leave the column out."
    return InvalidTableError(f"{table.label}: {problem}\n{advice}")
