"""A table with its variables replaced by their outputs, everything else untouched and in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from skcoral.exceptions import InvalidArgumentError
from skcoral.tables.sheets import Sheet
from skcoral.tables.table import Batch, Table, complete_rows
from skcoral.tables.writing import ExcelWriter, table_writer


@dataclass(frozen=True)
class Layout:
    """What outputs are called and whether their sources stay beside them.

    Examples
    --------
    >>> Layout(keep_sources=True).columns(["id", "x"], ["x"])
    [('id', 'id', False), ('x', 'x', False), ('x_d', 'x', True)]
    """

    keep_sources: bool = False
    suffix: str = ""

    @property
    def ending(self) -> str:
        """What is added to the names of outputs."""
        return self.suffix or ("_d" if self.keep_sources else "")

    def columns(
        self, names: Sequence[str], variables: Sequence[str]
    ) -> list[tuple[str, str, bool]]:
        """Each column to write: its name, the column it comes from, and whether it is an output."""
        chosen = set(variables)
        out: list[tuple[str, str, bool]] = []
        for name in names:
            if name not in chosen or self.keep_sources:
                out.append((name, name, False))
            if name in chosen:
                out.append((name + self.ending, name, True))
        taken = set(names) - (set() if self.keep_sources else chosen)
        twice = next((new for new, _, is_output in out if is_output and new in taken), None)
        if twice is not None:
            raise InvalidArgumentError(
                f"An output would be called {twice!r}, and there is a column of that name.\n"
                "Choose another suffix, such as --suffix _decorrelated."
            )
        return out


def write_transformed(
    stream: BinaryIO,
    path: str,
    table: Table,
    names: Sequence[str],
    estimator: Any,
    *,
    on_rows: Callable[[Any, Any], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    layout: Layout | None = None,
    sheets: Callable[[], Sequence[Sheet]] | None = None,
    escape_formulas: bool = False,
) -> tuple[int, list[int]]:
    """Write the complete rows of a table, the columns ``names`` transformed.

    Parameters
    ----------
    stream : binary file
        Where to write; the caller owns it.
    path : str
        Whose ending tells the format; see :func:`skcoral.tables.writing.table_writer`.
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
    layout : Layout, optional
        Names and places of the outputs; they replace their sources by default.
    sheets : callable, optional
        Called after the rows for further sheets, where a workbook is written.
    escape_formulas : bool, default False
        See :func:`skcoral.tables.writing.table_writer`.

    Returns
    -------
    n_rows : int
        Rows written.
    dropped : list of int
        Where the incomplete rows, which are left out, stand in the table.
    """
    place = {name: k for k, name in enumerate(names)}
    columns = (layout or Layout()).columns(table.names, names)
    writer = table_writer(
        stream,
        [name for name, _, _ in columns],
        path=path,
        separator=table.separator,
        decimal=table.decimal,
        escape_formulas=escape_formulas,
    )
    n_rows = 0
    dropped: list[int] = []
    for part in complete_rows(table, names, on_batch=on_batch, may_miss=estimator.missing == "em"):
        dropped.extend(part.dropped)
        if len(part.values):
            rows = _rows(estimator, part.values, names)
            new = np.asarray(estimator.transform(rows))
            if on_rows is not None:
                on_rows(rows, new)
            n_rows += len(new)
            cells = dict(zip(table.names, part.batch.columns, strict=True))
            writer.write(
                [
                    new[:, place[source]] if is_output else _kept(cells[source], part.kept)
                    for _, source, is_output in columns
                ]
            )
    if sheets is not None and isinstance(writer, ExcelWriter):
        for sheet in sheets():
            writer.add_sheet(*sheet)
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
