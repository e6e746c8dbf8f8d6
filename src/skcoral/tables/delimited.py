"""CSV and TSV: pyarrow cuts records into cells, and every row keeps its line.

pyarrow does not count lines. Where every line is a row it need not; a file with blank lines, notes
or line ends within cells is read once more, slowly, and so is one that is wrong somewhere.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from statistics import mode
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skcoral.core.limits import MB, Clock, Limits, current
from skcoral.exceptions import InvalidTableError
from skcoral.tables.arrow_arrays import selected, text_array
from skcoral.tables.cells import check_names, is_number
from skcoral.tables.dialect import LOOKED_AT, Dialect, check_given, end_of_rows, is_note, recognise
from skcoral.tables.sources import Source, unpacked
from skcoral.tables.table import Batch, Table

#: Bytes that are read before the first pass; a shorter file is not opened again.
FIRST = 64 * MB
_SNIFF = 1 << 16  # bytes that tell the dialect
#: Rows at the end that may be notes.
_MOST_NOTES = 100


def open_text(
    source: Source,
    stream: BinaryIO,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
) -> Table:
    """Open a text table: look at its start, settle the dialect, check the header."""
    label, limits = source.label, current()
    check_given(label, separator, decimal, encoding)
    with unpacked(stream, label) as content:
        first = content.read(FIRST)
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
        header_at=reader.header_line if dialect.header else 1,
        units_at=reader.units_line if dialect.has_units else None,
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
        with contextlib.closing(self._records(io.BytesIO(first))) as every:
            records = filter(itemgetter(1), every)  # not the blank ones
            header = next(islice(records, self.dialect.header, None))
            self.header_line, cells, self._n_above = header
            self.limits.check("columns", len(cells), self.label)
            self.names = [cell.strip() for cell in cells]
            while len(self.names) > 1 and not self.names[-1]:
                self.names.pop()  # lines that end with a separator
            self._check_text(self.header_line, cells)
            self.units_line = 0
            if self.dialect.has_units:
                self.units_line, _, self._n_above = next(records)
            _check_header(self.label, self.names, self.dialect.separator, self.header_line)
            widths = [len(cells)]
            with contextlib.suppress(InvalidTableError):  # told when the rows are read
                widths += [len(row) for _, row, _ in islice(every, LOOKED_AT) if row]
        # Under a header without it, lines may end with a separator; such columns must be empty.
        self._width = max(widths[0], mode(widths))

    def _records(self, binary: Any) -> Generator[tuple[int, list[str], int]]:
        """The line of each record, its cells (none in a blank one), and the last of its lines."""
        most = self.limits.record_bytes
        text = io.TextIOWrapper(binary, self.dialect.encoding, "surrogateescape", newline="")
        size = 0

        def lines() -> Iterator[str]:
            nonlocal size
            while line := text.readline(most + 1):
                size += len(line)
                self.limits.check("record_bytes", size, self.label)
                yield line

        reader = csv.reader(lines(), delimiter=self.dialect.separator, strict=True)
        usual = csv.field_size_limit(min(most, 2**31 - 1))
        start = 1
        try:
            for cells in reader:
                yield start, cells, reader.line_num
                start, size = reader.line_num + 1, 0
        except csv.Error as error:
            raise InvalidTableError(
                f"{self.label}: line {start}: the quoting is broken ({error}).\n"
                'Close the quotes, and write a quote inside quotes twice ("").'
            ) from error
        except UnicodeError as error:
            raise self._undecodable("the text", "a byte") from error
        finally:
            csv.field_size_limit(usual)
            text.detach()

    def batches(self, size: int) -> Iterator[Batch]:
        """Read the rows from the start."""
        self.skipped.clear()
        with self._opened() as (binary, packed, n_bytes):
            for lines, cells in self._rows(binary, packed):
                fraction = min(1.0, packed.tell() / max(n_bytes, 1))
                yield from Batch(lines, cells.columns, fraction).parts(size)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any, int]]:
        """The text, the file that it is unpacked from, and the size of that."""
        if self.first is not None:
            binary = io.BytesIO(self.first)
            yield binary, binary, len(self.first)
            return
        with self.source.open() as packed, unpacked(packed, self.label) as binary:
            yield binary, packed, self.source.size

    def _rows(self, binary: Any, packed: Any) -> Iterator[tuple[Any, Any]]:
        """Lines and cells of the rows; notes and blank lines are left out."""
        import pyarrow as pa

        lines = _Lines(self._n_above, self._line_by_line())
        held: list[Any] = []
        with contextlib.closing(lines.records):
            try:
                for cells in self._cut(binary, packed, lines):
                    held.append(cells)
                    if len(held) > 2:  # notes at the end are in the last two
                        yield self._placed(held.pop(0), lines)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                if sum(1 for _ in lines.records):  # it raises an error that names the line
                    told = f"{self.label}: the text cannot be read ({error})."
                    raise InvalidTableError(told) from error
            for cells in pa.Table.from_batches(held).combine_chunks().to_batches() if held else ():
                filled = np.flatnonzero(~_is_empty(cells))
                cells = cells.slice(0, filled[-1] + 1 if len(filled) else 0)
                places, rows = self._placed(cells, lines)
                end = len(places) - self._skip_notes(rows, places)
                yield places[:end], rows.slice(0, end)
            if not lines.is_plain:
                deque(lines.records, 0)
        self.skipped.sort()

    def _cut(self, binary: Any, packed: Any, lines: _Lines) -> Iterator[Any]:
        """Blocks of records, cut into cells."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        separator, encoding = self.dialect.separator, self.dialect.encoding

        def judge(row: Any) -> str:
            """Leave out a note, or give up on a record with another number of cells."""
            try:  # nothing may be raised in here
                cells = next(csv.reader(io.StringIO(row.text, newline=""), delimiter=separator))
            except (csv.Error, StopIteration):
                return "error"
            lines.is_plain = False
            return "skip" if is_note(cells) or not any(map(str.strip, cells)) else "error"

        kinds = {str(j): pa.string() for j in range(self._width)}
        yield from arrow.open_csv(
            _Bounded(binary, packed, self.label, self.limits),
            arrow.ReadOptions(
                column_names=list(kinds),
                use_threads=False,
                block_size=self.limits.record_bytes,
                skip_rows=self._n_above,
                encoding="utf8" if encoding.startswith("utf-8") else encoding,
            ),
            arrow.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=judge,
            ),
            arrow.ConvertOptions(column_types=kinds, strings_can_be_null=False),
        )

    def _placed(self, cells: Any, lines: _Lines) -> tuple[NDArray[np.int64], Any]:
        """The lines and cells of the rows of a block, without blank lines and columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        places, is_row = lines.of(cells)
        columns = [selected(column, is_row) for column in cells.columns]
        width = len(self.names)
        if any(pc.any(pc.not_equal(column, "")).as_py() for column in columns[width:]):
            deque(self._line_by_line(), 0)  # it raises an error that names the line
        names = cells.schema.names[:width]
        return places[is_row], pa.record_batch(columns[:width], names)

    def _line_by_line(self) -> Generator[tuple[int, bool]]:
        """The line of each record that pyarrow cuts, and whether it is a row; notes are kept.

        Raises an error about the first line that is wrong.
        """
        clock = Clock(self.limits, self.label)
        with self._opened() as (binary, _, _), contextlib.closing(self._records(binary)) as records:
            for line, cells, last in records:
                if last <= self._n_above:
                    continue
                clock.check()
                self._check_text(line, cells)
                fits = len(cells) == self._width and not any(cells[len(self.names) :])
                if fits or not cells:
                    yield line, fits
                elif is_note(cells):
                    self.skipped.append((line, cells[0].strip()))
                elif any(map(str.strip, cells)):
                    raise self._ragged(line, cells)

    def _skip_notes(self, cells: Any, lines: NDArray[np.int64]) -> int:
        """Find notes in the last rows of the file, filled up with separators; how many rows."""
        first = max(0, cells.num_rows - _MOST_NOTES)
        columns = [column.to_pylist() for column in cells.slice(first).columns]
        rows = list(zip(*columns, strict=True))
        end = end_of_rows(rows)
        notes = zip(lines[first + end :], rows[end:], strict=True)
        self.skipped += [(int(line), row[0].strip()) for line, row in notes if is_note(row)]
        return len(rows) - end

    def _check_text(self, line: int, cells: Sequence[str]) -> None:
        """Refuse a record with a byte that cannot be decoded, and say where it stands."""
        for j, cell in enumerate(cells):
            if not cell.isascii():
                try:
                    cell.encode()
                except UnicodeEncodeError as error:
                    named = f", column {self.names[j]!r}" if j < len(self.names) else ""
                    byte = f"byte 0x{ord(cell[error.start]) & 0xFF:02x}"
                    raise self._undecodable(f"line {line}{named}", byte) from error

    def _undecodable(self, where: str, byte: str) -> InvalidTableError:
        encoding = self.dialect.encoding
        return InvalidTableError(
            f"{self.label}: {where}: {byte} is not {encoding}.\n"
            "Name the file's encoding (often latin-1 or cp1252: --encoding latin-1), "
            "or save it as UTF-8.",
        )

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


class _Lines:
    """The lines of records: one after the other, until a record takes more lines, or less."""

    def __init__(self, n_above: int, records: Generator[tuple[int, bool]]) -> None:
        self.records, self.is_plain = records, True
        self._line, self._untold = n_above + 1, 0

    def of(self, cells: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The lines of the next records, and which of these are rows."""
        n, is_empty = cells.num_rows, _is_empty(cells)
        # Empty cells alone may be a blank line, or not; a whole block of them counts as blank.
        is_clear = bool(not is_empty.any() or is_empty.all())
        self.is_plain = self.is_plain and is_clear and not _has_line_ends(cells)
        if self.is_plain:
            self._untold += n
            self._line += n
            return np.arange(self._line - n, self._line), ~is_empty
        told = [*islice(self.records, self._untold, self._untold + n)]
        self._untold = 0
        found = np.array(told, dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1] > 0


def _is_empty(cells: Any) -> NDArray[np.bool_]:
    """Which rows have empty cells only."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nothing, found = text_array([""])[0], None
    for column in cells.columns:
        empty = pc.equal(column, nothing)
        found = empty if found is None else pc.and_(found, empty)
        if not pc.any(found).as_py():
            return np.zeros(len(cells), dtype=bool)
    return np.from_dlpack(pc.cast(found, pa.uint8())).astype(bool)


def _has_line_ends(cells: Any) -> bool:
    """Whether a cell holds a line end."""
    buffers = (column.buffers()[2] for column in cells.columns)
    texts = (buffer.to_pybytes() for buffer in buffers if buffer is not None)
    return any(b"\n" in text or b"\r" in text for text in texts)


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
            "names.\nPut a line with the columns' names on top."
        )
