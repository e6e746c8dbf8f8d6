"""Windows solved: stacks of small problems where that is possible, single fits elsewhere.

Windows are handled in chains of neighbours. The k-th windows of all chains form a stack, which
starts from where the stack before it ended. What the stack does not certify, and every setting that
it does not know, is left to :class:`skcoral.CORAL`, window by window. Chains begin at fixed places
and go forward in time, so that no window depends on later rows, on other chains or on the number of
processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skcoral import api
from skcoral._frames import read_floors
from skcoral._validation import check_names
from skcoral.estimator import CORAL
from skcoral.exceptions import InvalidTableError, SingularCorrelationError
from skcoral.frames import brief
from skcoral.panels.stacked_exact import Mask, Thresholds, largest_means, thresholds
from skcoral.panels.stacked_tradeoff import above_thresholds, tradeoffs
from skcoral.panels.stacked_worst import beyond_squares, worst_pairs
from skcoral.panels.window_moments import REFRESH, Stack, window_moments
from skcoral.results import OPTIMAL_GAP, Array, Decorrelation

CHAIN = REFRESH  # windows in a chain of neighbours, whose sums begin with it
LARGEST = 24  # columns up to which trade-offs are solved in stacks
_WELL = 1e-4  # least eigenvalue of a correlation matrix that a stack is trusted with
_EDGE = 1e-7  # floors this close to the threshold are left to the single fit
_PLAIN = {
    "budget": None,
    "support": None,
    "pair_weights": None,
    "anchors": None,
    "shrinkage": None,
    "margins": "none",
}


@dataclass
class Solutions:
    """What is known of each window; NaN and "refused" where it has no model.

    ``mean``, ``scale`` and ``T`` make the outputs; ``offset`` and ``units`` are those of the
    outputs; ``maps`` are the margins of single fits. ``warned`` holds, for each kind of warning,
    the first message and the windows.
    """

    mean: Array
    scale: Array
    T: Array
    offset: Array
    units: Array
    fidelity: Array
    lower: Array
    upper: Array
    objective: Array
    bound: Array
    status: Any
    before: Array
    after: Array
    maps: dict[int, Any] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    warned: dict[type[Warning], tuple[str, list[int]]] = field(default_factory=dict)

    @classmethod
    def empty(cls, n: int, p: int, k: int) -> Solutions:
        """Room for ``n`` windows of ``p`` columns and ``k`` outputs."""
        one, sources, outputs = (n,), (n, p), (n, k)
        shapes = (sources, sources, (n, p, k), outputs, outputs, outputs, one, one, one, one)
        names = list(cls.__dataclass_fields__)
        arrays: dict[str, Any] = {
            name: np.full(shape, np.nan) for name, shape in zip(names, shapes, strict=False)
        }
        status = np.full(n, "refused", dtype="U16")
        before, after = np.full(n, np.nan), np.full(n, np.nan)
        return cls(**arrays, status=status, before=before, after=after)

    @classmethod
    def joined(cls, parts: list[Solutions]) -> Solutions:
        """All windows of several parts, one after the other."""
        arrays = list(cls.__dataclass_fields__)[:-3]
        stacked: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays
        }
        whole = cls(**stacked)
        start = 0
        for part in parts:
            whole.reasons |= {start + k: reason for k, reason in part.reasons.items()}
            for kind, (message, where) in part.warned.items():
                known = whole.warned.setdefault(kind, (message, []))
                known[1].extend(start + k for k in where)
            start += len(part.lower)
        return whole

    def outputs(self, rows: Array, window: Any) -> Array:
        """Outputs of ``rows``, each by the model of its window (-1: none)."""
        out = np.full((len(rows), self.T.shape[2]), np.nan)
        if self.maps:
            rows = rows.copy()
            for k, margins in self.maps.items():
                own = np.flatnonzero(window == k)
                rows[own] = margins.transform(rows[own]) if len(own) else rows[own]
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
    """The settings of one run, judged once."""

    def __init__(
        self, names: tuple[str, ...], settings: Mapping[str, Any], *, brief: bool = False
    ) -> None:
        self.names, self.settings, self.brief = names, dict(settings), brief
        model = CORAL(**self.settings)
        params = model.get_params(deep=False)
        fresh = CORAL().get_params(deep=False)
        known = {"rho_min", "criterion", "halflife", "output_scale", "on_singular", *_PLAIN}
        plain = all(params[name] == fresh[name] for name in params if name not in known)
        plain = plain and all(_same(params[name], value) for name, value in _PLAIN.items())
        self.halflife = params["halflife"]
        self.original = params["output_scale"] == "original"
        self.output_names = names
        if params["anchors"] is not None:
            anchors = params["anchors"]
            k = np.asarray(anchors).shape[1]
            self.output_names = check_names(getattr(anchors, "columns", None), k)
        self.n_outputs = len(self.output_names)
        self.criterion = params["criterion"]
        rho_min = params["rho_min"]
        self.floors = None if rho_min is None else read_floors(rho_min, len(names), names)
        inside = self.floors is None or bool(
            np.all((self.floors > 0.0) & (self.floors < 1.0 - 1e-9))
        )
        self.stacks = plain and inside and len(names) > 1

    def solve(self, rows: Array, starts: Any, ends: Any, chain: Any) -> Solutions:
        """Solve the windows ``rows[start:end]``; equal numbers in ``chain`` are neighbours."""
        out = Solutions.empty(len(starts), rows.shape[1], self.n_outputs)
        left = np.ones(len(starts), dtype=bool)
        if self.stacks and len(starts):
            left = self._solve_stacks(out, rows, starts, ends, chain)
        for k in np.flatnonzero(left).tolist():
            self._fit_one(out, k, rows[starts[k] : ends[k]])
        return out

    def _fit_one(self, out: Solutions, k: int, rows: Array) -> None:
        """Fit one window on its own; a table that cannot be used has a reason and no model."""
        model = CORAL(**self.settings)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with brief() if self.brief else nullcontext():
                    model.fit(named(rows, self.names))
            except InvalidTableError as error:
                out.reasons[k] = str(error)
                return
            except SingularCorrelationError as error:
                error.args = (f"{_WINDOW.format(k)}{error}", *error.args[1:])
                raise
            result = model.result_
        for warning in caught:
            known = out.warned.setdefault(warning.category, (str(warning.message), []))
            if not known[1] or known[1][-1] != k:
                known[1].append(k)
        T = result.T if isinstance(result.T, np.ndarray) else result.T.toarray()
        out.mean[k], out.scale[k], out.T[k] = model.mean_, model.scale_, T
        out.offset[k] = model.output_mean_
        if model.margins_ is not None:
            out.maps[k] = model.margins_
        out.units[k] = model.moments_.scale if self.original else 1.0
        out.fidelity[k], out.status[k] = result.fidelity, result.status
        if result.rank is None:  # of a singular window it takes as long as the answer: model(t)
            out.lower[k], out.upper[k] = model.threshold_.lower, model.threshold_.upper
        out.objective[k], out.bound[k] = result.objective, result.lower_bound
        measured = model.measured_
        out.before[k] = measured.largest_correlation_before
        out.after[k] = measured.largest_correlation

    def _solve_stacks(
        self, out: Solutions, rows: Array, starts: Any, ends: Any, chain: Any
    ) -> Mask:
        """Solve what stacks can; returns which windows are left."""
        usable = ends - starts > rows.shape[1]
        first = np.diff(chain, prepend=chain[0] - 1) != 0
        moments = window_moments(rows, starts, ends, self.halflife, first)
        R = moments.correlation()
        usable &= np.isfinite(R).all(axis=(1, 2)) & _varying(moments)
        R[~usable] = np.eye(R.shape[1])
        usable &= np.linalg.eigvalsh(R)[:, 0] >= _WELL
        out.mean[usable], out.scale[usable] = moments.mean[usable], moments.scale[usable]
        out.offset[usable] = moments.mean[usable] if self.original else 0.0
        out.units[usable] = moments.scale[usable] if self.original else 1.0
        left = np.ones(len(starts), dtype=bool)
        groups = np.flatnonzero(first)
        lengths = np.diff(np.append(groups, len(chain)))
        neighbours = _Neighbours(len(groups), R.shape[1])
        for step in range(int(lengths.max())):
            on = np.flatnonzero(lengths > step)
            at = groups[on] + step
            on, at = on[usable[at]], at[usable[at]]
            if len(at):
                left[at] = ~self._solve_stack(out, R[at], at, on, neighbours)
        off = np.abs(R[~left] - np.eye(R.shape[1]))
        out.before[~left] = off.max(axis=(1, 2))
        return left

    def _solve_stack(self, out: Solutions, R: Array, at: Any, on: Any, near: _Neighbours) -> Mask:
        """Solve one window of each chain ``on``; returns where that has succeeded."""
        th = thresholds(R, near.weights[on])
        self._with_single_thresholds(R, th)
        near.weights[on] = th.weights.copy()
        out.lower[at], out.upper[at] = th.lower, th.upper
        if self.floors is None:
            self._store(out, at, R, th.T, 0.0, "exact")
            return th.upper - th.lower <= OPTIMAL_GAP
        floors, p = self.floors, len(self.floors)
        exact = floors.max() <= th.lower - _EDGE
        above = floors.min() >= th.upper + _EDGE
        done = np.zeros(len(at), dtype=bool)
        # floors on both sides of the threshold: compatible or not, the weights will tell
        some = np.flatnonzero(~above)
        if len(some):
            means = largest_means(
                R[some], np.broadcast_to(floors, (len(some), p)), near.means[on[some]]
            )
            near.means[on[some]] = np.where(means.solved[:, None], means.weights, 1.0)
            found = means.solved & (exact[some] | (means.weights.max(axis=1) < 1e4))
            kept, k = some[found], at[some[found]]
            self._store(out, k, R[kept], means.T[found], 0.0, "exact")
            done[kept] = True
            out_of_reach = means.refuted & ~exact[some]
            above[some[out_of_reach]] = True
            # what refutes the floors is where their trade-off begins
            heavy = means.weights[out_of_reach]
            heavy = np.where(heavy > 0.01 * heavy.max(axis=1, keepdims=True), heavy, 0.0)
            th.weights[some[out_of_reach]] = heavy
        kept = np.flatnonzero(above)
        if len(kept):
            done[kept] = self._solve_above(out, R[kept], at[kept], on[kept], th.weights[kept], near)
        near.dual[on] &= above  # what was solved at another floor regime is no neighbour
        return done

    def _solve_above(
        self, out: Solutions, R: Array, at: Any, on: Any, weights: Array, near: _Neighbours
    ) -> Mask:
        """Trade-offs, from the neighbours' dual points or else from the thresholds' weights."""
        assert self.floors is not None
        done = np.zeros(len(at), dtype=bool)
        stacked = self.criterion in ("squared", "worst") and len(self.floors) <= LARGEST
        for warm in (True, False) if stacked else ():
            trying = np.flatnonzero(~done & near.dual[on] if warm else ~done)
            if not len(trying):
                continue
            chains, own = on[trying], R[trying]
            start: Any = near.multipliers[chains], near.H[chains]
            dual: Any
            if not warm:
                start = above_thresholds(own, self.floors, weights[trying])
            if self.criterion == "squared":
                found = tradeoffs(own, self.floors, *start)
                dual = found.multipliers, found.H
            else:
                if not warm:
                    squares = tradeoffs(own, self.floors, *start)
                    *start, near.worst[chains] = beyond_squares(own, self.floors, squares)
                found, *dual = worst_pairs(own, self.floors, start[0], start[1], near.worst[chains])
            ok = np.flatnonzero(found.solved)
            kept = trying[ok]
            near.multipliers[on[kept]], near.H[on[kept]] = (part[ok] for part in dual)
            near.dual[on[kept]] = True
            self._store(out, at[kept], R[kept], found.T[ok], found.lower_bound[ok])
            done[kept] = True
        for k in np.flatnonzero(~done).tolist():
            answer = api.decorrelate(
                R[k], self.floors, criterion=self.criterion, warm=near.answers.get(on[k])
            )
            near.answers[on[k]] = answer
            if answer.status == "optimal":
                if stacked and self.criterion == "squared":
                    near.multipliers[on[k]] = answer.certificate.arrays["multipliers"]
                    near.H[on[k]] = answer.certificate.arrays["H"]
                    near.dual[on[k]] = True
                one = slice(k, k + 1)
                self._store(out, at[one], R[one], answer.T[None], answer.lower_bound)
                done[k] = True
        return done

    def _store(
        self, out: Solutions, at: Any, R: Array, T: Array, bound: Any, status: str = "optimal"
    ) -> None:
        G = T.transpose(0, 2, 1) @ (R @ T)
        own = np.arange(G.shape[1])
        G[:, own, own] = 0.0
        out.T[at], out.status[at] = T, status
        out.fidelity[at] = (R * T).sum(axis=1)
        size = np.abs(G)
        if self.criterion == "squared":
            out.objective[at] = 0.5 * (G * G).sum(axis=(1, 2))
        elif self.criterion == "worst":
            out.objective[at] = size.max(axis=(1, 2))
        else:
            out.objective[at] = 0.5 * size.sum(axis=(1, 2))
        out.bound[at] = bound
        out.after[at] = size.max(axis=(1, 2))

    @staticmethod
    def _with_single_thresholds(R: Array, th: Thresholds) -> None:
        for k in np.flatnonzero(~th.solved).tolist():
            single = api.threshold(R[k])
            th.lower[k], th.upper[k] = single.lower, single.upper
            th.weights[k], th.T[k] = single.weights, single.T


class _Neighbours:
    """Where each chain stands: weights, dual point, and whether there is one."""

    def __init__(self, n: int, p: int) -> None:
        self.weights = np.ones((n, p))
        self.means = np.ones((n, p))
        self.multipliers = np.zeros((n, p))
        self.H = np.zeros((n, p, p)) if p <= LARGEST else np.zeros((n, 0, 0))
        self.worst = np.ones(n)
        self.dual = np.zeros(n, dtype=bool)
        self.answers: dict[Any, Decorrelation] = {}


_WINDOW = "Window {}: "


def _same(value: Any, wanted: Any) -> bool:
    return value is None if wanted is None else isinstance(value, str) and value == wanted


def named(rows: Array, names: tuple[str, ...]) -> Any:
    """Rows with names, if pandas is there; messages then name the columns."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return rows
    return pd.DataFrame(rows, columns=list(names))


def _varying(moments: Stack) -> Mask:
    """Windows whose columns clearly vary; the others are judged by the single fit."""
    spread = np.sqrt(np.diagonal(moments.comoment, axis1=1, axis2=2) / moments.weight[:, None])
    return np.asarray((spread > 1e-12 * np.abs(moments.mean) + 1e-140).all(axis=1))
