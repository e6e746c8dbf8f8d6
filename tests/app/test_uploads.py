"""Uploads are read, explained, or refused with a message."""

import re

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from made_tables import saved
from skcoral import api
from skcoral.app.page import plain
from skcoral.app.server import OPTIONS


def csv(table, names):
    return pd.DataFrame(table, columns=list(names)).to_csv(index=False).encode()


def said(at):
    """All errors, as a reader sees them."""
    return " ".join(e.value for e in at.error).replace("\\", "").replace("\N{WORD JOINER}", "")


def answer(at):
    """The boxes with the answer and what is in doubt, as a reader sees them."""
    boxes = " ".join(b.value for b in (*at.success, *at.info, *at.warning))
    assert "Largest" in boxes
    return boxes.replace("\\", "").replace("\N{WORD JOINER}", "")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(11)
    common = rng.normal(size=(80, 1))
    return 5.0 + common + rng.normal(size=(80, 4))


def test_a_table_with_text_missing_values_and_constants(bring, metric, table):
    frame = pd.DataFrame(table.copy(), columns=list("abcd"))
    frame.loc[[3, 7], "b"] = np.nan
    frame.insert(1, "name", "someone")
    frame.insert(3, "same", 7)
    frame["odd"] = ["3"] * 79 + ["3 kg"]
    frame["infinite"] = np.r_[table[:79, 0], np.inf]
    at = bring("mine.csv", frame.to_csv(index=False).encode(), floor=0.95)
    # refused as by the command: all columns with their first cell, and a button leaves them out
    assert "'odd' (line 81: '3 kg')" in said(at)
    assert "'infinite' (line 81: infinite)" in said(at)
    assert not at.metric
    at.button(key="leave_out").click().run()
    assert not at.error
    complete = np.delete(table, [3, 7], axis=0)
    R = np.corrcoef(complete, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.95).objective, rel=1e-3)
    record = answer(at)
    assert not at.success  # data in doubt: not green
    assert "2 rows with missing values" in at.warning[0].value
    assert "; 78 of 80 rows used." in record
    assert "Constant, so left out: same (always 7)." in record
    left_out = " ".join(m.value for m in at.markdown).replace("\\", "")
    assert "**name**: no numbers, such as 'someone'" in left_out
    assert "**same**: always 7" in left_out
    assert at.sidebar.multiselect[0].value == list("abcd")


def test_choosing_columns(bring, metric, table):
    at = bring("mine.csv", csv(table, "abcd"), floor=0.97)
    at.sidebar.multiselect[0].set_value(["a", "c", "d"]).run()
    R = np.corrcoef(table[:, [0, 2, 3]], rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.97).objective, rel=1e-3)
    at.sidebar.multiselect[0].set_value(["a"]).run()
    assert "only 'a'" in said(at)
    assert not at.exception


def test_weights_column(bring, metric, table):
    weights = np.arange(80) % 3
    data = csv(np.column_stack([table, weights]), [*"abcd", "w"])
    at = bring("mine.csv", data, floor=0.95)
    next(s for s in at.selectbox if s.label == "Row weights").set_value("w").run()
    repeated = np.repeat(table, weights, axis=0)
    result = api.decorrelate(np.corrcoef(repeated, rowvar=False), 0.95)
    # measured as it was fitted: with the weights
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3, abs=1e-9)
    record = answer(at)
    assert "Largest weighted correlation" in record
    assert "Certified for these 53 rows with their weights" in record


def test_first_rows_are_shown_as_the_file_has_them(bring):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2)).round(2).astype(str)
    lines = [f"p{i};{a};{b};;" for i, (a, b) in enumerate(x)]
    text = "\n".join(["_index;1;<b>;empty;void", *lines, "Source: an office"])
    at = bring("people.csv", text.replace(".", ",").encode(), floor=0.9)
    assert not at.error, at.error[0].value
    shown = at.sidebar.dataframe[0].value
    assert shown.iloc[:, 0].tolist() == [f"p{i}" for i in range(8)]
    assert shown.iloc[:, 1].tolist() == [cell.replace(".", ",") for cell in x[:8, 0]]
    assert (shown.iloc[:, 3:] == "").all(axis=None)
    # looking at the first rows takes nothing away from the rest
    assert any("60 complete rows" in c.value.replace("\\", "") for c in at.caption)


