"""Parquet and Excel: cells that already have a type."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skcoral.exceptions import InvalidTableError
from skcoral.io.tables import Batch, Table

Array = NDArray[np.float64]

#: What openpyxl raises on archives, XML and attributes that are not what they should be; a
#: syntax error is one of XML.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    SyntaxError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    EOFError,
    RuntimeError,
)


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
    with _workbook(label, opener) as book:
        sheets = {chosen.title: chosen for chosen in book.worksheets}
        if not sheets or (sheet is not None and sheet not in sheets):
            raise InvalidTableError(
                f"{label}: there is no sheet {'with cells' if sheet is None else repr(sheet)}.\n"
                f"It has: {', '.join(sheets) or 'nothing but charts'}."
            )
        chosen = book.worksheets[0] if sheet is None else sheets[sheet]
        rows = [list(row) for row in chosen.iter_rows(values_only=True)]
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


def sheet_names(label: str, opener: Callable[[], BinaryIO]) -> tuple[str, ...]:
    """The sheets of a workbook that hold cells."""
    with _workbook(label, opener) as book:
        return tuple(sheet.title for sheet in book.worksheets)


@contextmanager
def _workbook(label: str, opener: Callable[[], BinaryIO]) -> Iterator[Any]:
    """Open a workbook; whatever its reader stumbles over, now or at the rows, is told in words."""
    import openpyxl

    try:
        with opener() as stream:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            with closing(book):
                yield book
    except InvalidTableError:
        raise
    except _DAMAGED as error:
        raise InvalidTableError(
            f"{label}: the workbook cannot be read ({error}).\n"
            "Open it in a spreadsheet program and save it again as .xlsx, or as CSV."
        ) from error


def _check_names(label: str, names: tuple[str, ...], row: int = 1) -> None:
    for place, name in enumerate(names, start=1):
        first = names.index(name) + 1
        if first < place:
            raise InvalidTableError(
                f"{label}: row {row}: columns {first} and {place} both have "
                f"{f'the name {name!r}' if name else 'no name'}.\n"
                "Give every column a name of its own."
            )
