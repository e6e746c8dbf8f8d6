"""Workbooks of Excel and OpenDocument (.xlsx, .xlsb, .xls, .ods): the table in one sheet."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
import zipfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import numpy as np

from skcoral.core.limits import MB, Limits, current
from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.tables.arrow_arrays import number_array, text_array
from skcoral.tables.cells import check_names
from skcoral.tables.dialect import LOOKED_AT, end_of_rows, has_numbers, has_units, header_place
from skcoral.tables.table import Batch, Table, held

_EVERYTHING = 2**31
#: Columns that are looked at to find the header of a sheet.
_LOOKED_AT_COLUMNS = 400
_MOST_NOTES = 100


def open_excel(label: str, stream: BinaryIO, sheet: str | None) -> Table:
    """Open one sheet of a workbook; values only, a formula counts as its last computed value."""
    limits = current()
    with open_workbook(label, stream, limits) as book:
        if not book.sheets or (sheet is not None and sheet not in book.sheets):
            raise InvalidTableError(
                f"{label}: there is no sheet {'with cells' if sheet is None else repr(sheet)}.\n"
                f"It has: {', '.join(book.sheets) or 'nothing but charts'}."
            )
        chosen = _first_table(book) if sheet is None else sheet
        head_rows = book.head(chosen)
        if not head_rows:
            raise InvalidTableError(
                f"{label}: the sheet is empty.\nGive a table with a header row."
            )
        parts = list(book.rows(chosen))
    place = header_place(head_rows)
    units = has_units(head_rows[place:], 0)
    at = [row for places, _ in parts for row in places]
    columns = [_Column([part[j] for _, part in parts]) for j in range(len(parts[0][1]))]
    header = [column.cells(place, place + 1)[0] for column in columns]
    width = max(j for j, cell in enumerate(header, start=1) if cell is not None)
    limits.require("columns", width, label)
    limits.require("sheet_cells", width * len(at), label)
    names = tuple("" if cell is None else _name(cell) for cell in header[:width])
    check_names(label, names, f"row {at[place]}")
    start = place + 1 + units
    beyond = (enumerate(column.cells(start, len(at)), start=start) for column in columns[width:])
    outside = [i for cells in beyond for i, cell in cells if cell is not None]
    if outside:
        raise InvalidTableError(
            f"{label}: row {at[min(outside)]} has a value to the right of the last named "
            f"column {names[-1]!r}.\nGive every column a name in row {at[place]}, or remove it."
        )
    last = max(start, len(at) - _MOST_NOTES)
    tail = zip(*(column.cells(last, len(at)) for column in columns[:width]), strict=True)
    texts = [["" if cell is None else str(cell) for cell in row] for row in tail]
    end = last + end_of_rows(texts)
    notes = [(at[i], texts[i - last][0].strip()) for i in range(end, len(at))]
    body = [column.as_arrow(start, end) for column in columns[:width]]
    batch = Batch(at[start:end], body)
    others = tuple(name for name in book.sheets if name != chosen)

    return Table(
        label,
        names,
        "row",
        "excel",
        held(batch),
        n_rows=len(batch.rows),
        recognised=frozenset(["sheet"] if sheet is None else []),
        header_at=at[place] if place else 1,
        units_at=at[place + 1] if units else None,
        sheet=chosen,
        other_sheets=others,
        skipped=notes,
    )


class Workbook:
    """A workbook in a process of its own; see :mod:`skcoral.tables.workbook_process`."""

    def __init__(self, label: str, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self._label, self._process, self._limits = label, process, limits
        self.late = False  # whether it was ended because its time was over
        self.sheets: list[str] = []

    def head(self, sheet: str) -> list[list[Any]]:
        """The first rows of a sheet that hold a value."""
        rows: list[list[Any]] = []
        for _, columns in self.rows(sheet, LOOKED_AT):
            rows += map(list, zip(*columns[:_LOOKED_AT_COLUMNS], strict=True))
        return rows

    def rows(self, sheet: str, most: int = _EVERYTHING) -> Iterator[tuple[list[int], list[Any]]]:
        """Blocks of rows that hold a value: their numbers, and their cells by column."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the answer tells why
            pickle.dump((sheet, most), self._process.stdin)
            self._process.stdin.flush()
        while (block := self.answer()) is not None:
            yield block

    def answer(self) -> Any:
        """What the process answers; an error where it cannot."""
        assert self._process.stdout is not None
        try:
            found = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            if self.late:
                self._limits.require("seconds", np.inf, self._label)
            memory = f"{self._limits.workbook_memory / MB:,.0f} MB"
            raise TooLargeError(
                f"{self._label}: from the first cell to the last, a sheet of the workbook takes "
                f"more than {memory} of memory.\nDelete cells that stand far from the table, or "
                "save the table as CSV."
            ) from None
        if isinstance(found, str):
            raise InvalidTableError(
                f"{self._label}: the workbook cannot be read ({found.strip()[:120]}).\n"
                "Open it in a spreadsheet program and save it without a password, or as CSV."
            )
        return found


