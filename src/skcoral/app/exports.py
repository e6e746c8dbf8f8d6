"""Downloads: tables, model, report, and the command that repeats a view."""

from __future__ import annotations

import io
import shlex
from pathlib import PurePath
from typing import Any

from skcoral.app.problem import Problem, arguments, doubts, groups
from skcoral.app.settings import LIMITED, Settings
from skcoral.cli.parser import arguments as typed
from skcoral.tables.writing import write_matrix
from skcoral.workflow.fit import Fit

FORMATS = {
    "CSV": ("csv", "text/csv"),
    "Parquet": ("parquet", "application/vnd.apache.parquet"),
    "Excel": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}


def decorrelated(fit: Fit, *, ending: str) -> bytes:
    """The table with its variables replaced; everything else untouched and in place."""
    stream = io.BytesIO()
    fit.write(stream, f"out.{ending}")
    return stream.getvalue()


def matrix_file(problem: Problem, values: Any, *, ending: str = "csv") -> bytes:
    """T as a table: rows are standardised sources, columns are outputs."""
    stream = io.BytesIO()
    names = problem.names
    write_matrix(stream, f"out.{ending}", names, names, values, like=problem.data.table)
    return stream.getvalue()


def page(problem: Problem, fit: Fit, *, command: str) -> bytes:
    """The report as one HTML page."""
    notes = [*problem.data.choices(), *doubts(problem)]
    # Five more solutions with a support would keep the visitor waiting for the file.
    folds = None if fit.model.support is None else 0
    return fit.report(command=command, notes=notes, folds=folds).encode()


def file_stem(problem: Problem) -> str:
    """A safe beginning for the names of downloads."""
    stem = PurePath(problem.data.table.label).stem
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-")
    return safe[:60] or "table"


def command(problem: Problem, settings: Settings, *, ending: str, scale: str = "unit") -> str:
    """The command that repeats what is on screen."""
    source = problem.source
    chosen = arguments(problem, settings)
    before, file = "", problem.data.table.label
    asked: dict[str, Any] = {
        "sheet": source.sheet,
        "weights": settings.weights or None,
        "target": settings.target or None,
        "include": [*settings.include] or None,
        "covariance": settings.covariance or None,
        "output_scale": scale,
        "output": f"decorrelated.{ending}",
        "model": "model.json",
        "report": "report.html",
    }
    if not source.has_rows:
        asked |= {"matrix": True, "output": f"T.{ending}", "model": None}
    elif source.is_example:
        before, file = "coral demo --into wine\n", "wine/wine.csv"
    aside = {*problem.names, *source.opened.doubtful, settings.weights, settings.target}
    asked["exclude"] = [name for name in source.names if name not in aside] or None
    asked |= {name: chosen.get(name) for name in (*LIMITED, "confidence")}
    asked["groups"] = groups(settings, chosen)
    if settings.mode not in LIMITED:
        own = [f"{name}={value:g}" for name, value in settings.own if name in problem.names]
        asked["rho_min"] = [f"{settings.floor:g}", *own]
    if settings.mode == "support":
        asked["support"] = f"{settings.support:g}"
    return before + shlex.join(["coral", "fit", *typed({"file": file, **asked})])
