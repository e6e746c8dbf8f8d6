"""Parquet files, read page by page; columns of lists and records are refused by their schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from skcoral.core.limits import Clock, current
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import check_names
from skcoral.tables.table import Batch, Table


def open_parquet(label: str, opener: Callable[[], BinaryIO], size: int) -> Table:
    """Open a Parquet file of ``size`` bytes; batches are read one after the other."""
    limits = current()

    def damaged(error: Exception) -> InvalidTableError:
        told = str(error).splitlines() or [type(error).__name__]
        return InvalidTableError(
            f"{label}: the Parquet file cannot be read ({told[0][:120]}).\n"
            "It is damaged or was cut short: write or copy it again."
        )

    try:
        with opener() as stream:
            file = pq.ParquetFile(stream)
            limits.check("columns", file.metadata.num_columns, label)
            names = tuple(file.schema_arrow.names)
            nested = {f.name: str(f.type) for f in file.schema_arrow if pa.types.is_nested(f.type)}
            total = file.metadata.num_rows
            limits.check_ratio(8 * total * len(names), size, label)
            # A text that occurs in every row is stored once, and stays so.
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise damaged(error) from error
    check_names(label, names, "row 1")
    if nested:
        name, kind = next(iter(nested.items()))
        raise InvalidTableError(
            f"{label}: a cell of column {name!r} holds several values ({kind[:60]}).\n"
            "Write the file without that column, or with one column for each value."
        )

    def batches(size: int) -> Iterator[Batch]:
        done = 0
        clock = Clock(limits, label)
        with opener() as stream:
            try:
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
            except (pa.ArrowException, OSError) as error:
                raise damaged(error) from error

    return Table(label, names, "row", "parquet", batches)


def _is_text(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_binary(kind))


def _text_bytes(part: Any) -> int:
    """Bytes of text in a batch, were it decoded."""
    total = 0
    for column in part.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            sizes = pc.binary_length(column.dictionary).take(column.indices)
            total += pc.sum(sizes).as_py() or 0
    return total
