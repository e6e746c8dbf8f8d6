"""How much of its source each output keeps on rows that were left out, or in the population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.plotting import _ink
from skcoral.results import read_only
from skcoral.stability import ConfidentFloors, Holdout

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HoldoutDisplay:
    """Fidelity on the rows fitted, on rows left out, and in the worst part left out.

    Of confident floors: on the rows fitted, its bound for the population, and the floor asked for.

    Parameters
    ----------
    fitted, new, worst : array-like of shape (k,)
        Fidelity of each output: means over the parts, and the least on new rows.
    names : sequence of str
        The outputs.
    labels : sequence of str
        What the three are called.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.plotting import HoldoutDisplay
    >>> from skcoral.stability import holdout
    >>> display = HoldoutDisplay.from_result(holdout(CORAL(0.8), load_wine().data))
    >>> bool((display.worst <= display.new).all())
    True
    """

    def __init__(
        self,
        fitted: Any,
        new: Any,
        worst: Any,
        *,
        names: Sequence[str],
        labels: Sequence[str] = ("rows fitted", "left out", "left out, worst part"),
    ) -> None:
        self.fitted, self.new, self.worst = map(read_only, (fitted, new, worst))
        self.names, self.labels = tuple(names), tuple(labels)

    @classmethod
    def from_result(cls, result: Holdout | ConfidentFloors) -> HoldoutDisplay:
        """Gather the numbers from ``holdout`` or ``confident_floors`` of skcoral.stability."""
        _ink.expect(result, Holdout, ConfidentFloors)
        if isinstance(result, ConfidentFloors):
            labels = ("rows fitted", "population, at least", "floor asked for")
            found = (result.fidelity, result.lower, result.rho_min)
            return cls(*found, names=result.names, labels=labels)
        new = result.fidelity_new
        return cls(
            result.fidelity_fitted.mean(axis=0),
            new.mean(axis=0),
            new.min(axis=0),
            names=result.names,
        )

    def plot(self, ax: Axes | None = None) -> HoldoutDisplay:
        """Draw one line per variable, first variable on top."""
        p = len(self.names)
        ax = _ink.axes_or_new(ax, (6.4, 1.4 + 0.2 * max(p, 5)))
        y = np.arange(p)
        ax.hlines(y, self.worst, self.fitted, color=_ink.LIGHT, linewidth=1.2, zorder=1)
        ax.scatter(self.worst, y, s=26, marker="|", color=_ink.GREY, label=self.labels[2])
        ax.scatter(self.new, y, s=26, marker="D", color=_ink.ORANGE, label=self.labels[1])
        ax.scatter(self.fitted, y, s=34, color=_ink.BLUE, label=self.labels[0])
        _ink.name_rows(ax, self.names)
        ax.set_xlabel("fidelity: correlation of each output with its own source")
        _ink.finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
