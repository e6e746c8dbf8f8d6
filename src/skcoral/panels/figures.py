"""Figures of all windows of a run, solved or not, and what has to be said about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from skcoral.exceptions import SkippedWindowsWarning
from skcoral.panels.running import Run
from skcoral.panels.windows import Windows


def figures_of(
    cuts: list[Windows], offsets: list[int], done: Run, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of the windows, and those that each output has.

    Parameters
    ----------
    cuts : list of Windows
        The windows of each group.
    offsets : list of int
        Where the rows of each group begin.
    done : Run
        What was solved.
    names : tuple of str
        The outputs.
    """
    n, on, f = len(done.solvable), done.solvable, done.figures
    nothing = [np.empty(0, dtype=np.intp)]
    used = np.concatenate([c.ends - c.starts for c in cuts] or nothing)
    spans = np.concatenate([c.last - c.first + 1 for c in cuts] or nothing)
    groups = list(zip(offsets, cuts, strict=True))

    def spread(values: Any) -> Any:
        out = np.full((n, *values.shape[1:]), np.nan)
        out[on] = values
        return out

    status = np.full(n, "short", dtype="U16")
    status[on] = f.status
    reason = np.full(n, "", dtype=object)
    for k, text in f.reasons.items():
        reason[np.flatnonzero(on)[k]] = text
    fidelity, turnover = spread(f.fidelity), spread(done.turnover)
    solved = np.isfinite(fidelity).all(axis=1)
    weakest = np.full(n, "", dtype=object)
    weakest[solved] = np.array(names, dtype=object)[fidelity[solved].argmin(axis=1)]
    columns = {
        "first": np.concatenate([offset + c.first for offset, c in groups] or nothing),
        "last": np.concatenate([offset + c.last for offset, c in groups] or nothing),
        "rows": used,
        "missing": spans - used,
        "status": status,
        "threshold": spread(f.lower),
        "threshold_upper": spread(f.upper),
        "objective": spread(f.objective),
        "lower_bound": spread(f.bound),
        "largest_before": spread(f.before),
        "largest_after": spread(f.after),
        "min_fidelity": np.where(solved, fidelity.min(axis=1, initial=np.inf), np.nan),
        "weakest": weakest,
        "turnover": turnover.mean(axis=1),
        "reason": reason,
    }
    return columns, {"fidelity": fidelity, "turnover": turnover}


def tell(
    done: Run, columns: dict[str, Any], name: Callable[[int], str], *, stacklevel: int
) -> None:
    """Say once for all windows what single fits warn of, and which windows have no model."""
    place = np.flatnonzero(done.solvable)
    for kind, (message, where) in done.figures.warned.items():
        count = f"{len(where)} window{'s' if len(where) > 1 else ''}"
        warnings.warn(
            f"{count}, first {name(place[where[0]])}: {message}", kind, stacklevel=stacklevel
        )
    status = columns["status"]
    without = {s: np.flatnonzero(status == s) for s in ("short", "refused")}
    told = []
    if len(without["short"]):
        k = int(without["short"][0])
        told.append(
            f"{len(without['short'])} with too few complete rows (first: {name(k)}, "
            f"{columns['rows'][k]} rows, {columns['missing'][k]} missing)"
        )
    if len(without["refused"]):
        k = int(without["refused"][0])
        told.append(f"{len(without['refused'])} refused (first: {name(k)}, {columns['reason'][k]})")
    if told:
        warnings.warn(
            f"{sum(map(len, without.values()))} of {len(status)} windows have no model: "
            f"{'; '.join(told)}. Their rows have no output; `status` lists them.",
            SkippedWindowsWarning,
            stacklevel=stacklevel,
        )
