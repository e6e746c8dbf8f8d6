"""Which rows make up each window, and which window each row belongs to.

A window ends at a row and reaches back over a number of rows, over a span of time, or to the
beginning. Rows with missing values are no part of it. With a lag, a row belongs to a window that
ended that many rows earlier, so that its output is made of the past alone.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.validation import check_count, shown_value
from skcoral.exceptions import InvalidArgumentError, InvalidTableError

_FAR = 2**40  # rows: further than any table goes


@dataclass(frozen=True)
class Rule:
    """How windows are cut: ``rows`` or a ``span`` of time back, every ``step`` rows.

    With neither, all rows of a group are one window, which every row belongs to.
    """

    min_rows: int
    rows: int | None = None
    span: int | None = None  # in nanoseconds; it needs the time of each row
    expanding: bool = False
    step: int = 1
    lag: int = 0


def rule(
    window: Any, p: int, *, expanding: bool, step: int, lag: int, min_rows: int | None
) -> Rule:
    """Validate the options, which are those of :func:`skcoral.panels.rolling`."""
    rows = span = None
    if isinstance(window, str | np.timedelta64) or hasattr(window, "total_seconds"):
        span = _nanoseconds(window)
        least = p + 1
    else:
        rows = min(check_count("window", window, minimum=2), _FAR)
        least = rows
    step = min(check_count("step", step), _FAR)
    least = least if min_rows is None else check_count("min_rows", min_rows, minimum=2)
    if rows is not None and not expanding and least > rows:
        raise InvalidArgumentError(f"min_rows={least} rows never fit into a window of {rows}.")
    lag = min(check_count("lag", lag, minimum=0), _FAR)
    return Rule(least, rows, span, expanding, step, lag)


@dataclass
class Windows:
    """The windows of all groups."""

    first: Any  # row that each window begins with, incomplete ones included
    last: Any  # row that it ends with
    starts: Any  # the same among the complete rows
    ends: Any  # exclusive
    long_enough: Any  # which windows have at least ``min_rows`` complete rows
    of_row: Any  # the window of each row; -1 before there is one
    group: Any  # the group of each window, in increasing order


def cut(complete: Any, times: Any, rule: Rule, groups: Sequence[slice]) -> Windows:
    """Cut rows that are sorted by group into windows of ``complete`` ones.

    ``times`` are nanoseconds, where the rule needs them.
    """
    seen = np.concatenate([[0], np.cumsum(complete)])
    begins, ends, of_rows = [], [], []
    count = 0
    for part in groups:
        part_times = None if times is None else times[part]
        begin, end, of_row = _cut_group(complete[part], part_times, rule)
        begins.append(begin + part.start)
        ends.append(end + part.start)
        of_rows.append(np.where(of_row >= 0, of_row + count, -1))
        count += len(end)
    nothing = [np.empty(0, dtype=np.intp)]
    first, last, of_row = (np.concatenate(side or nothing) for side in (begins, ends, of_rows))
    starts, stops = seen[first], seen[last + 1]
    group = np.repeat(np.arange(len(ends)), [len(of_group) for of_group in ends])
    return Windows(first, last, starts, stops, stops - starts >= rule.min_rows, of_row, group)


def _cut_group(complete: Any, times: Any, rule: Rule) -> tuple[Any, Any, Any]:
    """Rows that the windows of one group begin and end with, and the window of each row."""
    n = len(complete)
    row = np.arange(n)
    if rule.rows is None and rule.span is None:
        ends = row[n - 1 :]
        return np.zeros_like(ends), ends, np.zeros(n, dtype=np.intp)
    seen = np.concatenate([[0], np.cumsum(complete)])
    begin = _first_rows(n, times, rule)
    usable = np.flatnonzero(seen[row + 1] - seen[begin] >= rule.min_rows)
    ends = row[usable[0] :: rule.step] if len(usable) else row[:0]
    return begin[ends], ends, np.searchsorted(ends, row - rule.lag, side="right") - 1


def _first_rows(n: int, times: Any, rule: Rule) -> Any:
    """The first row of the window that would end with each of ``n`` rows of a group."""
    if rule.expanding:
        return np.zeros(n, dtype=np.intp)
    if rule.span is not None:
        return np.searchsorted(times, times - rule.span, side="right")
    return np.maximum(np.arange(n) - (rule.rows or 0) + 1, 0)


def _nanoseconds(span: Any) -> int:
    import pandas as pd

    try:
        length = int(pd.Timedelta(span).as_unit("ns").value)
        if isinstance(span, str) and not any(c.isalpha() or c == ":" for c in span):
            raise ValueError("there is no unit")  # pandas counts nanoseconds
    except ValueError as error:
        raise InvalidArgumentError(
            "window must be a number of rows or a span of time such as '90D' or '12h'; got "
            f"{shown_value(span)}."
        ) from error
    if length <= 0:
        raise InvalidArgumentError(f"window must be a span above zero; got {shown_value(span)}.")
    return length


def read_dates(cells: Any, name: str) -> Any:
    """Dates, or text that can be read as dates in one way, as nanoseconds; none may be missing."""
    import pandas as pd

    try:
        if not str(getattr(cells, "dtype", "")).startswith("datetime"):
            cells = _dates_of_cells(cells, name)
        dates = pd.DatetimeIndex(cells)
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        if "timezones" in reason:
            reason = "times have different offsets from UTC; write all of them in UTC"
        raise InvalidTableError(
            f"column {name!r} does not hold dates: {reason}\nWrite dates as 2024-12-31."
        ) from error
    if dates.hasnans:
        raise InvalidTableError(f"column {name!r} has rows without a date: fill or drop them.")
    return dates.as_unit("ns").asi8


def _dates_of_cells(cells: Any, name: str) -> Any:
    import pandas as pd

    texts = pd.Series([_in_one_reading(cell) for cell in cells], dtype=object)
    dates = _parsed(texts)
    if dates.dtype == object:  # as pandas 2 keeps times of several zones
        raise ValueError("Mixed timezones detected.")
    other = texts[~texts.astype(str).str.match(r"\s*\d{4}") & dates.notna()]
    unclear = other[_parsed(other) != _parsed(other, dayfirst=True)]
    if len(unclear):
        raise InvalidTableError(
            f"column {name!r} has dates whose day and month cannot be told apart, such as "
            f"{str(unclear.iloc[0])!r}.\nWrite dates as 2024-12-31."
        )
    return dates


def _in_one_reading(cell: Any) -> Any:
    """Years as spreadsheets and data frames write them (1935.0); dots come behind a day first."""
    text = str(cell).strip()
    if year := re.fullmatch(r"(\d{4})\.0+", text):
        return year[1]
    if dotted := re.fullmatch(r"(\d\d?)\.(\d\d?)\.(\d{4})(.*)", text):
        day, month, year_of_day, time = dotted.groups()
        return f"{year_of_day}-{month:0>2}-{day:0>2}{time}"
    return cell


def _parsed(texts: Any, **how: Any) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about dates that can be read in one way only
        return pd.to_datetime(texts, format="mixed", **how)
