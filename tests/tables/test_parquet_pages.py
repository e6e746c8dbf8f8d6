"""Page headers of Parquet files, as several writers make them."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.limits import Limits, use
from skcoral.tables import open_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
import bombs  # noqa: E402

RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "x": RNG.normal(size=3000),
        "k": pa.array(RNG.integers(0, 5, 3000), pa.int16()),
        "t": pa.array([None if i % 7 == 0 else f"word {i % 90}" for i in range(3000)]),
        "long": pa.array(["y" * (i % 400) for i in range(3000)]),
        "b": pa.array(RNG.random(3000) < 0.5),
        "d": pa.array(RNG.integers(0, 10**9, 3000)).cast(pa.timestamp("ms")),
        "list": pa.array([list(range(i % 4)) for i in range(3000)]),
        "map": pa.array([{"a": i, "b": None} for i in range(3000)]),
    }
)


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}])
def test_a_file_without_rows_is_not_damaged(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE.slice(0, 0), path, **options)
    table = open_table(path)
    assert table.names == tuple(TABLE.column_names)
    assert sum(len(batch.rows) for batch in table.batches()) == 0


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"data_page_size": 300, "row_group_size": 700},
        {"write_statistics": False},
        {"write_page_index": True, "write_page_checksum": True},
    ],
)
def test_regular_files_are_read(
    tmp_path: Path, version: str, compression: str, options: dict[str, Any]
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, compression=compression, data_page_version=version, **options)
    batches = list(open_table(path).batches(1000))
    assert sum(len(batch.rows) for batch in batches) == 3000
    found = np.concatenate([np.asarray(batch.columns[0]) for batch in batches])
    np.testing.assert_array_equal(found, TABLE["x"].to_numpy())


@pytest.mark.parametrize("said", [1, 100, 99_999])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_more_values_than_declared(tmp_path: Path, said: int, options: dict[str, Any]) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(bombs.understated(100_000, 100_000, **options))
    assert len(list(open_table(path).batches(10))) == 1
    path.write_bytes(bombs.understated(100_000, said, **options))
    with pytest.raises(InvalidTableError, match=r"'b' hold more than the .* declares"):
        open_table(path)


def test_pages_that_unpack_to_much(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(bombs.overstated_page(2**31 - 1))
    with pytest.raises(TooLargeError, match="a page of column 'a': it unpacks to 2,048 MB"):
        open_table(path)
    path.write_bytes(bombs.overstated_page(10**6))
    with pytest.raises(InvalidTableError, match="'a' hold more"):
        open_table(path)
    pq.write_table(TABLE, path)
    with use(Limits(workbook_bytes=1000)), pytest.raises(TooLargeError, match="is 1,000 bytes"):
        open_table(path)


def test_damaged_headers_end_in_a_message(tmp_path: Path) -> None:
    stream = io.BytesIO()
    pq.write_table(TABLE.select(["x", "k", "list"]), stream)
    data = stream.getvalue()
    path = tmp_path / "t.parquet"
    for _ in range(300):
        spoiled = bytearray(data)
        for at in RNG.integers(4, len(data) - 2000, 3):
            spoiled[at] = RNG.integers(256)
        spoiled[4 + RNG.integers(30)] = RNG.integers(256)
        path.write_bytes(bytes(spoiled))
        with contextlib.suppress(InvalidTableError, TooLargeError):
            for _ in open_table(path).batches(1000):
                pass
