"""The windows of a run in blocks, solved by any number of processes.

Blocks consist of whole chains, which are solved independently of each other, so that the number of
processes changes nothing. A block keeps no transformations: it returns outputs, figures, and the
first and the last transformation, from which the change at its borders is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral._validation import check_jobs
from skcoral.panels.solver import CHAIN, Run, Solver, Warned, empty_figures
from skcoral.panels.windows import Windows
from skcoral.results import Array

_CELLS = 2_000_000  # entries of the matrices of a block, which bounds its memory
_CHAINS = 128  # chains in a block at most


@dataclass
class Block:
    """Some windows, and the rows that their models are applied to.

    ``at`` are the places of the windows and of these rows, and ``fresh`` the windows that begin a
    chain.
    """

    at: tuple[Any, Any]
    rows: Array
    starts: Any
    ends: Any
    fresh: Any
    group: Any
    new: Array
    window: Any


@dataclass
class SolvedBlock:
    """Outputs of the rows of a block and figures of its windows.

    ``group`` and ``T`` are those of its first and of its last window.
    """

    at: tuple[Any, Any]
    outputs: Array
    figures: dict[str, Any]
    warned: Warned
    group: Any
    T: Array


def run(
    values: Array,
    complete: Any,
    windows: Windows,
    solver: Solver,
    *,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> tuple[Array, dict[str, Any], Warned]:
    """Solve the windows: outputs of all rows, figures of all windows, and warnings.

    Rows are sorted by group, and ``complete`` ones have no missing value. The callback is given the
    number of windows done and their total.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    n_jobs = check_jobs(n_jobs)
    outputs = np.full((len(values), solver.n_outputs), np.nan)
    figures = empty_figures(len(windows.last), solver.n_outputs, "short")
    warned: Warned = {}
    blocks = _blocks(values, complete, windows, effective_n_jobs(n_jobs))
    tasks = (delayed(solve_block)(solver, block) for block in blocks)
    done, total = 0, int(windows.long_enough.sum())
    before: SolvedBlock | None = None
    for part in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        at, rows = part.at
        outputs[rows] = part.outputs
        if before is not None and before.group[1] == part.group[0]:
            part.figures["turnover"][0] = np.abs(part.T[0] - before.T[1]).sum(axis=0)
        before = part
        for name, column in part.figures.items():
            figures[name][at] = column
        for kind, (message, where) in part.warned.items():
            warned.setdefault(kind, (message, []))[1].extend(at[where].tolist())
        done += len(at)
        if callback is not None:
            callback(done, total)
    return outputs, figures, warned


def solve_block(solver: Solver, block: Block) -> SolvedBlock:
    """Solve the windows of a block and transform its rows."""
    run = Run(solver, block.rows, block.starts, block.ends)
    left = np.ones(len(block.starts), dtype=bool)
    if solver.batched:
        left = run.solve_in_batches(block.fresh)
    for k in np.flatnonzero(left).tolist():
        run.fit_one(k, int(block.at[0][k]))
    T, ends = run.models.T, [0, -1]
    change = np.abs(np.diff(T, axis=0)).sum(axis=1)
    change[np.diff(block.group) != 0] = np.nan
    run.figures["turnover"][1:] = change
    outputs = run.models.outputs(block.new, block.window)
    return SolvedBlock(block.at, outputs, run.figures, run.warned, block.group[ends], T[ends])


def _blocks(values: Array, complete: Any, windows: Windows, n_jobs: int) -> Iterator[Block]:
    """The windows that are long enough, each block with a copy of no more rows than it needs."""
    on = np.flatnonzero(windows.long_enough)
    if not len(on):
        return
    starts, ends, group = windows.starts[on], windows.ends[on], windows.group[on]
    fresh = (np.arange(len(on)) - np.searchsorted(group, group)) % CHAIN == 0
    number = np.full(len(windows.last) + 1, -1)  # the last place is for rows without a window
    number[on] = np.arange(len(on))
    window = np.where(complete, number[windows.of_row], -1)
    transformed = np.flatnonzero(window >= 0)
    rows = np.flatnonzero(complete)
    firsts = np.flatnonzero(fresh)
    room = max(1, _CELLS // (CHAIN * values.shape[1] ** 2))
    chains = max(1, min(_CHAINS, room, -(-len(firsts) // n_jobs)))
    edges = np.append(firsts[::chains], len(on))
    borders = np.searchsorted(window[transformed], edges)
    for k in range(len(edges) - 1):
        part = slice(edges[k], edges[k + 1])
        new = transformed[borders[k] : borders[k + 1]]
        start, end = int(starts[part].min()), int(ends[part].max())
        yield Block(
            (on[part], new),
            values[rows[start:end]],
            starts[part] - start,
            ends[part] - start,
            fresh[part],
            group[part],
            values[new],
            window[new] - edges[k],
        )
