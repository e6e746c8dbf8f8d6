"""Whether what is proved for a correlation matrix holds on its rows, and how new rows do.

Nearly dependent columns need large coefficients, which magnify the rounding of the matrix: with a
condition number of 1e11 the outputs' variances are off by 1e-6 although the matrix's are not. With
no more rows than columns, fidelities on the rows fitted say little about others: a small hold-out
measures that.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.lowrank import transform_of
from skcoral.data.correlation import sample_correlation
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments, deficiency_of_rows
from skcoral.exceptions import OverfitWarning, RoundingWarning, warn
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import descend_one
from skcoral.solvers.singular.problem import FrameProblem

#: Differences between rows and matrix up to this are those of any computation: the variances of
#: well-conditioned tables differ by 1e-12, and ten times this could be read off a written file.
NEGLIGIBLE = 1e-7
_EPS = float(np.finfo(np.float64).eps)
_EFFORT = 4e7  # r²p of a refit up to which one is made: it takes about as long as the fit
_FEWEST = 18  # rows of a table from which six can be left out and twice as many fitted
_FLOORS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99)
_LOSS = 0.1  # of mean fidelity on new rows, from which on the fit counts as overfitted
_DIGITS = 1e-4  # relative accuracy of a refit: its fidelities are shown with two decimals
_STATED = 12  # rows left out from which on their correlations are stated: chance alone has 0.3
_UNKNOWN = (
    "There are no more rows than columns, so these figures say little about new rows; "
    "skcoral.stability.holdout measures that."
)


def measure_rounding(estimator: Any, rows: Any = None, sample_weight: Any = None) -> None:
    """Measure a fresh fit on its rows, or bound the rounding without them; warn with the figures.

    The sentence goes to ``result_.notes.rounding``. A matrix by another estimator promises nothing
    about the rows, so nothing is done for it.
    """
    result = estimator.result_
    if estimator.estimate_.source or not isinstance(result.T, np.ndarray):
        return
    # Entries of R are off by a few units in the last place, and tᵢᵀRtⱼ by ‖tᵢ‖₁‖tⱼ‖₁ times that.
    bound = 4.0 * _EPS * float(np.abs(result.T).sum(axis=0).max(initial=0.0)) ** 2
    if bound <= NEGLIGIBLE or not isinstance(result.correlation, np.ndarray):
        return
    difference = (
        "On the rows, variances, correlations and fidelities of the outputs may differ by up "
        f"to {bound:.1e} from what is proved for the correlation matrix"
    )
    if rows is not None:
        difference = _rounding_on(estimator, rows, sample_weight)
    if difference:
        sentence = (
            f"{difference}: the columns are nearly dependent, and rounding is magnified. Drop one "
            "of them, or shrink with covariance='LedoitWolf'."
        )
        estimator.result_ = replace(result, notes=replace(result.notes, rounding=sentence))
        warn(sentence, RoundingWarning)


def _rounding_on(estimator: Any, rows: Any, sample_weight: Any) -> str:
    """Figures of the outputs of these very rows; empty where they agree with the matrix."""
    result = estimator.result_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        Z = estimator.standardised(rows)
    outputs, targets = result.outputs_and_sources(Z)
    k = outputs.shape[1]
    both = Moments([f"x{j}" for j in range(2 * k)])
    both.update(np.hstack((outputs, targets)), sample_weight=sample_weight)
    variance = float(np.abs(np.diag(both.covariance)[:k] - 1.0).max())
    R = sample_correlation(both)
    apart = np.abs(R[:k, :k] - result.correlation)[~np.eye(k, dtype=bool)]
    correlation = float(apart.max(initial=0.0))
    fidelity = float(np.abs(np.diag(R[:k, k:]) - result.fidelity).max())
    if max(variance, correlation, fidelity) <= NEGLIGIBLE:
        return ""
    return (
        f"On the rows, variances of the outputs differ from 1 by up to {variance:.1e}, "
        f"correlations by {correlation:.1e} and fidelities by {fidelity:.1e} from what is proved "
        "for the correlation matrix"
    )


def measure_overfitting(model: Any, rows: Any, sample_weight: Any) -> None:
    """Refit a table with no more rows than columns without some rows, and measure it on these.

    Where rows are about as many as columns, few are left out: the loss is largest there, and
    leaving out many would move away from it. The sentence goes to ``result_.notes.new_rows``. Where
    much of the fidelity is lost, a warning names the floor from which on it is kept.
    """
    deficiency, result = model.estimate_.deficiency, model.result_
    if deficiency is not None and deficiency.few_rows:
        sentence = _loss_on_new_rows(model, rows, sample_weight)
        model.result_ = replace(result, notes=replace(result.notes, new_rows=sentence))


def _loss_on_new_rows(model: Any, rows: Any, sample_weight: Any) -> str:
    result = model.result_
    too_long = model.estimate_.deficiency.rank**2 * rows.shape[1] > _EFFORT
    if too_long or sample_weight is not None or len(rows) < _FEWEST or result.anchors is not None:
        return _UNKNOWN
    values = np.asarray(rows, dtype=np.float64)
    order = np.random.default_rng(0).permutation(len(rows))
    count = max(6, len(rows) // (5 if rows.shape[1] > 2 * len(rows) else 20))
    moments = RowMoments(values[order[count:]], result.names)
    if moments.constant_columns():
        return _UNKNOWN
    refit = _Refit(model, moments, values[order[:count]])
    kept, before, after = refit.measure(result.rho_min)
    correlations = f", too few to state correlations between outputs (fewer than {_STATED})"
    if count >= _STATED:
        correlations = (
            f", rms correlation {before:.2f} → {after:.2f} (less what so few rows show by chance)"
        )
    sentence = (
        f"On {count} of the {len(rows)} rows, left out of a refit on the others: mean fidelity "
        f"{kept:.2f}{correlations}."
    )
    fitted = float(result.fidelity.mean())
    if fitted - kept <= _LOSS:
        return sentence
    floor = refit.first_kept(float(result.rho_min.max()))
    advice = (
        f"from rho_min={floor:g} on, the mean fidelity there is within {_LOSS:g} of the floor"
        if floor is not None
        else "no floor up to 0.99 prevents it; use more rows, fewer columns or "
        "covariance='LedoitWolf'"
    )
    warn(
        f"The outputs keep a mean fidelity of {fitted:.2f} on the {len(rows)} rows fitted, and "
        f"of {kept:.2f} on rows left out of a refit: {advice}.",
        OverfitWarning,
    )
    return f"{sentence} Low floors overfit this table: {advice}."


class _Refit:
    """A refit on some rows, measured on the others, at any floors."""

    def __init__(self, model: Any, moments: RowMoments, left_out: Array) -> None:
        result = model.result_
        self._factor = deficiency_of_rows(moments).factor
        self._rows = (left_out - moments.mean) / moments.scale
        self._problem = FrameProblem(
            self._factor, result.criterion, result.pair_weights, tol=_DIGITS, max_iter=60
        )
        # the outputs of the fit are close to those of the refit
        self._outputs = np.asarray(self._factor @ result.T)

    def measure(self, floors: Array) -> tuple[float, float, float]:
        """Mean fidelity, and rms correlation of sources and outputs, on the rows left out."""
        self._outputs = self._solve(floors)
        outputs = self._rows @ transform_of(self._factor, self._outputs, dense=False)
        sources, outs = _unit(self._rows), _unit(outputs)
        return float(np.einsum("ij,ij->j", sources, outs).mean()), _rms(sources), _rms(outs)

    def _solve(self, floors: Array) -> Array:
        """Outputs of the refit, from those at hand; no bound is needed, so descent is enough."""
        problem = self._problem
        if problem.criterion != "squared" or problem.pair_weights is not None:
            return np.asarray(problem.solve(floors, start=self._outputs).U)
        outputs, _, _ = descend_one(
            self._factor,
            on_caps(self._factor, self._outputs, floors),
            floors,
            bound=problem.least,
            goal=_DIGITS,
            max_iter=500,
            patience=10,
            enough=lambda v: _DIGITS * np.maximum(1.0, v),
        )
        return np.asarray(outputs)

    def first_kept(self, lowest: float) -> float | None:
        """The least of a few floors at which new rows keep nearly what the floor promises."""
        for floor in _FLOORS:
            fidelity = np.full(self._rows.shape[1], floor)
            if floor > lowest and self.measure(fidelity)[0] >= floor - _LOSS:
                return floor
        return None


def _unit(rows: Array) -> Array:
    centred = rows - rows.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    return np.asarray(centred / np.where(length > 0.0, length, 1.0))


def _rms(U: Array) -> float:
    """Root mean square correlation of unit columns, less the 1/(m - 1) of m independent rows."""
    m, p = U.shape
    F = U @ U.T
    diagonal = float((np.einsum("ij,ij->j", U, U) ** 2).sum())
    mean, chance = (float((F * F).sum()) - diagonal) / max(p * (p - 1), 1), 1.0 / (m - 1)
    return float(np.sqrt(max(mean - chance, 0.0) / (1.0 - chance)))
