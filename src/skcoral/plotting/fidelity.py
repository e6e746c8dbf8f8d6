"""How much of its source each output keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral import baselines as _baselines
from skcoral.plotting import _ink
from skcoral.results import Decorrelation, Threshold, read_only

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FidelityDisplay:
    """Fidelity of each output against its floor, beside what the classical methods give.

    Parameters
    ----------
    fidelity : array-like of shape (k,)
        Correlation of each output with its source.
    names : sequence of str
        The outputs.
    rho_min : array-like of shape (k,), optional
        The floors.
    baselines : mapping of str to array-like, optional
        Fidelities of other methods for the same variables.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        After :meth:`plot`.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> from skcoral.plotting import FidelityDisplay
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> display = FidelityDisplay.from_result(decorrelate(R), R)
    >>> sorted(display.baselines)
    ['PCA', 'ZCA-cor']
    """

    def __init__(
        self,
        fidelity: Any,
        *,
        names: Sequence[str],
        rho_min: Any = None,
        baselines: Mapping[str, Any] | None = None,
    ) -> None:
        self.fidelity = read_only(fidelity)
        self.names = tuple(names)
        self.rho_min = None if rho_min is None else read_only(rho_min)
        self.baselines = {name: read_only(f) for name, f in (baselines or {}).items()}

    @classmethod
    def from_result(
        cls, result: Decorrelation | Threshold, R: Any = None, *, baselines: bool = True
    ) -> FidelityDisplay:
        """Gather the numbers from a result; with ``R``, those of ZCA-cor and PCA as well.

        ``R`` is taken from the result where that has one.
        """
        _ink.expect(result, Decorrelation, Threshold)
        if R is None and getattr(result, "rank", None) is None:
            R = getattr(result, "R", None)
        others = {}
        if R is not None and baselines and getattr(result, "anchors", None) is None:
            others = baseline_fidelities(R)
        floors = result.rho_min if isinstance(result, Decorrelation) else None
        return cls(result.fidelity, names=result.names, rho_min=floors, baselines=others)

    @classmethod
    def from_estimator(cls, estimator: Any, *, baselines: bool = True) -> FidelityDisplay:
        """Gather the numbers from a fitted :class:`skcoral.CORAL`."""
        # the classical methods need all directions
        R = estimator.correlation_ if estimator.result_.rank is None else None
        return cls.from_result(estimator.result_, R, baselines=baselines)

    def plot(self, ax: Axes | None = None) -> FidelityDisplay:
        """Draw one line per variable, first variable on top."""
        p = len(self.names)
        ax = _ink.axes_or_new(ax, (6.4, 1.4 + 0.2 * max(p, 5)))
        y = np.arange(p)
        size = float(np.clip(900 / max(p, 1), 14, 46))
        lowest = min([self.fidelity.min(), *(f.min() for f in self.baselines.values())])
        ax.hlines(y, min(lowest, 0.0), 1.0, color=_ink.LIGHT, linewidth=0.7, zorder=1)
        styles = [("D", _ink.ORANGE), ("s", _ink.GREY), ("^", _ink.GREEN), ("v", _ink.PURPLE)]
        for (name, f), (marker, colour) in zip(self.baselines.items(), styles, strict=False):
            ax.scatter(
                f, y, s=0.7 * size, marker=marker, facecolors="white", edgecolors=colour,
                linewidths=1.1, label=name, zorder=2,
            )  # fmt: skip
        if self.rho_min is not None:
            ax.vlines(
                self.rho_min, y - 0.42, y + 0.42, color=_ink.INK, linewidth=1.4, label="floor",
                zorder=3,
            )  # fmt: skip
        ax.scatter(self.fidelity, y, s=size, color=_ink.BLUE, label="CORAL", zorder=4)
        ax.set_xlim(min(lowest - 0.02, 0.5 if lowest > 0.52 else 0.0), 1.01)
        ax.set_xlabel("fidelity: correlation of each output with its own source")
        _ink.name_rows(ax, self.names)
        _ink.finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def baseline_fidelities(R: Any) -> dict[str, Any]:
    """Fidelities of ZCA-cor and of PCA (matched so that its weakest match is strongest)."""
    return {"ZCA-cor": _baselines.zca_cor(R).fidelity, "PCA": _baselines.pca(R).fidelity}
