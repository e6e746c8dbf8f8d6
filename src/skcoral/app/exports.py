"""What can be taken away: tables, model, report, and the code or command that repeats a view."""

from __future__ import annotations

import io
import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from skcoral import report
from skcoral.app.problem import Problem, arguments, fitted, floors
from skcoral.app.settings import Settings
from skcoral.app.sources import MatrixSource, TableSource
from skcoral.io.models import model_json
from skcoral.io.transforming import write_transformed
from skcoral.io.writing import table_writer
from skcoral.results import Decorrelation

FORMATS = {
    "CSV": ("csv", "text/csv"),
    "Parquet": ("parquet", "application/vnd.apache.parquet"),
    "Excel": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}
SUPPORT_FILE = "support.csv"


def decorrelated(problem: Problem, chosen: Mapping[str, Any], *, ending: str, scale: str) -> bytes:
    """The table with its variables replaced; everything else untouched and in place."""
    assert isinstance(problem.source, TableSource)
    stream = io.BytesIO()
    model = fitted(problem, chosen, scale=scale)
    write_transformed(stream, f"out.{ending}", problem.source.table, problem.names, model)
    return stream.getvalue()


def matrix_table(names: Any, columns: Any, values: Any, *, ending: str = "csv") -> bytes:
    """A matrix with names on both sides."""
    stream = io.BytesIO()
    writer = table_writer(stream, ["source", *columns], path=f"out.{ending}")
    writer.write([list(names), *np.asarray(values, dtype=np.float64).T])
    writer.close()
    return stream.getvalue()


def transformation(result: Decorrelation, *, ending: str) -> bytes:
    """The matrix T as a table: rows are standardised sources, columns are outputs."""
    return matrix_table(result.names, result.names, result.T, ending=ending)


def model(problem: Problem, chosen: Mapping[str, Any], *, scale: str) -> bytes:
    """The model as JSON, for ``coral transform`` and ``load_model``."""
    return model_json(fitted(problem, chosen, scale=scale)).encode()


def page(problem: Problem, chosen: Mapping[str, Any], *, scale: str, command: str) -> bytes:
    """The report as one HTML page."""
    notes = []
    if problem.n_incomplete:
        notes.append(f"{problem.n_incomplete} rows with missing values were left out.")
    facts = report.gather(
        fitted(problem, chosen, scale=scale),
        X=problem.frame() if problem.can_hold_out else None,
        title=problem.source.label,
        command=command,
        notes=notes,
    )
    return report.render(facts).encode()


def file_stem(problem: Problem) -> str:
    """A safe beginning for the names of downloads."""
    stem = PurePath(problem.source.label).stem
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-")
    return safe[:60] or "table"


def snippet(problem: Problem, settings: Settings, *, scale: str = "unit") -> str:
    """Python code that repeats what is on screen."""
    chosen = arguments(problem, settings)
    lines: list[str] = []
    if "support" in chosen:
        lines.append(f"support = {_support_literal(problem, chosen['support'])}")
        chosen = {**chosen, "support": _Name("support")}
    if isinstance(problem.source, MatrixSource):
        return _matrix_snippet(problem, settings, chosen, lines)
    table = problem.source
    names = _listed(problem.names)
    if table.public:
        head = ["from skcoral import CORAL", "from skcoral.datasets import load_wine", ""]
        lines = [*head, "table = load_wine().to_frame()", *lines]
    else:
        head = ["from skcoral import CORAL", "from skcoral.io.tables import open_table", ""]
        how = "".join(f", {name}={value!r}" for name, value in table.dialect.items())
        lines = [*head, f"table = open_table({table.label!r}{how}).to_frame()", *lines]
    kept = f"[*columns, {settings.weights!r}]" if settings.weights else "columns"
    lines += [f"columns = {names}", f"rows = table.dropna(subset={kept})"]
    if settings.shrinkage != "none":
        chosen["shrinkage"] = "auto" if settings.shrinkage == "auto" else float(settings.shrinkage)
    if scale != "unit":
        chosen["output_scale"] = scale
    lines.append(f"model = CORAL({_call(chosen)})")
    weight = f", sample_weight=rows[{settings.weights!r}]" if settings.weights else ""
    lines += [
        f"model.fit(rows[columns]{weight})",
        "outputs = model.transform(rows[columns])",
        "print(model.result_)",
    ]
    return "\n".join(lines)


