"""The pictures of the main view, drawn by Plotly in the colours of the visitor's theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from skcoral.report.words import CRITERIA
from skcoral.results import Array, Decorrelation

if TYPE_CHECKING:
    from skcoral.results import Frontier

BLUE, ORANGE, GREEN, GREY = "#2b8cc4", "#e07b39", "#2ca02c", "#8a94a0"
_HEAT = {
    "light": [[0.0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#f4a582"],
              [1.0, "#b2182b"]],
    "dark": [[0.0, "#6db3f2"], [0.25, "#2f5f8a"], [0.5, "#1b1f27"], [0.75, "#8f4a35"],
             [1.0, "#f58a6b"]],
}  # fmt: skip
_LABEL = 18


def label(name: str, limit: int = _LABEL) -> str:
    """A name as Plotly shows it literally: its labels understand some HTML."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return escape(shown if len(shown) <= limit else shown[: limit - 1] + "…", quote=False)


def frontier(
    curve: Frontier | None,
    points: Mapping[str, tuple[float, float]],
    result: Decorrelation,
    *,
    threshold: float,
    ink: str,
) -> go.Figure:
    """The least residual for every floor, ρ★, the classical methods and the current point."""
    figure = go.Figure()
    low = max(0.0, min(threshold, result.min_fidelity, *(x for x, _ in points.values())) - 0.03)
    if curve is not None:
        above = curve.rho_min >= threshold
        figure.add_scatter(
            x=np.r_[low, threshold, curve.rho_min[above]],
            y=np.r_[0.0, 0.0, curve.objective[above]],
            mode="lines",
            line={"color": BLUE, "width": 3},
            name="least possible",
            hovertemplate="floor %{x:.4f}<br>residual %{y:.4g}<extra></extra>",
        )
    shapes = {"ZCA-cor": "diamond-open", "PCA": "square-open", "identity": "triangle-up-open"}
    for name, (x, y) in points.items():
        figure.add_scatter(
            x=[x],
            y=[y],
            mode="markers",
            marker={"symbol": shapes.get(name, "circle-open"), "size": 11, "color": ORANGE,
                    "line": {"width": 2}},
            name="as it is" if name == "identity" else name,
            hovertemplate=f"{name}<br>weakest fidelity %{{x:.4f}}<br>residual %{{y:.4g}}"
            "<extra></extra>",
        )  # fmt: skip
    figure.add_vline(x=threshold, line={"color": ink, "width": 1, "dash": "dash"})
    figure.add_annotation(
        x=threshold,
        y=1.0,
        yref="paper",
        text=f"ρ★ = {threshold:.4f}",
        showarrow=False,
        xanchor="right",
        yanchor="bottom",
    )
    figure.add_scatter(
        x=[result.min_fidelity],
        y=[result.objective],
        mode="markers",
        marker={"size": 16, "color": BLUE, "line": {"color": ink, "width": 2}},
        name="now",
        hovertemplate="now: weakest fidelity %{x:.4f}<br>residual %{y:.6g}<extra></extra>",
    )
    _finish(figure, height=380)
    figure.update_xaxes(title="floor: fidelity that every output keeps", range=[low, 1.005])
    figure.update_yaxes(title=CRITERIA[result.criterion], rangemode="tozero")
    return figure


def fidelity(result: Decorrelation, others: Mapping[str, Array], *, ink: str) -> go.Figure:
    """A bar per variable, with its floor and what the classical methods keep."""
    places = np.arange(len(result.names))
    figure = go.Figure()
    figure.add_bar(
        x=result.fidelity,
        y=places,
        orientation="h",
        marker={"color": BLUE},
        name="CORAL",
        hovertemplate="%{y}<br>CORAL %{x:.4f}<extra></extra>",
    )
    for (name, values), shape in zip(others.items(), ("diamond", "square"), strict=False):
        figure.add_scatter(
            x=values,
            y=places,
            mode="markers",
            marker={"symbol": shape, "size": 7, "color": ORANGE if shape == "diamond" else GREY},
            name=name,
            hovertemplate=f"%{{y}}<br>{name} %{{x:.4f}}<extra></extra>",
        )
    figure.add_scatter(
        x=result.rho_min,
        y=places,
        mode="markers",
        marker={"symbol": "line-ns", "size": 12, "line": {"color": ink, "width": 2}},
        name="floor",
        hovertemplate="floor %{x:.4f}<extra></extra>",
    )
    _finish(figure, height=int(110 + 18 * max(len(places), 6)))
    figure.update_layout(bargap=0.35)
    figure.update_xaxes(title="fidelity", range=[0, 1.02])
    _names_on(figure.update_yaxes, result.names)
    figure.update_yaxes(range=[len(places) - 0.4, -0.6])
    return figure


def heat_map(
    M: Array, rows: Sequence[str], columns: Sequence[str], *, top: float, theme: str, word: str
) -> go.Figure:
    """A matrix on a scale from ``-top`` to ``top``."""
    figure = go.Figure(
        go.Heatmap(
            z=M,
            zmin=-top,
            zmax=top,
            colorscale=_HEAT.get(theme, _HEAT["light"]),
            colorbar={"thickness": 10, "len": 0.9},
            hovertemplate=f"%{{y}} – %{{x}}<br>{word} %{{z:.4f}}<extra></extra>",
        )
    )
    _finish(figure, height=int(np.clip(170 + 15 * len(rows), 300, 760)))
    _names_on(figure.update_xaxes, columns)
    _names_on(figure.update_yaxes, rows)
    figure.update_xaxes(tickangle=-90)
    figure.update_yaxes(autorange="reversed")
    return figure


def new_rows(names: Sequence[str], fitted: Array, new: Array, worst: Array) -> go.Figure:
    """Fidelity on the rows fitted and on rows held out."""
    places = np.arange(len(names))
    figure = go.Figure()
    for values, word, shape, colour in (
        (fitted, "rows fitted", "circle", BLUE),
        (new, "new rows, mean", "diamond", ORANGE),
        (worst, "new rows, worst part", "line-ns-open", GREY),
    ):
        figure.add_scatter(
            x=values,
            y=places,
            mode="markers",
            marker={"symbol": shape, "size": 10, "color": colour},
            name=word,
            hovertemplate=f"{word} %{{x:.4f}}<extra></extra>",
        )
    _finish(figure, height=int(110 + 18 * max(len(places), 6)))
    figure.update_xaxes(title="fidelity")
    _names_on(figure.update_yaxes, names)
    figure.update_yaxes(range=[len(places) - 0.4, -0.6])
    return figure


def _finish(figure: go.Figure, *, height: int) -> None:
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 34, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0},
        showlegend=len(figure.data) > 1,
    )


def _names_on(update: Any, names: Sequence[str]) -> None:
    update(tickvals=list(range(len(names))), ticktext=[label(n) for n in names], automargin=True)
