"""Arrow arrays from and to the values of Python and NumPy, without pandas.

``pyarrow.array``, ``pyarrow.scalar`` and ``to_numpy`` import pandas, with which ``coral inspect``
takes one and a half times as long for a small file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.lib import StringBuilder

from skcoral.core.arrays import Array, Mask
from skcoral.exceptions import InvalidTableError

_NAN = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(np.array([np.nan]))])[0]


def text_array(texts: Iterable[str | None]) -> Any:
    """Texts as an array; None where there is none."""
    builder = StringBuilder()
    try:
        builder.append_values(texts)
    except UnicodeEncodeError as error:
        raise InvalidTableError(
            f"the text {error.object[:30]!r} has half of a letter ({error.reason}), which no file "
            "can hold.\nCorrect the text, or leave the column out."
        ) from error
    return builder.finish()


def float_array(values: Array) -> Any:
    """Numbers as an array, null where there is none."""
    data, there = np.ascontiguousarray(values, dtype=np.float64), ~np.isnan(values)
    return pa.Array.from_buffers(pa.float64(), len(data), [_bits(there), pa.py_buffer(data)])


def selected(column: Any, chosen: Mask) -> Any:
    """Some cells of a column, an array of Arrow or NumPy."""
    if chosen.all():
        return column
    if isinstance(column, np.ndarray):
        return column[chosen]
    return column.filter(pa.Array.from_buffers(pa.bool_(), len(chosen), [None, _bits(chosen)]))


def _bits(mask: Mask) -> Any:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def floats(column: Any) -> Array:
    """A copy of the numbers of a float64 array, NaN where there is none."""
    return np.array(np.from_dlpack(pc.fill_null(column, _NAN)), dtype=np.float64)


def is_null(column: Any) -> Mask:
    """Which cells hold nothing."""
    return np.from_dlpack(pc.cast(pc.is_null(column), pa.uint8())).astype(bool)


def plain_cells(column: Any) -> list[Any]:
    """The cells as Python objects."""
    try:
        return list(column.to_pylist())
    except OverflowError:  # dates that Python does not know: Arrow's words for them
        return list(column.cast("string").to_pylist())
    except UnicodeDecodeError as error:
        raise InvalidTableError(
            f"A text of the Parquet file is not UTF-8 ({error.reason}).\n"
            "It is damaged: write or copy it again."
        ) from error
