"""Tables in and out: variables, dates and groups of a pandas or polars frame, or of an array."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.validation import check_complete, listing
from skcoral.estimator.rows import check_numeric, check_readable
from skcoral.exceptions import InvalidArgumentError, InvalidTableError

_KEPT = "row"  # what windows are called by where rows have no labels


@dataclass
class Rows:
    """The rows of a table, sorted by group and otherwise in their order."""

    source: Any  # the table as it came
    names: tuple[str, ...]  # the variables
    values: Array  # their values, NaN where missing, in the order of ``order``
    order: Any  # where each of these rows stands in the table
    labels: Any  # date, index label or position of each row, in the order of the table
    label: str  # what the labels are
    groups: list[tuple[tuple[Any, ...], slice]]  # their keys, and where their rows are
    by: tuple[str, ...]  # what the groups are called
    dated: bool  # whether the labels may be dates

    @property
    def complete(self) -> Any:
        """Which rows have no missing value."""
        return ~np.isnan(self.values).any(axis=1)

    def is_label(self, t: Any) -> Any:
        """Which rows have this label; a date may be text, in the time zone of the labels."""
        import pandas as pd

        labels: Any = self.labels[self.order]
        if isinstance(t, str) and str(getattr(labels, "dtype", "")).startswith("datetime"):
            t = pd.to_datetime(t, errors="coerce")
            zone = getattr(labels.dtype, "tz", None)
            t = t.tz_localize(zone) if zone is not None and t.tzinfo is None else t
        return np.asarray(labels == t)

    def like_source(self, outputs: Array, names: Sequence[str]) -> Any:
        """The table with its variables replaced by outputs, rows in their own order."""
        placed = np.empty_like(outputs)
        placed[self.order] = outputs
        table = self.source
        if not hasattr(table, "columns"):
            return placed
        columns: dict[str, Any] = dict(zip(names, placed.T, strict=True))
        variables = [name for name in table.columns if str(name) in set(self.names)]
        if _is_polars(table):
            import polars as pl

            table = table if tuple(names) == self.names else table.drop(variables)
            return table.with_columns(**{name: pl.Series(k) for name, k in columns.items()})
        if tuple(names) != self.names:
            table = table.drop(columns=variables)
        return table.rename(columns=dict(zip(variables, self.names, strict=True))).assign(**columns)

    def frame(self, keys: dict[str, Any], columns: dict[str, Any]) -> Any:
        """A frame of the same library: ``keys`` as the index, or as first columns in polars."""
        if _is_polars(self.source):
            import polars as pl

            first = {free_name(name, columns): values for name, values in keys.items()}
            return pl.DataFrame({**first, **columns})
        import pandas as pd

        index = pd.MultiIndex.from_arrays(list(keys.values()), names=list(keys))
        if len(keys) == 1:
            ((name, values),) = keys.items()
            index = pd.Index(values, name=name)
        return pd.DataFrame(columns, index=index)


def read(X: Any, *, by: Any = None, on: str | None = None) -> Rows:
    """Tell the variables of a table from its dates and groups, and sort by group."""
    table = _as_pandas(X)
    columns = [str(name) for name in table.columns]
    known = {*columns, *map(str, table.index.names)}
    by_names = (by,) if isinstance(by, str) else ()
    if isinstance(by, list | tuple) and all(isinstance(k, str) and k in known for k in by):
        by_names = tuple(by)
    aside = [*by_names, *([] if on is None else [on])]
    missing = [name for name in aside if name not in known]
    if missing:
        raise InvalidArgumentError(
            f"There is no column {listing(missing)}; the table has {listing(columns)}."
        )
    variables = table.drop(columns=[name for name in table.columns if str(name) in aside])
    names = tuple(str(name) for name in variables.columns)
    if not names:
        raise InvalidTableError("The table has no columns besides dates and groups to fit.")
    check_readable(variables)
    check_numeric(variables)
    values = variables.to_numpy(dtype=np.float64, na_value=np.nan)
    check_complete(values, names, may_miss=True)
    order: Any = np.arange(len(values))
    groups: list[tuple[tuple[Any, ...], slice]] = [((), slice(0, len(values)))]
    if by is not None:
        keys = [np.asarray(_column(table, name)) for name in by_names] or [_row_labels(X, by)]
        order, groups = _sorted_groups(keys)
        by_names = by_names or ("group",)
    labels, label, dated = _labels(table, on)
    if on is not None and _is_polars(X):
        labels = X[on].to_numpy()  # dates stay dates, where pandas has times only
    label = free_name(label, by_names)
    source = table if hasattr(X, "column_names") else X
    return Rows(source, names, values[order], order, labels, label, groups, by_names, dated)


def _as_pandas(X: Any) -> Any:
    """The table as a frame of pandas; columns of an array are called x0, x1 and so on."""
    import pandas as pd

    if hasattr(X, "collect"):
        check_readable(X)  # a lazy table is refused
    if hasattr(X, "column_names"):  # a table of Arrow's
        return X.to_pandas()
    if _is_polars(X):
        return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
    if hasattr(X, "columns"):
        return X
    if hasattr(X, "toarray") or np.ndim(X) != 2:
        what = "a sparse one" if hasattr(X, "toarray") else f"an array of shape {np.shape(X)}"
        raise InvalidTableError(f"A dense table of rows and columns is needed; got {what}.")
    values = np.asarray(X)
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])


def _column(table: Any, name: str) -> Any:
    """A column, or else an index level, by its name as text."""
    for label in table.columns:
        if str(label) == name:
            return table[label].array
    return table.index.get_level_values(name)


def free_name(name: str, taken: Any) -> str:
    """The name, with underscores where others have it."""
    while name in taken:
        name += "_"
    return name


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars"


def _labels(table: Any, on: str | None) -> tuple[Any, str, bool]:
    """Labels of the rows, what they are called, and whether they may be dates."""
    if on is not None:
        return _column(table, on), on, True
    index = table.index
    if index.nlevels > 1:
        for level in range(index.nlevels):
            values = index.get_level_values(level)
            if values.inferred_type.startswith("datetime"):
                return values, str(index.names[level] or f"level_{level}"), True
        return np.arange(len(table)), _KEPT, False
    return index, str(index.name or _KEPT), index.inferred_type.startswith("datetime")


def _row_labels(X: Any, by: Any) -> Any:
    """Labels of groups, one per row."""
    index: Any = getattr(X, "index", None)
    labels: Any = getattr(by, "index", None)
    if hasattr(index, "equals") and hasattr(labels, "equals") and not labels.equals(index):
        raise InvalidArgumentError(
            "by has another index than the table: give it the same one (by.reindex(X.index)), "
            "or labels in the order of the rows (by.to_numpy())."
        )
    values = np.asarray(by)
    if values.ndim != 1 or len(values) != len(X):
        raise InvalidArgumentError(
            "by must name columns or index levels, or hold one label per row "
            f"({len(X)} rows); got {by!r:.80}."
        )
    return values


def _sorted_groups(keys: list[Any]) -> tuple[Any, list[tuple[tuple[Any, ...], slice]]]:
    """Rows by group in the order in which groups first occur, and the groups."""
    import pandas as pd

    if any(pd.isna(key).any() for key in keys):
        raise InvalidTableError("Some rows have no group (a missing label): fill or drop them.")
    if not len(keys[0]):  # pandas 2.2 does not count the levels of an empty index
        return np.zeros(0, dtype=np.intp), []
    numbers, groups = pd.MultiIndex.from_arrays(keys).factorize()
    ends = np.cumsum(np.bincount(numbers, minlength=len(groups)))
    slices = (slice(int(a), int(b)) for a, b in itertools.pairwise([0, *ends]))
    return np.argsort(numbers, kind="stable"), list(zip(map(tuple, groups), slices, strict=True))
