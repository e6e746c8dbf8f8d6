"""Outputs in files: a table with its variables replaced, the matrix T, sheets that explain both."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skcoral.core.files import replacing
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.results import Decorrelation
from skcoral.core.validation import listing
from skcoral.data.effects import Measured
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.arrow_arrays import selected
from skcoral.tables.table import Batch, Table, complete_rows
from skcoral.tables.writing import ExcelWriter, output_format, table_writer

#: A column to write: its name, and the column that it copies or the number of its output.
Column = tuple[str, str | int]
#: A further sheet of a workbook: title, header and columns.
Sheet = tuple[str, list[str], list[Any]]
_MOST_SHEET_COLUMNS = 500


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
    on_rows: Callable[[Any, Any], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    columns: Sequence[Column] | None = None,
    sheets: Callable[[], Sequence[Sheet]] | None = None,
    drop_incomplete: bool = False,
    numeric: Collection[str] = (),
) -> list[int]:
    """Write the rows of a table to a stream, the columns ``names`` transformed.

    The ending of ``path`` tells the format, and ``columns`` what is written; outputs replace their
    sources by default, and are empty in rows with a missing value, unless these rows are dropped.
    ``on_rows`` is called with the variables of some rows and with their outputs, ``on_batch`` after
    each batch, and ``sheets`` after the rows, for further sheets of a workbook. Copied columns that
    are ``numeric`` are numbers in files that have types, whatever their spelling. Returns where the
    incomplete rows stand in the table.
    """
    columns = columns or columns_with_outputs(table.names, names)
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
    if sheets is not None and isinstance(writer, ExcelWriter):
        for sheet in sheets():
            writer.add_sheet(*sheet)
    writer.close()
    return incomplete


def transform_table(
    table: Table, estimator: Any, target: str | os.PathLike[str], *, keep: Sequence[str] = ()
) -> int:
    """Write the outputs of a fitted estimator to a new file, in constant memory.

    The file appears whole or not at all; an existing one is replaced. Rows stay in their place:
    the outputs of one with a missing value are empty.

    Parameters
    ----------
    table : Table
        With the columns that the estimator was fitted to.
    estimator : CORAL
        Fitted.
    target : path
        Its ending decides the format: ``.parquet``, ``.csv``, ``.csv.gz`` and so on.
    keep : sequence of str
        Columns of the table that are copied, in front.

    Returns
    -------
    int
        Rows with outputs.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.tables import open_table, transform_table
    >>> folder = tempfile.mkdtemp()
    >>> load_wine(as_frame=True).data.to_parquet(f"{folder}/wine.parquet")
    >>> table = open_table(f"{folder}/wine.parquet")
    >>> coral = CORAL(rho_min=0.8).fit(table.frames(size=50))
    >>> transform_table(table, coral, f"{folder}/decorrelated.parquet")
    178
    """
    kept = [keep] if isinstance(keep, str) else list(keep)
    outputs = [str(name) for name in estimator.get_feature_names_out()]
    clash = [name for name in kept if name in outputs]
    if clash:
        raise InvalidArgumentError(f"{listing(clash)} cannot be both kept and transformed.")
    features = [str(name) for name in getattr(estimator, "feature_names_in_", table.names)]
    wanted = list(dict.fromkeys([*kept, *features]))
    columns: list[Column] = [(name, name) for name in kept]
    columns += [(name, k) for k, name in enumerate(outputs)]
    output_format(str(target))
    with replacing(target) as stream:
        n_rows = 0

        def count(rows: Any, outputs: Any) -> None:
            nonlocal n_rows
            n_rows += len(outputs)

        part = table.part(wanted)
        write_transformed(
            stream, str(target), part, features, estimator, on_rows=count, columns=columns
        )
        if not n_rows:
            raise InvalidTableError(f"{table.label}: the table has no complete rows to transform.")
    return n_rows


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


def output_figures(result: Decorrelation, measured: Measured) -> dict[str, Any]:
    """Figures of each output by name: what it keeps and what it costs, VIFs where they compare."""
    figures = {
        "weighted fidelity" if measured.weighted else "fidelity": measured.fidelity,
        "floor": result.rho_min,
        "price": result.prices,
        "largest residual": measured.residual,
    }
    if len(measured.vif_before) == len(measured.vif):
        figures |= {"VIF before": measured.vif_before, "VIF after": measured.vif}
    return figures


def explaining_sheets(
    result: Decorrelation, measured: Measured, sources: Sequence[str]
) -> list[Sheet]:
    """The sheets that go with a table of outputs: of a result, measured on the rows written."""
    names = list(result.names)
    columns = {"variable": names, **output_figures(result, measured)}
    sheets: list[Sheet] = [("fidelity", list(columns), list(columns.values()))]
    if max(len(names), len(sources)) > _MOST_SHEET_COLUMNS:
        return sheets
    for title, matrix, rows in (
        ("correlations before", measured.before, list(sources)),
        ("correlations after", measured.after, names),
    ):
        if matrix is not None:
            sheets.append((title, ["variable", *rows], [rows, *matrix.T]))
    T = result.T.toarray() if isinstance(result.T, LowRankTransform) else result.T
    return [*sheets, ("made of", ["standardised source", *names], [list(sources), *T.T])]
