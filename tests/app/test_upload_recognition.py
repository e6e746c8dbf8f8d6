"""Recognition of uploads: matrices, missing values, ids and years, and the notes on them."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from skcoral import api


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    return pd.DataFrame(values, columns=["growth", "exports", "debt", "wages"])


def told(at):
    boxes = " ".join(b.value for b in (*at.success, *at.info, *at.warning))
    return boxes.replace("\\", "").replace("\N{WORD JOINER}", "")


def marked(frame):
    table = frame.round(3).astype(object)
    for i, mark in enumerate(["..", "-", "n.a.", "NA", "…"]):
        table.iloc[3 * i, i % 4] = mark
    table.insert(0, "id", np.arange(1, 61))
    table.insert(1, "year", 2000 + np.arange(60) % 7)
    return table


def test_missing_marks_do_not_cost_the_columns(bring, metric, frame):
    at = bring("wb.csv", marked(frame).to_csv(index=False).encode(), floor="0.9")
    kept = np.delete(frame.round(3).to_numpy(), [0, 3, 6, 9, 12], axis=0)
    result = api.decorrelate(np.corrcoef(kept, rowvar=False), 0.9)
    assert metric(at, "Residual") == pytest.approx(result.objective, rel=1e-3)
    text = told(at)
    assert text.startswith("**Largest correlation ")
    assert "55 of 60 rows used" in text
    for mark in ("'..'", "'-'", "'n.a.'", "'NA'", "'…'"):
        assert mark in text
    assert "5 rows with missing values are not used, and outputs" in text
    assert "Not used as variables: id (counts up in steps of 1), year (looks like years)." in text
    assert at.sidebar.multiselect[0].value == list(frame.columns)


def test_a_doubted_column_can_be_ticked_and_the_link_keeps_it(bring, frame):
    data = marked(frame).to_csv(index=False).encode()
    at = bring("wb.csv", data, floor="0.9")
    at.sidebar.multiselect[0].set_value(["year", *frame.columns]).run()
    assert at.query_params["include"] == "year"
    assert "without" not in at.query_params
    assert "id (counts up" in told(at)
    assert "year (looks" not in told(at)
    again = bring("wb.csv", data, floor="0.9", include="year")
    assert again.sidebar.multiselect[0].value == ["year", *frame.columns]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("kind", ["corr", "cov"])
def test_an_uploaded_matrix_is_recognised(bring, metric, frame, kind, index):
    data = getattr(frame, kind)().to_csv(index=index).encode()
    at = bring("m.csv", data, floor="0.9")
    expected = api.decorrelate(frame.corr(), 0.9).objective
    assert metric(at, "Residual") == pytest.approx(expected, rel=1e-3)
    name = {"corr": "correlation", "cov": "covariance"}[kind]
    assert f"The file holds a {name} matrix of 4 variables, not rows of data." in told(at)
    assert "Certified for the matrix given" in told(at)


def test_a_file_can_be_declared_to_hold_a_matrix(open_app, metric, frame):
    at = open_app(source="paste", floor="0.9")
    stream = io.StringIO()
    np.savetxt(stream, frame.corr(), delimiter=",")
    upload = ("plain.csv", stream.getvalue().encode(), "text/csv")
    at.file_uploader(key="matrix_file").set_value(upload).run()
    expected = api.decorrelate(frame.corr(), 0.9).objective
    assert metric(at, "Residual") == pytest.approx(expected, rel=1e-3)
    rows = ("rows.csv", frame.to_csv(index=False).encode(), "text/csv")
    at.file_uploader(key="matrix_file").set_value(rows).run()
    errors = " ".join(e.value for e in at.error).replace("\\", "")
    assert "60" in errors


def test_a_pasted_covariance_matrix(open_app, metric, frame):
    at = open_app(source="paste", floor="0.9")
    at.text_area(key="pasted").set_value(frame.cov().to_csv(sep="\t", decimal=",")).run()
    expected = api.decorrelate(frame.corr(), 0.9).objective
    assert metric(at, "Residual") == pytest.approx(expected, rel=1e-3)
    assert "A covariance matrix was pasted" in told(at)
