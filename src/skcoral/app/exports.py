"""Downloads: tables, model, report, and the code or command that repeats a view."""

from __future__ import annotations

import io
import pprint
import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from skcoral.app.problem import Problem, arguments, curve_points, doubts, groups
from skcoral.app.settings import LIMITED, Settings
from skcoral.app.sources import Source
from skcoral.cli.options import FitOptions
from skcoral.tables.transforming import write_matrix
from skcoral.workflow.fit import Fit

FORMATS = {
    "CSV": ("csv", "text/csv"),
    "Parquet": ("parquet", "application/vnd.apache.parquet"),
    "Excel": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}
SUPPORT_FILE = "support.csv"


def decorrelated(fit: Fit, *, ending: str) -> bytes:
    """The table with its variables replaced; everything else untouched and in place."""
    stream = io.BytesIO()
    fit.write(stream, f"out.{ending}")
    return stream.getvalue()


def matrix_file(problem: Problem, values: Any, *, ending: str = "csv") -> bytes:
    """T or a mask as a table: rows are (standardised) sources, columns are outputs."""
    stream = io.BytesIO()
    names = problem.names
    write_matrix(stream, f"out.{ending}", names, names, values, like=problem.data.table)
    return stream.getvalue()


def page(problem: Problem, fit: Fit, *, command: str) -> bytes:
    """The report as one HTML page."""
    # Five more solutions with a support would keep the visitor waiting for the file.
    quick = problem.can_hold_out and fit.model.support is None
    points = curve_points(problem, fit.model.criterion)
    notes = [*problem.data.choices(), *doubts(problem)]
    how = {"folds": None if quick else 0, "n_points": points}
    return fit.report(command=command, notes=notes, **how).encode()


def file_stem(problem: Problem) -> str:
    """A safe beginning for the names of downloads."""
    stem = PurePath(problem.source.label).stem
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-")
    return safe[:60] or "table"


def snippet(problem: Problem, settings: Settings, *, scale: str = "unit") -> str:
    """Python code that repeats what is on screen."""
    source = problem.source
    is_table = source.has_rows
    imports, lines = _data_code(source)
    every = problem.names == (source.opened.table.names if is_table else source.names)
    asked = arguments(problem, settings)
    asked |= {"covariance": settings.covariance} if settings.covariance else {}
    own = {n: v for n, v in settings.own if n in problem.names and "rho_min" in asked}
    if is_table or own or not every:
        whole = f"list({'table' if is_table else 'R'})"
        lines.append(f"columns = {whole if every else _literal(list(problem.names))}")
    chosen = {name: _literal(value) for name, value in asked.items()}
    if own:
        lines.append(f"floors = dict.fromkeys(columns, {settings.floor!r}) | {_literal(own)}")
        chosen["rho_min"] = "floors"
    if "support" in asked:
        entering = {
            name: [source for source, on in zip(problem.names, column, strict=True) if on]
            for name, column in zip(problem.names, asked["support"].T, strict=True)
        }
        lines.append(f"support = {_literal(entering)}")
        chosen["support"] = "support"
    if not is_table:
        question = "maximize_fidelity" if settings.mode in LIMITED else "decorrelate"
        for limit, criterion in (("max_vif", "vif"), ("max_correlation", "worst")):
            if limit in chosen:
                chosen = {"budget": chosen[limit], "criterion": repr(criterion)}
        given = "R" if every else "R.loc[columns, columns]"
        lines += [f"result = {question}({given}, {_call(chosen)})", "print(result)"]
        return "\n".join([f"from skcoral import {question}", *imports, "", *lines])
    if scale != "unit":
        chosen["output_scale"] = repr(scale)
    needed = f"[*columns, {settings.weights!r}]" if settings.weights else "columns"
    known = f", sample_weight=rows[{settings.weights!r}]" if settings.weights else ""
    clusters = groups(problem, settings)
    known += f", groups=rows[{clusters!r}]" if clusters else ""
    lines += [
        f"rows = table.dropna(subset={needed})",
        f"model = CORAL({_call(chosen)})",
        f"model.fit(rows[columns]{known})",
        "outputs = model.transform(rows[columns])",
        "print(model.result_)",
    ]
    return "\n".join(["from skcoral import CORAL", *imports, "", *lines])


def _data_code(source: Source) -> tuple[list[str], list[str]]:
    """Imports and lines that bring the data back: as ``table`` or as ``R``."""
    if source.opened.matrix is None:
        if source.public:
            return ["from skcoral.datasets import load_wine"], ["table = load_wine().to_frame()"]
        how = "".join(f", {name}={value!r}" for name, value in source.dialect.items())
        opened = f"table = open_table({source.label!r}{how}).to_frame()"
        return ["from skcoral.tables import open_table"], [opened]
    if source.key == "wdi":
        imported = "from skcoral.datasets import wdi_correlation"
        return [imported], ["R = wdi_correlation().to_frame()"]
    imports, p = ["import pandas as pd"], len(source.names)
    if source.public:
        imports.append("from skcoral.datasets import make_system")
        names, values = f"[f'x{{j}}' for j in range(1, {p + 1})]", f"make_system({p})"
    else:
        names = _literal(list(source.names))
        values = "[" + "".join(f"\n    {row!r}," for row in source.opened.matrix.R.tolist()) + "\n]"
    made = f"R = pd.DataFrame({values}, index=names, columns=names)"
    return imports, [f"names = {names}", made]


def command(
    problem: Problem, settings: Settings, *, ending: str, scale: str = "unit"
) -> str | None:
    """The command that repeats what is on screen; None for a matrix that is in no file."""
    source = problem.source
    chosen = arguments(problem, settings)
    before, file = "", source.label
    asked: dict[str, Any] = {
        **source.dialect,
        "criterion": chosen.get("criterion", "squared"),
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
        if not source.is_file:
            return None
        asked |= {"matrix": True, "output": f"T.{ending}", "model": None}
    elif source.public:
        before, file = "coral demo --into wine\n", "wine/wine.csv"
    aside = {*problem.names, *source.opened.doubtful, settings.weights, settings.target}
    asked["exclude"] = [name for name in source.names if name not in aside] or None
    asked |= {name: chosen.get(name) for name in (*LIMITED, "confidence")}
    asked["groups"] = groups(problem, settings)
    if settings.mode not in LIMITED:
        own = [f"{name}={value:g}" for name, value in settings.own if name in problem.names]
        asked["rho_min"] = [f"{settings.floor:g}", *own]
    if settings.mode == "support":
        asked["support"] = SUPPORT_FILE if settings.mask else f"{settings.link:g}"
    return before + shlex.join(["coral", "fit", *FitOptions(file=file, **asked).arguments()])


def _call(chosen: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items())


def _literal(value: Any) -> str:
    """A value as Python writes it, in lines that a page can hold."""
    return pprint.pformat(value, width=88, compact=True, sort_dicts=False)
