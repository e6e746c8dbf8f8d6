"""The rows of a fit: read, with the names of columns at fault, and measured against their matrix.

Nearly dependent columns need large coefficients, which magnify the rounding of the matrix: with a
condition number of 1e11 the outputs' variances are off by 1e-6 although the matrix's are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from skcoral.core.arrays import EPS
from skcoral.core.validation import check_complete, listing, repeated
from skcoral.data.correlation import sample_correlation
from skcoral.data.moments import Moments
from skcoral.exceptions import InvalidTableError, RoundingWarning, warn

#: Differences between rows and matrix up to this are those of any computation: the variances of
#: well-conditioned tables differ by 1e-12, and ten times this could be read off a written file.
NEGLIGIBLE = 1e-7
#: What is said of columns that hold something else than real numbers.
_UNFIT = {
    "complex": "Complex data not supported, as in {}: give real numbers.",
    "dates": "Numbers are needed, got dates or times in {}: drop such columns, or turn them into "
    "numbers such as days since a first date.",
    "text": "Numbers are needed, got text or other things in {}: drop or encode such columns, or "
    "turn text that reads like numbers into numbers first.",
}


def named_rows(values: Any, names: Sequence[str]) -> Any:
    """Rows as a data frame, if pandas is there, so that messages name the columns."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return values
    return pd.DataFrame(values, columns=list(names))


def read_rows(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return ``X`` as a finite array of float64 or float32.

    ``n_features_in_`` and ``feature_names_in_`` of the estimator are set (``reset``), or compared
    with.
    """
    if hasattr(X, "column_names"):  # a table of Arrow's, where columns are not their names
        X = X.to_pandas()
    check_readable(X)
    if np.ma.isMaskedArray(X) and X.dtype.kind in "biuf":
        X = np.where(np.ma.getmaskarray(X), np.nan, np.ma.getdata(X))
    try:
        rows: NDArray[Any] = validate_data(
            estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False
        )
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, ValueError | OverflowError) or hasattr(X, "columns"):
            check_numeric(X)
        if isinstance(error, TypeError | ValueError):
            raise
        # Other libraries have errors of their own for columns that are no arrays of numbers.
        raise InvalidTableError(f"The table cannot be read as numbers: {error}.") from error
    check_numeric(X)  # text that reads like numbers passes scikit-learn
    check_complete(rows, column_names(estimator))
    return rows


def read_outputs(estimator: Any, X: Any) -> NDArray[Any]:
    """Return outputs of a fitted estimator as a finite array, in their order."""
    names = list(estimator.get_feature_names_out())
    labels = [str(name) for name in getattr(X, "columns", ())]
    if labels != names and sorted(labels) == sorted(names):
        raise InvalidTableError(
            f"The outputs are in another order: wanted {listing(names)}, got {listing(labels)}."
        )
    outputs: NDArray[Any] = check_array(
        X, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="X"
    )
    if outputs.shape[1] != len(names):
        raise InvalidTableError(
            f"There are {len(names)} outputs; X has {outputs.shape[1]} columns."
        )
    check_complete(outputs, names)
    return outputs


def comes_in_batches(X: Any) -> bool:
    """Whether ``X`` gives tables one after the other instead of being one."""
    return isinstance(X, Iterable) and not isinstance(X, Sized)


def batches(X: Iterable[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Where each batch is (for messages), its rows and its weights; empty ones are left out."""
    start = 0
    for number, batch in enumerate(X, start=1):
        where = f"Batch {number}, whose row 0 is row {start} of all"
        rows, *weights = batch if isinstance(batch, tuple) else (batch, None)
        if len(weights) != 1:
            raise InvalidTableError(
                f"{where}: a batch is a table or a pair (rows, sample_weight), not a tuple of "
                f"{len(batch)}."
            )
        n = len(rows) if isinstance(rows, Sized) else 1  # validated later
        if n:
            yield where, rows, weights[0]
        start += n


def column_names(estimator: Any) -> tuple[str, ...]:
    """Names of the columns last seen; x0, x1, … where the table had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{j}" for j in range(estimator.n_features_in_))
    return tuple(str(name) for name in names)


def check_readable(X: Any) -> None:
    """Refuse, with the column and the remedy, what scikit-learn refuses without them."""
    if isinstance(X, list | tuple) and X and getattr(X[0], "ndim", 0) == 2:
        raise InvalidTableError(
            f"A {type(X).__name__} of tables is not a table: concatenate them, or give an iterator "
            "of batches, as in fit(iter(tables))."
        )
    if comes_in_batches(X):
        raise InvalidTableError(
            "An iterator of batches goes to fit, which reads it once; give a table, or one batch "
            "at a time."
        )
    if hasattr(X, "collect"):
        raise InvalidTableError("A lazy table has no rows yet: collect() it first.")
    if not hasattr(X, "columns"):
        return
    labels = [str(name) for name in X.columns]
    if not labels:
        raise InvalidTableError("The table has no columns (0 feature(s)): give at least one.")
    twice = repeated(labels)
    if twice:
        raise InvalidTableError(
            f"Column names must be distinct; more than once: {listing(twice)}. Rename them."
        )


def check_numeric(X: Any) -> None:
    """Name the columns that hold text, dates, or anything else that is not a real number."""
    if hasattr(X, "columns"):
        columns = [(str(name), kind, X[name]) for name, kind in _untyped(X)]
    else:
        table = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
        if table.ndim != 2 or table.dtype.kind in "biuf":
            return
        columns = [(f"x{j}", table.dtype.kind, column) for j, column in enumerate(table.T)]
    by_content: dict[str, list[str]] = {}
    for name, kind, column in columns:
        by_content.setdefault(_content(column, kind), []).append(name)
    for content, reason in _UNFIT.items():
        if content in by_content:
            raise InvalidTableError(reason.format(listing(by_content[content])))


def _untyped(X: Any) -> list[tuple[Any, str]]:
    """The columns of a frame whose type does not say that they hold real numbers."""
    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes]  # types of polars have none
    return [(name, kind) for name, kind in zip(X.columns, kinds, strict=True) if kind not in "biuf"]


def _content(series: Any, kind: str) -> str:
    """What a column holds, by its type or else by its cells: numbers, or a key of ``_UNFIT``."""
    try:
        column = np.asarray(series)
    except Exception:  # what is no array of anything
        column = np.fromiter(series, dtype=object)
    for letter in (kind, column.dtype.kind):
        if letter in "cmM":
            return "complex" if letter == "c" else "dates"
    if column.ndim == 1 and column.dtype.kind in "biuf":
        return "numbers"
    # text that reads like numbers would pass as such
    if column.ndim > 1 or any(isinstance(cell, str | bytes) for cell in column.flat):
        return "text"
    try:
        column.astype(np.float64)
    except (ValueError, TypeError, OverflowError):  # the last of whole numbers beyond 1.8e308
        return "text"
    return "numbers"


def measure_rounding(estimator: Any, rows: Any = None, sample_weight: Any = None) -> None:
    """Measure a fresh fit on its rows, or bound the rounding without them; warn with the figures.

    The sentence goes to ``result_.notes.rounding``. A matrix by another estimator promises nothing
    about the rows, so nothing is done for it.
    """
    result = estimator.result_
    if estimator.estimate_.source or not isinstance(result.T, np.ndarray):
        return
    # Entries of R are off by a few units in the last place, and tᵢᵀRtⱼ by ‖tᵢ‖₁‖tⱼ‖₁ times that.
    bound = 4.0 * EPS * float(np.abs(result.T).sum(axis=0).max(initial=0.0)) ** 2
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
