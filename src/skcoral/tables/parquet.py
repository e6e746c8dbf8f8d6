"""Parquet files, read page by page; columns of lists and records are refused by their schema."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skcoral.core.limits import Clock, Limits, current
from skcoral.exceptions import InvalidTableError
from skcoral.tables.cells import check_names
from skcoral.tables.table import Batch, Table


def open_parquet(label: str, opener: Callable[[], BinaryIO], size: int) -> Table:
    """Open a Parquet file of ``size`` bytes; batches are read one after the other."""
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
            nested = {f.name: str(f.type) for f in file.schema_arrow if pa.types.is_nested(f.type)}
            total = file.metadata.num_rows
            limits.check_ratio(8 * total * len(names), size, label)
            # A text that occurs in every row is stored once, and stays so.
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise damaged(error) from error
    check_names(label, names, "row 1")

    def batches(size: int, places: Sequence[int] | None) -> Iterator[Batch]:
        done = text = 0
        clock = Clock(limits, label)
        chosen = None if places is None else [names[j] for j in places]
        held = next((name for name in chosen or names if name in nested), None)
        if held is not None:
            raise InvalidTableError(
                f"{label}: a cell of column {held!r} holds several values ({nested[held][:60]}).\n"
                "Write the file without that column, or with one column for each value."
            )
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
                    limits.require("bytes", text, label)
                    for piece in _within_limits(part, sizes, label, limits):
                        rows = range(done + 1, done + 1 + piece.num_rows)
                        done += piece.num_rows
                        if done > total:
                            raise pa.ArrowInvalid(f"more than the {total:,} rows that it declares")
                        yield Batch(rows, piece.columns, done / max(total, 1))
            except (pa.ArrowException, OSError) as error:
                raise damaged(error) from error

    return Table(label, names, "row", "parquet", batches, n_rows=total)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_binary(kind))


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