@contextmanager
def open_workbook(label: str, stream: BinaryIO, limits: Limits) -> Iterator[Workbook]:
    """Open a workbook, whatever its format."""
    import python_calamine

    with suppress(zipfile.BadZipFile):  # .xls is none
        size = sum(entry.file_size for entry in zipfile.ZipFile(stream).infolist())
        limits.require("workbook_bytes", size, label)
    stream.seek(0)
    data = stream.read()
    limits.require("workbook_bytes", len(data), label)
    script = Path(__file__).with_name("workbook_process.py")
    folder = Path(python_calamine.__file__).parents[1]
    command = [sys.executable, "-I", "-S", str(script), str(folder), str(limits.workbook_memory)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    ) as process:
        book = Workbook(label, process, limits)

        def stop() -> None:
            book.late = True
            process.kill()

        timer = threading.Timer(min(limits.seconds, threading.TIMEOUT_MAX), stop)
        timer.start()
        try:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                pickle.dump(len(data), process.stdin)
                process.stdin.write(data)
                process.stdin.flush()
            del data
            book.sheets = book.answer()
            yield book
        finally:
            timer.cancel()
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()  # type: ignore[union-attr]


def _first_table(book: Workbook) -> str:
    """The first sheet with two columns of numbers under a header; else the first one."""
    for sheet in book.sheets if len(book.sheets) > 1 else ():
        rows = book.head(sheet)
        if has_numbers(rows, header_place(rows)):
            return sheet
    return book.sheets[0]


def _name(cell: Any) -> str:
    """The name that a cell of the header gives; workbooks know no whole numbers."""
    whole = isinstance(cell, float) and cell.is_integer()
    return f"{cell:.0f}" if whole else str(cell).strip()


class _Column:
    """The cells of a column as they came: parts of numbers, or of cells of any kind."""

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts

    def cells(self, start: int, stop: int) -> list[Any]:
        """Some cells as Python objects."""
        return list(itertools.islice(itertools.chain.from_iterable(self._parts), start, stop))

    def as_arrow(self, start: int, stop: int) -> Any:
        """Numbers or texts as an Arrow array, cells of several kinds as they are."""
        first, *others = self._parts
        kinds = set(map(type, first[start:])) - {NoneType}
        for part in others:
            kinds |= {float} if isinstance(part, array) else set(map(type, part)) - {NoneType}
        if kinds == {float}:
            rest = [np.array(part, dtype=np.float64) for part in (first[start:], *others)]
            return number_array(np.concatenate(rest)[: stop - start])
        cells = self.cells(start, stop)
        if kinds == {str}:
            return text_array(cells)
        return [int(c) if isinstance(c, float) and c.is_integer() else c for c in cells]
