"""Interactive figures: plain Plotly, for the app and for the report.

They are written as the dictionaries that Plotly draws: building them step by step through its
classes takes longer than solving the problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.plotting import _ink
from skcoral.plotting.frontier import curve_line
from skcoral.results import Array, Decorrelation
from skcoral.showing import printable
from skcoral.words import CRITERIA

if TYPE_CHECKING:
    from skcoral.results import Frontier

Figure = dict[str, Any]

BLUE, ORANGE, GREY = "#2b8cc4", "#e07b39", "#8a94a0"
PALE = "#d5dbe2"  # on a blue bar
# Stands out from light and from dark: the page may change its theme after it was drawn.
INK = "#7b8592"
# Blue to red; the page shows through where a matrix is near zero, whatever its theme.
_HEAT = [
    [0.0, "rgba(26,104,178,1)"],
    [0.5, "rgba(26,104,178,0)"],
    [0.5, "rgba(200,50,50,0)"],
    [1.0, "rgba(200,50,50,1)"],
]
FIGURES_UP_TO = 15
_MOST_PAIRS = 100  # variables whose pairs of full names go into the page
_SHAPES = {"ZCA-cor": "diamond", "PCA": "square", "untransformed": "triangle-up"}


def label(name: str, limit: int = 18) -> str:
    """A name as Plotly shows it literally: its labels understand some HTML."""
    return escape(_ink.shortened(printable(name), limit), quote=False) or "·"


def frontier(
    curve: Frontier | None,
    points: Mapping[str, tuple[float, float]],
    result: Decorrelation,
    *,
    threshold: float,
    now: str = "now",
    whole: bool = False,
) -> Figure:
    """The least residual for every floor, ρ★, the classical methods and the current point.

    ``now`` is what the current point is called; with ``whole`` the picture reaches down to the
    weakest of the classical methods.
    """
    data: list[Figure] = []
    others = [x for name, (x, _) in points.items() if whole or name == "ZCA-cor"]
    low = max(0.0, min([threshold, result.min_fidelity, *others]) - 0.05)
    if curve is not None:
        xs, ys = curve_line(curve.rho_min, curve.objective, threshold, low)
        data.append(
            {
                "type": "scatter",
                "x": xs,
                "y": ys,
                "mode": "lines",
                "line": {"color": BLUE, "width": 3},
                "name": "least possible",
                "hovertemplate": "floor %{x:.4f}<br>residual %{y:.4g}<extra></extra>",
            }
        )
    for name, (x, y) in points.items():
        if x >= low:
            hover = f"{name}<br>weakest fidelity %{{x:.4f}}<br>residual %{{y:.4g}}<extra></extra>"
            data.append(
                _marks([x], [y], name, f"{_SHAPES.get(name, 'circle')}-open", ORANGE, 11, hover)
            )
    hover = f"{now}: weakest fidelity %{{x:.4f}}<br>residual %{{y:.6g}}<extra></extra>"
    point = _marks([result.min_fidelity], [result.objective], now, "circle", BLUE, 16, hover)
    point["marker"]["line"] = {"color": INK, "width": 2}
    data.append(point)
    layout = _layout(430, legend=True)
    layout["xaxis"] = {
        "title": {"text": "floor: fidelity that every output keeps"},
        "range": [low, 1.005],
        "automargin": True,
    }
    layout["yaxis"] = {
        "title": {"text": CRITERIA[result.criterion]},
        "rangemode": "tozero",
        "automargin": True,
    }
    layout["shapes"] = [
        {
            "type": "line",
            "x0": threshold,
            "x1": threshold,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"color": INK, "width": 1, "dash": "dash"},
        }
    ]
    layout["annotations"] = [
        {
            "x": threshold,
            "y": 1.0,
            "yref": "paper",
            "text": f"ρ★ = {threshold:.4f}",
            "showarrow": False,
            "xanchor": "right",
            "yanchor": "top",
            "xshift": -4,
        }
    ]
    return {"data": data, "layout": layout}


def fidelity(
    result: Decorrelation, others: Mapping[str, Array], measured: Array | None = None
) -> Figure:
    """A bar per variable, with its floor and what the classical methods keep.

    The bars are the fidelities ``measured`` on rows, or those of the result without them.
    """
    places = np.arange(len(result.names))
    data: list[Figure] = [
        {
            "type": "bar",
            "x": result.fidelity if measured is None else measured,
            "y": places,
            "orientation": "h",
            "marker": {"color": BLUE},
            "name": "CORAL",
            "hovertemplate": "%{customdata}<br>CORAL %{x:.4f}<extra></extra>",
        }
    ]
    for name, values in others.items():
        hover = f"%{{customdata}}<br>{name} %{{x:.4f}}<extra></extra>"
        colour = ORANGE if name == "ZCA-cor" else PALE
        data.append(_marks(values, places, name, _SHAPES.get(name, "circle"), colour, 7, hover))
        data[-1]["marker"]["line"] = {"color": INK, "width": 1}
    for trace in data:
        trace["customdata"] = [label(name, 80) for name in result.names]
    floor = _marks(
        result.rho_min, places, "floor", "line-ns", INK, 12, "floor %{x:.4f}<extra></extra>"
    )
    floor["marker"]["line"] = {"color": INK, "width": 2}
    data.append(floor)
    layout = _layout(110 + 18 * max(len(places), 6), legend=True)
    layout |= {
        "bargap": 0.35,
        "xaxis": {"title": {"text": "fidelity"}, "range": [0, 1.02], "automargin": True},
        "yaxis": _named_axis(result.names) | {"range": [len(places) - 0.4, -0.6]},
    }
    return {"data": data, "layout": layout}


def distribution(values: Mapping[str, Array], what: str, counted: str) -> Figure:
    """How many numbers between zero and one lie where, for one or two sets of them."""
    edges = np.linspace(0.0, 1.0, 21)
    data: list[Figure] = []
    for name, colour in zip(values, (ORANGE, BLUE) if len(values) > 1 else (BLUE,), strict=True):
        counts = np.histogram(np.clip(values[name], 0.0, 1.0), bins=edges)[0]
        data.append(
            {
                "type": "bar",
                "x": 0.5 * (edges[1:] + edges[:-1]),
                "y": counts,
                "name": name,
                "marker": {"color": colour},
                "hovertemplate": f"{name}<br>{what} around %{{x:.3f}}: %{{y}} {counted}"
                "<extra></extra>",
            }
        )
    layout = _layout(320, legend=len(values) > 1)
    layout |= {
        "xaxis": {"title": {"text": what}, "range": [0, 1], "automargin": True},
        "yaxis": {"title": {"text": counted}, "automargin": True},
    }
    return {"data": data, "layout": layout}


def figure(value: float) -> str:
    """A correlation in as few characters as a cell has room for; nothing for a zero.

    Examples
    --------
    >>> [figure(value) for value in (0.861, -0.07, 1.0, 0.001)]
    ['.86', '-.07', '1', '']
    """
    text = f"{value:.2f}"
    if float(text) == 0.0:
        return ""
    return text.replace("0.", ".") if abs(value) < 0.995 else f"{value:.0f}"


def heat_map(
    M: Array, names: Sequence[str], *, top: float, word: str, figures: bool = False
) -> Figure:
    """A matrix on a scale from ``-top`` to ``top``, with full names for the pointer.

    With ``figures``, the cells of up to 15 variables hold their numbers.
    """
    data: list[Figure] = [
        {
            "type": "heatmap",
            "z": M,
            "zmin": -top,
            "zmax": top,
            "colorscale": _HEAT,
            "colorbar": {"thickness": 10},
            "hovertemplate": f"%{{y}} – %{{x}}<br>{word} %{{z:.4f}}<extra></extra>",
        }
    ]
    many = len(names) > _MOST_PAIRS
    if not many:
        full = [label(name, 80) for name in names]
        data[0]["customdata"] = [[f"{row} – {column}" for column in full] for row in full]
        data[0]["hovertemplate"] = data[0]["hovertemplate"].replace("%{y} – %{x}", "%{customdata}")
    shown = figures and len(names) <= FIGURES_UP_TO
    room = 24 if shown else 15  # for a cell
    height = int(np.clip(170 + room * len(names), 300, 760))
    # As large as the room between two labels allows.
    size = float(np.clip(0.85 * (height - 150) / len(names), 5.0, 12.0))
    if shown:
        data[0]["text"] = [[figure(value) for value in row] for row in M]
        data[0]["texttemplate"], data[0]["textfont"] = "%{text}", {"size": 8}
    axis = _named_axis(names, 40 if many else 18) | {
        "tickfont": {"size": size},
        "showgrid": False,
        "zeroline": False,
    }
    layout = _layout(height, legend=False)
    layout["xaxis"] = axis | {"tickangle": -90}
    layout["yaxis"] = axis | {"autorange": "reversed"}
    return {"data": data, "layout": layout}


def new_rows(names: Sequence[str], fitted: Array, new: Array, worst: Array) -> Figure:
    """Fidelity on the rows fitted and on rows held out."""
    places = np.arange(len(names))
    data = [
        _marks(values, places, word, shape, colour, 10, f"{word} %{{x:.4f}}<extra></extra>")
        for values, word, shape, colour in (
            (fitted, "rows fitted", "circle", BLUE),
            (new, "new rows, mean", "diamond", ORANGE),
            (worst, "new rows, worst part", "line-ns-open", GREY),
        )
    ]
    layout = _layout(110 + 18 * max(len(places), 6), legend=True)
    layout["xaxis"] = {"title": {"text": "fidelity"}, "automargin": True}
    layout["yaxis"] = _named_axis(names) | {"range": [len(places) - 0.4, -0.6]}
    return {"data": data, "layout": layout}


def _marks(x: Any, y: Any, name: str, shape: str, colour: str, size: int, hover: str) -> Figure:
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "markers",
        "marker": {
            "symbol": shape,
            "size": size,
            "color": colour,
            "line": {"width": 2 if shape.endswith("open") else 0},
        },
        "name": name,
        "cliponaxis": False,
        "hovertemplate": hover,
    }


def _layout(height: int, *, legend: bool) -> Figure:
    return {
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 34 if legend else 8, "b": 10},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0},
        "showlegend": legend,
    }


def _named_axis(names: Sequence[str], limit: int = 18) -> Figure:
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [label(name, limit) for name in names],
        "automargin": True,
    }
