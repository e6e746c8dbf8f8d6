"""Columns of numbers that are hardly variables: ids, counters, years, dates and row weights.

They are decorrelated on request only, and the reason is stated.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array

ROW_WEIGHTS = "looks like row weights"
#: Rows that it takes before a pattern counts as one.
_ENOUGH = 5
#: Distinct values that are remembered at most; a column that has more counts as all different.
_REMEMBERED = 5_000
_CODE_DIGITS = 6
_YEARS = (1800, 2100)
#: Names of survey weights; a plain "weight" may be that of a body.
_WEIGHTS = re.compile(
    r"weights|[pfads]weights?|[a-z_]*w(gh|g)t[a-z0-9_]*|(sampl\w*|survey|final|design)_?w(eigh)?t\w*"
)
_ID_WORD = re.compile(
    "ids?|uid|uuid|guid|key|pk|code|nr|no|num|idx|index|row|rownum|rowid|record|serial|seq|account|"
    "customer|client|patient|respondent|subject|user|member|household|case|order|invoice|sku|isbn|"
    "ean|barcode|zip|zipcode|postcode|plz|phone|fips|gvkey|permno|cusip|isin"
)


class ColumnWatch:
    """Looks at the numbers of one column, batch by batch.

    Examples
    --------
    >>> watch = ColumnWatch()
    >>> watch.add(np.arange(1.0, 9.0))
    >>> watch.reason("n")
    'counts up in steps of 1'
    """

    def __init__(self) -> None:
        self.n = 0
        self.low, self.high = np.inf, -np.inf
        self.is_whole = self.has_step = self.is_month = self.is_day = self.rises = True
        self._last = self._step = np.nan
        self._seen: set[float] | None = set()  # None once a value came twice

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

    def reason(self, name: str) -> str:
        """Why the column is hardly a variable; empty where it may be one."""
        if self.n < _ENOUGH or self.low == self.high:
            return ""
        if self.has_step and np.isfinite(self._step) and self._step:
            way = "up" if self._step > 0 else "down"
            return f"counts {way} in steps of {abs(self._step):g}"
        if self.low >= 0 and _WEIGHTS.fullmatch(name.lower()):
            return ROW_WEIGHTS
        if not self.is_whole:
            return ""
        if _YEARS[0] <= self.low and self.high <= _YEARS[1]:
            return "looks like years"
        if self.is_day or self.is_month:
            return "looks like dates"
        if self.rises and self.n >= 2 * _ENOUGH:
            return "whole numbers that rise from row to row, like ids"
        if self._seen is not None and (self._is_dense or self._is_coded or _is_id(name)):
            return "whole numbers that are all different, like ids"
        return ""

    @property
    def _is_dense(self) -> bool:
        """Whether numbers drawn from this range at random would hardly all be different."""
        room = self.high - self.low + 1.0
        return self.low >= 0 and self.n * (self.n - 1) / (2.0 * room) > np.log(100.0)

    @property
    def _is_coded(self) -> bool:
        """Whether many different numbers all have the same six digits or more, as codes do."""
        digits = len(f"{self.low:.0f}")
        same = self.low >= 0 and len(f"{self.high:.0f}") == digits
        return same and digits >= _CODE_DIGITS and self.n >= 4 * _ENOUGH

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
        if self._seen is None or len(self._seen) > _REMEMBERED:
            return
        before = len(self._seen)
        self._seen.update(values.tolist())
        if len(self._seen) < before + len(values):
            self._seen = None


def _within(values: Array, last: int) -> NDArray[np.bool_]:
    return (values >= 1) & (values <= last)


def _is_id(name: str) -> bool:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return any(_ID_WORD.fullmatch(word.lower()) for word in words)
