"""Small SVG pictures without a drawing library: light, and in the page's own colours."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from skcoral.plotting._ink import shortened
from skcoral.plotting.frontier import curve_line
from skcoral.plotting.interactive import FIGURES_UP_TO, figure
from skcoral.results import Array

if TYPE_CHECKING:
    from skcoral.plotting import FrontierDisplay

WIDTH = 360.0
#: Beyond this many variables a heat map is one embedded picture instead of one shape per cell.
CELLS_UP_TO = 40
_LABEL, _SMALLEST_CELL = 92.0, 9.5


def clean(name: str) -> str:
    """A name from the data, safe inside HTML and SVG."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return escape(shown, quote=True)


def clip(name: str, limit: int) -> str:
    """A name cut to a length, then made safe."""
    return clean(shortened(name, limit))


def is_wide(p: int) -> bool:
    """Whether the heat map of ``p`` variables needs a row of its own."""
    return _LABEL + _SMALLEST_CELL * p > WIDTH + 1


def frontier(display: FrontierDisplay, ylabel: str) -> str:
    """The trade-off curve with ρ★, the classical methods and the chosen point."""
    left, right, top, bottom = 44.0, 14.0, 26.0, 40.0
    height = 250.0
    low = min(display.threshold, *(x for x, _ in display.points.values()), 1.0)
    low = max(0.0, np.floor((low - 0.02) * 20) / 20)
    xs, ys = curve_line(display.rho_min, display.objective, display.threshold, low)
    high = max(float(ys.max()), *(y for _, y in display.points.values()), 1e-9) * 1.05

    def px(x: float) -> float:
        return left + (x - low) / (1.0 - low) * (WIDTH - left - right)

    def py(y: float) -> float:
        return height - bottom - y / high * (height - top - bottom)

    parts = [
        f'<line class="axis" x1="{left}" y1="{py(0):.1f}" x2="{WIDTH - right}" y2="{py(0):.1f}"/>'
    ]
    for tick in _ticks(low, 1.0, 5):
        parts.append(
            f'<text class="tick" x="{px(tick):.1f}" y="{py(0) + 14:.1f}" '
            f'text-anchor="middle">{tick:g}</text>'
        )
    for tick in _ticks(0.0, high, 4):
        parts.append(
            f'<line class="grid" x1="{left}" y1="{py(tick):.1f}" x2="{WIDTH - right}" '
            f'y2="{py(tick):.1f}"/><text class="tick" x="{left - 5}" y="{py(tick) + 4:.1f}" '
            f'text-anchor="end">{tick:g}</text>'
        )
    star = px(display.threshold)
    parts.append(
        f'<line class="star" x1="{star:.1f}" y1="{top - 6}" x2="{star:.1f}" y2="{py(0):.1f}"/>'
        f'<text class="tick" x="{star:.1f}" y="{top - 12}" text-anchor="middle">'
        f"ρ★ {display.threshold:.4f}</text>"
    )
    path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(f'<polyline class="curve" points="{path}"/>')
    shapes = {"ZCA-cor": "diamond", "PCA": "square", "untransformed": "triangle"}
    for name, (x, y) in display.points.items():
        parts.append(_mark(shapes.get(name, "circle"), px(x), py(y), f"{name}: {x:.4f}, {y:.4g}"))
    if display.chosen is not None:
        x, y = display.chosen
        parts.append(
            f'<circle class="chosen" cx="{px(x):.1f}" cy="{py(y):.1f}" r="6">'
            f"<title>chosen: floor {x:.4f}, residual {y:.6g}</title></circle>"
        )
    parts.append(
        f'<text class="label" x="{(left + WIDTH - right) / 2:.0f}" y="{height - 8}" '
        'text-anchor="middle">floor: fidelity that every output keeps</text>'
    )
    return _svg(WIDTH, height, f"Trade-off curve: {ylabel} against the floor", parts)


def heat_map(
    M: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    top: float,
    title: str,
) -> str:
    """A matrix on a scale from ``-top`` to ``top``, rows and columns in the order given."""
    n, m = M.shape
    label = _LABEL
    cell = max((WIDTH - label) / m, _SMALLEST_CELL)
    width, height = label + cell * m, label + cell * n
    size = min(10.5, cell * 0.92)
    fits = int((label - 6) / (0.6 * size))
    y0 = label
    parts = []
    for j, name in enumerate(columns):
        x = label + (j + 0.5) * cell
        parts.append(
            f'<text class="name" font-size="{size:.1f}" transform="translate({x + size / 3:.1f} '
            f'{y0 - 4:.1f}) rotate(-90)"><title>{clean(name)}</title>{clip(name, fits)}</text>'
        )
    for i, name in enumerate(rows):
        y = y0 + (i + 0.5) * cell + size / 3
        parts.append(
            f'<text class="name" font-size="{size:.1f}" x="{label - 4}" y="{y:.1f}" '
            f'text-anchor="end"><title>{clean(name)}</title>{clip(name, fits)}</text>'
        )
    if max(n, m) <= CELLS_UP_TO:
        parts.extend(_cells(M, rows, columns, top, label, y0, cell))
    else:
        parts.append(
            f'<image x="{label}" y="{y0}" width="{cell * m:.1f}" height="{cell * n:.1f}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" '
            f'href="{_picture(M / top)}"/>'
        )
    return _svg(width, height, title, parts, natural=is_wide(m))


