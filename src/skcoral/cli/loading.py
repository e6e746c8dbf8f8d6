"""From the options of a command to the variables of its file, their floors and their support."""

from __future__ import annotations

import contextlib
import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skcoral.cli import console
from skcoral.cli.parser import UsageError
from skcoral.core.display import printable
from skcoral.tables.notes import Outcome
from skcoral.tables.reading import open_table
from skcoral.workflow.dataset import Dataset, Request
from skcoral.workflow.opening import OpenedFile, open_file

#: Columns whose pairs are all compared, and whose curve is computed: of more, it takes minutes.
MOST_COLUMNS = 10_000


def open_source(options: Namespace) -> OpenedFile:
    """Open the file of a command and look at its columns."""
    separator = options.separator
    return open_file(
        options.file,
        matrix=getattr(options, "matrix", None),
        progress=console.progress,
        separator="\t" if separator in ("tab", "\\t") else separator,
        decimal=options.decimal,
        encoding=options.encoding,
        sheet=options.sheet,
        na=tuple(options.na or ()),
    )


def check_made(path: Path, what: str) -> None:
    """Refuse a file that ``coral fit`` makes, a model or certificate, where it does not exist."""
    if not path.is_file():
        raise UsageError(
            f"{printable(str(path))}: there is no such {what} file.\n"
            f"Make one with: coral fit TABLE --{what} FILE"
        )


def load(options: Namespace, **uses: Any) -> Dataset:
    """Open a table or a matrix and choose the variables; ``uses`` are those of other columns."""
    opened = open_source(options)
    known = opened.table.names if opened.matrix is None else opened.matrix.names
    named: dict[str, Any] = {
        name: _split(getattr(options, name), known) for name in ("columns", "exclude", "include")
    }
    uses |= {
        name: getattr(options, name)
        for name in ("target", "weights", "covariance")
        if hasattr(options, name)
    }
    if options.columns and not named["columns"]:
        raise UsageError("--columns names no column.\nName two or more, or leave it out for all.")
    if options.columns:
        named["columns"] = tuple(dict.fromkeys(named["columns"] + named["include"]))
    return opened.choose(Request(**named, **uses))


def is_large(data: Dataset) -> bool:
    """Whether there are too many columns for what compares all pairs of them, or solves often."""
    return len(data.names) > MOST_COLUMNS


def check_columns(data: Dataset, what: str, remedy: str) -> None:
    """Refuse a table with too many columns for ``what``."""
    if is_large(data):
        raise UsageError(
            f"{data.table.label}: {what} takes up to {MOST_COLUMNS:,} columns, and there are "
            f"{len(data.names):,}.\n{remedy}, or choose fewer columns (--columns)."
        )


def _split(values: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Names given one per option or separated by commas; a column with a comma is kept whole."""
    names: list[str] = []
    for value in values or ():
        parts = (part.strip() for part in value.split(","))
        names += [value] if value in known else filter(None, parts)
    return tuple(names)


def notes(data: Dataset, outcome: Outcome = "unused") -> list[str]:
    """What was asked, assumed and left out: printed next to every answer."""
    how = ""
    if data.doubtful:
        how = f"To use one: --include {shlex.quote(next(iter(data.doubtful)))}."
        columns = data.content.columns
        weights = [name for name in data.doubtful if columns[name].may_be_weights]
        if weights and data.request.weights is None:
            how += f" To weight the rows: --weights {shlex.quote(weights[0])}."
    return [*data.choices(), *data.doubts(how, outcome)]


def record(data: Dataset) -> dict[str, Any]:
    """What an answer is about, for machines."""
    return {
        "file": data.table.label,
        "rows": data.estimate.n_rows or None,  # 0 where the file holds a matrix
        "incomplete_rows": data.incomplete,
        "notes": notes(data),
        "constant": list(data.constant),
        "target": data.request.target,
    }


def floors_by_name(
    values: Sequence[str] | None, names: Sequence[str]
) -> float | dict[str, float] | None:
    """Turn ``0.85`` and ``name=0.9`` into floors; a plain number is the floor of all others."""
    floors: dict[str, float] = {}
    for value in values or ():
        name, equals, number = value.rpartition("=")
        if name in floors:
            raise UsageError(
                f"--rho-min was given two numbers for {repr(name) if name else 'all variables'}.\n"
                "Give one number for all, and name=number for single variables."
            )
        try:
            if equals and not name:
                raise ValueError("no variable is named")
            floors[name] = float(number)
        except ValueError:
            raise UsageError(
                f"--rho-min must be a number or name=number, not {value!r}.\n"
                "Give a number in [0, 1], or name=number for one variable."
            ) from None
    common = floors.pop("", None)
    if not floors or common is None:
        return floors or common
    return dict.fromkeys(names, common) | floors


def read_support(value: str | None) -> Any:
    """Turn ``--support`` into what the solver takes: a limit on |correlation|, or a table.

    The table has a row for each source, a column for each output, and cells of 0 and 1; or the
    columns ``source`` and ``output`` with one allowed pair per row, and the interval of the
    coefficient in ``lower`` and ``upper``.
    """
    from skcoral.solvers.support.pattern import is_long

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
    frame = open_table(value).to_frame()
    # Pairs are taken as they are; a table of 0 and 1 has its sources in the first column.
    return frame if is_long(frame) else frame.set_index(frame.columns[0])
