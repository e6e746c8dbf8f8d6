"""Workbooks of every format, read by a process of limited memory and time."""

import os
import subprocess
import sys
import time
from datetime import date, datetime, timedelta
from pathlib import Path

import bombs
import numpy as np
import openpyxl
import pytest

from made_tables import saved, workbook, zipped
from skcoral.core.limits import Limits, use
from skcoral.exceptions import InvalidArgumentError, InvalidTableError, TooLargeError
from skcoral.tables.cells import plain_cells
from skcoral.tables.reading import open_table, sheet_names

#: A .xls file that another program wrote.
PEOPLE = (Path(__file__).parent / "data" / "people.xls").read_bytes()
ROWS = [["who", "x", "y"], ["a", 1.5, 2], ["b", 2.5, 1], ["c", 0.5, 7]]


def test_workbooks_of_other_programs():
    data = (Path(__file__).parent / "data" / "sheet.ods").read_bytes()
    assert sheet_names(data, name="t.ods") == ("s",)
    frame = open_table(data, name="t.ods").to_frame()
    assert frame.to_dict("list") == {"who": ["a", "b", "c"], "x": [1.5, 2.5, 0.5], "y": [2, 1, 7]}
    frame = open_table(PEOPLE, name="people.xls").to_frame()
    assert frame["height"].tolist() == [1.65, 1.78, 1.6]
    assert frame["name"].tolist() == ["Ada", "Alan", "Grace"]


def test_cells_keep_their_kinds():
    day, span = date(2020, 1, 2), timedelta(hours=30)
    rows = [["whole", "half", "day", "span", "truth", "word", "mixed", "error"]]
    rows += [[7, 0.5, day, span, True, "x", 1, "=1/0"], [8, None, day, span, False, None, "b", 2]]
    table = open_table(workbook(rows), name="t.xlsx")
    (batch,) = table.batches()
    assert [plain_cells(column) for column in batch.columns] == [
        [7, 8], [0.5, None], [day] * 2, [span] * 2,
        [True, False], ["x", None], ["1", "b"], [None, 2],
    ]  # fmt: skip
    assert str(batch.columns[0].type) == "int64"


def test_notes_do_not_change_the_kind_of_a_column():
    day = date(2020, 1, 2)
    rows = [["when", "n"], [day, 1], [day, 2], [day, 5], [" "], ["Source: us"], ["and: them"]]
    table = open_table(workbook(rows), name="t.xlsx")
    (batch,) = table.batches()
    assert [str(column.type) for column in batch.columns] == ["date32[day]", "int64"]
    assert table.skipped == [(6, "Source: us"), (7, "and: them")]


def test_moments_with_a_time_and_rows_that_are_far_down():
    book = openpyxl.Workbook()
    for place, row in ((7, ["a", "b", "when"]), (9, [1, 2, None]), (12, [3, 5, None])):
        for j, cell in enumerate(row, start=2):
            book.active.cell(place, j, cell)
    book.active["D9"] = datetime(2020, 1, 2, 3, 4)
    table = open_table(saved(book), name="t.xlsx")
    (batch,) = table.batches()
    assert (table.names, list(batch.rows)) == (("a", "b", "when"), [9, 12])
    assert plain_cells(batch.columns[2]) == [datetime(2020, 1, 2, 3, 4), None]


def test_blocks_of_rows_are_one_table():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(45_000, 2))
    table = open_table(workbook([["a", "b"], *values.tolist()]), name="t.xlsx")
    np.testing.assert_allclose(table.to_numpy(["a", "b"]), values, rtol=1e-14)


FAR = (
    b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize("data", [bombs.workbook(FAR), bombs.far_xls(PEOPLE)], ids=["xlsx", "xls"])
def test_cells_far_apart_are_refused(data):
    with pytest.raises(TooLargeError, match="more than 1,536 MB of memory"):
        open_table(data, name="t")
    assert open_table(workbook(ROWS), name="t.xlsx").names == ("who", "x", "y")


def test_reading_ends_in_time():
    slow = bombs.workbook(bombs.table() + b" " * 200_000_000)
    start = time.monotonic()
    with use(Limits(seconds=0.05)), pytest.raises(TooLargeError, match="reading has taken"):
        open_table(slow, name="t.xlsx")
    assert time.monotonic() - start < 5


def test_the_process_ends_with_its_reader(monkeypatch):
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *arguments, **known):
            super().__init__(*arguments, **known)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    assert sheet_names(workbook(ROWS)) == ("Sheet",)  # while the process sends its rows
    (process,) = started
    assert process.poll() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_encrypted_files_are_refused():
    data = (Path(__file__).parent / "data" / "encrypted.xlsx").read_bytes()
    with pytest.raises(InvalidTableError, match="without a password"):
        open_table(data, name="t.xlsx")
    data = bytearray(zipped(a="x,y\n1,2\n"))
    data[6] |= 1  # the flag of the file's own header, and that of the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidTableError, match="encrypted"):
        open_table(bytes(data), name="t.zip")


def test_texts_in_a_workbook_may_have_decimal_commas():
    data = workbook([("share", "size"), ("36,4 %", 1.5), ("54,25 %", "2,75"), (7.5, "k. A.")])
    table = open_table(data, name="x.xlsx", decimal=",", na=["k. A."])
    (batch,) = table.batches()
    numbers = [table.numbers(column)[0].tolist() for column in batch.columns]
    assert str(numbers) == "[[36.4, 54.25, 7.5], [1.5, 2.75, nan]]"
    with pytest.raises(InvalidArgumentError, match="'x' is not a decimal mark"):
        open_table(data, name="x.xlsx", decimal="x")
