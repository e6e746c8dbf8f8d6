"""The frontier as a frozen result: the least residual for each common floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from skcoral.core.arrays import Array, Frozen, read_only
from skcoral.core.criteria import Criterion
from skcoral.core.display import Drawn

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Drawn, Frozen):
    """The least residual correlation as a function of the common floor.

    Zero up to the threshold, convex and increasing after it, the residual of the untransformed
    variables at one.

    Attributes
    ----------
    rho_min : ndarray of shape (n,)
        Common floors, in increasing order (or in the order they were asked for).
    objective, lower_bound : ndarray of shape (n,)
        Residual attained and the least possible, at each floor.
    slope : ndarray of shape (n,)
        d objective / d rho_min, the sum of the prices; infinite at a floor of one unless the
        variables are uncorrelated.
    worst_residual, mean_residual : ndarray of shape (n,)
        Largest and mean absolute residual correlation.
    min_fidelity, mean_fidelity : ndarray of shape (n,)
        Weakest and mean correlation of the outputs with their sources.
    threshold : float
        ρ★, up to which the residual is zero.
    criterion : {"squared", "worst", "absolute"}
        What ``objective`` measures.
    names : tuple of str
        The variables.
    pair_weights : ndarray of shape (p, p) or None
        Weights of the pairs in the criterion, if given.

    Examples
    --------
    >>> from skcoral import frontier
    >>> curve = frontier([[1.0, 0.8], [0.8, 1.0]], [0.9, 0.95, 1.0])
    >>> curve.objective.round(4).tolist()
    [0.0006, 0.083, 0.64]
    """

    rho_min: Array
    objective: Array
    lower_bound: Array
    slope: Array
    worst_residual: Array
    mean_residual: Array
    min_fidelity: Array
    mean_fidelity: Array
    threshold: float
    criterion: Criterion
    names: tuple[str, ...]
    pair_weights: Array | None = None

    _pictures: ClassVar[Mapping[str, str]] = {"frontier": "FrontierDisplay"}

    @property
    def gap(self) -> Array:
        """``objective - lower_bound`` at each floor."""
        return read_only(self.objective - self.lower_bound)

    def summary(self) -> str:
        """Where the curve starts and ends, and what is proved: one line each."""
        from skcoral.show.sentences import frontier_summary

        return frontier_summary(self)

    def to_frame(self) -> pd.DataFrame:
        """One row per floor, one column per quantity."""
        import pandas as pd

        values = {field.name: getattr(self, field.name) for field in fields(self)}
        one_per_floor = {k: v for k, v in values.items() if getattr(v, "ndim", 0) == 1}
        return pd.DataFrame(one_per_floor)

    def __len__(self) -> int:
        return len(self.rho_min)
