"""``coral roll``: files in and out against :func:`skcoral.panels.rolling` in memory."""

import numpy as np
import pandas as pd
import pytest

from skcoral.exceptions import SkippedWindowsWarning
from skcoral.panels import rolling

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(150, 2)) @ rng.normal(size=(2, 4)) + rng.standard_t(5, (150, 4))
    table = pd.DataFrame(X, columns=NAMES)
    table.insert(0, "date", pd.date_range("2021-03-01", periods=150, freq="B"))
    table.insert(3, "sector", np.where(np.arange(150) % 3, "tech", "oil"))
    table.loc[60, "b"] = np.nan
    path = tmp_path_factory.mktemp("roll") / "prices.csv"
    table.to_csv(path, index=False)
    return path, table


@pytest.mark.parametrize("by", [None, "sector"])
def test_files_hold_what_rolling_returns(prices, main, tmp_path, by):
    path, table = prices
    out, log = tmp_path / "out.csv", tmp_path / "windows.csv"
    options = ["--by", by] if by else []
    status, said, _ = main(
        "roll", path, "--date", "date", "--window", "40D", "--min-rows", 8, "--lag", 1,
        "--rho-min", 0.95, "-o", out, "--windows", log, *options,
    )  # fmt: skip
    assert status == 0
    rows = table if by else table.drop(columns="sector")
    panel = rolling(rows, "40D", on="date", by=by, min_rows=8, lag=1, rho_min=0.95)
    made = pd.read_csv(out, parse_dates=["date"])
    assert list(made.columns) == list(table.columns)
    assert (made["sector"] == table["sector"]).all()
    wanted = panel.outputs[NAMES].to_numpy()
    assert np.array_equal(made[NAMES].isna().to_numpy(), np.isnan(wanted))
    assert np.nanmax(np.abs(made[NAMES].to_numpy() - wanted)) < 1e-8
    windows = pd.read_csv(log)
    figures = panel.to_frame().reset_index()
    windows["date"] = pd.to_datetime(windows["date"])
    keys = [*([by] if by else []), "date"]
    windows, figures = windows.sort_values(keys), figures.sort_values(keys)
    assert (windows["date"].to_numpy() == figures["date"].to_numpy()).all()
    assert windows["rows"].dtype == int
    assert (windows["rows"].to_numpy() == figures["rows"].to_numpy()).all()
    assert np.allclose(windows["threshold"], figures["threshold"], atol=1e-9)
    assert f"{len(panel)} windows" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--window", "90D"], "windows of time need dates"),
        (["--window", "soon", "--date", "date"], "span of time"),
        (["--window", "40", "--date", "a"], "does not hold dates"),
        (["--window", "40", "--by", "sectr"], "Did you mean 'sector'"),
        (["--window", "40", "--weights", "a"], "--weights"),
    ],
)
def test_wrong_use_is_reported_and_leaves_no_file(prices, main, tmp_path, arguments, words):
    out = tmp_path / "out.csv"
    status, _, err = main("roll", prices[0], *arguments, "-o", out)
    assert status in (2, 3)
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_windows_of_typed_files_are_called_by_their_dates(prices, main, tmp_path):
    table, log = tmp_path / "table.parquet", tmp_path / "windows.csv"
    prices[1][["date", *NAMES]].to_parquet(table)
    asked = ["--date", "date", "--window", 60, "--step", 30, "--rho-min", 0.9]
    status, *_ = main("roll", table, *asked, "-o", tmp_path / "out.parquet", "--windows", log)
    assert status == 0
    assert pd.read_csv(log)["first"][0] == "2021-03-01"


def test_a_matrix_is_no_table_of_rows(prices, main, tmp_path):
    """Taken for rows, a correlation matrix would give outputs that mean nothing."""
    rows = prices[1].select_dtypes("number")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.corr().to_csv(tmp_path / "R.csv")
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    assert main("fit", tmp_path / "rows.csv", "--rho-min", 0.9, "--model", model)[0] == 0
    for command in (("roll", "--window", 3), ("transform", "--model", model)):
        status, _, err = main(command[0], tmp_path / "R.csv", *command[1:], "-o", out)
        assert status == 3
        assert "R.csv" in err
        assert "matrix" in err
        assert not out.exists()


