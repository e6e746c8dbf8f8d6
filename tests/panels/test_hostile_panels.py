"""Tables and arguments that could give wrong windows: refused, or answered correctly."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skcoral.exceptions import InvalidArgumentError, InvalidTableError, SkippedWindowsWarning
from skcoral.panels import grouped, rolling

SETTINGS = {"rho_min": 0.7}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 3)) @ [[1, 0.8, 0.3], [0, 1, 0.5], [0, 0, 1]]
    days = pd.date_range("2024-01-01", periods=60, freq="B")
    return pd.DataFrame(rows, index=days, columns=list("abc"))


def test_names_of_groups_and_labels_that_clash(table):
    kinds = ["u", "v"] * 30
    assert rolling(table.assign(row=kinds), 20, by="row", **SETTINGS).status.index.nlevels == 2
    pl = pytest.importorskip("polars")
    panel = grouped(pl.DataFrame({"status": kinds, **table}), "status", **SETTINGS)
    assert panel.status["status_"].to_list() == ["u", "v"]
    assert panel.status["status"].to_list() == ["exact", "exact"]


def test_columns_are_found_by_their_names_as_text(table):
    wide = table.set_axis([0, 1, 2], axis=1)
    wide[3] = ["u", "v"] * 30
    assert list(rolling(wide, 20, by="3", **SETTINGS).status.index.names) == ["3", "row"]
    dated = table.rename_axis("date")
    by_level = rolling(dated, "30D", on="date", **SETTINGS).status
    assert by_level.equals(rolling(dated, "30D", **SETTINGS).status)
    dates = table.assign(day=table.index[[0, 1] * 30], kind="u")
    assert len(grouped(dates, ["day", "kind"], **SETTINGS)) == 2


def test_text_whose_day_and_month_could_be_mixed_up_is_refused(table):
    months = pd.date_range("2020-01-01", periods=60, freq="MS")
    with pytest.raises(InvalidTableError, match=r"01/02/2020"):
        rolling(table.assign(day=months.strftime("%d/%m/%Y")), "300D", on="day", **SETTINGS)
    offsets = [f"2024-03-31T01:30:00+0{k // 30}:00" for k in range(60)]
    with pytest.raises(InvalidTableError, match="UTC"):
        rolling(table.assign(day=offsets), 20, on="day", **SETTINGS)
    dates = rolling(table.assign(day=months), "300D", on="day", **SETTINGS)
    for clear in ("%Y-%m-%d", "%d.%m.%Y", "%d.%m.%Y 12:30"):
        text = rolling(table.assign(day=months.strftime(clear)), "300D", on="day", **SETTINGS)
        assert text.status["rows"].tolist() == dates.status["rows"].tolist()


def test_labels_of_another_index_are_refused(table):
    labels = pd.Series(["u"] * 30 + ["v"] * 30, index=table.index[::-1])
    with pytest.raises(InvalidArgumentError, match="another index"):
        grouped(table, labels, **SETTINGS)
    assert len(grouped(table, labels.to_numpy(), **SETTINGS)) == 2


def test_a_row_of_several_groups_needs_its_group(table):
    twice = pd.concat([table.assign(g="u"), table.iloc[:, ::-1].assign(g="v")])
    panel = grouped(twice, "g", **SETTINGS)
    with pytest.raises(InvalidArgumentError, match="2 groups"):
        panel.model("2024-02-01")
    assert panel.model("2024-02-01", group="v").n_samples_seen_ == 60
    with pytest.raises(InvalidArgumentError, match="no row"):
        panel.model("never")
    local = rolling(table.tz_localize("Asia/Tokyo"), 20, **SETTINGS)
    assert local.model("2024-02-01").n_samples_seen_ == 20


@pytest.mark.parametrize("X", [None, 3.0, np.zeros(5), scipy.sparse.eye(5), np.empty((5, 0))])
def test_what_is_no_table_is_refused(X):
    with pytest.raises(InvalidTableError):
        rolling(X, 3)


def test_panels_are_pickled_with_their_models(table):
    panel = pickle.loads(pickle.dumps(rolling(table, 20, **SETTINGS)))
    assert panel.model("2024-02-01").n_samples_seen_ == 20


def test_numbers_of_any_size(table):
    far = 10**30
    assert len(rolling(table, 20, step=far, lag=far, **SETTINGS)) == 1
    with pytest.warns(SkippedWindowsWarning, match="No window"):
        assert len(rolling(table, far, **SETTINGS)) == 0
    span = rolling(table, np.timedelta64(30, "D"), **SETTINGS).status
    assert span.equals(rolling(table, "30D", **SETTINGS).status)
    two = rolling(table, 20, by=["u"] * 60, min_rows=5, **SETTINGS)
    assert two.status["rows"].min() == 5


@pytest.mark.parametrize(("factor", "halflife"), [(1e200, None), (1.0, 1e-300), (1.0, 1e-3)])
def test_windows_without_moments_are_refused_without_noise(table, factor, halflife):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        panel = rolling(table * factor, 30, halflife=halflife, **SETTINGS)
    assert set(panel.status["status"]) == {"refused"}
    assert {w.category for w in seen} == {SkippedWindowsWarning}


def test_years_and_days_in_any_spelling_that_is_clear(table):
    years = table.assign(year=np.arange(1930.0, 1990.0))
    text = table.assign(year=[f"13.06.{1930 + k}" for k in range(60)])
    for dated in (years, text):
        status = rolling(dated, f"{365 * 20}D", on="year", **SETTINGS).status
        assert status["rows"].iloc[-1] == 20
