"""The roles of columns of numbers: ids, counters, years, dates and row weights are no variables.

They are decorrelated on request only, and the reason is stated. Columns of few whole numbers, such
as dummies, are variables, and the answer says what becomes of them.
"""

from __future__ import annotations

import re

import numpy as np

from skcoral.core.arrays import Array, Mask

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


class ColumnWatch:
    """Looks at the numbers of one column, batch by batch."""

    def __init__(self) -> None:
        self.n = 0
        self.low, self.high = np.inf, -np.inf
        self.is_whole = self.has_step = self.is_month = self.is_day = self.rises = True
        self._last = self._step = np.nan
        self._values: set[float] = set()  # the first ones
        self._repeats = False  # whether a value came twice

    def add(self, values: Array) -> None:
        """Add the numbers of some rows, none of them missing or infinite."""
        if not len(values):
            return
        self.is_whole = self.is_whole and bool((values == np.floor(values)).all())
        steps = np.diff(values if np.isnan(self._last) else np.r_[self._last, values])
        self.rises = self.rises and bool((steps > 0).all())
        if self.has_step and len(steps):
            self._check_step(steps, np.abs(values).max())
        self._last = float(values[-1])
        self.n += len(values)
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        if self.is_whole:
            self._check_dates(values)
            self._check_repeats(values)

    def doubt(self, name: str) -> str:
        """Why the column is hardly a variable; empty where it may be one."""
        if self.n < _ENOUGH or self.low == self.high:
            return ""
        if self.has_step and np.isfinite(self._step) and self._step:
            return f"counts {'up' if self._step > 0 else 'down'} in steps of {abs(self._step):g}"
        if self.may_be_weights(name):
            return "looks like row weights"
        if not self.is_whole:
            return ""
        if _YEARS[0] <= self.low and self.high <= _YEARS[1]:
            return "looks like years"
        if self.is_day or self.is_month:
            return "looks like dates"
        if not self._repeats and (self._is_dense or self._is_coded or _is_id(name)):
            return "whole numbers that are all different, like ids"
        return ""

    def may_be_weights(self, name: str) -> bool:
        """Whether a column of this name and without negative numbers may weight the rows."""
        return self.low >= 0 and _WEIGHTS.fullmatch(name.lower()) is not None

    @property
    def n_codes(self) -> int:
        """How many different whole numbers there are, where these are few; 2 for a dummy."""
        n = len(self._values)
        return n if self.is_whole and 2 <= n <= _MOST_CODES and self.n >= 10 * n else 0

    def repeats_ids(self, name: str) -> bool:
        """Whether whole numbers with the name of an id come more than once, as in a panel."""
        repeats = self._repeats and self.is_whole and not self.n_codes
        return repeats and self.low >= 0 and _is_id(name)

    @property
    def is_dummy(self) -> bool:
        """Whether there are only zeros and ones."""
        return self.n_codes == 2 and self._values == {0.0, 1.0}

    @property
    def _is_dense(self) -> bool:
        """Whether numbers drawn from this range at random would hardly all be different."""
        room = self.high - self.low + 1.0
        if self.rises:  # as sums and populations do: they leave most numbers out, and ids few
            return self.n >= 2 * _ENOUGH and self.n > 0.5 * room
        return self.low >= 0 and self.n * (self.n - 1) / (2.0 * room) > np.log(100.0)

    @property
    def _is_coded(self) -> bool:
        """Whether many different numbers all have the same six digits or more, as codes do."""
        digits = len(f"{self.low:.0f}")
        same = self.low >= 0 and len(f"{self.high:.0f}") == digits
        many = digits >= _CODE_DIGITS and self.n >= 4 * _ENOUGH
        return same and many and not self.rises

    def _check_step(self, steps: Array, largest: float) -> None:
        self._step = first = float(steps[0]) if np.isnan(self._step) else self._step
        rounding = 1e-9 * max(abs(first), largest * 1e-3)
        self.has_step = first != 0 and bool((np.abs(steps - first) <= rounding).all())

    def _check_dates(self, values: Array) -> None:
        years = (values // 100 >= _YEARS[0]) & (values // 100 <= _YEARS[1])
        self.is_month = self.is_month and bool((years & _within(values % 100, 12)).all())
        years = (values // 10_000 >= _YEARS[0]) & (values // 10_000 <= _YEARS[1])
        days = years & _within(values // 100 % 100, 12) & _within(values % 100, 31)
        self.is_day = self.is_day and bool(days.all())

    def _check_repeats(self, values: Array) -> None:
        before = len(self._values)
        if before <= (_MOST_CODES if self._repeats else _REMEMBERED):
            self._values.update(values.tolist())
            self._repeats = self._repeats or len(self._values) < before + len(values)


def _within(values: Array, last: int) -> Mask:
    return (values >= 1) & (values <= last)


def _is_id(name: str) -> bool:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return any(_ID_WORD.fullmatch(part.lower()) for part in parts)
