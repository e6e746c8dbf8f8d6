"""The rows of a table in memory, and the correlations that are estimated from them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.cli import console
from skcoral.cli.loading import Loaded, naming, require_room, require_rows
from skcoral.correlation import CorrelationEstimate, estimate, sample_correlation
from skcoral.exceptions import SingularCorrelationWarning
from skcoral.moments import Moments
from skcoral.results import Array
from skcoral.tables.table import labels_of


@dataclass(frozen=True)
class Correlations:
    """A correlation matrix that may be singular, and how to get one that can be solved for."""

    R: Any
    solvable: Callable[[], Any]
    scale: Array
    n_rows: int | None
    dropped: list[int]


def correlations(loaded: Loaded) -> Correlations:
    """Read the rows of a table, or take the matrix that the file holds."""
    matrix = loaded.matrix
    if matrix is not None:
        found = matrix
        scale = np.ones(len(found.R)) if found.scale is None else found.scale
        return Correlations(found.R, lambda: found, scale, None, [])
    if loaded.needs_rows:
        return _of_rows(loaded)
    moments, dropped = gather(loaded)
    with naming(loaded.table):
        R = sample_correlation(moments)

    def solvable() -> CorrelationEstimate:
        return estimate(moments, on_singular="solve")

    return Correlations(R, solvable, moments.scale, moments.n_rows, dropped)


def _of_rows(loaded: Loaded) -> Correlations:
    """Correlations that take all rows at once; of many more columns than rows, as a factor."""
    from skcoral.estimator.estimation import estimate_rows

    require_room(loaded)
    held = hold(loaded)
    with naming(loaded.table), warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularCorrelationWarning)  # told with the answer
        table, moments, _ = estimate_rows(loaded.model(), held.values, loaded.names, held.weights)
    return Correlations(table.R, lambda: table, moments.scale, moments.n_rows, held.dropped)


@dataclass(frozen=True)
class Held:
    """Rows in memory, with weights and labels of groups where these are asked for."""

    values: Array
    weights: Array | None
    labels: list[Any]
    dropped: list[int]


def hold(loaded: Loaded, groups: str | None = None) -> Held:
    """Read all rows: the numbers only, as the cells that they are made of take more room."""
    values: list[Array] = [np.empty((0, len(loaded.names)))]
    weights: list[Array] = []
    labels: list[Any] = []
    dropped: list[int] = []
    with console.progress(f"Reading {loaded.table.label}") as tell:
        for part in loaded.rows(lambda batch: tell(batch.fraction)):
            values.append(part.values)
            dropped.extend(part.dropped)
            if part.weights is not None:
                weights.append(part.weights)
            if groups is not None:
                cells = labels_of(part.batch.columns[loaded.table.index(groups)])
                labels.extend(itertools.compress(cells, part.kept))
    rows = np.concatenate(values)
    require_rows(loaded, len(rows))
    return Held(rows, np.concatenate(weights) if weights else None, labels, dropped)


def gather(loaded: Loaded) -> tuple[Moments, list[int]]:
    """Moments of the complete rows, and where the incomplete ones stand."""
    require_rows(loaded, loaded.content.n_rows)
    moments = Moments(loaded.names, weight_kind=loaded.weight_kind)
    dropped: list[int] = []
    n_rows = 0
    with console.progress(f"Reading {loaded.table.label}") as tell:
        for part in loaded.rows(lambda batch: tell(batch.fraction)):
            if len(part.values):
                moments.update(part.values, sample_weight=part.weights)
            dropped.extend(part.dropped)
            n_rows += len(part.values)
    require_rows(loaded, n_rows)
    return moments, dropped