def test_rows_out_of_order_in_a_group_are_named_by_their_line(main, tmp_path):
    rng = np.random.default_rng(0)
    years = [*range(1980, 2000)] * 2
    years[25:27] = years[26], years[25]
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=NAMES[:3])
    path = tmp_path / "panel.csv"
    table.assign(place=["x"] * 20 + ["y"] * 20, year=years).to_csv(path, index=False)
    status, _, err = main("roll", path, "--by", "place", "--date", "year", "--window", 10)
    assert status == 3
    assert "line 28 is earlier" in err
    assert "--by" in err


def test_rows_without_a_group_are_refused(prices, main, tmp_path):
    path = tmp_path / "unclear.csv"
    prices[1].assign(sector=["oil", None] * 75).to_csv(path, index=False)
    status, _, err = main("roll", path, "--by", "sector", "--window", 20, "-o", tmp_path / "o.csv")
    assert status == 3
    assert "no group" in err
    assert [p.name for p in tmp_path.iterdir()] == ["unclear.csv"]


def test_every_row_without_output_has_a_reason(prices, main, tmp_path):
    table = prices[1][NAMES].copy()
    table.loc[20:55, "c"] = 1.5  # constant in the windows that end with rows 49 to 55
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    options = ["--window", 30, "--min-rows", 29, "--rho-min", 0.9, "-o", tmp_path / "out.csv"]
    _, said, _ = main("roll", path, *options)
    empty = int(pd.read_csv(tmp_path / "out.csv")["a"].isna().sum())
    said = " ".join(said.split())
    assert f"{empty} of 150 rows have no output: 28 before the first window with " in said
    assert "7 in windows that were refused, 1 with missing values." in said
    assert "`c`. Leave it out. --exclude NAME" in said
    assert empty == 28 + 7 + 1


@pytest.mark.parametrize("output", ["-", "out.csv"])
def test_a_table_without_any_output_is_not_written(prices, main, tmp_path, output):
    flat = tmp_path / "flat.csv"
    prices[1].assign(d=np.arange(150) // 75).to_csv(flat, index=False)
    out = output if output == "-" else tmp_path / output
    for path, options, words in (
        (prices[0], ["--window", 500], ("window of 500", "149 before", "--window", "--min-rows")),
        (flat, ["--window", 40, "--step", 75, "--columns", "a,c,d"], ("`d`", "--exclude")),
    ):
        status, said, err = main("roll", path, *options, "-o", out)
        assert (status, said) == (3, "")
        assert path.name in err
        assert all(word in err for word in words)
        assert len(err.splitlines()) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["flat.csv"]


@pytest.mark.parametrize(("option", "value"), [("max_vif", 1.5), ("max_correlation", 0.2)])
def test_limits_of_the_outputs(prices, main, tmp_path, option, value):
    path, table = prices
    out, log = tmp_path / "out.csv", tmp_path / "windows.csv"
    flag = f"--{option.replace('_', '-')}"
    asked = ["--exclude", "date", "--step", 40, "--window", 50, flag, value]
    status, _, _ = main("roll", path, *asked, "-o", out, "--windows", log)
    windows = pd.read_csv(log)
    assert status == (4 if (windows["status"] == "best_found").any() else 0)
    if option == "max_correlation":
        assert (windows["largest_after"].dropna() <= value + 1e-9).all()
    with pytest.warns(SkippedWindowsWarning):
        panel = rolling(table[NAMES], 50, step=40, **{option: value})
    wanted = panel.fidelity.min(axis=1)
    assert np.allclose(windows["min_fidelity"], wanted, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize(("window", "few"), [(4, 143), (5, 0)])
def test_windows_with_few_rows_are_counted(prices, main, tmp_path, window, few):
    asked = ["--exclude", "date", "--window", window, "--rho-min", 0.9]
    windows = tmp_path / "windows.csv"
    _, said, _ = main("roll", prices[0], *asked, "-o", tmp_path / "out.csv", "--windows", windows)
    figures = pd.read_csv(windows)
    assert ((figures["rows"] <= 4) & (figures["status"] != "short")).sum() == few
    text = f"{few} windows with no more complete rows than variables (4)"
    assert (text in " ".join(said.split())) == (few > 0)
