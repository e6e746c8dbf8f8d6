"""``coral roll``: rolling windows over a file, read and written batch by batch."""

from __future__ import annotations

import contextlib
from argparse import Namespace

from skcoral.cli import console
from skcoral.cli.loading import floors_by_name, load, notes
from skcoral.cli.outputs import all_or_none, check_output, destination
from skcoral.cli.parser import spelled
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.validation import whole_number
from skcoral.estimator.settings import check_target
from skcoral.exceptions import InvalidTableError
from skcoral.show import sentences
from skcoral.workflow.rolling import RollingPass

_WINDOWS = ("step", "lag", "min_rows", "halflife", "expanding")
_LIMITS = ("criterion", "max_vif", "max_correlation")
#: How more windows come to have enough complete rows.
_FEWER_ROWS = (
    "a smaller --min-rows (without it, a window needs all of its rows), or leave out columns with "
    "many missing values (--exclude)"
)


def roll(options: Namespace) -> int:
    """Decorrelate a file by rolling windows; the outputs appear together, or not at all."""
    by = list(dict.fromkeys(options.by or ()))
    files = [path for path in (options.output, options.windows) if path is not None]
    for path in files:
        check_output(str(path))
    with all_or_none(options.force, *files) as outputs, contextlib.ExitStack() as stack:
        labels = tuple(filter(None, [options.date, *by]))
        data = load(options, labels=labels)
        check_target(options, spelled=spelled)
        n_rows = whole_number(options.window)  # else a span of time
        settings = {name: getattr(options, name) for name in (*_WINDOWS, *_LIMITS)} | {
            "window": options.window if n_rows is None else n_rows,
            "n_jobs": options.jobs,
            "rho_min": floors_by_name(options.rho_min, data.names),
        }
        run = RollingPass(data, settings, date=options.date, by=by)
        stream = stack.enter_context(destination(outputs, options.output))
        figures = None
        if options.windows is not None:
            figures = stack.enter_context(outputs.open(options.windows))
        assert stream is not None  # "-" is an output too
        run.write(stream, options.output, figures, options.windows or "-")
        _check_outputs(run, options)
    with console.beside(options.output):
        _show(run, options)
        console.written(files)
    return OK if run.certified else NOT_CERTIFIED


def _check_outputs(run: RollingPass, options: Namespace) -> None:
    """Refuse to write a table in which no row has an output: its variables would all be empty."""
    if run.without.total() < run.data.content.n_rows:
        return
    remedy = f"Choose a shorter --window or {_FEWER_ROWS}."
    if run.first_reason:
        remedy = f"First window refused: {run.first_reason} Or leave a column out (--exclude)."
    raise InvalidTableError(
        f"{run.data.table.label}: with a window of {options.window} none of the rows has an output "
        f"({run.reasons}).\n{remedy}"
    )


def _show(run: RollingPass, options: Namespace) -> None:
    """Print what was done."""
    counts = (f"{n:,} {kind}" for kind, n in sorted(run.status.items()))
    kinds = ", ".join(counts).replace("_", " ")
    n_rows = run.data.content.n_rows
    groups = f" in {len(run.groups):,} groups" if options.by else ""
    console.say_each(
        [
            f"{run.status.total():,} windows{groups}: {kinds}.",
            sentences.windows(*run.extremes.values()),
            f"{run.without.total():,} of {n_rows:,} rows have no output: {run.reasons}. "
            "Their variables are left empty."
            if run.without
            else "",
            f"{console.counted(run.n_singular, 'window')} with no more complete rows than "
            f"variables ({len(run.data.names)}): outputs cannot all be uncorrelated there, and new "
            "rows keep much less. Choose a longer --window or fewer columns (--exclude)."
            if run.n_singular
            else "",
            f"To get more windows, choose {_FEWER_ROWS}."
            if 2 * run.status["short"] > run.status.total()
            else "",
            f"First window refused: {run.first_reason}" if run.first_reason else "",
            "--exclude NAME leaves a column out of all windows." if run.first_reason else "",
            *notes(run.data),
        ]
    )
