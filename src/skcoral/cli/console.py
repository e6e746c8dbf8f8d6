"""Output: sentences, tables and progress for people, JSON for machines."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from skcoral.core import validation as _validation
from skcoral.core.display import number as number
from skcoral.core.display import printable, shortened
from skcoral.core.display import short as short
from skcoral.tables.cells import is_number

#: Work that is done before this many seconds needs no progress bar.
PATIENCE = 1.0
#: Rows of a table that rich lays out; 60,000 of them take it ten seconds.
_MOST_STYLED = 1_000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Report a closed pipe by the exit status, as for any other output."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that is plain when piped and obeys NO_COLOR."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def say(*parts: str | Text, stderr: bool = False) -> None:
    """Print one paragraph, wrapped at words."""
    text = Text()
    for part in parts:
        text.append(printable(part) if isinstance(part, str) else part)
    console(stderr=stderr).print(text)


def say_each(sentences: Iterable[str], *, stderr: bool = False) -> None:
    """Print a paragraph for each sentence that is not empty."""
    for sentence in sentences:
        if sentence:
            say(sentence, stderr=stderr)


def copyable(line: str) -> None:
    """Print a line that people copy: never wrapped."""
    console().print(Text(printable(line)), soft_wrap=True)


def bold(text: str, colour: str = "") -> Text:
    """Text in bold, and in a colour if one is given."""
    return Text(printable(text), style=f"bold {colour}".strip())


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, stderr: bool = False) -> None:
    """Print a table: the first column is a name, the others are numbers."""
    out = console(stderr=stderr)
    padding = 1 if out.width < 60 else 2
    # Numbers are never cut: names are shortened first, and then the line is long.
    widths = [max([len(name), *(len(row[k]) for row in rows)]) for k, name in enumerate(header)]
    if not all(is_number(row[0]) for row in rows):
        rows = [(shortened(row[0]), *row[1:]) for row in rows]
        widths[0] = 6
    out.width = max(out.width, sum(widths) + padding * len(widths))
    if len(rows) > _MOST_STYLED:
        widths[0] = max([len(header[0]), *(len(row[0]) for row in rows)])
        for row in (header, *rows):
            cells = [printable(row[0]).ljust(widths[0])]
            cells += [printable(c).rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
            out.file.write((" " * padding).join(cells).rstrip() + "\n")
        return
    grid = RichTable(
        box=None,
        header_style="bold" if out.is_terminal else "",
        pad_edge=False,
        padding=(0, padding, 0, 0),
    )
    for k, name in enumerate(header):
        grid.add_column(
            name,
            justify="left" if k == 0 else "right",
            no_wrap=k > 0,
            overflow="ellipsis",
            min_width=widths[k],
        )
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    out.print(grid)


def written(files: Iterable[Any], *, stderr: bool = False) -> None:
    """Say which files were written; "-" is none."""
    names = [str(file) for file in files if str(file) != "-"]
    if names:
        say(f"Written: {', '.join(names)}", stderr=stderr)


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record as JSON; numbers that JSON does not know become null."""
    sys.stdout.write(json.dumps(_plain(record), ensure_ascii=False, indent=2) + "\n")


@contextlib.contextmanager
def progress(label: str) -> Iterator[Callable[[float | None], None]]:
    """Show a bar on a terminal's standard error once the work has taken a second.

    The block gets a function to tell the fraction done; None (or never calling it) means unknown.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda fraction: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=out,
        transient=True,
    )
    task = bar.add_task(label, total=None)
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda fraction: bar.update(
            task, total=None if fraction is None else 1.0, completed=fraction or 0.0
        )
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def counted(n: int, what: str) -> str:
    """A number of things: 1 row, 4,360 rows."""
    return f"{n} {what}" if n == 1 else f"{n:,} {what}s"


def listing(names: Sequence[Any], limit: int = 8) -> str:
    """Names in a sentence, the first few of many."""
    return _validation.listing([shortened(str(name)) for name in names], limit, quote="")


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
