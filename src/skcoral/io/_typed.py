"""Parquet and Excel: cells that already have a type."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skcoral.exceptions import InvalidTableError
from skcoral.io.tables import Batch, Table

Array = NDArray[np.float64]


def arrow_numbers(cells: Any) -> tuple[Array, NDArray[np.bool_]]:
    """Numbers of a pyarrow array; text and booleans are not numbers, whatever they look like."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type
    if pa.types.is_null(kind):
        return np.full(len(cells), np.nan), np.zeros(len(cells), dtype=bool)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        valid = np.asarray(pc.is_valid(cells).to_numpy(zero_copy_only=False), dtype=bool)
        return np.full(len(cells), np.nan), valid
    values = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64), np.zeros(len(cells), dtype=bool)


def open_parquet(label: str, opener: Callable[[], BinaryIO]) -> Table:
    """Open a Parquet file; batches are read one after the other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def damaged(error: Exception) -> InvalidTableError:
        return InvalidTableError(
            f"{label}: the Parquet file cannot be read ({str(error).splitlines()[0][:120]}).\n"
            "It is damaged or was cut short: write or copy it again."
        )

    try:
        with opener() as stream:
            file = pq.ParquetFile(stream)
            names = tuple(file.schema_arrow.names)
            total = file.metadata.num_rows
    except (pa.ArrowException, OSError, EOFError) as error:
        raise damaged(error) from error
    _check_names(label, names)

    def batches(size: int) -> Iterator[Batch]:
        done = 0
        with opener() as stream:
            try:
                for part in pq.ParquetFile(stream).iter_batches(batch_size=size):
                    rows = range(done + 1, done + 1 + part.num_rows)
                    done += part.num_rows
                    yield Batch(rows, part.columns, done / max(total, 1))
            except (pa.ArrowException, OSError) as error:
                raise damaged(error) from error

    return Table(label, names, "row", "parquet", batches)


def open_excel(label: str, opener: Callable[[], BinaryIO], sheet: str | None) -> Table:
    """Open one sheet of a workbook; values only, a formula counts as its last computed value."""
    import openpyxl

    with opener() as stream:
        try:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        except (zipfile.BadZipFile, KeyError, ValueError, OSError, TypeError) as error:
            raise InvalidTableError(
                f"{label}: the workbook cannot be read ({error}).\n"
                "Open it in a spreadsheet program and save it again as .xlsx, or as CSV."
            ) from error
        if sheet is not None and sheet not in book.sheetnames:
            raise InvalidTableError(
                f"{label}: there is no sheet {sheet!r}.\nIt has: {', '.join(book.sheetnames)}."
            )
        chosen = book[sheet] if sheet is not None else book.worksheets[0]
        rows = [list(row) for row in chosen.iter_rows(values_only=True)]
        book.close()
    numbered = [(i, row) for i, row in enumerate(rows, start=1) if any(c is not None for c in row)]
    if not numbered:
        raise InvalidTableError(f"{label}: the sheet is empty.\nGive a table with a header row.")
    head_row, head = numbered[0]
    width = max(i for i, cell in enumerate(head, start=1) if cell is not None)
    names = tuple("" if cell is None else str(cell).strip() for cell in head[:width])
    _check_names(label, names, head_row)
    places = []
    body = []
    for i, row in numbered[1:]:
        if any(cell is not None for cell in row[width:]):
            raise InvalidTableError(
                f"{label}: row {i} has a value to the right of the last named column "
                f"{names[-1]!r}.\nGive every column a name in row {head_row}, or remove it."
            )
        body.append((row + [None] * width)[:width])
        places.append(i)

    def batches(size: int) -> Iterator[Batch]:
        for start in range(0, len(body), size):
            part = body[start : start + size]
            done = (start + len(part)) / len(body)
            columns = [list(column) for column in zip(*part, strict=True)]
            yield Batch(places[start : start + size], columns, done)

    return Table(label, names, "row", "excel", batches)


def _check_names(label: str, names: tuple[str, ...], row: int = 1) -> None:
    for place, name in enumerate(names, start=1):
        first = names.index(name) + 1
        if first < place:
            raise InvalidTableError(
                f"{label}: row {row}: columns {first} and {place} both have "
                f"{f'the name {name!r}' if name else 'no name'}.\n"
                "Give every column a name of its own."
            )
