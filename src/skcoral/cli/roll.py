"""``coral roll``: rolling windows over a file."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter

import numpy as np

from skcoral.cli import console
from skcoral.cli.loading import floors_by_name, load, notes
from skcoral.cli.outputs import all_or_none, check_output, destination
from skcoral.cli.parser import UsageError, spelled
from skcoral.cli.run import NOT_CERTIFIED, OK
from skcoral.core.validation import whole_number
from skcoral.estimator.settings import check_target
from skcoral.exceptions import InvalidTableError
from skcoral.panels import Panel
from skcoral.workflow.dataset import Dataset
from skcoral.workflow.rolling import roll as roll_windows
from skcoral.workflow.rolling import write_rolled, write_windows

_WINDOWS = ("step", "lag", "min_rows", "halflife", "expanding")
_LIMITS = ("criterion", "max_vif", "max_correlation")
_CERTIFIED = {"exact", "optimal", "short", "refused"}  # the last two make no claim
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
    n_rows = whole_number(options.window)  # else a span of time
    if n_rows is None and options.date is None:
        raise UsageError("windows of time need dates.\nSay which column holds them: --date NAME")
    with all_or_none(options.force, *files) as outputs:
        data = load(options, labels=tuple(filter(None, [options.date, *by])), in_memory=True)
        check_target(options, spelled=spelled)
        settings = {name: getattr(options, name) for name in (*_WINDOWS, *_LIMITS)} | {
            "window": options.window if n_rows is None else n_rows,
            "n_jobs": options.jobs,
            "rho_min": floors_by_name(options.rho_min, data.names),
        }
        panel = roll_windows(data, settings, date=options.date, by=by)
        _check_outputs(panel, data, options)
        if options.windows is not None:
            with outputs.open(options.windows) as figures:
                write_windows(data, panel, figures, options.windows)
        with destination(outputs, options.output) as stream:
            assert stream is not None  # "-" is an output too
            write_rolled(data, panel, stream, options.output)
    with console.beside(options.output):
        _show(panel, data)
        console.written(files)
    return OK if set(panel.columns["status"]) <= _CERTIFIED else NOT_CERTIFIED


def _check_outputs(panel: Panel, data: Dataset, options: Namespace) -> None:
    """Refuse to write a table in which no row has an output: its variables would all be empty."""
    without = panel.without_output()
    if without.total() < data.content.n_rows:
        return
    remedy = f"Choose a shorter --window or {_FEWER_ROWS}."
    reason = _first_reason(panel)
    if reason:
        remedy = f"First window refused: {reason} Or leave a column out (--exclude)."
    raise InvalidTableError(
        f"{data.table.label}: with a window of {options.window} none of the rows has an output "
        f"({_counted(without)}).\n{remedy}"
    )


def _first_reason(panel: Panel) -> str:
    """Why the first window that was refused has no model; empty if none was."""
    return next((reason for reason in panel.columns["reason"] if reason), "")


def _counted(without: Counter[str]) -> str:
    """How many rows have no output for each reason."""
    return ", ".join(f"{n:,} {reason}" for reason, n in without.most_common())


def _show(panel: Panel, data: Dataset) -> None:
    """Print what was done, and what to do where windows are short, singular or refused."""
    columns, without, reason = panel.columns, panel.without_output(), _first_reason(panel)
    status = columns["status"]
    few = (columns["rows"] <= len(data.names)) & ~np.isin(status, ("short", "refused"))
    remarks = panel.summary().splitlines()
    if without:
        remarks.append(
            f"{without.total():,} of {data.content.n_rows:,} rows have no output: "
            f"{_counted(without)}. Their variables are left empty."
        )
    if few.any():
        remarks.append(
            f"{console.counted(int(few.sum()), 'window')} with no more complete rows than "
            f"variables ({len(data.names)}): outputs cannot all be uncorrelated there, and new "
            "rows keep much less. Choose a longer --window or fewer columns (--exclude)."
        )
    if 2 * np.sum(status == "short") > len(status):
        remarks.append(f"To get more windows, choose {_FEWER_ROWS}.")
    if reason:
        remarks.append(f"First window refused: {reason}")
        remarks.append("--exclude NAME leaves a column out of all windows.")
    console.say_each([*remarks, *notes(data)])
