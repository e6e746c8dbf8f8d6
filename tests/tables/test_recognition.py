"""What is recognised in files as people have them: dialects, headers, sheets, matrices, roles."""

from __future__ import annotations

import csv
import io

import numpy as np
import openpyxl
import pandas as pd
import pytest

from made_tables import saved, variables
from skcoral.exceptions import InvalidCorrelationError, InvalidTableError, TooLargeError
from skcoral.tables.cells import plain_cells, to_numbers
from skcoral.tables.columns import ColumnProfile, profile
from skcoral.tables.matrices import matrix_in
from skcoral.tables.notes import assumed, reading_notes
from skcoral.tables.reading import open_table


def sample(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    return pd.DataFrame(values, columns=[f"größe {j}" for j in range(p)])


@pytest.mark.parametrize("separator", [";", "|", "\t", ","])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-8-sig"])
def test_dialects_are_recognised_and_reported(separator, decimal, encoding):
    frame = sample()
    frame.insert(0, "Land", [f"Land {i % 7}, Nord" for i in range(len(frame))])
    data = frame.to_csv(sep=separator, decimal=decimal, index=False).encode(encoding)
    table = open_table(data, name="t.csv")
    assert table.names == tuple(frame.columns)
    pd.testing.assert_frame_equal(table.to_frame(), frame.astype({"Land": object}))
    sentences = " ".join(assumed(table))
    assert ("semicolons" in sentences) == (separator == ";")
    assert ("decimal commas" in sentences) == (decimal == ",")
    assert ("not UTF-8" in sentences) == (encoding in ("cp1252", "utf-16"))
    usual = separator in ",\t" and decimal == "." and encoding.startswith("utf-8")
    assert (not sentences) == usual


def test_commas_before_three_digits_are_thousands_and_not_decimals():
    table = open_table(b"a;b\n1,234;2\n5,678;3\n9,012;7\n", name="t.csv")
    assert table.decimal == "."
    assert table.to_numpy(["a"]).ravel().tolist() == [1234, 5678, 9012]
    table = open_table(b"a;b\n1,234;2\n0,678;3\n9,012;7\n", name="t.csv")
    assert table.decimal == ","
    assert table.to_numpy(["a"]).ravel().tolist() == [1.234, 0.678, 9.012]


#: Text, the lines of its rows, what is left out as notes, and numbers in what is told.
LAYOUTS = {
    "a title above": (
        '"Data Source","Indicators",\n\n"Last Updated","2025-01-01",\n\nCountry,x,y\nA,1.5,2\n'
        "B,2.5,1\nC,0.5,4\n\nSource: World Bank\n",
        [6, 7, 8], [(10, "Source: World Bank")], "header was found in line 5",
    ),
    "notes with separators below a blank line": (
        "a,b,c\n1,2,3\n4,5,7\n6,1,8\n\n* estimated\nSource: us, tables 1, 2, 3\nSee: them, 2024\n",
        [2, 3, 4],
        [(6, "* estimated"), (7, "Source: us"), (8, "See: them")], "",
    ),
    **{
        f"a ruler {ruler}": (
            f"a;b;c\n1;2;3\n4;5;7\n6;1;8\n;;\n{ruler}\n© Office (us), 2024;;\n",
            [2, 3, 4], [(6, ruler.rstrip(";")), (7, "© Office (us), 2024")], "semicolons",
        )
        for ruler in ("__________", "---", "=====;;")
    },
    "units": (
        "name,mass,height\n,kg,m\np,61.5,1.7\nq,70.25,1.8\nr,58,1.6\n",
        [3, 4, 5], [], "Line 2 holds",
    ),
    "units, decimal commas, percent signs": (
        "Region;Umsatz;Gewinn\n;€;%\n" + "".join(f"Ort {i};1.{i}00,50;{i},5%\n" for i in range(4)),
        [3, 4, 5, 6], [], "Line 2 holds",
    ),
    "amounts in the first row": (
        'who,x,y\na,"$1,234.50",(3)\nb,"$2,750",4\nc,"$1,100",9.5%\n', [2, 3, 4], [], "",
    ),
    "a separator at the end": ('"a","b",\n1.5,2,\n2.5,4,\n3,1,\n', [2, 3, 4], [], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_are_told_from_what_stands_around_them(name):
    text, rows, skipped, sentence = LAYOUTS[name]
    table = open_table(text.encode(), name="t.csv")
    content = profile(table)
    assert [row for batch in table.batches() for row in batch.rows] == rows
    assert table.skipped == skipped
    assert sentence in " ".join(assumed(table))
    kinds = [column.kind for column in content.columns.values()]
    assert set(kinds[1:]) == {"number"}
    numbers = table.to_numpy(table.names[1:])
    assert numbers.shape == (len(rows), len(kinds) - 1)
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize("quoted", ["", '"'])
def test_notes_padded_with_separators_are_left_out_at_the_end_only(quoted):
    text = "x,y,z\n1.5,2,1\nin between: a note,,\n2.5,1,7\n0.5,4,2\n,,\nSource: World Bank,,\n,,\n"
    text += f"{quoted}Last updated: 2025{quoted},,\n"
    table = open_table(text.encode(), name="t.csv")
    for size in (1, 2, 4, 100):
        assert [row for batch in table.batches(size) for row in batch.rows] == [2, 3, 4, 5]
        assert table.skipped == [(7, "Source: World Bank"), (9, "Last updated: 2025")]
    with pytest.raises(InvalidTableError, match=r"'x' \(line 3: 'in between: a note'\)"):
        variables(table, profile(table))
    assert table.cells("y") == ["2", "", "1", "4"]


def test_many_blank_lines_in_a_row_are_refused(monkeypatch):
    monkeypatch.setattr("skcoral.tables.delimited._MOST_BLANK", 5)
    rows = [b"1,2\n\n\n\n\n\n", b"3,4\n\n\n", b"5,7\n"]
    assert profile(open_table(b"a,b\n" + b"".join(rows), name="t.csv")).n_rows == 3
    table = open_table(b"a,b\n" + b"\n".join(rows), name="t.csv")
    with pytest.raises(TooLargeError, match=r"t\.csv: 5 lines above line 8 are blank"):
        profile(table)


def book(**sheets):
    out = openpyxl.Workbook()
    out.remove(out.active)
    for name, rows in sheets.items():
        sheet = out.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(out)


def test_the_sheet_and_the_header_of_a_workbook_are_found():
    notes = [["by", "us"], ["today", "here"]]
    data = [["Table 1"], [], ["Source: us"], ["who", "x", "y"], ["a", 1, 2.5], ["b", 2, 1.5]]
    table = open_table(book(Notes=notes, Data=data, More=data), name="t.xlsx")
    assert table.names == ("who", "x", "y")
    assert tuple(assumed(table)) == (
        "Sheet 'Data' was read; the workbook also has Notes, More.",
        "The header was found in row 4; the rows above it are left out.",
    )
    assert [row for batch in table.batches() for row in batch.rows] == [5, 6]
    assert open_table(book(Data=data), name="t.xlsx", sheet="Data").names == table.names
    first = open_table(book(Notes=notes, Data=data, More=data), name="t.xlsx", sheet="Notes")
    content = profile(first)
    with pytest.raises(InvalidTableError, match=r"Choose another sheet .*: Data, More"):
        variables(first, content)


@pytest.mark.parametrize(
    "mark",
    [
        "..", "...", "…", "-", "--", "–", "n.a.", "NA", "N/A", ":", ": c", ":z", "#N/A", ".",
        "n/a", "NaN", "null", "None", "?", "#DIV/0!",
    ],
)  # fmt: skip
def test_marks_of_missing_values_are_recognised_and_counted(mark):
    text = f"x;y\n1.5;2\n{mark};3\n2.5;4\n3.5;{mark}\n"
    table = open_table(text.encode(), name="t.csv")
    content = profile(table)
    assert [column.kind for column in content.columns.values()] == ["number", "number"]
    assert [column.n_missing for column in content.columns.values()] == [1, 1]
    assert [column.marks for column in content.columns.values()] == [{mark: 1}, {mark: 1}]


def test_more_marks_can_be_named_also_numbers():
    values, wrong = to_numbers(["1", "-999", "-999.0", "x", "none of it"], na=["-999", "x"])
    assert np.isnan(values[1:4]).all()
    assert list(wrong) == [False, False, False, False, True]
    table = open_table(b"a,b\n1,-9\n2,3\n-9,4\n", name="t.csv", na=["-9"])
    assert [column.marks for column in profile(table).columns.values()] == [{"-9": 1}, {"-9": 1}]
    frame = pd.DataFrame({"a": [1.0, -9.0, 2.0]})
    stream = io.BytesIO()
    frame.to_parquet(stream)
    table = open_table(stream.getvalue(), name="t.parquet", na=["-9"])
    assert profile(table).columns["a"].n_missing == 1


IDS = "all different, like ids"
ROLES = {
    "counter": (np.arange(1, 41), "counts up in steps of 1"),
    "step": (np.arange(40)[::-1] * 2.5, "counts down in steps of 2.5"),
    "when": (1990 + np.arange(40) % 9, "looks like years"),
    "month": (202001 + np.arange(40) % 9, "looks like dates"),
    "day": (20200101 + np.arange(40) % 9, "looks like dates"),
    "shuffled": (np.random.default_rng(0).permutation(40), IDS),
    "customerNo": (np.random.default_rng(0).permutation(10**6)[:40], IDS),
    "rising": (np.delete(np.arange(100, 150), [3, 7, 20, 21, 22, 30, 31, 40, 41, 42]), IDS),
    "matrikel": (np.random.default_rng(3).permutation(900000)[:40] + 100000, IDS),
    "pweight": (np.random.default_rng(0).gamma(2.0, size=40), "looks like row weights"),
}
VARIABLES = {
    "weight": np.random.default_rng(1).normal(70, 10, size=40),
    "population": np.random.default_rng(1).permutation(10**7)[:40],
    "children": np.random.default_rng(1).integers(0, 5, size=40),
    "twins": np.r_[39, 39, np.random.default_rng(4).permutation(38)],
    "visits": np.r_[np.random.default_rng(4).permutation(39), 17],
    "salary": np.random.default_rng(4).permutation(70000)[:40] + 25000,
    "grams": np.random.default_rng(1).integers(2700, 6300, size=40),
    "cumulated": np.cumsum(np.random.default_rng(2).integers(1, 9, size=40)),
    "residents": np.cumsum(np.random.default_rng(2).integers(100, 900, size=40)) + 100_000,
    "price": np.random.default_rng(1).normal(size=40),
}


def test_ids_years_and_counters_are_doubted_and_measurements_are_not():
    frame = pd.DataFrame({name: values for name, (values, _) in ROLES.items()} | VARIABLES)
    table = open_table(frame.to_csv(index=False).encode(), name="t.csv")
    content = profile(table)
    for name, (_, reason) in ROLES.items():
        assert content.columns[name].doubt.endswith(reason), name
    assert not any(content.columns[name].doubt for name in VARIABLES)
    assert variables(table, content) == tuple(VARIABLES)
    assert variables(table, content, include=["when"]) == ("when", *VARIABLES)
    assert variables(table, content, ["when", "price"]) == ("when", "price")
    with pytest.raises(
        InvalidTableError, match=r"left out: .*counter \(counts up[^\n]*\n.*--include NAME"
    ):
        variables(table, content, exclude=list(VARIABLES))


def test_roles_are_the_same_in_any_batches():
    roles = ROLES | {name: (values, "") for name, values in VARIABLES.items()}
    for name, (values, reason) in roles.items():
        frame = pd.DataFrame({name: values})
        table = open_table(frame.to_csv(index=False).encode(), name="t.csv")
        for size in (1, 7, 40):
            column = ColumnProfile(name)
            for batch in table.batches(size):
                (cells,) = batch.columns
                column.add(table, cells, batch.rows, *table.numbers(cells))
            assert bool(column.doubt) == bool(reason), (name, size)
            assert column.doubt.endswith(reason), (name, size)


def written(frame, how, **more):
    stream = io.BytesIO()
    {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[how](stream, **more)
    return stream.getvalue()


@pytest.mark.parametrize("how", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("kind", ["corr", "cov"])
def test_matrices_are_recognised(how, index, kind):
    frame = sample(p=5)
    matrix = getattr(frame, kind)()
    table = open_table(written(matrix, how, index=index), name=f"m.{how}")
    named = matrix_in(table, profile(table))
    assert named is not None
    assert named.names == tuple(frame.columns)
    np.testing.assert_allclose(named.R, np.corrcoef(frame.T), atol=1e-12)
    assert f"a {'correlation' if kind == 'corr' else 'covariance'} matrix," in named.sentence
    if kind == "cov":
        np.testing.assert_allclose(named.scale, frame.std())


def test_rounded_triangles_and_rows_in_another_order():
    frame = sample(p=4)
    R = frame.corr().round(2)
    lower = R.where(np.tril(np.ones((4, 4), dtype=bool)))
    table = open_table(written(lower, "csv"), name="m.csv")
    np.testing.assert_array_equal(matrix_in(table, profile(table)).R, R)
    table = open_table(written(R.iloc[::-1], "csv"), name="m.csv")
    np.testing.assert_array_equal(matrix_in(table, profile(table)).R, R)


def test_square_tables_of_data_are_no_matrices():
    rng = np.random.default_rng(0)
    for rows in (rng.normal(size=(5, 5)), np.eye(5) * 0, rng.normal(size=(5, 5)) ** 2):
        frame = pd.DataFrame(rows, columns=list("abcde"))
        table = open_table(frame.to_csv(index=False).encode(), name="t.csv")
        assert matrix_in(table, profile(table)) is None
        with pytest.raises(InvalidCorrelationError, match=r"t\.csv: the matrix"):
            matrix_in(table, profile(table), asked=True)
    labelled = pd.DataFrame(np.eye(3), columns=list("abc"), index=["k", "l", "m"])
    table = open_table(labelled.to_csv().encode(), name="t.csv")
    assert matrix_in(table, profile(table)) is None


@pytest.mark.parametrize(
    ("cells", "decimal", "mark"),
    [
        (["1.038,07", "12.345", "999,5"], ",", "."),
        (["1,038.07", "12,345", "999.5"], ".", ","),
        (["1'038.07", "12'345", "999.5"], ".", "'"),
        (["1\u202f038,07", "12\u202f345", "999,5"], ",", "\u202f"),
        (["1 038,07", "12 345", "999,5"], ",", " "),
    ],
)
def test_marks_between_thousands_are_left_out_and_reported(cells, decimal, mark):
    rows = "".join(f"{cell};{i * i}\n" for i, cell in enumerate(cells))
    table = open_table(f"x;y\n{rows}".encode(), name="t.csv")
    assert table.decimal == decimal
    assert table.to_frame()["x"].tolist() == [1038.07, 12345.0, 999.5]
    sentence = reading_notes(table, profile(table), ["x", "y"])[-1]
    assert f"left out of numbers: {mark!r} (2 cells), in x" in sentence


def test_units_and_notes_of_a_sheet():
    rows = [["id", "x", "y"], ["", "kg", "m"], [7, 1.5, 2.0], [3, 2.5, 1.0], [9, 0.5, 4.0]]
    table = open_table(book(Data=[*rows, [], ["Source: us"]]), name="t.xlsx")
    assert [row for batch in table.batches() for row in batch.rows] == [3, 4, 5]
    assert table.to_frame()["x"].tolist() == [1.5, 2.5, 0.5]
    assert reading_notes(table, profile(table), ["x", "y"]) == [
        "Row 2 holds words under the names (units?) and is left out.",
        "Left out as notes: row 7 ('Source: us').",
    ]


@pytest.mark.parametrize("separator", [",", ";"])
def test_long_cells_are_read_and_the_limit_of_csv_stays_the_callers(separator):
    usual = csv.field_size_limit()
    long = "x" * (usual + 1)
    lines = [("note", "a", "b"), (long, "1", "2"), ("y", "3", "4")]
    table = open_table("\n".join(map(separator.join, lines)).encode(), name="t.csv")
    rows = table.batches()
    assert plain_cells(next(rows).columns[0]) == [long, "y"]
    assert csv.field_size_limit() == usual
    with pytest.raises(csv.Error, match="field larger"):
        next(csv.reader([long]))


def test_dummies_and_codes_are_variables_and_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "female": rng.integers(0, 2, 80),
            "region": rng.integers(1, 5, 80),
            "two": rng.choice([1, 2], 80),
            "children": rng.integers(0, 30, 80),
            "half": rng.choice([0.0, 0.5, 1.0], 80),
        }
    )
    table = open_table(frame.to_csv(index=False).encode(), name="t.csv")
    content = profile(table)
    assert variables(table, content) == tuple(frame.columns)
    assert reading_notes(table, content, table.names) == [
        "Dummies become numbers: female holds only 0 and 1.",
        "Whole numbers with few values become other numbers: region (4 values), two (2 values).",
    ]


def test_columns_that_never_change_are_seen():
    text = f"a,b,c,d,e\n1,0.3,5,x,\n1.0,{0.1 + 0.2!r},,x,\n1e0,0.3,,x,2\n,0.3,6,x,\n"
    content = profile(open_table(text.encode(), name="t.csv"))
    constant = {name: column.constant for name, column in content.columns.items()}
    # d is text, and of e there is one value only, which says nothing
    assert constant == {"a": "always 1", "b": "always 0.3", "c": "", "d": "", "e": ""}


def test_long_codes_are_equal_only_in_the_digits_of_a_float():
    text = "a,code\n" + "".join(f"{i},{1234567890123456000 + 137 * i}\n" for i in range(12))
    content = profile(open_table(text.encode(), name="t.csv"))
    assert "first 15 digits" in content.columns["code"].constant
    assert content.columns["a"].constant == ""


def test_clusters_and_possible_weights_of_a_survey_are_pointed_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"psu": rng.integers(1, 41, 80), "wt": rng.gamma(2.0, size=80)})
    table = open_table(frame.to_csv(index=False).encode(), name="t.csv")
    content = profile(table)
    assert variables(table, content) == ("psu", "wt")
    assert reading_notes(table, content, table.names) == [
        "Used as variables although named like ids: psu. Leave them out if they are.",
        "wt is used as a variable. If it weights the rows, choose it as the weights.",
    ]


TOTALS = ["Sum:", "All", "Suma", "Total général", "Razem", "Összesen", "Celkem", "Итого", "総計"]
TOTALS += ["Toplam", "I alt"]


def totals_table(last, first=(), n=6):
    rng = np.random.default_rng(0)
    rows = [[f"c{i}", *np.round(rng.gamma(2.0, size=2) * [10, 1000], 1)] for i in range(n)]
    sums = np.sum([row[1:] for row in rows], axis=0)
    ends = [
        [label, *(round(float(v), 1) for v in sums * share)] for label, share in (*first, *last)
    ]
    rows = [*ends[: len(first)], *rows, *ends[len(first) :]]
    return pd.DataFrame(rows, columns=["place", "x", "y"])


@pytest.mark.parametrize(
    ("how", "label", "share"),
    [
        ("csv", "Total", 1.0),
        ("xlsx", "INSGESAMT", 0.2),
        ("parquet", "grand total", 0.2),
        *(("csv", label, 0.2) for label in TOTALS),
    ],
)
def test_labelled_totals_are_left_out_and_reported(how, label, share):
    frame = totals_table([(label, share)])
    table = open_table(written(frame, how, index=False), name=f"t.{how}")
    content = profile(table)
    assert content.n_rows == 6
    np.testing.assert_array_equal(table.to_numpy(["x", "y"]), frame[["x", "y"]][:6])
    (sentence,) = reading_notes(table, content, ["x", "y"])
    row = 7 if how == "parquet" else 8
    assert sentence == f"Left out as a total of the other rows: {table.unit} {row} ({label!r})."


@pytest.mark.parametrize("place", ["first", "last"])
def test_totals_without_a_label_are_found_by_their_numbers(place):
    frame = totals_table(**{"last": [], place: [("Norge", 1.0)]})
    table = open_table(written(frame, "csv", index=False), name="t.csv")
    assert profile(table).n_rows == 6
    assert table.totals == [(2 if place == "first" else 8, "")]
    sentences = reading_notes(table, profile(table), ["x", "y"])
    assert "its numbers are the sums of the others" in sentences[0]


def test_what_is_no_total_stays():
    for frame in (
        totals_table([("Norge", 0.9)]),
        totals_table([("totality", 0.5)]),
        totals_table([("All", 0.3)] * 3),
        pd.DataFrame({"x": [1.5, -1.5, 2.5, -2.5, 0.0], "y": [3.0, 1.0, -2.0, -2.0, 0.0]}),
    ):
        table = open_table(written(frame, "csv", index=False), name="t.csv")
        assert profile(table).n_rows == len(frame)
        assert table.totals == []
