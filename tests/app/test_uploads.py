"""Uploads are read, explained, or refused with a message."""

import gzip
import io

import numpy as np
import openpyxl
import pandas as pd
import pytest
from sklearn.covariance import LedoitWolf

from skcoral import api
from workbooks import saved, workbook


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


def buttons(at):
    """The download buttons: there are none where nothing could be solved."""
    return at.get("download_button")


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
    at = bring("mine.csv", frame.to_csv(index=False).encode(), floor="0.95")
    # refused as by the command: all columns with their first cell, and a button leaves them out
    assert "2 columns cannot be read as numbers: 'odd' (line 81: '3 kg')" in said(at)
    assert "'infinite' (line 81: infinite)" in said(at)
    assert not at.metric
    at.button(key="leave_out").click().run()
    assert not at.error
    assert at.query_params["without"] == ["odd", "infinite"]
    complete = np.delete(table, [3, 7], axis=0)
    R = np.corrcoef(complete, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.95).objective, rel=1e-3)
    told = answer(at)
    assert not at.success  # data in doubt: not green
    assert "2 rows with missing values" in at.warning[0].value
    assert "; 78 of 80 rows used." in told
    assert "2 rows with missing values are not used, and outputs that cannot be computed" in told
    assert "Constant, so left out: same (always 7)." in told
    left_out = " ".join(m.value for m in at.markdown).replace("\\", "")
    assert "**name**: no numbers, such as 'someone'" in left_out
    assert "**same**: always 7" in left_out
    assert at.sidebar.multiselect[0].value == list("abcd")


def test_choosing_columns(bring, metric, table):
    at = bring("mine.csv", csv(table, "abcd"), floor="0.97")
    at.sidebar.multiselect[0].set_value(["a", "c", "d"]).run()
    R = np.corrcoef(table[:, [0, 2, 3]], rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.97).objective, rel=1e-3)
    at.sidebar.multiselect[0].set_value(["a"]).run()
    assert "at least two columns of numbers that vary are needed, and there is only 'a'" in said(at)
    assert not at.exception


def test_weights_column(bring, metric, table):
    weights = np.arange(80) % 3
    data = csv(np.column_stack([table, weights]), [*"abcd", "w"])
    at = bring("mine.csv", data, floor="0.95")
    next(s for s in at.selectbox if s.label == "Row weights").set_value("w").run()
    repeated = np.repeat(table, weights, axis=0)
    result = api.decorrelate(np.corrcoef(repeated, rowvar=False), 0.95)
    # measured as it was fitted: with the weights
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3, abs=1e-9)
    told = answer(at)
    assert "Largest weighted correlation" in told
    assert "Certified for these 53 rows with their weights" in told
    assert at.query_params["weights"] == "w"


def test_shrunk_correlations(bring, metric, table):
    at = bring("mine.csv", csv(table, "abcd"), floor="0.95")
    choice = next(s for s in at.selectbox if s.label == "Correlations")
    choice.set_value("LedoitWolf").run()
    Z = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    C = LedoitWolf().fit(Z).covariance_
    # measured on the rows, not on the shrunk matrix
    T = api.decorrelate(C / np.sqrt(np.outer(np.diag(C), np.diag(C))), 0.95).T
    G = np.corrcoef(Z @ T, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(0.5 * ((G - np.eye(4)) ** 2).sum(), rel=1e-3)
    assert not at.success
    told = at.warning[0].value.replace("\\", "")
    assert told.startswith("**Largest correlation ")
    assert "Certified for the correlation matrix that LedoitWolf estimates" in told


def test_few_rows_with_and_without_shrinkage(bring, metric):
    rows = np.random.default_rng(0).normal(size=(5, 8))
    at = bring("short.csv", csv(rows, "abcdefgh"))
    assert any("5 rows cannot determine 8 columns" in warning.value for warning in at.warning)
    assert not at.error, [error.value for error in at.error]
    assert metric(at, "Residual") == pytest.approx((8**2 / 4 - 8) / 2, rel=1e-3)
    choice = next(s for s in at.selectbox if s.label == "Correlations")
    choice.set_value("OAS").run()
    assert not at.error
    assert metric(at, "Weakest fidelity") >= 0.85


def test_first_rows_are_shown_as_the_file_has_them(bring):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2)).round(2).astype(str)
    lines = [f"p{i};{a};{b};;" for i, (a, b) in enumerate(x)]
    text = "\n".join(["_index;1;<b>;empty;void", *lines, "Source: an office"])
    at = bring("people.csv", text.replace(".", ",").encode(), floor="0.9")
    assert not at.error, at.error[0].value
    shown = at.sidebar.dataframe[0].value
    assert shown.iloc[:, 0].tolist() == [f"p{i}" for i in range(8)]
    assert shown.iloc[:, 1].tolist() == [cell.replace(".", ",") for cell in x[:8, 0]]
    assert (shown.iloc[:, 3:] == "").all(axis=None)
    # looking at the first rows takes nothing away from the rest
    assert any("60 complete rows" in c.value.replace("\\", "") for c in at.caption)


