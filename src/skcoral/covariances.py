"""Correlation matrices by other estimators: scikit-learn's, a function, EM for missing values."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ._linalg import correlation_of_covariance
from ._requirements import require_finite, require_symmetric, square_matrix
from ._validation import judge_correlation
from .correlation import CorrelationEstimate, meaning, refuse_unusable
from .exceptions import InvalidArgumentError, InvalidCorrelationError, InvalidTableError
from .moments import Moments
from .results import Array

_MOST_REPEATED = 5_000_000  # rows that frequency weights may stand for
_EM_STEPS = 1000
_EM_CLOSE = 1e-9
_EM_SINGULAR = 1e-10  # share of the largest eigenvalue below which a direction has no variance


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
    rank_tol: float | None = None,
) -> CorrelationEstimate:
    """Estimate ``R`` by any estimator of a covariance matrix, or a function from rows to a matrix.

    The estimator sees the columns standardised, so that units do not matter.
    Where its variances differ from one, as those of robust estimators do, columns are standardised
    by its own. Weights only count rows, which are repeated: such estimators know no others.
    """
    refuse_unusable(moments, shrinkage=1.0)
    rows = np.asarray(X, dtype=np.float64)
    Z = (_repeated(rows, sample_weight, moments) - moments.mean) / moments.scale
    C, centre = _matrix(covariance, Z, moments.names)
    spread = np.sqrt(np.diag(C))
    R, found = judge_correlation(correlation_of_covariance(C), moments.names, rank_tol=rank_tol)
    if found is not None and on_singular == "raise":
        raise found.error()
    return CorrelationEstimate(
        R=R,
        mean=moments.mean + centre * moments.scale,
        scale=moments.scale * spread,
        names=moments.names,
        n_rows=moments.n_rows,
        weights=meaning(moments),
        deficiency=found,
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
    require_finite(C, names, what, InvalidCorrelationError)
    require_symmetric(C, names, what, InvalidCorrelationError, 1e-6)
    if not (np.diag(C) > 0.0).all():
        raise InvalidCorrelationError(f"{what} has a variance that is not positive.")
    return C, centre


def _repeated(rows: Array, sample_weight: Any, moments: Moments) -> Array:
    if sample_weight is None:
        return rows
    weights = np.asarray(sample_weight, dtype=np.float64)
    if not moments.weights_count_rows or not (weights == np.floor(weights)).all():
        raise InvalidArgumentError(
            "covariance= goes with weights that count rows: estimators of covariance matrices "
            "know no other ones. Leave out the weights or covariance."
        )
    if weights.sum() > _MOST_REPEATED:
        raise InvalidTableError(
            f"The weights stand for {weights.sum():,.0f} rows, and covariance= has to hold them "
            f"all (up to {_MOST_REPEATED:,}). Use smaller weights, or leave out covariance."
        )
    return np.repeat(rows, weights.astype(np.intp), axis=0)


def em_moments(
    X: Any, names: tuple[str, ...], *, sample_weight: Any = None, weight_kind: str = "auto"
) -> Moments:
    """Moments of a table with missing values, by maximum likelihood for normal rows (EM).

    Right where values are missing at random: whether one is missing may hang on the others of its
    row, not on itself. The covariance is positive definite wherever one of the complete data would
    be, which pairwise correlations are not. Rows without any value are left out.
    """
    rows = np.asarray(X, dtype=np.float64)
    seen = ~np.isnan(rows)
    used = seen.any(axis=1)
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
    used &= weights > 0
    counts = (seen & used[:, None]).sum(axis=0)
    if (counts < 2).any():
        bare = [name for name, few in zip(names, counts < 2, strict=True) if few]
        raise InvalidTableError(
            f"{', '.join(f'`{name}`' for name in bare)}: fewer than two values are there, which "
            "determine no correlation. Leave out the column."
        )
    rows, seen, weights = rows[used], seen[used], weights[used]
    together = seen.T.astype(np.float64) @ seen
    if not together.all():
        i, j = (int(k) for k in np.argwhere(together == 0)[0])
        raise InvalidTableError(
            f"`{names[i]}` and `{names[j]}` are never both there in a row, so nothing is known "
            "about how they correlate. Leave out one of them."
        )
    filled = np.where(seen, rows, np.nanmean(rows, axis=0))
    moments = Moments(names, weight_kind=weight_kind)
    moments.update(filled, sample_weight=None if sample_weight is None else weights)
    refuse_unusable(moments, shrinkage=1.0)
    if seen.all():
        return moments
    centre, unit = filled.mean(axis=0), filled.std(axis=0)
    Z = (rows - centre) / unit
    patterns = _patterns(seen)
    total, p = weights.sum(), len(names)
    mean = np.zeros(p)
    C = np.diag(np.nansum(weights[:, None] * Z * Z, axis=0) / (weights @ seen))
    for _ in range(_EM_STEPS):
        first, second = np.zeros(p), np.zeros((p, p))
        regular = _is_regular(C)
        for there, part in patterns:
            w, full, gone = weights[part], Z[part] - mean, ~there
            if gone.any():
                slope = _slope(C, there, regular)
                full[:, gone] = full[:, there] @ slope
                rest = C[np.ix_(gone, gone)] - C[np.ix_(gone, there)] @ slope
                second[np.ix_(gone, gone)] += w.sum() * rest
            first += w @ full
            second += (full * w[:, None]).T @ full
        shift = first / total
        update = second / total - np.outer(shift, shift)
        change = max(np.abs(update - C).max(), np.abs(shift).max())
        mean, C = mean + shift, 0.5 * (update + update.T)
        if change < _EM_CLOSE:
            break
    else:
        warnings.warn(
            f"After {_EM_STEPS} steps of EM, correlations still change by {change:.1e}: too much "
            "is missing to determine them. Leave out columns with few values.",
            ConvergenceWarning,
            stacklevel=2,
        )
    state = moments.state()
    state["mean"] = np.stack((centre + mean * unit, np.zeros(p)))
    state["comoment"] = np.stack((C * np.outer(unit, unit) * total, np.zeros((p, p))))
    return Moments.from_state(state)


def expected_rows(rows: Array, table: CorrelationEstimate) -> Array:
    """Rows with each missing value replaced by its conditional mean, as for normal rows.

    Expected values vary less than those that are there; a row without any value becomes the mean.
    """
    Z, R = (rows - table.mean) / table.scale, table.to_numpy()
    regular = _is_regular(R)
    for there, part in _patterns(~np.isnan(Z)):
        Z[np.ix_(part, ~there)] = Z[np.ix_(part, there)] @ _slope(R, there, regular)
    return np.where(np.isnan(rows), Z * table.scale + table.mean, rows)


def _patterns(seen: Any) -> list[tuple[Any, Any]]:
    """Which values are there, for each way in which some are missing, and the rows of it."""
    patterns, which = np.unique(seen, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))[:-1]
    return list(zip(patterns, np.split(order, ends), strict=True))


def _is_regular(C: Array) -> bool:
    spectrum = np.linalg.eigvalsh(C)
    return bool(spectrum[0] > _EM_SINGULAR * spectrum[-1])


def _slope(C: Array, there: Any, regular: bool) -> Array:
    """Slopes of the other variables on those that are there, some of which may determine others."""
    own, other = C[np.ix_(there, there)], C[np.ix_(there, ~there)]
    if regular:
        return np.asarray(np.linalg.solve(own, other))
    return np.asarray(np.linalg.pinv(own, rcond=_EM_SINGULAR, hermitian=True) @ other)


def effective_rows(X: Any) -> int:
    """Rows in which the pair of columns with the most missing values is complete.

    Every correlation that EM estimates is known at least as well as from this many complete rows.
    """
    seen = (~np.isnan(np.asarray(X, dtype=np.float64))).astype(np.float64)
    return int((seen.T @ seen).min())
