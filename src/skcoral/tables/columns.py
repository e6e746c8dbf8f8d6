"""The description of columns: what each of them holds, and what speaks against it as a variable.

Ids, counters, years, dates and row weights are decorrelated on request only, and the reason is
stated. Columns of few whole numbers, such as dummies, are variables, and the answer says what
becomes of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from skcoral.core.arrays import EPS, Array, Mask
from skcoral.core.display import shortened
from skcoral.tables.cells import (
    Marks,
    is_like_a_number,
    labelled_totals,
    plain_cells,
    selected,
    shown,
)
from skcoral.tables.table import Table

Kind = Literal["number", "text", "mixed", "empty"]

#: Rows that may be labelled as totals; where there are more, the label means something else.
_MOST_TOTALS = 2
#: Rows that it takes besides a total that has no label, and how well their sums must agree.
_FEWEST_PARTS, _ROUNDING_OF_TOTALS = 3, 1e-5
#: So many cells that are no numbers tell whether a column is text or numbers spelled strangely.
_SAMPLE = 100
#: Rows that it takes before a pattern counts as one.
_ENOUGH = 5
#: So many different whole numbers may be codes, where each occurs ten times on average.
_MOST_CODES = 10
#: Distinct values that are remembered at most; a column that has more counts as all different.
_REMEMBERED = 5_000
_CODE_DIGITS = 6
_YEARS = (1800, 2100)
#: Names of survey weights; a plain "weight" or "wt" may be that of a body.
_WEIGHTS = re.compile(
    r"weights|[pfads]weights?|[a-z_]*w(gh|g)t[a-z0-9_]*|(sampl\w*|survey|final|design)_?w(eigh)?t\w*"
)
_ID_WORD = re.compile(
    "ids?|uid|uuid|guid|key|pk|code|nr|no|num|idx|index|row|rownum|rowid|record|serial|seq|account|"
    "customer|client|patient|respondent|subject|user|member|household|case|order|invoice|sku|isbn|"
    "hhid|psu|stratum|strata|cluster|ean|barcode|zip|zipcode|postcode|plz|phone|fips|gvkey|permno|cusip|isin"
)


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
        self.has_leading_zeros = False  # as codes have, which are no numbers to be written
        self.sums = np.zeros(2)  # of the numbers, and of their sizes
        self.ends = np.full(2, np.nan)  # the numbers of the first and of the last row
        # Of the finite numbers, as long as no cell is anything else:
        self.low, self.high = np.inf, -np.inf
        self.is_whole = self._has_step = self._is_month = self._is_day = self._rises = True
        self._last = self._step = np.nan
        self._values: set[float] = set()  # the first ones
        self._repeats = False  # whether a value came twice

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
            self._watch(finite)
            if self.is_whole and table.unit == "line" and not self.has_leading_zeros:
                codes = pc.match_substring_regex(cells, r"^\s*0\d")
                self.has_leading_zeros = bool(pc.any(codes).as_py())
        if n_missing and self.n_numbers >= self.n_bad:
            texts = (str(c).strip() for c in plain_cells(selected(cells, missing)) if c is not None)
            self.marks.update(shortened(text) for text in texts if text)
        if self.first_infinite is None and np.isinf(values).any():
            self.first_infinite = int(rows[int(np.argmax(np.isinf(values)))])

    def _watch(self, values: Array) -> None:
        """Look for what tells ids, counters, dates and codes from measurements."""
        if not len(values):
            return
        self.is_whole = self.is_whole and bool((values == np.floor(values)).all())
        steps = np.diff(values if np.isnan(self._last) else np.r_[self._last, values])
        self._rises = self._rises and bool((steps > 0).all())
        if self._has_step and len(steps):
            self._check_step(steps, np.abs(values).max())
        self._last = float(values[-1])
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        if self.is_whole:
            self._check_dates(values)
            self._check_repeats(values)

    def _check_step(self, steps: Array, largest: float) -> None:
        self._step = first = float(steps[0]) if np.isnan(self._step) else self._step
        rounding = 1e-9 * max(abs(first), largest * 1e-3)
        self._has_step = first != 0 and bool((np.abs(steps - first) <= rounding).all())

    def _check_dates(self, values: Array) -> None:
        years = (values // 100 >= _YEARS[0]) & (values // 100 <= _YEARS[1])
        self._is_month = self._is_month and bool((years & _within(values % 100, 12)).all())
        years = (values // 10_000 >= _YEARS[0]) & (values // 10_000 <= _YEARS[1])
        days = years & _within(values // 100 % 100, 12) & _within(values % 100, 31)
        self._is_day = self._is_day and bool(days.all())

    def _check_repeats(self, values: Array) -> None:
        before = len(self._values)
        if before <= (_MOST_CODES if self._repeats else _REMEMBERED):
            self._values.update(values.tolist())
            self._repeats = self._repeats or len(self._values) < before + len(values)

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
        low, high = self.low, self.high
        if self.kind != "number" or self.n_numbers < 2 or self.first_infinite is not None:
            return ""
        if high - low > 8 * EPS * max(abs(low), abs(high)):
            return ""
        # Long codes are equal only in the digits that a float has.
        return f"always {low:g}" + (" in its first 15 digits" if abs(low) >= 2**53 else "")

    @cached_property
    def doubt(self) -> str:
        """Why a column of numbers is hardly a variable; empty where it may be one."""
        if self.kind != "number" or self.constant or self.n_numbers < _ENOUGH:
            return ""
        if self._has_step and np.isfinite(self._step):
            return f"counts {'up' if self._step > 0 else 'down'} in steps of {abs(self._step):g}"
        if self.may_be_weights:
            return "looks like row weights"
        if not self.is_whole:
            return ""
        if _YEARS[0] <= self.low and self.high <= _YEARS[1]:
            return "looks like years"
        if self._is_day or self._is_month:
            return "looks like dates"
        if not self._repeats and (self._is_dense or self._is_coded or _is_id(self.name)):
            return "whole numbers that are all different, like ids"
        return ""

    @property
    def may_be_weights(self) -> bool:
        """Whether a column of this name and without negative numbers may weight the rows."""
        return self.low >= 0 and _WEIGHTS.fullmatch(self.name.lower()) is not None

    @property
    def n_codes(self) -> int:
        """How many different whole numbers there are, where these are few; 2 for a dummy."""
        n = len(self._values)
        return n if self.is_whole and 2 <= n <= _MOST_CODES and self.n_numbers >= 10 * n else 0

    @property
    def repeats_ids(self) -> bool:
        """Whether whole numbers with the name of an id come more than once, as in a panel."""
        repeats = self._repeats and self.is_whole and not self.n_codes
        return repeats and self.low >= 0 and _is_id(self.name)

    @property
    def is_dummy(self) -> bool:
        """Whether there are only zeros and ones."""
        return self.n_codes == 2 and self._values == {0.0, 1.0}

    @property
    def _is_dense(self) -> bool:
        """Whether numbers drawn from this range at random would hardly all be different."""
        n, room = self.n_numbers, self.high - self.low + 1.0
        if self._rises:  # as sums and populations do: they leave most numbers out, and ids few
            return n >= 2 * _ENOUGH and n > 0.5 * room
        return self.low >= 0 and n * (n - 1) / (2.0 * room) > np.log(100.0)

    @property
    def _is_coded(self) -> bool:
        """Whether many different numbers all have the same six digits or more, as codes do."""
        digits = len(f"{self.low:.0f}")
        same = self.low >= 0 and len(f"{self.high:.0f}") == digits
        many = digits >= _CODE_DIGITS and self.n_numbers >= 4 * _ENOUGH
        return same and many and not self._rises

    @property
    def is_unreadable(self) -> bool:
        """Whether this is a column of numbers with cells that are no finite numbers."""
        return self.kind == "mixed" or (self.kind == "number" and self.first_infinite is not None)

    @property
    def is_written_as_number(self) -> bool:
        """Whether a file with types holds numbers in place of the texts of this column.

        Codes stay text: those with leading zeros, and those too long for a float's digits.
        """
        size = max(abs(self.low), abs(self.high))
        is_code = self.has_leading_zeros or (self.is_whole and size >= 2**53)
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
    """What a table holds: its number of rows, and its columns by name, in the order of the file."""

    n_rows: int
    columns: Mapping[str, ColumnProfile]


def profile(table: Table, tell: Callable[[float], None] = lambda fraction: None) -> TableProfile:
    """Read a table once and say what each column holds; ``tell`` is given the fraction read.

    Rows that are totals of the others are left out from then on, and the table read again.
    """
    columns = [ColumnProfile(name) for name in table.names]
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
    return TableProfile(n_rows, {column.name: column for column in columns})


def _is_total(columns: Sequence[ColumnProfile], end: int) -> bool:
    """Whether all numbers of the first or the last row are the sums of the others, to rounding."""
    numeric = [c for c in columns if c.kind == "number" and not (c.doubt or c.constant)]
    if len(numeric) < 2 or min(c.n_numbers for c in numeric) < _FEWEST_PARTS + 1:
        return False
    values = np.array([c.ends[end] for c in numeric])
    sums, sizes = np.array([c.sums for c in numeric]).T
    equal = np.abs(sums - 2.0 * values) <= _ROUNDING_OF_TOTALS * sizes
    return bool(equal.all() and (values != 0).sum() >= 2)


def _within(values: Array, last: int) -> Mask:
    return (values >= 1) & (values <= last)


def _is_id(name: str) -> bool:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return any(_ID_WORD.fullmatch(part.lower()) for part in parts)
