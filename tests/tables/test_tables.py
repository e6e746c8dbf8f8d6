"""Tables in: every format gives the same numbers, and every bad file says what is wrong."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import zipfile
from collections import Counter

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from made_tables import parquet, saved, variables, workbook, zipped
from skcoral.core.limits import Limits
from skcoral.exceptions import InvalidTableError
from skcoral.tables import delimited
from skcoral.tables.cells import (
    bare,
    is_missing,
    number_of,
    plain_cells,
    text_array,
    to_numbers,
)
from skcoral.tables.columns import profile
from skcoral.tables.dialect import is_note
from skcoral.tables.reading import open_table, sheet_names
from skcoral.tables.table import complete_rows

UGLY_CELLS = [
    "", " ", "1.5", "007", "NA", "a b", "it's", "5\" pipe", '"q"', '"x, y"', '"two\nlines"', "é",
    "\u2028", "\ufeff", "\t", "#", "\\", "\x0b", "1\x1c2", "=1+1",
]  # fmt: skip
NUMBERS_IN_TEXT = [
    "1.5", "+4", " 2", "1e400", "inf", "-Infinity", "NaN", "nan", "nan(x)", "0x10", "1_0", "",
    "1e5", "1.", ".5", "-", "NA", "n/a", "..", "1,5", "1.234,5", "12.3 b", "٣", "1e-400", "True",
    "-9", "-9.0", "x", "0.1", "123456789012345678", "5e-324",
    "1,660", "0,660", "1.660", "12,34,567", "$5", "7 %",
]  # fmt: skip
CSV = b"name,height,weight\nAda,1.65,61\nAlan,1.78,\nGrace,1.6e0, 55 \n"
NUMBERS = np.array([[1.65, 61.0], [1.6, 55.0]])


SAME_TABLE = {
    "csv": CSV,
    "crlf": CSV.replace(b"\n", b"\r\n"),
    "bom": b"\xef\xbb\xbf" + CSV,
    "tsv": CSV.replace(b",", b"\t"),
    "blank lines": CSV.replace(b"\nAlan", b"\n\nAlan"),
    "gzip": gzip.compress(CSV),
    "zip": zipped(people=CSV),
    "excel": workbook(
        [["name", "height", "weight"], ["Ada", 1.65, 61], ["Alan", 1.78, None], ["Grace", 1.6, 55]]
    ),
    "parquet": parquet(
        {"name": ["Ada", "Alan", "Grace"], "height": [1.65, 1.78, 1.6], "weight": [61, None, 55]}
    ),
}


def test_notes_of_a_mac_in_a_zip_are_passed_over():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("folder/people.csv", CSV)
        archive.writestr("__MACOSX/folder/._people.csv", b"\x00\x05")
    assert open_table(stream.getvalue()).names == ("name", "height", "weight")


@pytest.mark.parametrize("kind", SAME_TABLE)
def test_same_table_in_every_format(kind):
    table = open_table(SAME_TABLE[kind])
    content = profile(table)
    assert table.names == ("name", "height", "weight")
    assert [c.kind for c in content.columns.values()] == ["text", "number", "number"]
    assert [c.n_missing for c in content.columns.values()] == [0, 0, 1]
    assert variables(table, content) == ("height", "weight")
    parts = list(complete_rows(table, ("height", "weight")))
    assert np.array_equal(np.concatenate([part.values for part in parts]), NUMBERS)
    dropped = [row for part in parts for row in part.dropped]
    assert dropped == [{"parquet": 2, "blank lines": 4}.get(kind, 3)]


@pytest.mark.parametrize("block", [Limits.record_bytes, 300])
def test_batches_of_any_size_are_the_same_table(tmp_path, monkeypatch, block):
    monkeypatch.setattr(Limits, "record_bytes", block)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(101, 3))
    text = "a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist())
    path = tmp_path / "numbers.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    table = open_table(path)
    for size in (1, 7, 101, 1000):
        batches = list(table.batches(size))
        assert max(len(batch.rows) for batch in batches) <= size
        assert [row for batch in batches for row in batch.rows] == list(range(2, 103))
        read = np.concatenate([np.array(b.columns, dtype=float).T for b in batches])
        assert np.array_equal(read, values)
        fractions = [batch.fraction for batch in batches]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0


def test_what_is_a_number_and_what_is_not():
    values, wrong = to_numbers(["1", " -2.5e-3 ", "+4", ".5", "1e400", "NA"])
    assert values[:5].tolist() == [1.0, -2.5e-3, 4.0, 0.5, np.inf]
    assert not wrong.any()
    texts = ["1,5", "1_000", "abc", "True", "0x10", "1 2", "%", "-x", "0,123", "$", "5 km", "12%%"]
    values, wrong = to_numbers(["1", *texts, "(x)", "()", "(-5)", "5)"])
    assert not wrong[0]
    assert wrong[1:].all()
    assert np.isnan(values[1:]).all()


def test_a_point_beside_decimal_commas_groups_thousands_or_is_refused():
    values, wrong = to_numbers(["1,5", "1.500", "1.234,5", "1.5", "0.500"], ",")
    np.testing.assert_array_equal(values, [1.5, 1500.0, 1234.5, np.nan, np.nan])
    assert list(wrong) == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers", "signs"),
    [
        (["12.5%", "3 %", "-1%"], ".", [12.5, 3, -1], {"%": 3}),
        (["$7,440", "-$5", "$ 1,234.50"], ".", [7440, -5, 1234.5], {"$": 3, ",": 2}),
        (["€ 1.234,50", "3,20 €", "€-7"], ",", [1234.5, 3.2, -7], {"€": 3, ".": 1}),
        (["1,660", "1,660", "12"], ".", [1660, 1660, 12], {",": 2}),
        (["1'660", "1\xa0660.5"], ".", [1660, 1660.5], {"'": 1, "\xa0": 1}),
        (["₹5", "-₺7.5", "12 ₽"], ".", [5, -7.5, 12], {"₹": 1, "₺": 1, "₽": 1}),
        (["\u22125.5", "\u2212$1,000", "3"], ".", [-5.5, -1000, 3], {"$": 1, ",": 1}),
        (["(1.234,5)", "(7 €)", "(€ 8)"], ",", [-1234.5, -7, -8], {"€": 2, "()": 3, ".": 1}),
    ],
)
def test_marks_that_people_write_are_left_out_and_counted(cells, decimal, numbers, signs):
    for column in (cells, text_array(cells)):
        marks = Counter()
        values, wrong = to_numbers(column, decimal, left_out=marks)
        assert values[: len(cells)].tolist() == numbers
        assert not wrong.any()
        assert marks == signs


def test_booleans_and_dates_of_typed_files_are_not_numbers():
    day = datetime.date(2020, 1, 1)
    for data in (
        parquet(
            {
                "flag": [True, False],
                "day": [day, day],
                "text": ["1", "2"],
                "n": [1, 2],
                "x": [0.5, 0.25],
            }
        ),
        workbook(
            [["flag", "day", "text", "n", "x"], [True, day, "a", 1, 0.5], [False, day, "b", 2, 1]]
        ),
    ):
        table = open_table(data)
        assert variables(table, profile(table)) == ("n", "x")


def test_nameless_first_column_is_a_row_label():
    table = open_table(b",a,b\n0,1,2\n1,3,5\n")
    assert variables(table, profile(table)) == ("a", "b")


BAD_FILES = {
    "empty": (b"", ["empty"]),
    "blank": (b"\n \n", ["blank lines"]),
    "binary": (bytes(range(256)), ["not a text table", "CSV, TSV, Parquet or Excel"]),
    "header only": (b"a,b\n", ["no rows"]),
    "one column": (b"a\n1\n2\n", ["at least two", "'a'"]),
    "no header": (b"1,2\n3,4\n", ["header", "numbers"]),
    "duplicate names": (b"a,b,a\n1,2,3\n", ["columns 1 and 3", "'a'"]),
    "nameless": (b"a,,b\n1,2,3\n", ["column 2 has no name"]),
    "decimal comma cell": (
        b'a,b\n1,2\n2,3\n3,"4,5"\n',
        ["line 4", "'b'", "'4,5'", "--decimal ','"],
    ),
    "too many cells": (b"a,b\n1,2\n1,2,3\n", ["line 3", "3 cells", "after column 'b'"]),
    "too few cells": (b"a,b,c\n1,2,3\n1,2\n", ["line 3", "2 cells", "'b'"]),
    "open quote": (b'a,b\n1,2\n1,"2\n3,4\n', ["line 3", "quot"]),
    "stray word": (b"a,b\n1,2\n3,4\n5,x\n", ["line 4", "'b'", "'x'"]),
    "infinite": (b"a,b\n1,2\n3,-inf\n", ["line 3", "'b'", "infinite"]),
    "one value": (b"a,b\n1.5,x\n,y\n", ["there is none", "a (only one value)"]),
    "a cut line": (b"a,b\n1,2\n3,4\n5\n", ["line 4 has 1 cell"]),
    "a cell after the last": (b"a,b,\n1.5,2,\n2.5,4,9\n", ["line 3 has 3 cells"]),
    "notes without a blank line": (
        b"a,b,c\n1,2,3\n4,5,7\n6,1,8\nSource: us, tables 1, 2, 3\n",
        ["line 5 has 4 cells"],
    ),
    "short row, blank line": (b"a,b,c\n1,2,3\n4,5,7\n\n9,5\n", ["line 5 has 2 cells"]),
    "row below a blank line": (b"a,b,c\n1,2,3\n4,5,7\n\n7,7,9\nSee: us, it\n", ["line 6 has 2"]),
    "name of another kind.parquet": (CSV, ["the Parquet file cannot be read"]),
    "name of another kind.xlsx": (CSV, ["the workbook cannot be read"]),
    "all that is wrong": (
        b"a,b,c,d\n1,2,3,x\n2,z,3,y\n3,4,oops,w\n4,5,1,v\n",
        ["2 columns", "'b' (line 3: 'z'), 'c' (line 4: 'oops')", "--na z"],
    ),
    "cut gzip": (gzip.compress(CSV * 500)[:-30], ["cut short"]),
    "cut parquet": (parquet({"a": [1.0], "b": [2.0]})[:-30], ["Parquet", "cut short"]),
    "cut zip": (zipped(people=CSV)[:-30], ["zip", "damaged"]),
    "two files in a zip": (zipped(a=CSV, b=CSV), ["2 files"]),
    "old excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", ["without a password"]),
    "empty sheet": (workbook([]), ["empty"]),
    "value outside": (workbook([["a", "b"], [1, 2, 3]]), ["row 2", "right of", "'b'"]),
    "duplicate in sheet": (workbook([["a", "a"], [1, 2]]), ["columns 1 and 2", "'a'"]),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_say_what_is_wrong_in_two_lines(kind):
    data, needles = BAD_FILES[kind]
    name = kind if "." in kind else "some.data"

    def read():
        table = open_table(data, name=name)
        variables(table, profile(table))

    with pytest.raises(InvalidTableError) as caught:
        read()
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert len(message.splitlines()) == 2
    for needle in needles:
        assert needle in message


def test_points_where_commas_were_promised():
    table = open_table(b"a;b;c\n1,5;2;1.5\n2,5;3;2.5\n", separator=";", decimal=",")
    with pytest.raises(InvalidTableError, match=r"'c' .*'1\.5'.*\n.*\(--decimal \.\)"):
        variables(table, profile(table))


def test_text_that_only_resembles_numbers_passes_through():
    cells = ["2020-01-01", "10.0.12.7", "12:30", "1-2", "A,100", "+49 30 123", "7,12,9", "$", "%"]
    rows = "".join(f'{i * i % 7},{i * i},"{cell}"\n' for i, cell in enumerate(cells))
    table = open_table(f"a,b,c\n{rows}".encode())
    content = profile(table)
    assert content.columns["c"].kind == "text"
    assert variables(table, content) == ("a", "b")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"a,gr\xfcn\n1,2\n2,1\n", "line 1, character 5"),
        (b"a,b\n1,2\n2,gr\xfcn\n", "line 3, character 5"),
        (b"a,b\n1,2\n2,1\n\nnote: gr\xfcn\n", "line 5, character 9"),
    ],
)
def test_bytes_that_are_no_letters_are_named(text, place):
    with pytest.raises(InvalidTableError, match=f"{place}.*: byte 0xfc is not utf-8"):
        list(open_table(text, encoding="utf-8").batches())


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-16", "utf-16-be"])
def test_wide_encodings_are_distinguished(tmp_path, encoding):
    bom = b"" if encoding in ("utf-32", "utf-16") else "\ufeff".encode(encoding)
    data = bom + "a,b\n1,2\n2,1\n".encode(encoding)
    name = "UTF-32" if "32" in encoding else "UTF-16"
    with pytest.raises(InvalidTableError, match=f"the file is {name} text"):
        open_table(data, name="t.csv", encoding="utf-8")
    assert open_table(data, name="t.csv").names == ("a", "b")


def test_a_table_without_rows_is_a_frame_without_rows():
    assert open_table(b"a,b\n").to_frame().shape == (0, 2)


def test_names_of_several_lines():
    table = open_table(b'"a\nof us",b\n1,2\n3,oops\n2,2\n')
    assert table.names == ("a\nof us", "b")
    assert [row for batch in table.batches() for row in batch.rows] == [3, 4, 5]


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml"])
def test_damage_inside_a_workbook_is_reported(part):
    with zipfile.ZipFile(io.BytesIO(workbook([["a", "b"], [1, 2]]))) as good:
        files = {name: good.read(name) for name in good.namelist()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content[:150] if name == part else content)
    with pytest.raises(InvalidTableError, match="the workbook cannot be read"):
        open_table(stream.getvalue(), name="t.xlsx")


def test_sheets_of_a_workbook():
    book = openpyxl.Workbook()
    book.active.title = "notes"
    book.create_sheet("data").append(["a", "b"])
    book.create_chartsheet("picture").add_chart(openpyxl.chart.BarChart())
    assert sheet_names(saved(book)) == ("notes", "data")
    assert open_table(saved(book), sheet="data").names == ("a", "b")
    with pytest.raises(InvalidTableError, match=r"no sheet 'picture'.\nIt has: notes, data"):
        open_table(saved(book), sheet="picture")
    assert sheet_names(b"a,b\n1,2\n") == ()


def test_a_workbook_of_charts_only():
    book = openpyxl.Workbook()
    book.remove(book.active)
    book.create_chartsheet("picture").add_chart(openpyxl.chart.BarChart())
    with pytest.raises(InvalidTableError, match="nothing but charts"):
        open_table(saved(book))


ASKED = [
    ({}, r"'mixed' \(line 4: 'oops'\)"),
    ({"columns": ["a", "word"]}, r"'word' \(no numbers, such as 'x'\)"),
    ({"columns": ["a", "gap"]}, r"'gap' \(no values\)"),
    ({"columns": ["a", "mixd"]}, r"no column 'mixd'.\nDid you mean 'mixed'"),
    ({"columns": ["a", "b", "a"]}, "asked for twice"),
    ({"columns": ["a"]}, r"only 'a'.*\nName two or more"),
    (  # as an outcome that is named among the columns
        {"columns": ["a", "b"], "exclude": ["b"]},
        r"only 'a'; left out: b \(as asked\)\.\nName two or more",
    ),
    ({"exclude": ["c"]}, "no column 'c'"),
    ({"exclude": ["b", "mixed"]}, r"there is only 'a'; left out: word \(no numbers, such as 'x'\)"),
]


def test_asking_for_columns():
    table = open_table(b"a,b,word,gap,mixed\n1,2,x,,1\n3,4,y,,2\n5,6,z,,oops\n")
    content = profile(table)
    assert variables(table, content, ["b", "a"]) == ("b", "a")
    assert variables(table, content, exclude=["mixed"]) == ("a", "b")
    for asked, message in ASKED:
        with pytest.raises(InvalidTableError, match=message):
            variables(table, content, asked.get("columns"), exclude=asked.get("exclude", ()))


def test_weights_go_with_their_rows():
    table = open_table(b"a,b,w\n1,2,1\n3,,5\n5,6,\n7,8,2\n")
    (part,) = complete_rows(table, ("a", "b"), weights="w")
    assert np.array_equal(part.values, [[1, 2], [7, 8]])
    assert np.array_equal(part.weights, [1, 2])
    assert part.dropped == [3, 4]
    with pytest.raises(InvalidTableError, match="line 2, column 'w': a weight is negative"):
        list(complete_rows(open_table(b"a,b,w\n1,2,-1\n"), ("a", "b"), weights="w"))


def test_dates_that_python_does_not_know():
    far = pa.array([2**61, 5], pa.timestamp("us"))
    table = open_table(parquet({"a": [1.0, 2.0], "b": [2.0, 1.0], "when": far}))
    content = profile(table)
    assert variables(table, content) == ("a", "b")
    assert "out of range" in content.columns["when"].first_bad[1]


rows_of_text = st.one_of(
    st.lists(st.sampled_from(UGLY_CELLS), min_size=3, max_size=3).map(",".join),
    st.lists(st.sampled_from(["1.5", '"x, y"', '"two\nlines"', "b"]), min_size=3, max_size=3).map(
        ",".join
    ),
    st.sampled_from(["", "a note: here", "1,2"]),
)


@given(
    st.lists(rows_of_text, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
@example(["\ufeff,,", "a note: here"], "\n", "utf-8", False)  # a mark where pyarrow begins
@example(['"x\ry",1,2', "b,1,2"], "\n", "utf-8", False)
@example(["b,1,2", "a note:,,", "a note: here"], "\n", "utf-8", False)
def test_blocks_are_cut_as_the_csv_module_cuts_them(rows, end, encoding, ends):
    """By pyarrow in small blocks and by the csv module: same cells, lines, notes, or an error."""
    text = end.join(["a,b,c", *rows]) + end * ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Limits, "record_bytes", 100)  # and so blocks of a few rows
        reading = {"separator": ",", "decimal": ".", "encoding": encoding.removesuffix("-sig")}
        table = open_table(text.encode(encoding), name="t.csv", **reading)
        assume(table.units_at is None and table.header_at == 1)
        expected = cut_one_by_one(text)
        if expected is None:
            with pytest.raises(InvalidTableError, match=r"line \d+"):
                list(table.batches(5))
            return
        lines, cells = [], []
        for batch in table.batches(5):
            lines += [int(row) for row in batch.rows]
            cells += zip(*map(plain_cells, batch.columns), strict=True)
        assert (lines, cells, table.skipped) == expected


def cut_one_by_one(text):
    """Lines, cells and notes of a table of three columns by the csv module; None for an error."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines, cells, notes = [], [], []
    next(reader)
    start = 2
    try:
        for row in reader:
            line, start = start, reader.line_num + 1
            if len(row) == 3:
                lines.append(line)
                cells.append(tuple(row))
            elif row and is_note(row):
                notes.append((line, row[0].strip()))
            elif any(map(str.strip, row)):
                return None
    except csv.Error:
        return None
    end = len(cells)
    while end and (is_note(cells[end - 1]) or not any(map(str.strip, cells[end - 1]))):
        end -= 1
    at_end = zip(lines[end:], cells[end:], strict=True)
    notes += [(line, row[0].strip()) for line, row in at_end if is_note(row)]
    return lines[:end], cells[:end], sorted(notes)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize("packed", [bytes, gzip.compress, lambda data: zipped(long=data)])
