"""From a correlation estimate to the fitted attributes of the transformer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skcoral import api
from skcoral.choosing import solve_for
from skcoral.core.goals import Notes
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.problem import Matrix, check_matrix
from skcoral.core.results import Decorrelation, Threshold
from skcoral.data.correlation import CorrelationEstimate
from skcoral.data.effects import Measured, measure_matrix, measure_rows
from skcoral.data.moments import Moments
from skcoral.estimator.rows import named_rows
from skcoral.exceptions import NotCertifiedWarning

_LONG = 10_000  # columns of a wide table from which on the effect is measured only on request


def solve(
    estimator: Any,
    table: CorrelationEstimate,
    moments: Moments,
    *,
    floors: Any = None,
    judged: Matrix | None = None,
    measured_on: Any = None,
    near: Any = None,
    measure: bool = True,
) -> None:
    """Solve for ``table`` with an estimator's settings and set its fitted attributes.

    The effect is measured on the rows, weighted as they are in the fit, or on the correlation
    matrix ``measured_on`` where there are no rows.
    ``floors`` replace those of the settings; ``judged`` is the matrix, where it was judged before;
    ``near`` is a model of a similar matrix to start from. Without ``measure`` the effect is
    measured when it is asked for.
    """
    given = judged or check_matrix(table, on_singular=estimator.on_singular)
    regular = table.deficiency is None
    warm = None
    if near is not None and regular:
        warm, given.memory.near = near.result_, near.threshold_.weights
    result = solve_for(given, estimator, floors=floors, warm=warm)
    long = table.is_wide and len(table.names) > _LONG
    on_rows = None
    if measured_on is not None:
        on_rows = measure_matrix(measured_on, result.T, result.names)
    elif measure and not long:
        on_rows = measure_rows(table, result, moments)
    if regular:  # of a singular matrix it takes as long again: on request
        estimator.threshold_ = api.threshold(given)
    estimator.estimate_ = table
    estimator.output_scale_ = estimator.output_scale  # a setting changed later waits for a new fit
    notes = Notes(table.about or Notes.about, table.is_about_rows, table.guarantee)
    estimator.result_ = replace(result, R=None, on_rows=on_rows, notes=notes)


def confident(estimator: Any, rows: Any, sample_weight: Any, groups: Any) -> Any:
    """Raise the floors for the population with an estimator's settings."""
    from skcoral.stability import confident_floors

    names = estimator.__dict__.get("feature_names_in_")
    rows = rows if names is None else named_rows(rows, names)
    return confident_floors(
        estimator,
        rows,
        confidence=estimator.confidence,
        sample_weight=sample_weight,
        groups=groups,
    )


def with_notes(result: Decorrelation, **notes: Any) -> Decorrelation:
    """Return the result with further notes."""
    return replace(result, notes=replace(result.notes, **notes))


def _threshold(model: Any) -> Threshold:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.threshold_ = api.threshold(model.estimate_)
    return model.threshold_


def _measured(model: Any) -> Measured:
    if model.result_.on_rows is not None:
        return model.result_.on_rows
    model.measured_ = measure_rows(model.estimate_, model.result_, model.moments_)
    return model.measured_


def _components(model: Any) -> Any:
    T = model.T_.toarray() if isinstance(model.T_, LowRankTransform) else model.T_
    components = (T / model.scale_[:, None]).T
    original = model.output_scale_ == "original"
    return components * model.moments_.scale[:, None] if original else components


def _output_mean(model: Any) -> Any:
    if model.output_scale_ == "original":
        return model.moments_.mean
    return np.zeros(len(model.result_.names))


def _n_iter(model: Any) -> int:
    regular = model.estimate_.deficiency is None
    return model.result_.n_iter + (model.threshold_.n_iter if regular else 0)


#: What a fitted transformer computes from ``moments_``, ``estimate_`` and ``result_``.
COMPUTED: dict[str, Callable[[Any], Any]] = {
    "T_": lambda model: model.result_.T,
    "certificate_": lambda model: model.result_.certificate,
    "components_": _components,
    "correlation_": lambda model: model.estimate_.R,
    "fidelity_": lambda model: model.result_.fidelity,
    "floors_": lambda model: model.result_.rho_min,
    "mean_": lambda model: model.estimate_.mean,
    "measured_": _measured,
    "n_iter_": _n_iter,
    "output_mean_": _output_mean,
    "prices_": lambda model: model.result_.prices,
    "scale_": lambda model: model.estimate_.scale,
    "threshold_": _threshold,
}
SOLVED = ("estimate_", "result_", "output_scale_", *COMPUTED)
