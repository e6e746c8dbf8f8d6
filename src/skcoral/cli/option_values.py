"""Options whose values have a grammar of their own: floors, supports, shrinkage, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skcoral._requirements import whole_number
from skcoral.cli import console
from skcoral.cli.run import UsageError
from skcoral.correlation import check_shrinkage
from skcoral.tables.reading import open_table


def floors_by_name(
    values: Sequence[str] | None, names: Sequence[str]
) -> float | dict[str, float] | None:
    """Turn ``0.85`` and ``name=0.9`` into floors; a plain number is the floor of all others.

    Examples
    --------
    >>> floors_by_name(["0.8", "b=0.9"], ["a", "b"])
    {'a': 0.8, 'b': 0.9}
    """
    common: float | None = None
    own: dict[str, float] = {}
    for value in values or ():
        name, equals, number = value.rpartition("=")
        try:
            floor = float(number)
        except ValueError:
            raise UsageError(
                f"--rho-min {value}: {number!r} is not a number.\n"
                "Give a number in [0, 1], or name=number for one variable."
            ) from None
        if not equals:
            if common is not None:
                raise UsageError(
                    "--rho-min was given two numbers for all variables.\n"
                    "Give one, and name=number for single variables."
                )
            common = floor
            continue
        if name not in names:
            raise UsageError(
                f"--rho-min {value}: {name!r} is not one of the variables.\n"
                f"They are: {console.listing(names)}."
            )
        if name in own:
            raise UsageError(
                f"--rho-min was given two numbers for {name!r}.\nGive one number for each variable."
            )
        own[name] = floor
    if not own:
        return common
    if common is None:
        return own
    return {name: own.get(name, common) for name in names}


def read_shrinkage(text: str | None) -> float | str | None:
    """Turn ``--shrinkage`` into an intensity; "auto" and None are left as they are."""
    if text is None or text == "auto":
        return text
    try:
        return check_shrinkage(float(text))
    except ValueError:
        raise UsageError(
            f"--shrinkage must be 'auto' or a number in (0, 1], not {text!r}.\n"
            "Example: --shrinkage auto"
        ) from None


def read_block_length(text: str | None) -> int | str | None:
    """Turn ``--block-length`` into a number of rows; "auto" and None are left as they are."""
    if text is None or text == "auto":
        return text
    number = whole_number(text)
    if not number:
        raise UsageError(
            f"--block-length must be 'auto' or a whole number of rows, not {text!r}.\n"
            "Example: --block-length auto"
        )
    return number


def read_support(value: str | None, names: Sequence[str]) -> Any:
    """Turn ``--support`` into what the solver takes: a limit on |correlation|, or a mask.

    A file is either a square table of 0 and 1 (first column: sources; header: outputs) or two
    columns of names, one allowed pair per row.
    """
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return _support_file(value, names)


def _support_file(path: str, names: Sequence[str]) -> Any:
    from skcoral.support.pattern import pattern

    frame = open_table(path).to_frame()
    is_text = [dtype.kind == "O" for dtype in frame.dtypes]
    if is_text == [True, True]:
        pairs = list(frame.itertuples(index=False, name=None))
        if set(frame.columns) <= set(names):  # no header: the first line is a pair as well
            pairs.append(tuple(frame.columns))
        return pattern(pairs, names)
    if len(is_text) < 2 or not is_text[0] or any(is_text[1:]):
        raise UsageError(
            f"{path}: this is not a support: a column of names and then one column of 0 and 1 per "
            "output are wanted, or two columns of names.\n"
            "Write the sources in the first column and the outputs in the header."
        )
    frame = frame.set_index(frame.columns[0])
    gaps = np.argwhere(frame.isna().to_numpy())
    if gaps.size:
        source, output = frame.index[gaps[0, 0]], frame.columns[gaps[0, 1]]
        raise UsageError(
            f"{path}: nothing is said about source {source!r} of output {output!r}.\n"
            "Fill every cell with 0 or 1."
        )
    return pattern(frame, names)
