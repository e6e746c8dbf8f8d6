"""Output: sentences, tables and progress for people, JSON for machines."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import textwrap
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TextIO

import numpy as np

from skcoral.core.display import printable, shortened

#: Work that is done before this many seconds needs no progress to be shown.
PATIENCE = 1.0
_COLOURS = {"green": "1;32", "yellow": "1;33", "red": "1;31", "bold": "1"}


def beside(output: str | None) -> AbstractContextManager[Any]:
    """Print to standard error where standard output holds a table, as ``-`` asks for."""
    return contextlib.redirect_stdout(sys.stderr if output == "-" else sys.stdout)


def say(text: str, colour: str = "") -> None:
    """Print one paragraph, wrapped at words; bold, and in a colour if one is given."""
    out = sys.stdout
    lines = textwrap.wrap(printable(text), _width(), break_on_hyphens=False) or [""]
    start, end = "", ""
    if colour and out.isatty() and not os.environ.get("NO_COLOR"):
        start, end = f"\x1b[{_COLOURS[colour]}m", "\x1b[0m"
    out.write("".join(f"{start}{line}{end}\n" for line in lines))


def say_each(sentences: Iterable[str]) -> None:
    """Print a paragraph for each sentence that is not empty."""
    for sentence in sentences:
        if sentence:
            say(sentence)


def copyable(line: str) -> None:
    """Print a line that people copy: never wrapped."""
    sys.stdout.write(printable(line) + "\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column is a name, the others are numbers; these are never cut."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(_cells, column)) for column in columns[1:]]
    # Names give way to numbers, and to a floor in their place only from ten letters on.
    room = max(10, min(40, _width() - sum(widths) - 2 * len(widths)))
    names = [shortened(printable(name), room) for name in columns[0]]
    widths = [max(map(_cells, names)), *widths]
    for name, row in zip(names, (header, *rows), strict=True):
        line = name + " " * (widths[0] - _cells(name))
        for text, width in zip(row[1:], widths[1:], strict=True):
            line += " " * (2 + width - _cells(text)) + text
        sys.stdout.write(line.rstrip() + "\n")


def written(files: Iterable[Any]) -> None:
    """Say which files were written; "-" is none."""
    names = [str(file) for file in files if str(file) != "-"]
    if names:
        say(f"Written: {', '.join(names)}")


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record as JSON; numbers that JSON does not know become null."""
    sys.stdout.write(json.dumps(_plain(record), ensure_ascii=False, indent=2) + "\n")


@contextlib.contextmanager
def progress(label: str) -> Iterator[Callable[[float | None], None]]:
    """Show what is being done on a terminal's standard error once it has taken a second.

    The block gets a function to tell the fraction done; None (or never calling it) means unknown.
    """
    out, begin, shown = sys.stderr, time.monotonic(), ""
    if not out.isatty():
        yield lambda fraction: None
        return

    def tell(fraction: float | None = None) -> None:
        nonlocal shown
        text = f"{printable(label)} …" + ("" if fraction is None else f" {fraction:4.0%}")
        if text != shown and time.monotonic() - begin >= PATIENCE:
            _rewrite(out, shown := text)

    # Work that tells nothing is named all the same.
    timer = threading.Timer(PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        if shown:
            _rewrite(out, "")


def _rewrite(out: TextIO, text: str) -> None:
    """Replace the line of the cursor."""
    out.write(f"\r\x1b[K{text[: _width() - 1]}")
    out.flush()


def counted(n: int, what: str) -> str:
    """A number of things: 1 row, 4,360 rows."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _width() -> int:
    """Columns of the terminal, or of the environment variable COLUMNS."""
    return shutil.get_terminal_size().columns


def _cells(text: str) -> int:
    """Cells of a terminal that a text takes: two for each Chinese letter, none for an accent."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
