"""Options whose values have a grammar of their own: floors and supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skcoral.cli import console
from skcoral.cli.run import UsageError
from skcoral.tables.columns import profile
from skcoral.tables.reading import open_table


def floors_by_name(values: Sequence[str], names: Sequence[str]) -> float | dict[str, float] | None:
    """Turn ``0.85`` and ``name=0.9`` into floors; a plain number is the floor of all others.

    Examples
    --------
    >>> floors_by_name(["0.8", "b=0.9"], ["a", "b"])
    {'a': 0.8, 'b': 0.9}
    """
    common: float | None = None
    own: dict[str, float] = {}
    for value in values:
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
        own[name] = floor
    if not own:
        return common
    if common is None:
        return own
    return {name: own.get(name, common) for name in names}


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

    table = open_table(path)
    content = profile(table)
    columns = [table.cells(name) for name in table.names]
    kinds = [column.kind for column in content.columns]
    if len(kinds) == 2 and kinds == ["text", "text"]:
        return pattern(list(zip(*columns, strict=True)), names)
    if len(kinds) < 2 or kinds[0] != "text" or any(kind != "number" for kind in kinds[1:]):
        raise UsageError(
            f"{path}: this is not a support: a column of names and then one column of 0 and 1 per "
            "output are wanted, or two columns of names.\n"
            "Write the sources in the first column and the outputs in the header."
        )
    import pandas as pd

    entries = np.column_stack([table.numbers(cells)[0] for cells in columns[1:]])
    gaps = np.argwhere(np.isnan(entries))
    if gaps.size:
        source, output = columns[0][gaps[0, 0]], table.names[1 + gaps[0, 1]]
        raise UsageError(
            f"{path}: nothing is said about source {source!r} of output {output!r}.\n"
            "Fill every cell with 0 or 1."
        )
    return pattern(pd.DataFrame(entries, index=columns[0], columns=table.names[1:]), names)
