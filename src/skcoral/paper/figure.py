"""The paper's Figure 1 drawn for real data: static with matplotlib, interactive with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.datasets import load_wine
from skcoral.paper.geometry import Geometry, cap_geometry

if TYPE_CHECKING:
    import matplotlib.figure
    import plotly.graph_objects

_COLOURS = ("#1f4e8c", "#b03a2e", "#5a5a5a")
_SURFACE = "#9db7d5"
#: The three variables of Wine that bind its threshold the most by the paper's subset bound.
WINE_TRIPLE = ("total_phenols", "flavanoids", "od280/od315_of_diluted_wines")
_VIEW = {"elev": 22.0, "azim": 35.0}


def wine_geometry(rho_min: float = 0.9) -> Geometry:
    """Compute Figure 1 for the three Wine variables of the paper's strongest subset bound.

    Examples
    --------
    >>> from skcoral.paper import wine_geometry
    >>> wine_geometry(0.9).names
    ('total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines')
    """
    wine = load_wine()
    chosen = [wine.names.index(name) for name in WINE_TRIPLE]
    return cap_geometry(wine.correlation[np.ix_(chosen, chosen)], rho_min, names=WINE_TRIPLE)


def panel_titles(geometry: Geometry) -> tuple[str, ...]:
    """Return the titles of the four panels, with the numbers they show."""
    upper = geometry.cosines[np.triu_indices(3, 1)]
    lowest = geometry.solution.min_fidelity
    return (
        "(a) Feasible regions in t-space: tᵀRt = 1",
        "(b) Fidelity caps in w-space, w = R^½ t",
        "(c) Chosen frame: cos θ₁₂, θ₁₃, θ₂₃ = " + ", ".join(f"{c:.3f}" for c in upper),
        f"(d) Correlations c = Rt with the sources; fidelity ≥ {lowest:.3f}",
    )


def draw_static(geometry: Geometry) -> matplotlib.figure.Figure:
    """Draw the four panels with matplotlib.

    Returns
    -------
    matplotlib.figure.Figure
        Not attached to pyplot; save it with ``savefig``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 10.5), layout="constrained")
    titles = panel_titles(geometry)
    for k, (surface, caps, rims, arrows) in enumerate(_panels(geometry)):
        axes: Any = figure.add_subplot(2, 2, k + 1, projection="3d")
        axes.set_title(titles[k], fontsize=10)
        axes.plot_wireframe(
            *surface, color=_SURFACE, linewidth=0.3, alpha=0.5, rstride=2, cstride=2
        )
        for j in range(3):
            if caps is not None and rims is not None:
                axes.plot_surface(*caps[j], color=_COLOURS[j], alpha=0.35, linewidth=0)
                axes.plot(*rims[j], color=_COLOURS[j], linewidth=1.6)
            if arrows is not None:
                axes.quiver(0, 0, 0, *arrows[:, j], color=_COLOURS[j], arrow_length_ratio=0.08)
        if k == 3:
            _draw_projections(axes, geometry)
        for set_label, label in zip(
            (axes.set_xlabel, axes.set_ylabel, axes.set_zlabel), _axis_labels(k), strict=True
        ):
            set_label(label, fontsize=8)
        axes.tick_params(labelsize=6)
        axes.set_aspect("equal")
        axes.view_init(**_VIEW)
    handles = [_legend_line(colour) for colour in _COLOURS]
    figure.legend(handles, geometry.names, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def draw_interactive(geometry: Geometry) -> plotly.graph_objects.Figure:
    """Draw the four panels with plotly, each to be turned with the mouse.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(
        2,
        2,
        specs=[[{"type": "scene"}] * 2] * 2,
        subplot_titles=panel_titles(geometry),
        vertical_spacing=0.06,
    )
    for k, (surface, caps, rims, arrows) in enumerate(_panels(geometry)):
        where = {"row": k // 2 + 1, "col": k % 2 + 1}
        plain = {"showscale": False, "hoverinfo": "skip"}
        x, y, z = surface
        grey = [[0, _SURFACE], [1, _SURFACE]]
        figure.add_trace(go.Surface(x=x, y=y, z=z, opacity=0.25, colorscale=grey, **plain), **where)
        for j, name in enumerate(geometry.names):
            colour = _COLOURS[j]
            if caps is not None and rims is not None:
                x, y, z = caps[j]
                one = [[0, colour], [1, colour]]
                figure.add_trace(
                    go.Surface(x=x, y=y, z=z, opacity=0.45, colorscale=one, **plain), **where
                )
                figure.add_trace(_line(rims[j], colour, name, legend=False), **where)
            if arrows is not None:
                segment = np.column_stack([np.zeros(3), arrows[:, j]])
                figure.add_trace(_line(segment, colour, name, legend=k == 2), **where)
            if k == 3:
                foot = np.zeros(3)
                foot[j] = geometry.C[j, j]
                drop = np.column_stack([geometry.C[:, j], foot])
                figure.add_trace(_line(drop, colour, name, legend=False, dash="dash"), **where)
        a, b, c = _axis_labels(k)
        figure.update_scenes(
            xaxis_title=a, yaxis_title=b, zaxis_title=c, aspectmode="data", **where
        )
    return figure.update_layout(height=900, margin={"l": 0, "r": 0, "t": 40, "b": 0})


def _panels(geometry: Geometry) -> list[tuple[Any, Any, Any, Any]]:
    """Surface, caps, rims and arrows of each panel; None where a panel has none."""
    # In the basis of the sources the outputs c = Rt fill the ellipsoid cᵀR⁻¹c = 1.
    shadow = np.einsum("ab,bij->aij", geometry.R, geometry.ellipsoid)
    return [
        (geometry.ellipsoid, geometry.caps_t, geometry.rims_t, None),
        (geometry.sphere, geometry.caps_w, geometry.rims_w, geometry.centres),
        (geometry.sphere, geometry.caps_w, geometry.rims_w, geometry.W),
        (shadow, None, None, geometry.C),
    ]


def _axis_labels(panel: int) -> tuple[str, ...]:
    letter = ("t", "w", "w", "source ")[panel]
    return tuple(f"{letter}{j}" for j in (1, 2, 3))


def _draw_projections(axes: Any, geometry: Geometry) -> None:
    for j in range(3):
        foot = np.zeros(3)
        foot[j] = geometry.C[j, j]
        axes.plot(*np.column_stack([geometry.C[:, j], foot]), color=_COLOURS[j], ls="--", lw=0.9)
        axes.scatter(*foot, color=_COLOURS[j], s=14)


def _line(points: Any, colour: str, name: str, *, legend: bool, dash: str = "solid") -> Any:
    import plotly.graph_objects as go

    x, y, z = points
    return go.Scatter3d(
        x=x, y=y, z=z, mode="lines", name=name, showlegend=legend,
        line={"color": colour, "width": 6, "dash": dash},
    )  # fmt: skip


def _legend_line(colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linewidth=2)
