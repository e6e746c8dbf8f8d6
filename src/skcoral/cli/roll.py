"""``coral roll``: rolling windows over a file, read and written batch by batch."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from skcoral.choosing import check_target
from skcoral.cli import console
from skcoral.cli.loading import load, notes
from skcoral.cli.option_values import floors_by_name
from skcoral.cli.options import RollOptions
from skcoral.cli.outputs import all_or_none, check_output, destination
from skcoral.cli.run import NOT_CERTIFIED, OK, UsageError
from skcoral.core.requirements import listing, whole_number
from skcoral.core.results import Array
from skcoral.exceptions import InvalidTableError
from skcoral.panels.solver import NUMBERS
from skcoral.panels.streaming import Roller
from skcoral.panels.tables import free_name
from skcoral.show import sentences as words
from skcoral.tables.cells import plain_cells
from skcoral.tables.table import Batch, complete_rows
from skcoral.tables.writing import TableWriter, table_writer
from skcoral.workflow.dataset import Dataset

_BATCH = 2_000  # rows at a time, after which the progress bar moves
_AS_GIVEN = (
    "step",
    "lag",
    "min_rows",
    "halflife",
    "expanding",
    "criterion",
    "max_vif",
    "max_correlation",
)
_CERTIFIED = {"exact", "optimal", "short", "refused"}  # the last two make no claim
_MEASURED = ("threshold", "largest_before", "largest_after", "min_fidelity")
_NUMBERS = tuple(name for name in NUMBERS if name != "threshold_upper")
_FIGURES = ("rows", "missing", "status", *_NUMBERS, "min_fidelity", "weakest", "turnover", "reason")


def roll(options: RollOptions) -> int:
    """Decorrelate a file by rolling windows; the outputs appear together, or not at all."""
    check_output(options.output, options.json)
    if options.windows is not None:
        check_output(str(options.windows), options.json)
    options = replace(options, by=list(dict.fromkeys(options.by or ())))
    files = [path for path in (options.output, options.windows) if path is not None]
    with all_or_none(options.force, *files) as outputs, contextlib.ExitStack() as stack:
        labels = tuple(filter(None, [options.date, *(options.by or ())]))
        run = _Run(load(options, labels=labels, target=options.target), options)
        stream = stack.enter_context(destination(outputs, options.output))
        figures = None
        if options.windows is not None:
            figures = stack.enter_context(outputs.open(options.windows))
        assert stream is not None  # "-" is an output too
        run.write(stream, figures)
    written = [str(path) for path in files]
    if options.json:
        console.print_json(run.record(written))
    else:
        run.show(written)
    return OK if run.certified else NOT_CERTIFIED


class _Run:
    """One pass over a file: the windows of its groups, their figures, and the rows written."""

    def __init__(self, data: Dataset, options: RollOptions) -> None:
        self.data, self.options = data, options
        #: The windows of each group, and labels of the rows that these can still refer to.
        self.groups: dict[tuple[str, ...], tuple[Roller, list[Any]]] = {}
        self.status: Counter[str] = Counter()
        self.without: Counter[str] = Counter()
        self.n_rows = 0
        self.first_reason = ""
        self.least = dict.fromkeys(_MEASURED, np.nan)
        self.largest = dict.fromkeys(_MEASURED, np.nan)
        check_target(options, spelled=lambda name: f"--{name.replace('_', '-')}")
        self.settings: dict[str, Any] = {name: getattr(options, name) for name in _AS_GIVEN} | {
            "window": _number_or_text(options.window),
            "refit": None if options.refit is None else _number_or_text(options.refit),
            "n_jobs": options.jobs,
            "rho_min": floors_by_name(options.rho_min, data.names),
        }
        self._new_roller()  # wrong settings are refused before anything is read

    def _new_roller(self) -> Roller:
        roller = Roller(self.data.names, **self.settings)
        if roller.needs_times and self.options.date is None:
            raise UsageError(
                "windows of time need dates.\nSay which column holds them: --date NAME"
            )
        roller.needs_times = self.options.date is not None
        return roller

    def write(self, stream: BinaryIO, figures: BinaryIO | None) -> None:
        """Read the file once; write its outputs, and the figures of its windows."""
        table, options, variables = self.data.table, self.options, self.data.names
        writer = table_writer(stream, table.names, path=options.output, like=table)
        log: TableWriter | None = None
        if figures is not None and options.windows is not None:
            names = ["first", *_FIGURES]
            for name in (options.date or "row", *reversed(options.by or [])):
                names.insert(0, free_name(name, names))
            log = table_writer(figures, names, path=options.windows, like=table)
        with console.progress("Rolling") as tell, self.data.naming():
            before = 0.0
            for part in complete_rows(table, variables, size=_BATCH):
                cells = dict(zip(table.names, part.batch.columns, strict=True))
                values = np.full((len(part.kept), len(variables)), np.nan)
                values[part.kept] = part.values
                made = np.full(values.shape, np.nan)
                after, seen = part.batch.fraction, 0
                for key, rows in self._groups_of(part.batch, cells):
                    begin = before + (after - before) * seen / len(values)
                    seen += len(rows)
                    end = before + (after - before) * seen / len(values)
                    told = partial(_tell_between, tell, begin, end)
                    made[rows] = self._push(key, values[rows], part.batch, cells, rows, log, told)
                writer.write(list((cells | dict(zip(variables, made.T, strict=True))).values()))
                tell(after)
                before = after
        writer.close()
        if log is not None:
            log.close()

    def _groups_of(
        self, batch: Batch, cells: dict[str, Any]
    ) -> list[tuple[tuple[str, ...], list[int]]]:
        by = self.options.by
        if not by:
            return [((), list(range(len(batch.rows))))]
        found: dict[tuple[str, ...], list[int]] = {}
        for k, key in enumerate(zip(*(plain_cells(cells[name]) for name in by), strict=True)):
            if any(cell is None or cell == "" for cell in key):
                raise InvalidTableError(
                    f"Row {batch.rows[k]} has no group (nothing in {listing(by)}): "
                    "fill or drop such rows."
                )
            found.setdefault(tuple(map(str, key)), []).append(k)
        return list(found.items())

    def _push(
        self,
        key: tuple[str, ...],
        values: Array,
        batch: Batch,
        cells: dict[str, Any],
        rows: list[int],
        log: TableWriter | None,
        callback: Callable[[int, int], object],
    ) -> Array:
        """Outputs of some rows of one group; the windows that end in them are counted."""
        roller, labels = self.groups.setdefault(key, (self._new_roller(), []))
        times, date = None, self.options.date
        marks = batch.rows if date is None else plain_cells(cells[date])
        new = [marks[k] for k in rows]
        labels += new
        if date is not None:
            times = _read_dates(new, date)
        pushed = roller.push(values, times, callback=callback)
        figures = pushed.figures
        self.status.update(figures["status"].tolist())
        self.without.update(pushed.without)
        self.n_rows += len(rows)
        self.first_reason = self.first_reason or next((r for r in figures["reason"] if r), "")
        for name in _MEASURED:  # NaN where it was not asked for, or does not exist
            self.least[name] = float(np.fmin.reduce(figures[name], initial=self.least[name]))
            self.largest[name] = float(np.fmax.reduce(figures[name], initial=self.largest[name]))
        if log is not None:
            ends = ([str(labels[k - pushed.gone]) for k in figures[e]] for e in ("last", "first"))
            columns = (figures[name] for name in _FIGURES)
            plain = (c if c.dtype.kind in "iuf" else [str(cell) for cell in c] for c in columns)
            log.write([*([part] * len(figures["last"]) for part in key), *ends, *plain])
        del labels[: roller.gone - pushed.gone]
        return pushed.outputs

    @property
    def certified(self) -> bool:
        """Whether every result is proved to be the best possible."""
        return set(self.status) <= _CERTIFIED

    def record(self, written: list[str]) -> dict[str, Any]:
        """The figures for machines."""
        least, largest = self.least, self.largest
        return {
            "file": self.data.table.label,
            "target": self.data.request.target,
            "windows": self.status.total(),
            "groups": len(self.groups),
            "status": dict(sorted(self.status.items())),
            "threshold": {"least": least["threshold"], "largest": largest["threshold"]},
            "min_fidelity": least["min_fidelity"],
            "largest_correlation_before": largest["largest_before"],
            "largest_correlation": largest["largest_after"],
            "rows_given": self.n_rows,
            "rows_without_output": self.without.total(),
            "reasons": dict(self.without.most_common()),
            "certified": self.certified,
            "written": written,
        }

    def show(self, written: list[str]) -> None:
        """Print what was done."""
        stderr, largest = self.options.output == "-", self.largest
        counts = (f"{n:,} {kind}" for kind, n in sorted(self.status.items()))
        kinds = ", ".join(counts).replace("_", " ")
        groups = f" in {len(self.groups):,} groups" if self.options.by else ""
        if not kinds:
            kinds = (
                f"no row ends a window of {self.options.window} with enough complete rows; choose "
                "a shorter --window or a smaller number of --min-rows (all rows by default)"
            )
        why = ", ".join(f"{n:,} {reason}" for reason, n in self.without.most_common())
        bounds = [self.least["threshold"], largest["threshold"]]
        ends = largest["largest_before"], largest["largest_after"]
        told = [
            f"{self.status.total():,} windows{groups}: {kinds}.",
            words.windows(*ends, self.least["min_fidelity"], bounds),
            f"{self.without.total():,} of {self.n_rows:,} rows have no output: {why}. "
            "Their variables are left empty."
            if why
            else "",
            self._advice(),
            f"First window refused: {self.first_reason}" if self.first_reason else "",
            *notes(self.data),
        ]
        console.say_each(told, stderr=stderr)
        if not stderr:
            console.written(written)

    def _advice(self) -> str:
        """How to get more windows, where nearly all of them have too few complete rows."""
        if not self.status["short"] or self.status["short"] < 0.9 * self.status.total():
            return ""
        if self.options.min_rows is not None:
            return "A smaller --min-rows lets windows do with fewer complete rows."
        return (
            "A window needs all of its rows to be complete: --min-rows NUMBER asks for fewer of "
            "them; --exclude NAME leaves out a column with many missing values."
        )


def _tell_between(
    tell: Callable[[float], object], begin: float, end: float, done: int, total: int
) -> None:
    """Tell the progress from one fraction to another by the windows done."""
    tell(begin + (end - begin) * done / total)


def _read_dates(cells: list[Any], name: str) -> Any:
    """The cells of the column ``name`` as dates; what can be read in two ways is an error."""
    import pandas as pd

    # Spreadsheets and data frames write years as 1935.0.
    years = (re.fullmatch(r"\s*(\d{4})\.0+\s*", str(cell)) for cell in cells)
    texts = pd.Series(
        [cell if year is None else year[1] for cell, year in zip(cells, years, strict=True)],
        dtype=object,
    )
    try:
        dates = _parsed(texts)
        if dates.dtype == object:  # as pandas 2 keeps times of several zones
            raise ValueError("Mixed timezones detected.")
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        if "timezones" in reason:
            reason = "times have different offsets from UTC; write all of them in UTC"
        raise InvalidTableError(
            f"column {name!r} does not hold dates: {reason}\nWrite dates as 2024-12-31."
        ) from error
    other = texts[~texts.astype(str).str.match(r"\s*\d{4}") & dates.notna()]
    unclear = other[_parsed(other) != _parsed(other, dayfirst=True)]
    if len(unclear):
        raise InvalidTableError(
            f"column {name!r} has dates whose day and month cannot be told apart, such as "
            f"{str(unclear.iloc[0])!r}.\nWrite dates as 2024-12-31."
        )
    return dates


def _parsed(texts: Any, **how: Any) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about dates that can be read in one way only
        return pd.to_datetime(texts, format="mixed", **how)


def _number_or_text(value: str) -> int | str:
    number = whole_number(value)
    return value if number is None else number
