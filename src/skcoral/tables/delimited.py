"""CSV and TSV: dialect, encoding, and errors that name the line and the column.

Blocks of whole records are cut into cells by pyarrow, which does not tell lines. Where every line
is a record, it need not; elsewhere line ends within quotes and blank lines are counted. A block
that does not add up, because a record is ragged, a quote is not closed or a byte cannot be decoded,
is parsed again by the ``csv`` module, from there to the end: it tells the line and what is wrong.
"""

from __future__ import annotations

import codecs
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

import numpy as np
from numpy.typing import NDArray

from skcoral.exceptions import InvalidTableError
from skcoral.limits import MB, Clock, Limits, current
from skcoral.tables import dialect
from skcoral.tables.cells import check_names, is_number, text_array, text_scalar
from skcoral.tables.dialect import Dialect, end_of_rows, is_note, is_row, long_records
from skcoral.tables.sources import Source, unpacked
from skcoral.tables.table import Batch, Table

_DAMAGED = (EOFError, zlib.error, LZMAError, OSError, BadZipFile, NotImplementedError)
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|\Z)')
_ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that could not be decoded
_SNIFF = 1 << 16
#: Bytes that are read before the first pass; a shorter file is not opened again.
_FIRST = 64 * MB
_BLOCK = 4 * MB
_BLANK_LINES = 1_000_000
_QUOTE, _NEW_LINE, _RETURN = b'"\n\r'
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
        self.n_cells = 0  # of the header, with empty ones at its end
        self.header_line = self.units_line = self.body_line = self.line = 1
        self.head = ""  # all that comes before the rows
        self.skipped: list[tuple[int, str]] = []
        self.read_chars = self.record_start = 0

    def read_header(self) -> None:
        """Read the names, and where the rows begin."""
        clock = Clock(self.limits, self.label)
        read: list[str] = []

        def lines(text: io.TextIOWrapper) -> Iterator[str]:
            for line in iter(lambda: self._line(text), ""):
                read.append(line)
                yield line

        with self.open() as binary, self._text(binary) as text:
            rows = self._rows(self._watched(lines(text), clock))
            for line, cells in itertools.islice(rows, self.dialect.header, None):
                self.header_line = line
                self.limits.require("columns", len(cells), self.label)
                self.names = [cell.strip() for cell in cells]
                self.n_cells = len(cells)
                break
            while len(self.names) > 1 and not self.names[-1]:
                self.names.pop()  # lines that end with a separator
            if self.dialect.has_units:
                self.units_line = next(rows, (self.header_line, []))[0]
            self.body_line = self.line
        self.head = "".join(read)
        _check_header(self.label, self.names, self.dialect.separator, self.header_line)

    def batches(self, size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        """Read the rows from the start."""
        clock = Clock(self.limits, self.label)
        self.skipped.clear()
        self.line = self.body_line
        with self.open() as binary, self._told():
            for block, is_last in self._blocks(binary):
                found = self._cut(block)
                if found is None:
                    break
                lines, cells, n_lines = found
                if is_last:
                    kept = cells.num_rows - self._skip_notes(cells, lines)
                    lines, cells = lines[:kept], cells.slice(0, kept)
                self.line += n_lines
                chosen = range(len(self.names)) if places is None else places
                columns = [cells.column(j).combine_chunks() for j in chosen]
                if len(lines):
                    yield from Batch(lines, columns, self._fraction(binary)).parts(size)
                clock.check()
            else:
                return
        with self.open() as binary, self._text(binary) as text:
            for _ in range(self.line - 1):
                text.readline()
            rest = iter(lambda: self._line(text), "")
            yield from self._row_batches(self._watched(rest, clock), size, places, binary)

    def _blocks(self, binary: Any) -> Iterator[tuple[bytes, bool]]:
        """The rows as UTF-8, in blocks that end with a record, and whether a block is the last.

        A byte that cannot be decoded ends in a block that cannot be cut.
        """
        pieces = self._pieces(binary)
        block, piece = b"", next(pieces, b"")
        while piece:
            following = next(pieces, b"")
            block += piece
            end = len(block) if not following else _end_of_records(block)
            if end:
                yield block[:end], not following
            block, piece = block[end:], following
            self.limits.require("record_bytes", len(block), self.label)

    def _pieces(self, binary: Any) -> Iterator[bytes]:
        """What comes after the header, as UTF-8."""
        size = min(_BLOCK, self.limits.record_bytes)
        if self.dialect.codec != "utf-8-sig":
            text = io.TextIOWrapper(binary, self.dialect.codec, "surrogateescape", newline="")
            text.read(len(self.head))
            yield from iter(lambda: text.read(size).encode("utf-8", "surrogateescape"), b"")
            text.detach()
            return
        head = self.head.encode()
        begun = binary.read(len(codecs.BOM_UTF8) + len(head))
        # the mark of the encoding is no part of the header
        end = len(head) + (len(codecs.BOM_UTF8) if begun.startswith(codecs.BOM_UTF8) else 0)
        yield from filter(None, (begun[end:] + binary.read(size),))
        yield from iter(lambda: binary.read(size), b"")

    def _cut(self, block: bytes) -> tuple[Sequence[int], Any, int] | None:
        """Lines and cells of a block of records, and its number of lines; None if it is irregular.

        Of records with another number of cells, notes are left out; all others are irregular.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv as arrow

        separator = self.dialect.separator
        if not separator.isascii() or block.startswith(codecs.BOM_UTF8):  # arrow would drop it
            return None
        ragged: list[Any] = []

        def keep(row: Any) -> str:
            ragged.append(row)
            return "skip" if len(ragged) <= _MOST_NOTES else "error"

        names = [str(j) for j in range(self.n_cells)]
        kinds = dict.fromkeys(names, pa.string())
        try:
            cells = arrow.read_csv(
                pa.BufferReader(block),
                arrow.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
                arrow.ParseOptions(
                    delimiter=separator, newlines_in_values=True, invalid_row_handler=keep
                ),
                arrow.ConvertOptions(column_types=kinds, strings_can_be_null=False),
            )
        except pa.ArrowInvalid:
            return None
        extra = (cells.column(j) for j in range(len(self.names), self.n_cells))
        if any(pc.any(pc.not_equal(column, text_scalar(""))).as_py() for column in extra):
            return None
        n_lines = _count(block, _NEW_LINE) + (not block.endswith(b"\n"))
        only_pairs = b"\r" not in block or _count(block, _RETURN) == block.count(b"\r\n")
        # A quote that is not closed takes in the end of the block.
        tail = cells.column(-1).slice(max(0, cells.num_rows - 1)).to_pylist()
        if cells.num_rows == n_lines and only_pairs and not "".join(tail).endswith("\n"):
            return range(self.line, self.line + n_lines), cells, n_lines
        found = _lines_of_records(block, ord(separator))
        if found is None or len(found[0]) != cells.num_rows + len(ragged):
            return None
        lines, n_lines = found
        if not len(lines) and n_lines > _BLANK_LINES:
            return None
        for row in ragged:
            line = self.line + int(lines[row.number - 1])
            (read,) = csv.reader(io.StringIO(row.text, newline=""), delimiter=separator)
            if not is_note(read):
                return None
            self.skipped.append((line, read[0].strip()))
        kept = np.delete(lines, [row.number - 1 for row in ragged])
        return (self.line + kept).tolist(), cells, n_lines

    def _skip_notes(self, cells: Any, lines: Sequence[int]) -> int:
        """Find notes in the last rows of the file, filled up with separators; how many rows."""
        first = max(0, cells.num_rows - _MOST_NOTES)
        columns = [column.slice(first).to_pylist() for column in cells.columns]
        return self._skip(list(zip(*columns, strict=True)), lines[first:])

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
        except _DAMAGED as error:
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


def _end_of_records(block: bytes) -> int:
    """Where the last record ends that is whole: after a line end that no quotes enclose."""
    end = block.rfind(b"\n") + 1
    while end and _count(memoryview(block)[:end], _QUOTE) % 2:
        end = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1
    return end


def _count(text: bytes | memoryview, byte: int) -> int:
    """How often a byte occurs; three times as fast as ``bytes.count`` for a frequent one."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == byte))


def _lines_of_records(block: bytes, separator: int) -> tuple[NDArray[np.int64], int] | None:
    """On which line of a block each record begins, from 0, and how many lines the block has.

    None where a quote is not closed, or stands within a cell without quotes.
    """
    text = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    opening = quotes[::2]
    before = text[opening[opening > 0] - 1]
    if len(quotes) % 2 or not np.isin(before, [separator, _QUOTE, _NEW_LINE, _RETURN]).all():
        return None
    before_new_line = np.append(text[1:] == _NEW_LINE, False)
    ends = np.flatnonzero((text == _NEW_LINE) | ((text == _RETURN) & ~before_new_line))
    if not len(ends) or ends[-1] + 1 < len(text):
        ends = np.append(ends, len(text))  # the last line of the file
    of_records = ends[np.searchsorted(quotes, ends) % 2 == 0]
    starts: Any = np.r_[0, of_records[:-1] + 1]
    paired = (of_records > starts) & (text[of_records - 1] == _RETURN)
    lines = np.searchsorted(ends, starts)
    return lines[of_records - starts - paired > 0], len(ends)


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
