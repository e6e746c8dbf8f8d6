"""Windows against fits of the same rows, one by one; and against changes of the future."""

import warnings

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcoral import CORAL
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidTableError,
    SingularCorrelationError,
    SingularCorrelationWarning,
    SkippedWindowsWarning,
)
from skcoral.panels import grouped, rolling
from skcoral.show.pictures import WindowsDisplay

NAMES = ["value", "size", "carry", "momentum", "quality"]


def returns(n=200, p=5, seed=0, load=0.8):
    """Fat tails, clustered volatility, off-centre columns of very different units."""
    rng = np.random.default_rng(seed)
    volatility = np.exp(0.5 * np.cumsum(rng.normal(size=n)) / np.sqrt(n))
    factors = rng.standard_t(4, size=(n, 2)) * volatility[:, None]
    rows = factors @ (load * rng.normal(size=(2, p))) + rng.standard_t(5, size=(n, p))
    return rows * 10.0 ** np.linspace(-4, 3, p) + np.linspace(-1e3, 1e3, p)


def frame(n=200, p=5, **kwargs):
    days = pd.date_range("2020-01-01", periods=n, freq="B", name="date")
    return pd.DataFrame(returns(n, p, **kwargs), index=days, columns=(NAMES * 8)[:p])


def loop(X, window, lag=0, step=1, **kwargs):
    """The naive version: a fresh fit for every window."""
    out = np.full(X.shape, np.nan)
    model = None
    for t in range(len(X)):
        end = t - lag + 1
        if end >= window:
            if (end - window) % step == 0:
                model = CORAL(**kwargs).fit(X[end - window : end])
            out[t] = model.transform(X[t : t + 1])[0]
    return out


@pytest.mark.parametrize(
    "asked",
    [
        {"rho_min": 0.8},  # mostly exact
        {"rho_min": 0.93},  # both sides of the threshold
        {"rho_min": 0.99},  # all floors bind
        {},  # at the threshold itself
        {"rho_min": {"value": 0.99, "size": 0.9, "carry": 0.6, "momentum": 0.5, "quality": 0.97}},
        {"rho_min": {"value": 0.99}},
        {"rho_min": 0.95, "criterion": "worst"},
        {"rho_min": 0.95, "output_scale": "original"},
        {"rho_min": 0.95, "halflife": 15.0},
        {"rho_min": 0.95, "covariance": "OAS"},
        {"budget": 0.05},
        {"max_correlation": 0.3},
        {"rho_min": 0.95, "expanding": True},
    ],
    ids=str,
)
def test_every_window_is_a_fresh_fit(asked):
    X = pd.DataFrame(returns(n=62), columns=NAMES)
    made = rolling(X, 40, **asked).outputs
    settings = {k: value for k, value in asked.items() if k not in ("halflife", "expanding")}
    age = np.arange(39, -1, -1)
    weights = 0.5 ** (age / asked["halflife"]) if "halflife" in asked else None
    assert made.iloc[:39].isna().all().all()
    for t in (39, 40, 50, 61):
        begin = 0 if "expanding" in asked else t - 39
        single = CORAL(**settings).fit(X.iloc[begin : t + 1], sample_weight=weights)
        wanted = single.transform(X.iloc[[t]])[0]
        assert np.abs(made.iloc[t] - wanted).max() < 1e-8 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize(("step", "lag"), [(1, 1), (3, 0), (5, 4)])
def test_steps_and_lags(step, lag):
    X = returns(n=75, seed=3)
    wanted = loop(X, 50, lag=lag, step=step, rho_min=0.95)
    made = rolling(X, 50, step=step, lag=lag, rho_min=0.95)
    assert np.array_equal(np.isnan(made.outputs), np.isnan(wanted))
    assert np.nanmax(np.abs(made.outputs - wanted)) < 1e-8
    assert len(made) == len(range(49, 75, step))