def test_long_files_are_opened_again_for_each_pass(encoding, packed, monkeypatch, tmp_path):
    rows = "".join(f'{i},"größe\n{i}",{i * i % 7}\n\n' for i in range(300))
    path = tmp_path / "long.csv"
    path.write_bytes(packed(f"a,b,c\n{rows}\nSource: us\n".encode(encoding)))
    full = next(open_table(path).batches())
    monkeypatch.setattr(delimited, "FIRST", 400)
    monkeypatch.setattr(Limits, "record_bytes", 900)
    table = open_table(path, encoding=encoding)
    for _ in range(2):
        parts = list(table.batches(11))
        assert [row for part in parts for row in part.rows] == list(full.rows)
        for j in range(3):
            cells = [cell for part in parts for cell in plain_cells(part.columns[j])]
            assert cells == plain_cells(full.columns[j])
        assert table.skipped == [(903, "Source: us")]


def ungrouped(text, decimal):
    """The naive way: groups of three digits after the first, which has no zero in front."""
    mark = "," if decimal == "." else "."
    full, point, digits = text.partition(decimal)
    first, *groups = full.lstrip("+-").split(mark)
    plain = groups and all(len(g) == 3 and g.isdigit() for g in groups)
    fits = plain and first.isdigit() and len(first) <= 3 and first[0] != "0"
    return full.replace(mark, "") + point + digits if fits else text


@given(
    st.lists(st.sampled_from(NUMBERS_IN_TEXT), max_size=6),
    st.sampled_from([".", ","]),
    st.sampled_from([(), ("-9", "x"), ("1,5",)]),
)
@settings(max_examples=120, deadline=None)
def test_arrow_reads_numbers_as_they_are_spelled(texts, decimal, na):
    values, wrong = to_numbers(text_array(texts), decimal, na)
    naive, bad = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
    for i, text in enumerate(texts):
        if not is_missing(text, {mark.lower() for mark in na}):
            number = number_of(ungrouped(bare(text), decimal), decimal)
            bad[i], naive[i] = number is None, np.nan if number is None else number
    naive[np.isin(naive, [-9.0] if "-9" in na else [])] = np.nan
    assert np.array_equal(values, naive, equal_nan=True)
    assert np.array_equal(wrong, bad)
