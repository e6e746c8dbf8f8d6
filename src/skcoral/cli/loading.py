"""From the options of a command to the variables of its file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from skcoral.cli import console
from skcoral.cli.options import FileOptions, TableOptions
from skcoral.cli.run import UsageError
from skcoral.tables.notes import Outcome
from skcoral.workflow.dataset import Dataset, Request
from skcoral.workflow.opening import OpenedFile, open_file


def open_source(options: FileOptions, *, matrix: bool | None = False) -> OpenedFile:
    """Open the file of a command and look at its columns."""
    separator = options.separator
    return open_file(
        options.file,
        matrix=matrix,
        progress=console.progress,
        separator="\t" if separator in ("tab", "\\t") else separator,
        decimal=options.decimal,
        encoding=options.encoding,
        sheet=options.sheet,
        na=tuple(options.na or ()),
    )


def load(options: TableOptions, **uses: Any) -> Dataset:
    """Open a table or a matrix and choose the variables; ``uses`` are those of other columns."""
    opened = open_source(options, matrix=options.matrix)
    known = opened.table.names if opened.matrix is None else opened.matrix.names
    named: dict[str, Any] = {
        name: _split(getattr(options, name), known) for name in ("columns", "exclude", "include")
    }
    if options.columns and not named["columns"]:
        raise UsageError("--columns names no column.\nName two or more, or leave it out for all.")
    return opened.choose(
        Request(**named, weights=options.weights, covariance=options.covariance, **uses)
    )


def _split(values: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Names given one per option or separated by commas; a column with a comma is kept whole."""
    names: list[str] = []
    for value in values or ():
        parts = (part.strip() for part in value.split(","))
        names += [value] if value in known else filter(None, parts)
    return tuple(names)


def notes(data: Dataset, outcome: Outcome = "unused") -> list[str]:
    """What was asked, assumed and left out: printed next to every answer."""
    how = ""
    if data.doubtful:
        how = f"To use one: --include {shlex.quote(next(iter(data.doubtful)))}."
        weights = [name for name, why in data.doubtful.items() if why.kind == "weights"]
        if weights and data.request.weights is None:
            how += f" To weight the rows: --weights {shlex.quote(weights[0])}."
    return [*data.choices(), *data.doubts(how, outcome)]


def constant_note(data: Dataset) -> str:
    """Which columns are left out because they never change."""
    return f"Constant, so left out: {console.listing(data.constant)}." if data.constant else ""


def record(data: Dataset) -> dict[str, Any]:
    """What an answer is about, for machines."""
    return {
        "file": data.table.label,
        "rows": data.estimate.n_rows or None,  # 0 where the file holds a matrix
        "incomplete_rows": data.incomplete,
        "notes": notes(data),
        "constant": list(data.constant),
        "target": data.request.target,
    }