def test_figures_are_those_of_single_fits():
    X = frame(n=90, seed=1)
    panel = rolling(X, 60, rho_min=0.95)
    figures = panel.to_frame()
    for t in (59, 70, 89):
        single = CORAL(rho_min=0.95).fit(X.iloc[t - 59 : t + 1])
        label = X.index[t]
        assert panel.status.loc[label, "status"] == single.result_.status
        row, measured = figures.loc[label], single.measured_
        assert row["threshold"] == pytest.approx(single.threshold_.value, abs=1e-9)
        assert row["threshold_upper"] >= single.threshold_.lower
        assert row["objective"] == pytest.approx(single.result_.objective, abs=1e-9)
        assert abs(row["objective"] - row["lower_bound"]) < 1e-9
        assert row["largest_before"] == pytest.approx(measured.largest_correlation_before, abs=1e-9)
        assert row["largest_after"] == pytest.approx(measured.largest_correlation, abs=1e-7)
        assert np.allclose(panel.fidelity.loc[label], single.fidelity_, atol=1e-9)
        model = panel.model(label)
        assert np.array_equal(model.T_, single.T_)
    T = [panel.model(label).T_ for label in X.index[59:61]]
    assert np.allclose(panel.turnover.iloc[1], np.abs(T[1] - T[0]).sum(axis=0), atol=1e-8)
    assert panel.turnover.iloc[0].isna().all()
    assert (figures["min_fidelity"] >= 0.95).all()
    assert figures.index.equals(X.index[59:])
    assert "31 windows" in panel.summary()
    assert repr(panel).startswith("Panel(31 windows of 5 outputs: ")
    assert "\n" not in repr(panel)


@pytest.mark.parametrize(
    ("changed", "lag", "size"),
    [(0, 0, 30.0), (41, 1, 1e-3), (58, 0, 1.0), (63, 1, 30.0), (79, 1, 1.0)],
)
def test_no_look_ahead(changed, lag, size):
    X = returns(n=80, p=4, seed=2) / 10.0 ** np.linspace(-4, 3, 4)
    other = X.copy()
    other[changed] += size * np.array([1.0, -2.0, 0.5, 3.0])
    options = {"lag": lag, "rho_min": 0.96}
    before, after = (rolling(Y, 40, **options).outputs for Y in (X, other))
    assert np.array_equal(before[:changed], after[:changed], equal_nan=True)
    # with a lag, the model of a row does not know the row itself
    if lag and changed > 40 and changed + 1 < 80:
        model = CORAL(rho_min=0.96).fit(X[changed - 40 : changed])
        assert np.allclose(after[changed], model.transform(other[changed : changed + 1])[0])


def test_number_of_processes_changes_nothing():
    X = returns(n=120, seed=4)
    alone = rolling(X, 30, rho_min=0.95)
    with joblib.parallel_config(backend="threading"):
        together = rolling(X, 30, rho_min=0.95, n_jobs=3)
    assert np.array_equal(alone.outputs, together.outputs, equal_nan=True)
    assert alone.to_frame().equals(together.to_frame())


def test_windows_of_time():
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2021-01-01") + pd.to_timedelta(np.sort(rng.choice(300, 150, False)), "D")
    X = pd.DataFrame(returns(150, seed=7), index=days, columns=NAMES)
    panel = rolling(X, "60D", rho_min=0.9, min_rows=20)
    for t in (60, 100, 149):
        inside = (X.index > X.index[t] - pd.Timedelta("60D")) & (X.index <= X.index[t])
        single = CORAL(rho_min=0.9).fit(X[inside])
        assert panel.status.loc[X.index[t], "rows"] == inside.sum()
        assert np.allclose(panel.outputs.iloc[t], single.transform(X.iloc[[t]])[0], atol=1e-8)
    zoned = X.tz_localize("Europe/Zagreb")
    again = rolling(zoned, "60D", rho_min=0.9, min_rows=20)
    assert np.allclose(again.outputs.iloc[100], panel.outputs.iloc[100], atol=1e-8)
    for window in ("60D", 40):  # windows of rows out of order would look ahead
        with pytest.raises(InvalidTableError, match=r"not in the order of `row`: row 2021-.*by="):
            rolling(X.iloc[::-1], window, rho_min=0.9)
    with pytest.raises(InvalidTableError, match="need dates"):
        rolling(X.reset_index(drop=True), "60D")
    with pytest.raises(InvalidArgumentError, match="span of time"):
        rolling(X, "soon")


