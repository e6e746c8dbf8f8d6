"""The commands: their options, what each does in a line, and an example."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from skcoral.cli import options

app = typer.Typer(
    name="coral",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help=(
        "Decorrelate the columns of a table and keep what each of them means: Constrained Oblique "
        "Rotation with Anchored Loadings, with a certificate.\n\n"
        "Tables are CSV, TSV, Parquet or Excel files, compressed or not; '-' is standard input.\n\n"
        "\b\nExample:\n  coral inspect data.csv\n"
        "  coral fit data.csv --rho-min 0.85 -o out.csv --report report.html"
    ),
    epilog=(
        "Exit status: 0 done, 2 wrong use, 3 bad data, 4 feasible but not certified, "
        "130 interrupted."
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        from skcoral._version import __version__

        typer.echo(f"coral {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def coral(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Show the overview when no command is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


#: What each command does in a line, and an example of what follows its name.
_COMMANDS = {
    "inspect": ("What is in a table, and what is possible.", "data.csv"),
    "threshold": ("The highest fidelity of exact decorrelation.", "data.csv --json"),
    "fit": (
        "Decorrelate a table.",
        "data.csv --rho-min 0.85 --rho-min price=0.95 -o out.csv \\\n"
        "      --model model.json --report report.html",
    ),
    "transform": ("Apply a model to new rows.", "new.csv --model model.json -o out.csv"),
    "frontier": ("What every floor costs.", "data.csv --plot frontier.png --csv frontier.csv"),
    "verify": ("Is a certificate true of a table?", "data.csv certificate.json --rigorous"),
    "reproduce": ("The paper's tables, recomputed.", "--table rho-star"),
    "demo": ("The Wine data, start to end.", "--into wine-demo"),
    "app": ("The web app, on this machine.", "--port 8600"),
    "roll": (
        "Decorrelate by rolling windows.",
        "returns.csv --date date --window 60 --lag 1 --rho-min 0.9 -o out.csv",
    ),
}


#: The panels of a help page, in order, with the options that each holds.
PANELS = {
    "Goal": (
        *("rho_min", "budget", "max_vif", "max_correlation", "criterion", "support"),
        *("confidence", "groups"),
    ),
    "Data": ("target", "columns", "exclude", "include", "weights", "covariance", "matrix"),
    "Output": (
        *("output", "model", "report", "certificate", "output_scale", "keep_sources"),
        *("drop_incomplete", "force", "json", "help"),
    ),
    "Reading": ("separator", "decimal", "encoding", "sheet", "na"),
}


class _Command(TyperCommand):
    """A command whose help lists its options in panels; those of its own come first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        home = {name: panel for panel, names in PANELS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Arguments", "Options", *PANELS)
        }
        order = {name: k for k, name in enumerate(home)}
        for parameter in sorted(self.get_params(ctx), key=lambda p: order.get(p.name or "", -1)):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                title = "Arguments" if is_argument else home.get(parameter.name or "", "Options")
                sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _register(name: str, summary: str, example: str) -> None:
    """Make the function of this name in the module of this name a command.

    The class of its options has its parameters and its help. The parser gets a function that
    returns the work to do, so that failures of the work do not pass through the parser, which
    would handle some of them in its own way.
    """
    kind = getattr(options, f"{name.capitalize()}Options")

    def parse(**given: Any) -> Callable[[], int]:
        home = "web_app" if name == "app" else name
        return lambda: getattr(import_module(f"skcoral.cli.{home}"), home)(kind(**given))

    taken = options.parameters(kind)
    parse.__doc__ = kind.__doc__
    parse.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    parse.__annotations__ = {p.name: p.annotation for p in taken}
    epilog = f"\b\nExample:\n  coral {name} {example}"
    app.command(name, cls=_Command, short_help=summary, epilog=epilog)(parse)


for _name, (_summary, _example) in _COMMANDS.items():
    _register(_name, _summary, _example)
