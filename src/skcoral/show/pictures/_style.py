"""What all displays share: colours, labels, axes and legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from skcoral.core.arrays import read_only
from skcoral.core.display import printable, shortened
from skcoral.exceptions import InvalidArgumentError

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


def check_type(result: Any, *kinds: type) -> None:
    """Refuse what a display has no numbers for."""
    if not isinstance(result, kinds):
        wanted = " or ".join(f"a {kind.__name__}" for kind in kinds)
        raise InvalidArgumentError(
            f"from_result of this display takes {wanted}, got {type(result).__name__}; for a "
            "fitted CORAL there is from_estimator."
        )


@dataclass(eq=False, repr=False)
class Display:
    """A picture on one axes or on several: a subclass says how large it is and draws it.

    Its fields are kept as read-only arrays where they hold numbers, and as tuples of names.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        After :meth:`plot`; ``axes_`` where there are several.
    """

    _parts: ClassVar[int] = 1  # axes side by side

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "Any" and value is not None:
                setattr(self, field.name, read_only(value))
            elif field.type == "Sequence[str]":
                setattr(self, field.name, tuple(value))

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or on those of a new figure, and return the display.

        One axes is cut in parts where the picture has several.
        """
        n = self._parts
        if ax is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=self._size(), layout="constrained")
            axes = [figure.add_subplot(1, n, k + 1) for k in range(n)]
        elif n > 1 and hasattr(ax, "get_subplotspec"):
            grid = ax.get_subplotspec().subgridspec(1, n)
            ax.set_axis_off()
            axes = [ax.figure.add_subplot(grid[0, k]) for k in range(n)]
        else:
            axes = list(np.ravel(ax))
        if len(axes) != n:
            raise ValueError(f"ax must be one axes or {n} of them, got {len(axes)}.")
        self._draw(*axes)
        self.figure_ = axes[0].figure
        if n == 1:
            self.ax_ = axes[0]
        else:
            self.axes_ = tuple(axes)
        return self

    def _size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        raise NotImplementedError

    def _draw(self, *axes: Any) -> None:
        raise NotImplementedError


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


def legend_above(ax: Axes, columns: int) -> None:
    """The legend above the axes, in so many columns; long names at the left give it room."""
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, frameon=False, fontsize=9,
        handletextpad=0.3,
    )  # fmt: skip


def hide_spines(ax: Axes) -> None:
    """Two spines and ticks, in quiet colours."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(colors=INK, length=3)
