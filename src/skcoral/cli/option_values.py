"""Options whose values have a grammar of their own: floors and supports."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skcoral.cli.run import UsageError
from skcoral.core.display import printable
from skcoral.tables.reading import open_table


def floors_by_name(
    values: Sequence[str] | None, names: Sequence[str]
) -> float | dict[str, float] | None:
    """Turn ``0.85`` and ``name=0.9`` into floors; a plain number is the floor of all others."""
    found: dict[str, float] = {}
    for value in values or ():
        name, equals, number = value.rpartition("=")
        if name in found:
            raise UsageError(
                f"--rho-min was given two numbers for {repr(name) if name else 'all variables'}.\n"
                "Give one number for all, and name=number for single variables."
            )
        try:
            if equals and not name:
                raise ValueError("no variable is named")
            found[name] = float(number)
        except ValueError:
            raise UsageError(
                f"--rho-min must be a number or name=number, not {value!r}.\n"
                "Give a number in [0, 1], or name=number for one variable."
            ) from None
    common = found.pop("", None)
    if not found or common is None:
        return found or common
    return dict.fromkeys(names, common) | found


def read_support(value: str | None, names: Sequence[str]) -> Any:
    """Turn ``--support`` into what the solver takes: a limit on |correlation|, or a mask.

    A file is a square table of 0 and 1 (first column: sources; header: outputs), two columns of
    names with one allowed pair per row, or the columns ``source`` and ``output`` with the interval
    of the coefficient in ``lower`` and ``upper``.
    """
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        limit = float(value)
        if 0.0 <= limit <= 1.0:
            return limit
    if not Path(value).is_file():
        raise UsageError(
            f"--support must be a number in [0, 1] or a file, not {value!r}.\n"
            "Examples: --support 0.15, --support allowed.csv"
        )
    from skcoral.solvers.support.pattern import is_long, pattern

    frame = open_table(value).to_frame()
    if is_long(frame):
        return frame
    is_text = [dtype.kind == "O" for dtype in frame.dtypes]
    if is_text == [True, True]:
        pairs = list(frame.itertuples(index=False, name=None))
        if set(frame.columns) <= set(names):  # no header: the first line is a pair as well
            pairs.append(tuple(frame.columns))
        return pattern(pairs, names)
    if len(is_text) < 2 or not is_text[0] or any(is_text[1:]):
        raise UsageError(
            f"{printable(value)}: this is not a support: a column of names and then one column of "
            "0 and 1 per output are wanted, two columns of names, or the columns source, output, "
            "lower and upper.\n"
            "Write the sources in the first column and the outputs in the header."
        )
    return pattern(frame.set_index(frame.columns[0]), names)