@pytest.mark.parametrize("tab", ["Correlations", "Outputs"])
def test_wide_tables_are_ordinary_tables(open_app, metric, tab):
    """Nothing is refused; cells that could not be read give way to worst pairs and counts."""
    rows = np.random.default_rng(1).normal(size=(8, 130))
    at = open_app(tab=tab, source="upload", floor="0.9")
    names = [f"g{j}" for j in range(130)]
    at.file_uploader(key="file").set_value(("wide.csv", csv(rows, names), "text/csv"))
    at.run()
    assert not at.exception
    assert not at.error, [error.value for error in at.error]
    assert any("8 rows cannot determine 130 columns" in w.value for w in at.warning)
    assert metric(at, "Residual") == pytest.approx((130**2 / 7 - 130) / 2, rel=1e-3)
    assert metric(at, "Weakest fidelity") >= 0.9
    assert at.sidebar.multiselect[0].label.startswith("Leave out (130 of 130")
    wanted = "output" if tab == "Outputs" else "correlation"
    shown = next(d.value for d in at.dataframe if wanted in d.value.columns)
    if tab == "Outputs":
        assert list(shown["output"]) == names
        return
    R = np.abs(np.corrcoef(rows.T)) - np.eye(130)
    assert shown["correlation"].abs().iloc[0] == pytest.approx(R.max())


def test_dependent_columns_are_left_out_with_one_click(bring, metric, table):
    whole = np.column_stack([table, table[:, 0] + table[:, 1], 3 * table[:, 2]])
    at = bring("mine.csv", csv(whole, [*"abcd", "total", "triple"]), floor="0.99")
    warnings = (warning.value.replace("\\", "") for warning in at.warning)
    relations = next(text for text in warnings if "determined by others" in text)
    assert "“total” = “a” + “b”" in relations
    assert "“triple” = 3 “c”" in relations
    at.button(key="leave_out").click().run()
    assert not at.error
    assert not at.exception
    R = np.corrcoef(table, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.99).objective, rel=1e-3)
    assert at.sidebar.multiselect[0].value == list("abcd")
    assert at.query_params["without"] == ["total", "triple"]


@pytest.fixture
def panel(table):
    frame = pd.DataFrame(table, columns=list("abcd"))
    frame.insert(0, "country", [f"c{i // 5}" for i in range(80)])
    return frame


def test_a_panel_is_told_about_its_labels(bring, panel):
    data = panel.to_csv(index=False).encode()
    at = bring("panel.csv", data, floor="0.8", confidence="0.9")
    assert any("country has 16 labels that repeat" in c.value for c in at.caption)


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


