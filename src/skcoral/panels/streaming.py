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
from skcoral.panels.windows import RULE_OPTIONS, check_times, cut, rule

_WITHOUT = {  # why complete rows have no output, by the status of their window
    "none": "before the first window with enough complete rows",
    "short": "in windows with too few complete rows",
    "refused": "in windows that were refused",
}


@dataclass(frozen=True, repr=False)
class Pushed:
    """Outputs of one batch of rows, and figures of the windows that ended in it.

    ``first`` and ``last`` among the ``figures`` count all rows since the beginning; none of them is
    below ``gone``. ``without`` counts the rows without output by reason.
    """

    outputs: Array
    figures: dict[str, Any]
    gone: int
    without: Counter[str]


class Roller:
    """Windows over rows that arrive in batches; memory does not grow with the number of windows.

    The arguments are those of :func:`skcoral.panels.rolling`.
    """

    def __init__(
        self,
        names: Sequence[str],
        window: Any,
        *,
        halflife: float | None = None,
        n_jobs: int | None = None,
        **settings: Any,
    ) -> None:
        self.names = check_names(names, len(names))
        how = {name: settings.pop(name) for name in RULE_OPTIONS if name in settings}
        self.rule = rule(window, len(self.names), **how)
        self.solver = Solver(self.names, settings, halflife)
        self.n_jobs = n_jobs
        self.needs_times = self.rule.needs_times
        self._values = np.empty((0, len(self.names)))
        self._times = np.empty(0, dtype=np.int64)
        self.gone = 0  # rows before those that are kept
        self._anchor: int | None = None
        self._reported = -1  # row that the last window reported ended with

    def push(
        self,
        values: Any,
        times: Any = None,
        callback: Callable[[int, int], object] | None = None,
        where: Callable[[int], str] = "Row {} of these".format,
    ) -> Pushed:
        """Take the next rows, NaN where missing, with dates where windows need them.

        ``where`` names one of these rows in a message, by its index.
        """
        rows = np.asarray(values, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise InvalidTableError(
                f"Rows of {len(self.names)} columns are needed; got an array of shape {rows.shape}."
            )
        check_complete(rows, self.names, may_miss=True)
        if self.needs_times and (times is None or len(times) != len(rows)):
            raise InvalidTableError(f"times must hold the dates of these {len(rows)} rows.")
        before = len(self._values)
        everything = np.concatenate([self._values, rows])
        if self.needs_times:
            new = check_times(times, "The column of dates")
            self._times = np.concatenate([self._times, new])
            if np.any(np.diff(self._times) < 0):
                back = int(np.flatnonzero(np.diff(self._times) < 0)[0]) + 1 - before
                raise InvalidTableError(
                    f"{where(back)} is earlier than the one before.\nSort the rows by date, or "
                    "name each column that tells several series apart (--by)."
                )
        complete: Any = ~np.isnan(everything).any(axis=1)
        times = self._times if self.needs_times else None
        windows = cut(complete, times, self.rule, [slice(0, len(complete))], self._anchor)
        windows.of_row[:before] = -1  # these rows were transformed with their own batch
        outputs, figures, _ = run(
            everything, complete, windows, self.solver, n_jobs=self.n_jobs, callback=callback
        )
        columns, _ = window_columns(windows, figures, self.solver.output_names)
        status = np.append(columns["status"], "none")[windows.of_row[before:]]
        without = Counter(_WITHOUT[kind] for kind in status[complete[before:]] if kind in _WITHOUT)
        without["with missing values"] = int((~complete[before:]).sum())
        gone = self.gone
        columns["first"], columns["last"] = columns["first"] + gone, columns["last"] + gone
        new = columns["last"] > self._reported
        columns = {name: column[new] for name, column in columns.items()}
        self._keep(everything, windows)
        return Pushed(outputs[before:], columns, gone, +without)

    def _keep(self, everything: Array, found: Any) -> None:
        """Keep the rows of the window that the next row belongs to, and all later ones."""
        n = len(everything)
        if len(found.last):
            self._reported = int(found.last[-1]) + self.gone
            current = max(int(np.searchsorted(found.last, n - self.rule.lag, side="right")) - 1, 0)
            start, anchor = int(found.first[current]), int(found.last[current])
        else:
            start, anchor = self._earliest(n), None
        self._values = everything[start:].copy()
        self._times = self._times[start:].copy() if self.needs_times else self._times
        self._anchor = None if anchor is None else anchor - start
        self.gone += start

    def _earliest(self, n: int) -> int:
        """The first row that a later window can still reach, before there is any window."""
        if self.rule.expanding or not n:
            return 0
        if self.rule.span is not None:
            return int(np.searchsorted(self._times, self._times[-1] - self.rule.span, "right"))
        return max(n - (self.rule.rows or 0), 0)
