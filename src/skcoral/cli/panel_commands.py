"""The options of ``coral roll``; the work is in :mod:`skcoral.cli.roll`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skcoral.cli.commands import Work, app
from skcoral.cli.options import (
    CriterionOption,
    EscapeFormulas,
    Force,
    Json,
    RhoMin,
    TableOptions,
    takes_windows,
)


@app.command(
    short_help="Decorrelate by rolling windows.",
    epilog=(
        "\b\nExample:\n  coral roll returns.csv --date date --window 60 --lag 1 --rho-min 0.9 "
        "-o out.csv"
    ),
)
@takes_windows
def roll(
    *,
    table: TableOptions,
    window: Annotated[
        str, typer.Option(metavar="ROWS|SPAN", help="Rows of a window, or a span such as 90D.")
    ],
    date: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of dates, in increasing order.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Column of groups with windows of their own; repeatable."
        ),
    ] = None,
    lag: Annotated[
        int, typer.Option(min=0, help="1: the window of a row ends before it; no look-ahead.")
    ] = 0,
    step: Annotated[int, typer.Option(min=1, help="Rows from one window to the next.")] = 1,
    refit: Annotated[
        str | None,
        typer.Option(metavar="N|PERIOD", help="A new model every N windows, or every W, MS, QS."),
    ] = None,
    min_rows: Annotated[
        int | None, typer.Option(min=2, help="Complete rows that a window needs [all].")
    ] = None,
    halflife: Annotated[
        float | None, typer.Option(metavar="ROWS", help="Age at which a row counts half.")
    ] = None,
    expanding: Annotated[
        bool, typer.Option("--expanding", help="Windows begin with the first row.")
    ] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Search singular windows briefly: faster, wider gaps.")
    ] = False,
    rho_min: RhoMin = None,
    criterion: CriterionOption = "squared",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; '-': CSV out.")
    ] = "-",
    windows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Figures of every window, as a table.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all processors.")] = 1,
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
    json: Json = False,
) -> Work:
    """Decorrelate each row by the model of its own window of rows.

    All rows and columns are written in their order; variables of rows without a model are left
    empty, and counted. The file appears when it is complete.
    """

    def work() -> int:
        from skcoral.cli import roll

        options = roll.RollOptions(
            table=table,
            window=window,
            date=date,
            by=tuple(by or ()),
            lag=lag,
            step=step,
            refit=refit,
            min_rows=min_rows,
            halflife=halflife,
            expanding=expanding,
            brief=brief,
            rho_min=rho_min or (),
            criterion=criterion,
            output=output,
            windows=windows,
            jobs=jobs,
            escape_formulas=escape_formulas,
            force=force,
        )
        return roll.roll(options, as_json=json)

    return work
