"""Matrices as heat maps: correlations before and after, and the transformation itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation, Threshold
from skcoral.estimator.rows import column_names
from skcoral.show.pictures import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

#: Variables up to which every cell of a heat map has room for its number.
NUMBERS_UP_TO = 15


@dataclass(eq=False, repr=False)
class CorrelationDisplay(_style.Display):
    """Correlations before and after, on one scale from -1 to 1 and in input order.

    Parameters
    ----------
    before, after : array-like of shape (p, p) and (k, k)
        Correlation matrices of the sources and of the outputs.
    names : sequence of str
        The sources.
    output_names : sequence of str, optional
        The outputs, where they are not one-to-one with the sources.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> from skcoral.show.pictures import CorrelationDisplay
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> display = CorrelationDisplay.from_result(decorrelate(R), R)
    >>> float(display.before[0, 1]), round(abs(float(display.after[0, 1])), 9)
    (0.6, 0.0)
    """

    _parts = 2

    before: Any
    after: Any
    _: KW_ONLY
    names: Sequence[str]
    output_names: Sequence[str] = ()

    @classmethod
    def from_result(
        cls, result: Decorrelation | Threshold, R: Any, *, names: Sequence[str] | None = None
    ) -> CorrelationDisplay:
        """Gather the numbers from a result and the matrix it was computed from."""
        _style.check_type(result, Decorrelation, Threshold)
        before = np.asarray(R, dtype=np.float64)
        sources = names or _sources(result, getattr(R, "columns", None))
        after = result.T.T @ before @ result.T
        return cls(before, after, names=sources, output_names=result.names)

    @classmethod
    def from_estimator(cls, estimator: Any) -> CorrelationDisplay:
        """Gather the numbers from a fitted :class:`skcoral.CORAL`."""
        return cls.from_result(
            estimator.result_, estimator.correlation_, names=column_names(estimator)
        )

    def _size(self) -> tuple[float, float]:
        side = float(np.clip(0.17 * len(self.names) + 1.6, 3.4, 12.0))
        return 2 * side + 1.4, side + 0.4

    def _draw(self, left: Axes, right: Axes) -> None:
        draw_matrix(left, self.before, self.names, self.names, 1.0, "before")
        outputs = self.output_names or self.names
        image = draw_matrix(right, self.after, outputs, outputs, 1.0, "after")
        right.tick_params(labelleft=left.get_subplotspec() is None)
        # Beside the right one: a bar that two squares share leaves no room under them.
        right.figure.colorbar(image, ax=right, label="correlation", shrink=0.8, pad=0.02)


@dataclass(eq=False, repr=False)
class TransformDisplay(_style.Display):
    """The transformation: what each output (column) is made of (rows are sources).

    Parameters
    ----------
    T : array-like of shape (p, k)
        The transformation, acting on standardised sources.
    names, output_names : sequence of str
        Sources and outputs.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> from skcoral.show.pictures import TransformDisplay
    >>> TransformDisplay.from_result(decorrelate([[1.0, 0.6], [0.6, 1.0]])).T.shape
    (2, 2)
    """

    T: Any
    _: KW_ONLY
    names: Sequence[str]
    output_names: Sequence[str] = ()

    @classmethod
    def from_result(
        cls, result: Decorrelation | Threshold, *, names: Sequence[str] | None = None
    ) -> TransformDisplay:
        """Gather the numbers from a result."""
        _style.check_type(result, Decorrelation, Threshold)
        return cls(result.T, names=names or _sources(result), output_names=result.names)

    @classmethod
    def from_estimator(cls, estimator: Any) -> TransformDisplay:
        """Gather the numbers from a fitted :class:`skcoral.CORAL`."""
        return cls.from_result(estimator.result_, names=column_names(estimator))

    def _size(self) -> tuple[float, float]:
        side = float(np.clip(0.17 * len(self.names) + 1.8, 4.0, 13.0))
        return side + 1.2, side

    def _draw(self, ax: Axes) -> None:
        top = float(np.abs(self.T).max()) or 1.0
        image = draw_matrix(ax, self.T, self.names, self.output_names or self.names, top, "")
        ax.set(xlabel="output", ylabel="source (standardised)")
        ax.figure.colorbar(image, ax=ax, label="coefficient in T", shrink=0.8)


def draw_matrix(
    ax: Axes, M: Array, rows: Sequence[str], columns: Sequence[str], top: float, title: str
) -> AxesImage:
    """One heat map on a scale from ``-top`` to ``top``; figures in the cells while they fit."""
    most = max(M.shape)
    size = _style.label_size(most)
    image = ax.imshow(M, cmap=_style.DIVERGING, vmin=-top, vmax=top, interpolation="nearest")
    ax.set_xticks(range(M.shape[1]), _style.labels(columns, 22), rotation=90, fontsize=size)
    ax.set_yticks(range(M.shape[0]), _style.labels(rows, 22), fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if title:
        ax.set_title(title, fontsize=10)
    if most <= NUMBERS_UP_TO:
        place: Any = {"ha": "center", "va": "center", "fontsize": 7 if most <= 10 else 5.5}
        for (i, j), value in np.ndenumerate(M):
            colour = "white" if abs(value) > 0.55 * top else _style.INK
            ax.text(j, i, short_number(value), color=colour, **place)
    return image


def short_number(value: float) -> str:
    """A number in as few characters as a cell has room for; nothing for a zero.

    Examples
    --------
    >>> [short_number(value) for value in (0.861, -0.07, 1.0, 1.74, 0.001)]
    ['.86', '-.07', '1', '1.7', '']
    """
    text = f"{value:.2f}"
    if float(text) == 0.0:
        return ""
    return text.replace("0.", ".") if abs(value) < 0.995 else f"{value:.2g}"


def _sources(result: Decorrelation | Threshold, columns: Any = None) -> tuple[str, ...]:
    """Names of a frame's columns, or of the outputs where they are the sources' own."""
    if columns is not None:
        return tuple(columns)
    p = len(result.T)
    return result.names if len(result.names) == p else tuple(f"x{j}" for j in range(p))
