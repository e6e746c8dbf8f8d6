"""The options of every command, each declared once, and the parser made of them."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from skcoral.core.display import printable

Settings = dict[str, Any]


class UsageError(Exception):
    """The command was used wrongly, or has no answer to give; two lines say how."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


def _number(low: int, high: int | None = None) -> Callable[[str], int]:
    """A whole number within limits, of which none is negative."""

    def read(text: str) -> int:
        number = int(text) if text.isdecimal() and len(text) <= 15 else -1
        if number < low or (high is not None and number > high):
            most = "" if high is None else f" and at most {high}"
            wanted = f"must be a whole number of at least {low}{most}"
            raise argparse.ArgumentTypeError(f"{wanted}; got {text!r}")
        return number

    return read


def _option(help: str, metavar: str | None = None, **settings: Any) -> Settings:
    return {"help": help, **({"metavar": metavar} if metavar else {}), **settings}


def _limit(help: str) -> Settings:
    return _option(f"{help}; finds the highest floor within it.", "NUMBER", type=float)


def _choice(help: str, default: str, *others: str) -> Settings:
    return _option(help, choices=[default, *others], default=default)


def _flag(help: str) -> Settings:
    return _option(help, action="store_true")


#: The options in their panels, which help pages show in this order.
PANELS: dict[str, dict[str, Settings]] = {
    "Goal": {
        "--rho-min": _option(
            "Fidelity that every output keeps at least, or name=FLOOR for one; repeatable [ρ★].",
            "FLOOR",
            action="append",
        ),
        "--budget": _limit("Most residual allowed"),
        "--max-vif": _limit("Largest VIF allowed in the outputs"),
        "--max-correlation": _limit("Largest |correlation| allowed between outputs"),
        "--criterion": _choice(
            "Residual: the sum of squared correlations, the largest |correlation|, or the sum of "
            "absolute ones [squared].",
            "squared",
            "worst",
            "absolute",
        ),
        "--support": _option(
            "Which columns may enter an output: a table of 0 and 1, or those whose |correlation| "
            "with its own column exceeds NUMBER.",
            "FILE|NUMBER",
        ),
        "--confidence": _option(
            "Raise the floors so that, with this confidence, they hold for the population that the "
            "rows come from.",
            "LEVEL",
            type=float,
        ),
        "--groups": _option(
            "Rows with the same label in this column count as one observation.", "COLUMN"
        ),
    },
    "Data": {
        "--target": _option("Outcome of a regression: no variable, written unchanged.", "NAME"),
        "--columns": _option(
            "Columns to use, separated by commas or repeated [all of numbers].",
            "NAMES",
            action="append",
        ),
        "--exclude": _option("Columns not to use.", "NAMES", action="append"),
        "--include": _option(
            "Columns to use although they look like ids or years.",
            "NAMES",
            action="append",
        ),
        "--weights": _option("Column that weights the rows, such as survey weights.", "NAME"),
        "--covariance": _option(
            "Estimate correlations by a class of sklearn.covariance, such as LedoitWolf.", "NAME"
        ),
        "--matrix": _option(
            "The file holds a correlation or covariance matrix, or rows [recognised].",
            action=argparse.BooleanOptionalAction,
        ),
    },
    "Windows": {
        "--window": _option(
            "Rows in a window, or a span of time such as 90D.", "ROWS|SPAN", required=True
        ),
        "--date": _option("Column of dates, in increasing order.", "NAME"),
        "--by": _option(
            "Column of groups, each with windows of its own; repeatable.", "NAME", action="append"
        ),
        "--lag": _option(
            "1 leaves a row out of its own window, which ends with the row before it [0].",
            "ROWS",
            type=_number(0),
            default=0,
        ),
        "--step": _option(
            "Rows from one window to the next [1].", "ROWS", type=_number(1), default=1
        ),
        "--min-rows": _option("Complete rows that a window needs [all].", "ROWS", type=_number(2)),
        "--halflife": _option(
            "Rows fade: one so much older than the last counts half.", "ROWS", type=float
        ),
        "--expanding": _flag("Every window begins with the first row."),
        "--jobs": _option(
            "Number of processes; -1 for one on each processor [1].", "N", type=int, default=1
        ),
    },
    "Output": {
        "--output": _option("Write the decorrelated table; '-' is standard output (CSV).", "FILE"),
        "--windows": _option("Write a table with the figures of every window.", "FILE", type=Path),
        "--model": _option("Write the model (JSON), for 'coral transform'.", "FILE", type=Path),
        "--report": _option("Write a report, one HTML page (.html).", "FILE", type=Path),
        "--certificate": _option("Write the proof (JSON), for 'coral verify'.", "FILE", type=Path),
        "--plot": _option("Draw the curve (.png, .svg or .pdf).", "FILE", type=Path),
        "--csv": _option("Write the curve as a table.", "FILE", type=Path),
        "--output-scale": _choice(
            "Outputs with standard deviation 1 [unit], or in the units of their columns.",
            "unit",
            "original",
        ),
        "--keep-sources": _flag("Keep every column, with its output beside it as NAME_d."),
        "--drop-incomplete": _flag("Leave rows with missing values out of the output."),
        "--force": _flag("Replace output files that exist."),
        "--json": _flag("Answer as JSON, for machines."),
    },
    "Reading": {
        "--separator": _option(
            "What separates cells of a text file (';', tab, …) [recognised].", "CHAR"
        ),
        "--decimal": _option("Decimal mark [recognised].", "CHAR"),
        "--encoding": _option("Encoding of a text file [recognised].", "NAME"),
        "--sheet": _option("Sheet of a workbook [the first with a table].", "NAME"),
        "--na": _option(
            "One more mark for a missing value, such as -999.", "MARK", action="append"
        ),
    },
}
_READING = (*PANELS["Reading"], "file")
_TABLE = (*PANELS["Data"], *_READING)
_WITHOUT_TARGET = tuple(name for name in _TABLE if name != "--target")
_LAYOUT = ("--output", "--keep-sources", "--drop-incomplete", "--force")
_LIMITS = ("--rho-min", "--max-vif", "--max-correlation", "--criterion")
_ON_SCREEN = {"--output": {"default": "-"}}


