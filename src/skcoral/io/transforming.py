"""A table with its variables replaced by their outputs, everything else untouched and in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from skcoral.io.tables import Batch, Table, complete_rows
from skcoral.io.writing import table_writer


def write_transformed(
    stream: BinaryIO,
    path: str,
    table: Table,
    names: Sequence[str],
    estimator: Any,
    *,
    on_rows: Callable[[Any, Any], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    escape_formulas: bool = False,
) -> tuple[int, list[int]]:
    """Write the complete rows of a table, the columns ``names`` transformed.

    Parameters
    ----------
    stream : binary file
        Where to write; the caller owns it.
    path : str
        Whose ending tells the format; see :func:`skcoral.io.writing.table_writer`.
    table : Table
        The rows.
    names : sequence of str
        The variables, in the order that the estimator was fitted on.
    estimator : CORAL
        Fitted.
    on_rows : callable, optional
        Called with the variables of some rows and with their outputs, as they are written.
    on_batch : callable, optional
        Called after each batch, for a progress bar.
    escape_formulas : bool, default False
        See :func:`skcoral.io.writing.table_writer`.

    Returns
    -------
    n_rows : int
        Rows written.
    dropped : list of int
        Where the incomplete rows, which are left out, stand in the table.
    """
    place = {name: k for k, name in enumerate(names)}
    writer = table_writer(
        stream,
        table.names,
        path=path,
        separator=table.separator,
        decimal=table.decimal,
        escape_formulas=escape_formulas,
    )
    n_rows = 0
    dropped: list[int] = []
    for part in complete_rows(table, names, on_batch=on_batch):
        dropped.extend(part.dropped)
        if len(part.values):
            rows = _rows(estimator, part.values, names)
            new = np.asarray(estimator.transform(rows))
            if on_rows is not None:
                on_rows(rows, new)
            n_rows += len(new)
            writer.write(
                [
                    new[:, place[name]] if name in place else _kept(cells, part.kept)
                    for name, cells in zip(table.names, part.batch.columns, strict=True)
                ]
            )
    writer.close()
    return n_rows, dropped


def _rows(estimator: Any, values: Any, names: Sequence[str]) -> Any:
    if not hasattr(estimator, "feature_names_in_"):
        return values
    import pandas as pd

    return pd.DataFrame(values, columns=list(names))


def _kept(cells: Any, kept: Any) -> Any:
    if kept.all():
        return cells
    if hasattr(cells, "filter"):
        import pyarrow as pa

        return cells.filter(pa.array(kept))
    return list(itertools.compress(cells, kept))
