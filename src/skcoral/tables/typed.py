"""Parquet and Excel: cells that already have a type."""

from __future__ import annotations

import itertools
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from lzma import LZMAError
from typing import Any, BinaryIO
from xml.parsers.expat import ExpatError

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array
from skcoral.exceptions import InvalidTableError
from skcoral.limits import Clock, Limits, current, shown
from skcoral.tables.dialect import LOOKED_AT, has_numbers, has_units, header_place, is_note
from skcoral.tables.parquet_pages import require_declared_pages
from skcoral.tables.table import Batch, Table
from skcoral.tables.workbook import Sheet, Workbook, open_workbook

#: Columns that are looked at to find the header of a sheet.
_LOOKED_AT_COLUMNS = 400

#: What archives, XML and attributes that are not what they should be end in.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    ExpatError,
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

    limits = current()

    def damaged(error: Exception) -> InvalidTableError:
        told = str(error).splitlines() or [type(error).__name__]
        return InvalidTableError(
            f"{label}: the Parquet file cannot be read ({told[0][:120]}).\n"
            "It is damaged or was cut short: write or copy it again."
        )

    try:
        with opener() as stream:
            file = pq.ParquetFile(stream)
            limits.require(
                "columns",
                file.metadata.num_columns,
                label,
                f"the table has {file.metadata.num_columns:,} columns",
            )
            names = tuple(file.schema_arrow.names)
            _refuse_lists(label, file.metadata, limits)
            require_declared_pages(label, stream, file.metadata, limits)
            total = file.metadata.num_rows
            # A text that occurs in every row is stored once, and stays so.
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise damaged(error) from error
    _check_names(label, names)

    def batches(size: int) -> Iterator[Batch]:
        done = text = 0
        clock = Clock(limits, label)
        with opener() as stream:
            try:
                source = pq.ParquetFile(stream, read_dictionary=texts, pre_buffer=False)
                for part in source.iter_batches(batch_size=size):
                    clock.check()
                    sizes = _text_bytes(part)
                    text += int(sizes.sum())
                    found = f"its texts have more than {shown('unpacked_bytes', text)}"
                    limits.require("unpacked_bytes", text, label, found)
                    for piece in _bearable(part, sizes, label, limits):
                        rows = range(done + 1, done + 1 + piece.num_rows)
                        done += piece.num_rows
                        yield Batch(rows, piece.columns, done / max(total, 1))
            except (pa.ArrowException, OSError) as error:
                raise damaged(error) from error

    return Table(label, names, "row", "parquet", batches, n_rows=total)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_binary(kind))


def _refuse_lists(label: str, metadata: Any, limits: Limits) -> None:
    """Refuse cells with more values than fit: a list of any length takes a few bytes in a file."""
    for j in range(metadata.num_columns):
        nested = metadata.schema.column(j).max_repetition_level > 0
        for i in range(metadata.num_row_groups if nested else 0):
            chunk = metadata.row_group(i).column(j)
            limits.require(
                "sheet_cells",
                chunk.num_values,
                label,
                f"the lists in column {chunk.path_in_schema.split('.')[0]!r} have "
                f"{chunk.num_values:,} values",
                "Leave that column out of the file.",
            )