def test_the_first_hundred_of_many_columns_are_taken(bring, metric):
    rows = np.random.default_rng(1).normal(size=(8, 130))
    at = bring("wide.csv", csv(rows, [f"g{j}" for j in range(130)]))
    assert not at.error, [error.value for error in at.error]
    assert any("The first 100 columns are taken" in w.value for w in at.warning)
    assert any("8 rows cannot determine 100 columns" in w.value for w in at.warning)
    assert at.sidebar.multiselect[0].value == [f"g{j}" for j in range(100)]
    assert metric(at, "Residual") >= (100**2 / 7 - 100) / 2 * (1 - 1e-3)


def test_dependent_columns_are_left_out_with_one_click(bring, metric, table):
    full = np.column_stack([table, table[:, 0] + table[:, 1], 3 * table[:, 2]])
    at = bring("mine.csv", csv(full, [*"abcd", "total", "triple"]), floor=0.99)
    warnings = (warning.value.replace("\\", "") for warning in at.warning)
    relations = next(text for text in warnings if "cannot all be uncorrelated" in text)
    assert "`total` = `a` + `b`" in relations
    assert "`triple` = 3 `c`" in relations
    at.button(key="leave_out").click().run()
    assert not at.error
    assert not at.exception
    R = np.corrcoef(table, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.99).objective, rel=1e-3)
    assert at.sidebar.multiselect[0].value == list("abcd")


@pytest.fixture
def panel(table):
    frame = pd.DataFrame(table, columns=list("abcd"))
    frame.insert(0, "country", [f"c{i // 5}" for i in range(80)])
    return frame


@pytest.mark.slow
def test_what_a_singular_panel_can_be_asked_for(bring, metric, panel):
    data = panel.assign(total=panel["a"] + panel["b"]).to_csv(index=False).encode()
    for mode in ("max_vif", "support"):
        at = bring("panel.csv", data, mode=mode)
        assert "has no answer for variables that determine each other" in said(at)
        assert "command" not in said(at)
    at = bring("panel.csv", data, mode="budget")
    assert not at.error  # the budget begins above the least possible
    assert metric(at, "Residual") > (25 / 4 - 5) / 2


def test_sheets(bring, metric, table):
    book = openpyxl.Workbook()
    book.active.append(["read me"])
    sheet = book.create_sheet("numbers")
    for row in [list("abcd"), *table.tolist()]:
        sheet.append(row)
    at = bring("mine.xlsx", saved(book), floor=0.95)
    assert "Sheet 'numbers' was read; the workbook also has Sheet." in answer(at)
    choice = next(s for s in at.selectbox if s.label == "Sheet")
    choice.set_value("Sheet").run()
    assert "no rows" in said(at)
    assert "Choose another sheet" in said(at)
    next(s for s in at.selectbox if s.label == "Sheet").set_value("numbers").run()
    assert not at.error
    assert metric(at, "Weakest fidelity") > 0.95


JUNK = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("empty.csv", lambda: b"", "the file is empty"),
        ("one.csv", lambda: b"a\n1\n2\n3\n", "only 'a'"),
        ("junk.xlsx", lambda: b"PK\x03\x04" + JUNK.bytes(10_000_000), "junk.xlsx"),
        ("letters.csv", lambda: b"lorem ipsum " * 900_000, "letters.csv"),
    ],
)
def test_bad_upload_is_refused_with_a_message(bring, name, make, words):
    at = bring(name, make())
    assert words in said(at)
    assert len(said(at)) < 1300
    assert not at.metric
    assert not at.get("download_button")


def test_names_that_tables_keep_for_themselves(bring, table):
    at = bring("odd.csv", csv(table, ["_index", "source", "0", "1"]), mode="support", floor=0.9)
    assert not at.exception
    assert at.metric


