"""The outcome: no variable, written as it came, named on the screen and in the report."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression


@pytest.fixture
def sales_csv(tmp_path):
    """Three collinear regressors, an outcome in percent, a text column."""
    rng = np.random.default_rng(4)
    shared = rng.normal(size=80)
    a, b, c = (shared + 0.6 * rng.normal(size=80) for _ in range(3))
    y = 3 + a + 2 * b - c + rng.normal(size=80)
    lines = ["shop,a,growth,b,c"]
    for i in range(80):
        growth = "" if i == 5 else f"{y[i]:.2f}%"
        lines.append(f"s{i},{a[i]:.4f},{growth},{b[i]:.4f},{c[i]:.4f}")
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def column(path, name):
    return pd.read_csv(path, dtype=str, keep_default_na=False)[name].tolist()


def test_fit_leaves_the_outcome_alone(main, answer, sales_csv, tmp_path):
    out = tmp_path / "out.csv"
    status, record = answer("fit", sales_csv, "--target", "growth", "--max-vif", "2", "-o", out)
    assert status == 0
    assert record["target"] == "growth"
    assert list(record["fidelity"]) == ["a", "b", "c"]
    assert record["rows"] == 80  # the row without an outcome as well
    assert column(out, "growth") == column(sales_csv, "growth")
    alone = answer("fit", sales_csv, "--exclude", "growth", "--max-vif", "2")[1]
    assert record["fidelity"] == pytest.approx(alone["fidelity"], abs=1e-9)
    screen = main("fit", sales_csv, "--target", "growth", "--max-vif", "2")[1]
    assert "growth is the outcome" in screen


def test_the_report_has_the_regression_of_an_outcome_that_is_a_number(main, sales_csv, tmp_path):
    pages = {name: tmp_path / f"{name}.html" for name in ("growth", "shop")}
    for name, page in pages.items():
        asked = ["--target", name, "--rho-min", "0.9", "--report", page]
        assert main("fit", sales_csv, *asked)[0] == 0
    text, without = (page.read_text() for page in pages.values())
    table = pd.read_csv(sales_csv).dropna()
    y = table["growth"].str.strip("%").astype(float)
    fit = LinearRegression().fit(table[["a", "b", "c"]], y)
    square = f"R² is {fit.score(table[['a', 'b', 'c']], y):.4f}"
    for words in ("growth, not among the variables", "not evidence", "on 79 rows", square):
        assert words in text
    assert "No regression of shop: the column is no number that varies" in without
    assert "not evidence" not in without


def test_inspect_recommends_for_the_variables_and_repeats_the_outcome(main, answer, sales_csv):
    status, record = answer("inspect", sales_csv, "--target", "growth")
    assert status == 0
    assert record["target"] == "growth"
    assert "growth" not in record["vif"]
    assert "--target growth" in record["recommended"]["command"]
    screen = main("inspect", sales_csv, "--target", "growth")[1]
    assert "growth is the outcome" in screen
    assert "growth (left out)" not in screen


def test_roll_leaves_the_outcome_alone(main, sales_csv, tmp_path):
    out = tmp_path / "out.csv"
    options = ["--window", "30", "--target", "growth", "--rho-min", "0.9", "-o", out]
    assert main("roll", sales_csv, *options)[0] == 0
    assert column(out, "growth") == column(sales_csv, "growth")
    assert column(out, "a")[-1] != column(sales_csv, "a")[-1]


def test_a_variable_of_a_matrix_can_be_the_outcome(answer, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(",a,b,y\na,1,0.6,0.2\nb,0.6,1,0.3\ny,0.2,0.3,1\n")
    page = tmp_path / "report.html"
    status, record = answer("fit", path, "--target", "y", "--rho-min", "0.9", "--report", page)
    assert status == 0
    assert list(record["fidelity"]) == ["a", "b"]
    assert "y is the outcome: it is left out of the variables." in record["notes"]
    assert "No regression of y: the file holds a matrix and no rows." in page.read_text()
