"""Tables out: whole files or none, and what is written reads back the same."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import os
import string
from dataclasses import replace
from decimal import Decimal

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

from skcoral.core.files import Outputs
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables.reading import open_table
from skcoral.tables.table import Table
from skcoral.tables.writing import output_format, table_writer


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_appears_before_commit(tmp_path):
    with Outputs() as outputs:
        outputs.write_text(tmp_path / "a", "A")
        outputs.write_text(tmp_path / "b", "B")
        assert not (tmp_path / "a").exists()
        outputs.commit()
    assert left_in(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_stays_behind_after_a_failure(tmp_path, error):
    (tmp_path / "a").write_text("before")

    def write():
        with Outputs(force=True) as outputs:
            outputs.write_text(tmp_path / "a", "after")
            with outputs.open(tmp_path / "b") as stream:
                stream.write(b"half")
                raise error

    with pytest.raises(error):
        write()
    assert left_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_existing_files_are_kept_unless_forced(tmp_path):
    target = tmp_path / "a"
    target.write_text("before")
    target.chmod(0o640)
    with pytest.raises(FileExistsError), Outputs() as outputs:
        outputs.reserve(target)
    with Outputs(force=True) as outputs:
        outputs.write_text(target, "after")
        outputs.commit()
    assert target.read_text() == "after"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    target = tmp_path / "a"
    with Outputs() as outputs:
        outputs.write_text(target, "ours")
        target.write_text("theirs")
        with pytest.raises(FileExistsError):
            outputs.commit()
    assert target.read_text() == "theirs"
    assert left_in(tmp_path) == ["a"]


def test_new_files_have_the_usual_permissions(tmp_path):
    mask = os.umask(0o027)
    try:
        with Outputs() as outputs:
            outputs.write_text(tmp_path / "a", "A")
            outputs.commit()
    finally:
        os.umask(mask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_one_name_for_two_outputs_and_a_folder(tmp_path):
    with Outputs() as outputs:
        outputs.reserve(tmp_path / "a")
        with pytest.raises(InvalidArgumentError, match="two outputs have the same name"):
            outputs.reserve(tmp_path / "b" / ".." / "a")
        with pytest.raises(IsADirectoryError):
            outputs.reserve(tmp_path)
        with pytest.raises(FileNotFoundError) as caught:
            outputs.reserve(tmp_path / "no" / "a")
        assert caught.value.filename == str(tmp_path / "no" / "a")


def like(**options):
    """A table that is written in this way."""
    return replace(Table("like", (), "line", "csv", lambda size, places: iter(())), **options)


@pytest.mark.parametrize("separator", [*string.punctuation.replace('"', ""), *"0ein \t\xa7"])
def test_another_reader_finds_the_same_cells_whatever_separates_them(separator):
    names = ["x", f"{separator}b", 'c"d', "e\rf"]
    words = ["", separator, 'x"y', "a\nb", "\r", " z "]
    values = np.array([1.0, np.nan, -0.0, 1e-9, np.inf, 12345678.25])
    stream = io.BytesIO()
    writer = table_writer(stream, names, like=like(separator=separator))
    writer.write([values, words, words, words[::-1]])
    writer.close()
    text = io.StringIO(stream.getvalue().decode(), newline="")
    header, *rows = csv.reader(text, delimiter=separator)
    numbers, *cells = zip(*rows, strict=True)
    assert header == names
    assert [list(column) for column in cells] == [words, words, words[::-1]]
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


def test_types_of_a_parquet_file_survive():
    columns = [
        pa.array([1, None], pa.int16()),
        pa.array([datetime.date(2020, 1, 1), None]),
        np.array([0.5, 0.25]),
    ]
    stream = io.BytesIO()
    writer = table_writer(stream, ["n", "day", "x"], path="t.parquet")
    writer.write(columns)
    writer.close()
    batch = next(open_table(stream.getvalue()).batches())
    assert [str(c.type) for c in batch.columns] == ["int16", "date32[day]", "double"]


def test_a_sheet_holds_what_it_can_and_the_rest_as_text():
    noon, day = datetime.datetime(2020, 1, 2, 12), datetime.date(2020, 1, 2)
    odd = [b"raw", noon.replace(tzinfo=datetime.UTC)]
    kept = [True, 3, 2.5, Decimal("1.5"), day, noon, datetime.timedelta(hours=30)]
    stream = io.BytesIO()
    writer = table_writer(stream, list("abcdefghi"), path="t.xlsx")
    writer.write([pa.array([value, None]) for value in (*odd, *kept)])
    writer.close()
    sheet = openpyxl.load_workbook(io.BytesIO(stream.getvalue())).active
    (first,) = sheet.iter_rows(min_row=2, values_only=True)  # a row of nothing is not kept
    midnight = datetime.datetime(2020, 1, 2)
    assert first == (*map(str, odd), *kept[:3], 1.5, midnight, *kept[5:])


def test_text_that_a_sheet_would_lose_is_refused():
    writer = table_writer(io.BytesIO(), ["note"], path="t.xlsx")
    with pytest.raises(InvalidTableError, match=r"32,767(.|\n)*Write \.csv or \.parquet"):
        writer.write([["x" * 32_768]])


@pytest.mark.parametrize("name", ["t", "t.dat", "t.csv.zip", "t.zip"])
def test_unknown_endings_are_refused(name):
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.tsv, \.parquet or \.xlsx"):
        output_format(name)


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "folder" / "real.csv", tmp_path / "link.csv"
    real.parent.mkdir()
    real.write_text("old")
    link.symlink_to(real)
    with Outputs(force=True) as outputs:
        outputs.write_text(link, "new")
        outputs.commit()
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["link.csv", "real.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_devices_and_pipes_are_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with Outputs(force=True) as outputs, pytest.raises(OSError, match="not a regular file"):
        outputs.reserve(pipe)
    assert pipe.is_fifo()


def test_long_names_in_other_scripts(tmp_path):
    target = tmp_path / ("漢" * 80 + ".csv")
    with Outputs() as outputs:
        outputs.write_text(target, "whole")
        outputs.commit()
    assert target.read_text() == "whole"
