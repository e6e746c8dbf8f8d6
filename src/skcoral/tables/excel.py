"""Excel: the table in one sheet of a workbook."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, BinaryIO

from skcoral._requirements import listing
from skcoral.exceptions import InvalidTableError
from skcoral.limits import Limits, current
from skcoral.tables.cells import check_names
from skcoral.tables.dialect import LOOKED_AT, has_numbers, has_units, header_place, is_note
from skcoral.tables.sources import DAMAGED
from skcoral.tables.table import Batch, Table
from skcoral.tables.workbook import Workbook, open_workbook

#: Columns that are looked at to find the header of a sheet.
_LOOKED_AT_COLUMNS = 400


def open_excel(label: str, stream: BinaryIO, sheet: str | None) -> Table:
    """Open one sheet of a workbook; values only, a formula counts as its last computed value."""
    limits = current()
    with listed_workbook(label, stream, limits) as book:
        if not book.sheets or (sheet is not None and sheet not in book.sheets):
            raise InvalidTableError(
                f"{label}: there is no sheet {'with cells' if sheet is None else repr(sheet)}.\n"
                f"It has: {', '.join(book.sheets) or 'nothing but charts'}."
            )
        chosen = _first_table(book) if sheet is None else sheet
        numbered = list(book.rows(chosen))
    if not numbered:
        raise InvalidTableError(f"{label}: the sheet is empty.\nGive a table with a header row.")
    place = header_place([_as_list(cells) for _, cells in numbered[:LOOKED_AT]])
    others = tuple(name for name in book.sheets if name != chosen)
    assumed = []
    if others and sheet is None:
        assumed.append(
            f"Sheet {chosen!r} was read; the workbook also has {listing(others, 6, quote='')}."
        )
    if place:
        assumed.append(
            f"The header was found in row {numbered[place][0]}; the rows above it are left out."
        )
    numbered, notes = _without_notes(numbered[place:])
    head_row, head = numbered[0]
    if has_units([_as_list(cells) for _, cells in numbered[:LOOKED_AT]], 0):
        assumed.append(
            f"Row {numbered[1][0]} holds words under the names (units?) and is left out."
        )
        del numbered[1]
    width = max(head) + 1
    limits.require("columns", width, label)
    names = tuple(str(head[j]).strip() if j in head else "" for j in range(width))
    check_names(label, names, f"row {head_row}")
    places = [row for row, _ in numbered[1:]]
    body = [cells for _, cells in numbered[1:]]
    for row, cells in numbered[1:]:
        if max(cells) >= width:
            raise InvalidTableError(
                f"{label}: row {row} has a value to the right of the last named column "
                f"{names[-1]!r}.\nGive every column a name in row {head_row}, or remove it."
            )

    def batches(size: int, chosen: Sequence[int] | None) -> Iterator[Batch]:
        for start in range(0, len(body), size):
            part = body[start : start + size]
            done = (start + len(part)) / len(body)
            wanted = range(width) if chosen is None else chosen
            columns = [[row.get(j) for row in part] for j in wanted]
            yield Batch(places[start : start + size], columns, done)

    return Table(
        label,
        names,
        "row",
        "excel",
        batches,
        n_rows=len(body),
        assumed=tuple(assumed),
        other_sheets=others,
        skipped=notes,
    )


def _without_notes(numbered: list[Any]) -> tuple[list[Any], list[tuple[int, str]]]:
    """Rows without the notes at the end (single texts in the first column), and these notes."""
    last = len(numbered)
    while last > 2:
        cells = numbered[last - 1][1]
        if set(cells) != {0} or not is_note([str(cells[0])]):
            break
        last -= 1
    return numbered[:last], [(row, str(cells[0]).strip()) for row, cells in numbered[last:]]


def _first_table(book: Workbook) -> str:
    """The first sheet with two columns of numbers under a header; else the first one."""
    for sheet in book.sheets if len(book.sheets) > 1 else ():
        rows = [_as_list(cells) for _, cells in itertools.islice(book.rows(sheet), LOOKED_AT)]
        if has_numbers(rows, header_place(rows)):
            return sheet
    return next(iter(book.sheets))


def _as_list(cells: dict[int, Any]) -> list[Any]:
    return [cells.get(j) for j in range(min(max(cells), _LOOKED_AT_COLUMNS) + 1)]


@contextmanager
def listed_workbook(label: str, stream: BinaryIO, limits: Limits) -> Iterator[Workbook]:
    """Open a workbook; every error of its reader, now or at the rows, becomes one of the table."""
    try:
        book = open_workbook(stream, label, limits)
        with closing(book.archive):
            yield book
    except InvalidTableError:
        raise
    except DAMAGED as error:
        raise InvalidTableError(
            f"{label}: the workbook cannot be read ({error}).\n"
            "Open it in a spreadsheet program and save it again as .xlsx, or as CSV."
        ) from error
