"""Outputs in files: a table with its variables replaced, and the matrix T."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidArgumentError
from skcoral.tables.arrow_arrays import selected
from skcoral.tables.table import Batch, Table, complete_rows
from skcoral.tables.writing import output_format, table_writer

#: A column to write: its name, and the column that it copies or the number of its output.
Column = tuple[str, str | int]


def columns_with_outputs(
    names: Sequence[str], variables: Sequence[str], *, keep_sources: bool = False
) -> list[Column]:
    """The columns in their order, each variable replaced or followed by its output."""
    place = {name: k for k, name in enumerate(variables)}
    if not keep_sources:
        return [(name, place.get(name, name)) for name in names]
    out: list[Column] = []
    for name in names:
        out.append((name, name))
        if name in place:
            out.append((f"{name}_d", place[name]))
    twice = next((new for new, source in out if isinstance(source, int) and new in names), None)
    if twice is not None:
        raise InvalidArgumentError(
            f"An output would be called {twice!r}, and there is a column of that name.\n"
            "Rename that column, or leave out --keep-sources."
        )
    return out


def write_transformed(
    stream: BinaryIO,
    path: str,
    table: Table,
    names: Sequence[str],
    estimator: Any,
    *,
    columns: Sequence[Column],
    on_rows: Callable[[Any, Any], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    drop_incomplete: bool = False,
    numeric: Collection[str] = (),
) -> list[int]:
    """Write the rows of a table to a stream, the columns ``names`` transformed.

    The ending of ``path`` tells the format, and ``columns`` what is written; outputs are empty in
    rows with a missing value, unless these rows are dropped.
    ``on_rows`` is called with the variables of some rows and with their outputs, ``on_batch`` after
    each batch. Copied columns that are ``numeric`` are numbers in files that have types, whatever
    their spelling. Returns where the incomplete rows stand in the table.
    """
    writer = table_writer(stream, [name for name, _ in columns], path=path, like=table)
    is_text = path == "-" or output_format(path) in ("csv", "tsv")
    converted = set() if is_text else set(numeric)
    incomplete: list[int] = []
    for part in complete_rows(table, names, on_batch=on_batch):
        incomplete.extend(part.dropped)
        cells = dict(zip(table.names, part.batch.columns, strict=True))
        outputs = np.full((len(part.kept), len(estimator.result_.names)), np.nan)
        if len(part.values):
            named = hasattr(estimator, "feature_names_in_")
            rows = named_rows(part.values, names) if named else part.values
            outputs[part.kept] = new = np.asarray(estimator.transform(rows))
            if on_rows is not None:
                on_rows(rows, new)
        cells |= {name: table.numbers(cells[name])[0] for name in converted}
        written = part.kept if drop_incomplete else np.ones_like(part.kept)
        if written.any():
            made = ((outputs[:, c] if isinstance(c, int) else cells[c]) for _, c in columns)
            writer.write(
                [c[written] if isinstance(c, np.ndarray) else selected(c, written) for c in made]
            )
    writer.close()
    return incomplete


def write_matrix(
    stream: BinaryIO,
    path: str | Path,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Any,
    *,
    like: Table | None = None,
) -> None:
    """Write a matrix with names on both sides, those of its rows in a first column."""
    corner = "source"
    while corner in columns:
        corner += "_"
    names = [corner, *columns]
    writer = table_writer(stream, names, path=path, like=like)
    writer.write([list(rows), *np.asarray(values, dtype=np.float64).T])
    writer.close()
