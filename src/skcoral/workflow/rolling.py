"""Rolling windows over a file: each row by the model of its own window, read and written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.validation import listing
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.panels.solver import NUMBERS
from skcoral.panels.streaming import Pushed, Roller
from skcoral.panels.tables import free_name
from skcoral.tables.cells import plain_cells
from skcoral.tables.matrices import check_rows
from skcoral.tables.table import Batch, complete_rows
from skcoral.tables.writing import TableWriter, table_writer
from skcoral.workflow.dataset import Dataset

_BATCH = 500  # rows at a time, after which the progress is told: about a second
_CERTIFIED = {"exact", "optimal", "short", "refused"}  # the last two make no claim
_MEASURED = ("largest_before", "largest_after", "min_fidelity", "threshold")
_NUMBERS = tuple(name for name in NUMBERS if name != "threshold_upper")
_FIGURES = ("rows", "missing", "status", *_NUMBERS, "min_fidelity", "weakest", "turnover", "reason")

#: Labels of the rows of a group, one for each of the columns that say the group.
Group = tuple[str, ...]


class RollingPass:
    """One pass over a file: the windows of its groups, their figures, and the rows written.

    ``settings`` are those of :func:`skcoral.panels.rolling`, ``date`` is the column of dates, in
    increasing order, and ``by`` are columns of groups with windows of their own.
    """

    def __init__(
        self,
        data: Dataset,
        settings: Mapping[str, Any],
        *,
        date: str | None = None,
        by: Sequence[str] = (),
    ) -> None:
        check_rows(data.matrix, data.table.label)
        self.data, self.settings, self.date, self.by = data, settings, date, by
        self.groups: dict[Group, Roller] = {}  # the windows of each group
        self.status: Counter[str] = Counter()
        self.without: Counter[str] = Counter()  # rows without an output, by reason
        self.n_singular = 0  # windows with a model and no more rows than variables
        self.first_reason = ""
        #: The smallest and the largest of each figure; NaN where there is none.
        self.extremes = {name: np.full(2, np.nan) for name in _MEASURED}
        self._new_roller()  # wrong settings are refused before anything is read

    @property
    def certified(self) -> bool:
        """Whether every result is proved to be the best possible."""
        return set(self.status) <= _CERTIFIED

    @property
    def reasons(self) -> str:
        """Why rows have no output, and how many of them for each reason."""
        return ", ".join(f"{n:,} {reason}" for reason, n in self.without.most_common())

    def _new_roller(self) -> Roller:
        roller = Roller(self.data.names, dates=self.date, **self.settings)
        if roller.rule.span is not None and self.date is None:
            raise InvalidArgumentError(
                "windows of time need dates.\nSay which column holds them: --date NAME"
            )
        return roller

    def write(
        self,
        stream: BinaryIO,
        path: str,
        figures: BinaryIO | None = None,
        figures_path: str | Path = "-",
    ) -> None:
        """Read the file once; write its outputs, and the figures of its windows."""
        table, variables = self.data.table, self.data.names
        writer = table_writer(stream, table.names, path=path, like=table)
        log: TableWriter | None = None
        if figures is not None:
            names = ["first", *_FIGURES]
            for name in (self.date or "row", *reversed(self.by)):
                names.insert(0, free_name(name, names))
            log = table_writer(figures, names, path=figures_path, like=table)
        with self.data.progress("Rolling") as tell, self.data.naming():
            for part in complete_rows(table, variables, size=_BATCH):
                cells = dict(zip(table.names, part.batch.columns, strict=True))
                values = np.full((len(part.usable), len(variables)), np.nan)
                values[part.usable] = part.values
                made = np.full(values.shape, np.nan)
                marks = part.batch.rows if self.date is None else plain_cells(cells[self.date])
                for key, rows in self._groups_of(part.batch, cells):
                    places = [part.batch.rows[k] for k in rows]
                    pushed = self._push(key, values[rows], [marks[k] for k in rows], places)
                    made[rows] = pushed.outputs
                    if log is not None:
                        log.write(_figures_of(key, pushed.figures))
                writer.write(list((cells | dict(zip(variables, made.T, strict=True))).values()))
                tell(part.batch.fraction)
        writer.close()
        if log is not None:
            log.close()

    def _groups_of(self, batch: Batch, cells: dict[str, Any]) -> list[tuple[Group, list[int]]]:
        groups: dict[Group, list[int]] = {}
        labels = (plain_cells(cells[name]) for name in self.by)
        keys = zip(*labels, strict=True) if self.by else [()] * len(batch.rows)
        for k, key in enumerate(keys):
            if any(cell is None or cell == "" for cell in key):
                raise InvalidTableError(
                    f"{self.data.table.unit} {batch.rows[k]} has no group (nothing in "
                    f"{listing(self.by)}): fill or drop such rows."
                )
            groups.setdefault(tuple(map(str, key)), []).append(k)
        return list(groups.items())

    def _push(self, key: Group, values: Array, labels: list[Any], places: list[int]) -> Pushed:
        """Push some rows of one group; the windows that end in them are counted."""
        roller, unit = self.groups.setdefault(key, self._new_roller()), self.data.table.unit
        pushed = roller.push(values, labels, lambda k: f"{unit} {places[k]}")
        figures = pushed.figures
        self.status.update(figures["status"].tolist())
        self.without.update(pushed.without)
        few = figures["rows"] <= len(self.data.names)
        self.n_singular += int(np.sum(few & ~np.isin(figures["status"], ("short", "refused"))))
        self.first_reason = self.first_reason or next((r for r in figures["reason"] if r), "")
        for name, ends in self.extremes.items():
            both = np.r_[ends, figures[name]]
            ends[:] = np.fmin.reduce(both), np.fmax.reduce(both)
        return pushed


def _figures_of(key: Group, figures: Mapping[str, Any]) -> list[Any]:
    """The columns of the file of figures, for some windows of a group."""
    spans = ([str(label) for label in figures[end]] for end in ("last", "first"))
    columns = (figures[name] for name in _FIGURES)
    plain = (c if c.dtype.kind in "iuf" else [str(cell) for cell in c] for c in columns)
    return [*([part] * len(figures["last"]) for part in key), *spans, *plain]
