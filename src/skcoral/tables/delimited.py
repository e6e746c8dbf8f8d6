"""CSV and TSV: pyarrow cuts blocks of records into cells, and every row keeps its line.

pyarrow does not count lines. Where every line is a record it need not; elsewhere the line ends
outside quotes are counted. Records with too many or too few cells are judged one by one: notes are
left out, empty cells at the end are cut off, and anything else is an error with its line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, NoReturn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skcoral.core.limits import MB, Clock, Limits, current
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import text_array
from skcoral.tables.cells import check_names, is_number
from skcoral.tables.dialect import Dialect, check_given, end_of_rows, is_note, recognise
from skcoral.tables.sources import Source, unpacked
from skcoral.tables.table import Batch, Table

#: Bytes that are read before the first pass; a shorter file is not opened again.
FIRST = 64 * MB
#: Bytes that tell the dialect, and bytes that are cut at once: more is no faster.
_SNIFF, _BLOCK = 1 << 16, 4 * MB
#: Rows at the end that may be notes.
_MOST_NOTES = 100
_QUOTE, _NEW_LINE, _RETURN = b'"\n\r'
_LINE_END = re.compile(rb"\r\n?|\n")
_DAMAGED = (EOFError, zlib.error, OSError, BadZipFile, NotImplementedError)


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
    check_given(label, separator, decimal, encoding)
    try:
        with unpacked(stream, label) as content:
            first = content.read(FIRST)
    except _DAMAGED as error:
        raise _damaged(label, error) from error
    found = recognise(label, first[:_SNIFF], first, separator, decimal, encoding)
    reader = _Reader(source, first, found, limits)
    return Table(
        label,
        tuple(reader.names),
        "line",
        "tsv" if found.separator == "\t" else "csv",
        reader.batches,
        separator=found.separator,
        decimal=found.decimal,
        encoding=f"{found.encoding}-sig" if first.startswith(codecs.BOM_UTF8) else found.encoding,
        skipped=reader.skipped,
        recognised=found.recognised,
        header_at=reader.header_line if found.header else 1,
        units_at=reader.units_line if found.has_units else None,
    )


def _damaged(label: str, error: Exception) -> InvalidTableError:
    return InvalidTableError(
        f"{label}: the file cannot be decompressed or read to its end ({error}).\n"
        "It is damaged or was cut short: copy or download it again."
    )


class _Reader:
    """Reads one text file from the start, as often as wanted."""

    def __init__(self, source: Source, first: bytes, dialect: Dialect, limits: Limits) -> None:
        self.source, self.label, self.dialect, self.limits = source, source.label, dialect, limits
        self.first = first if len(first) < FIRST else None
        self.skipped: list[tuple[int, str]] = []
        self._read_header(first)

    def _read_header(self, first: bytes) -> None:
        """Read the names, and find where the rows begin."""
        text = io.TextIOWrapper(
            io.BytesIO(first), self.dialect.codec, "surrogateescape", newline=""
        )
        head: list[str] = []

        def lines() -> Iterator[str]:
            size = 1
            while line := text.readline(self.limits.record_bytes + 1):
                head.append(line)
                size += len(line)
                self.limits.require("record_bytes", size, self.label)
                yield line

        records = self._records(lines(), 1)
        header = next(islice(records, self.dialect.header, None))
        self.header_line, cells = header
        self.limits.require("columns", len(cells), self.label)
        self.names = [cell.strip() for cell in cells]
        while len(self.names) > 1 and not self.names[-1]:
            self.names.pop()  # lines that end with a separator
        self.units_line = next(records, header)[0] if self.dialect.has_units else 0
        self.head = "".join(head).encode("utf-8", "surrogateescape")
        self._check_text(self.head, 1)
        self.body_line = len(_LINE_END.findall(self.head)) + 1
        _check_header(self.label, self.names, self.dialect.separator, self.header_line)

    def _records(self, lines: Iterator[str], line: int) -> Iterator[tuple[int, list[str]]]:
        """Records that are not blank, by the ``csv`` module, and the line that each starts on."""
        reader = csv.reader(lines, delimiter=self.dialect.separator, strict=True)
        start = line
        try:
            for cells in reader:
                if cells:
                    yield start, cells
                start = line + reader.line_num
        except csv.Error as error:
            self._broken_quotes(start, str(error))

    def batches(self, size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        """Read the rows from the start."""
        clock, line = Clock(self.limits, self.label), self.body_line
        self.skipped.clear()
        with self._opened() as (binary, packed, n_bytes):
            for block, is_last in self._blocks(binary, packed):
                clock.check()
                lines, cells, n_lines = self._cut(block, line)
                if is_last:
                    end = cells.num_rows - self._skip_notes(cells, lines)
                    lines, cells = lines[:end], cells.slice(0, end)
                line += n_lines
                chosen = range(len(self.names)) if places is None else places
                for part in cells.to_batches():
                    columns = [part.column(j) for j in chosen]
                    fraction = min(1.0, packed.tell() / max(n_bytes, 1))
                    yield from Batch(lines, columns, fraction).parts(size)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any, int]]:
        """The text, the file that it is unpacked from, and the size of that."""
        if self.first is not None:
            binary = io.BytesIO(self.first)
            yield binary, binary, len(self.first)
            return
        with self.source.open() as packed:
            try:
                with unpacked(packed, self.label) as binary:
                    yield binary, packed, self.source.size
            except _DAMAGED as error:
                raise _damaged(self.label, error) from error

    def _blocks(self, binary: Any, packed: Any) -> Iterator[tuple[bytes, bool]]:
        """The rows as UTF-8, in blocks that end with a record, and whether a block is the last."""
        pieces = self._pieces(binary)
        block, piece, total = b"", next(pieces, b""), 0
        while piece:
            following = next(pieces, b"")
            block += piece
            end = len(block) if not following else _end_of_records(block)
            if end:
                yield block[:end], not following
            block, piece, total = block[end:], following, total + len(piece)
            self.limits.require("record_bytes", len(block), self.label)
            if binary is not packed:
                self.limits.require("bytes", total, self.label)
                self.limits.check_ratio(total, packed.tell(), self.label)

    def _pieces(self, binary: Any) -> Iterator[bytes]:
        """What comes after the header, as UTF-8; a byte that cannot be decoded stays as it is."""
        size = min(_BLOCK, self.limits.record_bytes)
        if self.dialect.codec != "utf-8-sig":
            text = io.TextIOWrapper(binary, self.dialect.codec, "surrogateescape", newline="")
            text.read(len(self.head.decode()))
            try:
                yield from iter(lambda: text.read(size).encode("utf-8", "surrogateescape"), b"")
            except UnicodeError as error:
                raise self._undecodable("the text", "a byte") from error
            finally:
                text.detach()
            return
        start = binary.read(len(codecs.BOM_UTF8))
        rest = b"" if start == codecs.BOM_UTF8 else start  # the mark is no part of the header
        body = (rest + binary.read(len(self.head) - len(rest) + size))[len(self.head) :]
        yield from filter(None, (body,))
        yield from iter(lambda: binary.read(size), b"")

    def _cut(self, block: bytes, line: int) -> tuple[Any, Any, int]:
        """Lines and cells of the records of a block that begins on a line, and its line count."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        width, separator = len(self.names), self.dialect.separator
        repaired: dict[int, list[str]] = {}
        notes: dict[int, str] = {}
        ragged: list[tuple[int, list[str]]] = []

        def judge(row: Any) -> str:
            """Repair or leave out a record with another number of cells, or give up."""
            try:  # nothing may be raised in here
                read = next(csv.reader(io.StringIO(row.text, newline=""), delimiter=separator))
            except (csv.Error, StopIteration):
                read = [row.text]
            if len(read) > width and not any(map(str.strip, read[width:])):
                repaired[row.number - 1] = read[:width]
            elif is_note(read):
                notes[row.number - 1] = read[0].strip()
            else:
                ragged.append((row.number - 1, read))
                return "error"
            return "skip"

        self._check_text(block, line)
        kinds = {str(j): pa.string() for j in range(width)}
        if not block.strip(b"\r\n"):
            n_lines = _count(block, _NEW_LINE) + _count(block, _RETURN) - block.count(b"\r\n")
            return range(0), pa.schema(kinds).empty_table(), n_lines
        mark = codecs.BOM_UTF8 if block.startswith(codecs.BOM_UTF8) else b""  # one is dropped
        try:
            cells = arrow.read_csv(
                pa.BufferReader(mark + block),
                arrow.ReadOptions(
                    column_names=list(kinds), use_threads=False, block_size=len(block) + 4
                ),
                arrow.ParseOptions(
                    delimiter=separator, newlines_in_values=True, invalid_row_handler=judge
                ),
                arrow.ConvertOptions(
                    check_utf8=False, column_types=kinds, strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            lines, _ = self._lines(block, line)
            if not ragged or ragged[0][0] >= len(lines):
                self._broken_quotes(line, str(error))
            self._ragged(int(lines[ragged[0][0]]), ragged[0][1])
        n_lines = _count(block, _NEW_LINE) + (not block.endswith(b"\n"))
        only_pairs = b"\r" not in block or _count(block, _RETURN) == block.count(b"\r\n")
        # A quote that is not closed takes in the end of the block.
        tail = cells.column(-1).slice(max(0, cells.num_rows - 1)).to_pylist()
        lines = np.arange(line, line + n_lines)
        if cells.num_rows != n_lines or not only_pairs or "".join(tail).endswith("\n"):
            lines, n_lines = self._lines(block, line)
            if len(lines) != cells.num_rows + len(notes) + len(repaired):
                self._broken_quotes(line, "a quote is not closed")
            self.skipped += [(int(lines[i]), text) for i, text in notes.items()]
            if repaired:  # they are appended, and put back where they stood
                columns = [text_array(column) for column in zip(*repaired.values(), strict=True)]
                regular = np.delete(np.arange(len(lines)), [*notes, *repaired])
                order = np.argsort(np.r_[regular, [*repaired]])
                cells = pa.concat_tables([cells, pa.table(columns, list(kinds))]).take(order)
            lines = np.delete(lines, [*notes])
        return lines, cells.combine_chunks(), n_lines

    def _lines(self, block: bytes, line: int) -> tuple[NDArray[np.int64], int]:
        """The line on which each record of a block begins, and how many lines the block has."""
        separator = ord(self.dialect.separator)
        text = np.frombuffer(block, dtype=np.uint8)
        quotes = np.flatnonzero(text == _QUOTE)
        opening = quotes[::2]
        before = text[opening[opening > 0] - 1]
        if len(quotes) % 2 or not np.isin(before, [separator, _QUOTE, _NEW_LINE, _RETURN]).all():
            # A quote is not closed, or stands within a cell without quotes.
            lines = io.StringIO(block.decode(), newline="")
            starts = [start for start, _ in self._records(lines, line)]
            return np.array(starts, dtype=np.int64), len(_LINE_END.findall(block))
        before_new_line = np.append(text[1:] == _NEW_LINE, False)
        ends = np.flatnonzero((text == _NEW_LINE) | ((text == _RETURN) & ~before_new_line))
        if not len(ends) or ends[-1] + 1 < len(text):
            ends = np.append(ends, len(text))  # the last line of the file
        of_records = ends[np.searchsorted(quotes, ends) % 2 == 0]
        first: Any = np.r_[0, of_records[:-1] + 1]
        paired = (of_records > first) & (text[of_records - 1] == _RETURN)
        numbers = line + np.searchsorted(ends, first)
        return numbers[of_records - first - paired > 0], len(ends)

    def _skip_notes(self, cells: Any, lines: Sequence[int]) -> int:
        """Find notes in the last rows of the file, filled up with separators; how many rows."""
        first = max(0, cells.num_rows - _MOST_NOTES)
        columns = [column.to_pylist() for column in cells.slice(first).columns]
        rows = list(zip(*columns, strict=True))
        end = end_of_rows(rows)
        notes = zip(lines[first + end :], rows[end:], strict=True)
        self.skipped += [(int(line), row[0].strip()) for line, row in notes if is_note(row)]
        return len(rows) - end

    def _check_text(self, block: bytes, line: int) -> None:
        """Refuse a block with a byte that cannot be decoded, and say where it stands."""
        try:
            block.decode()
        except UnicodeDecodeError as error:
            before = block[: error.start]
            starts = [0, *(found.end() for found in _LINE_END.finditer(before))]
            begun = before[starts[-1] :].decode()
            column = len(next(csv.reader([begun], delimiter=self.dialect.separator), [""])) - 1
            named = f", column {self.names[column]!r}" if column < len(self.names) else ""
            byte = f"byte 0x{block[error.start]:02x}"
            raise self._undecodable(f"line {line + len(starts) - 1}{named}", byte) from error

    def _undecodable(self, where: str, byte: str) -> InvalidTableError:
        encoding = self.dialect.encoding
        return InvalidTableError(
            f"{self.label}: {where}: {byte} is not {encoding}.\n"
            "Name the file's encoding (often latin-1 or cp1252: --encoding latin-1), "
            "or save it as UTF-8.",
            reading={"encoding": "cp1252"} if encoding.startswith("utf-8") else None,
        )

    def _broken_quotes(self, line: int, why: str) -> NoReturn:
        raise InvalidTableError(
            f"{self.label}: line {line}: the quoting is broken ({why}).\n"
            'Close the quotes, and write a quote inside quotes twice ("").'
        )

    def _ragged(self, line: int, cells: list[str]) -> NoReturn:
        at = (
            f"the last column with a cell is {self.names[len(cells) - 1]!r}"
            if len(cells) < len(self.names)
            else f"after column {self.names[-1]!r} comes {cells[len(self.names)][:40]!r}"
        )
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        raise InvalidTableError(
            f"{self.label}: line {line} has {count} and the header names {len(self.names)}; {at}.\n"
            "Give every line one cell per column (quote cells that contain the separator)."
        )


def _end_of_records(block: bytes) -> int:
    """Where the last complete record ends: after a line end that no quotes enclose."""
    end = block.rfind(b"\n") + 1
    while end and _count(memoryview(block)[:end], _QUOTE) % 2:
        end = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1
    return end


def _count(text: bytes | memoryview, byte: int) -> int:
    """How often a byte occurs; three times as fast as ``bytes.count`` for a frequent one."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == byte))


def _check_header(label: str, names: list[str], separator: str, line: int) -> None:
    check_names(label, names, f"line {line}")
    if "" in (names[1:] or names):  # the first may be that of row labels
        raise InvalidTableError(
            f"{label}: line {line}: column {len(names) - names[::-1].index('')} has no name.\n"
            "Give every column a name."
        )
    if len(names) > 1 and all(is_number(name) for name in names):
        raise InvalidTableError(
            f"{label}: line {line}: the header holds numbers ({separator.join(names[:3])} …), not "
            "names.\nPut a line with the columns' names on top (a correlation matrix: --matrix)."
        )
