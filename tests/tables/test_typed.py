"""Parquet and Stata files as several writers make them, and damaged ones."""

import contextlib
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from made_tables import parquet
from skcoral.core.limits import Limits
from skcoral.exceptions import InvalidTableError, TooLargeError
from skcoral.tables import open_table
from skcoral.tables.columns import profile
from skcoral.tables.variables import select_variables

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
    table = open_table(parquet(part, **options), name="t.parquet")
    batches = list(table.batches(1100))
    assert table.names == tuple(TABLE.column_names)
    for j, name in enumerate(TABLE.column_names):
        cells = [cell for batch in batches for cell in batch.columns[j].to_pylist()]
        assert cells == part[name].to_pylist()


@pytest.mark.parametrize("kind", NESTED)
def test_cells_of_several_values_are_refused_where_they_are_read(kind):
    data = parquet({"a": [1.0], "b": [2.0], "c": NESTED[kind]})
    with pytest.raises(InvalidTableError, match=r"column 'c' holds several values(.|\n)*without"):
        profile(open_table(data, name="t.parquet"))


def test_rows_are_counted_before_they_are_read(monkeypatch):
    zeros = pa.array(np.zeros(10**7, dtype=np.uint8))
    data = parquet({"a": zeros, "b": zeros})
    with pytest.raises(TooLargeError, match="times its size, and the limit is 1,000"):
        open_table(data, name="t.parquet")
    monkeypatch.setattr(Limits, "unpacked_ratio", 10**6)
    assert open_table(data, name="t.parquet").names == ("a", "b")


FRAME = pd.DataFrame(
    {
        "who": ["a", "b", "c", "d"],
        "x": [1.5, np.nan, 2.5, 0.25],
        "n": np.array([3, 1, 2, 7], dtype=np.int16),
        "when": pd.to_datetime(["2020-01-01", "2021-05-05", None, "1999-12-31"]),
        "sex": pd.Categorical(["f", "m", "f", "m"]),
    }
)


def stata(version):
    stream = io.BytesIO()
    FRAME.to_stata(stream, write_index=False, version=version)
    return stream.getvalue()


@pytest.mark.parametrize("version", [114, 117, 118, 119])
def test_numbers_texts_dates_and_codes_of_stata(version):
    table = open_table(stata(version), name="t.dta" if version == 114 else "upload")
    content = profile(table)
    assert table.names == tuple(FRAME.columns)
    kinds = [column.kind for column in content.columns.values()]
    assert kinds == ["text", "number", "number", "text", "number"]
    np.testing.assert_array_equal(table.to_numpy(["x", "n"]), FRAME[["x", "n"]])
    assert table.cells("sex") == [0, 1, 0, 1]
    assert str(table.cells("when")[0])[:10] == "2020-01-01"
    assert select_variables(table, content)[0] == ("x", "n", "sex")


@pytest.mark.parametrize("ending", ["parquet", "dta"])
def test_damage_ends_in_a_message(ending):
    data = stata(118) if ending == "dta" else parquet(TABLE.select(["x", "k", "t"]))
    rng = np.random.default_rng(1)
    for broken in (data[:300], b"a,b\n1,2\n"):
        with pytest.raises(InvalidTableError, match=rf"t\.{ending}: the \w+ file cannot be read"):
            open_table(broken, name=f"t.{ending}")
    for _ in range(200):
        spoiled = bytearray(data)
        # Parquet's footer and Stata's header are at the ends; its pages begin with a header.
        for at in [*rng.integers(4, max(len(data) - 2000, 300), 2), 4 + rng.integers(30)]:
            spoiled[at] = rng.integers(256)
        with contextlib.suppress(InvalidTableError):
            profile(open_table(bytes(spoiled), name=f"t.{ending}"))
