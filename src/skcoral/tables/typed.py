"""Files whose columns have types: Parquet, read page by page, and Stata (.dta), read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.types import is_binary, is_dictionary, is_nested, is_string

from skcoral.core.limits import Clock, current
from skcoral.exceptions import InvalidTableError
from skcoral.tables.sources import readable
from skcoral.tables.table import Batch, Table


def open_parquet(label: str, opener: Callable[[], BinaryIO], size: int) -> Table:
    """Open a Parquet file of ``size`` bytes; columns of lists and records are refused."""
    limits = current()
    with readable(label, "the Parquet file", pa.ArrowException), opener() as stream:
        file = pq.ParquetFile(stream)
        limits.check("columns", file.metadata.num_columns, label)
        fields, total = list(file.schema_arrow), file.metadata.num_rows
        names = tuple(field.name for field in fields)
        limits.check_ratio(8 * total * len(names), size, label)
    for field in fields:
        if is_nested(field.type):
            raise InvalidTableError(
                f"{label}: a cell of column {field.name!r} holds several values "
                f"({str(field.type)[:60]}).\n"
                "Write the file without that column, or with one column for each value."
            )
    # A text that occurs in every row is stored once, and stays so.
    texts = [field.name for field in fields if _is_text(field.type)]

    def batches(size: int) -> Iterator[Batch]:
        done = 0
        clock = Clock(limits, label)
        with readable(label, "the Parquet file", pa.ArrowException), opener() as stream:
            # Page by page: row groups may be as large as the file.
            source = pq.ParquetFile(
                stream, read_dictionary=texts, pre_buffer=False, buffer_size=2**18
            )
            for part in source.iter_batches(batch_size=size):
                clock.check()
                limits.check("whole_bytes", _text_bytes(part), label)
                done += part.num_rows
                if done > total:
                    raise pa.ArrowInvalid(f"more than the {total:,} rows that it declares")
                rows = range(done - part.num_rows + 1, done + 1)
                yield Batch(rows, part.columns, done / max(total, 1))

    return Table(label, names, "row", "parquet", batches)


def open_stata(label: str, stream: BinaryIO) -> Table:
    """Open a Stata file, which holds no more than its size; codes with labels stay codes."""
    import pandas as pd

    # By the byte that is damaged, pandas raises almost any error.
    with readable(label, "the Stata file", Exception):
        frame = pd.read_stata(stream, convert_categoricals=False)
        columns = pa.Table.from_pandas(frame, preserve_index=False).combine_chunks()
    current().check("columns", columns.num_columns, label)
    names = tuple(map(str, columns.column_names))
    batch = Batch(range(1, columns.num_rows + 1), [c.combine_chunks() for c in columns.columns])
    return Table(label, names, "row", "stata", batch.parts)


def _is_text(kind: Any) -> bool:
    return bool(is_string(kind) or is_binary(kind))


def _text_bytes(part: Any) -> int:
    """Bytes of text in a batch, were it decoded."""
    total = 0
    for column in part.columns:
        if is_dictionary(column.type) and _is_text(column.type.value_type):
            sizes = pc.binary_length(column.dictionary).take(column.indices)
            total += pc.sum(sizes).as_py() or 0
    return total
