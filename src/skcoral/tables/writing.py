"""Writers of tables: the file name selects the format, and every cell reads back unchanged."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import re
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Protocol

import numpy as np

from skcoral.core.display import printable
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.arrow_arrays import number_texts, text_array, text_scalar
from skcoral.tables.cells import plain_cells
from skcoral.tables.reading import format_of_name
from skcoral.tables.table import Format, Table

#: What begins a formula, and what does not although it begins like one. The second half of the
#: marks are the wide letters of East Asian keyboards.
_FORMULA, _NUMBER = "^[\t\r ]*[=+@＝＋－＠-]|^[\t\r]", r"^ *[+-]?\.?\d[\d.,]*([eE][+-]?\d+)? *$"
#: Characters that XML lacks or changes, the beginning of what looks like the escape of one, and
#: texts of nothing but blanks, which readers take for layout.
_NOT_IN_XML = re.compile(
    "\\A[ \\t\\n]+\\Z|_(?=x[0-9A-Fa-f]{4}_)|[\\x00-\\x08\\x0b-\\x1f\\ud800-\\udfff\\ufffe\\uffff]"
)
#: Characters of written numbers; one that separates cells makes quotes necessary.
_IN_NUMBERS = "0123456789+-.,einf"
#: Cells of text that are put together at once: some hundred megabytes.
_CELLS_AT_ONCE = 2**22
_EXCEL_ROWS = 1_048_576
_EXCEL_TEXT = 32_767
#: What a sheet holds besides text; anything else is written as text.
_EXCEL_TYPES = (NoneType, bool, int, float, Decimal, date, time, timedelta)


class TableWriter(Protocol):
    """Writes a table batch by batch."""

    def write(self, columns: Sequence[Any]) -> None:
        """Write some rows, given as one sequence of cells per column."""

    def close(self) -> None:
        """Finish the file; without it the file is not complete."""


def output_format(path: str | Path) -> Format:
    """The format that a file's name asks for; an unknown ending is an error.

    Examples
    --------
    >>> output_format("out.csv.gz"), output_format("out.xlsx")
    ('csv', 'excel')
    """
    found = format_of_name(str(path))
    if found is None or Path(path).suffix.lower() in (".zip", ".xls", ".xlsb", ".ods", ".dta"):
        raise InvalidArgumentError(
            f"{printable(str(path))}: the ending does not say which format to write.\n"
            "Use .csv, .tsv, .parquet or .xlsx (.csv.gz, .csv.bz2, .csv.xz and .csv.zst compress)."
        )
    return found


def table_writer(
    stream: BinaryIO,
    names: Sequence[str],
    *,
    path: str | Path = "-",
    like: Table | None = None,
) -> TableWriter:
    """Make the writer for a path's format (``"-"``: CSV); the caller owns ``stream``.

    Text files are written with the separator, decimal mark and encoding of the table ``like``;
    numbers carry all the digits that are needed to read the same number back. Text that begins a
    formula is written in quotes; in a workbook text is marked as text.
    """
    separator, decimal, encoding = ",", ".", "utf-8"
    if like is not None:
        separator, decimal, encoding = like.separator, like.decimal, like.encoding
    kind: Format = "csv" if str(path) == "-" else output_format(path)
    sink = _Sink(stream)
    if kind == "parquet":
        return _ParquetWriter(sink, names)
    if kind == "excel":
        return ExcelWriter(sink, names)
    mark = "\t" if kind == "tsv" else separator
    if decimal == mark:
        decimal = "."
    return _TextWriter(sink, names, Path(path).suffix.lower(), mark, decimal, encoding)


class _Sink(io.RawIOBase):
    """A stream that keeps its first error, ignores what is written after it, and is left open.

    Compressors and archives write again when they are closed or collected; after a full disk each
    of these attempts would fail too, some of them where the error cannot be caught.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._error: OSError | ValueError | None = None
        self._place = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._error is None:
            try:
                self._stream.write(data)
            except (OSError, ValueError) as error:  # full, or closed by its owner
                self._error = error
        self._place += size
        return size

    def flush(self) -> None:
        if self._error is None and not self.closed:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._error = error

    def check(self) -> None:
        """Raise the error that was met."""
        self.flush()
        if self._error is not None:
            raise self._error