def test_pandas_and_polars_agree():
    X = frame(n=70).reset_index()
    X["group"] = np.where(np.arange(70) % 3 == 0, "a", "b")
    X.loc[20, "size"] = np.nan
    options = {"window": "40D", "on": "date", "by": "group", "rho_min": 0.95, "min_rows": 8}
    first = rolling(X, **options)
    second = rolling(pl.from_pandas(X), **options)
    assert isinstance(second.outputs, pl.DataFrame)
    assert list(first.outputs.columns) == list(X.columns) == second.outputs.columns
    assert np.array_equal(
        first.outputs[NAMES], second.outputs.select(NAMES).to_numpy(), equal_nan=True
    )
    table = second.to_frame()
    assert table.columns[:2] == ["group", "date"]
    assert np.array_equal(
        first.to_frame()["threshold"], table["threshold"].to_numpy(), equal_nan=True
    )
    assert second.fidelity.columns == ["group", "date", *NAMES]


def test_gaps_and_short_windows_are_reported():
    X = frame(n=100)
    X.iloc[70:75, 2] = np.nan
    with pytest.warns(
        SkippedWindowsWarning, match=r"30 of 61 windows have no model: 30 with too few"
    ):
        panel = rolling(X, 40, rho_min=0.9)
    assert (panel.status["status"] == "short").sum() == 30
    assert panel.outputs.iloc[70:].isna().all().all()
    assert panel.status["missing"].max() == 5
    panel = rolling(X, 40, rho_min=0.9, min_rows=30)
    assert (panel.status["status"] != "short").all()
    assert panel.outputs.iloc[70:75].isna().all().all()  # incomplete rows have no output
    t = 80
    single = CORAL(rho_min=0.9).fit(X.iloc[t - 39 : t + 1].dropna())
    assert np.allclose(panel.outputs.iloc[t], single.transform(X.iloc[[t]])[0], atol=1e-8)


def test_singular_windows_follow_the_rules_of_singular_tables():
    X = frame(n=72)
    X["total"] = X["value"] + X["size"]
    X.iloc[:45, 5] += np.random.default_rng(0).normal(size=45)  # dependent from row 45 on
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        panel = rolling(X, 25, rho_min=0.6)
        t = 70
        single = CORAL(rho_min=0.6).fit(X.iloc[t - 24 : t + 1])
    messages = [str(w.message) for w in caught if w.category is SingularCorrelationWarning]
    assert len(messages) == 2  # one for all windows, one for the single fit
    assert messages[0].startswith("3 windows, first 2020-04-07")
    assert "total" in messages[0]
    assert np.allclose(panel.outputs.iloc[t], single.transform(X.iloc[[t]])[0], atol=1e-8)
    with pytest.raises(SingularCorrelationError, match="total"):
        rolling(X, 25, rho_min=0.6, on_singular="raise")


def test_groups():
    X = frame(n=150).reset_index(drop=True)
    keys = np.random.default_rng(1).choice(["x", "y", "z"], 150)
    X["sector"], X["side"] = keys, np.where(np.arange(150) % 2, 1, -1)
    variables = X.drop(columns="side")
    panel = grouped(variables, by="sector", rho_min=0.95)
    assert len(panel) == 3
    for key in "xyz":
        rows = variables.loc[keys == key, NAMES]
        single = CORAL(rho_min=0.95).fit(rows)
        assert np.allclose(panel.outputs.loc[keys == key, NAMES], single.transform(rows), atol=1e-8)
        assert np.allclose(panel.model(rows.index[-1], group=key).T_, single.T_)
    both = rolling(X, 15, by=["sector", "side"], rho_min=0.95, lag=1)
    rows = X.loc[(keys == "y") & (X["side"] == 1), NAMES]
    single = CORAL(rho_min=0.95).fit(rows.iloc[-16:-1])
    assert np.allclose(
        both.outputs.loc[rows.index[-1], NAMES].to_numpy(float),
        single.transform(rows.iloc[[-1]])[0],
        atol=1e-8,
    )
    assert both.to_frame().index.names == ["sector", "side", "row"]
    levels = variables.set_index("sector", append=True)
    assert np.array_equal(grouped(levels, by="sector", rho_min=0.95).outputs, panel.outputs[NAMES])


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"min_rows": 50}, InvalidArgumentError, "min_rows=50 rows never fit"),
        ({"min_rows": "x"}, InvalidArgumentError, "min_rows must"),
        ({"step": 0}, InvalidArgumentError, "step must"),
        ({"n_jobs": 0}, InvalidArgumentError, "n_jobs"),
        ({"n_jobs": "all"}, InvalidArgumentError, "n_jobs"),
        ({"by": "sector"}, InvalidArgumentError, "There is no column"),
        ({"rho_min": 1.5}, InvalidArgumentError, "1.5"),
        ({"rho_mni": 0.9}, TypeError, "rho_mni"),
    ],
)
def test_questions_that_are_invalid(asked, error, words):
    with pytest.raises(error, match=words):
        rolling(frame(n=60), 40, **asked)


