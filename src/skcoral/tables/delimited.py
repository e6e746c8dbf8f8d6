"""CSV and TSV: dialect, encoding, and errors that name the line and the column.

Blocks of whole records are cut into cells by pyarrow, which does not tell lines. Where every line
is a record, it need not; elsewhere line ends within quotes and blank lines are counted. A block
that does not add up, because a record is ragged, a quote is not closed or a byte cannot be decoded,
is parsed again by the ``csv`` module, from there to the end: it tells the line and what is wrong.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skcoral.core.limits import MB, Clock, Limits, current
from skcoral.exceptions import InvalidTableError
from skcoral.tables import dialect
from skcoral.tables.arrow_arrays import text_scalar
from skcoral.tables.cells import check_names, is_number
from skcoral.tables.dialect import is_note
from skcoral.tables.records import (
    BLANK_LINES,
    DAMAGED_TEXT,
    FIRST,
    MOST_NOTES,
    SNIFF,
    RecordReader,
)
from skcoral.tables.sources import Source, unpacked
from skcoral.tables.table import Batch, Table

_BLOCK = 4 * MB
_QUOTE, _NEW_LINE, _RETURN = b'"\n\r'


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
    found = dialect.recognise(label, first[:SNIFF], first, separator, decimal, encoding)
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
        encoding=f"{found.encoding}-sig" if first.startswith(codecs.BOM_UTF8) else found.encoding,
        thousands=found.thousands,
        skipped=reader.skipped,
        recognised=found.recognised,
        header_at=reader.header_line if found.header else 1,
        units_at=reader.units_line if found.has_units else None,
    )


class _Reader(RecordReader):
    """Reads one text file from the start, as often as wanted."""

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
            return "skip" if len(ragged) <= MOST_NOTES else "error"

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
        if not len(lines) and n_lines > BLANK_LINES:
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
        first = max(0, cells.num_rows - MOST_NOTES)
        columns = [column.slice(first).to_pylist() for column in cells.columns]
        return self._skip(list(zip(*columns, strict=True)), lines[first:])


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


def _first_bytes(label: str, stream: BinaryIO, limits: Limits) -> bytes:
    try:
        with unpacked(stream, label, limits) as content:
            return content.read(FIRST)
    except DAMAGED_TEXT as error:
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
