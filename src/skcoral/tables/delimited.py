"""CSV and TSV: dialect, encoding, and errors that name the line and the column."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from lzma import LZMAError
from typing import Any, BinaryIO, NoReturn
from zipfile import BadZipFile

from skcoral.exceptions import InvalidTableError
from skcoral.limits import Clock, Limits, current, shown
from skcoral.tables import dialect
from skcoral.tables.cells import is_number
from skcoral.tables.table import Batch, Table

_DAMAGED = (EOFError, zlib.error, LZMAError, OSError, BadZipFile, NotImplementedError)
_QUOTED = re.compile(r'"(?:[^"]|"")*(?:"|\Z)')
#: A line with its end; other line ends of Unicode's are none in a table.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
SNIFF = 1 << 16
_BLANK_LINES = 1_000_000
#: Codecs of Python's for names of hosts and sources of programs.
_NO_TABLES = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"}

Opener = Callable[[], AbstractContextManager[BinaryIO]]


def open_text(
    label: str,
    opener: Opener,
    size: int | None,
    *,
    tab: bool,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    na: tuple[str, ...] = (),
) -> Table:
    """Open a text table: look at its start, settle the dialect, check the header."""
    if encoding is not None:
        _check_encoding(label, encoding)
    _check_marks(label, separator, decimal)
    head = _head(label, opener)
    if encoding is None:
        encoding = found_encoding = dialect.recognise_encoding(opener)
    else:
        found_encoding = None
    refuse_binary(label, head, encoding)
    start = head.decode(_codec(encoding), errors="replace")
    lines = _LINE.findall(start.lstrip("\ufeff"))
    if len(head) == SNIFF:
        lines = lines[:-1] or lines  # the last one may be cut
    if not any(line.strip() for line in lines):
        raise InvalidTableError(
            f"{label}: there are only blank lines.\nGive a table with a header."
        )
    found_separator = found_decimal = None
    if separator is None:
        separator = found_separator = "\t" if tab else dialect.recognise_separator(lines)
    looked_at = dialect.parsed(lines, separator)
    place = dialect.header_place(looked_at)
    if decimal is None:
        decimal = found_decimal = dialect.recognise_decimal(looked_at[place + 1 :], separator)
    thousands = dialect.recognise_thousands(looked_at[place + 1 :], decimal)
    units = dialect.has_units(looked_at, place)
    reader = _Reader(label, opener, size, separator, encoding, current(), place, int(units))
    names = reader.header()
    _check_header(label, names, separator, reader.header_line)
    return Table(
        label,
        tuple(names),
        "line",
        "tsv" if separator == "\t" else "csv",
        reader.batches,
        separator=separator,
        decimal=decimal,
        thousands=thousands,
        na=na,
        skipped=reader.skipped,
        assumed=dialect.said(
            separator=found_separator,
            decimal=found_decimal,
            thousands=thousands,
            encoding=found_encoding,
            header=reader.header_line if place else None,
            units=reader.units_line if units else None,
        ),
    )


class _Reader:
    """Reads one text file from the start, as often as wanted."""

    def __init__(
        self,
        label: str,
        opener: Opener,
        size: int | None,
        separator: str,
        encoding: str,
        limits: Limits,
        above: int = 0,
        below: int = 0,
    ) -> None:
        self.label = label
        self.limits = limits
        self.opener = opener
        self.size = size
        self.separator = separator
        self.encoding = encoding
        self.names: list[str] = []
        self.above, self.below = above, below
        self.header_line = self.units_line = 1
        self.skipped: list[tuple[int, str]] = []
        self.read_chars = self.record_start = 0

    def header(self) -> list[str]:
        with self.opener() as binary, closing(self._rows(binary)) as rows:
            for line, cells in itertools.islice(rows, self.above, None):
                self.header_line = line
                found = f"the header has {len(cells):,} columns"
                self.limits.require("columns", len(cells), self.label, found)
                self.names = [cell.strip() for cell in cells]
                while len(self.names) > 1 and not self.names[-1]:
                    self.names.pop()  # lines that end with a separator
                self.units_line = next(rows, (line, []))[0]
                return self.names
        return []

    def batches(self, size: int) -> Iterator[Batch]:
        width = len(self.names)
        with self.opener() as binary, closing(self._rows(binary)) as source:
            rows: list[list[str]] = []
            lines: list[int] = []
            self.skipped.clear()
            for _ in range(self.above + 1 + self.below):
                next(source, None)
            full = self.read_chars + self.limits.record_bytes
            for line, cells in source:
                if len(cells) > width and not any(map(str.strip, cells[width:])):
                    cells = cells[:width]
                if len(cells) != width:
                    if dialect.is_note(cells):
                        self.skipped.append((line, cells[0].strip()))
                        continue
                    self._ragged(line, cells)
                rows.append(cells)
                lines.append(line)
                # Few long rows fill the memory as well as many short ones.
                if len(rows) == size or self.read_chars >= full:
                    full = self.read_chars + self.limits.record_bytes
                    yield Batch(lines, list(zip(*rows, strict=True)), self._fraction(binary))
                    rows, lines = [], []
            if rows:
                yield Batch(lines, list(zip(*rows, strict=True)))

    def _rows(self, binary: BinaryIO) -> Generator[tuple[int, list[str]], None, None]:
        """Cells of every row that is not blank, and the line it starts on."""
        text = io.TextIOWrapper(binary, encoding=_codec(self.encoding), newline="")
        self.read_chars = self.record_start = 0
        reader = csv.reader(self._lines(text), delimiter=self.separator, strict=True)
        # A quoted cell may hold line breaks, so a row can end lines after it began.
        start, blank = 1, 0
        try:
            # The size of a record is judged line by line, in front of the parser.
            for cells in dialect.long_records(reader):
                self.record_start = self.read_chars
                if cells:
                    blank = 0
                    yield start, cells
                else:
                    blank += 1
                    if blank > _BLANK_LINES:
                        raise InvalidTableError(
                            f"{self.label}: line {start} is the last of {blank:,} blank lines.\n"
                            "This is no table: check the file."
                        )
                start = reader.line_num + 1
        except UnicodeError as error:
            self._undecodable(error)
        except csv.Error as error:
            raise InvalidTableError(
                f"{self.label}: line {start}: the quoting is broken ({error}).\n"
                'Close the quotes, and write a quote inside quotes twice ("").'
            ) from error
        except _DAMAGED as error:
            raise InvalidTableError(
                f"{self.label}: after line {reader.line_num} the file cannot be read ({error}).\n"
                "It is damaged or was cut short: copy or download it again."
            ) from error
        finally:
            text.detach()

    def _lines(self, text: io.TextIOWrapper) -> Iterator[str]:
        """Lines for the parser, as long as one record does not outgrow the limit."""
        most, clock, count = self.limits.record_bytes, Clock(self.limits, self.label), 0
        while line := text.readline(most + 1):
            self.read_chars += len(line)
            count += 1
            if not count % 1024:
                clock.check()
            if self.read_chars - self.record_start > most:
                self.limits.require(
                    "record_bytes",
                    self.read_chars - self.record_start,
                    self.label,
                    f"one row has more than {shown('record_bytes', most)} of text",
                    "Are there line ends, and is every quote closed?",
                )
            yield line

    def _fraction(self, binary: Any) -> float:
        """How far the compressed bytes have been read, where that can be told."""
        if not self.size:
            return 0.0
        try:
            return min(1.0, float(getattr(binary, "packed", binary).tell()) / self.size)
        except (OSError, ValueError):
            return 0.0

    def _ragged(self, line: int, cells: list[str]) -> NoReturn:
        at = (
            f"the last column with a cell is {self.names[len(cells) - 1]!r}"
            if len(cells) < len(self.names)
            else f"after column {self.names[-1]!r} comes {cells[len(self.names)][:40]!r}"
        )
        found = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        raise InvalidTableError(
            f"{self.label}: line {line} has {found} and the header has {len(self.names)}; {at}.\n"
            "Give every line one cell per column (quote cells that contain the separator)."
        )

    def _undecodable(self, error: UnicodeError) -> NoReturn:
        """Find the line and the column of the first byte that cannot be decoded."""
        where, byte = "the text", "a byte"
        decoder = codecs.getincrementaldecoder(self.encoding)()
        line, begun, piece = 1, "", b"x"
        with self.opener() as binary:
            while piece:
                piece = binary.read(SNIFF)
                try:
                    text = decoder.decode(piece, final=not piece)
                except UnicodeDecodeError as bad:
                    text, byte = "", f"byte 0x{bad.object[bad.start]:02x}"
                    with contextlib.suppress(UnicodeError):
                        text = bad.object[: bad.start].decode(self.encoding)
                    piece = b""
                except UnicodeError:
                    piece, text = b"", ""
                *ended, begun = re.split("\r\n|\r|\n", begun + text)
                line += len(ended)
                begun = begun[-SNIFF:]
        if byte != "a byte":
            where = f"line {line}"
            column = _QUOTED.sub("", begun).count(self.separator)
            if column < len(self.names):
                where += f", column {self.names[column]!r}"
        raise InvalidTableError(
            f"{self.label}: {where}: {byte} is not {self.encoding}.\n"
            "Name the file's encoding (often latin-1 or cp1252: --encoding latin-1), "
            "or save it as UTF-8.",
            reading={"encoding": "cp1252"} if self.encoding.startswith("utf-8") else None,
        ) from error


def _check_encoding(label: str, encoding: str) -> None:
    """Refuse what is no way to write text in bytes: unknown names, base64, host names and so on."""
    try:
        found = codecs.lookup(encoding)
        usable = found._is_text_encoding and isinstance(b"1,2\n".decode(encoding, "replace"), str)
    except (LookupError, ValueError):
        usable = False
    if not usable or found.name.replace("-", "_") in _NO_TABLES:
        raise InvalidTableError(
            f"{label}: {encoding!r} is not an encoding of text files.\n"
            "Use utf-8, latin-1, cp1252, utf-16 …"
        )


def _check_marks(label: str, separator: str | None, decimal: str | None) -> None:
    if separator is not None and (len(separator) != 1 or separator in '"\r\n\0'):
        raise InvalidTableError(
            f"{label}: {separator!r} cannot separate cells.\n"
            "Give one character that is no quote and no line end, such as ';' or a tab."
        )
    if decimal not in (None, ".", ","):
        raise InvalidTableError(f"{label}: {decimal!r} is not a decimal mark.\nUse '.' or ','.")


def _codec(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _head(label: str, opener: Opener) -> bytes:
    try:
        with opener() as stream:
            return stream.read(SNIFF)
    except _DAMAGED as error:
        raise InvalidTableError(
            f"{label}: the file cannot be decompressed ({error}).\n"
            "It is damaged or was cut short: copy or download it again."
        ) from error


def refuse_binary(label: str, head: bytes, encoding: str) -> None:
    """Refuse a file whose first bytes are not text in the given encoding."""
    if not head:
        raise InvalidTableError(f"{label}: the file is empty.\nGive a table with a header line.")
    wide = encoding.lower().replace("_", "-").startswith(("utf-16", "utf16", "utf-32", "utf32"))
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)) and not (
        wide and "32" in encoding
    ):
        raise InvalidTableError(
            f"{label}: the file is UTF-32 text.\nSay so: encoding utf-32 (--encoding utf-32).",
            reading={"encoding": "utf-32"},
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and not wide:
        raise InvalidTableError(
            f"{label}: the file is UTF-16 text.\nSay so: encoding utf-16 (--encoding utf-16).",
            reading={"encoding": "utf-16"},
        )
    if b"\x00" in head and not wide:
        raise InvalidTableError(
            f"{label}: this is not a text table: byte {head.index(0)} is zero.\n"
            "Give a CSV, TSV, Parquet or Excel (.xlsx) file."
        )


def _check_header(label: str, names: list[str], separator: str, line: int) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            what = f"the name {name!r}" if name else "no name"
            raise InvalidTableError(
                f"{label}: line {line}: columns {seen[name]} and {place} both have {what}.\n"
                "Give every column a name of its own."
            )
        seen[name] = place
    if "" in seen and seen[""] != 1:
        raise InvalidTableError(
            f"{label}: line {line}: column {seen['']} has no name.\nGive every column a name."
        )
    if len(names) > 1 and all(is_number(name) for name in names):
        raise InvalidTableError(
            f"{label}: line {line}: the header holds numbers ({separator.join(names[:3])} …), not "
            "names.\nPut a line with the columns' names on top (a correlation matrix: --matrix)."
        )
