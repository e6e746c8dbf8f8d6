"""Correlation matrices by other estimators: those of scikit-learn, or a function."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.linalg import correlation_of_covariance
from skcoral.core.matrix import check_finite, check_semidefinite, check_symmetric, square_matrix
from skcoral.data.correlation import CorrelationEstimate, check_usable
from skcoral.data.moments import Moments
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError


def check_covariance(covariance: Any) -> Any:
    """Return an estimator or function that gives a matrix, or None; names are scikit-learn's."""
    if covariance is None:
        return None
    if isinstance(covariance, str):
        import sklearn.covariance

        found = getattr(sklearn.covariance, covariance, None)
        if covariance not in sklearn.covariance.__all__ or not inspect.isclass(found):
            names = [
                name
                for name in sklearn.covariance.__all__
                if hasattr(getattr(sklearn.covariance, name), "fit") and name != "EllipticEnvelope"
            ]
            raise InvalidArgumentError(
                f"covariance={covariance!r} is no estimator of sklearn.covariance; there are "
                f"{', '.join(sorted(names))}."
            )
        return _made(found)
    if inspect.isclass(covariance):
        return _made(covariance)
    if hasattr(covariance, "fit") or callable(covariance):
        return covariance
    raise InvalidArgumentError(
        "covariance must be an estimator with fit and covariance_ (such as those of "
        "sklearn.covariance), the name of one, or a function from rows to a matrix; got "
        f"{covariance!r}."
    )


def _made(kind: type[Any]) -> Any:
    """An estimator with its defaults, and a fixed seed where it draws (MinCovDet does)."""
    made = kind()
    if "random_state" in getattr(made, "get_params", dict)():
        made.set_params(random_state=0)
    return made


def name_of(covariance: Any) -> str:
    """What to call an estimator or function in a sentence."""
    return getattr(covariance, "__name__", type(covariance).__name__)


def estimate_by(
    covariance: Any,
    X: Any,
    moments: Moments,
    *,
    sample_weight: Any = None,
    on_singular: str = "raise",
) -> CorrelationEstimate:
    """Estimate ``R`` by any estimator of a covariance matrix, or a function from rows to a matrix.

    The estimator sees the columns standardised, so that units do not matter.
    Where its variances differ from one, as those of robust estimators do, columns are standardised
    by its own. Such estimators know no weights, so that unequal ones are refused.
    """
    check_usable(moments)
    if moments.is_weighted:
        raise InvalidArgumentError(
            "covariance= takes no weights: estimators of covariance matrices know none. Leave out "
            "the weights or covariance."
        )
    rows = np.asarray(X, dtype=np.float64)
    if sample_weight is not None:
        rows = rows[np.asarray(sample_weight, dtype=np.float64) > 0.0]
    Z = (rows - moments.mean) / moments.scale
    C, centre = _matrix(covariance, Z, moments.names)
    spread = np.sqrt(np.diag(C))
    matrix = check_semidefinite(correlation_of_covariance(C), moments.names)
    if on_singular == "raise":
        matrix.regular()
    return CorrelationEstimate(
        R=matrix.R,
        mean=moments.mean + centre * moments.scale,
        scale=moments.scale * spread,
        names=moments.names,
        n_rows=moments.n_rows,
        deficiency=matrix.deficiency,
        source=name_of(covariance),
        judged=True,
    )


def _matrix(covariance: Any, Z: Array, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The matrix, and where the estimator puts the centre of the standardised rows."""
    centre = np.zeros(Z.shape[1])
    if hasattr(covariance, "fit"):
        from sklearn.base import clone

        fitted = clone(covariance).fit(Z)
        if not hasattr(fitted, "covariance_"):
            raise InvalidArgumentError(
                f"{name_of(covariance)} has no covariance_ after fit, so it estimates no "
                "covariance matrix."
            )
        found, centre = fitted.covariance_, np.asarray(getattr(fitted, "location_", centre))
    else:
        found = covariance(Z)
    what = f"The matrix of {name_of(covariance)}"
    C, _ = square_matrix(found, what, InvalidCorrelationError)
    if C.shape != (len(names), len(names)):
        raise InvalidCorrelationError(
            f"{what} must be {len(names)} × {len(names)}, one row per column; got {C.shape}."
        )
    check_finite(C, names, what, InvalidCorrelationError)
    check_symmetric(C, names, what, InvalidCorrelationError, 1e-6)
    if not (np.diag(C) > 0.0).all():
        raise InvalidCorrelationError(f"{what} has a variance that is not positive.")
    return C, centre
