"""Excel files and archives as bytes, for tests that read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from typing import Any

import openpyxl


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
