"""Windows solved in batches where that is possible, by single fits elsewhere.

Windows are handled in chains of neighbours. The k-th windows of all chains form a batch, which
starts from the solutions of the batch before it. What a batch does not certify, and every setting
that it does not know, is left to :class:`skcoral.CORAL`, window by window. Chains begin at fixed
places and go forward in time, so that no window depends on later rows, on other chains or on the
number of processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral._frames import read_floors
from skcoral._validation import check_names
from skcoral.estimator import CORAL
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import InvalidTableError, SingularCorrelationError
from skcoral.frames import brief
from skcoral.panels.batches import Mask
from skcoral.panels.chains import Chains, Decorrelations
from skcoral.panels.window_moments import REFRESH, window_moments
from skcoral.results import Array

CHAIN = REFRESH  # windows in a chain of neighbours, whose sums begin with it
_WELL = 1e-4  # least eigenvalue of a correlation matrix that is solved in a batch
_BATCHED = ("rho_min", "criterion", "halflife", "output_scale", "on_singular")

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


def empty_figures(n: int, k: int, status: str) -> dict[str, Any]:
    """What is known of ``n`` windows without a model and ``k`` outputs."""
    return {
        "status": np.full(n, status, dtype="U16"),
        **{name: np.full(n, np.nan) for name in NUMBERS},
        "fidelity": np.full((n, k), np.nan),
        "turnover": np.full((n, k), np.nan),
        "reason": np.full(n, "", dtype=object),
    }


@dataclass
class Models:
    """What makes the outputs of the rows of each window; NaN without a model.

    ``offset`` and ``units`` are those of the outputs.
    """

    mean: Array
    scale: Array
    T: Array
    offset: Array
    units: Array

    @classmethod
    def empty(cls, n: int, p: int, k: int) -> Models:
        """No models of ``n`` windows with ``p`` columns and ``k`` outputs."""
        shapes = ((n, p), (n, p), (n, p, k), (n, k), (n, k))
        arrays: list[Any] = [np.full(shape, np.nan) for shape in shapes]
        return cls(*arrays)

    def outputs(self, rows: Array, window: Any) -> Array:
        """Outputs of ``rows``, each by the model of its window (-1: none)."""
        out = np.full((len(rows), self.T.shape[2]), np.nan)
        has = np.flatnonzero(window >= 0)
        size = max(1, 2_000_000 // max(1, self.T[0].size)) if len(self.T) else 1
        for start in range(0, len(has), size):
            at = has[start : start + size]
            w = window[at]
            units = (rows[at] - self.mean[w]) / self.scale[w]
            made = (units[:, None, :] @ self.T[w])[:, 0]
            out[at] = made * self.units[w] + self.offset[w]
        return out


class Solver:
    """The settings of one run, validated once."""

    def __init__(
        self, names: tuple[str, ...], settings: Mapping[str, Any], *, brief: bool = False
    ) -> None:
        self.names, self.settings, self.brief = names, dict(settings), brief
        params = CORAL(**self.settings).get_params(deep=False)
        others = CORAL().get_params(deep=False)
        plain = all(_same(params[name], others[name]) for name in others if name not in _BATCHED)
        self.halflife, self.criterion = params["halflife"], params["criterion"]
        self.original = params["output_scale"] == "original"
        self.output_names, anchors = names, params["anchors"]
        if anchors is not None:
            k = np.asarray(anchors).shape[1]
            self.output_names = check_names(getattr(anchors, "columns", None), k)
        self.n_outputs = len(self.output_names)
        rho_min = params["rho_min"]
        self.floors = None if rho_min is None else read_floors(rho_min, len(names), names)
        inside = self.floors is None or bool(
            np.all((self.floors > 0.0) & (self.floors < 1.0 - 1e-9))
        )
        self.batched = plain and inside and len(names) > 1


class Run:
    """Some windows, their models and figures: solved in batches, or fitted one by one."""

    def __init__(self, solver: Solver, rows: Array, starts: Any, ends: Any) -> None:
        self.solver, self.rows, self.starts, self.ends = solver, rows, starts, ends
        n, k = len(starts), solver.n_outputs
        self.models = Models.empty(n, rows.shape[1], k)
        self.figures = empty_figures(n, k, "refused")
        self.warned: Warned = {}

    def fit_one(self, k: int, number: int) -> None:
        """Fit one window on its own; a table that cannot be used has a reason and no model."""
        model = CORAL(**self.solver.settings)
        rows = named_rows(self.rows[self.starts[k] : self.ends[k]], self.solver.names)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with brief() if self.solver.brief else nullcontext():
                    model.fit(rows)
            except InvalidTableError as error:
                self.figures["reason"][k] = str(error)
                return
            except SingularCorrelationError as error:
                error.args = (f"Window {number}: {error}", *error.args[1:])
                raise
            result = model.result_
        for warning in caught:
            known = self.warned.setdefault(warning.category, (str(warning.message), []))
            if not known[1] or known[1][-1] != k:
                known[1].append(k)
        models, figures, measured = self.models, self.figures, model.measured_
        models.mean[k], models.scale[k] = model.mean_, model.scale_
        models.offset[k] = model.output_mean_
        models.T[k] = result.T if isinstance(result.T, np.ndarray) else result.T.toarray()
        models.units[k] = model.moments_.scale if self.solver.original else 1.0
        figures["fidelity"][k], figures["status"][k] = result.fidelity, result.status
        if result.rank is None:  # a singular one takes as long as the solution: left to model(t)
            figures["threshold"][k] = model.threshold_.lower
            figures["threshold_upper"][k] = model.threshold_.upper
        figures["objective"][k], figures["lower_bound"][k] = result.objective, result.lower_bound
        figures["largest_before"][k] = measured.largest_correlation_before
        figures["largest_after"][k] = measured.largest_correlation

    def solve_in_batches(self, fresh: Any) -> Mask:
        """Solve what batches can; returns which windows are left."""
        solver, models = self.solver, self.models
        n, p = len(self.starts), self.rows.shape[1]
        moments = window_moments(self.rows, self.starts, self.ends, solver.halflife, fresh)
        R = moments.correlation()
        usable = (self.ends - self.starts > p) & np.isfinite(R).all(axis=(1, 2))
        usable &= moments.varying()
        R[~usable] = np.eye(p)
        usable &= np.linalg.eigvalsh(R)[:, 0] >= _WELL
        models.mean[usable], models.scale[usable] = moments.mean[usable], moments.scale[usable]
        models.offset[usable] = moments.mean[usable] if solver.original else 0.0
        models.units[usable] = moments.scale[usable] if solver.original else 1.0
        left = np.ones(n, dtype=bool)
        begin = np.flatnonzero(fresh)
        lengths = np.diff(np.append(begin, n))
        chains = Chains(len(begin), p, solver.floors, solver.criterion)
        for step in range(int(lengths.max())):
            on = np.flatnonzero(lengths > step)
            on = on[usable[begin[on] + step]]
            if len(on):
                at = begin[on] + step
                left[at] = ~self._store(at, R[at], chains.solve(on, R[at]))
        return left

    def _store(self, at: Any, R: Array, found: Decorrelations) -> Mask:
        """Keep models and figures of the windows ``at`` that are solved; returns which."""
        figures, own = self.figures, np.arange(R.shape[1])
        figures["threshold"][at], figures["threshold_upper"][at] = found.lower, found.upper
        kept = found.solved
        at, R, T = at[kept], R[kept], found.T[kept]
        size = np.abs(T.transpose(0, 2, 1) @ (R @ T))
        size[:, own, own] = 0.0
        self.models.T[at] = T
        figures["status"][at] = np.where(found.exact[kept], "exact", "optimal")
        figures["fidelity"][at] = (R * T).sum(axis=1)
        figures["lower_bound"][at] = found.bound[kept]
        figures["largest_before"][at] = np.abs(R - np.eye(len(own))).max(axis=(1, 2))
        figures["largest_after"][at] = size.max(axis=(1, 2))
        if self.solver.criterion == "worst":
            figures["objective"][at] = figures["largest_after"][at]
        else:
            power = 2.0 if self.solver.criterion == "squared" else 1.0
            figures["objective"][at] = 0.5 * (size**power).sum(axis=(1, 2))
        return kept


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str | float | int) and value == default)
