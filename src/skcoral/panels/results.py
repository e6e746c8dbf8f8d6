"""What a run over windows returns: outputs, and figures of every window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skcoral.core.display import Drawn
from skcoral.core.validation import listing
from skcoral.estimator import CORAL
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidArgumentError, SkippedWindowsWarning, warn
from skcoral.panels.solver import NUMBERS, Solver, Warned
from skcoral.panels.tables import Rows
from skcoral.panels.windows import Windows
from skcoral.show import sentences

_ROUNDING = 1e-9  # fidelities that differ by less are the same, as where several are at the floor
_WITHOUT = {  # why complete rows have no output, by the status of their window
    "none": "before the first window with enough complete rows",
    "short": "in windows with too few complete rows",
    "refused": "in windows that were refused",
}


@dataclass(frozen=True, eq=False, repr=False)
class Panel(Drawn):
    """Outputs of a table by the models of its windows, and what is known of each window.

    Frames are of the library of the table. Their rows are the windows, called by the label of the
    row they end with (and by their group): the index in pandas, the first columns in polars.

    Attributes
    ----------
    outputs : DataFrame or ndarray
        The table with its variables replaced by outputs, each row transformed by the model of its
        own window; missing where there is none.
    names : tuple of str
        The outputs.
    status : DataFrame
        ``status`` ("exact", "optimal", "best_found", "not_converged" as in a single fit; "short":
        fewer than ``min_rows`` complete rows; "refused": no model, see ``reason``), the number of
        complete ``rows`` and of ``missing`` ones, the label of the ``first`` row, and ``reason``.
    fidelity : DataFrame
        Correlation of each output with its source, within its window.
    turnover : DataFrame
        Sum of the absolute changes of each output's coefficients since the window before, on
        standardised variables.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skcoral.panels import rolling
    >>> rows = np.random.default_rng(0).normal(size=(40, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    >>> panel = rolling(pd.DataFrame(rows, columns=["a", "b"]), 30)
    >>> len(panel), panel.status["status"].unique().tolist()
    (11, ['exact'])
    """

    outputs: Any
    names: tuple[str, ...]
    keys: dict[str, Any]
    columns: dict[str, Any]
    figures: dict[str, Any]
    _rows: Rows
    _windows: Windows
    _solver: Solver

    _pictures: ClassVar[Mapping[str, str]] = {"windows": "WindowsDisplay"}

    @cached_property
    def status(self) -> Any:
        """How each window ended, and the rows it has."""
        names = ("status", "rows", "missing", "first", "reason")
        return self._rows.frame(self.keys, {name: self.columns[name] for name in names})

    @cached_property
    def fidelity(self) -> Any:
        """Correlation of each output with its source."""
        return self._of_outputs("fidelity")

    @cached_property
    def turnover(self) -> Any:
        """Change of each output's coefficients since the window before."""
        return self._of_outputs("turnover")

    def _of_outputs(self, figure: str) -> Any:
        columns = dict(zip(self.names, self.figures[figure].T, strict=True))
        return self._rows.frame(self.keys, columns)

    def to_frame(self) -> Any:
        """One row per window, with all figures: those of single outputs by their weakest or mean.

        ``threshold`` and ``threshold_upper`` are bounds of ρ★ (missing for a singular window, whose
        threshold takes as long as its solution and is left to ``model(t).threshold_``),
        ``objective`` is the residual above its ``lower_bound``, and ``largest_before`` and
        ``largest_after`` are the largest correlations. ``min_fidelity`` is that of the output
        ``weakest``, which counts the outputs where several share it ("3 of 12"), and ``turnover``
        is a mean over outputs.
        """
        return self._rows.frame(self.keys, self.columns)

    def __len__(self) -> int:
        return len(self.columns["status"])

    def model(self, t: Any, group: Any = None) -> CORAL:
        """The model that row ``t`` is transformed by, fitted anew to the rows of its window.

        Parameters
        ----------
        t : label
            Of the row: its index label or date; its position where rows have none.
        group : label, optional
            Of the group, where there are several: one label, or one for each column of ``by``.

        Returns
        -------
        CORAL
            Fitted, with its certificate.
        """
        rows = self._rows
        wanted = None if group is None else group if isinstance(group, tuple) else (group,)
        # A label may stand in several groups: the window of its first row in each of them.
        windows: dict[tuple[Any, ...], int] = {}
        for key, part in rows.groups:
            at = part.start + np.flatnonzero(rows.is_label(t)[part])[:1]
            if wanted in (None, key) and len(at) and self._windows.of_row[at[0]] >= 0:
                windows[key] = int(self._windows.of_row[at[0]])
        if not windows:
            where = "" if group is None else f" in group {group!r}"
            raise InvalidArgumentError(
                f"There is no row {t!r}{where} with a window of its own: give the label of a row "
                "(or its position, where rows have none) that has an output."
            )
        if len(windows) > 1:
            raise InvalidArgumentError(
                f"Row {t!r} is in {len(windows)} groups, {listing([str(key) for key in windows])}: "
                "say which one with group=."
            )
        (window,) = windows.values()
        span = slice(self._windows.starts[window], self._windows.ends[window])
        values = rows.values[rows.complete][span]
        weights = self._solver.weights(len(values))
        return self._solver.model().fit(named_rows(values, rows.names), sample_weight=weights)

    def summary(self) -> str:
        """How many windows there are, how they ended, and the range of their figures."""
        counts = sorted(Counter(self.columns["status"].tolist()).items())
        kinds = ", ".join(f"{n:,} {status}" for status, n in counts).replace("_", " ") or "none"
        windows = "window" if len(self) == 1 else "windows"
        n_groups = len(self._rows.groups)
        groups = f" in {n_groups:,} groups" if n_groups > 1 else ""
        lines = [f"{len(self):,} {windows} of {len(self.names)} outputs{groups}: {kinds}."]
        figures = ("largest_before", "largest_after", "min_fidelity", "threshold")
        lines.append(sentences.windows(*(self.columns[name] for name in figures)))
        return "\n".join(line for line in lines if line)

    def without_output(self) -> Counter[str]:
        """How many rows have no output, by the reason."""
        complete = self._rows.complete
        status = np.append(self.columns["status"], "none")[self._windows.of_row]
        counts = Counter(_WITHOUT[kind] for kind in status[complete] if kind in _WITHOUT)
        counts["with missing values"] = int((~complete).sum())
        return +counts


def window_columns(
    windows: Windows, figures: dict[str, Any], names: tuple[str, ...], labels: Any
) -> dict[str, Any]:
    """Columns with one figure per window, and the label of the row that it begins with."""
    fidelity, used = figures["fidelity"], windows.ends - windows.starts
    solved = np.isfinite(fidelity).all(axis=1)
    lowest = np.where(solved, fidelity.min(axis=1, initial=np.inf), np.nan)
    at_lowest = fidelity <= lowest[:, None] + _ROUNDING
    return {
        "first": labels[windows.first],
        "rows": used,
        "missing": windows.last - windows.first + 1 - used,
        **{name: figures[name] for name in ("status", *NUMBERS)},
        "min_fidelity": lowest,
        "weakest": np.array([_weakest(names, at) for at in at_lowest], dtype=object),
        "turnover": figures["turnover"].mean(axis=1),
        "reason": figures["reason"],
    }


def _weakest(names: tuple[str, ...], at_lowest: Any) -> str:
    """The output with the lowest fidelity, or how many have it; empty where there is no model."""
    places = np.flatnonzero(at_lowest)
    if len(places) > 1:
        return f"all {len(names)}" if at_lowest.all() else f"{len(places)} of {len(names)}"
    return names[places[0]] if len(places) else ""


def row_label(value: Any) -> str:
    """The label of a row as people write it: a date at midnight is a date."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[s]").item()
    return str(value).removesuffix(" 00:00:00")


def warn_about_windows(warned: Warned, columns: dict[str, Any], labels: Any) -> None:
    """Warn once for all windows of what single fits warn of, and of windows without a model."""
    for category, (message, windows) in warned.items():
        count = f"{len(windows)} window{'s' if len(windows) > 1 else ''}"
        first = row_label(labels[windows[0]])
        warn(f"{count}, first {first}: {message}", category)
    status, parts = columns["status"], []
    if not len(status):
        warn(
            "No window has enough complete rows, so no row has an output: choose a shorter window "
            "or a smaller `min_rows`.",
            SkippedWindowsWarning,
        )
    for kind, reason in (("short", "with too few complete rows"), ("refused", "refused")):
        where = np.flatnonzero(status == kind)
        if len(where):
            k = int(where[0])
            few = f"{columns['rows'][k]} rows, {columns['missing'][k]} missing"
            why = few if kind == "short" else columns["reason"][k]
            parts.append(f"{len(where)} {reason} (first: {row_label(labels[k])}, {why})")
    if parts:
        warn(
            f"{np.isin(status, ('short', 'refused')).sum()} of {len(status)} windows have no "
            f"model: {'; '.join(parts)}. Their rows have no output; `status` lists them.",
            SkippedWindowsWarning,
        )
