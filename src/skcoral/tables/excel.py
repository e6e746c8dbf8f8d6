"""Workbooks of Excel and OpenDocument (.xlsx, .xlsb, .xls, .ods): the table in one sheet."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import zipfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import python_calamine

from skcoral.core.limits import MB, Clock, Limits, current
from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.tables.arrow_arrays import float_array, is_null, text_array
from skcoral.tables.dialect import LOOKED_AT, has_numbers, has_units, header_place, is_note
from skcoral.tables.table import Batch, Table

#: Columns that are looked at to find the header of a sheet.
_LOOKED_AT_COLUMNS = 400


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
        blocks = list(book.rows(chosen))
    if not blocks:
        raise InvalidTableError(f"{label}: the sheet is empty.\nGive a table with a header row.")
    places, columns = blocks[0]
    head = _first_rows(columns)
    place = header_place(head)
    units = has_units(head[place:], 0)
    header = [column[place] for column in columns]
    above = place + 1 + units
    blocks[0] = places[above:], [column[above:] for column in columns]
    notes = _pop_notes(blocks)
    at = list(chain.from_iterable(rows for rows, _ in blocks))
    width = max(j for j, cell in enumerate(header, start=1) if cell is not None)
    limits.check("columns", width, label)
    limits.check("sheet_cells", width * len(at), label)
    names = tuple("" if cell is None else _as_text(cell).strip() for cell in header[:width])
    columns = [_as_arrow([part[j] for _, part in blocks]) for j in range(len(header))]
    beyond = [is_null(column) for column in columns[width:]]
    if not np.all(beyond):
        row = at[int(np.argmin(np.all(beyond, axis=0)))]
        raise InvalidTableError(
            f"{label}: row {row} has a value to the right of the last named column"
            f" {names[-1]!r}.\nGive every column a name in row {places[place]}, or remove it."
        )
    batch = Batch(at, columns[:width])
    return Table(
        label,
        names,
        "row",
        "excel",
        batch.parts,
        recognised=frozenset(["sheet"] if sheet is None else []),
        header_at=places[place],
        units_at=places[place + 1] if units else None,
        sheet=chosen,
        other_sheets=tuple(name for name in book.sheets if name != chosen),
        skipped=notes,
    )


def _pop_notes(blocks: list[tuple[list[int], list[Any]]]) -> list[tuple[int, str]]:
    """Take the notes away that stand below the rows, before their words change a column's kind."""
    notes: list[tuple[int, str]] = []
    while blocks and blocks[-1][0]:
        rows, columns = blocks[-1]
        texts = ["" if column[-1] is None else str(column[-1]) for column in columns]
        if is_note(texts):
            notes.insert(0, (rows[-1], texts[0].strip()))
        elif any(map(str.strip, texts)):
            break
        for cells in (rows, *columns):
            cells.pop()
        if not rows:
            blocks.pop()
    return notes


class Workbook:
    """A workbook in a process of its own; see :mod:`skcoral.tables.workbook_process`."""

    def __init__(self, label: str, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self._label, self._process, self._limits = label, process, limits
        self._clock = Clock(limits, label)
        self.sheets: list[str] = []

    def rows(self, sheet: str, most: int = 2**31) -> Iterator[tuple[list[int], list[Any]]]:
        """Blocks of the first rows that hold a value: their numbers, and their cells by column."""
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
            self._clock.check()  # ended because its time was over
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
    with suppress(zipfile.BadZipFile):  # .xls is none
        size = sum(entry.file_size for entry in zipfile.ZipFile(stream).infolist())
        limits.check("whole_bytes", size, label)
    stream.seek(0)
    data = stream.read()
    limits.check("whole_bytes", len(data), label)
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
        timer = threading.Timer(min(limits.seconds, threading.TIMEOUT_MAX), process.kill)
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
        for _, columns in list(book.rows(sheet, LOOKED_AT)):  # one block, or none
            head = _first_rows(columns)
            if has_numbers(head, header_place(head)):
                return sheet
    return book.sheets[0]


def _first_rows(columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The first rows of a block, which tell where its header is."""
    return list(islice(zip(*columns[:_LOOKED_AT_COLUMNS], strict=True), LOOKED_AT))


def _as_arrow(parts: list[Any]) -> Any:
    """The cells of a column; those of several kinds become texts."""
    others = chain.from_iterable(part for part in parts if not isinstance(part, array))
    if set(map(type, others)) <= {float, NoneType}:
        numbers = np.concatenate([np.empty(0), *(np.array(part, dtype=float) for part in parts)])
        whole = np.where(np.isnan(numbers), 0.0, numbers)
        is_whole = (whole == np.floor(whole)).all() and (np.abs(whole) < 2**53).all()
        column = float_array(numbers)
        return pc.cast(column, pa.int64()) if is_whole else column
    cells = list(chain.from_iterable(parts))
    kinds = set(map(type, cells)) - {NoneType}
    if len(kinds) == 1 and kinds != {str}:
        return pa.array(cells)
    return text_array(None if cell is None else _as_text(cell) for cell in cells)


def _as_text(cell: Any) -> str:
    """A cell in words; workbooks know no whole numbers."""
    whole = isinstance(cell, float) and cell.is_integer()
    return f"{cell:.0f}" if whole else str(cell)
