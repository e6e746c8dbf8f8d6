"""Tables on a cluster: moments per partition, merged in a tree, and one solve for all.

Only p×p numbers are sent between the workers, so that the size of a table does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.validation import column_labels, listing
from skcoral.data.moments import Moments, merge_all
from skcoral.estimator import CORAL
from skcoral.exceptions import InvalidTableError

_MERGED_AT_ONCE = 8


def moments(data: Any, *, sample_weight: Any = None) -> Moments:
    """Moments of a Dask DataFrame or Array, computed where its partitions are.

    The weights are a Dask Series or Array, partitioned as the rows are.
    """
    import dask

    blocks, names = _blocks(data)
    weights: list[Any] = [None] * len(blocks)
    if sample_weight is not None:
        if not hasattr(sample_weight, "to_delayed"):
            raise InvalidTableError(
                "sample_weight must be a Dask Series or Array, partitioned as the rows are; got "
                f"{_kind(sample_weight)}."
            )
        weights = list(np.ravel(sample_weight.to_delayed()))
        if len(weights) != len(blocks):
            raise InvalidTableError(
                f"The rows are in {len(blocks)} partitions and sample_weight in {len(weights)}: "
                "both must be divided in the same way."
            )
    summarise = dask.delayed(_partition_moments, pure=True)
    merge = dask.delayed(merge_all, pure=True)
    level = [summarise(b, names, w) for b, w in zip(blocks, weights, strict=True)]
    while len(level) > 1:
        level = [
            merge(level[start : start + _MERGED_AT_ONCE])
            for start in range(0, len(level), _MERGED_AT_ONCE)
        ]
    merged: Moments = dask.compute(level[0])[0]
    return merged


def fit(estimator: CORAL, data: Any, *, sample_weight: Any = None) -> CORAL:
    """Fit an estimator to a Dask DataFrame or Array: one pass, then one solve here.

    Parameters
    ----------
    estimator : CORAL
        Fitted anew, in place. What needs all rows at once (``covariance``, ``confidence``) is
        refused.
    data : dask.dataframe.DataFrame or dask.array.Array of shape (n, p)
        The rows.
    sample_weight : dask Series or Array of shape (n,), optional
        How many times each row counts, partitioned as the rows are.

    Returns
    -------
    CORAL
        The estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from skcoral import CORAL
    >>> from skcoral.tables import dask as coral_dask
    >>> rows = da.random.default_rng(0).normal(size=(1000, 3), chunks=(100, 3))
    >>> coral = coral_dask.fit(CORAL(), rows)
    >>> coral.n_samples_seen_
    1000
    >>> coral_dask.transform(coral, rows).shape
    (1000, 3)
    """
    return estimator.fit_moments(moments(data, sample_weight=sample_weight))


def transform(estimator: CORAL, data: Any) -> Any:
    """Outputs for a Dask DataFrame or Array, of the same kind, computed when asked for.

    Parameters
    ----------
    estimator : CORAL
        Fitted.
    data : dask.dataframe.DataFrame or dask.array.Array of shape (n, p)
        The rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from skcoral import CORAL
    >>> rows = da.random.default_rng(0).normal(size=(1000, 3), chunks=(100, 3))
    >>> transform(fit(CORAL(), rows), rows).compute().shape
    (1000, 3)
    """
    names = [str(name) for name in estimator.get_feature_names_out()]
    if _is_frame(data):
        meta = _transform_frame(data._meta_nonempty, estimator, names).iloc[:0]
        return data.map_partitions(_transform_frame, estimator, names, meta=meta)
    wide = data.rechunk({1: -1})
    kind = _output_type(wide.dtype)
    return wide.map_blocks(
        _transform_block, estimator, dtype=kind, chunks=(wide.chunks[0], (len(names),))
    )


def _blocks(data: Any) -> tuple[list[Any], tuple[str, ...]]:
    is_frame = _is_frame(data)
    blocks = data.to_delayed() if is_frame else data.rechunk({1: -1}).to_delayed().ravel()
    # names that are not text count for nothing, as in scikit-learn
    return list(blocks), column_labels(data) or tuple(f"x{j}" for j in range(data.shape[1]))


def _is_frame(data: Any) -> bool:
    """Whether this is a DataFrame or an Array; anything else, or text in it, is refused."""
    from pandas.api.types import is_numeric_dtype

    is_frame = hasattr(data, "map_partitions")
    if getattr(data, "ndim", None) != 2 or not (is_frame or hasattr(data, "rechunk")):
        raise InvalidTableError(
            f"A Dask DataFrame or a two-dimensional Dask Array is needed; got {_kind(data)}."
        )
    if is_frame:
        text = [str(name) for name, kind in data.dtypes.items() if not is_numeric_dtype(kind)]
        if text:
            raise InvalidTableError(f"{listing(text)} hold no numbers: drop or encode them.")
    return is_frame


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _partition_moments(block: Any, names: tuple[str, ...], weights: Any) -> Moments:
    if hasattr(block, "columns"):  # pandas' own mark of a missing value is not a number
        block = block.to_numpy(dtype=np.float64, na_value=np.nan)
    return Moments(names).update(block, sample_weight=weights)


def _output_type(kind: Any) -> np.dtype[Any]:
    return np.dtype(kind if kind == np.float32 else np.float64)


def _transform_block(block: Any, estimator: CORAL) -> Any:
    if len(block) == 0:  # a filter may leave partitions without rows
        kind = _output_type(np.asarray(block).dtype)
        return np.empty((0, len(estimator.result_.names)), dtype=kind)
    return np.asarray(estimator.transform(block))


def _transform_frame(frame: Any, estimator: CORAL, names: list[str]) -> Any:
    import pandas as pd

    rows = frame if hasattr(estimator, "feature_names_in_") else frame.to_numpy()
    return pd.DataFrame(_transform_block(rows, estimator), index=frame.index, columns=names)
