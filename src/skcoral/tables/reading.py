"""The one reader: recognise a file by its content and open it as a table of batches."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import BinaryIO

from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.delimited import open_text
from skcoral.tables.dialect import check_given
from skcoral.tables.sources import (
    OLD_EXCEL,
    PARQUET,
    STATA,
    ZIP,
    Source,
    find_source,
    readable,
)
from skcoral.tables.table import Format, Table, keeping

_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".dta": "stata",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
}
_STARTS = {PARQUET: "parquet", STATA: "stata", OLD_EXCEL: "excel"}
#: The part that makes an archive a workbook of Excel (.xlsx, .xlsb) or OpenDocument (.ods).
_WORKBOOKS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
_PACKED = {".gz", ".zip"}


def open_table(
    source: str | Path | bytes | BinaryIO,
    *,
    name: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    na: Sequence[str] = (),
) -> Table:
    r"""Open a table: a file, ``"-"`` for standard input, or bytes.

    Parameters
    ----------
    source : path, bytes or binary file
        The table. Compressed text (gzip, a zip of one file) is recognised by content.
    name : str, optional
        What to call the table in messages, and whose ending tells the format; the path by default.
    separator, decimal, encoding : str, optional
        Dialect of a text file; recognised by default, and ``assumed`` says what was. The decimal
        mark is also that of texts in a workbook, where it is a point by default.
    sheet : str, optional
        Sheet of a workbook; the first that holds a table by default.
    na : sequence of str
        Marks of missing values besides those in `skcoral.tables.cells.MISSING`.

    Returns
    -------
    Table

    Raises
    ------
    InvalidTableError
        The file is not a table; two lines say where and what to do.

    Examples
    --------
    >>> table = open_table(b"name,height\nAda,1.65\nAlan,1.78\n", name="people.csv")
    >>> table.names
    ('name', 'height')
    >>> from skcoral.tables.columns import profile
    >>> [column.kind for column in profile(table).columns.values()]
    ['text', 'number']
    """
    origin = find_source(source, name, encoding)
    label, named = origin.label, format_of_name(origin.label)
    check_given(label, separator, decimal, encoding)
    with _opened(origin) as (stream, kind):
        if kind == "text" and named in ("stata", "parquet", "excel"):
            kind = named  # older Stata files do not say what they are; the others are damaged
        if kind == "excel":
            from skcoral.tables.excel import open_excel

            table = open_excel(label, stream, sheet, decimal or ".")
        elif sheet is not None:
            raise InvalidArgumentError(
                f"{label}: sheets are those of Excel files, and this is not one.\n"
                "Leave out --sheet."
            )
        elif kind == "parquet":
            from skcoral.tables.typed import open_parquet

            table = open_parquet(label, origin.open, origin.size)
        elif kind == "stata":
            from skcoral.tables.typed import open_stata

            table = open_stata(label, stream)
        else:
            separator = separator or ("\t" if named == "tsv" else None)
            table = open_text(origin, stream, separator, decimal, encoding)
    return replace(table, read=keeping(table.read), na=tuple(na))


def sheet_names(
    source: str | Path | bytes | BinaryIO, *, name: str | None = None
) -> tuple[str, ...]:
    """The sheets of a workbook that hold cells; none for any other file."""
    origin = find_source(source, name)
    with _opened(origin) as (stream, kind):
        if kind != "excel":
            return ()
        from skcoral.tables import excel

        return tuple(excel.sheet_names(origin.label, stream))


def format_of_name(name: str) -> Format | None:
    """The format that the ending of a file name stands for (``.csv.gz`` counts as CSV)."""
    path = PurePath(name.lower())
    ending = PurePath(path.stem).suffix if path.suffix in _PACKED else path.suffix
    return _ENDINGS.get(ending)


@contextmanager
def _opened(source: Source) -> Iterator[tuple[BinaryIO, str]]:
    """The file, and what it holds by its first bytes."""
    with ExitStack() as stack:
        with readable(source.label):
            stream = stack.enter_context(source.open())
            head = stream.read(16)
            stream.seek(0)
        if not head:
            raise InvalidTableError(
                f"{source.label}: the file is empty.\nGive a table with a header line."
            )
        kind = next((kind for start, kind in _STARTS.items() if head.startswith(start)), "text")
        if head.startswith(ZIP):
            with suppress(zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
                if not _WORKBOOKS.isdisjoint(zipfile.ZipFile(stream).namelist()):
                    kind = "excel"
            stream.seek(0)
        yield stream, kind
