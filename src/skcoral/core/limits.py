"""The largest input that is accepted, checked before the work.

An environment variable such as ``CORAL_MAX_COLUMNS`` changes one of :class:`Limits`. A shared
server gives its visitors less room, see :data:`VISITOR`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from skcoral.exceptions import InvalidArgumentError, TooLargeError

MB = 2**20
_PREFIX = "CORAL_MAX_"
#: Bytes that any file may unpack to: what they take does no harm, whatever the file.
_HARMLESS = 64 * MB
#: What there is too much of, and what to do besides raising the limit.
_REFUSALS = {
    "columns": ("there are {} columns", "Use fewer columns."),
    "variables": ("there are {} variables", "Use fewer columns."),
    "cells": ("there are {} cells", "Use fewer columns."),
    "sheet_cells": ("there are {} cells or texts", "Save the table as CSV or Parquet."),
    "bytes": ("there are {} to read", ""),
    "whole_bytes": ("there are {} to hold at once", "Save the table as CSV or Parquet."),
    "unpacked_ratio": ("it unpacks to {} times its size", "Save it as CSV, not compressed."),
    "record_bytes": (
        "one row or cell has {} of text",
        "Are there line ends, and is every quote closed?",
    ),
    "seconds": ("reading has taken {}", ""),
}


@dataclass(frozen=True)
class Limits:
    """The most that one input may have.

    Attributes
    ----------
    columns : int
        Columns of a table.
    variables : int
        Columns of a correlation matrix: several matrices of this size are held at a time.
    cells : int
        Numbers of a table that is held in memory; one that is read in parts has no such limit.
    bytes : int
        Bytes of a text file after decompression.
    seconds : float
        Time for reading a table from its start to its end.

    Examples
    --------
    >>> with use(Limits(columns=50)):
    ...     current().columns
    50
    """

    columns: int = 100_000
    variables: int = 10_000
    cells: int = 100_000_000
    bytes: int = 8 * 1024 * MB
    seconds: float = 3600.0

    # Fixed, as there is another way: cells of a workbook, memory of the process that reads it,
    # characters of a row (30 in each of 100,000 columns; text is read in blocks of that size), and
    # how many times its size a file may unpack to (eight bytes for each value of a Parquet file).
    sheet_cells: ClassVar[int] = 10_000_000
    workbook_memory: ClassVar[int] = 1536 * MB
    record_bytes: ClassVar[int] = 3 * MB
    unpacked_ratio: ClassVar[int] = 1000

    @property
    def whole_bytes(self) -> int:
        """Bytes of a workbook, a model or a pipe, which are held in memory at once."""
        return min(self.bytes, 1024 * MB)

    def check(self, name: str, amount: float, label: str, what: str = "", advice: str = "") -> None:
        """Refuse an amount above the limit called ``name``, with both figures and what to do.

        ``label`` is the file; ``what`` and ``advice`` replace the usual words.
        """
        allowed = getattr(self, name)
        if amount > allowed:
            given, limit = shown(name, amount), shown(name, allowed)
            usual, remedy = _REFUSALS[name]
            what = what or usual.format(f"more than {given}" if given == limit else given)
            advice = f"{advice or remedy} {self.remedy(name)}".strip()
            raise TooLargeError(f"{label}: {what}, and the limit is {limit}.\n{advice}")

    def check_ratio(self, unpacked: int, packed: int, label: str) -> None:
        """Refuse what unpacks to many times its size; few megabytes may, whatever their source."""
        if unpacked > _HARMLESS:
            self.check("unpacked_ratio", unpacked // max(packed, 1), label)

    def remedy(self, name: str) -> str:
        """How the limit is raised, or where there is more room."""
        if self == VISITOR:
            return "Use the command instead: coral fit takes more."
        name = name.removeprefix("whole_")
        if name not in self.__dict__:
            return ""
        return f"A higher limit: {_PREFIX}{name.upper()}=NUMBER in the environment."


#: What a visitor of a shared server, who cannot raise a limit, may bring.
VISITOR = Limits(columns=5_000, variables=1_000, cells=5_000_000, bytes=100 * MB, seconds=60.0)

_chosen: ContextVar[Limits | None] = ContextVar("limits", default=None)


def current() -> Limits:
    """The limits in force: those of :func:`use`, or the usual ones and the environment's.

    Examples
    --------
    >>> current().columns
    100000
    """
    given = {f.name: os.environ.get(_PREFIX + f.name.upper()) for f in fields(Limits)}
    return _chosen.get() or replace(
        Limits(), **{n: _amount(n, text) for n, text in given.items() if text is not None}
    )


def _amount(name: str, text: str) -> Any:
    """A limit that is given as text."""
    value = 0.0
    with suppress(ValueError):
        value = float(text)
    if not value > 0:
        variable = f"{_PREFIX}{name.upper()}"
        raise InvalidArgumentError(f"{variable} must be a number above 0 (1e6), got {text!r}.")
    return value if name == "seconds" or value == float("inf") else int(value)


@contextmanager
def use(limits: Limits) -> Iterator[None]:
    """Put other limits in force for what is opened in the block.

    Examples
    --------
    >>> with use(VISITOR):
    ...     current().columns
    5000
    """
    token = _chosen.set(limits)
    try:
        yield
    finally:
        _chosen.reset(token)


def shown(name: str, amount: float) -> str:
    """An amount in words, in the unit of its limit.

    Examples
    --------
    >>> shown("columns", 5000), shown("bytes", 2**21), shown("seconds", 60)
    ('5,000', '2 MB', '60 s')
    """
    if name.endswith("seconds"):
        return f"{amount:,.0f} s" if amount >= 10 else f"{amount:g} s"
    if name.endswith("bytes"):
        return f"{amount / MB:,.0f} MB" if amount >= MB else f"{amount:,.0f} bytes"
    return f"{amount:,.0f}"


def read_file(path: str | os.PathLike[str], label: str) -> bytes:
    """The content of a model or certificate file, called ``label`` in errors, within the limits.

    Of what begins neither as JSON nor as an archive (a device, say) only the beginning is read,
    which is enough for the caller to refuse it.
    """
    limits = current()
    with open(path, "rb") as stream:
        data = stream.read(4096)
        if data.lstrip()[:1] == b"{" or data[:2] == b"PK":
            data += stream.read(limits.whole_bytes + 1 - len(data))
    limits.check("whole_bytes", len(data), label)
    return data


class Clock:
    """Tells when reading has taken longer than the limit allows."""

    def __init__(self, limits: Limits, label: str) -> None:
        self.limits, self.label = limits, label
        self.start = time.monotonic()

    def check(self) -> None:
        """Refuse to go on after the limit."""
        self.limits.check("seconds", time.monotonic() - self.start, self.label)
