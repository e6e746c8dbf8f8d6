"""Groups of a Dask DataFrame, each decorrelated where its rows are brought together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from skcoral.exceptions import InvalidArgumentError, SkippedWindowsWarning


@dataclass(frozen=True, repr=False)
class DaskPanel:
    """What :func:`skcoral.panels.grouped` returns for a Dask DataFrame.

    Attributes
    ----------
    outputs : dask.dataframe.DataFrame
        The table with its variables replaced by outputs; rows come in the order of the groups.
    windows : dask.dataframe.DataFrame
        One row per group or window with its figures, as :meth:`skcoral.panels.Panel.to_frame`.

    Examples
    --------
    >>> import dask.dataframe as dd, numpy as np, pandas as pd
    >>> from skcoral.panels import grouped
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    >>> panel = grouped(dd.from_pandas(rows.assign(desk=["x", "y"] * 20), 2), by="desk")
    >>> panel.outputs.compute().shape
    (40, 3)
    """

    outputs: Any
    windows: Any

    def __repr__(self) -> str:
        columns, parts = len(self.outputs.columns), self.outputs.npartitions
        return f"DaskPanel({columns} columns in {parts} partitions, computed when asked for)"


def grouped_dask(X: Any, by: Any, **arguments: Any) -> DaskPanel:
    """Bring the rows of each group together and run :func:`skcoral.panels.grouped` there.

    Partitions may come in any order, so that windows follow the column ``on``, or else the index,
    which must give the order of time.
    """
    names = [by] if isinstance(by, str) else list(by)
    missing = [name for name in names if name not in X.columns]
    if missing or not names:
        raise InvalidArgumentError(
            f"by must name columns of the Dask DataFrame; got {by!r}, and it has "
            f"{[str(name) for name in X.columns][:8]}."
        )
    arguments = {"by": names, **arguments}
    together = X.shuffle(on=names)  # every row of a group in one partition, in any order
    made = {
        what: together.map_partitions(_part, what, arguments, meta=_part(X._meta, what, arguments))
        for what in ("outputs", "windows")
    }
    return DaskPanel(**made)


def _part(rows: Any, what: str, arguments: dict[str, Any]) -> Any:
    """Outputs or figures of the groups in one partition."""
    from skcoral.panels.rolling import grouped

    on = arguments.get("on")
    rows = rows.sort_index(kind="stable") if on is None else rows.sort_values(on, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedWindowsWarning)  # the status says so
        panel = grouped(rows, **arguments)
    return panel.outputs if what == "outputs" else panel.to_frame().reset_index()
