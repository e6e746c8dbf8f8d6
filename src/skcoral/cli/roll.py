"""``coral roll``: rolling windows over a file, read and written batch by batch."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np

from skcoral import words
from skcoral._requirements import listing, whole_number
from skcoral.cli import console
from skcoral.cli.loading import Loaded, load, naming
from skcoral.cli.option_values import floors_by_name
from skcoral.cli.options import RollOptions
from skcoral.cli.outputs import all_or_none, check_output, destination
from skcoral.cli.run import NOT_CERTIFIED, OK, UsageError
from skcoral.exceptions import InvalidTableError
from skcoral.panels.streaming import Pushed, Roller
from skcoral.panels.tables import free_name
from skcoral.tables.cells import plain_cells
from skcoral.tables.dates import read_dates
from skcoral.tables.table import Batch, complete_rows
from skcoral.tables.writing import TableWriter, table_writer

_BATCH = 2_000  # rows at a time: the progress bar moves, and windows are still solved in stacks
_CERTIFIED = {"exact", "optimal", "short", "refused"}  # the last two make no claim
_FIGURES = (
    "rows",
    "missing",
    "status",
    "threshold",
    "objective",
    "lower_bound",
    "largest_before",
    "largest_after",
    "min_fidelity",
    "weakest",
    "turnover",
    "reason",
)


@dataclass
class _Group:
    """One group: its windows, and the dates of the rows that these can still refer to."""

    roller: Roller
    labels: list[Any] = field(default_factory=list)


@dataclass
class _Tally:
    """Figures of all windows together."""

    status: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    without: Counter[str] = field(default_factory=Counter)
    first_reason: str = ""
    threshold: list[float] = field(default_factory=lambda: [np.nan, np.nan])
    min_fidelity: float = np.nan
    before: float = np.nan
    after: float = np.nan

    def add(self, pushed: Pushed) -> None:
        figures = pushed.figures
        self.status.update(figures["status"].tolist())
        self.rows += len(pushed.outputs)
        self.without.update(pushed.without)
        self.first_reason = self.first_reason or next((r for r in figures["reason"] if r), "")
        lower = figures["threshold"]  # NaN where it was not asked for, or does not exist
        least, largest = self.threshold
        self.threshold = [_least(lower, least), _largest(lower, largest)]
        self.min_fidelity = _least(figures["min_fidelity"], self.min_fidelity)
        self.before = _largest(figures["largest_before"], self.before)
        self.after = _largest(figures["largest_after"], self.after)

    @property
    def certified(self) -> bool:
        """Whether every result is proved to be the best possible."""
        return set(self.status) <= _CERTIFIED

    def record(self, label: str, n_groups: int, written: list[str]) -> dict[str, Any]:
        return {
            "file": label,
            "windows": sum(self.status.values()),
            "groups": n_groups,
            "status": dict(sorted(self.status.items())),
            "threshold": {"least": self.threshold[0], "largest": self.threshold[1]},
            "min_fidelity": self.min_fidelity,
            "largest_correlation_before": self.before,
            "largest_correlation": self.after,
            "rows_given": self.rows,
            "rows_without_output": self.without.total(),
            "reasons": dict(self.without.most_common()),
            "certified": self.certified,
            "written": written,
        }


def roll(options: RollOptions) -> int:
    """Decorrelate a file by rolling windows; the outputs appear together, or not at all."""
    check_output(options.output, options.json)
    if options.windows is not None:
        check_output(str(options.windows), options.json)
    if options.weights is not None:
        raise UsageError(
            "coral roll takes no --weights.\nUse --halflife to let rows count less with age."
        )
    options = replace(options, by=list(dict.fromkeys(options.by or ())), matrix=False)
    files = [path for path in (options.output, options.windows) if path is not None]
    with all_or_none(options.force, *files) as outputs, contextlib.ExitStack() as stack:
        run = _Run(load(options, labels=[options.date, *(options.by or ())]), options)
        stream = stack.enter_context(destination(outputs, options.output))
        figures = None
        if options.windows is not None:
            figures = stack.enter_context(outputs.open(options.windows))
        assert stream is not None  # "-" is an output too
        run.write(stream, figures)
    written = [str(path) for path in files]
    if options.json:
        console.machine(run.tally.record(run.loaded.table.label, len(run.groups), written))
    else:
        run.show(written)
    return OK if run.tally.certified else NOT_CERTIFIED


class _Run:
    """One pass over a file: its groups, their windows and the figures."""

    def __init__(self, loaded: Loaded, options: RollOptions) -> None:
        self.loaded, self.options = loaded, options
        self.groups: dict[tuple[str, ...], _Group] = {}
        self.tally = _Tally()
        window, refit = options.window, options.refit
        n_windows = None if refit is None else whole_number(refit)
        n_rows = whole_number(window)
        self.arguments: dict[str, Any] = {
            "window": window if n_rows is None else n_rows,
            "step": options.step,
            "lag": options.lag,
            "min_rows": options.min_rows,
            "halflife": options.halflife,
            "expanding": options.expanding,
            "brief": options.brief,
            "refit": refit if n_windows is None else n_windows,
            "n_jobs": options.jobs,
            "rho_min": floors_by_name(options.rho_min, loaded.names),
            "criterion": options.criterion,
        }
        self._new_roller()  # wrong settings are refused before anything is read

    def _new_roller(self) -> Roller:
        roller = Roller(self.loaded.names, **self.arguments)
        if roller.needs_times and self.options.date is None:
            raise UsageError(
                "windows of time need dates.\nSay which column holds them: --date NAME"
            )
        roller.needs_times = self.options.date is not None
        return roller

    def write(self, stream: BinaryIO, figures: BinaryIO | None) -> None:
        """Read the file once; write its outputs, and the figures of its windows."""
        table, options = self.loaded.table, self.options
        look: dict[str, Any] = {
            "separator": table.separator,
            "decimal": table.decimal,
            "escape_formulas": options.escape_formulas,
        }
        writer = table_writer(stream, table.names, path=options.output, **look)
        log: TableWriter | None = None
        if figures is not None and options.windows is not None:
            names = ["first", *_FIGURES]
            for name in (options.date or "row", *reversed(options.by or [])):
                names.insert(0, free_name(name, names))
            log = table_writer(figures, names, path=options.windows, **look)
        place = {name: k for k, name in enumerate(self.loaded.names)}
        with console.progress("Rolling") as tell, naming(table):
            for values, batch in self._batches():
                made = np.full(values.shape, np.nan)
                for key, rows in self._groups_of(batch):
                    pushed = self._push(key, values[rows], batch, rows)
                    made[rows] = pushed.outputs
                    group = self.groups[key]
                    if log is not None:
                        log.write(_log(key, group.labels, pushed))
                    del group.labels[: group.roller.gone - pushed.gone]
                writer.write(
                    [
                        made[:, place[name]] if name in place else cells
                        for name, cells in zip(table.names, batch.columns, strict=True)
                    ]
                )
                tell(batch.fraction)
        writer.close()
        if log is not None:
            log.close()

    def _batches(self) -> Iterator[tuple[Any, Batch]]:
        """Rows as numbers, NaN where missing."""
        names = self.loaded.names
        for part in complete_rows(self.loaded.table, names, size=_BATCH):
            values = np.full((len(part.kept), len(names)), np.nan)
            values[part.kept] = part.values
            yield values, part.batch

    def _groups_of(self, batch: Batch) -> list[tuple[tuple[str, ...], Any]]:
        """The groups in a batch, and where their rows are."""
        if not self.options.by:
            return [((), np.arange(len(batch.rows)))]
        table = self.loaded.table
        cells = [plain_cells(batch.columns[table.index(name)]) for name in self.options.by]
        found: dict[tuple[str, ...], list[int]] = {}
        for k, key in enumerate(zip(*cells, strict=True)):
            if any(cell is None or cell == "" for cell in key):
                raise InvalidTableError(
                    f"Row {batch.rows[k]} has no group (nothing in {listing(self.options.by)}): "
                    "fill or drop such rows."
                )
            found.setdefault(tuple(map(str, key)), []).append(k)
        return [(key, np.array(rows)) for key, rows in found.items()]

    def _push(self, key: tuple[str, ...], values: Any, batch: Batch, rows: Any) -> Pushed:
        group = self.groups.setdefault(key, _Group(self._new_roller()))
        times, date = None, self.options.date
        if date is None:
            group.labels += [batch.rows[k] for k in rows]
        else:
            cells = plain_cells(batch.columns[self.loaded.table.index(date)])
            group.labels += [cells[k] for k in rows]
            times = read_dates([cells[k] for k in rows], date)
        pushed = group.roller.push(values, times)
        self.tally.add(pushed)
        return pushed

    def show(self, written: list[str]) -> None:
        """Print what was done."""
        tally, stderr = self.tally, self.options.output == "-"
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(tally.status.items()))
        groups = f" in {len(self.groups):,} groups" if self.options.by else ""
        if not kinds:
            kinds = (
                f"no row ends a window of {self.options.window} with enough complete rows; choose "
                "a shorter --window or fewer --min-rows"
            )
        why = ", ".join(f"{n:,} {reason}" for reason, n in tally.without.most_common())
        told = [
            f"{sum(tally.status.values()):,} windows{groups}: {kinds}.",
            words.windows(tally.before, tally.after, tally.min_fidelity, tally.threshold),
            f"{tally.without.total():,} of {tally.rows:,} rows have no output: {why}. "
            "Their variables are left empty."
            if why
            else "",
            f"First window refused: {tally.first_reason}" if tally.first_reason else "",
            *self.loaded.notes,
        ]
        console.say_each(told, stderr=stderr)
        if not stderr:
            console.written(written)


def _least(values: Any, so_far: float) -> float:
    return float(np.fmin.reduce(values, initial=so_far))


def _largest(values: Any, so_far: float) -> float:
    return float(np.fmax.reduce(values, initial=so_far))


def _log(key: tuple[str, ...], labels: list[Any], pushed: Pushed) -> list[Any]:
    """Columns of the table of windows."""
    figures = pushed.figures
    last, first = (
        [str(labels[k - pushed.gone]) for k in figures[name]] for name in ("last", "first")
    )
    columns = [figures[name] for name in _FIGURES]
    plain = [c if c.dtype.kind in "iuf" else [str(cell) for cell in c] for c in columns]
    return [*([part] * len(last) for part in key), last, first, *plain]
