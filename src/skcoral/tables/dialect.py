"""Recognition of the dialect of a text file: encoding, separator, decimal mark, header."""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.cells import bare, is_grouped, is_missing, is_number

#: Rows that are looked at to recognise the separator and the header.
LOOKED_AT = 60
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_COMMA_NUMBER = re.compile(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
#: How texts begin that say their encoding; the mark of UTF-32 begins with that of UTF-16.
_MARKS = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_NOT_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
#: A line with its end; other line ends of Unicode's are none in a table.
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
#: What divides a table from the notes under it.
_RULER = re.compile(r"[-_=*]{3,}")
#: Codecs of Python's for names of hosts and sources of programs.
_NO_TABLES = {"idna", "punycode", "unicode-escape", "raw-unicode-escape"}


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    encoding: str
    separator: str
    decimal: str
    header: int  # rows above the names of the columns
    has_units: bool  # the row under the names holds words and no values
    recognised: frozenset[str]  # what was not given as an option


def recognise(
    label: str,
    head: bytes,
    start: bytes,
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
) -> Dialect:
    """The dialect of a text, by its first lines; the encoding by all that is at hand of it."""
    given = {"separator": separator, "decimal": decimal, "encoding": encoding}
    check_text(label, head, encoding)
    encoding = encoding or _marked_encoding(head) or _recognise_encoding(start)
    if head.startswith(codecs.BOM_UTF8) and codecs.lookup(encoding).name == "utf-8":
        encoding = "utf-8-sig"
    lines = LINE.findall(head.decode(encoding, errors="replace").lstrip("\ufeff"))
    if len(start) > len(head):
        lines = lines[:-1] or lines  # the last one may be cut
    if not any(line.strip() for line in lines):
        raise InvalidTableError(
            f"{label}: there are only blank lines.\nGive a table with a header."
        )
    separator = separator or _recognise_separator(lines)
    rows = _parsed(lines, separator)
    header = header_place(rows)
    return Dialect(
        encoding,
        separator,
        decimal or _recognise_decimal(rows[header + 1 :], separator),
        header,
        has_units(rows, header),
        frozenset(name for name, value in given.items() if value is None),
    )


def check_given(
    label: str, separator: str | None, decimal: str | None, encoding: str | None
) -> None:
    """Refuse what cannot separate cells, and what is no way to write text in bytes."""
    is_byte = separator is None or (len(separator) == 1 and separator.isascii())
    if not is_byte or separator in ('"', "\r", "\n", "\0"):
        raise InvalidArgumentError(
            f"{label}: {separator!r} cannot separate cells.\n"
            "Give one ASCII character that is no quote and no line end, such as ';' or a tab."
        )
    if decimal not in (None, ".", ","):
        raise InvalidArgumentError(f"{label}: {decimal!r} is not a decimal mark.\nUse '.' or ','.")
    try:
        "".encode(encoding or "utf-8")  # base64 and the like are codecs, too
        usable = codecs.lookup(encoding or "utf-8").name not in _NO_TABLES
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise InvalidTableError(
            f"{label}: {encoding!r} is not an encoding of text files.\n"
            "Use utf-8, latin-1, cp1252, utf-16 …"
        )


def check_text(label: str, head: bytes, encoding: str | None) -> None:
    """Refuse a file whose first bytes are not text in the given encoding."""
    marked = _marked_encoding(head)
    given = re.sub("[-_]", "", (encoding or marked).lower())
    if marked and not given.startswith(marked.replace("-", "")):
        raise InvalidTableError(
            f"{label}: the file is {marked.upper()} text.\n"
            f"Say so: encoding {marked} (--encoding {marked}).",
        )
    if b"\x00" in head and not given.startswith(("utf16", "utf32")):
        raise InvalidTableError(
            f"{label}: this is not a text table: byte {head.index(0)} is zero.\n"
            "Give a CSV, TSV, Parquet or Excel (.xlsx) file."
        )


def _marked_encoding(head: bytes) -> str:
    """The encoding that the first bytes of a text declare; empty where they declare none."""
    return next((name for name, marks in _MARKS.items() if head.startswith(marks)), "")


def _recognise_encoding(start: bytes) -> str:
    """The encoding of a text without a mark: UTF-8 where it is valid, else Windows-1252."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last letter may be cut
    except UnicodeDecodeError:
        return "cp1252" if _NOT_CP1252.isdisjoint(start) else "latin-1"
    return "utf-8"


def _recognise_separator(lines: Sequence[str]) -> str:
    """The mark that cuts most lines into the same number of cells, of which the first are names."""
    best, chosen = (0.0, 0), ","
    for mark in SEPARATORS:
        rows = _parsed(lines, mark)
        widths = Counter(len(row) for row in rows if len(row) > 1)
        if not widths:
            continue
        width = max(widths, key=lambda w: (widths[w], w))
        header = next(row for row in rows if len(row) == width)
        if is_number(header[0].strip()) or not any(cell.strip() for cell in header):
            continue
        fit = (widths[width] / len(rows), width)
        if fit >= best:  # where both fit, commas are decimal marks
            best, chosen = fit, mark
    if best[1] == 0 and len(lines) > 1:
        blanks = [line.strip().count(" ") for line in lines if line.strip()]
        if blanks and blanks[0] and len(set(blanks)) == 1:
            return " "
    return chosen


def _recognise_decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """The decimal mark of the cells; a comma only where nothing speaks for a point.

    Numbers such as 1,234 alone could be thousands: they settle nothing.
    """
    cells = [bare(cell) for row in rows for cell in row]
    if any("." in c and _COMMA_NUMBER.fullmatch(c) for c in cells):
        return ","  # 1.234,5 leaves no doubt
    commas = [c for c in cells if _COMMA_NUMBER.fullmatch(c)]
    plain = sum(1 for c in commas if not _THOUSANDS.fullmatch(c))
    points = sum(1 for c in cells if _POINT_NUMBER.fullmatch(c))
    enough = 2 if separator == "," else 1
    return "," if plain >= enough and not points else "."


def has_units(rows: Sequence[Sequence[Any]], place: int) -> bool:
    """Whether the row under the header holds words, such as units, above columns of numbers."""
    if len(rows) < place + 4 or not has_numbers(rows, place + 1):
        return False
    filled = [cell for cell in rows[place + 1] if not _is_blank(cell)]
    words = (isinstance(c, str) and not _is_any_number(c) and not is_missing(c) for c in filled)
    widest = max(len(row) for row in rows[place + 2 :])
    return all(words) and 2 * len(filled) > widest - 1


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """Which row names the columns: the first that is as wide as the table under it.

    Titles and notes above a table fill one or two cells; the first row is taken where nothing else
    stands out.
    """
    rows = rows[:LOOKED_AT]
    widths = [_last_filled(row) for row in rows]
    wide = Counter(width for width in widths if width > 1)
    if not wide:
        return 0
    typical = max(wide, key=lambda w: (wide[w], w))
    for place, row in enumerate(rows):
        filled = [cell for cell in row if not _is_blank(cell)]
        if widths[place] >= 0.8 * typical and len(filled) >= max(2, 0.8 * typical):
            names = [cell for cell in filled if isinstance(cell, str) and not is_number(cell)]
            return place if names else 0
        if place == 0 and widths[0] >= 0.8 * typical:
            return 0
    return 0


def is_note(cells: Sequence[str]) -> bool:
    """Whether a line is a sentence or a ruler under or within a table, not a row of it."""
    if any(map(str.strip, cells[1:])):
        return False
    text = cells[0].strip()
    is_sentence = any(c.isalpha() for c in text) and (" " in text or ":" in text)
    return is_sentence or _RULER.fullmatch(text) is not None


def has_numbers(rows: Sequence[Sequence[Any]], place: int) -> bool:
    """Whether at least two columns under a header hold mostly numbers."""
    body = rows[place + 1 :]
    columns = 0
    for j in range(max((len(row) for row in rows), default=0)):
        cells = [row[j] for row in body if j < len(row) and not is_missing(row[j])]
        columns += bool(cells) and 2 * sum(map(_is_any_number, cells)) > len(cells)
    return columns >= 2


def _is_any_number(cell: Any) -> bool:
    """Whether a cell is a number, with either decimal mark: which one is not known yet."""
    if not isinstance(cell, str):
        return isinstance(cell, int | float) and not isinstance(cell, bool)
    text = bare(cell)
    return is_number(text) or is_grouped(text) or _COMMA_NUMBER.fullmatch(text) is not None


def _parsed(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Cells of the first lines that are not blank, quoting errors aside."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        filled = filter(None, csv.reader(lines, delimiter=separator))
        rows.extend(itertools.islice(filled, LOOKED_AT))
    return rows


def _last_filled(row: Sequence[Any]) -> int:
    return max((j for j, cell in enumerate(row, start=1) if not _is_blank(cell)), default=0)


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
