"""Workbooks of Excel and OpenDocument (.xlsx, .xlsb, .xls, .ods): the table in one sheet."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import zipfile
from array import array
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import python_calamine

from skcoral.core.limits import MB, Clock, current
from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.tables.cells import float_array, is_null, text_array
from skcoral.tables.dialect import LOOKED_AT, has_numbers, has_units, header_place, is_note
from skcoral.tables.table import Batch, Table

#: Where some rows stand, and their cells by column.
Block = tuple[list[int], list[Any]]


def open_excel(label: str, stream: BinaryIO, sheet: str | None, decimal: str) -> Table:
    """Open one sheet of a workbook; values only, a formula counts as its last computed value.

    Unless it is named, this is the first sheet with two columns of numbers under a header, or else
    the first one.
    """
    limits = current()
    with closing(_answers(label, stream, sheet)) as answers:
        sheets = next(answers)
        chosen, blocks = _chosen_sheet(label, sheets, sheet, answers)
    if not blocks:
        raise InvalidTableError(f"{label}: the sheet is empty.\nGive a table with a header row.")
    # The header, a row of units under it and all above are taken away, and the notes at the end,
    # so that what is left of a column is its cells.
    places, columns = blocks[0]
    head = _first_rows(blocks)
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
    columns = [_as_arrow([part[j] for _, part in blocks], decimal) for j in range(len(header))]
    beyond = [is_null(column) for column in columns[width:]]
    if not np.all(beyond):
        row = at[int(np.argmin(np.all(beyond, axis=0)))]
        raise InvalidTableError(
            f"{label}: row {row} has a value to the right of the last named column"
            f" {names[-1]!r}.\nGive every column a name in row {places[place]}, or remove it."
        )
    return Table(
        label,
        names,
        "row",
        "excel",
        Batch(at, columns[:width]).parts,
        decimal=decimal,
        recognised=frozenset(["sheet"] if sheet is None else []),
        header_at=places[place],
        units_at=places[place + 1] if units else None,
        sheet=chosen,
        other_sheets=tuple(name for name in sheets if name != chosen),
        skipped=notes,
    )


def _chosen_sheet(
    label: str, sheets: list[str], sheet: str | None, answers: Iterator[Any]
) -> tuple[str, list[Block]]:
    """The sheet that is named, or the first that holds a table, and its rows."""
    wanted = sheets if sheet is None else [sheet]
    if not sheets or wanted[0] not in sheets:
        raise InvalidTableError(
            f"{label}: there is no sheet {'with cells' if sheet is None else repr(sheet)}.\n"
            f"It has: {', '.join(sheets) or 'nothing but charts'}."
        )
    first: list[Block] = []
    for name in wanted:
        blocks = list(iter(answers.__next__, None))
        head = _first_rows(blocks)
        if has_numbers(head, header_place(head)):
            return name, blocks
        first = blocks if name == wanted[0] else first
    return wanted[0], first


def _pop_notes(blocks: list[Block]) -> list[tuple[int, str]]:
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


def _first_rows(blocks: list[Block]) -> list[tuple[Any, ...]]:
    """The first rows of a sheet, which tell where its header is."""
    return list(islice(zip(*blocks[0][1], strict=True), LOOKED_AT)) if blocks else []


def sheet_names(label: str, stream: BinaryIO) -> list[str]:
    """The sheets of a workbook that hold cells."""
    with closing(_answers(label, stream, None)) as answers:
        return list(next(answers))


def _answers(label: str, stream: BinaryIO, sheet: str | None) -> Generator[Any]:
    """What a process of its own reads: the names of the sheets, then each sheet, or the named one.

    A sheet comes in blocks of rows that hold a value, closed by None; see
    :mod:`skcoral.tables.workbook_process`.
    """
    limits, clock = current(), Clock(current(), label)
    with suppress(zipfile.BadZipFile):  # .xls is none
        size = sum(entry.file_size for entry in zipfile.ZipFile(stream).infolist())
        limits.check("whole_bytes", size, label)
    stream.seek(0)
    data = stream.read()
    limits.check("whole_bytes", len(data), label)
    script = Path(__file__).with_name("workbook_process.py")
    folder = Path(python_calamine.__file__).parents[1]
    command = [sys.executable, "-I", "-S", str(script), str(folder), str(limits.workbook_memory)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = {**os.environ, "RUST_BACKTRACE": "0"}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment, **pipes) as process:
        timer = threading.Timer(min(limits.seconds, threading.TIMEOUT_MAX), process.kill)
        timer.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # the answer tells why
                pickle.dump((len(data), sheet), process.stdin)
                process.stdin.write(data)
                process.stdin.flush()
            del data
            while not isinstance(answer := pickle.load(process.stdout), str):
                yield answer
            raise InvalidTableError(
                f"{label}: the workbook cannot be read ({answer.strip()[:120]}).\n"
                "Open it in a spreadsheet program and save it without a password, or as CSV."
            )
        except (EOFError, pickle.UnpicklingError):
            clock.check()  # ended because its time was over
            memory = f"{limits.workbook_memory / MB:,.0f} MB"
            raise TooLargeError(
                f"{label}: from the first cell to the last, a sheet of the workbook takes more "
                f"than {memory} of memory.\nDelete cells that stand far from the table, or save "
                "the table as CSV."
            ) from None
        finally:
            timer.cancel()
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _as_arrow(parts: list[Any], decimal: str) -> Any:
    """The cells of a column; those of several kinds become texts, numbers as texts spell them."""
    others = chain.from_iterable(part for part in parts if not isinstance(part, array))
    if set(map(type, others)) <= {float, NoneType}:
        column = float_array(np.concatenate([np.array(part, dtype=float) for part in parts]))
        with suppress(pa.ArrowInvalid):  # unless all of them are whole
            column = pc.cast(column, pa.int64())
        return column
    cells = list(chain.from_iterable(parts))
    kinds = set(map(type, cells)) - {NoneType}
    if len(kinds) == 1 and kinds != {str}:
        return pa.array(cells)
    return text_array(None if cell is None else _as_text(cell, decimal) for cell in cells)


def _as_text(cell: Any, decimal: str = ".") -> str:
    """A cell in words; workbooks know no whole numbers."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.0f}" if cell.is_integer() else str(cell).replace(".", decimal)
