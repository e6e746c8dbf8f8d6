"""Columns of dates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from skcoral.exceptions import InvalidTableError


def read_dates(cells: Sequence[Any], name: str) -> Any:
    """The cells of the column ``name`` as dates; what can be read in two ways is an error."""
    import pandas as pd

    texts = pd.Series(cells, dtype=object)
    try:
        dates = _parsed(texts)
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        if "timezones" in reason:
            reason = "times have different offsets from UTC; write all of them in UTC"
        raise InvalidTableError(
            f"column {name!r} does not hold dates: {reason}\nWrite dates as 2024-12-31."
        ) from error
    other = texts[~texts.astype(str).str.match(r"\s*\d{4}") & dates.notna()]
    unclear = other[_parsed(other) != _parsed(other, dayfirst=True)]
    if len(unclear):
        raise InvalidTableError(
            f"column {name!r} has dates whose day and month cannot be told apart, such as "
            f"{str(unclear.iloc[0])!r}.\nWrite dates as 2024-12-31."
        )
    return dates


def _parsed(texts: Any, **how: Any) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about dates that can be read in one way only
        return pd.to_datetime(texts, format="mixed", **how)
