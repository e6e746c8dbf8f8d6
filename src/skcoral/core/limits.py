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
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from skcoral.exceptions import InvalidArgumentError, TooLargeError

MB = 2**20
_PREFIX = "CORAL_MAX_"
#: Bytes that any file may unpack to, however small it is: so few do no harm.
_HARMLESS = 64 * MB
#: For each limit, the text about an amount beyond it, and advice besides raising the limit.
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

    # Not set by the environment, because another format of the same table has no such limit: cells
    # of a workbook, memory of the process that reads it, bytes of a row (30 in each of 100,000
    # columns; text is read in blocks of that size), and how many times its size a file may unpack
    # to (counting eight bytes for each value of a Parquet file).
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
        if amount <= allowed:
            return
        given, limit = in_units(name, amount), in_units(name, allowed)
        usual, remedy = _REFUSALS[name]
        what = what or usual.format(f"more than {given}" if given == limit else given)
        raised, more = name.removeprefix("whole_"), ""
        if self == VISITOR:
            more = "Use the command instead: coral fit takes more."
        elif raised in self.__dict__:
            more = f"A higher limit: {_PREFIX}{raised.upper()}=NUMBER in the environment."
        advice = f"{advice or remedy} {more}".strip()
        raise TooLargeError(f"{label}: {what}, and the limit is {limit}.\n{advice}")

    def check_ratio(self, unpacked: int, packed: int, label: str) -> None:
        """Refuse a file that unpacks to many times its size, unless to a few megabytes only."""
        if unpacked > _HARMLESS:
            self.check("unpacked_ratio", unpacked // max(packed, 1), label)


#: What a visitor of a shared server, who cannot raise a limit, may bring.
VISITOR = Limits(columns=5_000, variables=1_000, cells=5_000_000, bytes=100 * MB, seconds=60.0)

_chosen: ContextVar[Limits | None] = ContextVar("limits", default=None)


def current() -> Limits:
    """The limits in force: those of :func:`use`, or the defaults and the environment's.

    Examples
    --------
    >>> current().columns
    100000
    """
    given: dict[str, Any] = {}
    for name in (f.name for f in fields(Limits)):
        text, value = os.environ.get(_PREFIX + name.upper()), 0.0
        if text is None:
            continue
        with suppress(ValueError):
            value = float(text)
        if not value > 0:
            variable = f"{_PREFIX}{name.upper()}"
            raise InvalidArgumentError(f"{variable} must be a number above 0 (1e6), got {text!r}.")
        given[name] = value if name == "seconds" or value == float("inf") else int(value)
    return _chosen.get() or Limits(**given)


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


def in_units(name: str, amount: float) -> str:
    """An amount as text, in the unit of its limit.

    Examples
    --------
    >>> in_units("columns", 5000), in_units("bytes", 2**21), in_units("seconds", 60)
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
    """The time that reading has taken since its start."""

    def __init__(self, limits: Limits, label: str) -> None:
        self.limits, self.label = limits, label
        self.start = time.monotonic()

    def check(self) -> None:
        """Refuse to go on after the limit of seconds."""
        self.limits.check("seconds", time.monotonic() - self.start, self.label)
