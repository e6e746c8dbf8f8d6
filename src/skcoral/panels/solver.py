"""Windows solved one after the other, each from the solution of the one before it.

Windows are solved in chains of neighbours. A chain begins with a fit of its own, so that chains are
independent of each other, of later rows and of the number of processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from skcoral.core import limits
from skcoral.core.arrays import Array
from skcoral.core.linalg import largest_residuals
from skcoral.core.validation import check_names, check_positive, is_whole, require
from skcoral.estimator import CORAL
from skcoral.estimator.settings import check_settings
from skcoral.exceptions import InvalidTableError, SingularCorrelationError
from skcoral.panels.windows import Windows

_CHAIN = 20  # windows from one fit without a neighbour to the next: that fit takes three times as
# long as a warm one, so a tenth of the time is lost, and a few hundred windows keep all cores busy
_ONE_THREAD = 200  # columns up to which further threads cost more time than they save
_FORGOTTEN = 1e-30  # weights below this are far below the rounding of what they are added to, and
# CORAL refuses those below 1e-100

#: Numbers that each window has.
NUMBERS = (
    "threshold",
    "threshold_upper",
    "objective",
    "lower_bound",
    "largest_before",
    "largest_after",
)
#: For each kind of warning, the first message and the windows it was about.
Warned = dict[type[Warning], tuple[str, list[int]]]


class Solver:
    """The settings of every model, validated once, and how rows fade."""

    def __init__(
        self, names: tuple[str, ...], settings: Mapping[str, Any], halflife: float | None = None
    ) -> None:
        self.names, self.settings = names, dict(settings)
        self.halflife = None if halflife is None else check_positive("halflife", halflife)
        check_settings(self.model())
        self.output_names, anchors = names, self.settings.get("anchors")
        if anchors is not None:
            k = np.asarray(anchors).shape[1]
            self.output_names = check_names(getattr(anchors, "columns", None), k)

    def model(self) -> CORAL:
        """A model with these settings, not fitted yet."""
        return CORAL(**self.settings)

    def weights(self, n: int) -> Array | None:
        """Weights of ``n`` rows in the order of time, where the last one counts whole."""
        if self.halflife is None:
            return None
        weights = 0.5 ** (np.arange(n - 1, -1, -1) / self.halflife)
        weights[weights < _FORGOTTEN] = 0.0
        return weights


@dataclass
class _Chain:
    """Neighbouring windows of one group."""

    at: Any  # their places among all windows
    starts: Any  # where they begin and end among the complete rows
    ends: Any
    new: Any  # the rows that their models are applied to, in the order of the windows
    borders: Any  # where the new rows of each window begin, and the end of the last


#: Outputs of new rows, figures, warnings, and the first and the last transformation of a chain.
_Solved = tuple[Array, dict[str, Any], Warned, tuple[Any, Any]]


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
    from joblib import Parallel, delayed

    k = len(solver.output_names)
    outputs = np.full((len(values), k), np.nan)
    figures = _empty_figures(len(windows.last), k, "short")
    warned: Warned = {}
    # A task holds the rows of its chain alone, so that processes are not sent the whole table.
    chains, rows = list(_chains(complete, windows)), np.flatnonzero(complete)
    tasks = (
        (solver, chain, values[rows[chain.starts[0] : chain.ends[-1]]], values[chain.new])
        for chain in chains
    )
    wanted = "a number of processes, -1 for all processors, or None"
    require(n_jobs is None or (is_whole(n_jobs) and n_jobs != 0), "n_jobs", wanted, n_jobs)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    solved: Iterator[_Solved] = parallel(delayed(_solve)(*task) for task in tasks)
    done, total = 0, int(windows.long_enough.sum())
    group, last = -1, None
    for chain, (made, part, in_chain, ends) in zip(chains, solved, strict=True):
        outputs[chain.new] = made
        # The first window of a chain changes from the last one of the chain before it.
        if windows.group[chain.at[0]] == group:
            part["turnover"][0] = _change(last, ends[0])
        group, last = windows.group[chain.at[0]], ends[1]
        for name, column in part.items():
            figures[name][chain.at] = column
        for kind, (message, where) in in_chain.items():
            warned.setdefault(kind, (message, []))[1].extend(chain.at[where].tolist())
        done += len(chain.at)
        if callback is not None:
            callback(done, total)
    return outputs, figures, warned


def _chains(complete: Any, windows: Windows) -> Iterator[_Chain]:
    """The windows that are long enough."""
    on = np.flatnonzero(windows.long_enough)
    group = windows.group[on]
    first = (np.arange(len(on)) - np.searchsorted(group, group)) % _CHAIN == 0
    number = np.full(len(windows.last) + 1, -1)  # the last place is for rows without a window
    number[on] = np.arange(len(on))
    window = np.where(complete, number[windows.of_row], -1)
    new = np.flatnonzero(window >= 0)
    borders = np.searchsorted(window[new], np.arange(len(on) + 1))
    for begin, end in pairwise([*np.flatnonzero(first).tolist(), len(on)]):
        at, new_rows = on[begin:end], borders[begin : end + 1]
        starts, ends = windows.starts[at], windows.ends[at]
        part = new[new_rows[0] : new_rows[-1]]
        yield _Chain(at, starts, ends, part, new_rows - new_rows[0])


@cache
def _threads() -> Any:
    """What limits the threads of linear algebra; finding its libraries takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _solve(solver: Solver, chain: _Chain, rows: Array, new: Array) -> _Solved:
    """Solve the windows of a chain, which consist of ``rows``, and transform the ``new`` ones."""
    # Small systems are slower on several threads, and limits are looked up once for all windows.
    threads = 1 if rows.shape[1] <= _ONE_THREAD else None
    with limits.use(limits.current()), _threads().limit(limits=threads, user_api="blas"):
        return _solve_each(solver, chain, rows, new)


