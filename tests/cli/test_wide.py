"""Tables of deficient rank by the command: fewer rows than columns, totals, duplicates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skcoral.workflow import dataset

P = 100


@pytest.fixture(scope="module")
def wide_csv(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) @ rng.normal(size=(4, P)) + rng.normal(size=(30, P))
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    pd.DataFrame(X, columns=[f"gene{j}" for j in range(P)]).to_csv(path, index=False)
    return path


def test_a_wide_table_is_an_ordinary_table(main, answer, wide_csv, tmp_path):
    out, report, model = (tmp_path / name for name in ("out.csv", "report.html", "model.json"))
    status, record = answer(
        "fit", wide_csv, "--rho-min", "0.9", "-o", out, "--report", report, "--model", model
    )
    assert status == 0
    assert record["status"] == "optimal"
    assert record["rank"] == 29
    rows, outputs = pd.read_csv(wide_csv).to_numpy(), pd.read_csv(out).to_numpy()
    fidelity = [np.corrcoef(rows[:, j], outputs[:, j])[0, 1] for j in range(P)]
    assert min(fidelity) >= 0.9 - 1e-6
    assert record["measured"]["min_fidelity"] == pytest.approx(min(fidelity), abs=1e-6)
    G = np.corrcoef(outputs.T)
    assert 0.5 * (np.sum(G**2) - P) == pytest.approx(record["objective"], rel=1e-6)
    page = report.read_text("utf-8")
    assert "strongest pairs before" in page
    assert f"30 rows cannot determine {P} columns" in page
    again = tmp_path / "again.csv"
    assert main("transform", wide_csv, "--model", model, "-o", again)[0] == 0
    np.testing.assert_allclose(pd.read_csv(again).to_numpy(), outputs, atol=1e-9)


def test_inspect_threshold_and_frontier_of_a_wide_table(main, answer, wide_csv, tmp_path):
    status, record = answer("inspect", wide_csv)
    assert status == 0
    assert record["rank"] == 29
    R = np.corrcoef(pd.read_csv(wide_csv).to_numpy().T)
    np.fill_diagonal(R, 0.0)
    assert abs(record["strongest_pairs"][0]["correlation"]) == pytest.approx(np.abs(R).max())
    status, record = answer("threshold", wide_csv)
    assert status in (0, 4)
    assert 0.5 < record["lower"] <= record["upper"] <= 1.0
    path = tmp_path / "curve.csv"
    assert main("frontier", wide_csv, "--points", "3", "--csv", path)[0] in (0, 4)
    assert pd.read_csv(path)["objective"].iloc[-1] == pytest.approx(0.5 * np.sum(R**2), rel=1e-6)


def test_a_large_wide_table_needs_no_matrix_of_all_pairs(answer, wide_csv, monkeypatch):
    monkeypatch.setattr(dataset, "IN_MEMORY", 0)
    monkeypatch.setenv("CORAL_MAX_VARIABLES", "99")
    status, record = answer("fit", wide_csv, "--rho-min", "0.9")
    assert status == 0
    assert record["rank"] == 29


def test_what_takes_long_for_very_many_columns_is_left_out_or_refused(
    main, answer, tmp_path, monkeypatch
):
    path, report = tmp_path / "wide.csv", tmp_path / "r.html"
    rows = np.random.default_rng(4).normal(size=(3, 12))
    pd.DataFrame(rows, columns=[f"g{j}" for j in range(12)]).to_csv(path, index=False)
    assert len(answer("inspect", path)[1]["strongest_pairs"]) == 5
    monkeypatch.setattr("skcoral.cli.loading.MOST_COLUMNS", 11)
    status, _, errors = main("frontier", path)
    assert status == 2
    assert "there are 12" in errors
    assert main("frontier", path, "--rho-min", "0.9")[0] in (0, 4)
    status, record = answer("inspect", path)
    assert status == 0
    assert record["strongest_pairs"] == []
    assert record["floors"] == []
    assert "at the floors named (--rho-min)" in record["recommendation"]
    assert "Strongest pairs" not in main("inspect", path)[1]
    status, _, errors = main("fit", path, "--rho-min", "0.9", "--report", report)
    assert status == 2
    assert "there are 12" in errors
    assert not report.exists()
