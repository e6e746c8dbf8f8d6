"""Tables out: whole files or none, and what is written reads back the same."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import string
from decimal import Decimal

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

from made_tables import like
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.writing import output_format, table_writer


@pytest.mark.parametrize("separator", [*string.punctuation.replace('"', ""), *"0ein \t\xa7"])
def test_another_reader_finds_the_same_cells_whatever_separates_them(separator):
    names = ["x", f"{separator}b", 'c"d', "e\rf"]
    texts = ["", separator, 'x"y', "a\nb", "\r", " z "]
    values = np.array([1.0, np.nan, -0.0, 1e-9, np.inf, 12345678.25])
    stream = io.BytesIO()
    writer = table_writer(stream, names, like=like(separator=separator))
    writer.write([values, texts, texts, texts[::-1]])
    writer.close()
    text = io.StringIO(stream.getvalue().decode(), newline="")
    header, *rows = csv.reader(text, delimiter=separator)
    numbers, *cells = zip(*rows, strict=True)
    assert header == names
    assert [list(column) for column in cells] == [texts, texts, texts[::-1]]
    np.testing.assert_array_equal([float(cell or "nan") for cell in numbers], values)
    assert np.signbit(float(numbers[2]))


def test_an_empty_cell_alone_is_a_row():
    stream = io.BytesIO()
    writer = table_writer(stream, ["x"])
    writer.write([np.array([1.0, np.nan])])
    writer.write([["", "y"]])
    writer.close()
    assert [*csv.reader(io.StringIO(stream.getvalue().decode()))] == [
        ["x"], ["1.0"], [""], [""], ["y"],
    ]  # fmt: skip


def test_gzip_output_is_reproducible():
    def once():
        stream = io.BytesIO()
        writer = table_writer(stream, ["x"], path="t.csv.gz")
        writer.write([np.array([1.0])])
        writer.close()
        return stream.getvalue()

    assert once() == once()
    assert gzip.decompress(once()) == b"x\n1.0\n"


def test_text_never_becomes_a_formula():
    stream = io.BytesIO()
    writer = table_writer(stream, ["=A1", "x"], path="t.xlsx")
    writer.write([["=cmd()"], np.array([1.0])])
    writer.close()
    sheet = openpyxl.load_workbook(stream).active
    assert [sheet["A1"].data_type, sheet["A2"].data_type] == ["s", "s"]
    assert sheet["A2"].value == "=cmd()"


def test_a_sheet_holds_what_it_can_and_the_rest_as_text():
    noon, day = datetime.datetime(2020, 1, 2, 12), datetime.date(2020, 1, 2)
    odd = [b"raw", noon.replace(tzinfo=datetime.UTC)]
    native = [True, 3, 2.5, Decimal("1.5"), day, noon, datetime.timedelta(hours=30)]
    stream = io.BytesIO()
    writer = table_writer(stream, list("abcdefghi"), path="t.xlsx")
    writer.write([pa.array([value, None]) for value in (*odd, *native)])
    writer.close()
    sheet = openpyxl.load_workbook(io.BytesIO(stream.getvalue())).active
    (first,) = sheet.iter_rows(min_row=2, values_only=True)  # a row of nothing is not kept
    midnight = datetime.datetime(2020, 1, 2)
    assert first == (*map(str, odd), *native[:3], 1.5, midnight, *native[5:])


def test_text_that_a_sheet_would_lose_is_refused():
    writer = table_writer(io.BytesIO(), ["note"], path="t.xlsx")
    with pytest.raises(InvalidTableError, match=r"32,767(.|\n)*Write \.csv or \.parquet"):
        writer.write([["x" * 32_768]])


@pytest.mark.parametrize("name", ["t", "t.dat", "t.dta", "t.csv.zip", "t.zip"])
def test_unknown_endings_are_refused(name):
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.tsv, \.parquet or \.xlsx"):
        output_format(name)