@dataclass(frozen=True)
class _Command:
    """What a command does, an example of what follows its name, and which options it takes.

    ``changed`` are options of this command alone, and settings that differ from the usual ones.
    """

    description: str  # its first sentence is shown in the list of commands
    example: str
    options: tuple[str, ...] = ()
    changed: Mapping[str, Settings] = field(default_factory=dict)


COMMANDS = {
    "inspect": _Command(
        "Show what is in a table, and recommend a floor.", "data.csv", (*_TABLE, "--json")
    ),
    "threshold": _Command(
        "Compute ρ★, the highest floor that leaves no correlation.",
        "data.csv --json",
        (*_WITHOUT_TARGET, "--json"),
    ),
    "fit": _Command(
        "Decorrelate a table. Every output keeps its floor, with the least correlation left; "
        "without a floor, a budget or a limit no correlation is left, and the floor is ρ★. Columns "
        "that are not used are written unchanged, in their place. Rows with missing values are not "
        "used; they stay in their place, without outputs.",
        "data.csv --rho-min 0.85 --rho-min price=0.95 -o out.csv \\\n"
        "      --model model.json --report report.html",
        (
            *(*PANELS["Goal"], *_TABLE, *_LAYOUT),
            *("--model", "--report", "--certificate", "--output-scale", "--json"),
        ),
    ),
    "transform": _Command(
        "Apply a model of 'coral fit' to new rows.",
        "new.csv --model model.json -o out.csv",
        (*_READING, *_LAYOUT, "--model"),
        _ON_SCREEN | {"--model": {"required": True, "help": "Made by 'coral fit --model'."}},
    ),
    "frontier": _Command(
        "Compute the least correlation that each floor leaves. Floors run from ρ★ to 1, unless "
        "they are given; each point is certified.",
        "data.csv --plot frontier.png --csv frontier.csv",
        (*_WITHOUT_TARGET, "--rho-min", "--criterion", "--plot", "--csv", "--force"),
        {
            "--rho-min": {"type": float, "help": "A floor to look at; repeatable."},
            "--points": _option(
                "Points on the curve [25].", "N", type=_number(2, 1000), default=25
            ),
        },
    ),
    "roll": _Command(
        "Decorrelate by rolling windows. Each row is transformed by the model of its own window. "
        "All rows and columns are written in their order; where a row has no model, its outputs "
        "are empty.",
        "returns.csv --date date --window 60 --lag 1 --rho-min 0.9 -o out.csv",
        (
            *(*PANELS["Windows"], *_LIMITS, *_READING),
            *("--target", "--columns", "--exclude", "--include"),
            *("--output", "--windows", "--force"),
        ),
        _ON_SCREEN,
    ),
    "verify": _Command(
        "Check the claims of a certificate against its table. They are computed again without the "
        "solver. Exit status 0 if all are true, 4 if any is not.",
        "data.csv certificate.json --rigorous",
        _WITHOUT_TARGET,
        {
            "certificate": _option("Made by 'coral fit --certificate'.", "CERTIFICATE", type=Path),
            "--rigorous": _flag("Prove them, in ball arithmetic (needs python-flint)."),
        },
    ),
    "reproduce": _Command(
        "Recompute the tables of the paper, and compare every number.",
        "--table rho-star",
        ("--output", "--force"),
        {
            "--table": _option("Label or number of one table [all].", "NAME", default="all"),
            "--output": {"help": "Write the comparison as Markdown (.md).", "type": Path},
        },
    ),
    "demo": _Command(
        "Inspect and fit the Wine data, and keep the files in a folder.",
        "--into wine-demo",
        ("--force",),
        {
            "--into": _option(
                "Where the files go [coral-demo].", "FOLDER", type=Path, default=Path("coral-demo")
            )
        },
    ),
    "app": _Command(
        "Start the web app on this machine.",
        "--port 8600",
        (),
        {
            "--host": _option("Address to listen on [127.0.0.1].", "NAME", default="127.0.0.1"),
            "--port": _option(
                "Port to listen on [8501].", "N", type=_number(1, 65535), default=8501
            ),
            "--no-browser": _flag("Open no browser window."),
        },
    ),
}
_OVERVIEW = (
    "Decorrelate the columns of a table and keep what each of them means: Constrained Oblique "
    "Rotation with Anchored Loadings, with a certificate.\n\n"
    "Every column gets an output. Its fidelity is their correlation, and a floor is the least "
    "fidelity that you accept. The residual is the correlation that is left between outputs; ρ★ is "
    "the highest floor that leaves none. VIF: variance inflation factor, 1 at best.\n\n"
    "Tables are CSV, TSV, Parquet, Excel, OpenDocument or Stata files; '-' is standard input."
)
_SUMMARIES = {name: command.description.split(". ")[0] for name, command in COMMANDS.items()}
_EPILOG = (
    "Commands:\n"
    + "".join(f"  {name:<11}{text.rstrip('.')}.\n" for name, text in _SUMMARIES.items())
    + "\nExample:\n  coral inspect data.csv\n"
    "  coral fit data.csv --rho-min 0.85 -o out.csv --report report.html\n\n"
    "Exit status: 0 done, 2 wrong use, 3 bad data,\n"
    "4 feasible but not certified, 130 interrupted."
)


