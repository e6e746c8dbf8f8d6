"""One run over many windows: cut into blocks, solved in any number of processes, put together.

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
from skcoral.panels.solving import CHAIN, Solutions, Solver
from skcoral.panels.windows import Windows
from skcoral.results import Array

_CELLS = 2_000_000  # entries of the matrices of a block, which bounds its memory
_CHAINS = 128  # chains in a block at most
_GROUP = 2**32  # chains are numbered within their group


@dataclass
class Block:
    """Some windows, and the rows that their models are applied to."""

    rows: Array
    starts: Any
    ends: Any
    chain: Any
    new: Array
    window: Any


@dataclass
class Solved:
    """What is left of a block: outputs of its rows, figures of its windows.

    ``turnover`` sums the absolute changes of the coefficients of each output since the window
    before.
    """

    outputs: Array
    figures: Solutions
    turnover: Array
    first: Array
    last: Array


@dataclass
class Run:
    """Outputs of all rows, and figures of all windows (``solvable`` ones in ``figures``)."""

    outputs: Array
    solvable: Any
    figures: Solutions
    turnover: Array


def run(
    values: Array,
    complete: Any,
    cuts: list[Windows],
    solver: Solver,
    *,
    n_jobs: int | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Run:
    """Solve the windows of all groups.

    Parameters
    ----------
    values, complete : ndarray
        Rows sorted by group, and which of them have no missing value.
    cuts : list of Windows
        The windows of each group.
    solver : Solver
        The settings.
    n_jobs : int, optional
        Processes, as in joblib.
    callback : callable, optional
        Called with the number of windows done and their total.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    n_jobs = check_jobs(n_jobs)
    layout = _Layout(complete, cuts)
    places = layout.places(values.shape[1], effective_n_jobs(n_jobs))
    outputs = np.full((len(values), solver.n_outputs), np.nan)
    parts: list[Solved] = []
    done, total = 0, len(layout.starts)
    tasks = (delayed(solve_block)(solver, block) for block in layout.blocks(values, places))
    for part in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        parts.append(part)
        done += len(part.turnover)
        if callback is not None:
            callback(done, total)
    for (at, _), part in zip(places, parts, strict=True):
        outputs[at] = part.outputs
    for before, after, (_, (start, _)) in zip(parts, parts[1:], places[1:], strict=False):
        if layout.chain[start] // _GROUP == layout.chain[start - 1] // _GROUP:
            after.turnover[0] = np.abs(after.first - before.last).sum(axis=0)
    figures = Solutions.empty(0, values.shape[1], solver.n_outputs)
    turnover = np.empty((0, solver.n_outputs))
    if parts:
        figures = Solutions.joined([part.figures for part in parts])
        turnover = np.concatenate([part.turnover for part in parts])
    return Run(outputs, layout.solvable, figures, turnover)


def solve_block(solver: Solver, block: Block) -> Solved:
    """Solve the windows of a block and transform its rows."""
    found = solver.solve(block.rows, block.starts, block.ends, block.chain)
    outputs = found.outputs(block.new, block.window)
    T, found.T = found.T, np.empty((0, 0, 0))
    found.maps.clear()
    turnover = np.full(found.fidelity.shape, np.nan)
    turnover[1:] = np.abs(np.diff(T, axis=0)).sum(axis=1)
    group = block.chain // _GROUP
    turnover[1:][group[1:] != group[:-1]] = np.nan
    return Solved(outputs, found, turnover, T[0].copy(), T[-1].copy())


class _Layout:
    """Where the windows of all groups lie among all rows."""

    def __init__(self, complete: Any, cuts: list[Windows]) -> None:
        starts, ends, chain, of_row, solvable = [], [], [], [], []
        seen = np.concatenate([[0], np.cumsum(complete)])
        row = count = 0
        for number, cut in enumerate(cuts):
            n = len(cut.of_row)
            on = np.flatnonzero(cut.long_enough)
            offset = int(seen[row])
            starts.append(cut.starts[on] + offset)
            ends.append(cut.ends[on] + offset)
            chain.append(number * _GROUP + np.arange(len(on)) // CHAIN)
            rank = np.full(len(cut.last) + 1, -1)  # the last place is for rows without a window
            rank[on] = count + np.arange(len(on))
            of_row.append(np.where(complete[row : row + n], rank[cut.of_row], -1))
            solvable.append(cut.long_enough)
            row, count = row + n, count + len(on)
        nothing = [np.empty(0, dtype=np.intp)]
        self.complete = complete
        self.starts, self.ends = np.concatenate(starts or nothing), np.concatenate(ends or nothing)
        self.chain = np.concatenate(chain or nothing)
        of_rows = np.concatenate(of_row or nothing)
        self.solvable = np.concatenate(solvable or [np.empty(0, dtype=bool)])
        self.transformed = np.flatnonzero(of_rows >= 0)
        self.window = of_rows[self.transformed]

    def places(self, p: int, n_jobs: int) -> list[tuple[Any, tuple[int, int]]]:
        """Rows that the windows of each block transform, and the range of these windows."""
        firsts = np.flatnonzero(np.diff(self.chain, prepend=-1))
        if not len(firsts):
            return []
        room = max(1, _CELLS // (CHAIN * p * p))
        chains = max(1, min(_CHAINS, room, -(-len(firsts) // n_jobs)))
        edges = np.append(firsts[::chains], len(self.chain))
        bounds = np.searchsorted(self.window, edges)
        return [
            (self.transformed[low:high], (int(start), int(end)))
            for low, high, start, end in zip(
                bounds[:-1], bounds[1:], edges[:-1], edges[1:], strict=True
            )
        ]

    def blocks(self, values: Array, places: list[Any]) -> Iterator[Block]:
        """The blocks, each with a copy of no more rows than it needs."""
        rows = np.flatnonzero(self.complete)
        low = 0
        for at, (first, after) in places:
            part = slice(first, after)
            starts, ends = self.starts[part], self.ends[part]
            start, end = int(starts.min()), int(ends.max())
            window = self.window[low : low + len(at)] - first
            low += len(at)
            yield Block(
                values[rows[start:end]],
                starts - start,
                ends - start,
                self.chain[part],
                values[at],
                window,
            )
