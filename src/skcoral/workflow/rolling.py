"""Rolling windows over a file: each row by the model of its own window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skcoral.panels import Panel, rolling
from skcoral.panels.results import row_label
from skcoral.tables.matrices import check_rows
from skcoral.tables.writing import table_writer
from skcoral.workflow.dataset import Dataset


def roll(
    data: Dataset, settings: Mapping[str, Any], *, date: str | None = None, by: Sequence[str] = ()
) -> Panel:
    """Solve the windows of a table whose rows are in memory.

    ``settings`` are those of :func:`skcoral.panels.rolling`, ``date`` is the column of dates, in
    increasing order, and ``by`` are columns of groups with windows of their own.
    """
    import pandas as pd

    check_rows(data.matrix, data.table.label)
    rows = data.rows
    assert rows is not None  # they are asked for
    values = np.full((len(rows.usable), len(data.names)), np.nan)
    values[rows.usable] = rows.values
    # Messages name rows by their place in the file.
    places = pd.Index(sorted([*rows.places, *data.incomplete]), name=data.table.unit)
    frame = pd.DataFrame(values, places, list(data.names))
    for name in by:
        frame[name] = data.table.labels(name)
    if date is not None:
        frame[date] = data.table.cells(date)
    with data.progress("Rolling") as tell, data.naming():
        return rolling(
            frame,
            by=list(by) or None,
            on=date,
            callback=lambda done, total: tell(done / total),
            **settings,
        )


def write_rolled(data: Dataset, panel: Panel, stream: BinaryIO, path: str) -> None:
    """Write the table with its variables replaced by outputs, everything else as it came."""
    writer = table_writer(stream, data.table.names, path=path, like=data.table)
    outputs, start = panel.outputs[list(data.names)].to_numpy(), 0
    with data.progress("Writing") as tell:
        for batch in data.table.batches():
            made = outputs[start : start + len(batch.rows)].T
            cells = dict(zip(data.table.names, batch.columns, strict=True))
            writer.write(list((cells | dict(zip(data.names, made, strict=True))).values()))
            start += len(batch.rows)
            tell(batch.fraction)
    writer.close()


def write_windows(data: Dataset, panel: Panel, stream: BinaryIO, path: str | Path) -> None:
    """Write a row for each window: its group, the rows it ends and begins with, its figures."""
    columns = {name: np.asarray(cells) for name, cells in (panel.keys | panel.columns).items()}
    writer = table_writer(stream, list(columns), path=path, like=data.table)
    plain = (c if c.dtype.kind in "iuf" else list(map(row_label, c)) for c in columns.values())
    writer.write(list(plain))
    writer.close()
