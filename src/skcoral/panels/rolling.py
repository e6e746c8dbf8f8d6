"""Rolling and expanding windows over a table, and the same for each of its groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.core.validation import check_count, listing
from skcoral.exceptions import InvalidTableError
from skcoral.panels.results import Panel, warn_about_windows, window_columns
from skcoral.panels.solver import Solver, run
from skcoral.panels.tables import Rows, read
from skcoral.panels.windows import Rule, cut, read_dates, rule


def rolling(
    X: Any,
    window: Any,
    *,
    by: Any = None,
    on: str | None = None,
    step: int = 1,
    lag: int = 0,
    min_rows: int | None = None,
    halflife: float | None = None,
    expanding: bool = False,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> Panel:
    """Decorrelate each row by the model of its own window of rows.

    Every window is solved and certified as :class:`skcoral.CORAL` would solve its rows alone, to
    1e-8 in the outputs, and faster, from the solution of the window before. No output depends on a
    later row.

    Parameters
    ----------
    X : DataFrame (pandas or polars) or array of shape (n, p)
        Rows in the order of time, within each group. Rows with missing values belong to no window
        and have no output.
    window : int, str or timedelta
        Rows of a window, or the time it reaches back, such as ``"90D"``, exclusive of its
        beginning; the row it ends with is its last.
    by : str, list of str or array-like, optional
        Columns or index levels whose values are groups, or one label per row: each group has
        windows of its own.
    on : str, optional
        Column of dates; the index by default. Rows out of the order of their dates are refused.
    step : int, default=1
        Rows from the end of a window to that of the next. Rows in between belong to the last
        window that has ended.
    lag : int, default=0
        0: a row is part of its own window. 1: its window ends with the row before, so that outputs
        are made of the past alone. Larger numbers leave out more rows.
    min_rows : int, optional
        Complete rows that a window needs: by default the whole window, or p + 1 in a span of time.
        Windows with fewer have the status "short".
    halflife : float, optional
        Rows count less the older they are, half as much after this many: they have the
        ``sample_weight`` ``0.5 ** (age / halflife)``.
    expanding : bool, default=False
        Windows begin with the first row; ``window`` is then the least number of rows.
    n_jobs : int, optional
        Processes, as in joblib. The outputs do not depend on it.
    callback : callable, optional
        Called as ``callback(done, total)`` with numbers of windows.
    **settings
        Of :class:`skcoral.CORAL`: ``rho_min``, ``criterion`` and the others.

    Returns
    -------
    Panel

    Warns
    -----
    SkippedWindowsWarning
        Some windows after the first have no model: too few complete rows, or constant columns.
        Or there is no window at all.
    SingularCorrelationWarning
        Some windows are singular; one warning for all of them.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skcoral.panels import rolling
    >>> rng = np.random.default_rng(0)
    >>> days = pd.date_range("2024-01-01", periods=120, freq="B")
    >>> X = pd.DataFrame(rng.normal(size=(120, 3)) @ [[1, 0.8, 0.3], [0, 1, 0.5], [0, 0, 1]],
    ...                  index=days, columns=["value", "size", "carry"])
    >>> panel = rolling(X, 60, rho_min=0.95, lag=1)
    >>> len(panel)
    61
    >>> int(panel.outputs.notna().all(axis=1).sum())  # the first 60 rows have no past
    60
    >>> bool((panel.fidelity.min(axis=1) >= 0.95).all())
    True
    """
    rows = read(X, by=by, on=on)
    how = rule(window, len(rows.names), expanding=expanding, step=step, lag=lag, min_rows=min_rows)
    return _panel(rows, how, Solver(rows.names, settings, halflife), n_jobs, callback)


def grouped(
    X: Any,
    by: Any,
    *,
    min_rows: int = 2,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> Panel:
    """Decorrelate each group of rows by a model of its own.

    Windows within groups are those of :func:`rolling` with ``by``.

    Parameters
    ----------
    X : DataFrame (pandas or polars)
        The rows.
    by : str, list of str or array-like
        Columns or index levels whose values are groups, or one label per row.
    min_rows : int, default=2
        Complete rows that a group needs; groups with fewer have the status "short".
    n_jobs, callback, **settings
        As in :func:`rolling`.

    Returns
    -------
    Panel
        With one window for each group.

    Examples
    --------
    >>> from skcoral.datasets import load_wine
    >>> from skcoral.panels import grouped
    >>> wine = load_wine().to_frame().iloc[:, :4]
    >>> panel = grouped(wine, by=[k % 2 for k in range(len(wine))], rho_min=0.9)
    >>> panel.status["status"].tolist()
    ['exact', 'exact']
    """
    how = Rule(check_count("min_rows", min_rows, minimum=2))
    rows = read(X, by=by)
    return _panel(rows, how, Solver(rows.names, settings), n_jobs, callback)


def _times(rows: Rows, how: Rule) -> Any:
    """Nanoseconds in the order of the sorted rows, which has to be that of time."""
    if how.span is None and (how.rows is None or not rows.dated):
        return None
    if not rows.dated:
        raise InvalidTableError(
            "Windows of time need dates: give on= the name of the column that holds them, or a "
            "table with a date index."
        )
    index: Any = getattr(rows.source, "index", np.arange(len(rows.order)))
    times = read_dates(rows.labels, rows.label)[rows.order]
    for key, part in rows.groups:
        back = np.flatnonzero(np.diff(times[part]) < 0)
        if len(back):
            where = f" in group {listing([str(k) for k in key])}" if key else ""
            row = index[int(rows.order[part][back[0] + 1])]
            raise InvalidTableError(
                f"Rows are not in the order of `{rows.label}`{where}: "
                f"{getattr(index, 'name', None) or 'row'} {row} is earlier than the one before. "
                "Sort them by date, or name the columns that tell several series apart (by=)."
            )
    return times


def _panel(
    rows: Rows,
    how: Rule,
    solver: Solver,
    n_jobs: int | None,
    callback: Callable[[int, int], object] | None,
) -> Panel:
    complete, names = rows.complete, solver.output_names
    windows = cut(complete, _times(rows, how), how, [part for _, part in rows.groups])
    outputs, figures, warned = run(
        rows.values, complete, windows, solver, n_jobs=n_jobs, callback=callback
    )
    labels = rows.labels[rows.order]
    columns, last = window_columns(windows, figures, names, labels), labels[windows.last]
    warn_about_windows(warned, columns, last)
    keys: dict[str, Any] = {
        name: [rows.groups[group][0][k] for group in windows.group]
        for k, name in enumerate(rows.by)
    }
    outputs = rows.like_source(outputs, names)
    keys[rows.label] = last
    return Panel(outputs, names, keys, columns, figures, rows, windows, solver)
