"""What new rows keep, where the rows fitted are too few to say so: a small hold-out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral._lowrank import transform_of
from skcoral.exceptions import OverfitWarning
from skcoral.few_rows import RowMoments, deficiency_of_rows
from skcoral.frames.problem import FrameProblem
from skcoral.results import Array

_EFFORT = 4e7  # r²p of a refit that is still worth its time
_FEWEST = 18  # rows of a table that some can be left out of
_FLOORS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99)
_LOSS = 0.1  # of mean fidelity on new rows, from which on the fit counts as overfitted
_UNKNOWN = (
    "Rows are no more than columns, so these figures say little about new rows; "
    "skcoral.stability.holdout measures that."
)


def tell_new_rows(model: Any, rows: Any, sample_weight: Any) -> None:
    """Measure a table with no more rows than columns on rows left out, and say what they keep.

    Few rows are left out, because the loss is largest where rows are about as many as columns, and
    leaving out many would move away from there. The sentence goes into
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
    count = max(6, len(rows) // 20)
    trial = _Trial(model, scores[order[count:]], scores[order[:count]])
    fresh = trial.measured(result.rho_min)
    if fresh is None:
        model.result_ = _with(result, _UNKNOWN)
        return
    kept, before, after = fresh
    said = (
        f"On {count} of the {len(rows)} rows, left out of a refit on the others: mean fidelity "
        f"{kept:.2f}, rms correlation {before:.3f} → {after:.3f}."
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
        self._problem = FrameProblem(
            self._factor, model.result_.criterion, model.result_.pair_weights, tol=1e-4, max_iter=60
        )

    def measured(self, floors: Array) -> tuple[float, float, float] | None:
        """Mean fidelity, and rms correlation of sources and outputs, on the rows left out."""
        if not self._usable:
            return None
        U = self._problem.solve(floors).U
        outputs = self._rows @ transform_of(self._factor, U, dense=False)
        sources, outs = _unit(self._rows), _unit(outputs)
        return float(np.einsum("ij,ij->j", sources, outs).mean()), _rms(sources), _rms(outs)

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
    """Root mean square of the correlations of pairs of unit columns, from their few rows."""
    p = U.shape[1]
    F = U @ U.T
    own = float((np.einsum("ij,ij->j", U, U) ** 2).sum())
    return float(np.sqrt(max(float((F * F).sum()) - own, 0.0) / max(p * (p - 1), 1)))
