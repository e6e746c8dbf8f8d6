"""The charts of the app, in Plotly.

They are written as the dictionaries that Plotly draws: building them step by step through its
classes takes longer than solving the problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.display import printable, shortened
from skcoral.core.results import Decorrelation
from skcoral.show.pictures.fidelity import HoldoutDisplay
from skcoral.show.pictures.frontier import FrontierDisplay, curve_line
from skcoral.show.pictures.matrices import NUMBERS_UP_TO, short_number
from skcoral.show.sentences import CRITERIA

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
_MOST_LABELS = 45  # variables of a heat map whose names can be read beside it
_MOST_PAIRS = 100  # variables whose pairs of full names go into the page
_SHAPES = {"ZCA-cor": "diamond", "PCA": "square", "untransformed": "triangle-up"}


def label(name: str, limit: int = 18) -> str:
    """A name as Plotly shows it literally: its labels understand some HTML."""
    return escape(shortened(printable(name), limit), quote=False) or "·"


def frontier(display: FrontierDisplay) -> Figure:
    """The least residual for every floor, ρ★, the classical methods and the chosen point."""
    data: list[Figure] = []
    threshold, points = display.threshold, display.points
    assert display.chosen is not None
    fidelity, residual = display.chosen
    others = [x for name, (x, _) in points.items() if name == "ZCA-cor"]
    low = max(0.0, min([threshold, fidelity, *others]) - 0.05)
    if display.rho_min.size:
        line = curve_line(display.rho_min, display.objective, threshold, low)
        trace = _trace("scatter", "least possible", *line, "floor %{x:.4f}<br>residual %{y:.4g}")
        data.append(trace | {"mode": "lines", "line": {"color": BLUE, "width": 3}})
    for name, (x, y) in points.items():
        if x >= low:
            hover = f"{name}<br>weakest fidelity %{{x:.4f}}<br>residual %{{y:.4g}}"
            shape = f"{_SHAPES.get(name, 'circle')}-open"
            data.append(_marks([x], [y], name, shape, ORANGE, 11, hover, edge=2))
    hover = "now: weakest fidelity %{x:.4f}<br>residual %{y:.6g}"
    here = [fidelity], [residual]
    data.append(_marks(*here, "now", "circle", BLUE, 16, hover, edge=2, edge_colour=INK))
    floor = _axis("floor: fidelity that every output keeps", range=[low, 1.005])
    height = {"y0": 0, "y1": 1, "yref": "paper"}
    dashed = {"color": INK, "width": 1, "dash": "dash"}
    # Left of its line, unless the label would run into the axis there.
    side, shift = ("right", -4) if threshold - low > 0.4 * (1.0 - low) else ("left", 4)
    note = {"text": display.threshold_label, "showarrow": False, "xanchor": side, "xshift": shift}
    return _figure(
        data,
        350,
        floor,
        _axis(CRITERIA[display.criterion], rangemode="tozero"),
        shapes=[{"type": "line", "x0": threshold, "x1": threshold, **height, "line": dashed}],
        annotations=[{"x": threshold, "y": 1.0, "yref": "paper", "yanchor": "top"} | note],
    )


def fidelity(result: Decorrelation, others: Mapping[str, Array], measured: Array) -> Figure:
    """A bar per variable, as measured, with its floor and what the classical methods keep."""
    places = np.arange(len(result.names))
    bars = _trace("bar", "CORAL", measured, places, "%{customdata}<br>CORAL %{x:.4f}")
    data = [bars | {"orientation": "h", "marker": {"color": BLUE}}]
    for name, values in others.items():
        hover = f"%{{customdata}}<br>{name} %{{x:.4f}}"
        colour, shape = (ORANGE if name == "ZCA-cor" else PALE), _SHAPES.get(name, "circle")
        data.append(_marks(values, places, name, shape, colour, 7, hover, edge=1, edge_colour=INK))
    for trace in data:
        trace["customdata"] = [label(name, 80) for name in result.names]
    edge: Any = {"edge": 2, "edge_colour": INK}
    data.append(
        _marks(result.rho_min, places, "floor", "line-ns", INK, 12, "floor %{x:.4f}", **edge)
    )
    return _rows_figure(data, result.names, _axis("fidelity", range=[0, 1.02]), bargap=0.35)


def distribution(values: Mapping[str, Array], what: str, counted: str) -> Figure:
    """How many numbers between zero and one lie where, for one or two sets of them."""
    edges = np.linspace(0.0, 1.0, 21)
    centres = 0.5 * (edges[1:] + edges[:-1])
    data: list[Figure] = []
    for name, colour in zip(values, (ORANGE, BLUE) if len(values) > 1 else (BLUE,), strict=True):
        counts = np.histogram(np.clip(values[name], 0.0, 1.0), bins=edges)[0]
        hover = f"{name}<br>{what} around %{{x:.3f}}: %{{y}} {counted}"
        data.append(_trace("bar", name, centres, counts, hover) | {"marker": {"color": colour}})
    axes = _axis(what, range=[0, 1]), _axis(counted)
    return _figure(data, 320, *axes, legend=len(values) > 1)


def heat_map(M: Array, names: Sequence[str], *, top: float, word: str) -> Figure:
    """A matrix on a scale from ``-top`` to ``top``, with full names for the pointer.

    The cells of up to 15 variables hold their numbers where these are at most one.
    """
    many = len(names) > _MOST_PAIRS
    pair = "%{y} – %{x}" if many else "%{customdata}"
    cells: Figure = {
        "type": "heatmap",
        "z": M,
        "zmin": -top,
        "zmax": top,
        "colorscale": _HEAT,
        "colorbar": {"thickness": 10},
        "hovertemplate": f"{pair}<br>{word} %{{z:.4f}}<extra></extra>",
    }
    if not many:
        full = [label(name, 80) for name in names]
        cells["customdata"] = [[f"{row} – {column}" for column in full] for row in full]
    shown = top == 1.0 and len(names) <= NUMBERS_UP_TO
    if shown:
        cells["text"] = [[short_number(value) for value in row] for row in M]
        cells |= {"texttemplate": "%{text}", "textfont": {"size": 8}}
    room = 24 if shown else 15  # for a cell
    height = int(np.clip(170 + room * len(names), 300, 760))
    # As large as the room between two labels allows.
    size = float(np.clip(0.85 * (height - 150) / len(names), 5.0, 12.0))
    axis = _named_axis(names, 40 if many else 18)
    axis |= {"tickfont": {"size": size}, "showgrid": False, "zeroline": False}
    if len(names) > _MOST_LABELS:  # too small to be read: the pointer tells the names
        height = 420
        axis |= {"showticklabels": False, "ticks": ""}
    axes = axis | {"tickangle": -90}, axis | {"autorange": "reversed"}
    return _figure([cells], height, *axes, legend=False)


def new_rows(display: HoldoutDisplay) -> Figure:
    """Fidelity on the rows fitted and on rows held out."""
    places = np.arange(len(display.names))
    data = [
        _marks(display.fitted, places, "rows fitted", "circle", BLUE, 10),
        _marks(display.new, places, "new rows, mean", "diamond", ORANGE, 10),
        _marks(display.worst, places, "new rows, worst part", "line-ns-open", GREY, 10, edge=2),
    ]
    return _rows_figure(data, display.names, _axis("fidelity"))


def _trace(kind: str, name: str, x: Any, y: Any, hover: str) -> Figure:
    return {"type": kind, "name": name, "x": x, "y": y, "hovertemplate": f"{hover}<extra></extra>"}


def _marks(
    x: Any,
    y: Any,
    name: str,
    shape: str,
    colour: str,
    size: int,
    hover: str = "",
    *,
    edge: int = 0,
    edge_colour: str = "",
) -> Figure:
    line = {"width": edge} | ({"color": edge_colour} if edge_colour else {})
    marker = {"symbol": shape, "size": size, "color": colour, "line": line}
    trace = _trace("scatter", name, x, y, hover or f"{name} %{{x:.4f}}")
    return trace | {"mode": "markers", "marker": marker, "cliponaxis": False}


def _rows_figure(data: list[Figure], names: Sequence[str], x: Figure, **more: Any) -> Figure:
    """A row per name, the first on top."""
    p = len(names)
    y = _named_axis(names) | {"range": [p - 0.4, -0.6]}
    return _figure(data, 110 + 18 * max(p, 6), x, y, **more)


def _figure(
    data: list[Figure], height: int, x: Figure, y: Figure, *, legend: bool = True, **more: Any
) -> Figure:
    legend_at = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0}
    layout = {
        "dragmode": False,  # scrolling on a touch screen goes on to the page
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 34 if legend else 8, "b": 10},
        "legend": legend_at | {"itemclick": False, "itemdoubleclick": False},
        "showlegend": legend,
    }
    axes = {"xaxis": x | {"fixedrange": True}, "yaxis": y | {"fixedrange": True}}
    return {"data": data, "layout": layout | axes | more}


def _axis(title: str, **more: Any) -> Figure:
    return {"title": {"text": title}, "automargin": True, **more}


def _named_axis(names: Sequence[str], limit: int = 18) -> Figure:
    shown = [label(name, limit) for name in names]
    return {"tickvals": list(range(len(names))), "ticktext": shown, "automargin": True}
