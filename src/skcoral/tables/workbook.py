"""Excel workbooks as a stream of rows: no tree is built, and every count is judged on the way.

A workbook is a zip archive of XML parts, a few kilobytes of which can stand for billions of cells.
Parts are therefore parsed as events; rows keep the cells that hold a value, and nothing else.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from xml.parsers import expat

from skcoral.exceptions import InvalidTableError
from skcoral.limits import Clock, Limits

#: A sheet of Excel's ends here.
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
_DEPTH = 64
_CHUNK = 1 << 16
_LONGEST_TAG = 4 * 2**20
#: Largest part that is not a sheet or a table of texts.
_SMALL_PART = 32 * 2**20
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_PLACE = re.compile(r"\$?([A-Za-z]{1,7})\$?([0-9]{1,20})")

_Start = Callable[[str, dict[str, str]], None]
_End = Callable[[str, str], None]


@dataclass(frozen=True)
class Sheet:
    """One sheet: its name and where its XML is."""

    name: str
    part: str


@dataclass
class Workbook:
    """What is needed to read the sheets of an archive."""

    archive: zipfile.ZipFile
    label: str
    limits: Limits
    sheets: list[Sheet] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    dates: dict[int, bool] = field(default_factory=dict)
    epoch: Any = None

    def rows(self, sheet: Sheet) -> Iterator[tuple[int, dict[int, Any]]]:
        """The number of each row that holds a value, and its values by column, from 0."""
        found: list[tuple[int, dict[int, Any]]] = []
        reader = _Cells(self, found)
        for _ in _events(self, sheet.part, reader.start, reader.end):
            yield from found
            found.clear()
        yield from found


def open_workbook(stream: BinaryIO, label: str, limits: Limits) -> Workbook:
    """Read everything of a workbook but its sheets."""
    from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

    archive = zipfile.ZipFile(stream)
    size = sum(entry.file_size for entry in archive.infolist())
    limits.require(
        "workbook_bytes",
        size,
        label,
        f"the workbook unpacks to {size / 2**20:,.0f} MB",
        "Save the table as CSV or Parquet.",
    )
    book = Workbook(archive, label, limits, epoch=CALENDAR_WINDOWS_1900)
    main = "xl/workbook.xml"
    targets, strings_part, styles_part = _relations(book, main)
    listed: list[tuple[str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "sheet":
            relation = next((v for k, v in attributes.items() if k.endswith(":id")), "")
            listed.append((attributes.get("name", ""), relation))
        elif tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            book.epoch = CALENDAR_MAC_1904

    _drain(book, main, start)
    book.sheets = [Sheet(name, targets[rid]) for name, rid in listed if rid in targets]
    if styles_part:
        book.dates = _date_styles(book, styles_part)
    if strings_part:
        book.strings = _shared_strings(book, strings_part)
    return book


def unescaped(text: str) -> str:
    r"""Undo the ``_xHHHH_`` that stand for characters which XML does not have.

    Examples
    --------
    >>> unescaped("one_x000D_two_x005F_x000D_")
    'one\rtwo_x000D_'
    """
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text)
    # Letters beyond the first 65,536 may come in two halves.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Cells:
    """Collects the rows of a sheet from its events."""

    def __init__(self, book: Workbook, found: list[tuple[int, dict[int, Any]]]) -> None:
        self.book, self.found = book, found
        self.row, self.column, self.kept = 0, 0, 0
        self.cells: dict[int, Any] = {}
        self.kind, self.style = "n", 0
        self.value: str | None = None
        self.text: list[str] = []
        self.phonetic = False
        self.in_cell = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self.row = _whole(attributes.get("r"), self.row + 1, "row number")
            if not 0 < self.row <= MOST_ROWS:
                self.refuse(f"a row has the number {self.row:,}", f"{MOST_ROWS:,} rows")
            self.column, self.cells = 0, {}
        elif tag == "c":
            self.column = self.place(attributes.get("r"))
            self.kind, self.style = (
                attributes.get("t", "n"),
                _whole(attributes.get("s"), 0, "style"),
            )
            self.value, self.text, self.in_cell = None, [], True
        elif tag == "rPh":
            self.phonetic = True

    def end(self, tag: str, text: str) -> None:
        if tag == "v" and self.in_cell:
            self.value = text
        elif tag == "t" and self.in_cell and not self.phonetic:
            self.text.append(text)
        elif tag == "rPh":
            self.phonetic = False
        elif tag == "c" and self.in_cell:
            self.in_cell = False
            value = self.converted()
            if value is not None:
                self.cells[self.column - 1] = value
                self.kept += 1
                self.book.limits.require(
                    "sheet_cells",
                    self.kept,
                    self.book.label,
                    f"the sheet has more than {self.book.limits.sheet_cells:,} cells with a value",
                    "Save the table as CSV or Parquet.",
                )
        elif tag == "row" and self.cells:
            self.found.append((self.row, self.cells))
            self.cells = {}

    def place(self, reference: str | None) -> int:
        """The column of a cell, from 1."""
        if not reference:
            column = self.column + 1
        else:
            match = _PLACE.fullmatch(reference)
            if match is None:
                raise ValueError(f"{reference[:20]!r} is no place of a cell")
            column = 0
            for letter in match[1].upper():
                column = 26 * column + ord(letter) - 64
        if column > MOST_COLUMNS:
            self.refuse(f"a cell is in column {column:,}", f"{MOST_COLUMNS:,} columns")
        return column

    def refuse(self, what: str, most: str) -> None:
        raise InvalidTableError(
            f"{self.book.label}: {what}, and a sheet has at most {most}.\n"
            "Open it in a spreadsheet program and save it again as .xlsx, or as CSV."
        )

    def converted(self) -> Any:
        """The value of a cell as a Python object."""
        from openpyxl.utils.datetime import from_excel, from_ISO8601

        if self.kind == "inlineStr":
            return unescaped("".join(self.text)) or None
        if not self.value:
            return None
        if self.kind == "s":
            place = int(self.value)
            if place < 0:
                raise LookupError(f"there is no text {place}")
            return self.book.strings[place] or None
        if self.kind == "n":
            number = _number(self.value)
            if self.style not in self.book.dates:
                return number
            try:
                return from_excel(number, self.book.epoch, timedelta=self.book.dates[self.style])
            except (OverflowError, ValueError):
                return "#VALUE!"
        if self.kind == "b":
            return self.value.strip() not in ("0", "false")
        if self.kind == "d":
            return from_ISO8601(self.value)
        return unescaped(self.value)


def _relations(book: Workbook, part: str) -> tuple[dict[str, str], str, str]:
    """The sheets by the id of their relation, and the parts of strings and styles."""
    folder, name = posixpath.split(part)
    existing = set(book.archive.namelist())
    found: dict[str, str] = {}
    parts = {"sharedStrings": "", "styles": ""}

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship":
            target = attributes.get("Target", "")
            place = target.lstrip("/") if target[:1] == "/" else posixpath.join(folder, target)
            kind = attributes.get("Type", "").rsplit("/", 1)[-1]
            if kind == "worksheet" and place in existing:
                found[attributes.get("Id", "")] = place
            elif kind in parts:
                parts[kind] = place

    _drain(book, f"{folder}/_rels/{name}.rels", start)
    return found, parts["sharedStrings"], parts["styles"]


def _date_styles(book: Workbook, part: str) -> dict[int, bool]:
    """The styles that show numbers as dates, and whether as durations."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format

    formats: dict[int, str] = dict(BUILTIN_FORMATS)
    used: list[int] = []
    inside = {"cellXfs": False}

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "numFmt":
            code = attributes.get("formatCode", "")[:1000]
            formats[_whole(attributes.get("numFmtId"), 0, "format")] = code
        elif tag == "cellXfs":
            inside["cellXfs"] = True
        elif tag == "xf" and inside["cellXfs"]:
            used.append(_whole(attributes.get("numFmtId"), 0, "format"))

    def end(tag: str, _: str) -> None:
        if tag == "cellXfs":
            inside["cellXfs"] = False

    _drain(book, part, start, end)
    known = {number: formats.get(number, "General") for number in set(used)}
    dates = {n: is_timedelta_format(code) for n, code in known.items() if is_date_format(code)}
    return {i: dates[number] for i, number in enumerate(used) if number in dates}


