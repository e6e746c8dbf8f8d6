"""Rows in batches, and pictures."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skcoral.exceptions import InvalidTableError
from skcoral.panels import rolling
from skcoral.panels.streaming import Roller
from skcoral.show.pictures import WindowsDisplay


def frame(n=200, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, size=(n, 2)) @ rng.normal(size=(2, p)) + rng.standard_t(5, size=(n, p))
    days = pd.date_range("2020-01-01", periods=n, freq="B")
    return pd.DataFrame(X, index=days, columns=[f"f{j}" for j in range(p)])


@pytest.mark.parametrize(
    "asked",
    [
        {"window": 30},
        {"window": 30, "lag": 1, "step": 7},
        {"window": 30, "lag": 3, "min_rows": 10},
        {"window": "45D", "min_rows": 12, "lag": 1},
        {"window": 25, "expanding": True, "step": 5},
        {"window": 30, "halflife": 10.0},
    ],
    ids=str,
)
def test_batches_give_what_the_whole_table_gives(asked):
    X = frame(n=80)
    X.iloc[50, 2] = np.nan
    options = {"min_rows": 20, **asked, "rho_min": 0.96}
    whole = rolling(X, **options)
    roller = Roller(list(X.columns), dates="day", **options)
    pushed = []
    for start, end in ((0, 1), (1, 12), (12, 60), (60, 61), (61, 80)):
        days = X.index[start:end]
        pushed.append(roller.push(X[start:end].to_numpy(), days))
    made = np.concatenate([part.outputs for part in pushed])
    wanted = whole.outputs.to_numpy()
    assert np.array_equal(np.isnan(made), np.isnan(wanted))
    assert np.nanmax(np.abs(made - wanted)) < 1e-8
    figures = whole.to_frame()
    ours = {name: np.concatenate([part.figures[name] for part in pushed]) for name in figures}
    assert np.array_equal(np.concatenate([part.figures["last"] for part in pushed]), figures.index)
    for name in ("first", "rows", "missing", "status", "weakest"):
        assert np.array_equal(ours[name], figures[name])
    for name in ("threshold", "objective", "largest_after", "min_fidelity"):
        assert np.allclose(ours[name], figures[name], atol=1e-8, equal_nan=True)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_windows():
    rng = np.random.default_rng(0)

    def peak(batches):
        roller = Roller(["a", "b", "c"], 20, rho_min=0.8)
        roller.push(rng.normal(size=(100, 3)), range(100))
        tracemalloc.start()
        for _ in range(batches):
            roller.push(rng.normal(size=(100, 3)), range(100))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(2)  # modules are imported once
    assert peak(8) < 1.2 * peak(2) + 50_000


def test_rows_of_a_stream_come_in_order():
    X = frame(n=60)
    roller = Roller(list(X.columns), "30D", dates="day", min_rows=10)
    roller.push(X[:40].to_numpy(), X.index[:40])
    with pytest.raises(InvalidTableError, match="Row 0 of these is earlier"):
        roller.push(X[30:].to_numpy(), X.index[30:])


def test_the_picture_has_the_numbers_of_the_windows():
    plt = pytest.importorskip("matplotlib.pyplot")
    X = frame(n=60)
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
