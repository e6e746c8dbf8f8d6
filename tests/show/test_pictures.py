"""Displays: numbers, labels, and no change of global settings."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from skcoral import CORAL, api
from skcoral.datasets import make_system
from skcoral.exceptions import InvalidArgumentError
from skcoral.show.pictures import (
    CorrelationDisplay,
    FidelityDisplay,
    FrontierDisplay,
    TransformDisplay,
    WindowsDisplay,
)

DISPLAYS = [
    CorrelationDisplay,
    FidelityDisplay,
    FrontierDisplay,
    TransformDisplay,
]


@pytest.fixture(scope="module")
def fitted(wine):
    return CORAL(rho_min=0.85).fit(wine.to_frame())


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def zca_fidelity(R):
    values, vectors = np.linalg.eigh(R)
    return np.diag((vectors * np.sqrt(values)) @ vectors.T)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("display", DISPLAYS)
def test_drawing_changes_nothing_global_and_makes_no_figure_of_its_own(display, fitted):
    before = dict(mpl.rcParams)
    drawn = display.from_estimator(fitted).plot()
    drawn.figure_.canvas.draw()
    assert isinstance(drawn, display)
    plt.close("all")
    if display is not CorrelationDisplay:
        ax = Figure().add_subplot()
        assert display.from_estimator(fitted).plot(ax=ax).ax_ is ax
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def test_fidelity_numbers(fitted, wine):
    display = FidelityDisplay.from_estimator(fitted)
    assert np.array_equal(display.fidelity, fitted.fidelity_)
    assert np.all(display.rho_min == 0.85)
    assert np.allclose(display.baselines["ZCA-cor"], zca_fidelity(wine.correlation))
    values, vectors = np.linalg.eigh(wine.correlation)
    loadings = np.abs(vectors * np.sqrt(values))
    assert set(np.round(display.baselines["PCA"], 9)) <= set(np.round(loadings, 9).ravel())
    ax = display.plot().ax_
    assert [text.get_text() for text in ax.get_yticklabels()] == list(wine.names)
    drawn = ax.collections[-1].get_offsets()
    assert np.allclose(drawn[:, 0], fitted.fidelity_)
    assert set(legend_of(ax)) == {"CORAL", "floor", "ZCA-cor", "PCA"}


def test_correlation_before_and_after(fitted, wine):
    R = pd.DataFrame(wine.correlation, index=wine.names, columns=wine.names)
    display = CorrelationDisplay.from_result(api.decorrelate(R), R)
    assert display.names == display.output_names == wine.names
    display = CorrelationDisplay.from_estimator(fitted)
    Z = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
    assert np.allclose(display.before, np.corrcoef(Z.T))
    assert np.allclose(display.after, np.corrcoef((Z @ fitted.T_).T))
    left, right = display.plot().axes_
    assert left.images[0].get_clim() == right.images[0].get_clim() == (-1.0, 1.0)
    for tick, name in zip(left.get_xticklabels(), wine.names, strict=True):
        shown = tick.get_text()
        start, _, end = shown.partition("…")
        assert shown == name or (len(shown) == 22 < len(name) and start and end)
        assert name.startswith(start)
        assert name.endswith(end)


def test_correlation_shares_one_axes_or_takes_two(fitted):
    figure = Figure()
    ax = figure.add_subplot(2, 1, 1)
    CorrelationDisplay.from_estimator(fitted).plot(ax=ax)
    pair = Figure().subplots(1, 2)
    display = CorrelationDisplay.from_estimator(fitted).plot(ax=pair)
    assert display.axes_ == tuple(pair)
    with pytest.raises(ValueError, match="2 of them, got 3"):
        CorrelationDisplay.from_estimator(fitted).plot(ax=Figure().subplots(1, 3))


def test_transform(fitted, wine):
    display = TransformDisplay.from_estimator(fitted)
    assert np.array_equal(display.T, fitted.T_)
    image = display.plot().ax_.images[0]
    top = np.abs(fitted.T_).max()
    assert image.get_clim() == (-top, top)
    assert np.array_equal(image.get_array(), fitted.T_)


def test_frontier_numbers(fitted, wine, conic_optimum):
    display = FrontierDisplay.from_estimator(fitted, n_points=9)
    R = wine.correlation
    off = R[np.triu_indices(13, 1)]
    assert display.threshold == pytest.approx(api.threshold(R).value, abs=1e-9)
    assert display.points["untransformed"] == pytest.approx((1.0, (off**2).sum()))
    assert display.points["ZCA-cor"] == pytest.approx((zca_fidelity(R).min(), 0.0))
    assert display.chosen == pytest.approx((0.85, conic_optimum(R, 0.85)), abs=1e-7)
    # The price is the slope: compare with a difference quotient of two solves.
    h = 1e-4
    middle = len(display.rho_min) // 2
    rho = float(display.rho_min[middle])
    quotient = (api.decorrelate(R, rho + h).objective - api.decorrelate(R, rho - h).objective) / (
        2 * h
    )
    assert display.slope[middle] == pytest.approx(quotient, rel=1e-3)
    ax = display.plot().ax_
    said = legend_of(ax)
    assert "ρ★ = 0.8262" in said
    assert f"price {fitted.result_.prices.sum():.3g}" in said[-1]
    # what the legend tells apart differs in shape
    handles, names = ax.get_legend_handles_labels()
    shapes = {
        name: h.get_marker() if hasattr(h, "get_marker") else h.get_paths()[0].vertices.tobytes()
        for h, name in zip(handles, names, strict=True)
    }
    assert len(set(shapes.values())) == len(names) == 6


def test_the_tangent_is_drawn_at_points_of_the_curve_only(wine):
    R = wine.correlation
    curve = api.frontier(R, n_points=3)
    above = [
        api.maximize_fidelity(R, 2.0, criterion="vif"),
        api.decorrelate(R, np.linspace(0.85, 0.95, 13)),
    ]
    for chosen in above:
        assert FrontierDisplay.from_result(curve, chosen=chosen).chosen_price is None
        assert chosen.objective > api.decorrelate(R, chosen.min_fidelity).objective + 1e-3
    assert FrontierDisplay.from_result(curve, chosen=api.decorrelate(R, 0.9)).chosen_price > 0


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.SingularCorrelationWarning")
def test_dependent_columns_have_no_threshold_but_a_least_residual(wine):
    X = np.column_stack([wine.data[:, :4], wine.data[:, :4].sum(axis=1)])
    R = np.corrcoef(X.T)
    curve = api.frontier(R, n_points=3)
    chosen = api.decorrelate(R, 0.5)
    ax = FrontierDisplay.from_result(curve, chosen=chosen).plot().ax_
    assert f"least sum of squares up to {curve.threshold:.4f}" in legend_of(ax)
    inside = ax.get_xlim()
    assert inside[0] < chosen.fidelity.min() < inside[1]


@pytest.mark.parametrize("p", [2, 25])
def test_labels_do_not_run_into_each_other(p):
    R = make_system(p)
    names = [f"variable number {j:06d}" for j in range(p)]  # as long as a label may be
    result = api.decorrelate(pd.DataFrame(R, columns=names, index=names))
    displays = {
        "fidelity": FidelityDisplay.from_result(result, R),
        "transform": TransformDisplay.from_result(result),
        "correlation": CorrelationDisplay.from_result(result, R, names=names),
    }
    for display in displays.values():
        figure = display.plot().figure_
        figure.canvas.draw()
        ax = display.axes_[0] if hasattr(display, "axes_") else display.ax_
        boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
        assert [label.get_text() for label in ax.get_yticklabels()] == names
        for one, other in itertools.pairwise(boxes):
            upper, lower = max(one.y0, other.y0), min(one.y1, other.y1)
            assert lower - upper <= 0.35 * one.height
        ink = figure.get_tightbbox()
        assert min(ink.x0, ink.y0) >= -0.01
        assert np.all(figure.get_size_inches() - [ink.x1, ink.y1] >= -0.01)
        assert min(label.get_fontsize() for label in ax.get_yticklabels()) >= 6


def test_names_are_shown_literally():
    names = ["$x^2$", "cost in $", "a\nb", ""]
    R = make_system(4)
    result = api.decorrelate(pd.DataFrame(R, columns=names, index=names))
    ax = FidelityDisplay.from_result(result).plot().ax_
    ax.figure.canvas.draw()
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == [r"\$x^2\$", r"cost in \$", "a b", "·"]


def test_the_frontier_of_composites_is_their_own():
    """The curve and the chosen point belong to the same problem, and so lie on each other."""
    rows = np.random.default_rng(0).multivariate_normal(np.zeros(4), make_system(4), size=200)
    anchors = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    coral = CORAL(0.95, anchors=anchors).fit(rows)
    display = FrontierDisplay.from_estimator(coral, n_points=5)
    expected = api.frontier(coral.correlation_, anchors=anchors, n_points=5)
    assert display.threshold == pytest.approx(expected.threshold, abs=1e-9)
    assert display.objective[-1] == pytest.approx(expected.objective[-1], abs=1e-9)
    assert display.points == {}


def test_results_that_a_display_has_no_numbers_for():
    R = make_system(4)
    answer, curve = api.decorrelate(R, 0.9), api.frontier(R, [0.9])
    for draw in (
        lambda: FidelityDisplay.from_result(curve),
        lambda: TransformDisplay.from_result(curve),
        lambda: CorrelationDisplay.from_result(curve, R),
        lambda: FrontierDisplay.from_result(answer),
    ):
        with pytest.raises(InvalidArgumentError, match="from_result of this display takes a"):
            draw()


@pytest.mark.parametrize(
    ("threshold", "criterion", "level"),
    [(0.9, "squared", True), (0.9, "worst", False), (0.85, "squared", False)],
)
def test_dependent_variables_leave_a_level_above_zero(threshold, criterion, level):
    rho, residual = np.array([1.0, 0.9, 0.95]), np.array([2.0, 0.75, 1.0])
    # Where no floor up to the threshold was solved for, nothing is drawn there, nor where the
    # least sum of squares says nothing about the criterion.
    display = FrontierDisplay(rho, residual, rho, threshold=threshold, criterion=criterion)
    line = display.plot().ax_.get_lines()[0]
    assert line.get_xdata()[2 * level :].tolist() == [0.9, 0.95, 1.0]
    assert line.get_ydata()[2 * level :].tolist() == [0.75, 1.0, 2.0]
    assert line.get_ydata()[: 2 * level].tolist() == [0.75, 0.75][: 2 * level]


def test_lines_of_windows_do_not_cross_from_group_to_group():
    when = np.array([1, 2, 1, 2])
    rho, weakest = [0.8, 0.81, 0.6, np.nan], [0.9, 0.91, 0.92, 0.93]
    display = WindowsDisplay(when, threshold=rho, min_fidelity=weakest, group=["x", "x", "y", "y"])
    ax = plt.figure().add_subplot()
    display.plot(ax)
    drawn = [line.get_ydata().tolist() for line in ax.get_lines()]
    assert drawn[0] == rho[:2]
    assert drawn[2:] == [weakest[:2], weakest[2:]]
    np.testing.assert_array_equal(drawn[1], rho[2:])
    assert len(ax.get_legend_handles_labels()[1]) == 2  # a label for each kind, not for each group
    assert WindowsDisplay(["p", "q"], threshold=[1, 1], min_fidelity=[1, 1]).when.tolist() == [0, 1]
