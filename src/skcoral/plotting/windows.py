"""The threshold and the weakest fidelity of windows over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral.panels import Panel
from skcoral.plotting import _style
from skcoral.results import read_only

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class WindowsDisplay(_style.Display):
    """ρ★ and the weakest fidelity of each window, in the order of the windows.

    Parameters
    ----------
    when : array-like of shape (n,)
        Labels of the windows: dates or numbers; positions are used for other labels.
    threshold, min_fidelity : array-like of shape (n,)
        Of each window; NaN where it has no model, which leaves a gap in the line.
    group : sequence, optional
        Group of each window; lines do not cross from one to the next.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.panels import rolling
    >>> from skcoral.plotting import WindowsDisplay
    >>> rows = np.random.default_rng(0).normal(size=(80, 3)) @ [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    >>> display = WindowsDisplay.from_result(rolling(rows, 40, rho_min=0.9))
    >>> len(display.threshold)
    41
    """

    def __init__(self, when: Any, *, threshold: Any, min_fidelity: Any, group: Any = None) -> None:
        self.when = np.asarray(when)
        if self.when.dtype.kind not in "iufM":
            self.when = np.arange(len(self.when))
        self.threshold = read_only(threshold)
        self.min_fidelity = read_only(min_fidelity)
        self.group = np.zeros(len(self.when)) if group is None else np.asarray(group)

    @classmethod
    def from_result(cls, result: Panel) -> WindowsDisplay:
        """Gather the numbers from what :func:`skcoral.panels.rolling` returns."""
        _style.expect(result, Panel)
        *groups, when = result.keys.values()
        joint = [" · ".join(map(str, key)) for key in zip(*groups, strict=True)] or None
        lines = {name: result.columns[name] for name in ("threshold", "min_fidelity")}
        return cls(when, **lines, group=joint)

    def _size(self) -> tuple[float, float]:
        return 7.2, 3.6

    def _draw(self, ax: Axes) -> None:
        lines = (
            (self.threshold, _style.BLUE, "ρ★: exact decorrelation allows this fidelity"),
            (self.min_fidelity, _style.ORANGE, "weakest fidelity of the outputs"),
        )
        for values, colour, name in lines:
            for k, group in enumerate(dict.fromkeys(self.group.tolist())):
                on = self.group == group
                label = None if k else name
                ax.plot(self.when[on], values[on], color=colour, linewidth=1.2, label=label)
        ax.set(xlabel="last row of the window", ylabel="fidelity")
        _style.legend_above(ax, 2)
        _style.hide_spines(ax)
