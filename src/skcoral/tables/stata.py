"""Stata files (.dta), read by pandas as a whole: they hold no more than their size."""

from __future__ import annotations

import struct
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from skcoral.core.limits import current
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import check_names
from skcoral.tables.table import Batch, Table

#: What pandas raises for damaged files, depending on the byte.
_DAMAGED = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    OSError,
    struct.error,
)


def open_stata(label: str, stream: BinaryIO) -> Table:
    """Open a Stata file; codes with labels stay codes, and dates become dates."""
    limits = current()
    try:
        with np.errstate(invalid="ignore"):  # dates that a damaged file puts beyond all calendars
            frame = pd.read_stata(stream, convert_categoricals=False)
        limits.check("columns", frame.shape[1], label)
        columns = pa.Table.from_pandas(frame, preserve_index=False).combine_chunks()
    except InvalidTableError:
        raise
    except (*_DAMAGED, pa.ArrowException) as error:
        raise InvalidTableError(
            f"{label}: the Stata file cannot be read ({str(error)[:120]}).\n"
            "It is damaged or was cut short: save or copy it again, or export it as CSV."
        ) from error
    names = tuple(map(str, columns.column_names))
    check_names(label, names, "the header")
    batch = Batch(range(1, columns.num_rows + 1), [c.combine_chunks() for c in columns.columns])
    return Table(label, names, "row", "stata", batch.parts)