def _matrix_snippet(
    problem: Problem, settings: Settings, chosen: dict[str, Any], lines: list[str]
) -> str:
    question = "maximize_fidelity" if settings.mode == "budget" else "decorrelate"
    source = problem.source
    whole = len(source.names) if isinstance(source, MatrixSource) else len(problem.names)
    if source.key == "wdi":
        given = [
            "from skcoral.datasets import wdi_correlation",
            "",
            "R = wdi_correlation().to_frame()",
        ]
    elif source.public:
        names = f"[f'x{{j}}' for j in range(1, {whole + 1})]"
        given = [
            "import pandas as pd",
            "from skcoral.datasets import make_system",
            "",
            f"names = {names}",
            f"R = pd.DataFrame(make_system({whole}), index=names, columns=names)",
        ]
    else:
        rows = ",\n    ".join(repr(row) for row in problem.R.tolist())
        names = _listed(problem.names)
        given = [
            "import pandas as pd",
            "",
            f"names = {names}",
            f"R = pd.DataFrame([\n    {rows},\n], index=names, columns=names)",
        ]
    if source.public and len(problem.names) < whole:
        given += [f"columns = {_listed(problem.names)}", "R = R.loc[columns, columns]"]
    call = f"result = {question}(R, {_call(chosen)})"
    return "\n".join([f"from skcoral import {question}", *given, *lines, call, "print(result)"])


def command(
    problem: Problem, settings: Settings, *, ending: str, scale: str = "unit"
) -> str | None:
    """The command that repeats what is on screen; None for a matrix, which it does not read."""
    if isinstance(problem.source, MatrixSource):
        return None
    source = problem.source
    words = ["coral", "fit", "wine/wine.csv" if source.public else source.label]
    before = "coral demo --into wine\n" if source.public else ""
    if settings.mode == "budget":
        words += ["--budget", f"{settings.budget:g}"]
    else:
        words += ["--rho-min", f"{settings.floor:g}"]
        asked = floors(problem, settings)
        if isinstance(asked, dict):
            for name, value in settings.own:
                if name in asked:
                    words += ["--rho-min", f"{name}={value:g}"]
    if settings.mode == "worst":
        words += ["--criterion", "worst"]
    if settings.mode == "support":
        words += ["--support", SUPPORT_FILE if settings.mask else f"{settings.link:g}"]
    if settings.weights:
        words += ["--weights", settings.weights]
    aside = [name for name in source.numeric if name not in problem.names]
    broken = [name for name, why in source.left_out if why != "text"]
    for name in [name for name in aside if name != settings.weights] + broken:
        words += ["--exclude", name]
    if settings.shrinkage != "none":
        words += ["--shrinkage", settings.shrinkage]
    for option, mark in source.dialect.items():
        words += [f"--{option}", "tab" if mark == "\t" else mark]
    if scale != "unit":
        words += ["--output-scale", scale]
    words += ["-o", f"decorrelated.{ending}", "--model", "model.json", "--report", "report.html"]
    return before + shlex.join(words)


class _Name(str):
    """A word of code that is not quoted."""

    def __repr__(self) -> str:
        return str(self)


def _call(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in chosen.items())


def _listed(names: Any) -> str:
    return repr([str(name) for name in names])


def _support_literal(problem: Problem, mask: Any) -> str:
    """The support as a mapping from each output to its sources."""
    entries = []
    for j, name in enumerate(problem.names):
        sources = [problem.names[i] for i in np.flatnonzero(mask[:, j]) if i != j]
        entries.append(f"    {name!r}: {sources!r},")
    return "{\n" + "\n".join(entries) + "\n}"


def mask_file(problem: Problem, mask: Any) -> bytes:
    """The mask as the file that ``coral fit --support`` reads."""
    return matrix_table(problem.names, problem.names, np.asarray(mask, dtype=np.float64))