FRAME = pd.DataFrame(
    np.random.default_rng(6).normal(size=(60, 4)) @ np.random.default_rng(7).normal(size=(4, 4)),
    columns=["growth", "exports", "debt", "wages"],
)


def test_doubtful_columns_are_variables_when_they_are_chosen(bring):
    marked = FRAME.round(3).astype(object)
    marked.iloc[3, 1] = ".."
    marked.insert(0, "id", np.arange(1, 61))
    marked.insert(1, "year", 2000 + np.arange(60) % 7)
    at = bring("wb.csv", marked.to_csv(index=False).encode(), floor=0.9)
    text = answer(at)
    for needle in ("59 of 60 rows", "'..'", "id (counts up", "year (looks"):
        assert needle in text
    assert at.sidebar.multiselect[0].value == list(FRAME.columns)
    at.sidebar.multiselect[0].set_value(["year", *FRAME.columns]).run()
    assert at.session_state["settings"].include == ("year",)
    assert "id (counts up" in answer(at)
    assert "year (looks" not in answer(at)


@pytest.mark.parametrize("kind", ["corr", "cov"])
def test_an_uploaded_matrix_is_recognised(bring, metric, kind):
    data = getattr(FRAME, kind)().to_csv().encode()
    at = bring("m.csv", data, floor=0.9)
    expected = api.decorrelate(FRAME.corr(), 0.9).objective
    assert metric(at, "Residual") == pytest.approx(expected, rel=1e-3)
    name = {"corr": "correlation", "cov": "covariance"}[kind]
    assert f"The file holds a {name} matrix, not rows of data." in answer(at)
    assert "Certified for the matrix given" in answer(at)


def test_a_singular_matrix(bring, metric):
    at = bring("m.csv", b"a,b,c\n1,1,.2\n1,1,.2\n.2,.2,1", tab="Outputs")
    drawn = next(d.proto.arrow_data.styler for d in at.dataframe if "VIF after" in d.value)
    spelled = pa.ipc.open_stream(drawn.display_values).read_all().to_pandas()
    assert spelled.iloc[:, -2:].to_numpy().tolist() == [["∞", "∞"], ["∞", "∞"], ["1.04", "∞"]]
    # solved as it is, and told: three outputs in two dimensions leave at least (9/2 - 3)/2
    assert metric(at, "Residual") >= 0.75 - 1e-4
    assert "largest VIF ∞ → ∞" in answer(at)
    assert "cannot all be uncorrelated" in " ".join(w.value for w in at.warning)
    at.button(key="leave_out").click().run()
    assert not at.error
    assert metric(at, "Residual") == 0


@pytest.mark.parametrize("text", [b"a,b\n1,0\n0,1", b"a,b,c\n1,0,0\n0,1,0\n0,0,1"])
@pytest.mark.parametrize("mode", ["floor", "budget", "max_vif", "max_correlation", "support"])
def test_an_identity_in_every_mode(bring, text, mode):
    at = bring("identity.csv", text, mode=mode)
    assert not at.error, [e.value for e in at.error]


def test_uploads_are_limited_where_they_come_in(open_app):
    at = open_app()
    assert at.file_uploader(key="file").proto.max_upload_size_mb == 25
    assert "--server.maxUploadSize=25" in OPTIONS


@pytest.mark.parametrize(
    "name",
    ["**a**", "[a](b)", "![a](http://b)", "<b>", "$x$", ":red[a]", "`a`", "a_b_", "www.e.vil"],
)
def test_markdown_in_names_means_nothing(name):
    text = plain(name)
    # Whatever could begin markup stands after a backslash, and addresses do not become links.
    assert re.search(r"(?<!\\)[*\[\]<>$_`:!(]", text) is None
    assert "www." not in text.replace("\\", "")
    assert text.replace("\\", "").replace("\N{WORD JOINER}", "") == name
    assert len(plain("x" * 1000, 300)) == 300
