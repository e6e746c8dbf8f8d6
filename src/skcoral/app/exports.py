"""What can be taken away: tables, model, report, and the code or command that repeats a view."""

from __future__ import annotations

import io
import pprint
import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from skcoral import report
from skcoral.app.problem import Problem, curve_points, floors, mask, notes
from skcoral.app.settings import Settings
from skcoral.app.solving import arguments, fitted, known, measured
from skcoral.app.sources import MatrixSource, TableSource
from skcoral.models.files import model_json
from skcoral.results import Decorrelation
from skcoral.tables.sheets import explaining_sheets
from skcoral.tables.transforming import write_transformed
from skcoral.tables.writing import table_writer

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
    write_transformed(
        stream,
        f"out.{ending}",
        problem.source.table,
        problem.names,
        model,
        sheets=lambda: explaining_sheets(
            model.result_, measured(problem, model.result_), problem.names
        ),
        escape_formulas=True,
    )
    return stream.getvalue()


def matrix_table(names: Any, columns: Any, values: Any, *, ending: str = "csv") -> bytes:
    """A matrix with names on both sides."""
    stream = io.BytesIO()
    corner = "source"
    while corner in columns:
        corner += "_"
    writer = table_writer(stream, [corner, *columns], path=f"out.{ending}", escape_formulas=True)
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
    model = fitted(problem, chosen, scale=scale)
    # Five more solutions with a support would keep the visitor waiting for the file.
    quick = problem.can_hold_out and "support" not in chosen
    facts = report.gather(
        model,
        X=problem.frame() if quick else None,
        known=known(problem, chosen),
        measured=measured(problem, model.result_),
        n_points=curve_points(problem, chosen.get("criterion", "squared")),
        title=f"Decorrelation of {PurePath(problem.source.label).stem}",
        file=problem.source.label,
        command=command,
        notes=notes(problem),
    )
    return report.render(facts).encode()


def file_stem(problem: Problem) -> str:
    """A safe beginning for the names of downloads."""
    stem = PurePath(problem.source.label).stem
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem).strip("-")
    return safe[:60] or "table"


def snippet(problem: Problem, settings: Settings, *, scale: str = "unit") -> str:
    """Python code that repeats what is on screen."""
    source = problem.source
    before, lines = _data_code(problem)
    names = source.table.names if isinstance(source, TableSource) else source.names
    whole = "table" if isinstance(source, TableSource) else "R"
    every = problem.names == names
    own = {name: value for name, value in settings.own if name in problem.names}
    own = {} if settings.mode == "budget" else own
    if isinstance(source, TableSource) or own or not every:
        lines.append(f"columns = {f'list({whole})' if every else _literal(list(problem.names))}")
    chosen = {name: _literal(value) for name, value in arguments(problem, settings).items()}
    groups = chosen.pop("groups", "")
    if own:
        lines.append(f"floors = dict.fromkeys(columns, {settings.floor!r}) | {_literal(own)}")
        chosen["rho_min"] = "floors"
    if settings.mode == "support":
        lines.append(f"support = {_support_literal(problem, mask(problem, settings))}")
        chosen["support"] = "support"
    if isinstance(source, MatrixSource):
        question = "maximize_fidelity" if settings.mode == "budget" else "decorrelate"
        given = "R" if every else "R.loc[columns, columns]"
        if settings.shrinkage != "none":
            before = ["import numpy as np", *before]
            lines.append(f"R = {given}")
            lines.append(
                f"R = (1 - {settings.shrinkage}) * R + {settings.shrinkage} * np.eye(len(R))"
            )
            given = "R"
        lines += [f"result = {question}({given}, {_call(chosen)})", "print(result)"]
        return "\n".join([f"from skcoral import {question}", *before, "", *lines])
    if settings.shrinkage != "none":
        chosen["shrinkage"] = "'auto'" if settings.shrinkage == "auto" else settings.shrinkage
    if settings.margins != "none":
        chosen["margins"] = repr(settings.margins)
    if settings.weights and settings.weight_kind != "auto":
        chosen["weight_kind"] = repr(settings.weight_kind)
    if scale != "unit":
        chosen["output_scale"] = repr(scale)
    needed = f"[*columns, {settings.weights!r}]" if settings.weights else "columns"
    weight = f", sample_weight=rows[{settings.weights!r}]" if settings.weights else ""
    weight += f", groups=rows[{groups}]" if groups else ""
    lines += [
        f"rows = table.dropna(subset={needed})",
        f"model = CORAL({_call(chosen)})",
        f"model.fit(rows[columns]{weight})",
        "outputs = model.transform(rows[columns])",
        "print(model.result_)",
    ]
    return "\n".join(["from skcoral import CORAL", *before, "", *lines])