def _text_bytes(part: Any) -> NDArray[np.int64]:
    """Bytes of text in every row of a batch, without spelling it out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = np.zeros(part.num_rows, dtype=np.int64)
    for column in part.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            sizes = pc.fill_null(pc.binary_length(column.dictionary).take(column.indices), 0)
            total += sizes.to_numpy(zero_copy_only=False)
    return total


def _bearable(part: Any, sizes: NDArray[np.int64], label: str, limits: Limits) -> Iterator[Any]:
    """Cut a batch into pieces whose texts fit in memory when they are spelled out."""
    longest = int(sizes.max(initial=0))
    limits.require("record_bytes", longest, label, f"a row has {longest:,} bytes of text")
    share = np.cumsum(sizes) // limits.record_bytes
    cuts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), part.num_rows]
    for low, high in itertools.pairwise(cuts):
        yield part.slice(low, high - low)


def open_excel(label: str, opener: Callable[[], BinaryIO], sheet: str | None) -> Table:
    """Open one sheet of a workbook; values only, a formula counts as its last computed value."""
    limits = current()
    with _workbook(label, opener, limits) as book:
        sheets = {chosen.name: chosen for chosen in book.sheets}
        if not sheets or (sheet is not None and sheet not in sheets):
            raise InvalidTableError(
                f"{label}: there is no sheet {'with cells' if sheet is None else repr(sheet)}.\n"
                f"It has: {', '.join(sheets) or 'nothing but charts'}."
            )
        chosen = _first_table(book) if sheet is None else sheets[sheet]
        numbered = list(book.rows(chosen))
    if not numbered:
        raise InvalidTableError(f"{label}: the sheet is empty.\nGive a table with a header row.")
    place = header_place([_as_list(cells) for _, cells in numbered[:LOOKED_AT]])
    others = tuple(name for name in sheets if name != chosen.name)
    assumed = []
    if others and sheet is None:
        listed = ", ".join(others[:6]) + (" …" if len(others) > 6 else "")
        assumed.append(f"Sheet {chosen.name!r} was read; the workbook also has {listed}.")
    if place:
        assumed.append(
            f"The header was found in row {numbered[place][0]}; the rows above it are left out."
        )
    numbered = _without_notes(numbered[place:])
    head_row, head = numbered[0]
    if has_units([_as_list(cells) for _, cells in numbered[:LOOKED_AT]], 0):
        assumed.append(
            f"Row {numbered[1][0]} holds words under the names (units?) and is left out."
        )
        del numbered[1]
    width = max(head) + 1
    limits.require("columns", width, label, f"row {head_row} names {width:,} columns")
    names = tuple(str(head[j]).strip() if j in head else "" for j in range(width))
    _check_names(label, names, head_row)
    places = [row for row, _ in numbered[1:]]
    body = [cells for _, cells in numbered[1:]]
    for row, cells in numbered[1:]:
        if max(cells) >= width:
            raise InvalidTableError(
                f"{label}: row {row} has a value to the right of the last named column "
                f"{names[-1]!r}.\nGive every column a name in row {head_row}, or remove it."
            )

    def batches(size: int) -> Iterator[Batch]:
        for start in range(0, len(body), size):
            part = body[start : start + size]
            done = (start + len(part)) / len(body)
            columns = [[row.get(j) for row in part] for j in range(width)]
            yield Batch(places[start : start + size], columns, done)

    return Table(
        label,
        names,
        "row",
        "excel",
        batches,
        n_rows=len(body),
        assumed=tuple(assumed),
        other_sheets=others,
    )


def _without_notes(numbered: list[Any]) -> list[Any]:
    """Rows without the notes at the end: single texts in the first column."""
    last = len(numbered)
    while last > 2:
        cells = numbered[last - 1][1]
        if set(cells) != {0} or not is_note([str(cells[0])]):
            break
        last -= 1
    return numbered[:last]


def _first_table(book: Workbook) -> Sheet:
    """The first sheet with two columns of numbers under a header; else the first one."""
    for sheet in book.sheets if len(book.sheets) > 1 else ():
        rows = [_as_list(cells) for _, cells in itertools.islice(book.rows(sheet), LOOKED_AT)]
        if has_numbers(rows, header_place(rows)):
            return sheet
    return book.sheets[0]


def _as_list(cells: dict[int, Any]) -> list[Any]:
    return [cells.get(j) for j in range(min(max(cells), _LOOKED_AT_COLUMNS) + 1)]


def sheet_names(label: str, opener: Callable[[], BinaryIO]) -> tuple[str, ...]:
    """The sheets of a workbook that hold cells."""
    with _workbook(label, opener, current()) as book:
        return tuple(sheet.name for sheet in book.sheets)


@contextmanager
def _workbook(label: str, opener: Callable[[], BinaryIO], limits: Limits) -> Iterator[Workbook]:
    """Open a workbook; whatever its reader stumbles over, now or at the rows, is told in words."""
    try:
        with opener() as stream:
            book = open_workbook(stream, label, limits)
            with closing(book.archive):
                yield book
    except InvalidTableError:
        raise
    except _DAMAGED as error:
        raise InvalidTableError(
            f"{label}: the workbook cannot be read ({error}).\n"
            "Open it in a spreadsheet program and save it again as .xlsx, or as CSV."
        ) from error


def _check_names(label: str, names: tuple[str, ...], row: int = 1) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            raise InvalidTableError(
                f"{label}: row {row}: columns {seen[name]} and {place} both have "
                f"{f'the name {name!r}' if name else 'no name'}.\n"
                "Give every column a name of its own."
            )
        seen[name] = place