class _Parser(argparse.ArgumentParser):
    """A parser that raises an error in two lines."""

    def __init__(self, **how: Any) -> None:
        paragraphs = how.pop("description").split("\n\n")
        width = min(78, shutil.get_terminal_size().columns - 2)
        super().__init__(
            description="\n\n".join(textwrap.fill(text, width) for text in paragraphs),
            # an example stays as it is written
            formatter_class=partial(
                argparse.RawDescriptionHelpFormatter, max_help_position=min(30, 3 * width // 8)
            ),
            allow_abbrev=False,
            **how,
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown options in the parser of the command, whose help lists the known ones."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        message = printable(message.removeprefix("argument "))
        raise UsageError(f"{message}.\nTry '{self.prog} --help'.")


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``coral``."""
    parser = _Parser(
        prog="coral", usage="coral COMMAND [options]", description=_OVERVIEW, epilog=_EPILOG
    )
    parser.add_argument("--version", action="store_true", help="Show the version.")
    chosen = parser.add_subparsers(
        prog="coral", dest="command", metavar="COMMAND", help=argparse.SUPPRESS
    )
    for name, command in COMMANDS.items():
        file = "FILE " * ("file" in command.options) + "CERTIFICATE " * (name == "verify")
        made = chosen.add_parser(
            name,
            usage=f"coral {name} {file}[options]",
            description=command.description,
            epilog=f"Example:\n  coral {name} {command.example}",
        )
        _add_options(made, command)
    return parser


def _add_options(parser: argparse.ArgumentParser, command: _Command) -> None:
    """Add the arguments, the options of the command alone, and the others in their panels."""
    known = {name for panel in PANELS.values() for name in panel}
    if "file" in command.options:
        parser.add_argument("file", metavar="FILE", help="The table; '-' is standard input.")
    for name, settings in command.changed.items():
        if name not in known:
            parser.add_argument(name, **settings)
    for title, panel in PANELS.items():
        group = parser.add_argument_group(title)
        for name, settings in panel.items():
            if name in command.options:
                short = ["-o"] if name == "--output" else []
                group.add_argument(*short, name, **(settings | command.changed.get(name, {})))


def spelled(name: str) -> str:
    """An option as it is typed."""
    return f"--{name.replace('_', '-')}"


def arguments(options: Mapping[str, Any]) -> list[str]:
    """A file and the options that differ from their defaults, as they are typed."""
    given = [str(options["file"])]
    for panel in PANELS.values():
        for name, settings in panel.items():
            value = options.get(name[2:].replace("-", "_"))
            if value is None or value == settings.get("default") or name == "--json":
                continue
            if isinstance(value, bool):
                given += [name] if value else [f"--no-{name[2:]}"] * (name == "--matrix")
                continue
            for part in value if isinstance(value, list | tuple) else [value]:
                text = f"{part:g}" if isinstance(part, float) else str(part)
                text = "tab" if text == "\t" else text
                # A value with a dash in front would be taken for an option.
                given += [f"{name}={text}"] if text.startswith("-") else [name, text]
    return given