def test_excel_and_parquet(bring, metric, table):
    R = np.corrcoef(table, rowvar=False)
    expected = api.decorrelate(R, 0.95).objective
    stream = io.BytesIO()
    pd.DataFrame(table, columns=list("abcd")).to_parquet(stream)
    for name, data in (
        ("mine.xlsx", workbook([list("abcd"), *table.tolist()])),
        ("mine.parquet", stream.getvalue()),
    ):
        at = bring(name, data, floor="0.95")
        assert metric(at, "Residual") == pytest.approx(expected, rel=1e-3)


def test_decimal_commas(bring, metric, table):
    text = pd.DataFrame(table, columns=list("abcd")).to_csv(index=False, sep=";", decimal=",")
    at = bring("mine.csv", text.encode(), floor="0.95", own=["a:0.97"])
    assert not at.error
    assert "Read with semicolons between the cells and decimal commas." in answer(at)
    assert "--" not in answer(at)
    R = np.corrcoef(table, rowvar=False)
    expected = api.decorrelate(R, [0.97, 0.95, 0.95, 0.95]).objective
    assert metric(at, "Residual") == pytest.approx(expected, rel=1e-3)
    # The next file is read in the usual way again.
    at.file_uploader(key="file").set_value(("two.csv", csv(table, "abcd"), "text/csv"))
    at.run()
    assert not at.error
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.95).objective, rel=1e-3)


def test_the_dialect_can_be_given(bring, metric, table):
    text = pd.DataFrame(table, columns=list("abcd")).to_csv(index=False, sep="|")
    at = bring("mine.csv", text.encode(), floor="0.95")
    at.selectbox(key="dialect_separator").set_value("|").run()
    R = np.corrcoef(table, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.95).objective, rel=1e-3)


def test_sheets(bring, metric, table):
    book = openpyxl.Workbook()
    book.active.append(["read me"])
    sheet = book.create_sheet("numbers")
    for row in [list("abcd"), *table.tolist()]:
        sheet.append(row)
    at = bring("mine.xlsx", saved(book), floor="0.95")
    assert "Sheet 'numbers' was read; the workbook also has Sheet." in answer(at)
    choice = next(s for s in at.selectbox if s.label == "Sheet")
    choice.set_value("Sheet").run()
    assert "no rows" in said(at)
    assert "Choose another sheet" in said(at)
    next(s for s in at.selectbox if s.label == "Sheet").set_value("numbers").run()
    assert not at.error
    R = np.corrcoef(table, rowvar=False)
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.95).objective, rel=1e-3)


JUNK = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        ("empty.csv", lambda: b"", "the file is empty"),
        ("header.csv", lambda: b"a,b,c\n", "no rows"),
        ("words.csv", lambda: b"a,b\nx,y\nz,w\n", "at least two columns of numbers"),
        ("one.csv", lambda: b"a\n1\n2\n3\n", "only 'a'"),
        ("same.csv", lambda: b"a,b\n1,2\n1,3\n1,4\n", "a (always 1)"),
        ("junk.csv", lambda: JUNK.bytes(10_000_000), "junk.csv"),
        ("junk.xlsx", lambda: b"PK\x03\x04" + JUNK.bytes(10_000_000), "junk.xlsx"),
        ("junk.parquet", lambda: b"PAR1" + JUNK.bytes(10_000_000), "junk.parquet"),
        ("letters.csv", lambda: b"lorem ipsum " * 900_000, "letters.csv"),
        ("packed.csv", lambda: gzip.compress(b"a,b\n" + b"1,2\n" * 1000), "compressed"),
        ("infinite.csv", lambda: b"a,b\n1,2\ninf,3\n2,5\n", "line 3: infinite"),
        ("twice.csv", lambda: b"a,a\n1,2\n3,4\n", "twice.csv"),
        ("old.xls", lambda: b"\xd0\xcf\x11\xe0" + b"x" * 100, "the workbook cannot be read"),
    ],
)
def test_bad_upload_is_refused_with_a_message(bring, name, make, told):
    at = bring(name, make())
    assert told in said(at)
    assert len(said(at)) < 1300
    assert not at.metric
    assert not buttons(at)


