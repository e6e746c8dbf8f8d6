"""What all displays share: colours, labels, and where to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skcoral.exceptions import InvalidArgumentError
from skcoral.showing import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the palette of Okabe and Ito: distinct for every common kind of colour vision, and in grey.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
YELLOW = "#E69F00"
PURPLE = "#CC79A7"
GREY = "#5f6b7a"
LIGHT = "#d7dce2"
INK = "#1f2933"
#: Blue to white to red, equally light at both ends.
DIVERGING = "RdBu_r"


def expect(result: Any, *kinds: type) -> None:
    """Refuse what a display has no numbers for."""
    if not isinstance(result, kinds):
        wanted = " or ".join(f"a {kind.__name__}" for kind in kinds)
        raise InvalidArgumentError(
            f"from_result of this display takes {wanted}, got {type(result).__name__}; for a "
            "fitted CORAL there is from_estimator."
        )


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of the given size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, new = plt.subplots(figsize=size, layout="constrained")
    return new


def split_axes(ax: Any, n: int, size: tuple[float, float], **kwargs: Any) -> list[Any]:
    """Axes for ``n`` panels: the given sequence, one given axes cut in ``n``, or a new figure."""
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=size, layout="constrained")
        return [figure.add_subplot(1, n, k + 1, **kwargs) for k in range(n)]
    if hasattr(ax, "get_subplotspec"):
        figure = ax.figure
        grid = ax.get_subplotspec().subgridspec(1, n)
        ax.set_axis_off()
        return [figure.add_subplot(grid[0, k], **kwargs) for k in range(n)]
    panels = list(ax.ravel()) if hasattr(ax, "ravel") else list(ax)
    if len(panels) != n:
        raise ValueError(f"ax must be one axes or {n} of them, got {len(panels)}.")
    return panels


def shortened(name: str, limit: int) -> str:
    """A name cut in its middle to a length: the ends tell long names apart.

    Examples
    --------
    >>> shortened("population, total", 12)
    'populati…tal'
    """
    if len(name) <= limit:
        return name
    tail = max(1, (limit - 1) // 3)
    return f"{name[: limit - 1 - tail]}…{name[-tail:]}"


def label(name: str, limit: int = 28) -> str:
    """A name as Matplotlib shows it literally: dollar signs are not formulas, length is bounded."""
    shown = printable(" ".join(shortened(name, limit).split()))
    return shown.replace("$", r"\$") or "·"


def labels(names: Sequence[str], limit: int = 28) -> list[str]:
    """All names as labels."""
    return [label(name, limit) for name in names]


def label_size(p: int) -> float:
    """A type size at which ``p`` labels stand side by side in the default figure."""
    return max(6.5, min(9.0, 10.0 - 0.06 * p))


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """One name per row, the first on top, and the legend above them."""
    p = len(names)
    ax.set_yticks(range(p), labels(names), fontsize=label_size(p))
    ax.set_ylim(p - 0.4, -0.6)
    ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize=9,
        handletextpad=0.3,
    )  # fmt: skip


def finish(ax: Axes) -> None:
    """Quiet axes: two spines, grey ticks."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(colors=INK, length=3)