def _shared_strings(book: Workbook, part: str) -> list[str]:
    """The texts that cells refer to by number."""
    found: list[str] = []
    pieces: list[str] = []
    state = {"phonetic": False}

    def start(tag: str, _: dict[str, str]) -> None:
        if tag == "si":
            pieces.clear()
        elif tag == "rPh":
            state["phonetic"] = True

    def end(tag: str, text: str) -> None:
        if tag == "t" and not state["phonetic"]:
            pieces.append(text)
        elif tag == "rPh":
            state["phonetic"] = False
        elif tag == "si":
            found.append(unescaped("".join(pieces)))
            book.limits.require(
                "sheet_cells", len(found), book.label, f"the workbook has {len(found):,} texts"
            )

    _drain(book, part, start, end, most=book.limits.workbook_bytes)
    return found


def _drain(
    book: Workbook, part: str, start: _Start, end: _End | None = None, most: int = _SMALL_PART
) -> None:
    if book.archive.getinfo(part).file_size > most:
        raise ValueError(f"{part} is larger than {most / 2**20:,.0f} MB")
    for _ in _events(book, part, start, end or (lambda tag, text: None)):
        pass


def _events(book: Workbook, part: str, start: _Start, end: _End) -> Iterator[None]:
    """Parse a part, piece by piece; the text of an element comes with its end."""
    limits, clock = book.limits, Clock(book.limits, book.label)
    text: list[str] = []
    size = depth = 0

    def opened(tag: str, attributes: dict[str, str]) -> None:
        nonlocal size, depth
        depth += 1
        if depth > _DEPTH:
            raise ValueError(f"elements are nested more than {_DEPTH} deep")
        text.clear()
        size = 0
        start(tag.rpartition(":")[2], attributes)

    def closed(tag: str) -> None:
        nonlocal depth
        depth -= 1
        end(tag.rpartition(":")[2], "".join(text))
        text.clear()

    def characters(data: str) -> None:
        nonlocal size
        size += len(data)
        limits.require("record_bytes", size, book.label, f"a cell has {size:,} characters")
        text.append(data)

    def refused(*_: Any) -> None:
        raise ValueError("it declares a document type, which no workbook does")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refused
    unclosed = 0
    with book.archive.open(part) as source:
        while chunk := source.read(_CHUNK):
            # The parser goes over an unfinished tag again with every piece.
            last = chunk.rfind(b">")
            unclosed = unclosed + len(chunk) if last < 0 else len(chunk) - last
            if unclosed > _LONGEST_TAG:
                raise ValueError(f"a tag or text has more than {_LONGEST_TAG / 2**20:.0f} MB")
            parser.Parse(chunk, False)
            clock.check()
            yield
    parser.Parse(b"", True)


def _whole(text: str | None, otherwise: int, what: str) -> int:
    if text is None:
        return otherwise
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not number.is_integer() or abs(number) > 2**53:
        if abs(number) > 2**53:
            return 2**53
        raise ValueError(f"{text[:20]!r} is no {what}")
    return int(number)


def _number(text: str) -> int | float:
    """A number as it is written; beyond the range of floating point it is infinite."""
    if len(text) < 300:
        try:
            return int(text)
        except ValueError:
            pass
    return float(text)