def test_tables_without_any_window_and_rows_without_one():
    X = frame(n=60)
    with pytest.raises(InvalidTableError, match="text"):
        rolling(X.assign(sector="x"), 40)
    with pytest.raises(InvalidArgumentError, match="There is no row"):
        rolling(X, 40).model("1999-01-01")
    with pytest.warns(SkippedWindowsWarning, match="No window"):
        short = rolling(X.iloc[:10], 40)
    assert len(short) == 0
    assert short.outputs.isna().all().all()
    assert "0 windows" in short.summary()


def test_outputs_that_share_the_lowest_fidelity_are_counted():
    X = frame(n=62)
    every = rolling(X, 60, rho_min=0.999).to_frame()
    assert (every["weakest"] == "all 5").all()
    two = rolling(X, 60, rho_min=dict.fromkeys(NAMES, 0.999) | {"size": 0.99, "carry": 0.99})
    assert (two.to_frame()["weakest"] == "2 of 5").all()
    one = rolling(X, 60, rho_min=dict.fromkeys(NAMES, 0.999) | {"size": 0.99})
    assert (one.to_frame()["weakest"] == "size").all()


def test_the_picture_has_the_numbers_of_the_windows():
    X = frame(n=60, p=4)
    panel = rolling(X, 40, rho_min=0.95)
    display = panel.plot()
    assert isinstance(display, WindowsDisplay)
    drawn = display.ax_.lines[0].get_ydata()
    assert np.array_equal(drawn, panel.to_frame()["threshold"])
    assert np.array_equal(display.ax_.lines[1].get_ydata(), panel.fidelity.min(axis=1))
    plt.close(display.figure_)
    groups = rolling(X, 25, by=np.arange(60) % 2, rho_min=0.95).plot()
    assert len(groups.ax_.lines) == 4
    plt.close(groups.figure_)
    assert "window" in panel._repr_html_()


@pytest.mark.slow
def test_random_panels():
    rng = np.random.default_rng(0)
    for _ in range(60):
        p = int(rng.integers(2, 14))
        window = p + int(rng.integers(2, 40))
        n, k = window + 60, int(rng.integers(1, 4))
        load, noise = rng.choice([0.2, 0.6, 1.0, 2.0]), 10.0 ** rng.uniform(-1.5, 0.0)
        X = rng.standard_t(3, size=(n, k)) @ (load * rng.normal(size=(k, p)))
        X = (X + noise * rng.standard_t(4, size=(n, p))) * 10.0 ** rng.uniform(-3, 3, p)
        floors = rng.choice([0.7, 0.85, 0.9, 0.95, 0.99, 0.999])
        if rng.random() < 0.3:
            floors = np.clip(floors - rng.uniform(0, 0.3, p), 0.05, 0.9999)
        panel = rolling(X, window, rho_min=floors)
        for t in range(window - 1, n, 9):
            single = CORAL(rho_min=floors).fit(X[t - window + 1 : t + 1])
            assert np.abs(single.transform(X[t : t + 1])[0] - panel.outputs[t]).max() < 1e-8
            assert single.result_.status == panel.columns["status"][t - window + 1]
