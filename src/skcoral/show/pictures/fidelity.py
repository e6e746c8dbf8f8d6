"""How much of its source each output keeps: on rows, in the population, in windows over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral import baselines as _baselines
from skcoral.core.arrays import read_only
from skcoral.core.results import Decorrelation, Threshold
from skcoral.panels import Panel
from skcoral.show.pictures import _style
from skcoral.stability import ConfidentFloors, Holdout

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _OutputsDisplay(_style.Display):
    """One row per output, the first on top, with its fidelities on a common axis."""

    names: Sequence[str]

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.4 + 0.2 * max(len(self.names), 5)

    def _label(self, ax: Axes) -> None:
        p = len(self.names)
        ax.set_yticks(range(p), _style.labels(self.names), fontsize=_style.label_size(p))
        ax.set_ylim(p - 0.4, -0.6)
        ax.set_xlabel("fidelity: correlation of each output with its own source", loc="right")
        _style.legend_above(ax, 4)
        _style.hide_spines(ax)


@dataclass(eq=False, repr=False)
class FidelityDisplay(_OutputsDisplay):
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

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> from skcoral.show.pictures import FidelityDisplay
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> display = FidelityDisplay.from_result(decorrelate(R), R)
    >>> sorted(display.baselines)
    ['PCA', 'ZCA-cor']
    """

    fidelity: Any
    _: KW_ONLY
    names: Sequence[str]
    rho_min: Any = None
    baselines: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_result(cls, result: Decorrelation | Threshold, R: Any = None) -> FidelityDisplay:
        """Gather the numbers from a result; with ``R``, those of ZCA-cor and PCA as well.

        ``R`` is taken from the result where that has one.
        """
        _style.check_type(result, Decorrelation, Threshold)
        if R is None and result.rank == len(result.names):
            R = getattr(result, "R", None)
        others = {}
        if R is not None and getattr(result, "anchors", None) is None:
            others = baseline_fidelities(R)
        floors = getattr(result, "rho_min", None)
        return cls(result.fidelity, names=result.names, rho_min=floors, baselines=others)

    @classmethod
    def from_estimator(cls, estimator: Any) -> FidelityDisplay:
        """Gather the numbers from a fitted :class:`skcoral.CORAL`."""
        # The classical methods need a matrix of full rank.
        R = None if estimator.result_.deficiency else estimator.correlation_
        return cls.from_result(estimator.result_, R)

    def _draw(self, ax: Axes) -> None:
        y = np.arange(len(self.names))
        size = float(np.clip(900 / max(len(y), 1), 14, 46))
        lowest = min([self.fidelity.min(), *(f.min() for f in self.baselines.values())])
        ax.hlines(y, min(lowest, 0.0), 1.0, color=_style.LIGHT, linewidth=0.7, zorder=1)
        colours = (_style.ORANGE, _style.GREY, _style.GREEN, _style.PURPLE)
        for (name, f), marker, colour in zip(self.baselines.items(), "Ds^v", colours, strict=False):
            ax.scatter(
                f, y, s=0.7 * size, marker=marker, facecolors="white", edgecolors=colour,
                linewidths=1.1, label=name, zorder=2,
            )  # fmt: skip
        if self.rho_min is not None:
            ends = y - 0.42, y + 0.42
            ax.vlines(self.rho_min, *ends, color=_style.INK, linewidth=1.4, label="floor", zorder=3)
        ax.scatter(self.fidelity, y, s=size, color=_style.BLUE, label="CORAL", zorder=4)
        ax.set_xlim(min(lowest - 0.02, 0.5 if lowest > 0.52 else 0.0), 1.01)
        self._label(ax)


@dataclass(eq=False, repr=False)
class HoldoutDisplay(_OutputsDisplay):
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
    >>> from skcoral.show.pictures import HoldoutDisplay
    >>> from skcoral.stability import holdout
    >>> display = HoldoutDisplay.from_result(holdout(CORAL(0.8), load_wine().data))
    >>> bool((display.worst <= display.new).all())
    True
    """

    fitted: Any
    new: Any
    worst: Any
    _: KW_ONLY
    names: Sequence[str]
    labels: Sequence[str] = ("rows fitted", "left out", "left out, worst part")

    @classmethod
    def from_result(cls, result: Holdout | ConfidentFloors) -> HoldoutDisplay:
        """Gather the numbers from ``holdout`` or ``confident_floors`` of skcoral.stability."""
        _style.check_type(result, Holdout, ConfidentFloors)
        if isinstance(result, ConfidentFloors):
            labels = ("rows fitted", "population, at least", "floor asked for")
            numbers = (result.fidelity, result.lower, result.rho_min)
            return cls(*numbers, names=result.names, labels=labels)
        fitted, new = result.fidelity_fitted, result.fidelity_new
        return cls(fitted.mean(axis=0), new.mean(axis=0), new.min(axis=0), names=result.names)

    def _draw(self, ax: Axes) -> None:
        y = np.arange(len(self.names))
        ax.hlines(y, self.worst, self.fitted, color=_style.LIGHT, linewidth=1.2, zorder=1)
        ax.scatter(self.worst, y, s=26, marker="|", color=_style.GREY, label=self.labels[2])
        ax.scatter(self.new, y, s=26, marker="D", color=_style.ORANGE, label=self.labels[1])
        ax.scatter(self.fitted, y, s=34, color=_style.BLUE, label=self.labels[0])
        self._label(ax)


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
    >>> from skcoral.show.pictures import WindowsDisplay
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
        _style.check_type(result, Panel)
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


def baseline_fidelities(R: Any) -> dict[str, Any]:
    """Fidelities of ZCA-cor and of PCA (matched so that its weakest match is strongest)."""
    return {"ZCA-cor": _baselines.zca_cor(R).fidelity, "PCA": _baselines.pca(R).fidelity}
