"""Excel files as bytes, for tests that read them."""

from __future__ import annotations

import io
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
