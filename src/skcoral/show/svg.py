"""Pictures of the report and of the app: drawn by Matplotlib, as SVG in the colours of the page."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Sequence
from importlib import resources
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.display import printable, shortened
from skcoral.show.pictures import _style
from skcoral.show.pictures.matrices import NUMBERS_UP_TO, short_number

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from skcoral.show.pictures import FrontierDisplay
    from skcoral.show.pictures._style import Display

WIDTH, _ROWS, _LABEL, _SMALLEST_CELL = 360.0, 300.0, 92.0, 9.5  # points
# Dark pages have colours of their own, so a picture names those of the page.
_THEME = {
    _style.INK: "var(--ink)",
    _style.GREY: "var(--grey)",
    _style.BLUE: "var(--blue)",
    _style.ORANGE: "var(--orange)",
    _style.GREEN: "var(--green)",
    _style.LIGHT: "var(--line)",
    "#ffffff": "var(--paper)",
}
_COLD, _WARM = (26, 104, 178), (178, 43, 43)  # those of the scale in the style sheet
# Matplotlib's settings belong to the whole process.
_drawing = RLock()


def is_wide(p: int) -> bool:
    """Whether the heat map of ``p`` variables needs a row of its own."""
    return _LABEL + _SMALLEST_CELL * p > WIDTH + 1


def frontier(display: FrontierDisplay, title: str) -> Markup:
    """The trade-off curve with ρ★, the classical methods and the chosen point."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, 260 / 72))
    display.plot(figure.add_axes((0.13, 0.14, 0.85, 0.84)))  # twice as fast as a layout by itself
    return _svg(figure, title)


def rows(display: Display, title: str) -> Markup:
    """A display with a row for each output, as high as it needs to be."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_ROWS / 72, display._size()[1]), layout="constrained")
    display.plot(figure.subplots())
    return _svg(figure, title)


def heat_map(M: Array, names: Sequence[str], title: str, *, top: float = 1.0) -> Markup:
    """A matrix in input order, such as correlations, on a scale from ``-top`` to ``top``.

    A dot of an image for each cell, and text: hundreds of variables take tenths of a second.
    """
    from markupsafe import Markup

    p = len(M)
    cell = max((WIDTH - _LABEL) / p, _SMALLEST_CELL)
    side = _LABEL + cell * p
    size = min(9.0, 0.9 * cell)
    image = Markup(
        '<image x="{}" width="{:.1f}" height="{:.1f}" style="image-rendering:pixelated" '
        'xlink:href="data:image/png;base64,{}"/>'
    ).format(_LABEL, side - _LABEL, side - _LABEL, _colours(np.asarray(M) / top))
    texts, anchored = [], Markup('<text transform="translate({:.1f},{:.1f}) rotate({})">{}</text>')
    for k, full in enumerate(names):
        name = printable(shortened(full, int((_LABEL - 6) / (0.6 * size))))
        middle = cell * (k + 0.5) + 0.35 * size  # letters stand on their line
        texts.append(anchored.format(_LABEL - 4, middle, 0, name))
        texts.append(anchored.format(_LABEL + middle, side - _LABEL + 4, -90, name))
    numbers = []
    if p <= NUMBERS_UP_TO:
        number = Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>')
        white = Markup(' style="fill:white"')
        for (i, j), value in np.ndenumerate(M):
            x, y = _LABEL + cell * (j + 0.5), cell * (i + 0.5) + 0.14 * cell
            strong = white if abs(value) > 0.55 * top else ""
            numbers.append(number.format(x, y, strong, short_number(value)))
    group = Markup('<g font-size="{:.1f}" text-anchor="{}">{}</g>')
    inner = (
        image
        + group.format(size, "end", Markup().join(texts))
        + group.format(min(10.0, 0.4 * cell), "middle", Markup().join(numbers))
    )
    return _element(inner, side, side, title, width=side if is_wide(p) else None)


def _colours(shares: Array) -> str:
    """Numbers from -1 to 1 as dots from blue to red; the page shows through near zero."""
    from PIL import Image

    dots = np.where(shares[..., None] < 0, _COLD, _WARM).astype(np.uint8)
    opaque = np.round(255 * np.clip(np.abs(shares), 0, 1)).astype(np.uint8)
    target = io.BytesIO()
    Image.fromarray(np.dstack([dots, opaque]), "RGBA").save(target, "png")
    return base64.b64encode(target.getvalue()).decode()


def file(picture: Markup) -> str:
    """A picture as a file of its own, which knows the colours of light and of dark pages."""
    colours = resources.files("skcoral.show.report").joinpath("templates/colours.css").read_text()
    style = f"<style>{colours} text {{ fill: var(--ink); font-family: sans-serif }}</style>"
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    start, inner = picture.split(">", 1)
    return f"{start} {names}>{style}{inner}"


def _svg(figure: Figure, title: str) -> Markup:
    """A figure as an element of the page."""
    import matplotlib as mpl
    from markupsafe import Markup

    target = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "skcoral"}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with _drawing, mpl.rc_context(settings), warnings.catch_warnings():
        # The reader's browser has the glyphs that Matplotlib's own type lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(target, format="svg", transparent=True, metadata=nothing)
    text = target.getvalue()
    start = text.index(">", text.index("<svg ")) + 1
    inner = text[start : text.rindex("</svg>")]
    # The style sheet would reach the whole page, and names of groups occur in every picture.
    inner = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", inner, flags=re.S)
    inner = re.sub(r'<g id="[^"]*"', "<g", inner)
    inner = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", inner)
    for colour, themed in _THEME.items():
        inner = inner.replace(colour.lower(), themed)
    across, down = 72 * figure.get_size_inches()
    return _element(Markup(inner), across, down, title)


def _element(
    inner: Markup, across: float, down: float, title: str, *, width: float | None = None
) -> Markup:
    from markupsafe import Markup

    size = "" if width is None else Markup(' style="width:{:.0f}px;max-width:none"').format(width)
    return Markup(
        '<svg class="chart" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}"{}>{}</svg>'
    ).format(across, down, title, size, inner)
