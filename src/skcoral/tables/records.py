"""Records of a text file, one by one by the ``csv`` module: the line of each, and every error."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from lzma import LZMAError
from typing import Any, BinaryIO, NoReturn
from zipfile import BadZipFile

from skcoral.core.limits import MB, Clock, Limits
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import text_array
from skcoral.tables.dialect import Dialect, end_of_rows, is_note, is_row, long_records
from skcoral.tables.sources import Source, unpacked
from skcoral.tables.table import Batch

DAMAGED_TEXT = (EOFError, zlib.error, LZMAError, OSError, BadZipFile, NotImplementedError)
#: Bytes that are read before the first pass; a shorter file is not opened again.
FIRST = 64 * MB
SNIFF = 1 << 16
BLANK_LINES = 1_000_000
MOST_NOTES = 100  # rows at the end that may be notes
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|\Z)')
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that could not be decoded


class RecordReader:
    """Reads records line by line, and tells what is wrong with one."""

    def __init__(self, source: Source, first: bytes, dialect: Dialect, limits: Limits) -> None:
        self.label, self.limits, self.dialect = source.label, limits, dialect
        self.open: Callable[[], AbstractContextManager[Any]]
        self.size = source.size
        if len(first) < FIRST:
            self.open, self.size = lambda: io.BytesIO(first), len(first)
        else:
            self.open = lambda: _opened(source, limits)
        self.names: list[str] = []
        self.n_cells = 0  # of the header, with empty ones at its end
        self.header_line = self.units_line = self.body_line = self.line = 1
        self.head = ""  # all that comes before the rows
        self.skipped: list[tuple[int, str]] = []
        self.read_chars = self.record_start = 0

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
            held = MOST_NOTES if not is_row(cells) else 0
            if len(rows) >= size + held or self.read_chars >= full:
                full = self.read_chars + room
                yield batch(self._fraction(binary))
                rows, at = [], []
        end = len(rows) - self._skip(rows[-MOST_NOTES:], at[-MOST_NOTES:])
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
            if blank > BLANK_LINES:
                raise InvalidTableError(
                    f"{self.label}: line {start} is the last of {blank:,} blank lines.\n"
                    "This is no table: check the file."
                )
            if cells:
                yield start, cells

    @contextlib.contextmanager
    def _text(self, binary: BinaryIO) -> Iterator[io.TextIOWrapper]:
        """The decoded text."""
        text = io.TextIOWrapper(binary, encoding=self.dialect.codec, newline="")
        with self._told():
            try:
                yield text
            finally:
                text.detach()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors on the way are told with the line."""
        try:
            yield
        except UnicodeError as error:
            self._undecodable(error)
        except csv.Error as error:
            raise InvalidTableError(
                f"{self.label}: line {self.line}: the quoting is broken ({error}).\n"
                'Close the quotes, and write a quote inside quotes twice ("").'
            ) from error
        except DAMAGED_TEXT as error:
            raise InvalidTableError(
                f"{self.label}: after line {self.line - 1} the file cannot be read ({error}).\n"
                "It is damaged or was cut short: copy or download it again."
            ) from error

    def _line(self, text: io.TextIOWrapper) -> str:
        return text.readline(self.limits.record_bytes + 1)

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
        ends_empty = self.n_cells > len(self.names)
        aside = ", not counting the empty ones at its end" if ends_empty else ""
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
            while byte == "a byte" and (piece := text.readline(SNIFF)):
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
