"""The paper's Figure 1 for three variables of the Wine data, and its interactive drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral._arrays import Array
from skcoral.api import decorrelate
from skcoral.datasets import load_wine
from skcoral.plotting.geometry import COLOURS, GeometryDisplay

if TYPE_CHECKING:
    import plotly.graph_objects

_SURFACE = "#9db7d5"
#: The three variables of Wine that bind its threshold the most by the paper's subset bound.
WINE_TRIPLE = ("total_phenols", "flavanoids", "od280/od315_of_diluted_wines")


def wine_geometry(rho_min: float = 0.9) -> GeometryDisplay:
    """Compute Figure 1 for the three Wine variables of the paper's strongest subset bound.

    Examples
    --------
    >>> from skcoral.paper import wine_geometry
    >>> wine_geometry(0.9).names
    ('total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines')
    """
    wine = load_wine()
    chosen = [wine.names.index(name) for name in WINE_TRIPLE]
    R = wine.correlation[np.ix_(chosen, chosen)]
    return GeometryDisplay(R, decorrelate(R, rho_min).T, rho_min, names=WINE_TRIPLE)


def draw_interactive(geometry: GeometryDisplay) -> plotly.graph_objects.Figure:
    """Draw the four panels with Plotly; each can be rotated.

    Returns
    -------
    plotly.graph_objects.Figure
        Save it with ``write_html``.

    Examples
    --------
    >>> from skcoral.paper import draw_interactive, wine_geometry
    >>> draw_interactive(wine_geometry(0.9)).layout.annotations[0].text
    '(a) regions on the ellipsoid tᵀRt = 1'
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(
        2,
        2,
        specs=[[{"type": "scene"}] * 2] * 2,
        subplot_titles=[panel.title for panel in geometry.panels],
        vertical_spacing=0.06,
    )
    for k, panel in enumerate(geometry.panels):
        traces = [_surface(panel.surface, _SURFACE, opacity=0.25)]
        for j, (name, colour) in enumerate(zip(geometry.names, COLOURS, strict=True)):
            traces.append(_surface(panel.caps[j], colour, opacity=0.45))
            traces.append(_line(panel.caps[j][-1], colour, name))
            if panel.arrows is not None:
                arrow = np.stack([np.zeros(3), panel.arrows[j]])
                traces.append(_line(arrow, colour, name) | {"showlegend": k == 2})
            if k == 3:
                traces.append(_line(geometry.drops[j], colour, name, dash="dash"))
        where = {"row": k // 2 + 1, "col": k % 2 + 1}
        for trace in traces:
            figure.add_trace(trace, **where)
        labels = {f"{axis}axis_title": f"{panel.symbol}{j}" for j, axis in enumerate("xyz", 1)}
        figure.update_scenes(aspectmode="data", **labels, **where)
    # Far enough away for the whole box, and the legend where no panel is.
    figure.update_scenes(camera_eye={"x": 1.5, "y": 1.5, "z": 1.1}, camera_center_z=-0.1)
    return figure.update_layout(
        height=950,
        margin={"l": 0, "r": 0, "t": 40, "b": 60},
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.02},
    )


def _surface(mesh: Array, colour: str, *, opacity: float) -> dict[str, Any]:
    shown = {"colorscale": [[0, colour], [1, colour]], "showscale": False, "opacity": opacity}
    return _points("surface", mesh) | shown | {"hoverinfo": "skip"}


def _line(points: Array, colour: str, name: str, *, dash: str = "solid") -> dict[str, Any]:
    style = {"color": colour, "width": 6, "dash": dash}
    drawn = {"mode": "lines", "line": style, "name": name, "showlegend": False}
    return _points("scatter3d", points) | drawn


def _points(kind: str, points: Array) -> dict[str, Any]:
    return {"type": kind, **dict(zip("xyz", np.moveaxis(points, -1, 0), strict=True))}