def test_hostile_names_stay_names(bring, table):
    names = ["<script>alert(1)</script>", "![x](http://e.vil/p.png)", "$a$ :red[b]", "`c` www.d.e"]
    broken = [["text"] * 80, ["3"] * 79 + ["x"]]
    frame = pd.DataFrame(table, columns=names)
    frame["[y](http://e.vil)"] = broken[0]
    frame["![z](http://e.vil/q.png)"] = broken[1]
    at = bring("![f](http://e.vil).csv", frame.to_csv(index=False).encode())
    before = [*at.markdown, *at.caption, *at.error]
    at.button(key="leave_out").click().run()
    assert at.metric
    shown = [*at.markdown, *at.caption, *at.error, *at.warning, *at.success, *at.info]
    for text in before + shown:
        assert "](http" not in text.value
        assert "<script" not in text.value


def test_names_that_tables_keep_for_themselves(bring, table):
    at = bring("odd.csv", csv(table, ["_index", "source", "0", "1"]), mode="support", floor="0.9")
    assert not at.exception
    assert at.metric


def test_hostile_file_name_in_an_error(bring):
    at = bring("![f](http://e.vil/p.png).csv", b"")
    assert "](http" not in at.error[0].value


def test_paste_a_matrix(open_app, metric):
    at = open_app(source="paste", floor="0.99")
    assert at.info
    at.text_area(key="pasted").set_value("a\tb\tc\n1\t.6\t.3\n.6\t1\t.4\n.3\t.4\t1").run()
    R = np.array([[1, 0.6, 0.3], [0.6, 1, 0.4], [0.3, 0.4, 1]])
    assert metric(at, "Residual") == pytest.approx(api.decorrelate(R, 0.99).objective, rel=1e-3)
    assert at.sidebar.multiselect[0].value == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 2\n2 1", "1"),
        ("1 .5 .1\n.5 1 .2", "2 rows and 3 columns"),
        ("1 .5\n.5 x", "2 rows and 1 columns"),
        ("1 .9 -.9\n.9 1 .9\n-.9 .9 1", "not positive definite"),
        ("hello world", ""),
    ],
)
def test_pasted_nonsense_is_refused_with_a_message(open_app, text, told):
    at = open_app(source="paste")
    at.text_area(key="pasted").set_value(text).run()
    assert not at.exception
    assert at.error
    assert told in said(at)


def test_another_matrix_forgets_the_names_of_the_last(open_app, metric):
    at = open_app(source="paste", floor="0.9", own=["c:0.99"])
    at.text_area(key="pasted").set_value("a b c\n1 .6 .3\n.6 1 .4\n.3 .4 1").run()
    assert at.query_params["own"] == "c:0.99"
    at.text_area(key="pasted").set_value("a d\n1 .6\n.6 1").run()
    assert not at.exception
    assert at.sidebar.multiselect[0].value == ["a", "d"]
    assert "own" not in at.query_params
    assert metric(at, "Weakest fidelity") == pytest.approx((1.6**0.5 + 0.4**0.5) / 2, abs=1e-4)


def test_pasted_singular_matrix(open_app, metric):
    at = open_app(source="paste")
    at.text_area(key="pasted").set_value("1 1 .2\n1 1 .2\n.2 .2 1").run()
    # solved as it is, and told: three outputs in two dimensions leave at least (9/2 - 3)/2
    assert metric(at, "Residual") >= 0.75 - 1e-4
    assert "largest VIF ∞ → ∞" in answer(at)
    assert "cannot all be uncorrelated" in " ".join(w.value for w in at.warning)
    at.button(key="leave_out").click().run()
    assert not at.error
    assert metric(at, "Residual") == 0


def test_another_file_forgets_the_floors_of_the_last(bring, table):
    at = bring("one.csv", csv(table, "abcd"), own=["a:0.99"], floor="0.9")
    assert at.query_params["own"] == "a:0.99"
    at.file_uploader(key="file").set_value(("two.csv", csv(table[:, ::-1], "abcd"), "text/csv"))
    at.run()
    assert "own" not in at.query_params
