"""Figure 1: every surface, rim and frame satisfies the equation that defines it."""

import dataclasses

import numpy as np
import pytest

from skcoral.exceptions import InvalidArgumentError
from skcoral.paper import cap_geometry, draw_interactive, draw_static, wine_geometry
from skcoral.paper.figure import panel_titles


@pytest.fixture(scope="module", params=[0.8, 0.9, (0.99, 0.5, 0.95)])
def geometry(request):
    rho_min = request.param
    if isinstance(rho_min, float):
        return wine_geometry(rho_min)
    R = np.array([[1, -0.7, 0.3], [-0.7, 1, 0.2], [0.3, 0.2, 1]])
    return cap_geometry(R, rho_min, names=("a", "b", "c"), n_points=9)


def floors(geometry):
    return geometry.solution.rho_min


def test_surfaces(geometry):
    assert np.allclose((geometry.sphere**2).sum(axis=0), 1.0, atol=1e-14)
    t = geometry.ellipsoid
    assert np.allclose(np.einsum("aij,ab,bij->ij", t, geometry.R, t), 1.0, atol=1e-12)


def test_caps_and_rims_are_where_the_floor_puts_them(geometry):
    for j in range(3):
        w, t = geometry.caps_w[j], geometry.caps_t[j]
        reached = np.einsum("a,aij->ij", geometry.centres[:, j], w)
        assert reached.min() >= floors(geometry)[j] - 1e-12
        assert np.allclose((w**2).sum(axis=0), 1.0, atol=1e-14)
        # The same cap in t-space, by its own definition: unit variance and fidelity e_jᵀRt.
        assert np.allclose(np.einsum("aij,ab,bij->ij", t, geometry.R, t), 1.0, atol=1e-12)
        assert np.allclose(np.einsum("a,aij->ij", geometry.R[j], t), reached, atol=1e-12)
        rim = np.einsum("a,ai->i", geometry.R[j], geometry.rims_t[j])
        assert np.allclose(rim, floors(geometry)[j], atol=1e-12)
        assert np.array_equal(geometry.rims_w[j], w[:, -1])


def test_frame_is_the_solution(geometry):
    T = geometry.solution.T
    assert np.allclose(geometry.cosines, T.T @ geometry.R @ T, atol=1e-13)
    assert np.allclose(np.diag(geometry.cosines), 1.0, atol=1e-12)
    assert np.allclose(np.diag(geometry.C), geometry.solution.fidelity, atol=1e-13)
    assert (np.diag(geometry.C) >= floors(geometry) - 1e-12).all()
    residual = geometry.cosines - np.eye(3)
    assert np.sum(residual**2) / 2 == pytest.approx(geometry.solution.objective, abs=1e-12)


def test_wine_triple_is_exact_below_and_not_above_its_threshold():
    low, high = wine_geometry(0.8), wine_geometry(0.9)
    assert np.allclose(low.cosines, np.eye(3), atol=1e-10)
    assert np.abs(high.cosines - np.eye(3)).max() > 0.1


def test_three_variables_only_and_frozen(geometry):
    with pytest.raises(InvalidArgumentError, match="three variables"):
        cap_geometry(np.eye(4), 0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        geometry.W = None
    with pytest.raises(ValueError, match="read-only"):
        geometry.caps_w[0] = 0.0


def test_static_figure_has_four_panels_with_their_numbers(geometry, tmp_path):
    pytest.importorskip("matplotlib")
    figure = draw_static(geometry)
    assert [axes.get_title() for axes in figure.axes] == list(panel_titles(geometry))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(geometry.names)
    figure.savefig(tmp_path / "figure.png", dpi=40)
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_interactive_figure_shows_the_same_numbers(geometry):
    pytest.importorskip("plotly")
    figure = draw_interactive(geometry)
    assert len({trace.scene for trace in figure.data}) == 4
    frame = [trace for trace in figure.data if trace.scene == "scene3" and len(trace.x) == 2]
    tips = np.array([[trace.x[1], trace.y[1], trace.z[1]] for trace in frame])
    assert np.array_equal(tips.T, geometry.W)
    shown = [annotation.text for annotation in figure.layout.annotations]
    assert shown == list(panel_titles(geometry))
