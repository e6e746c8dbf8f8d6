"""The commands and their options; each reads its arguments and returns the work to be done."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from skcoral.cli.options import (
    BlockLength,
    Confidence,
    CriterionOption,
    EscapeFormulas,
    Force,
    Groups,
    Json,
    KeepSources,
    MaxCorrelation,
    MaxVif,
    RhoMin,
    Shrinkage,
    Suffix,
    Support,
    TableOptions,
    takes_rows,
    takes_table,
)

Work = Callable[[], int]

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


@app.command(
    short_help="What is in a table, and what is possible.",
    epilog="\b\nExample:\n  coral inspect data.csv",
)
@takes_table
def inspect(*, table: TableOptions, json: Json = False) -> Work:
    """Tell what is in a table and what decorrelation can do for it, on one screen."""

    def work() -> int:
        from skcoral.cli import inspect

        return inspect.inspect(table, as_json=json)

    return work


@app.command(
    short_help="The highest fidelity of exact decorrelation.",
    epilog="\b\nExample:\n  coral threshold data.csv --json",
)
@takes_table
def threshold(*, table: TableOptions, json: Json = False) -> Work:
    """Compute ρ★, the highest fidelity that exact decorrelation allows, with its certificate."""

    def work() -> int:
        from skcoral.cli import inspect

        return inspect.threshold(table, as_json=json)

    return work


@app.command(
    short_help="Decorrelate a table.",
    epilog=(
        "\b\nExample:\n  coral fit data.csv --rho-min 0.85 --rho-min price=0.95 -o out.csv \\\n"
        "      --model model.json --report report.html"
    ),
)
@takes_table
def fit(
    *,
    table: TableOptions,
    rho_min: RhoMin = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Residual allowed; the common fidelity is then made as high as possible."
        ),
    ] = None,
    max_vif: MaxVif = None,
    max_correlation: MaxCorrelation = None,
    confidence: Confidence = None,
    groups: Groups = None,
    block_length: BlockLength = None,
    criterion: CriterionOption = "squared",
    support: Support = None,
    shrinkage: Shrinkage = None,
    margins: Annotated[
        Literal["none", "ranks", "normal"],
        typer.Option(help="Decorrelate the columns, their ranks or their normal scores."),
    ] = "none",
    correlation: Annotated[
        Literal["pearson", "spearman"] | None,
        typer.Option(hidden=True, help="Earlier spelling: spearman is --margins ranks."),
    ] = None,
    output_scale: Annotated[
        Literal["unit", "original"],
        typer.Option(help="Standardised outputs, or in the units of their sources."),
    ] = "unit",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Decorrelated table; '-': CSV out."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Model (JSON) for 'coral transform'.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Report, one HTML file (.html).")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Proof (JSON) for 'coral verify'.")
    ] = None,
    interactive: Annotated[
        bool,
        typer.Option("--interactive", help="Interactive figures in the report (adds 5 MB)."),
    ] = False,
    keep_sources: KeepSources = False,
    suffix: Suffix = "",
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
    json: Json = False,
) -> Work:
    """Decorrelate a table with fidelity floors; without --rho-min exactly, at ρ★.

    Columns that are not variables pass through untouched and in place; rows with missing values
    are left out, counted and named.
    """

    def work() -> int:
        from skcoral.cli import fit
        from skcoral.tables.transforming import Layout

        options = fit.FitOptions(
            table=table,
            rho_min=rho_min or (),
            budget=budget,
            max_vif=max_vif,
            max_correlation=max_correlation,
            confidence=confidence,
            groups=groups,
            block_length=block_length,
            criterion=criterion,
            support=support,
            shrinkage=shrinkage,
            margins="ranks" if correlation == "spearman" else margins,
            output_scale=output_scale,
            output=output,
            layout=Layout(keep_sources, suffix),
            model=model,
            report=report,
            certificate=certificate,
            interactive=interactive,
            escape_formulas=escape_formulas,
            force=force,
            command=shlex.join(["coral", *sys.argv[1:]]),
        )
        return fit.fit(options, as_json=json)

    return work


@app.command(
    short_help="Apply a model to new rows.",
    epilog="\b\nExample:\n  coral transform new.csv --model model.json -o out.csv",
)
@takes_rows
def transform(
    *,
    table: TableOptions,
    model: Annotated[Path, typer.Option(metavar="FILE", help="Model made by 'coral fit --model'.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; '-': CSV out.")
    ] = "-",
    keep_sources: KeepSources = False,
    suffix: Suffix = "",
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
    json: Json = False,
) -> Work:
    """Apply a model to new rows."""

    def work() -> int:
        from skcoral.cli import transform
        from skcoral.tables.transforming import Layout

        return transform.transform(
            table,
            model,
            output,
            layout=Layout(keep_sources, suffix),
            escape_formulas=escape_formulas,
            force=force,
            as_json=json,
        )

    return work


@app.command(
    short_help="What every floor costs.",
    epilog="\b\nExample:\n  coral frontier data.csv --plot frontier.png --csv frontier.csv",
)
@takes_table
def frontier(
    *,
    table: TableOptions,
    criterion: CriterionOption = "squared",
    rho_min: Annotated[
        list[float] | None,
        typer.Option("--rho-min", metavar="FLOOR", help="Floors to look at; repeatable."),
    ] = None,
    points: Annotated[int, typer.Option(min=2, max=1000, help="Points on the curve.")] = 25,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Picture (.png, .svg or .pdf).")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="The curve as a table.")] = None,
    force: Force = False,
    json: Json = False,
) -> Work:
    """Compute what floors cost, from ρ★ to 1 or those given, each point certified."""

    def work() -> int:
        from skcoral.cli import frontier

        return frontier.frontier(
            table,
            criterion=criterion,
            floors=rho_min,
            n_points=points,
            plot=plot,
            csv=csv,
            force=force,
            as_json=json,
        )

    return work


@app.command(
    short_help="Is a certificate true of a table?",
    epilog="\b\nExample:\n  coral verify data.csv certificate.json --rigorous",
)
@takes_table
def verify(
    *,
    table: TableOptions,
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="Made by 'coral fit --certificate'.")
    ],
    shrinkage: Annotated[
        str | None,
        typer.Option(metavar="auto|NUMBER", help="As it was given to 'coral fit'."),
    ] = None,
    margins: Annotated[
        Literal["none", "ranks", "normal"],
        typer.Option(help="As it was given to 'coral fit'."),
    ] = "none",
    rigorous: Annotated[
        bool, typer.Option("--rigorous", help="In ball arithmetic (needs python-flint).")
    ] = False,
    json: Json = False,
) -> Work:
    """Judge every claim of a certificate file against the table or matrix it is about.

    Floors, residual, bound, status, prices and names are computed again without the solver; exit
    status 0 if all of it is true, 4 if anything is not.
    """

    def work() -> int:
        from skcoral.cli import verify

        return verify.verify(
            table,
            certificate,
            margins=margins,
            shrinkage=shrinkage,
            rigorous=rigorous,
            as_json=json,
        )

    return work


@app.command(
    short_help="The paper's tables, recomputed.",
    epilog="\b\nExample:\n  coral reproduce --table rho-star",
)
def reproduce(
    table: Annotated[str, typer.Option(metavar="NAME", help="Label or number of a table.")] = "all",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The comparison as .md or .html."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> Work:
    """Recompute the tables of the paper and compare, cell by cell."""

    def work() -> int:
        from skcoral.cli import reproduce

        return reproduce.reproduce(table, output=output, force=force, as_json=json)

    return work


@app.command(
    short_help="The Wine data, start to end.", epilog="\b\nExample:\n  coral demo --into wine-demo"
)
def demo(
    into: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path(
        "coral-demo"
    ),
    force: Force = False,
    json: Json = False,
) -> Work:
    """Decorrelate the Wine data and leave table, model and report in a folder."""

    def work() -> int:
        from skcoral.cli import demo

        return demo.demo(into, force=force, as_json=json)

    return work


@app.command(
    "app",
    short_help="The web app, on this machine.",
    epilog="\b\nExample:\n  coral app --port 8600",
)
def web_app(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
    json: Json = False,
) -> Work:
    """Start the web app on this machine."""

    def work() -> int:
        from skcoral.cli import web_app

        return web_app.app(host=host, port=port, browser=browser, as_json=json)

    return work


# The commands of panels are registered by being loaded, now that ``app`` exists.
from skcoral.cli import panel_commands  # noqa: E402, F401
