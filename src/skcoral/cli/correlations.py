"""The rows of a table in memory, and the correlations that are estimated from them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skcoral._frames import Judged, judge
from skcoral.cli import console
from skcoral.cli.loading import Loaded, naming, require_room, require_rows
from skcoral.cli.run import UsageError
from skcoral.correlation import (
    CorrelationEstimate,
    check_shrinkage,
    estimate,
    sample_correlation,
    shrunk_matrix,
)
from skcoral.exceptions import SingularCorrelationWarning
from skcoral.moments import Moments
from skcoral.results import Array
from skcoral.tables.matrices import NamedMatrix
from skcoral.tables.table import Complete, labels_of


@dataclass(frozen=True)
class Correlations:
    """The correlations of a table: as they are, and judged for the solvers when asked.

    Judging fails where rows are too few or columns constant, which ``R`` does not need.
    """

    R: Any
    estimated: Callable[[], CorrelationEstimate]
    scale: Array
    n_rows: int | None
    dropped: list[int]

    @cached_property
    def judged(self) -> Judged:
        """The matrix as the solvers take it."""
        return judge(self.estimated(), on_singular="solve")

    def record(self, loaded: Loaded) -> dict[str, Any]:
        """What the correlations were estimated from, for machines."""
        return {
            "file": loaded.table.label,
            "rows": self.n_rows,
            "dropped_rows": self.dropped,
            "notes": loaded.notes,
            "constant": list(loaded.constant),
        }

    def notes(self, loaded: Loaded) -> list[str]:
        """The same for people."""
        return [*loaded.notes, loaded.constant_note, loaded.dropped_note(self.dropped)]


def correlations(
    loaded: Loaded, *, margins: str = "none", shrinkage: float | str | None = None
) -> Correlations:
    """Read the rows of a table, or take the matrix that the file holds."""
    if loaded.matrix is not None:
        table = estimate_matrix(loaded.matrix, shrinkage)
        return Correlations(table.R, lambda: table, table.scale, None, [])
    if loaded.needs_rows or margins != "none" or shrinkage == "auto":
        from skcoral.estimator.estimation import estimate_rows

        require_room(loaded)
        held = hold(loaded)
        model, weights = loaded.model(margins=margins, shrinkage=shrinkage), held.known
        with naming(loaded.table), warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularCorrelationWarning)  # told with the answer
            table, *_ = estimate_rows(
                model, held.values, loaded.names, weights.get("sample_weight")
            )
        return Correlations(table.R, lambda: table, table.scale, table.n_rows, held.dropped)
    moments = Moments(loaded.names, weight_kind=loaded.weight_kind)
    dropped: list[int] = []
    for part in read_rows(loaded, dropped):
        moments.update(part.values, sample_weight=part.weights)
    with naming(loaded.table):
        R = sample_correlation(moments)

    def estimated() -> CorrelationEstimate:
        return estimate(moments, shrinkage=check_shrinkage(shrinkage), on_singular="solve")

    return Correlations(R, estimated, moments.scale, moments.n_rows, dropped)


@dataclass(frozen=True)
class Held:
    """Rows in memory, their weights and groups as ``fit`` takes them, and the rows left out."""

    values: Array
    known: dict[str, Any]
    dropped: list[int]


def hold(loaded: Loaded, groups: str | None = None) -> Held:
    """Read all rows: the numbers only, as the cells that they are made of take more room."""
    dropped: list[int] = []
    values: list[Array] = []
    found: dict[str, list[Array]] = {"sample_weight": [], "groups": []}
    for part in read_rows(loaded, dropped):
        values.append(part.values)
        if part.weights is not None:
            found["sample_weight"].append(part.weights)
        if groups is not None:
            cells = labels_of(part.batch.columns[loaded.table.index(groups)])
            found["groups"].append(np.array(cells, dtype=object)[part.kept])
    known = {name: np.concatenate(parts) for name, parts in found.items() if parts}
    return Held(np.concatenate(values), known, dropped)


def estimate_matrix(given: NamedMatrix, shrinkage: float | str | None) -> CorrelationEstimate:
    """The matrix that a file holds, shrunk by a number."""
    if shrinkage == "auto":
        raise UsageError(
            "--shrinkage auto needs the rows, and the file holds a matrix.\n"
            "Give a number in (0, 1], such as --shrinkage 0.1."
        )
    return shrunk_matrix(given.R, given.names, check_shrinkage(shrinkage), scale=given.scale)


def read_rows(loaded: Loaded, dropped: list[int]) -> Iterator[Complete]:
    """Read the complete rows once, in batches that have some; note where the others stand."""
    require_rows(loaded, loaded.content.n_rows)
    n_rows = 0
    with console.progress(f"Reading {loaded.table.label}") as tell:
        for part in loaded.rows(lambda batch: tell(batch.fraction)):
            dropped.extend(part.dropped)
            n_rows += len(part.values)
            if len(part.values):
                yield part
    require_rows(loaded, n_rows)
