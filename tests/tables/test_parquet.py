"""Parquet files as several writers make them; what a cell cannot hold is refused by its schema."""

import contextlib
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skcoral.core.limits import Limits
from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.tables import open_table
from skcoral.tables.columns import profile

RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "x": RNG.normal(size=3000),
        "k": pa.array(RNG.integers(0, 5, 3000), pa.int16()),
        "t": pa.array([None if i % 7 == 0 else f"word {i % 90}" for i in range(3000)]),
        "long": pa.array(["y" * (i % 400) for i in range(3000)]),
        "b": pa.array(RNG.random(3000) < 0.5),
        "d": pa.array(RNG.integers(0, 10**9, 3000)).cast(pa.timestamp("ms")),
    }
)
NESTED = {
    "list": pa.array([[1, 2]]),
    "large": pa.array([[1]], pa.large_list(pa.int8())),
    "fixed": pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
    "record": pa.array([{"a": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
}


def written(table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize(
    "options",
    [{}, {"use_dictionary": False}, {"data_page_size": 300, "row_group_size": 700}],
)
@pytest.mark.parametrize("n", [0, 3000])
def test_regular_files_are_read(version, compression, options, n):
    part = TABLE.slice(0, n)
    options = {**options, "data_page_version": version, "compression": compression}
    table = open_table(written(part, **options), name="t.parquet")
    batches = list(table.batches(1100))
    assert table.names == tuple(TABLE.column_names)
    for j, name in enumerate(TABLE.column_names):
        cells = [cell for batch in batches for cell in batch.columns[j].to_pylist()]
        assert cells == part[name].to_pylist()


@pytest.mark.parametrize("kind", NESTED)
def test_cells_of_several_values_are_refused_where_they_are_read(kind):
    data = written(pa.table({"a": [1.0], "b": [2.0], "c": NESTED[kind]}))
    with pytest.raises(InvalidTableError, match=r"column 'c' holds several values(.|\n)*without"):
        profile(open_table(data, name="t.parquet"))


def test_rows_are_counted_before_they_are_read(monkeypatch):
    zeros = pa.array(np.zeros(10**7, dtype=np.uint8))
    data = written(pa.table({"a": zeros, "b": zeros}))
    with pytest.raises(TooLargeError, match="times its size, and the limit is 1,000"):
        open_table(data, name="t.parquet")
    monkeypatch.setattr(Limits, "unpacked_ratio", 10**6)
    assert open_table(data, name="t.parquet").names == ("a", "b")


def test_damage_ends_in_a_message():
    data = written(TABLE.select(["x", "k", "t"]))
    rng = np.random.default_rng(1)
    for _ in range(300):
        spoiled = bytearray(data)
        for at in [*rng.integers(4, len(data) - 2000, 3), 4 + rng.integers(30)]:
            spoiled[at] = rng.integers(256)
        with contextlib.suppress(InvalidTableError):
            for _ in open_table(bytes(spoiled), name="t.parquet").batches(1000):
                pass
