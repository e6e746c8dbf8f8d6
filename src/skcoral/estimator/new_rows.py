"""What new rows keep, where the rows fitted are too few to say so: a small hold-out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral._lowrank import transform_of
from skcoral.exceptions import OverfitWarning
from skcoral.few_rows import RowMoments, deficiency_of_rows
from skcoral.frames.caps import on_caps
from skcoral.frames.descent import descend
from skcoral.frames.problem import FrameProblem
from skcoral.results import Array

_EFFORT = 4e7  # r²p of a refit that is still worth its time
_FEWEST = 18  # rows of a table that some can be left out of
_FLOORS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99)
_LOSS = 0.1  # of mean fidelity on new rows, from which on the fit counts as overfitted
_DIGITS = 1e-4  # relative accuracy of a refit
_UNKNOWN = (
    "Rows are no more than columns, so these figures say little about new rows; "
    "skcoral.stability.holdout measures that."
)


def tell_new_rows(model: Any, rows: Any, sample_weight: Any) -> None:
    """Measure a table with no more rows than columns on rows left out, and say what they keep.

    Where rows are about as many as columns, few are left out: the loss is largest there, and
    leaving out many would move away from it. The sentence goes into
    ``result_.details["new_rows"]``. Where much of the fidelity is lost, a warning names the floor
    from which on it is kept.
    """
    result, found = model.result_, model.estimate_.deficiency
    if found is None or not found.few_rows:
        return
    too_much = found.rank**2 * rows.shape[1] > _EFFORT
    weighted = sample_weight is not None
    if too_much or weighted or len(rows) < _FEWEST or result.anchors is not None:
        model.result_ = _with(result, _UNKNOWN)
        return
    scores = np.asarray(model._scores(rows), dtype=np.float64)
    order = np.random.default_rng(0).permutation(len(rows))
    count = max(6, len(rows) // (5 if rows.shape[1] > 2 * len(rows) else 20))
    trial = _Trial(model, scores[order[count:]], scores[order[:count]])
    fresh = trial.measured(result.rho_min)
    if fresh is None:
        model.result_ = _with(result, _UNKNOWN)
        return
    kept, before, after = fresh
    said = (
        f"On {count} of the {len(rows)} rows, left out of a refit on the others: mean fidelity "
        f"{kept:.2f}, rms correlation {before:.2f} → {after:.2f} (less what so few rows show by "
        "chance)."
    )
    fitted = float(result.fidelity.mean())
    if fitted - kept > _LOSS:
        floor = trial.first_kept(float(result.rho_min.max()))
        advice = (
            f"from rho_min={floor:g} on, new rows keep what is promised up to {_LOSS:g}"
            if floor is not None
            else "no floor up to 0.99 prevents it; use more rows, fewer columns or shrinkage"
        )
        said += f" Low floors overfit this table: {advice}."
        warnings.warn(
            f"The outputs keep a mean fidelity of {fitted:.2f} on the {len(rows)} rows fitted, and "
            f"of {kept:.2f} on rows left out of a refit: {advice}.",
            OverfitWarning,
            stacklevel=3,
        )
    model.result_ = _with(result, said)


def _with(result: Any, said: str) -> Any:
    return replace(result, details={**result.details, "new_rows": said})


class _Trial:
    """A refit on some rows, measured on the others, at any floors."""

    def __init__(self, model: Any, fitted: Array, left: Array) -> None:
        moments = RowMoments(fitted, model.result_.names)
        self._usable = not moments.constant_columns()
        if not self._usable:
            return
        self._factor = deficiency_of_rows(moments, model.estimate_.deficiency.tol).factor
        self._rows = (left - moments.mean) / moments.scale
        result = model.result_
        self._problem = FrameProblem(
            self._factor, result.criterion, result.pair_weights, tol=_DIGITS, max_iter=60
        )
        # what the fit makes of these rows is nearly what a refit makes of them
        self._outputs = np.asarray(self._factor @ result.T)

    def measured(self, floors: Array) -> tuple[float, float, float] | None:
        """Mean fidelity, and rms correlation of sources and outputs, on the rows left out."""
        if not self._usable:
            return None
        self._outputs = U = self._solved(floors)
        outputs = self._rows @ transform_of(self._factor, U, dense=False)
        sources, outs = _unit(self._rows), _unit(outputs)
        return float(np.einsum("ij,ij->j", sources, outs).mean()), _rms(sources), _rms(outs)

    def _solved(self, floors: Array) -> Array:
        """Outputs of the refit, from those at hand; no bound is needed, so that descent will do."""
        A, problem = self._factor, self._problem
        if problem.criterion != "squared" or problem.pair_weights is not None:
            return np.asarray(problem.solve(floors, start=self._outputs).U)
        start = on_caps(A, self._outputs, floors)
        return np.asarray(
            descend(
                A,
                start,
                floors,
                bound=problem.least,
                goal=_DIGITS,
                max_iter=500,
                patience=10,
                stall=_DIGITS,
            )[0]
        )

    def first_kept(self, lowest: float) -> float | None:
        """The least floor of a few at which new rows keep nearly what the floor promises."""
        for floor in _FLOORS:
            if floor > lowest:
                fresh = self.measured(np.full(self._rows.shape[1], floor))
                if fresh is not None and fresh[0] >= floor - _LOSS:
                    return floor
        return None


def _unit(rows: Array) -> Array:
    centred = rows - rows.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    return np.asarray(centred / np.where(length > 0.0, length, 1.0))


def _rms(U: Array) -> float:
    """Root mean square of the correlations of pairs of unit columns, less that of chance.

    Of m rows without any correlation it is 1/(m - 1), squared and on average.
    """
    m, p = U.shape
    F = U @ U.T
    own = float((np.einsum("ij,ij->j", U, U) ** 2).sum())
    mean, chance = (float((F * F).sum()) - own) / max(p * (p - 1), 1), 1.0 / (m - 1)
    return float(np.sqrt(max(mean - chance, 0.0) / (1.0 - chance)))
