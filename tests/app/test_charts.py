"""The charts of the app hold the numbers of the answer."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral import decorrelate, frontier, threshold
from skcoral.app import charts
from skcoral.show.pictures import FrontierDisplay, HoldoutDisplay

R = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, -0.3], [0.1, -0.3, 1.0]])
NAMES = ("a<b", "b", "c")


@pytest.fixture(scope="module")
def answer():
    return decorrelate(R, [0.97, 0.95, 0.9])


def traces(figure):
    return {trace.get("name"): trace for trace in figure["data"]}


def test_the_frontier_shows_the_curve_the_point_and_the_methods_in_range(answer):
    curve = frontier(R, n_points=7)
    rho = threshold(R).value
    points = {"ZCA-cor": (rho - 0.01, 0.0), "PCA": (0.1, 0.0)}
    chosen = float(np.diag(R @ answer.T).min()), answer.objective
    display = FrontierDisplay(
        curve.rho_min,
        curve.objective,
        curve.slope,
        threshold=rho,
        points=points,
        chosen=chosen,
    )
    figure = charts.frontier(display)
    shown = traces(figure)
    assert set(shown) == {"least possible", "ZCA-cor", "now"}  # PCA lies to the left of the range
    line = shown["least possible"]
    on_curve = np.interp(curve.rho_min, np.asarray(line["x"]), np.asarray(line["y"]))
    np.testing.assert_allclose(on_curve, curve.objective, atol=0.01 * curve.objective.max())
    residuals = R.copy()
    np.fill_diagonal(residuals, 0.0)
    assert line["y"][-1] == pytest.approx((residuals**2).sum() / 2)
    off = answer.T.T @ R @ answer.T - np.eye(3)
    assert shown["now"]["x"] == [pytest.approx(np.diag(R @ answer.T).min())]
    assert shown["now"]["y"] == [pytest.approx((off**2).sum() / 2)]
    assert figure["layout"]["shapes"][0]["x0"] == rho
    # the label of the threshold stands on the side of its line where there is more room
    for value, side in ((0.8, "left"), (0.999, "right")):
        moved = FrontierDisplay(
            curve.rho_min, curve.objective, curve.slope, threshold=value, points={}, chosen=chosen
        )
        note = charts.frontier(moved)["layout"]["annotations"][0]
        assert (note["x"], note["xanchor"]) == (value, side)
    empty = FrontierDisplay([], [], [], threshold=rho, points=points, chosen=chosen)
    assert set(traces(charts.frontier(empty))) == {"ZCA-cor", "now"}


def test_bars_are_fidelities_with_floors_and_other_methods(answer):
    zca = np.array([0.9, 0.8, 0.95])
    measured = np.array([0.5, 0.6, 0.7])
    shown = traces(charts.fidelity(answer, {"ZCA-cor": zca}, measured))
    np.testing.assert_array_equal(shown["CORAL"]["x"], measured)
    np.testing.assert_array_equal(shown["floor"]["x"], [0.97, 0.95, 0.9])
    np.testing.assert_array_equal(shown["ZCA-cor"]["x"], zca)


def test_distributions_count_every_number_once():
    values = {"before": np.array([0.0, 0.01, 0.99, 1.0 + 1e-12]), "after": np.zeros(7)}
    shown = traces(charts.distribution(values, "correlation", "pairs"))
    assert shown["before"]["y"].sum() == 4
    assert shown["after"]["y"][0] == 7
    assert shown["before"]["y"][[0, -1]].tolist() == [2, 2]


@pytest.mark.parametrize("p", [3, 16, 101])
def test_heat_maps_escape_names_and_hold_numbers_where_there_is_room(p):
    names = NAMES + tuple(f"v{j}" for j in range(3, p))
    M = np.eye(p)
    M[0, 1] = -0.456
    figure = charts.heat_map(M, names, top=1.0, word="correlation")
    (cells,) = figure["data"]
    np.testing.assert_array_equal(cells["z"], M)
    assert ("text" in cells) == (p <= 15)
    assert ("customdata" in cells) == (p <= 100)
    assert figure["layout"]["xaxis"]["ticktext"][0] == "a&lt;b"
    if p == 3:
        assert cells["text"][0] == ["1", "-.46", ""]
        assert cells["customdata"][0][1] == "a&lt;b – b"


def test_new_rows_stand_beside_the_rows_fitted():
    display = HoldoutDisplay(np.ones(3), np.full(3, 0.9), np.full(3, 0.8), names=NAMES)
    shown = traces(charts.new_rows(display))
    assert [trace["x"][0] for trace in shown.values()] == [1.0, 0.9, 0.8]