def _solve_each(solver: Solver, chain: _Chain, rows: Array, new: Array) -> _Solved:
    n, k = len(chain.starts), len(solver.output_names)
    figures = _empty_figures(n, k, "refused")
    outputs = np.full((len(new), k), np.nan)
    transformations: list[Any] = [None] * n
    warned: Warned = {}
    spans = zip(chain.starts - chain.starts[0], chain.ends - chain.starts[0], strict=True)
    model: CORAL | None = None
    for j, (start, end) in enumerate(spans):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The last model is a start only: a window that is refused leaves it to the next one.
            try:
                window, weights = rows[start:end], solver.weights(end - start)
                model = solver.model()._fit_near(window, solver.names, weights, near=model)
            except InvalidTableError as error:
                figures["reason"][j] = str(error)
                continue
            except SingularCorrelationError as error:
                error.args = (f"Window {chain.at[j]}: {error}", *error.args[1:])
                raise
        for category in dict.fromkeys(warning.category for warning in caught):
            message = next(str(w.message) for w in caught if w.category is category)
            warned.setdefault(category, (message, []))[1].append(j)
        _describe(model, figures, j)
        its = slice(chain.borders[j], chain.borders[j + 1])
        outputs[its] = model._centred_outputs(new[its]) + model.output_mean_
        T = model.T_
        transformations[j] = T if isinstance(T, np.ndarray) else T.toarray()
        if j:
            figures["turnover"][j] = _change(*transformations[j - 1 : j + 1])
    return outputs, figures, warned, (transformations[0], transformations[-1])


def _describe(model: CORAL, figures: dict[str, Any], j: int) -> None:
    """Keep the figures of a fitted window."""
    result = model.result_
    figures["fidelity"][j], figures["status"][j] = result.fidelity, result.status
    figures["objective"][j], figures["lower_bound"][j] = result.objective, result.lower_bound
    if not result.deficiency:  # a singular one takes as long as the solution: left to model(t)
        figures["threshold"][j] = model.threshold_.lower
        figures["threshold_upper"][j] = model.threshold_.upper
    if model.covariance is None:  # as the solution has them: weighted, where rows fade
        figures["largest_before"][j] = largest_residuals(model.correlation_).max(initial=0.0)
        figures["largest_after"][j] = largest_residuals(result.correlation).max(initial=0.0)
    else:
        figures["largest_before"][j] = model.measured_.largest_correlation_before
        figures["largest_after"][j] = model.measured_.largest_correlation


def _change(before: Any, after: Any) -> Any:
    """Sum of the absolute changes of the coefficients of each output."""
    if before is None or after is None:
        return np.nan
    return np.abs(after - before).sum(axis=0)


def _empty_figures(n: int, k: int, status: str) -> dict[str, Any]:
    """What is known of ``n`` windows without a model and ``k`` outputs."""
    return {
        "status": np.full(n, status, dtype="U16"),
        **{name: np.full(n, np.nan) for name in NUMBERS},
        "fidelity": np.full((n, k), np.nan),
        "turnover": np.full((n, k), np.nan),
        "reason": np.full(n, "", dtype=object),
    }
