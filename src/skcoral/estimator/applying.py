"""A fitted transformation applied to rows and to coefficients: inverse, criterion, regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.preprocessing import FunctionTransformer

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.results import Decorrelation
from skcoral.data.correlation import check_usable, sample_correlation
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments
from skcoral.exceptions import InvalidArgumentError, LeastNormWarning, warn
from skcoral.solvers.singular.pairs import criterion_of


def invert(T: Any, rank: int, outputs: Array) -> Array:
    """Standardised rows with these outputs; of a table of lower rank those of least norm."""
    if isinstance(T, LowRankTransform):
        rows, unique = T.solve(outputs)
    elif rank == T.shape[1]:
        try:
            return np.asarray(np.linalg.solve(T.T, outputs.T).T)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(
                "The transformation is singular (the support leaves outputs that are combinations "
                "of each other): there is no inverse."
            ) from None
    else:
        solution, _, reached, _ = np.linalg.lstsq(T.T, outputs.T, rcond=1e-13)
        rows, unique = np.asarray(solution.T), reached == len(T)
    if not unique:
        warn(
            f"{T.shape[1]} outputs of rank {rank} do not determine the rows: of all "
            "standardised rows with these outputs, those of least norm are returned.",
            LeastNormWarning,
        )
    return rows


class SourceCoefficients(NamedTuple):
    """A linear model on the original columns: ``X @ coef.T + intercept``."""

    coef: Array
    intercept: Any


def source_coefficients(model: Any, coef: Any, intercept: Any) -> SourceCoefficients:
    """Coefficients on the outputs of a fitted transformer as coefficients on its columns.

    With outputs ``y = s (T'(x - m) / d) + o``, the model ``b'y + c`` is ``a'x + c + b'o - a'm``
    where ``a = T(s b) / d``. This needs no inverse of T, so T may be singular or not square.
    """
    names = model.result_.names
    try:
        b, c = (np.asarray(given, dtype=np.float64) for given in (coef, intercept))
    except (TypeError, ValueError):
        raise InvalidArgumentError("coef and intercept must be numbers.") from None
    if b.ndim not in (1, 2) or b.shape[-1] != len(names):
        raise InvalidArgumentError(
            f"coef must have one coefficient for each of the {len(names)} outputs, as coef_ of a "
            f"linear model fitted on them has; got shape {b.shape}."
        )
    if c.shape not in ((), b.shape[:-1]):
        raise InvalidArgumentError(
            f"intercept must be one number for each target; got shape {c.shape} for coefficients "
            f"of shape {b.shape}."
        )
    scaled = b * model.moments_.scale if model.output_scale_ == "original" else b
    a = (model.T_ @ scaled.T).T / model.scale_
    moved = c + b @ model.output_mean_ - a @ model.mean_
    return SourceCoefficients(a, moved if moved.ndim else float(moved))


def in_container(estimator: Any, rows: Array, given: Any, names: Sequence[str]) -> Any:
    """Rows as ``set_output`` asks for them: an array, or a frame with these names."""
    chosen = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    known = FunctionTransformer(lambda _: rows, feature_names_out=lambda *_: list(names))
    return known.set_output(transform=chosen or get_config()["transform_output"]).transform(given)


def residual_of(result: Decorrelation, outputs: Array, *, sample_weight: Any = None) -> float:
    """The criterion on the correlations of these outputs, in blocks where columns are many."""
    n, p = outputs.shape
    if p > 2 * n:
        few = RowMoments(outputs, result.names, sample_weight=sample_weight)
        check_usable(few)
        U = few.deviations / np.sqrt(few.squares)
        return criterion_of(U, result.criterion, result.pair_weights)
    moments = Moments(result.names).update(outputs, sample_weight=sample_weight)
    G = sample_correlation(moments)
    return criteria.value(result.criterion, G, result.pair_weights)
