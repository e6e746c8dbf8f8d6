"""CSV and TSV: pyarrow cuts records into cells, and every row keeps its line.

pyarrow does not count lines, and need not where every line is a row. From the first block on that
has a blank line, a note, a line end within a cell or an error, the csv module tells the lines of
the records and which of them are rows. pyarrow then cuts the text of these: to keep the lists of
cells and make arrays of them would take twice as long.
"""

from __future__ import annotations

import contextlib
import csv
import io
import threading
import weakref
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from statistics import mode
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow

from skcoral.core.limits import MB, Clock, Limits, current
from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.tables.cells import is_number
from skcoral.tables.dialect import (
    LINE,
    LOOKED_AT,
    Dialect,
    is_note,
    recognise,
)
from skcoral.tables.sources import Source, in_memory, unpacked
from skcoral.tables.table import Batch, Table

#: Bytes that are read before the first pass; a shorter file is not opened again.
FIRST = 64 * MB
_SNIFF = 1 << 16  # bytes that tell the dialect
#: Rows without cells, or with a note, that are held back until a row follows them: more than any
#: table has below its last row; without a limit, a file of separators alone would fill the memory.
_MOST_DOUBTFUL = 10_000
#: Blank lines in a row: ten times the rows of a sheet, which take five seconds. A compressed file
#: of half a megabyte may hold fifty times as many.
_MOST_BLANK = 10_000_000
#: Seconds that pyarrow's thread gets to let go of a file; it takes some milliseconds.
_LET_GO = 5.0
#: The line that a record starts on, its cells (none in a blank one) and its text.
_Record = tuple[int, list[str], str]


def open_text(
    source: Source,
    stream: BinaryIO,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
) -> Table:
    """Open a text table: look at its start, settle the dialect, check the header."""
    label, limits = source.label, current()
    with unpacked(stream, label) as content:
        first = content.read(FIRST)
    if len(first) < FIRST:
        source = in_memory(first, label)
    dialect = recognise(label, first[:_SNIFF], first, separator, decimal, encoding)
    reader = _Reader(source, first, dialect, limits)
    return Table(
        label,
        tuple(reader.names),
        "line",
        "tsv" if dialect.separator == "\t" else "csv",
        reader.batches,
        separator=dialect.separator,
        decimal=dialect.decimal,
        encoding=dialect.encoding,
        skipped=reader.skipped,
        recognised=dialect.recognised,
        header_at=reader.header_line,
        units_at=reader.units_at,
    )


