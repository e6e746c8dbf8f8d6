"""Writers of tables: the file name selects the format, and every cell reads back unchanged."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import zlib
from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skcoral.core.display import printable
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.cells import float_array, plain_cells, text_array
from skcoral.tables.reading import format_of_name
from skcoral.tables.table import BATCH_CELLS, Format, Table

#: Characters that XML lacks or changes, and the beginning of what looks like the escape of one.
_NOT_IN_XML = re.compile(
    "_(?=x[0-9A-Fa-f]{4}_)|[\\x00-\\x08\\x0b-\\x1f\\ud800-\\udfff\\ufffe\\uffff]"
)
#: Characters of written numbers; one that separates cells makes quotes necessary.
_IN_NUMBERS = "0123456789+-.,einf"
_EXCEL_ROWS = 1_048_576
_EXCEL_TEXT = 32_767
#: What a sheet holds besides text; anything else is written as text.
_EXCEL_TYPES = (NoneType, bool, int, float, Decimal, date, time, timedelta)


def output_format(path: str | Path) -> Format:
    """The format that a file's name asks for; an unknown ending is an error.

    Examples
    --------
    >>> output_format("out.csv.gz"), output_format("out.xlsx")
    ('csv', 'excel')
    """
    kind = format_of_name(str(path))
    if kind is None or Path(path).suffix.lower() in (".zip", ".xls", ".xlsb", ".ods", ".dta"):
        raise InvalidArgumentError(
            f"{printable(str(path))}: the ending does not say which format to write.\n"
            "Use .csv, .tsv, .parquet or .xlsx (.csv.gz compresses)."
        )
    return kind


def table_writer(
    stream: BinaryIO,
    names: Sequence[str],
    *,
    path: str | Path = "-",
    like: Table | None = None,
) -> TableWriter:
    """Make the writer for a path's format (``"-"``: CSV); the caller owns ``stream``.

    Its ``write`` takes some rows, given by columns: arrays of Arrow or NumPy, or lists of texts;
    without its ``close`` the file is not complete. Text files are written with the separator,
    decimal mark and encoding of the table ``like``; numbers carry all the digits that are needed to
    read the same number back. In a workbook text is marked as text, also where it looks like a
    formula.
    """
    kind: Format = "csv" if str(path) == "-" else output_format(path)
    if kind == "parquet":
        return _ParquetWriter(stream, names)
    if kind == "excel":
        return _ExcelWriter(stream, names)
    separator, decimal, encoding = ",", ".", "utf-8"
    if like is not None:
        separator, decimal, encoding = like.separator, like.decimal, like.encoding
    if str(path) != "-" and (kind == "tsv") != (separator == "\t"):
        separator = "\t" if kind == "tsv" else ","
    is_packed = Path(path).suffix.lower() == ".gz"
    decimal = "." if decimal == separator else decimal
    return _TextWriter(stream, names, separator, decimal, encoding, is_packed=is_packed)


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
    writer = table_writer(stream, [corner, *columns], path=path, like=like)
    step = max(1, BATCH_CELLS // len(columns))
    for part in (slice(first, first + step) for first in range(0, len(rows), step)):
        writer.write([list(rows[part]), *np.asarray(values[part], dtype=np.float64).T])
    writer.close()


def _as_arrow(column: Any) -> Any:
    """A column as an Arrow array, whose texts are valid; empty cells are null."""
    if isinstance(column, np.ndarray):
        return float_array(column) if column.dtype.kind == "f" else pa.array(column)
    if not hasattr(column, "type"):
        return text_array(column)
    if pa.types.is_dictionary(column.type) and column.type.index_type == pa.int32():
        column = column.dictionary_decode()  # as Parquet's texts are read
    if pa.types.is_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            plain_cells(column)  # raises the error in words
    return column


class _TextWriter:
    """Lines of text, put together by pyarrow, which is four times as fast as cell by cell."""

    def __init__(
        self,
        stream: BinaryIO,
        names: Sequence[str],
        separator: str,
        decimal: str,
        encoding: str,
        *,
        is_packed: bool,
    ) -> None:
        self._stream, self._separator, self._decimal = stream, separator, decimal
        # A gzip file without a time stamp: the same table gives the same bytes.
        self._packer = zlib.compressobj(6, wbits=31) if is_packed else None
        # Marks of encodings stand at the beginning only.
        self._encoder = codecs.getincrementalencoder(encoding)()
        # A lone carriage return ends a line for most readers; a byte order mark may be lost.
        self._special = f'[{re.escape(separator)}"\r\n]|^\ufeff'
        self.write([[name] for name in names])

    def write(self, columns: Sequence[Any]) -> None:
        n = len(columns[0])
        if n == 0:
            return
        arrays = [j for j, column in enumerate(columns) if isinstance(column, np.ndarray)]
        floats = [j for j in arrays if columns[j].dtype.kind == "f"]  # counts stay whole numbers
        made = {}
        if floats:  # in one go: a table may have many columns and few rows
            numbers = self._texts(np.concatenate([columns[j] for j in floats]))
            made = {j: numbers.slice(k * n, n) for k, j in enumerate(floats)}
        *texts, last = (made[j] if j in made else self._texts(c) for j, c in enumerate(columns))
        empty, end, mark = text_array(["", "\n", self._separator])
        if not texts:  # an empty line is no row
            last = pc.if_else(pc.equal(last, empty), text_array(['""'])[0], last)
        ended = pc.binary_join_element_wise(last, empty, end)
        text = pc.binary_join_element_wise(*texts, ended, mark).buffers()[2].to_pybytes().decode()
        try:
            data = self._encoder.encode(text)
        except UnicodeEncodeError as error:
            raise InvalidTableError(
                f"{text[error.start]!r} cannot be written in {error.encoding}, the encoding of the "
                "table.\nWrite .parquet or .xlsx instead, or save the table as UTF-8."
            ) from error
        self._stream.write(data if self._packer is None else self._packer.compress(data))
        self._stream.flush()

    def _texts(self, column: Any) -> Any:
        """The cells of a column as they are written."""
        column = _as_arrow(column)
        quote, empty = text_array(['"', ""])
        if column.type == pa.float64():
            cells = pc.replace_substring_regex(  # 2 is written as 2.0: a column stays one of floats
                pc.cast(column, pa.string()), r"^(-?\d+)$", r"\1.0"
            )
            cells = pc.replace_substring(cells, ".", self._decimal)
            cells = pc.fill_null(cells, empty)
            if self._separator not in _IN_NUMBERS:
                return cells
        else:
            if not pa.types.is_string(column.type):
                column = text_array(None if c is None else str(c) for c in plain_cells(column))
            cells = pc.fill_null(column, empty)
            zeros = pc.match_substring(cells, "\0")
            if pc.any(zeros).as_py():
                text = cells[pc.index(zeros, True).as_py()].as_py()
                raise InvalidTableError(
                    f"the text {text[:30]!r} has a zero character, which a text file cannot hold.\n"
                    "Write .parquet instead, or leave the column out."
                )
        special = pc.match_substring_regex(cells, self._special)
        if not pc.any(special).as_py():
            return cells
        inner = pc.replace_substring(cells, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise(quote, inner, quote, empty), cells)

    def close(self) -> None:
        if self._packer is not None:
            self._stream.write(self._packer.flush())
        self._stream.flush()


class _ParquetWriter:
    def __init__(self, stream: BinaryIO, names: Sequence[str]) -> None:
        self._stream, self._names = stream, list(names)
        self._writer: Any = None

    def write(self, columns: Sequence[Any]) -> None:
        table = pa.table([_as_arrow(column) for column in columns], self._names)
        if self._writer is None:
            # Outputs hardly ever repeat a value: a dictionary of them costs more than it saves.
            named = zip(self._names, columns, strict=True)
            copied = [name for name, column in named if not isinstance(column, np.ndarray)]
            self._writer = pq.ParquetWriter(self._stream, table.schema, use_dictionary=copied)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is None:
            self.write([np.empty(0)] * len(self._names))
        self._writer.close()


class _ExcelWriter:
    """A workbook of one sheet."""

    def __init__(self, stream: BinaryIO, names: Sequence[str]) -> None:
        import openpyxl

        self._stream = stream
        self._book = openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("coral")
        self._sheet.append([self._cell(name) for name in names])
        self._rows = 1

    def write(self, columns: Sequence[Any]) -> None:
        """Write some rows."""
        cells = [plain_cells(_as_arrow(column)) for column in columns]
        self._rows += len(cells[0])
        if self._rows > _EXCEL_ROWS:
            raise InvalidTableError(
                f"the table has more than {_EXCEL_ROWS - 1:,} rows, which is all a sheet can hold."
                "\nWrite .csv or .parquet instead."
            )
        try:
            for row in zip(*cells, strict=True):
                self._sheet.append([self._cell(cell) for cell in row])
        except (InvalidTableError, OSError):
            # A sheet that is left open complains on its own when it is collected.
            with contextlib.suppress(OSError):
                self._sheet.close()
            raise

    def _cell(self, value: Any) -> Any:
        if isinstance(value, float) and not np.isfinite(value):
            return None if np.isnan(value) else ("∞" if value > 0 else "-∞")
        zoned = getattr(value, "tzinfo", None) is not None
        if isinstance(value, _EXCEL_TYPES) and not zoned:
            return value
        from openpyxl.cell import WriteOnlyCell

        text = str(value)
        if len(text) > _EXCEL_TEXT:
            raise InvalidTableError(
                f"the text {text[:30] + '…'!r} has more than {_EXCEL_TEXT:,} characters, which is "
                "all a cell of a sheet can hold.\nWrite .csv or .parquet instead."
            )
        text = _NOT_IN_XML.sub(_escaped, text)
        if text.isspace():  # readers take blanks alone for layout
            text = re.sub("[ \t\n]", _escaped, text)
        cell = WriteOnlyCell(self._sheet, value=text)
        # Text that starts with "=" stays text: a data file must not become a formula.
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        """Finish the workbook."""
        workbook = io.BytesIO()  # archives write again, and fail again, when they are collected
        self._book.save(workbook)
        self._stream.write(workbook.getbuffer())


def _escaped(match: re.Match[str]) -> str:
    """Characters as workbooks write those that XML does not have."""
    return "".join(f"_x{ord(c):04X}_" for c in match[0])


#: Writes a table batch by batch.
TableWriter = _TextWriter | _ParquetWriter | _ExcelWriter
