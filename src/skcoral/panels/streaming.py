"""Windows over rows that come in batches: only the rows of the current windows are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.validation import check_complete, check_names
from skcoral.exceptions import InvalidTableError
from skcoral.panels.results import window_columns
from skcoral.panels.solver import Solver, run
from skcoral.panels.windows import RULE_OPTIONS, Windows, cut, first_rows, read_dates, rule

_WITHOUT = {  # why complete rows have no output, by the status of their window
    "none": "before the first window with enough complete rows",
    "short": "in windows with too few complete rows",
    "refused": "in windows that were refused",
}


@dataclass(frozen=True, repr=False)
class Pushed:
    """Outputs of one batch of rows, figures of the windows that ended in it, rows without output.

    ``first`` and ``last`` among the ``figures`` are labels of rows, and ``without`` counts rows by
    the reason why they have no output.
    """

    outputs: Array
    figures: dict[str, Any]
    without: Counter[str]


class Roller:
    """Windows over rows that arrive in batches; memory does not grow with the number of windows.

    The arguments are those of :func:`skcoral.panels.rolling`; ``dates`` is what the labels of rows
    are called where they are dates, in increasing order.
    """

    def __init__(
        self,
        names: Sequence[str],
        window: Any,
        *,
        dates: str | None = None,
        halflife: float | None = None,
        n_jobs: int | None = None,
        **settings: Any,
    ) -> None:
        self.names = check_names(names, len(names))
        how = {name: settings.pop(name) for name in RULE_OPTIONS if name in settings}
        self.rule = rule(window, len(self.names), **how)
        self.solver = Solver(self.names, settings, halflife)
        self.n_jobs, self.dates = n_jobs, dates
        self._values = np.empty((0, len(self.names)))
        self._labels = np.empty(0, dtype=object)
        self._times = np.empty(0, dtype=np.int64)
        self._anchor: int | None = None
        self._reported = -1  # the row that the last window reported ended with

    def push(
        self,
        values: Array,
        labels: Sequence[Any],
        where: Callable[[int], str] = "Row {} of these".format,
    ) -> Pushed:
        """Take the next rows, NaN where missing, and their labels.

        ``where`` names one of these rows in a message, by its index.
        """
        check_complete(values, self.names, may_miss=True)
        before = len(self._values)
        rows = np.concatenate([self._values, values])
        names = np.empty(len(values), dtype=object)
        names[:] = labels
        self._labels = np.concatenate([self._labels, names])
        if self.dates is not None:
            self._times = np.concatenate([self._times, read_dates(labels, self.dates)])
            back = np.flatnonzero(np.diff(self._times) < 0)
            if len(back):
                raise InvalidTableError(
                    f"{where(int(back[0]) + 1 - before)} is earlier than the one before.\nSort the "
                    "rows by date, or name each column that tells several series apart (--by)."
                )
        complete: Any = ~np.isnan(rows).any(axis=1)
        times = None if self.dates is None else self._times
        windows = cut(complete, times, self.rule, [slice(0, len(complete))], self._anchor)
        windows.of_row[:before] = -1  # these rows were transformed with their own batch
        outputs, figures, _ = run(rows, complete, windows, self.solver, n_jobs=self.n_jobs)
        columns = window_columns(windows, figures, self.solver.output_names)
        status = np.append(columns["status"], "none")[windows.of_row[before:]]
        without = Counter(_WITHOUT[kind] for kind in status[complete[before:]] if kind in _WITHOUT)
        without["with missing values"] = int((~complete[before:]).sum())
        columns["first"], columns["last"] = self._labels[windows.first], self._labels[windows.last]
        new = windows.last > self._reported
        self._keep(rows, windows)
        columns = {name: column[new] for name, column in columns.items()}
        return Pushed(outputs[before:], columns, +without)

    def _keep(self, rows: Array, windows: Windows) -> None:
        """Keep the rows of the window that the next row belongs to, and all later ones."""
        n, start, self._anchor, self._reported = len(rows), 0, None, -1
        if len(windows.last):
            current = np.searchsorted(windows.last, n - self.rule.lag, side="right") - 1
            start = int(windows.first[max(current, 0)])
            self._anchor = int(windows.last[max(current, 0)]) - start
            self._reported = int(windows.last[-1]) - start
        elif n:  # before there is any window: what one that ends later can still reach
            start = int(first_rows(n, self._times, self.rule)[-1])
        self._values, self._labels = rows[start:].copy(), self._labels[start:].copy()
        self._times = self._times[start:].copy()