class _Reader:
    """Reads one text file from the start, as often as wanted."""

    def __init__(self, source: Source, first: bytes, dialect: Dialect, limits: Limits) -> None:
        self.source, self.label, self.dialect, self.limits = source, source.label, dialect, limits
        self.names: list[str] = []
        self.units_at: int | None = None
        self.skipped: list[tuple[int, str]] = []
        with contextlib.closing(self._numbered_records(io.BytesIO(first))) as every:
            records = filter(itemgetter(1), every)  # not the blank ones
            self.header_line, cells, text = next(islice(records, self.dialect.header, None))
            self.limits.check("columns", len(cells), self.label)
            self.names = [cell.strip() for cell in cells]
            while len(self.names) > 1 and not self.names[-1]:
                self.names.pop()  # lines that end with a separator
            self._check_names()
            if self.dialect.has_units:
                self.units_at, _, text = next(records)
            self._n_above = (self.units_at or self.header_line) + len(LINE.findall(text)) - 1
            widths = [len(cells)]
            with contextlib.suppress(InvalidTableError):  # told when the rows are read
                widths.extend(len(row) for _, row, _ in islice(every, LOOKED_AT) if row)
        # Under a header without it, lines may end with a separator; such columns must be empty.
        self._width = max(widths[0], mode(widths))

    def _check_names(self) -> None:
        names, where = self.names, f"{self.label}: line {self.header_line}"
        if "" in (names[1:] or names):  # the first may be that of row labels
            nameless = len(names) - names[::-1].index("")
            raise InvalidTableError(
                f"{where}: column {nameless} has no name.\nGive every column a name."
            )
        if len(names) > 1 and all(map(is_number, names)):
            raise InvalidTableError(
                f"{where}: the header holds numbers ({self.dialect.separator.join(names[:3])} …), "
                "not names.\nPut a line with the columns' names on top."
            )

    def _numbered_records(self, binary: Any, first: int = 1) -> Generator[_Record]:
        """The records from the line ``first`` on, which starts one."""
        most = self.limits.record_bytes
        text = io.TextIOWrapper(binary, self.dialect.encoding, "surrogateescape", newline="")
        pieces: list[str] = []

        def lines() -> Iterator[str]:
            size = 0
            while line := text.readline(most + 1):
                size = len(line) + (size if pieces else 0)
                if size > most:
                    self.limits.check("record_bytes", size, self.label)
                pieces.append(line)
                yield line

        reader = csv.reader(lines(), delimiter=self.dialect.separator, strict=True)
        usual = csv.field_size_limit(min(most, 2**31 - 1))
        start = first
        try:
            deque(islice(text, first - 1), maxlen=0)
            for cells in reader:
                record = "".join(pieces)
                if not record.isascii():
                    record.encode()  # what could not be decoded cannot be encoded
                yield start, cells, record
                start = first + reader.line_num
                pieces.clear()
        except csv.Error as error:
            raise InvalidTableError(
                f"{self.label}: line {start}: the quoting is broken ({error}).\n"
                'Close the quotes, and write a quote inside quotes twice ("").'
            ) from error
        except UnicodeError as error:
            where, byte = "the text", "a byte"
            if isinstance(error, UnicodeEncodeError):
                where = f"line {start}, character {error.start + 1}"
                byte = f"byte 0x{ord(error.object[error.start]) & 0xFF:02x}"
            raise InvalidTableError(
                f"{self.label}: {where}: {byte} is not {self.dialect.encoding}.\n"
                "Name the file's encoding (often latin-1 or cp1252: --encoding latin-1), "
                "or save it as UTF-8.",
            ) from error
        finally:
            csv.field_size_limit(usual)
            text.detach()

    def batches(self, size: int) -> Iterator[Batch]:
        """Read the rows from the start: as they are cut, as long as every line is one."""
        self.skipped.clear()
        above, encoding = self._n_above, self.dialect.encoding
        line, most = above + 1, self.limits.record_bytes
        encoding = "utf8" if encoding.startswith("utf-8") else encoding
        with (
            self._opened() as (text, packed),
            contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError),  # csv tells what is wrong
        ):
            for cells in self._cut(text, encoding, skip_rows=above, block_size=most):
                if not self._is_plain(cells):
                    break
                lines = range(line, line + cells.num_rows)
                yield from self._batch(lines, cells, packed).parts(size)
                line += cells.num_rows
            else:
                return
        yield from self._sorted_out_rows(line, size)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        """The text, and the file that it is unpacked from."""
        with self.source.open() as packed, unpacked(packed, self.label) as binary:
            yield _Bounded(binary, packed, self.label, self.limits), packed

    def _cut(self, text: Any, encoding: str, **reading: Any) -> Iterator[Any]:
        """Blocks of records, cut into cells."""
        kinds = {str(j): pa.string() for j in range(self._width)}
        reading |= {"column_names": list(kinds), "use_threads": False, "encoding": encoding}
        separator = self.dialect.separator
        how = (
            arrow.ReadOptions(**reading),
            arrow.ParseOptions(
                delimiter=separator, newlines_in_values=True, ignore_empty_lines=False
            ),
            arrow.ConvertOptions(column_types=kinds, strings_can_be_null=False),
        )
        # pyarrow's thread may let go of the file last: if Python ends first, the process aborts.
        let_go = threading.Event()
        lent = _Lent(text)
        weakref.finalize(lent, let_go.set)
        try:
            yield from arrow.open_csv(lent, *how)
        finally:
            del lent
            let_go.wait(_LET_GO)

    def _batch(self, lines: Sequence[int], cells: Any, packed: Any) -> Batch:
        fraction = min(1.0, packed.tell() / max(self.source.size, 1))
        return Batch(lines, cells.columns[: len(self.names)], fraction)

    def _is_plain(self, cells: Any) -> bool:
        """Whether the records of a block are rows for sure, and each of them is one line.

        The last one may be a note under the table if only its first cell is filled.
        """
        n_beyond = _n_bytes(cells.columns[len(self.names) :])
        if np.any(n_beyond) or not np.all(_n_bytes(cells.columns)):
            return False
        if not any(column[-1].as_py().strip() for column in cells.columns[1:]):
            return False
        buffers = (column.buffers()[2] for column in cells.columns)
        texts = (buffer.to_pybytes() for buffer in buffers if buffer is not None)
        return not any(b"\n" in text or b"\r" in text for text in texts)

    def _sorted_out_rows(self, unread: int, size: int) -> Iterator[Batch]:
        """The rows from the line ``unread`` on; a line that is wrong is an error that names it.

        Left out are blank lines, notes, and what follows the last row with cells.
        """
        rows: list[tuple[int, str]] = []  # lines and texts of the next block
        doubtful: list[_Record] = []  # rows only if another one follows
        n_blank = n_bytes = 0
        with (
            self._opened() as (binary, packed),
            contextlib.closing(self._numbered_records(binary, unread)) as records,
        ):
            for line, cells, text in records:
                is_filled = any(map(str.strip, cells[1:]))  # beside its first cell
                is_blank = not is_filled and not any(map(str.strip, cells))
                if len(cells) == self._width and not any(cells[len(self.names) :]):
                    doubtful.append((line, cells, text))
                    is_row = is_filled or not (is_blank or is_note(cells))
                    if is_row or len(doubtful) > _MOST_DOUBTFUL:
                        rows += [(line, text) for line, _, text in doubtful]
                        doubtful.clear()
                    n_blank = 0
                elif is_blank:
                    n_blank += 1
                    if n_blank > _MOST_BLANK:
                        raise TooLargeError(
                            f"{self.label}: {_MOST_BLANK:,} lines above line {line} are blank.\n"
                            "Delete them, or give the table without what follows."
                        )
                elif is_note(cells) or (n_blank and is_note(cells[:1])):
                    self.skipped.append((line, cells[0].strip()))
                else:
                    raise self._ragged(line, cells)
                n_bytes += len(text)
                if n_bytes > self.limits.record_bytes:
                    yield from self._cut_rows(rows, packed, size)
                    rows, n_bytes = [], 0
            yield from self._cut_rows(rows, packed, size)
        self.skipped += [(line, cells[0].strip()) for line, cells, _ in doubtful if is_note(cells)]
        self.skipped.sort()

    def _cut_rows(self, rows: Sequence[tuple[int, str]], packed: Any, size: int) -> Iterator[Batch]:
        if rows:
            lines, texts = zip(*rows, strict=True)
            text = "".join(texts).encode("utf-8-sig")  # pyarrow drops one mark at the beginning
            for cells in self._cut(io.BytesIO(text), "utf8", block_size=len(text) + 1):
                yield from self._batch(lines, cells, packed).parts(size)

    def _ragged(self, line: int, cells: list[str]) -> InvalidTableError:
        at = (
            f"the last column with a cell is {self.names[len(cells) - 1]!r}"
            if len(cells) < len(self.names)
            else f"after column {self.names[-1]!r} comes {cells[len(self.names)][:40]!r}"
        )
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        return InvalidTableError(
            f"{self.label}: line {line} has {count} and the header names {len(self.names)}; {at}.\n"
            "Give every line one cell per column (quote cells that contain the separator)."
        )


class _Lent:
    """What pyarrow reads from: no traceback of an error in reading refers to it."""

    closed = False

    def __init__(self, text: Any) -> None:
        self.read = text.read


class _Bounded(io.RawIOBase):
    """A text that is read no further than the limits allow.

    pyarrow reads ahead in a thread of its own, so that nobody else may ask the file where it is.
    """

    def __init__(self, binary: Any, packed: Any, label: str, limits: Limits) -> None:
        self._binary, self._packed, self._label, self._limits = binary, packed, label, limits
        self._clock, self._total = Clock(limits, label), 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._clock.check()
        data: bytes = self._binary.read(size)
        self._total += len(data)
        if self._binary is not self._packed:
            self._limits.check("bytes", self._total, self._label)
            self._limits.check_ratio(self._total, self._packed.tell(), self._label)
        return data


def _n_bytes(columns: Sequence[Any]) -> Any:
    """How much text each row has."""
    return sum(np.from_dlpack(pc.binary_length(column)) for column in columns)