def _data_code(problem: Problem) -> tuple[list[str], list[str]]:
    """Imports and lines that bring the data back: as ``table`` or as ``R``."""
    source = problem.source
    if isinstance(source, TableSource):
        if source.public:
            return ["from skcoral.datasets import load_wine"], ["table = load_wine().to_frame()"]
        how = "".join(f", {name}={value!r}" for name, value in source.dialect.items())
        opened = f"table = open_table({source.label!r}{how}).to_frame()"
        return ["from skcoral.tables import open_table"], [opened]
    if source.key == "wdi":
        return (
            ["from skcoral.datasets import wdi_correlation"],
            ["R = wdi_correlation().to_frame()"],
        )
    p = len(source.names)
    if source.public:
        return (
            ["import pandas as pd", "from skcoral.datasets import make_system"],
            [
                f"names = [f'x{{j}}' for j in range(1, {p + 1})]",
                f"R = pd.DataFrame(make_system({p}), index=names, columns=names)",
            ],
        )
    rows = "".join(f"\n    {row!r}," for row in source.R.tolist())
    return (
        ["import pandas as pd"],
        [
            f"names = {_literal(list(source.names))}",
            f"R = pd.DataFrame([{rows}\n], index=names, columns=names)",
        ],
    )


def command(
    problem: Problem, settings: Settings, *, ending: str, scale: str = "unit"
) -> str | None:
    """The command that repeats what is on screen; None for a matrix that is in no file."""
    source = problem.source
    if isinstance(source, MatrixSource):
        if not source.is_file:
            return None
        words, before = ["coral", "fit", source.label, "--matrix"], ""
    else:
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
    chosen = arguments(problem, settings)
    for name in ("confidence", "groups", "block_length"):
        if name in chosen:
            words += [f"--{name.replace('_', '-')}", str(chosen[name])]
    if settings.mode != "support" and settings.criterion != "squared":
        words += ["--criterion", settings.criterion]
    if settings.mode == "support":
        words += ["--support", SUPPORT_FILE if settings.mask else f"{settings.link:g}"]
    aside = [name for name in source.names if name not in (*problem.names, *source.doubtful)]
    aside = [name for name in aside if name != settings.weights]
    if isinstance(source, MatrixSource):
        for name in aside:
            words += ["--exclude", name]
        if settings.shrinkage != "none":
            words += ["--shrinkage", settings.shrinkage]
        return shlex.join([*words, "-o", f"T.{ending}", "--report", "report.html"])
    if settings.weights:
        words += ["--weights", settings.weights]
        if settings.weight_kind != "auto":
            words += ["--weight-kind", settings.weight_kind]
    for name in (*aside, *source.unusable):
        words += ["--exclude", name]
    for name in settings.include:
        words += ["--include", name]
    if settings.margins != "none":
        words += ["--margins", settings.margins]
    if settings.shrinkage != "none":
        words += ["--shrinkage", settings.shrinkage]
    for option, mark in source.dialect.items():
        words += [f"--{option}", "tab" if mark == "\t" else mark]
    if scale != "unit":
        words += ["--output-scale", scale]
    words += ["-o", f"decorrelated.{ending}", "--model", "model.json", "--report", "report.html"]
    return before + shlex.join(words)


def _call(chosen: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items())


def _literal(value: Any) -> str:
    """A value as Python writes it, in lines that a page can hold."""
    return pprint.pformat(value, width=88, compact=True, sort_dicts=False)


def _support_literal(problem: Problem, support: Any) -> str:
    """The support as a mapping from each output to its sources."""
    entries = []
    for j, name in enumerate(problem.names):
        sources = [problem.names[i] for i in np.flatnonzero(support[:, j]) if i != j]
        entries.append(f"    {name!r}: {sources!r},")
    return "{\n" + "\n".join(entries) + "\n}"


def mask_file(problem: Problem, support: Any) -> bytes:
    """The mask as the file that ``coral fit --support`` reads."""
    return matrix_table(problem.names, problem.names, np.asarray(support, dtype=np.float64))
