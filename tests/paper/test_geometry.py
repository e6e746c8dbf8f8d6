"""Figure 1: every surface, rim and frame satisfies the equation that defines it."""

import numpy as np
import pytest

from skcoral import api
from skcoral.exceptions import InvalidArgumentError, InvalidFloorError
from skcoral.paper import wine_geometry
from skcoral.show.pictures import GeometryDisplay


@pytest.fixture(scope="module", params=[0.8, 0.9, (0.99, 0.5, 0.95)])
def geometry(request):
    rho_min = request.param
    if isinstance(rho_min, float):
        return wine_geometry(rho_min)
    R = np.array([[1, -0.7, 0.3], [-0.7, 1, 0.2], [0.3, 0.2, 1]])
    return GeometryDisplay(R, api.decorrelate(R, rho_min).T, rho_min, names=("a", "b", "c"))


def variance(x, M):
    return np.einsum("...a,ab,...b->...", x, M, x)


def test_surfaces(geometry):
    a, b, c, d = geometry.panels
    assert np.allclose(variance(a.surface, geometry.R), 1.0, atol=1e-12)
    assert np.allclose((b.surface**2).sum(axis=-1), 1.0, atol=1e-14)
    assert np.array_equal(b.surface, c.surface)
    # With c = Rt the ellipsoid is cᵀR⁻¹c = 1.
    assert np.allclose(variance(d.surface, np.linalg.inv(geometry.R)), 1.0, atol=1e-12)


def test_caps_and_rims_are_where_the_floor_puts_them(geometry):
    a, b, c, d = geometry.panels
    for j in range(3):
        w, t = b.caps[j], a.caps[j]
        reached = w @ geometry.sources[:, j]
        assert reached.min() >= geometry.rho_min[j] - 1e-12
        assert np.allclose((w**2).sum(axis=-1), 1.0, atol=1e-14)
        # The same cap in t-space, by its own definition: unit variance and fidelity e_jᵀRt.
        assert np.allclose(variance(t, geometry.R), 1.0, atol=1e-12)
        assert np.allclose(t @ geometry.R[j], reached, atol=1e-12)
        assert np.allclose(t[-1] @ geometry.R[j], geometry.rho_min[j], atol=1e-12)
        assert np.array_equal(c.caps[j], w)
        # In the basis of the sources the floor is a plane.
        assert np.allclose(d.caps[j][..., j], reached, atol=1e-12)
        assert np.allclose(d.caps[j][-1, :, j], geometry.rho_min[j], atol=1e-12)


def test_frame_is_the_solution(geometry):
    T, R = geometry.T, geometry.R
    solution = api.decorrelate(R, geometry.rho_min)
    assert np.allclose(T, solution.T, atol=1e-13)
    assert np.allclose(geometry.cosines, T.T @ R @ T, atol=1e-13)
    assert np.allclose(np.diag(geometry.cosines), 1.0, atol=1e-12)
    assert np.allclose(np.diag(geometry.loadings), solution.fidelity, atol=1e-13)
    assert (np.diag(geometry.loadings) >= geometry.rho_min - 1e-12).all()
    residual = geometry.cosines - np.eye(3)
    assert np.sum(residual**2) / 2 == pytest.approx(solution.objective, abs=1e-12)


def test_arrows_are_sources_and_outputs(geometry):
    a, b, c, d = geometry.panels
    assert a.arrows is None
    assert np.allclose(b.arrows @ b.arrows.T, geometry.R, atol=1e-13)
    assert np.array_equal(c.arrows, geometry.outputs.T)
    assert np.allclose(d.arrows, (geometry.R @ geometry.T).T, atol=1e-13)
    for j, (tip, foot) in enumerate(geometry.drops):
        assert np.array_equal(tip, geometry.loadings[:, j])
        assert np.array_equal(foot, np.eye(3)[j] * geometry.loadings[j, j])


def test_titles_contain_the_numbers(geometry):
    residual = geometry.T.T @ geometry.R @ geometry.T
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        assert f"{residual[i, j]:.3f}".lstrip("-") in geometry.panels[2].title
    assert "-0.000" not in geometry.panels[2].title
    assert f"{np.diag(geometry.R @ geometry.T).min():.3f}" in geometry.panels[3].title


def test_wine_triple_is_exact_below_and_not_above_its_threshold():
    low, high = wine_geometry(0.8), wine_geometry(0.9)
    assert np.allclose(low.cosines, np.eye(3), atol=1e-10)
    assert np.abs(high.cosines - np.eye(3)).max() > 0.1


def test_three_variables_only_and_read_only(geometry):
    with pytest.raises(InvalidArgumentError, match="three variables"):
        GeometryDisplay(np.eye(4), np.eye(4), 0.5, names="abcd")
    with pytest.raises(InvalidFloorError, match=r"between 0 and 1; got 1\.5"):
        GeometryDisplay(np.eye(3), np.eye(3), 1.5, names="abc")
    with pytest.raises(AttributeError):
        geometry.panels[0].surface = None
    for numbers in (geometry.outputs, geometry.panels[0].caps[0], geometry.panels[3].surface):
        with pytest.raises(ValueError, match="read-only"):
            numbers[0] = 0.0


def test_static_figure_has_four_panels_with_their_numbers(geometry, tmp_path):
    figure = geometry.plot().figure_
    assert [axes.get_title() for axes in figure.axes] == [panel.title for panel in geometry.panels]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(geometry.names)
    figure.savefig(tmp_path / "figure.png", dpi=40)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
