"""Arrow arrays from Python's and NumPy's values, as pyarrow makes them, but without pandas.

``pyarrow.array`` and its like import pandas, which takes longer than most commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.exceptions import InvalidTableError


def text_array(texts: Sequence[str | None]) -> Any:
    """Texts as a pyarrow array."""
    import pyarrow as pa

    data = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise InvalidTableError("A column has more than 2 GiB of text in one batch of rows.")
    there = _bits(np.array([text is not None for text in texts], dtype=bool))
    buffers = pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(data)), there
    return pa.StringArray.from_buffers(len(data), *buffers)


def number_array(values: Array) -> Any:
    """Numbers as a pyarrow array, null where there is none; whole ones where all of them are."""
    import pyarrow as pa

    missing = np.isnan(values)
    kind, data = pa.float64(), np.ascontiguousarray(values)
    whole = np.where(missing, 0.0, values)
    if (whole == np.floor(whole)).all() and (np.abs(whole) < 2**53).all():
        kind, data = pa.int64(), whole.astype(np.int64)
    return pa.Array.from_buffers(kind, len(values), [_bits(~missing), pa.py_buffer(data)])


def _bits(there: NDArray[np.bool_]) -> Any:
    """Which cells hold a value, as Arrow stores it; None where all do."""
    import pyarrow as pa

    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def text_scalar(text: str) -> Any:
    """A text for pyarrow's functions."""
    return text_array([text])[0]


def number_texts(column: Any, decimal: str) -> Any:
    """Numbers with the digits that are needed to read the same number back, empty if missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = np.ascontiguousarray(column, dtype=np.float64)
    numbers = pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])
    texts = pc.cast(numbers, pa.string())
    if (values == np.rint(values)).any():  # 2 is written as 2.0: a column stays one of floats
        texts = pc.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")
    if np.isnan(values).any():
        texts = pc.if_else(pc.is_nan(numbers), text_scalar(""), texts)
    return texts if decimal == "." else pc.replace_substring(texts, ".", decimal)
