"""The commands: each is a function of its options, whose parameters the parser reads."""

from __future__ import annotations

import inspect as introspection
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from skcoral.cli.options import (
    AppOptions,
    DemoOptions,
    FitOptions,
    FrontierOptions,
    ReproduceOptions,
    RollOptions,
    TableOptions,
    TransformOptions,
    VerifyOptions,
    parameters,
)

Command = TypeVar("Command", bound=Callable[[Any], int])

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
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Read more or less than usual, such as columns=200000 or seconds=60; repeatable.",
        ),
    ] = None,
) -> None:
    """Show the overview when no command is given."""
    if limit:
        from skcoral import limits

        chosen = dict(part.partition("=")[::2] for part in limit)
        limits.choose(limits.from_settings(chosen, base=limits.current()))
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def command(summary: str, example: str, name: str | None = None) -> Callable[[Command], Command]:
    """Register a function of an options class as a command with the fields as parameters.

    The parser gets a function that returns the work to do, so that failures of the work do not
    pass through the parser, which would handle some of them in its own way.
    """

    def register(function: Command) -> Command:
        options = get_type_hints(function)["options"]

        def parse(**given: Any) -> Callable[[], int]:
            return lambda: function(options(**given))

        taken = parameters(options)
        parse.__doc__ = function.__doc__
        parse.__signature__ = introspection.Signature(taken)  # type: ignore[attr-defined]
        parse.__annotations__ = {p.name: p.annotation for p in taken}
        epilog = f"\b\nExample:\n  {example}"
        app.command(name or function.__name__, short_help=summary, epilog=epilog)(parse)
        return function

    return register


@command("What is in a table, and what is possible.", "coral inspect data.csv")
def inspect(options: TableOptions) -> int:
    """Tell what is in a table and what decorrelation can do for it, on one screen."""
    from skcoral.cli.inspect import inspect

    return inspect(options)


@command("The highest fidelity of exact decorrelation.", "coral threshold data.csv --json")
def threshold(options: TableOptions) -> int:
    """Compute ρ★, the highest fidelity that exact decorrelation allows, with its certificate."""
    from skcoral.cli.threshold import threshold

    return threshold(options)


@command(
    "Decorrelate a table.",
    "coral fit data.csv --rho-min 0.85 --rho-min price=0.95 -o out.csv \\\n"
    "      --model model.json --report report.html",
)
def fit(options: FitOptions) -> int:
    """Decorrelate a table with fidelity floors; without --rho-min exactly, at ρ★.

    Columns that are not variables pass through untouched and in place; rows with missing values
    are left out, counted and named.
    """
    from skcoral.cli.fit import fit

    return fit(options)


@command("Apply a model to new rows.", "coral transform new.csv --model model.json -o out.csv")
def transform(options: TransformOptions) -> int:
    """Apply a model to new rows."""
    from skcoral.cli.transform import transform

    return transform(options)


@command(
    "What every floor costs.", "coral frontier data.csv --plot frontier.png --csv frontier.csv"
)
def frontier(options: FrontierOptions) -> int:
    """Compute what floors cost, from ρ★ to 1 or those given, each point certified."""
    from skcoral.cli.frontier import frontier

    return frontier(options)


@command("Is a certificate true of a table?", "coral verify data.csv certificate.json --rigorous")
def verify(options: VerifyOptions) -> int:
    """Judge every claim of a certificate file against the table or matrix it is about.

    Floors, residual, bound, status, prices and names are computed again without the solver; exit
    status 0 if all of it is true, 4 if anything is not.
    """
    from skcoral.cli.verify import verify

    return verify(options)


@command("The paper's tables, recomputed.", "coral reproduce --table rho-star")
def reproduce(options: ReproduceOptions) -> int:
    """Recompute the tables of the paper and compare, cell by cell."""
    from skcoral.cli.reproduce import reproduce

    return reproduce(options)


@command("The Wine data, start to end.", "coral demo --into wine-demo")
def demo(options: DemoOptions) -> int:
    """Decorrelate the Wine data and leave table, model and report in a folder."""
    from skcoral.cli.demo import demo

    return demo(options)


@command("The web app, on this machine.", "coral app --port 8600", name="app")
def web_app(options: AppOptions) -> int:
    """Start the web app on this machine."""
    from skcoral.cli.web_app import web_app

    return web_app(options)


@command(
    "Decorrelate by rolling windows.",
    "coral roll returns.csv --date date --window 60 --lag 1 --rho-min 0.9 -o out.csv",
)
def roll(options: RollOptions) -> int:
    """Decorrelate each row by the model of its own window of rows.

    All rows and columns are written in their order; variables of rows without a model are left
    empty, and counted. The file appears when it is complete.
    """
    from skcoral.cli.roll import roll

    return roll(options)
