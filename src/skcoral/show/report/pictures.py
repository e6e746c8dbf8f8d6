"""Pictures of the page: drawn by Matplotlib, as SVG in the colours of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from skcoral.core.arrays import Array
from skcoral.show.pictures import _style
from skcoral.show.pictures.matrices import draw_matrix

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from skcoral.show.pictures import FrontierDisplay

WIDTH, _LABEL, _SMALLEST_CELL = 360.0, 92.0, 9.5  # points
# Dark pages have colours of their own, so a picture names those of the page.
_THEME = {
    _style.INK: "var(--ink)",
    _style.GREY: "var(--grey)",
    _style.BLUE: "var(--blue)",
    _style.ORANGE: "var(--orange)",
    _style.GREEN: "var(--green)",
}
_PAPER = {"#ffffff": "var(--paper)"}
# The page shows through where a correlation is near zero.
_HEAT = ((0.0, "#1a68b2ff"), (0.5, "#1a68b200"), (0.5, "#b22b2b00"), (1.0, "#b22b2bff"))
# Matplotlib's settings belong to the whole process.
_drawing = RLock()


def is_wide(p: int) -> bool:
    """Whether the heat map of ``p`` variables needs a row of its own."""
    return _LABEL + _SMALLEST_CELL * p > WIDTH + 1


def frontier(display: FrontierDisplay, title: str) -> Markup:
    """The trade-off curve with ρ★, the classical methods and the chosen point."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, 260 / 72), layout="constrained")
    display.plot(figure.subplots())
    return _svg(figure, title, _THEME | _PAPER)


def heat_map(M: Array, names: Sequence[str], title: str) -> Markup:
    """A correlation matrix in input order."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    p = len(M)
    cell = max((WIDTH - _LABEL) / p, _SMALLEST_CELL)
    side = _LABEL + cell * p
    figure = Figure(figsize=(side / 72, side / 72))
    share = _LABEL / side
    ax = figure.add_axes((share, share, 1 - share, 1 - share))
    image = draw_matrix(ax, M, names, names, 1.0, "")
    image.set(cmap=LinearSegmentedColormap.from_list("page", _HEAT), interpolation="none")
    size = min(9.0, 0.9 * cell)
    shown = _style.labels(names, int((_LABEL - 6) / (0.6 * size)))
    for axis in (ax.xaxis, ax.yaxis):
        # Anchored at the axis, whatever type the page is read in.
        axis.set_ticklabels(shown, fontsize=size, rotation_mode="anchor", ha="right", va="center")
    for text in ax.texts:
        text.set(fontsize=min(10.0, 0.4 * cell))
    return _svg(figure, title, _THEME, width=side if is_wide(p) else None)


def _svg(
    figure: Figure, title: str, colours: Mapping[str, str], *, width: float | None = None
) -> Markup:
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
    for colour, themed in colours.items():
        inner = inner.replace(colour.lower(), themed)
    box = "0 0 {:.0f} {:.0f}".format(*(72 * figure.get_size_inches()))
    size = "" if width is None else Markup(' style="width:{:.0f}px;max-width:none"').format(width)
    return Markup('<svg class="chart" viewBox="{}" role="img" aria-label="{}"{}>{}</svg>').format(
        box, title, size, Markup(inner)
    )
