"""The regression of an outcome on the variables and on their outputs, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import EPS, Array

#: Least squares has no errors to estimate where the residuals are only rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LeastSquares:
    """Least squares with an intercept: t value of each coefficient, and R²."""

    t: Array
    r_squared: float


@dataclass(frozen=True)
class Regressions:
    """The same outcome explained by the variables and by their outputs."""

    n_rows: int
    on_variables: LeastSquares
    on_outputs: LeastSquares

    @property
    def turned(self) -> Array:
        """Which t values have the other sign on the outputs, as they are shown: with a decimal."""
        return np.asarray(self.on_variables.t.round(1) * self.on_outputs.t.round(1) < 0.0)


def least_squares(X: Any, y: Any) -> LeastSquares | None:
    """Regress ``y`` on the columns of ``X`` and an intercept.

    None where the t values do not exist: the columns are dependent, there are no more rows than
    coefficients, or the columns determine ``y``.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n, p = X.shape
    if n <= p + 1:
        return None
    # The intercept is fitted by centring; t values do not depend on the scale of a column.
    X, y = X - X.mean(axis=0), y - y.mean()
    spread = np.sqrt((X * X).sum(axis=0))
    total = float(y @ y)
    if not (spread > 0.0).all() or not total > 0.0:
        return None
    U, sizes, Vt = np.linalg.svd(X / spread, full_matrices=False)
    if sizes[-1] <= sizes[0] * n * EPS:
        return None
    inverse = Vt.T / sizes  # (XᵀX)⁻¹ = inverse @ inverse.T
    shares = U.T @ y
    rest = y - U @ shares
    unexplained = float(rest @ rest)
    if unexplained <= _ROUNDING * total:
        return None
    error = np.sqrt(unexplained / (n - p - 1) * (inverse**2).sum(axis=1))
    return LeastSquares(inverse @ shares / error, 1.0 - unexplained / total)


def regressions(estimator: Any, X: Any, y: Any) -> Regressions | None:
    """Both regressions, on the complete rows; None where one of them has no t values.

    Outputs that span the same space as the variables give the same fit. Outputs of composites
    (anchors) belong to no single variable, so there is nothing to put side by side.
    """
    if estimator.result_.anchors is not None:
        return None
    outputs = np.asarray(estimator.transform(X), dtype=np.float64)
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.isfinite(y) & np.isfinite(X).all(axis=1)
    on_variables = least_squares(X[known], y[known])
    on_outputs = least_squares(outputs[known], y[known])
    if on_variables is None or on_outputs is None:
        return None
    return Regressions(int(known.sum()), on_variables, on_outputs)
