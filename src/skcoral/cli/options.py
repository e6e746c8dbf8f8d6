"""The options of every command, one dataclass each, from which the parser's parameters are made.

The description of a command's options is its help.
"""

# ruff: noqa: RUF009 - the functions below return dataclass fields

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

Criterion = Literal["squared", "worst", "absolute"]
#: Options that every help page lists last.
_LAST = ("force", "json")
_MEASURE = "How residual correlation is measured."


def option(help: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """A field that is an option of the command; ``settings`` are those of ``typer.Option``."""
    return field(default=default, metadata={"typer": typer.Option(*names, help=help, **settings)})


def argument(help: str, metavar: str) -> Any:
    """A field that is a required argument of the command."""
    return field(metadata={"typer": typer.Argument(help=help, metavar=metavar)})


def flag(name: str, help: str) -> Any:
    """An option without a value."""
    return option(help, name, default=False)


def spelled(name: str) -> str:
    """An option as it is typed."""
    return f"--{name.replace('_', '-')}"


def parameters(options: type[Any]) -> list[inspect.Parameter]:
    """The fields of an options class as the parser takes them: its own first, then inherited."""
    hints = get_type_hints(options)
    own = {f.name: f for f in fields(options) if f.metadata}
    order = [n for c in options.__mro__ for n in inspect.get_annotations(c) if n in own]
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if own[name].default is MISSING else own[name].default,
            annotation=Annotated[hints[name], own[name].metadata["typer"]],
        )
        for name in sorted(dict.fromkeys(order), key=lambda n: (n != "file", n in _LAST))
    ]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every command takes."""

    json: bool = flag("--json", "Answer as JSON, for machines.")


@dataclass(frozen=True, kw_only=True)
class WritingOptions(Options):
    """What every command takes that writes files."""

    force: bool = flag("--force", "Replace output files that exist.")


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """Which file, and how to read it."""

    file: str = argument("The table; '-' is standard input.", "FILE")
    separator: str | None = option(
        "Between the cells of a text file (';', tab, …) [recognised].", metavar="CHAR"
    )
    decimal: str | None = option("Decimal mark [recognised].", metavar="CHAR")
    encoding: str | None = option("Encoding of a text file [recognised].", metavar="NAME")
    sheet: str | None = option("Sheet of an Excel file [first with a table].", metavar="NAME")
    na: list[str] | None = option(
        "One more mark for a missing value, such as -999.", metavar="MARK"
    )

    def arguments(self) -> list[str]:
        """The file and the options that differ from their defaults, as typed."""
        told = [self.file]
        for parameter in parameters(type(self))[1:-1]:
            value, name = getattr(self, parameter.name), spelled(parameter.name)
            if value == parameter.default:
                continue
            if isinstance(value, bool):
                told.append(name if value else name.replace("--", "--no-"))
                continue
            for part in value if isinstance(value, list) else [value]:
                text = f"{part:g}" if isinstance(part, float) else str(part)
                told += [name, "tab" if text == "\t" else text]
        return told


@dataclass(frozen=True, kw_only=True)
class TableOptions(FileOptions):
    """Which columns of a table are variables, and how correlations are estimated from its rows.

    ``matrix`` says whether the file holds a correlation or covariance matrix; None recognises it.
    """

    columns: list[str] | None = option(
        "Variables, by comma or repeated [all numeric].", metavar="NAMES"
    )
    exclude: list[str] | None = option("Columns that are not variables.", metavar="NAMES")
    include: list[str] | None = option(
        "Variables although they look like ids or years.", metavar="NAMES"
    )
    weights: str | None = option("Column of row weights (survey weights).", metavar="NAME")
    matrix: bool | None = option(
        "The file holds a correlation or covariance matrix [recognised].", "--matrix/--no-matrix"
    )
    covariance: str | None = option(
        "Correlations by an estimator of scikit-learn: LedoitWolf, …", metavar="NAME"
    )


@dataclass(frozen=True, kw_only=True)
class TargetOptions(TableOptions):
    """A table whose variables explain an outcome."""

    target: str | None = option("Outcome: no variable, left as it is.", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class GoalOptions(TargetOptions):
    """Floors, or a limit on what is left."""

    rho_min: list[str] | None = option(
        "Fidelity that every output keeps, or name=FLOOR for one; repeatable [exact, at ρ★].",
        metavar="FLOOR",
    )
    max_vif: float | None = option(
        "Largest VIF allowed in the outputs: the highest floor that reaches it."
    )
    max_correlation: float | None = option(
        "Largest |correlation| allowed in the outputs: the highest floor for it."
    )
    criterion: Criterion = option(_MEASURE, default="squared")


class InspectOptions(TargetOptions):
    """Tell what is in a table and what decorrelation can do for it, on one screen."""


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(TableOptions):
    """Compute ρ★, the highest fidelity that exact decorrelation allows, with its certificate."""


@dataclass(frozen=True, kw_only=True)
class LayoutOptions(WritingOptions):
    """How outputs are written."""

    keep_sources: bool = flag("--keep-sources", "Write each output beside its source, as NAME_d.")
    drop_incomplete: bool = flag(
        "--drop-incomplete", "Leave rows with missing values out of the output."
    )


@dataclass(frozen=True, kw_only=True)
class FitOptions(LayoutOptions, GoalOptions):
    """Decorrelate a table with fidelity floors; without --rho-min exactly, at ρ★.

    Columns that are not variables pass through untouched and in place. Rows with missing values
    are not used; they stay in their place, without outputs.
    """

    budget: float | None = option(
        "Residual allowed; the common fidelity is then made as high as possible."
    )
    confidence: float | None = option(
        "Raise the floors so that the population keeps them, such as 0.95.", metavar="LEVEL"
    )
    groups: str | None = option("Clusters: rows of one count as one observation.", metavar="COLUMN")
    support: str | None = option(
        "Allowed coefficients: a file of 0 and 1 or of pairs, or |correlation| > NUMBER.",
        metavar="FILE|NUMBER",
    )
    output_scale: Literal["unit", "original"] = option(
        "Standardised outputs, or in the units of their sources.", default="unit"
    )
    output: str | None = option(
        "Decorrelated table; '-': CSV out.", "--output", "-o", metavar="FILE"
    )
    model: Path | None = option("Model (JSON) for 'coral transform'.", metavar="FILE")
    report: Path | None = option("Report, one HTML file (.html).", metavar="FILE")
    certificate: Path | None = option("Proof (JSON) for 'coral verify'.", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class TransformOptions(LayoutOptions, FileOptions):
    """Apply a model to new rows."""

    model: Path = option("Model made by 'coral fit --model'.", default=MISSING, metavar="FILE")
    output: str = option(
        "Where to write; '-': CSV out.", "--output", "-o", default="-", metavar="FILE"
    )


@dataclass(frozen=True, kw_only=True)
class FrontierOptions(WritingOptions, TableOptions):
    """Compute what floors cost, from ρ★ to 1 or those given, each point certified."""

    criterion: Criterion = option(_MEASURE, default="squared")
    rho_min: list[float] | None = option(
        "Floors to look at; repeatable.", metavar="FLOOR", min=0, max=1
    )
    points: int = option("Points on the curve.", default=25, min=2, max=1000)
    plot: Path | None = option("Picture (.png, .svg or .pdf).", metavar="FILE")
    csv: Path | None = option("The curve as a table.", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(TableOptions):
    """Judge every claim of a certificate file against the table or matrix it is about.

    Floors, residual, bound, status, prices and names are computed again without the solver; exit
    status 0 if all of it is true, 4 if anything is not.
    """

    certificate: Path = argument("Made by 'coral fit --certificate'.", "CERTIFICATE")
    rigorous: bool = flag("--rigorous", "In ball arithmetic (needs python-flint).")


@dataclass(frozen=True, kw_only=True)
class RollOptions(WritingOptions, GoalOptions):
    """Decorrelate each row by the model of its own window of rows.

    All rows and columns are written in their order; variables of rows without a model are left
    empty, and counted. The file appears when it is complete.
    """

    window: str = option(
        "Rows of a window, or a span such as 90D.",
        default=MISSING,
        metavar="ROWS|SPAN",
    )
    date: str | None = option("Column of dates, in increasing order.", metavar="NAME")
    by: list[str] | None = option(
        "Column of groups with windows of their own; repeatable.", metavar="NAME"
    )
    lag: int = option("1: the window of a row ends before it; no look-ahead.", default=0, min=0)
    step: int = option("Rows from one window to the next.", default=1, min=1)
    refit: str | None = option(
        "A new model every N windows, or every W, MS, QS.", metavar="N|PERIOD"
    )
    min_rows: int | None = option("Complete rows that a window needs [all].", min=2)
    halflife: float | None = option("Age at which a row counts half.", metavar="ROWS")
    expanding: bool = flag("--expanding", "Windows begin with the first row.")
    output: str = option(
        "Where to write; '-': CSV out.", "--output", "-o", default="-", metavar="FILE"
    )
    windows: Path | None = option("Figures of every window, as a table.", metavar="FILE")
    jobs: int = option("Processes; -1 for all processors.", default=1)
    weights: None = None
    matrix: Literal[False] = False
    covariance: None = None


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(WritingOptions):
    """Recompute the tables of the paper and compare, cell by cell."""

    table: str = option("Label or number of a table.", default="all", metavar="NAME")
    output: Path | None = option(
        "The comparison as .md or .html.", "--output", "-o", metavar="FILE"
    )


@dataclass(frozen=True, kw_only=True)
class DemoOptions(WritingOptions):
    """Decorrelate the Wine data and leave table, model and report in a folder."""

    into: Path = option("Where the files go.", default=Path("coral-demo"), metavar="FOLDER")


@dataclass(frozen=True, kw_only=True)
class AppOptions(Options):
    """Start the web app on this machine."""

    host: str = option("Address to listen on.", default="127.0.0.1")
    port: int = option("Port to listen on.", default=8501, min=1, max=65535)
    browser: bool = option("Open a browser window.", default=True)
