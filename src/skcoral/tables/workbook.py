"""Excel workbooks as a stream of rows: no tree is built, and every count is judged on the way.

A workbook is a zip archive of XML parts, a few kilobytes of which can stand for billions of cells.
Parts are therefore parsed as events; rows keep the cells that hold a value, and nothing else.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn
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


@dataclass
class Workbook:
    """What is needed to read the sheets of an archive: their parts by name, texts and styles."""

    archive: zipfile.ZipFile
    label: str
    limits: Limits
    sheets: dict[str, str] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    dates: dict[int, bool] = field(default_factory=dict)
    epoch: Any = None

    def rows(self, sheet: str) -> Iterator[tuple[int, dict[int, Any]]]:
        """The number of each row that holds a value, and its values by column, from 0."""
        from openpyxl.utils.cell import coordinate_to_tuple

        row = column = kept = 0
        cells: dict[int, Any] = {}
        cell: dict[str, str] | None = None  # attributes of the cell that is read
        value, texts = "", list[str]()
        for tag, content in self.events(self.sheets[sheet]):
            if isinstance(content, dict):
                if tag == "row":
                    row = _whole(content.get("r"), row + 1, "row number")
                    if not 0 < row <= MOST_ROWS:
                        self._refuse(f"a row has the number {row:,}", f"{MOST_ROWS:,} rows")
                    column, cells = 0, {}
                elif tag == "c":
                    cell, value, texts = content, "", []
                    column = coordinate_to_tuple(cell["r"])[1] if cell.get("r") else column + 1
                    if column > MOST_COLUMNS:
                        self._refuse(f"a cell is in column {column:,}", f"{MOST_COLUMNS:,} columns")
            elif tag == "row" and cells:
                yield row, cells
                cells = {}
            elif cell is None:
                continue
            elif tag == "v":
                value = content
            elif tag == "t":
                texts.append(content)
            elif tag == "c":
                found = self._converted(cell, value, "".join(texts))
                cell = None
                if found is not None:
                    cells[column - 1] = found
                    kept += 1
                    self.limits.require("sheet_cells", kept, self.label)

    def _refuse(self, what: str, most: str) -> NoReturn:
        raise InvalidTableError(
            f"{self.label}: {what}, and a sheet has at most {most}.\n"
            "Open it in a spreadsheet program and save it again as .xlsx, or as CSV."
        )

    def _converted(self, cell: dict[str, str], value: str, text: str) -> Any:
        """The value of a cell as a Python object."""
        from openpyxl.utils.datetime import from_excel, from_ISO8601

        kind, style = cell.get("t", "n"), _whole(cell.get("s"), 0, "style")
        if kind == "inlineStr":
            return unescaped(text) or None
        if not value:
            return None
        if kind == "s":
            place = int(value)
            if place < 0:
                raise LookupError(f"there is no text {place}")
            return self.strings[place] or None
        if kind == "n":
            number = _number(value)
            if style not in self.dates:
                return number
            try:
                return from_excel(number, self.epoch, timedelta=self.dates[style])
            except (OverflowError, ValueError):
                return "#VALUE!"
        if kind == "b":
            return value.strip() not in ("0", "false")
        if kind == "d":
            return from_ISO8601(value)
        return unescaped(value)

    def elements(self, part: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Tags and attributes of a part that is neither a sheet nor a table of texts."""
        if self.archive.getinfo(part).file_size > _SMALL_PART:
            raise ValueError(f"{part} is larger than {_SMALL_PART / 2**20:,.0f} MB")
        return (event for event in self.events(part) if isinstance(event[1], dict))

    def events(self, part: str) -> Iterator[tuple[str, Any]]:
        """Each tag with its attributes where an element begins, and with its text where it ends.

        What tells how a text is pronounced is left out.
        """
        limits, clock = self.limits, Clock(self.limits, self.label)
        found: list[tuple[str, Any]] = []
        text: list[str] = []
        size = depth = unclosed = 0
        phonetic = False

        def opened(tag: str, attributes: dict[str, str]) -> None:
            nonlocal size, depth
            depth += 1
            if depth > _DEPTH:
                raise ValueError(f"elements are nested more than {_DEPTH} deep")
            text.clear()
            size = 0
            found.append((tag.rpartition(":")[2], attributes))

        def closed(tag: str) -> None:
            nonlocal depth
            depth -= 1
            found.append((tag.rpartition(":")[2], "".join(text)))
            text.clear()

        def characters(data: str) -> None:
            nonlocal size
            size += len(data)
            limits.require("record_bytes", size, self.label)
            text.append(data)

        def refused(*_: Any) -> None:
            raise ValueError("it declares a document type, which no workbook does")

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = opened
        parser.EndElementHandler = closed
        parser.CharacterDataHandler = characters
        parser.StartDoctypeDeclHandler = refused
        with self.archive.open(part) as source:
            ended = False
            while not ended:
                chunk = source.read(_CHUNK)
                ended = not chunk
                # The parser goes over an unfinished tag again with every piece.
                last = chunk.rfind(b">")
                unclosed = unclosed + len(chunk) if last < 0 else len(chunk) - last
                if unclosed > _LONGEST_TAG:
                    raise ValueError(f"a tag or text has more than {_LONGEST_TAG / 2**20:.0f} MB")
                parser.Parse(chunk, ended)
                clock.check()
                for tag, content in found:
                    if tag == "rPh":
                        phonetic = isinstance(content, dict)
                    elif not phonetic:
                        yield tag, content
                found.clear()


