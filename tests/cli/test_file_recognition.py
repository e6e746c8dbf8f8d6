"""The command on files from practice: matrices, marks of missing values, ids, notes, titles."""

from __future__ import annotations

import json
from html import unescape

import numpy as np
import pandas as pd
import pytest

from skcoral import api


@pytest.fixture
def frame():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    return pd.DataFrame(values, columns=["growth", "exports", "debt", "wages"])


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("command", ["inspect", "threshold", "fit"])
def test_a_saved_correlation_matrix_is_taken_by_every_command(
    main, answer, frame, tmp_path, command, index
):
    path = tmp_path / "corr.csv"
    frame.corr().to_csv(path, index=index)
    expected = api.threshold(frame.corr()).value
    for extra in ([], ["--matrix"]):
        status, record = answer(command, path, *extra)
        assert status == 0, record
        value = record["threshold"] if command != "threshold" else record
        value = value["value"] if isinstance(value, dict) else value
        assert value == pytest.approx(expected, abs=1e-9)
        assert any("holds a correlation matrix, not rows" in n for n in record["notes"])
    _, text, _ = main(command, path)
    assert "holds a correlation matrix, not rows" in " ".join(text.split())
    assert record["rows"] is None
    if command == "fit":
        assert record["measured"]["rows_used"] is None
        assert record["measured"]["largest_correlation_before"] == pytest.approx(
            np.abs(frame.corr().to_numpy() - np.eye(4)).max()
        )


def test_a_covariance_matrix_gives_the_answer_of_its_rows(answer, main, frame, tmp_path):
    rows, matrix, out = tmp_path / "rows.csv", tmp_path / "cov.csv", tmp_path / "T.csv"
    scaled = frame * [1.0, 100.0, 0.01, 5.0]
    scaled.to_csv(rows, index=False)
    scaled.cov().to_csv(matrix)
    _, from_rows = answer("fit", rows, "--rho-min", "0.95")
    report = tmp_path / "report.html"
    status, record = answer("fit", matrix, "--rho-min", "0.95", "-o", out, "--report", report)
    assert status == 0
    assert record["objective"] == pytest.approx(from_rows["objective"], abs=1e-8)
    T = pd.read_csv(out, index_col=0)
    G = T.to_numpy().T @ frame.corr().to_numpy() @ T.to_numpy()
    np.testing.assert_allclose(np.diag(G), 1.0, atol=1e-9)
    largest = np.abs(G - np.eye(4)).max()
    assert record["measured"]["largest_correlation"] == pytest.approx(largest, abs=1e-9)
    assert record["headline"] in report.read_text()
    for option in (["--model", tmp_path / "m.json"], ["--weights", "debt"]):
        status, _, err = main("fit", matrix, *option)
        assert status == 2
        assert "matrix" in err
    _, record = answer("fit", matrix, "--no-matrix", "--rho-min", "0.5")
    assert record["measured"]["rows_given"] == 4


def world_bank(frame):
    table = frame.round(3).astype(object)
    table.iloc[3, 2], table.iloc[10, 0], table.iloc[12, 3] = "..", "n.a.", "…"
    table.insert(0, "Country", [f"C{i}" for i in range(len(frame))])
    table.insert(1, "id", np.arange(1, len(frame) + 1))
    table.insert(2, "Time", 2000 + np.arange(len(frame)) % 5)
    return table


def test_missing_marks_ids_and_years_are_reported_next_to_the_answer(main, answer, frame, tmp_path):
    path, out = tmp_path / "wb.csv", tmp_path / "out.csv"
    world_bank(frame).to_csv(path, index=False)
    status, record = answer("fit", path, "--rho-min", "0.9", "-o", out)
    assert status == 0
    assert list(record["fidelity"]) == list(frame.columns)
    assert (record["measured"]["rows_used"], record["measured"]["rows_given"]) == (57, 60)
    after = pd.read_csv(out)
    assert after["id"].tolist() == list(range(1, 61))
    assert after["Time"].tolist() == (2000 + np.arange(60) % 5).tolist()
    assert np.flatnonzero(after[list(frame.columns)].isna().all(axis=1)).tolist() == [3, 10, 12]
    report = tmp_path / "report.html"
    _, text, _ = main("fit", path, "--rho-min", "0.9", "--report", report)
    text = " ".join(text.split())
    assert "Read as missing: 'n.a.'" in unescape(report.read_text()).partition("</header>")[0]
    for needle in (
        "Read as missing: 'n.a.' (1 cell), '..' (1 cell), '…' (1 cell).",
        "Not used as variables: id (counts up in steps of 1), Time (looks like years). "
        "To use one: --include id.",
        "3 rows with missing values are not used: lines 5, 12, 14.",
    ):
        assert needle in text
        assert text.index("Certified") < text.index(needle) < text.index("fidelity floor price")
    status, record = answer("fit", path, "--include", "Time")
    assert status == 0
    assert list(record["fidelity"]) == ["Time", *frame.columns]
    status, record = answer("fit", path, "--columns", ",".join(frame.columns), "--include", "Time")
    assert status == 0
    assert sorted(record["fidelity"]) == sorted(["Time", *frame.columns])


def test_more_marks_by_option(answer, frame, tmp_path):
    path = tmp_path / "codes.csv"
    coded = frame.copy()
    coded.iloc[5, 1] = -999.0
    coded.to_csv(path, index=False)
    _, plain = answer("threshold", path)
    _, record = answer("threshold", path, "--na", "-999")
    assert plain["rows"] == 60
    assert record["rows"] == 59
    assert record["incomplete_rows"] == [7]
    expected = api.threshold(np.corrcoef(frame.drop(index=5).T)).value
    assert record["value"] == pytest.approx(expected, abs=1e-9)


def test_survey_weights_are_offered(main, frame, tmp_path):
    path = tmp_path / "survey.csv"
    frame.assign(pweight=np.random.default_rng(0).gamma(2.0, size=60)).to_csv(path, index=False)
    _, text, _ = main("fit", path)
    assert "pweight (looks like row weights)" in " ".join(text.split())
    assert "--weights pweight" in " ".join(text.split())
    _, text, _ = main("fit", path, "--weights", "pweight", "--json")
    assert json.loads(text)["measured"]["weighted"] is True
