"""The figures that ``coral fit`` prints first are those of the file that it wrote."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pandas as pd
import pytest

from judge import figures
from skcoral.workflow import dataset

NAMES = ["a", "b", "c", "d", "e"]


def skewed(n=120, seed=8):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) / 2)


@pytest.fixture(scope="module")
def skewed_csv(tmp_path_factory):
    """A skewed table with a column of text, weights, and two incomplete rows."""
    path = tmp_path_factory.mktemp("skewed") / "skewed.csv"
    rng = np.random.default_rng(1)
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["who", *NAMES, "w", "n"])
        for i, row in enumerate(skewed()):
            cells = [repr(v) for v in row.tolist()]
            if i in (7, 50):
                cells[2] = ".."
            weight, count = repr(float(rng.gamma(2.0)) / 120), int(rng.integers(1, 5))
            out.writerow([f"name {i}", *cells, weight, count])
    return path


def columns_of(path, names=NAMES):
    table = pd.read_csv(path, na_values="..")
    return table[list(names)].dropna().to_numpy(), len(table)


def assert_same(text, expected):
    for name, value in expected.items():
        assert text[name] == pytest.approx(value, abs=1e-8, rel=1e-8), name


GOALS = {
    "threshold": [],
    "floor": ["--rho-min", "0.93"],
    "named": ["--rho-min", "a=0.97"],
    "budget": ["--budget", "0.05"],
    "worst": ["--rho-min", "0.93", "--criterion", "worst"],
    "support": ["--rho-min", "0.6", "--support", "0.3"],
}
MATRIX = {"own": [], "shrunk": ["--covariance", "LedoitWolf"]}
WEIGHTS = {
    "plain": [],
    "weighted": ["--weights", "w"],
    "counted": ["--weights", "n"],
}


@pytest.mark.parametrize("goal", GOALS)
def test_measured_is_what_the_file_shows(answer, skewed_csv, tmp_path, goal):
    """Every combination of matrix, weights and scale at one floor; a few of others."""
    ways = enumerate(itertools.product(MATRIX, WEIGHTS))
    for k, (matrix, weights) in itertools.islice(ways, 0, None, 1 if goal == "floor" else 5):
        if matrix == "shrunk" and weights != "plain":
            continue  # such estimators know no weights
        out = tmp_path / f"{k}.csv"
        status, record = answer(
            "fit", skewed_csv, *GOALS[goal], *MATRIX[matrix], *WEIGHTS[weights],
            "--output-scale", ["unit", "original"][k % 2],
            "--exclude", "w,n", "-o", out,
        )  # fmt: skip
        case = (goal, matrix, weights)
        assert status in (0, 4), (case, record)
        assert record["written"] == [str(out)]
        before, n_given = columns_of(skewed_csv)
        after, _ = columns_of(out)
        measured = record["measured"]
        assert list(measured) == [
            "largest_correlation_before", "largest_correlation", "largest_vif_before",
            "largest_vif", "min_fidelity", "weakest", "rows_used", "rows_given", "weighted",
        ]  # fmt: skip
        w = None
        if weights != "plain":
            w = columns_of(skewed_csv, [*NAMES, WEIGHTS[weights][1]])[0][:, -1]
        assert_same(measured, figures(before, after, w))
        assert measured["weighted"] == (w is not None)
        assert record["headline"].startswith(f"Largest {'weighted ' * (w is not None)}correlation")
        fidelity = np.array(list(record["fidelity"].values()))
        assert fidelity.min() == pytest.approx(measured["min_fidelity"], abs=1e-12)
        assert measured["rows_given"] == n_given == 120
        assert measured["rows_used"] == 118
        is_sample = matrix == "own"
        sentence = record["certificate"]["sentence"]
        assert record["certificate"]["is_about_rows"] == is_sample
        assert sentence.startswith("Certified for" if record["certified"] else "Not certified for")
        assert ("Nothing is certified for the plain rows." in sentence) != is_sample
        if is_sample:
            assert measured["min_fidelity"] == pytest.approx(
                record["certificate"]["min_fidelity"], abs=1e-9
            )


def test_streamed_rows_give_the_same_figures(answer, skewed_csv, tmp_path, monkeypatch):
    page = tmp_path / "r.html"
    status, full = answer("fit", skewed_csv, "--exclude", "w,n", "-o", tmp_path / "a.csv")
    monkeypatch.setattr(dataset, "IN_MEMORY", 0)
    monkeypatch.setattr("skcoral.tables.table.BATCH_CELLS", 7 * 8)
    parts = ["-o", tmp_path / "b.csv", "--report", page]
    for k, extra in enumerate(([], parts, ["--weights", "w"])):
        status, record = answer("fit", skewed_csv, "--exclude", "w,n", *extra)
        assert status == 0
        if k < 2:
            for name, value in full["measured"].items():
                wanted = value if isinstance(value, str) else pytest.approx(value, abs=1e-10)
                assert record["measured"][name] == wanted
        else:
            out = tmp_path / "weighted.csv"
            answer("fit", skewed_csv, "--exclude", "n", *extra, "-o", out)
            files = (columns_of(tmp_path / name)[0] for name in ("a.csv", "b.csv"))
            np.testing.assert_allclose(*files, atol=1e-9)
            assert "No hold-out table: the table is large." in page.read_text("utf-8")
            w = columns_of(skewed_csv, [*NAMES, "w"])[0][:, -1]
            assert_same(
                record["measured"], figures(columns_of(skewed_csv)[0], columns_of(out)[0], w)
            )


@pytest.mark.parametrize("command", ["fit", "threshold", "inspect", "frontier"])
def test_every_answer_about_weighted_rows_says_so(main, skewed_csv, tmp_path, command):
    page = tmp_path / "r.html"
    more = {"frontier": ["--points", "2"], "fit": ["--rho-min", "0.95", "--report", page]}
    asked = [command, skewed_csv, *more.get(command, [])]
    status, shown, _ = main(*asked, "--exclude", "n", "--weights", "w")
    shown = " ".join(shown.split())
    w = columns_of(skewed_csv, [*NAMES, "w"])[0][:, 5]  # weights have no scale
    text = f"Rows are weighted by w; they tell as much as {w.sum() ** 2 / (w @ w):,.0f} equally"
    assert status == 0
    assert shown.count(text) == 1
    if command == "fit":
        assert shown.startswith("Largest weighted correlation")
        assert "these 118 rows with their weights" in shown
        assert "variable weighted fidelity floor" in shown
        assert "measured on the outputs with the weights of their rows" in page.read_text()
        return
    assert "weighted by" not in main(*asked, "--exclude", "n,w")[1]


def test_a_largest_correlation_that_rises_is_said(main, answer, tmp_path):
    """The least sum of squares may cost one pair: b, without c, goes with a all the more."""
    matrix, support = tmp_path / "R.csv", tmp_path / "support.csv"
    matrix.write_text(",a,b,c\na,1,0.7,0\nb,0.7,1,0.6\nc,0,0.6,1\n")
    support.write_text("source,output\na,a\nb,b\nc,c\nc,b\n")
    _, record = answer("fit", matrix, "--rho-min", 0.5, "--support", support)
    measured = record["measured"]
    assert measured["largest_correlation"] > measured["largest_correlation_before"] + 0.1
    assert "higher than before" in record["headline"]
    _, said, _ = main("fit", matrix, "--rho-min", 0.95)
    assert "higher than before" not in " ".join(said.split())
