"""Files of tables as bytes, for tests that read them, and what these tests ask of tables."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from skcoral.tables.table import Table
from skcoral.tables.variables import select_variables


def saved(book: openpyxl.Workbook) -> bytes:
    """The file of a workbook."""
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def workbook(rows: Iterable[Any]) -> bytes:
    """The file of a workbook with these rows in its only sheet."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return saved(book)


def zipped(**files: str | bytes) -> bytes:
    """A zip archive of text files, whose names end with ``.csv``."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.csv", content)
    return stream.getvalue()


def parquet(columns: Any, **options: Any) -> bytes:
    """A Parquet file of these columns, or of a table of Arrow's."""
    stream = io.BytesIO()
    pq.write_table(
        columns if isinstance(columns, pa.Table) else pa.table(columns), stream, **options
    )
    return stream.getvalue()


def like(**options: Any) -> Table:
    """A table without rows that is written in this way."""
    return replace(Table("like", (), "line", "csv", lambda size: iter(())), **options)


def variables(*arguments: Any, **settings: Any) -> tuple[str, ...]:
    """The columns that are chosen as variables, constants among them."""
    return select_variables(*arguments, **settings, may_be_constant=True)[0]
