"""Downloads: tables, model, report, and the command that repeats a view."""

from __future__ import annotations

import io
import shlex
from pathlib import PurePath

from skcoral.app.problem import Problem, arguments, doubts, groups
from skcoral.app.settings import Settings
from skcoral.cli.parser import arguments as typed
from skcoral.tables.writing import write_matrix
from skcoral.workflow.fit import Fit

#: Formats of tables, with the endings of their files.
FORMATS = {"CSV": "csv", "Parquet": "parquet", "Excel": "xlsx"}


def table_file(fit: Fit, ending: str) -> bytes:
    """The table with its variables replaced; everything else untouched and in place."""
    stream = io.BytesIO()
    fit.write(stream, f"out.{ending}")
    return stream.getvalue()


def matrix_file(fit: Fit, ending: str) -> bytes:
    """T as a table: rows are standardised sources, columns are outputs."""
    stream, names = io.BytesIO(), fit.data.names
    write_matrix(stream, f"out.{ending}", names, names, fit.model.T_, like=fit.data.table)
    return stream.getvalue()


def page(fit: Fit, command: str) -> bytes:
    """The report as one HTML page."""
    notes = [*fit.data.choices(), *doubts(fit.data)]
    # Five more solutions with a support would keep the visitor waiting for the file.
    folds = None if fit.model.support is None else 0
    return fit.report(command=command, notes=notes, folds=folds).encode()


def file_stem(label: str) -> str:
    """A safe beginning for the names of downloads from a file of this name."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in PurePath(label).stem).strip("-")
    return safe[:60] or "table"


def command(problem: Problem, settings: Settings, *, ending: str, scale: str = "unit") -> str:
    """The command that repeats what is on screen: the same request, and the same settings."""
    source, chosen = problem.source, arguments(problem, settings)
    before, file = "", problem.data.table.label
    if source.is_example:
        before, file = "coral demo --into wine\n", "wine/wine.csv"
    files = {"output": f"decorrelated.{ending}", "model": "model.json", "report": "report.html"}
    if not source.has_rows:
        files = {"output": f"T.{ending}", "report": "report.html"}
        chosen["matrix"] = True
    if isinstance(floors := chosen.get("rho_min"), dict):
        others = (f"{name}={x:g}" for name, x in floors.items() if x != settings.floor)
        chosen["rho_min"] = [f"{settings.floor:g}", *others]
    chosen |= {"groups": groups(settings, chosen), "output_scale": scale, "sheet": source.sheet}
    asked = vars(problem.data.request) | chosen | files | {"file": file}
    return before + shlex.join(["coral", "fit", *typed(asked)])