class _TextWriter:
    """Lines of text, put together by pyarrow, which is four times as fast as cell by cell."""

    def __init__(
        self,
        sink: _Sink,
        names: Sequence[str],
        ending: str,
        separator: str,
        decimal: str,
        encoding: str,
    ) -> None:
        self._sink, self._packer = sink, _packer(sink, ending)
        self._separator, self._decimal, self._encoding = separator, decimal, encoding
        # Marks of encodings stand at the beginning only.
        self._encoder = codecs.getincrementalencoder(encoding)()
        # A lone carriage return ends a line for most readers; a byte order mark may be lost.
        self._special = f'[{re.escape(separator)}"\r\n]|^\ufeff'
        header = self._cells(list(names)).to_pylist()
        self._put((separator.join(header) or '""') + "\n")

    def write(self, columns: Sequence[Any]) -> None:
        step = max(1, _CELLS_AT_ONCE // len(columns))
        for first in range(0, len(columns[0]), step):
            self._write([column[first : first + step] for column in columns])
        self._sink.check()

    def _write(self, columns: Sequence[Any]) -> None:
        import pyarrow.compute as pc

        n = len(columns[0])
        places = [j for j, c in enumerate(columns) if _is_floats(c)]
        found = {}
        if places:  # in one go: a table may have many columns and few rows
            numbers = self._cells(np.concatenate([columns[j] for j in places]))
            found = {j: numbers.slice(k * n, n) for k, j in enumerate(places)}
        cells = (found[j] if j in found else self._cells(c) for j, c in enumerate(columns))
        *texts, last = cells
        if not texts:  # an empty line is no row
            last = pc.if_else(pc.equal(last, text_scalar("")), text_scalar('""'), last)
        ended = pc.binary_join_element_wise(last, text_scalar(""), text_scalar("\n"))
        lines = pc.binary_join_element_wise(*texts, ended, text_scalar(self._separator))
        self._put(lines.buffers()[2])

    def _put(self, lines: Any) -> None:
        """Write lines in the encoding of the file; they are bytes of UTF-8, or text."""
        if isinstance(lines, str) or self._encoding != "utf-8":
            text = lines if isinstance(lines, str) else lines.to_pybytes().decode()
            try:
                lines = self._encoder.encode(text)
            except UnicodeEncodeError as error:
                raise InvalidTableError(
                    f"{text[error.start]!r} cannot be written in {self._encoding}, the encoding of "
                    "the table.\nWrite .parquet or .xlsx instead, or save the table as UTF-8."
                ) from error
        (self._packer or self._sink).write(lines)

    def _cells(self, column: Any) -> Any:
        import pyarrow.compute as pc

        if _is_floats(column):
            cells = number_texts(column, self._decimal)
            if self._separator not in _IN_NUMBERS:
                return cells
            special = pc.match_substring_regex(cells, self._special)
        else:
            cells = text_array(self._texts(column))
            found, number = (pc.match_substring_regex(cells, p) for p in (_FORMULA, _NUMBER))
            special = pc.match_substring_regex(cells, self._special)
            special = pc.or_(special, pc.and_not(found, number))
        if not pc.any(special).as_py():
            return cells
        quote, inner = text_scalar('"'), pc.replace_substring(cells, '"', '""')
        quoted = pc.binary_join_element_wise(quote, inner, quote, text_scalar(""))
        return pc.if_else(special, quoted, cells)

    def _texts(self, column: Any) -> list[str]:
        texts = [_as_text(cell) for cell in plain_cells(column)]
        _check_letters(texts)
        told = next((text for text in texts if "\0" in text), None)
        if told is not None:
            raise InvalidTableError(
                f"the text {told[:30]!r} has a zero character, which a text file cannot hold.\n"
                "Write .parquet instead, or leave the column out."
            )
        return texts

    def close(self) -> None:
        if self._packer is not None:
            self._packer.close()
        self._sink.check()


def _is_floats(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"


def _packer(sink: Any, ending: str) -> Any:
    """What compresses a text file with this ending, if anything does."""
    if ending == ".gz":
        # No time stamp: the same table gives the same bytes.
        return gzip.GzipFile(fileobj=sink, mode="wb", filename="", mtime=0, compresslevel=6)
    if ending == ".bz2":
        return bz2.BZ2File(sink, "wb")
    if ending == ".xz":
        return lzma.LZMAFile(sink, "wb")
    if ending == ".zst":
        import pyarrow as pa

        return pa.CompressedOutputStream(sink, "zstd")
    return None


class _ParquetWriter:
    def __init__(self, stream: _Sink, names: Sequence[str]) -> None:
        self._stream = stream
        self._names = list(names)
        self._writer: Any = None
        self._schema: Any = None

    def write(self, columns: Sequence[Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = [self._array(j, column) for j, column in enumerate(columns)]
        if self._writer is None:
            self._schema = pa.schema(
                [(name, a.type) for name, a in zip(self._names, arrays, strict=True)]
            )
            # Outputs hardly ever repeat a value: a dictionary of them costs more than it saves.
            copied = [
                name
                for name, column in zip(self._names, columns, strict=True)
                if not isinstance(column, np.ndarray)
            ]
            self._writer = pq.ParquetWriter(self._stream, self._schema, use_dictionary=copied)
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._stream.check()

    def _array(self, j: int, column: Any) -> Any:
        import pyarrow as pa

        if hasattr(column, "type"):
            # Texts are read with their repetitions stored once, and written as plain ones.
            kind = column.type
            repeated = pa.types.is_dictionary(kind) and kind.index_type == pa.int32()
            return column.dictionary_decode() if repeated else column
        if isinstance(column, np.ndarray):
            return pa.array(column, from_pandas=True)  # null where there is no number
        _check_letters(cell for cell in column if isinstance(cell, str))
        wanted = None if self._schema is None else self._schema.field(j).type
        try:
            return pa.array(column, type=wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # A sheet may mix numbers and words in one column; Parquet may not.
            return pa.array([None if c is None else _as_text(c) for c in column], type=pa.string())

    def close(self) -> None:
        if self._writer is None:
            self.write([np.empty(0)] * len(self._names))
        self._writer.close()
        self._stream.check()


class ExcelWriter:
    """A workbook: the table in its first sheet, and others that explain it."""

    def __init__(self, stream: _Sink, names: Sequence[str]) -> None:
        import openpyxl

        self._stream = stream
        self._book = openpyxl.Workbook(write_only=True)
        self._begin("coral", names)

    def _begin(self, title: str, names: Sequence[str]) -> None:
        self._sheet = self._book.create_sheet(title)
        self._sheet.append([self._cell(name) for name in names])
        self._rows = 1

    def add_sheet(self, title: str, names: Sequence[str], columns: Sequence[Any]) -> None:
        """Write one more sheet; the one before it is complete then."""
        self._begin(title, names)
        self.write(columns)

    def write(self, columns: Sequence[Any]) -> None:
        """Write some rows of the sheet that was begun last."""
        cells = [c.tolist() if isinstance(c, np.ndarray) else plain_cells(c) for c in columns]
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

        text = _as_text(value)
        if len(text) > _EXCEL_TEXT:
            raise InvalidTableError(
                f"the text {text[:30] + '…'!r} has more than {_EXCEL_TEXT:,} characters, which is "
                "all a cell of a sheet can hold.\nWrite .csv or .parquet instead."
            )
        cell = WriteOnlyCell(self._sheet, value=_NOT_IN_XML.sub(_escaped, text))
        # Text that starts with "=" stays text: a data file must not become a formula.
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        """Finish the workbook."""
        self._book.save(self._stream)
        self._stream.check()


def _check_letters(texts: Iterable[str]) -> None:
    """Refuse halves of letters, which no file of text can hold."""
    try:
        for text in texts:
            text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidTableError(
            f"the text {error.object[:30]!r} has half of a letter ({error.reason}), which no file "
            "can hold.\nCorrect the text, or leave the column out."
        ) from error


def _as_text(cell: Any) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else str(cell)


def _escaped(match: re.Match[str]) -> str:
    """Characters as workbooks write those that XML does not have."""
    return "".join(f"_x{ord(c):04X}_" for c in match[0])
