"""Parquet files, read page by page."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skcoral.exceptions import InvalidTableError
from skcoral.limits import Clock, Limits, current
from skcoral.tables.cells import check_names
from skcoral.tables.parquet_pages import require_declared_pages
from skcoral.tables.table import Batch, Table


def open_parquet(label: str, opener: Callable[[], BinaryIO]) -> Table:
    """Open a Parquet file; batches are read one after the other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

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
            limits.require("columns", file.metadata.num_columns, label)
            names = tuple(file.schema_arrow.names)
            _refuse_lists(label, file.metadata, limits)
            require_declared_pages(label, stream, file.metadata, limits)
            total = file.metadata.num_rows
            # A text that occurs in every row is stored once, and stays so.
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise damaged(error) from error
    check_names(label, names, "row 1")

    def batches(size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        done = text = 0
        clock = Clock(limits, label)
        chosen = None if places is None else [names[j] for j in places]
        with opener() as stream:
            try:
                # Page by page: row groups may be as large as the file.
                source = pq.ParquetFile(
                    stream, read_dictionary=texts, pre_buffer=False, buffer_size=2**18
                )
                for part in source.iter_batches(batch_size=size, columns=chosen):
                    part = part if chosen is None else part.select(chosen)
                    clock.check()
                    sizes = _text_bytes(part)
                    text += int(sizes.sum())
                    limits.require("unpacked_bytes", text, label)
                    for piece in _within_limits(part, sizes, label, limits):
                        rows = range(done + 1, done + 1 + piece.num_rows)
                        done += piece.num_rows
                        yield Batch(rows, piece.columns, done / max(total, 1))
            except (pa.ArrowException, OSError) as error:
                raise damaged(error) from error

    return Table(label, names, "row", "parquet", batches, n_rows=total)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_binary(kind))


def _refuse_lists(label: str, metadata: Any, limits: Limits) -> None:
    """Refuse cells with more values than fit: a list of any length takes a few bytes in a file."""
    for j in range(metadata.num_columns):
        nested = metadata.schema.column(j).max_repetition_level > 0
        for i in range(metadata.num_row_groups if nested else 0):
            chunk = metadata.row_group(i).column(j)
            column = f"{label}: column {chunk.path_in_schema.split('.')[0]!r}"
            what = f"its lists have {chunk.num_values:,} values"
            limits.require("sheet_cells", chunk.num_values, column, what, "Leave it out.")


def _text_bytes(part: Any) -> NDArray[np.int64]:
    """Bytes of text in every row of a batch, without decoding it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = np.zeros(part.num_rows, dtype=np.int64)
    for column in part.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            sizes = pc.fill_null(pc.binary_length(column.dictionary).take(column.indices), 0)
            total += sizes.to_numpy(zero_copy_only=False)
    return total


def _within_limits(
    part: Any, sizes: NDArray[np.int64], label: str, limits: Limits
) -> Iterator[Any]:
    """Cut a batch into pieces whose texts fit in memory when they are decoded."""
    longest = int(sizes.max(initial=0))
    limits.require("record_bytes", longest, label)
    share = np.cumsum(sizes) // limits.record_bytes
    cuts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), part.num_rows]
    for low, high in itertools.pairwise(cuts):
        yield part.slice(low, high - low)
