"""CSV and TSV: dialect, encoding, and errors that name the line and the column.

Blocks of plain lines are cut into cells by pyarrow. From the first line on that holds a quote or a
note, that is blank, or that has another number of cells, rows are parsed one by one by the
``csv`` module: it tells the line of each row, and what is wrong with it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from lzma import LZMAError
from typing import Any, BinaryIO, NoReturn
from zipfile import BadZipFile

from skcoral.exceptions import InvalidTableError
from skcoral.limits import MB, Clock, Limits, current
from skcoral.tables import dialect
from skcoral.tables.cells import check_names, is_number, text_array
from skcoral.tables.dialect import Dialect, end_of_rows, is_note, is_row, long_records
from skcoral.tables.sources import Source, unpacked
from skcoral.tables.table import Batch, Table

_DAMAGED = (EOFError, zlib.error, LZMAError, OSError, BadZipFile, NotImplementedError)
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|\Z)')
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that could not be decoded
_SNIFF = 1 << 16
#: Bytes that are read before the first pass; a shorter file is not opened again.
_FIRST = 64 * MB
_BLOCK = 1 << 20
_BLANK_LINES = 1_000_000
_MOST_NOTES = 100  # rows at the end that may be notes


def open_text(
    source: Source,
    stream: BinaryIO,
    *,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
) -> Table:
    """Open a text table: look at its start, settle the dialect, check the header."""
    label, limits = source.label, current()
    dialect.check_given(label, separator, decimal, encoding)
    first = _first_bytes(label, stream, limits)
    found = dialect.recognise(label, first[:_SNIFF], first, separator, decimal, encoding)
    reader = _Reader(source, first, found, limits)
    reader.read_header()
    return Table(
        label,
        tuple(reader.names),
        "line",
        "tsv" if found.separator == "\t" else "csv",
        reader.batches,
        separator=found.separator,
        decimal=found.decimal,
        thousands=found.thousands,
        skipped=reader.skipped,
        assumed=found.sentences(reader.header_line, reader.units_line),
    )


class _Reader:
    """Reads one text file from the start, as often as wanted."""

    def __init__(self, source: Source, first: bytes, dialect: Dialect, limits: Limits) -> None:
        self.label, self.limits, self.dialect = source.label, limits, dialect
        self.open: Callable[[], AbstractContextManager[Any]]
        self.size = source.size
        if len(first) < _FIRST:
            self.open, self.size = lambda: io.BytesIO(first), len(first)
        else:
            self.open = lambda: _opened(source, limits)
        self.names: list[str] = []
        self.header_ends_empty = False
        self.header_line = self.units_line = self.body_line = self.line = 1
        self.skipped: list[tuple[int, str]] = []
        self.read_chars = self.record_start = 0

    def read_header(self) -> None:
        """Read the names, and where the rows begin."""
        clock = Clock(self.limits, self.label)
        with self.open() as binary, self._text(binary) as text:
            rows = self._rows(self._watched(iter(lambda: self._line(text), ""), clock))
            for line, cells in itertools.islice(rows, self.dialect.header, None):
                self.header_line = line
                self.limits.require("columns", len(cells), self.label)
                self.names = [cell.strip() for cell in cells]
                break
            while len(self.names) > 1 and not self.names[-1]:
                self.names.pop()  # lines that end with a separator
                self.header_ends_empty = True
            if self.dialect.has_units:
                self.units_line = next(rows, (self.header_line, []))[0]
            self.body_line = self.line
        _check_header(self.label, self.names, self.dialect.separator, self.header_line)

    def batches(self, size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        """Read the rows from the start."""
        clock = Clock(self.limits, self.label)
        self.skipped.clear()
        with self.open() as binary, self._text(binary) as text:
            for _ in range(self.body_line - 1):
                text.readline()
            self.line = self.body_line
            block = self._block(text)
            while (cells := self._plain_cells(block)) is not None:
                block = self._block(text)
                if not block:
                    cells = cells.slice(0, cells.num_rows - self._skip_notes(cells))
                rows = range(self.line, self.line + cells.num_rows)
                self.line = rows.stop
                chosen = range(cells.num_columns) if places is None else places
                columns = [cells.column(j).combine_chunks() for j in chosen]
                yield from Batch(rows, columns, self._fraction(binary)).parts(size)
                clock.check()
            begun = io.StringIO(block, newline="")
            lines = iter(lambda: begun.readline() or self._line(text), "")
            yield from self._row_batches(self._watched(lines, clock), size, places, binary)

    def _plain_cells(self, block: str) -> Any:
        """Cells of a block of lines that can be cut at each separator; None for other blocks."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        special = '"' in block or "\0" in block or block[:1] in ("\n", "\r", "\ufeff")
        blank = "\n\n" in block or "\n\r" in block
        ends = block.count("\r") == block.count("\r\n")
        separator = self.dialect.separator
        if not block or special or blank or not ends or not separator.isascii():
            return None
        if len(block) > self.limits.record_bytes:
            return None
        data = block.encode()
        names = [str(j) for j in range(len(self.names))]
        kinds = dict.fromkeys(names, pa.string())
        try:
            return arrow.read_csv(
                pa.BufferReader(data),
                arrow.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
                arrow.ParseOptions(delimiter=separator, quote_char=False),
                arrow.ConvertOptions(column_types=kinds, strings_can_be_null=False),
            )
        except pa.ArrowInvalid:
            return None

    def _skip_notes(self, cells: Any) -> int:
        """Find notes in the last lines of the file, filled up with separators; how many lines."""
        first = max(0, cells.num_rows - _MOST_NOTES)
        columns = [column.slice(first).to_pylist() for column in cells.columns]
        tail = list(zip(*columns, strict=True))
        return self._skip(tail, range(self.line + first, self.line + cells.num_rows))

    def _skip(self, rows: Sequence[Sequence[str]], lines: Sequence[int]) -> int:
        end = end_of_rows(rows)
        notes = zip(lines[end:], rows[end:], strict=True)
        self.skipped += [(line, cells[0].strip()) for line, cells in notes if is_note(cells)]
        return len(rows) - end

    def _row_batches(
        self, lines: Iterator[str], size: int, places: Sequence[int] | None, binary: Any
    ) -> Iterator[Batch]:
        def batch(fraction: float) -> Batch:
            columns = list(zip(*rows, strict=True))
            chosen = columns if places is None else [columns[j] for j in places]
            return Batch(at, [text_array(cells) for cells in chosen], fraction)

        width = len(self.names)
        rows: list[list[str]] = []
        at: list[int] = []
        room = min(self.limits.record_bytes, 2**30)  # an Arrow array of texts ends at 2 GiB
        full = room
        for line, cells in self._rows(lines):
            if len(cells) > width and not any(map(str.strip, cells[width:])):
                cells = cells[:width]
            if len(cells) != width:
                if is_note(cells):
                    self.skipped.append((line, cells[0].strip()))
                    continue
                self._ragged(line, cells)
            rows.append(cells)
            at.append(line)
            # Few long rows fill the memory as well as many short ones.
            # Notes and empty rows are held back, because they may be the end of the file.
            held = _MOST_NOTES if not is_row(cells) else 0
            if len(rows) >= size + held or self.read_chars >= full:
                full = self.read_chars + room
                yield batch(self._fraction(binary))
                rows, at = [], []
        end = len(rows) - self._skip(rows[-_MOST_NOTES:], at[-_MOST_NOTES:])
        rows, at = rows[:end], at[:end]
        if rows:
            yield batch(1.0)

    def _rows(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Cells of every row that is not blank, and the line it starts on."""
        self.read_chars = self.record_start = 0
        reader = csv.reader(lines, delimiter=self.dialect.separator, strict=True)
        # A quoted cell may hold line breaks, so a row can end lines after it began.
        first, blank = self.line, 0
        # The size of a record is judged line by line, in front of the parser.
        for cells in long_records(reader):
            self.record_start = self.read_chars
            start, self.line = self.line, first + reader.line_num
            blank = 0 if cells else blank + 1
            if blank > _BLANK_LINES:
                raise InvalidTableError(
                    f"{self.label}: line {start} is the last of {blank:,} blank lines.\n"
                    "This is no table: check the file."
                )
            if cells:
                yield start, cells

    @contextlib.contextmanager
    def _text(self, binary: BinaryIO) -> Iterator[io.TextIOWrapper]:
        """The decoded text; errors on the way are told with the line."""
        text = io.TextIOWrapper(binary, encoding=self.dialect.codec, newline="")
        try:
            yield text
        except UnicodeError as error:
            self._undecodable(error)
        except csv.Error as error:
            raise InvalidTableError(
                f"{self.label}: line {self.line}: the quoting is broken ({error}).\n"
                'Close the quotes, and write a quote inside quotes twice ("").'
            ) from error
        except _DAMAGED as error:
            raise InvalidTableError(
                f"{self.label}: after line {self.line - 1} the file cannot be read ({error}).\n"
                "It is damaged or was cut short: copy or download it again."
            ) from error
        finally:
            text.detach()

    def _line(self, text: io.TextIOWrapper) -> str:
        return text.readline(self.limits.record_bytes + 1)

    def _block(self, text: io.TextIOWrapper) -> str:
        """Whole lines, and half of one only where it is too long."""
        size = min(_BLOCK, self.limits.record_bytes)
        block = text.read(size)
        return block if len(block) < size else block + self._line(text)

    def _watched(self, lines: Iterator[str], clock: Clock) -> Iterator[str]:
        """Lines for the parser, as long as one record does not outgrow the limit."""
        for count, line in enumerate(lines):
            self.read_chars += len(line)
            if not count % 1024:
                clock.check()
            self.limits.require("record_bytes", self.read_chars - self.record_start, self.label)
            yield line

    def _fraction(self, binary: Any) -> float:
        """How far the compressed bytes have been read, where that can be told."""
        packed = getattr(getattr(binary, "raw", None), "packed", binary)
        try:
            return min(1.0, float(packed.tell()) / max(self.size, 1))
        except (OSError, ValueError):
            return 0.0

    def _ragged(self, line: int, cells: list[str]) -> NoReturn:
        at = (
            f"the last column with a cell is {self.names[len(cells) - 1]!r}"
            if len(cells) < len(self.names)
            else f"after column {self.names[-1]!r} comes {cells[len(self.names)][:40]!r}"
        )
        found = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        aside = ", not counting the empty ones at its end" if self.header_ends_empty else ""
        raise InvalidTableError(
            f"{self.label}: line {line} has {found} and the header has {len(self.names)}{aside}; "
            f"{at}.\n"
            "Give every line one cell per column (quote cells that contain the separator)."
        )

    def _undecodable(self, error: UnicodeError) -> NoReturn:
        """Find the line and the column of the first byte that cannot be decoded."""
        where, byte, encoding = "the text", "a byte", self.dialect.encoding
        line, begun = 1, ""
        with self.open() as binary, contextlib.suppress(UnicodeError):
            text = io.TextIOWrapper(binary, self.dialect.codec, "surrogateescape", newline="")
            while byte == "a byte" and (piece := text.readline(_SNIFF)):
                begun += piece
                bad = _ESCAPED.search(piece)
                if bad is not None:
                    where, byte = f"line {line}", f"byte 0x{ord(bad[0]) - 0xDC00:02x}"
                    cells = _QUOTED.sub("", begun[: len(begun) - len(piece) + bad.start()])
                    column = cells.count(self.dialect.separator)
                    if column < len(self.names):
                        where += f", column {self.names[column]!r}"
                elif piece.endswith(("\n", "\r")):
                    line, begun = line + 1, ""
            text.detach()
        raise InvalidTableError(
            f"{self.label}: {where}: {byte} is not {encoding}.\n"
            "Name the file's encoding (often latin-1 or cp1252: --encoding latin-1), "
            "or save it as UTF-8.",
            reading={"encoding": "cp1252"} if encoding.startswith("utf-8") else None,
        ) from error


@contextlib.contextmanager
def _opened(source: Source, limits: Limits) -> Iterator[BinaryIO]:
    with source.open() as stream, unpacked(stream, source.label, limits) as content:
        yield content


def _first_bytes(label: str, stream: BinaryIO, limits: Limits) -> bytes:
    try:
        with unpacked(stream, label, limits) as content:
            return content.read(_FIRST)
    except _DAMAGED as error:
        raise InvalidTableError(
            f"{label}: the file cannot be decompressed ({error}).\n"
            "It is damaged or was cut short: copy or download it again."
        ) from error


def _check_header(label: str, names: list[str], separator: str, line: int) -> None:
    check_names(label, names, f"line {line}")
    if not any(names):
        raise InvalidTableError(f"{label}: line {line}: no column has a name.\nName the columns.")
    if "" in names[1:]:
        raise InvalidTableError(
            f"{label}: line {line}: column {names.index('', 1) + 1} has no name.\n"
            "Give every column a name."
        )
    if len(names) > 1 and all(is_number(name) for name in names):
        raise InvalidTableError(
            f"{label}: line {line}: the header holds numbers ({separator.join(names[:3])} …), not "
            "names.\nPut a line with the columns' names on top (a correlation matrix: --matrix)."
        )
