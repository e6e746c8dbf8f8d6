"""The trade-off curve: what a higher floor costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skcoral import api
from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.results import Decorrelation, Frontier
from skcoral.core.tolerances import EXACT_TOL, OPTIMAL_GAP
from skcoral.exceptions import SingularCorrelationError
from skcoral.show.pictures import _style
from skcoral.show.pictures.fidelity import baseline_fidelities
from skcoral.show.sentences import CRITERIA

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class FrontierDisplay(_style.Display):
    """The least residual correlation for every floor, with the landmarks on it.

    Parameters
    ----------
    rho_min, objective, slope : array-like of shape (n,)
        Floors, least residual at each, and the slope there: the price of one more unit of floor.
    threshold : float
        ρ★, up to which the residual is zero.
    criterion : {"squared", "worst", "absolute"}
        What ``objective`` measures.
    points : mapping of str to (float, float), optional
        Other methods as (weakest fidelity, residual).
    chosen : (float, float), optional
        The floor and the residual that were settled on.
    chosen_price : float, optional
        The price of one more unit of floor there, which is drawn as the tangent.

    Examples
    --------
    >>> from skcoral import frontier
    >>> from skcoral.show.pictures import FrontierDisplay
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> display = FrontierDisplay.from_result(frontier(R, n_points=5), R)
    >>> sorted(display.points)
    ['PCA', 'ZCA-cor', 'untransformed']
    """

    rho_min: Any
    objective: Any
    slope: Any
    _: KW_ONLY
    threshold: float
    criterion: str = "squared"
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    chosen: tuple[float, float] | None = None
    chosen_price: float | None = None

    @classmethod
    def from_result(
        cls, frontier: Frontier, R: Any = None, *, chosen: Decorrelation | None = None
    ) -> FrontierDisplay:
        """Gather the numbers from a frontier; with ``R``, the classical methods as points.

        ``chosen`` marks a solution by its weakest fidelity and its residual; with one common floor
        it lies on the curve, with floors of their own, above it.
        """
        _style.check_type(frontier, Frontier)
        return cls(
            frontier.rho_min,
            frontier.objective,
            frontier.slope,
            threshold=frontier.threshold,
            criterion=frontier.criterion,
            points={} if R is None else landmark_points(R, frontier.criterion),
            chosen=None if chosen is None else (chosen.min_fidelity, chosen.objective),
            chosen_price=None if chosen is None else _price_on_the_curve(chosen),
        )

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_points: int = 25) -> FrontierDisplay:
        """Compute the curve for a fitted :class:`skcoral.CORAL` and mark its solution."""
        result = estimator.result_
        # The classical methods do not know composites, and need a matrix of full rank.
        R = estimator.correlation_ if result.anchors is None and not result.deficiency else None
        return cls.from_result(curve_of(estimator, n_points), R, chosen=result)

    def _least(self) -> float:
        """The residual up to the threshold: zero, or what dependent columns leave at least."""
        level = self.rho_min <= self.threshold * (1.0 + 1e-9)
        return float(np.min(self.objective[level], initial=np.inf))

    def _line(self, rho: Array, objective: Array, start: float) -> tuple[Array, Array]:
        """The line through the solved points, level from ``start`` to the threshold.

        Up to the threshold the residual is zero; where variables are dependent, the sum of squares
        has its least value there, and the other criteria may fall further.
        """
        least = self._least()
        if np.isinf(least) or (self.criterion != "squared" and least > EXACT_TOL):
            return rho, objective
        above = rho >= self.threshold
        return (np.r_[start, self.threshold, rho[above]], np.r_[least, least, objective[above]])

    def _size(self) -> tuple[float, float]:
        return 6.4, 4.2

    def _draw(self, ax: Axes) -> None:
        order = np.argsort(self.rho_min)
        rho, objective = self.rho_min[order], self.objective[order]
        marked = [*self.points.values(), *([self.chosen] if self.chosen is not None else [])]
        start = max(0.0, min(self.threshold, rho[0], *(x for x, _ in marked), 1.0) - 0.04)
        top = max(float(objective.max()), *(y for _, y in self.points.values()), 1e-12)
        ax.plot(*self._line(rho, objective, start), color=_style.BLUE, linewidth=1.5, zorder=3)
        # The line between the points is drawn, not solved for: the points say where it was.
        ax.plot(
            rho, objective, linestyle="", marker="o", markersize=4.5, color=_style.BLUE,
            label=f"least possible ({len(rho)} solved)", zorder=3.2, clip_on=False,
        )  # fmt: skip
        # Dependent columns have a least residual, and no ρ★.
        called = "least sum of squares up to" if EXACT_TOL < self._least() < np.inf else "ρ★ ="
        dashes: Any = {"linestyle": (0, (4, 3)), "label": f"{called} {self.threshold:.4f}"}
        ax.axvline(self.threshold, color=_style.INK, linewidth=1, zorder=1, **dashes)
        styles = {
            "ZCA-cor": ("D", _style.ORANGE),
            "PCA": ("s", _style.GREY),
            "untransformed": ("^", _style.GREEN),
        }
        for name, (x, y) in self.points.items():
            marker, colour = styles.get(name, ("o", _style.PURPLE))
            ax.scatter(
                [x], [y], s=46, marker=marker, facecolors="white", edgecolors=colour,
                linewidths=1.5, label=name, zorder=4, clip_on=False,
            )  # fmt: skip
        if self.chosen is not None:
            x, y = self.chosen
            chosen = f"chosen: fidelity {x:.3f}, residual {y if y > 1e-12 else 0:.4g}"
            price = self.chosen_price
            if price is not None:
                chosen += f"\nprice {price:.3g} per unit of floor"
                if 0 < price < np.inf:
                    reach = np.array([-1, 1]) * min(0.06, 0.25 * top / price, max(1.0 - x, 0.0))
                    tangent = (x + reach, y + price * reach)
                    ax.plot(*tangent, color=_style.YELLOW, linewidth=1.5, zorder=3.5)
            # a shape and a colour that no other point has
            ax.scatter(
                [x], [y], s=170, marker="*", color=_style.YELLOW, edgecolors=_style.INK,
                linewidths=0.8, label=chosen, zorder=5,
            )  # fmt: skip
        ax.set_xlim(start, 1.005)
        ax.set_ylim(-0.03 * top, 1.1 * top)
        ax.set_xlabel("floor: fidelity that every output keeps at least")
        ax.set_ylabel(CRITERIA.get(self.criterion, self.criterion))
        # Numbers stand in the legend, which finds room: beside their marks they cover the curve.
        ax.legend(loc="best", fontsize=9, facecolor="white", edgecolor="none", framealpha=0.85)
        _style.hide_spines(ax)


def _price_on_the_curve(chosen: Decorrelation) -> float | None:
    """The slope of the curve at a solution; None for one that may lie above it.

    Floors of their own and limits on the VIF leave more than the least residual of a common floor.
    """
    on_curve = chosen.gap <= OPTIMAL_GAP * max(1.0, chosen.objective)
    least = on_curve and np.ptp(chosen.rho_min) < 1e-12
    return float(chosen.prices.sum()) if least else None


def curve_of(estimator: Any, n_points: int) -> Frontier:
    """The curve of the problem that a fitted :class:`skcoral.CORAL` solves."""
    result = estimator.result_
    return api.frontier(
        estimator.estimate_ if result.deficiency else estimator.correlation_,
        criterion=result.criterion,
        pair_weights=result.pair_weights,
        anchors=result.anchors,
        n_points=n_points,
    )


def landmark_points(R: Any, criterion: Criterion) -> dict[str, tuple[float, float]]:
    """ZCA-cor, PCA (for matrices of full rank) and nothing as (weakest fidelity, residual)."""
    try:
        points = {name: (float(f.min()), 0.0) for name, f in baseline_fidelities(R).items()}
    except SingularCorrelationError:
        points = {}
    points["untransformed"] = (1.0, criteria.value(criterion, np.asarray(R, dtype=np.float64)))
    return points