def open_workbook(stream: BinaryIO, label: str, limits: Limits) -> Workbook:
    """Read everything of a workbook but its sheets."""
    from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

    archive = zipfile.ZipFile(stream)
    size = sum(entry.file_size for entry in archive.infolist())
    limits.require("workbook_bytes", size, label)
    book = Workbook(archive, label, limits, epoch=CALENDAR_WINDOWS_1900)
    places: dict[str, str] = {}
    parts = {"sharedStrings": "", "styles": ""}
    for tag, relation in book.elements("xl/_rels/workbook.xml.rels"):
        if tag == "Relationship":
            target, kind = relation.get("Target", ""), relation.get("Type", "").rsplit("/", 1)[-1]
            place = target.lstrip("/") if target[:1] == "/" else posixpath.join("xl", target)
            if kind == "worksheet" and place in archive.namelist():
                places[relation.get("Id", "")] = place
            elif kind in parts:
                parts[kind] = place
    for tag, attributes in book.elements("xl/workbook.xml"):
        if tag == "sheet":
            relation_id = next((v for k, v in attributes.items() if k.endswith(":id")), "")
            if relation_id in places:
                book.sheets[attributes.get("name", "")] = places[relation_id]
        elif tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            book.epoch = CALENDAR_MAC_1904
    if parts["styles"]:
        book.dates = _date_styles(book, parts["styles"])
    if parts["sharedStrings"]:
        book.strings = list(_shared_strings(book, parts["sharedStrings"]))
    return book


def _date_styles(book: Workbook, part: str) -> dict[int, bool]:
    """The styles that show numbers as dates, and whether as durations."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format

    formats: dict[int, str] = dict(BUILTIN_FORMATS)
    used: list[int] = []
    of_cells = False
    for tag, attributes in book.elements(part):
        if tag in ("cellStyleXfs", "cellXfs"):
            of_cells = tag == "cellXfs"
        elif tag == "numFmt":
            code = attributes.get("formatCode", "")[:1000]
            formats[_whole(attributes.get("numFmtId"), 0, "format")] = code
        elif tag == "xf" and of_cells:
            used.append(_whole(attributes.get("numFmtId"), 0, "format"))
    known = {number: formats.get(number, "General") for number in set(used)}
    dates = {n: is_timedelta_format(code) for n, code in known.items() if is_date_format(code)}
    return {i: dates[number] for i, number in enumerate(used) if number in dates}


def _shared_strings(book: Workbook, part: str) -> Iterator[str]:
    """The texts that cells refer to by number."""
    pieces: list[str] = []
    count = 0
    for tag, content in book.events(part):
        if tag == "t" and isinstance(content, str):
            pieces.append(content)
        elif tag == "si" and isinstance(content, str):
            count += 1
            book.limits.require("sheet_cells", count, book.label)
            yield unescaped("".join(pieces))
            pieces = []


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