def scale_bar(top: float, what: str) -> str:
    """The legend of the heat maps."""
    steps = 21
    parts = []
    for k in range(steps):
        value = 2 * k / (steps - 1) - 1
        parts.append(
            f'<rect class="{_sign(value)}" x="{60 + k * 11}" y="4" width="11.2" height="10" '
            f'fill-opacity="{abs(value):.2f}"/>'
        )
    for x, value in ((60, -top), (60 + steps * 5.5, 0.0), (60 + steps * 11, top)):
        parts.append(f'<text class="tick" x="{x}" y="27" text-anchor="middle">{value:.2g}</text>')
    return _svg(WIDTH, 32, f"Colour scale: {what} from {-top:.2g} to {top:.2g}", parts)


def fidelity_bar(value: float, floor: float, others: Sequence[tuple[str, float]]) -> str:
    """One bar of a table: fidelity, its floor, and what other methods give."""
    marks = "".join(_mark(shape, 4 + 112 * max(v, 0.0), 8, shape, size=3.2) for shape, v in others)
    return (
        '<svg class="bar" viewBox="0 0 120 16" aria-hidden="true">'
        '<rect class="rail" x="4" y="5" width="112" height="6" rx="3"/>'
        f'<rect class="fill" x="4" y="5" width="{112 * min(max(value, 0.0), 1.0):.1f}" height="6" '
        f'rx="3"/><line class="floor" x1="{4 + 112 * floor:.1f}" x2="{4 + 112 * floor:.1f}" '
        f'y1="1" y2="15"/>{marks}</svg>'
    )


def key(shape: str) -> str:
    """A mark for a legend."""
    return f'<svg class="key" viewBox="0 0 14 14" aria-hidden="true">{_mark(shape, 7, 7, "")}</svg>'


def _svg(
    width: float, height: float, title: str, parts: Sequence[str], *, natural: bool = False
) -> str:
    size = f' style="width:{width:.0f}px;max-width:none"' if natural else ""
    return (
        f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{clean(title)}"{size}>{"".join(parts)}</svg>'
    )


def _mark(shape: str, x: float, y: float, title: str, size: float = 5.0) -> str:
    said = f"<title>{clean(title)}</title>" if title else ""
    outline = {
        "diamond": [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "triangle": [(0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
    }.get(shape)
    if outline is None:
        kind = "chosen" if shape == "chosen" else "circle"
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}">{said}</circle>'
    points = " ".join(f"{x + size * a:.1f},{y + size * b:.1f}" for a, b in outline)
    return f'<polygon class="{shape}" points="{points}">{said}</polygon>'


def _cells(
    M: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    top: float,
    x0: float,
    y0: float,
    cell: float,
) -> list[str]:
    out = []
    figures = max(len(rows), len(columns)) <= FIGURES_UP_TO
    size = min(11.0, 0.42 * cell)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            value = float(M[i, j])
            strength = min(abs(value) / top, 1.0)
            x, y = x0 + j * cell, y0 + i * cell
            text = figure(value)
            out.append(
                f"<g><title>{clean(row)} – {clean(column)}: {value:.3f}</title>"
                f'<rect class="{_sign(value)}" x="{x:.1f}" y="{y:.1f}" width="{cell:.2f}" '
                f'height="{cell:.2f}" fill-opacity="{strength:.3f}"/>'
            )
            if figures and text:
                kind = "strong" if strength > 0.6 else "weak"
                out.append(
                    f'<text class="{kind}" font-size="{size:.1f}" x="{x + cell / 2:.1f}" '
                    f'y="{y + cell / 2 + 0.35 * size:.1f}" text-anchor="middle">{text}</text>'
                )
            out.append("</g>")
    return out


def _sign(value: float) -> str:
    return "positive" if value >= 0 else "negative"


def _picture(M: Array) -> str:
    """The matrix (entries in [-1, 1]) as a PNG: one pixel per entry, strength as opacity."""
    pixels = np.empty((*M.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where(M[..., None] >= 0, [178, 43, 43], [26, 104, 178])
    pixels[..., 3] = np.round(255 * np.clip(np.abs(M), 0.0, 1.0))
    lines = b"".join(b"\x00" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", M.shape[1], M.shape[0], 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _ticks(low: float, high: float, n: int) -> list[float]:
    """Round numbers between two ends."""
    raw = (high - low) / n
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda s: abs(s * power - raw))
    first = np.ceil(low / step - 1e-9)
    last = np.floor(high / step + 1e-9)
    return [float(round(k * step, 10)) + 0.0 for k in np.arange(first, last + 1)]
