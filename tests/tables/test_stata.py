"""Stata files of several versions, and damaged ones."""

import contextlib
import io

import numpy as np
import pandas as pd
import pytest

from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.columns import profile, select_variables
from skcoral.tables.reading import open_table
from skcoral.tables.writing import output_format

FRAME = pd.DataFrame(
    {
        "who": ["a", "b", "c", "d"],
        "x": [1.5, np.nan, 2.5, 0.25],
        "n": np.array([3, 1, 2, 7], dtype=np.int16),
        "when": pd.to_datetime(["2020-01-01", "2021-05-05", None, "1999-12-31"]),
        "sex": pd.Categorical(["f", "m", "f", "m"]),
    }
)


def written(version):
    stream = io.BytesIO()
    FRAME.to_stata(stream, write_index=False, version=version)
    return stream.getvalue()


@pytest.mark.parametrize("version", [114, 117, 118, 119])
def test_numbers_texts_dates_and_codes(version):
    table = open_table(written(version), name="t.dta")
    content = profile(table)
    assert table.names == tuple(FRAME.columns)
    kinds = [column.kind for column in content.columns]
    assert kinds == ["text", "number", "number", "text", "number"]
    np.testing.assert_array_equal(table.to_numpy(["x", "n"]), FRAME[["x", "n"]])
    assert table.cells("sex") == [0, 1, 0, 1]
    assert str(table.cells("when")[0])[:10] == "2020-01-01"
    assert select_variables(table, content)[0] == ("x", "n", "sex")


def test_newer_files_are_recognised_by_content():
    assert open_table(written(118), name="upload").format == "stata"


def test_damage_ends_in_a_message():
    data, rng = written(118), np.random.default_rng(0)
    with pytest.raises(InvalidTableError, match=r"t\.dta: the Stata file cannot be read"):
        open_table(data[:300], name="t.dta")
    with pytest.raises(InvalidTableError, match=r"t\.dta: the Stata file cannot be read"):
        open_table(b"a,b\n1,2\n", name="t.dta")
    for _ in range(100):
        spoiled = bytearray(data)
        spoiled[rng.integers(len(data))] = rng.integers(256)
        with contextlib.suppress(InvalidTableError):
            profile(open_table(bytes(spoiled), name="t.dta"))


def test_stata_files_are_not_written():
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.tsv, \.parquet or \.xlsx"):
        output_format("t.dta")
