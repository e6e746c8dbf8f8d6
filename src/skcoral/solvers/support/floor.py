"""The least residual correlation that a support leaves: the paper's δ₂ and δ∞."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.bounds.support import proved_bound
from skcoral.core import criteria
from skcoral.core.arrays import Frozen
from skcoral.core.problem import Problem, check_matrix
from skcoral.solvers.support.pattern import read_restrictions
from skcoral.solvers.support.solver import EXACT, SupportProblem, solve_support


@dataclass(frozen=True)
class SupportFloor(Frozen):
    """What remains of the correlations whatever the coefficients within a support are.

    Attributes
    ----------
    squared, squared_bound : float
        δ₂, the least sum of squares over pairs: the best value found, and a number that no
        transformation with this support falls below.
    worst, worst_bound : float
        δ∞, the least largest absolute correlation, likewise.
    vanish : bool or None
        Whether both are zero, which they are together: δ∞² ≤ δ₂ ≤ p(p − 1)/2 · δ∞². None where the
        bounds do not decide it.

    Examples
    --------
    >>> from skcoral.solvers.support import support_floor
    >>> chain = [[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]]
    >>> support_floor(chain, [("x0", "x1"), ("x1", "x2")]).vanish
    True
    """

    squared: float
    squared_bound: float
    worst: float
    worst_bound: float
    vanish: bool | None


def support_floor(
    R: Any, support: Any, *, n_starts: int = 100, random_state: int = 0
) -> SupportFloor:
    """Return δ₂ and δ∞ of a support, each between a value attained and a proved bound.

    Parameters
    ----------
    R : array or DataFrame of shape (p, p)
        Correlation matrix.
    support : mask, mapping, DataFrame, edge list or number
        As in :func:`skcoral.decorrelate`.
    n_starts, random_state
        As in :func:`skcoral.decorrelate`.

    Returns
    -------
    SupportFloor

    Examples
    --------
    A chain needs its neighbours only, and with fewer coefficients something stays:

    >>> from skcoral.solvers.support import support_floor
    >>> R = [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]
    >>> support_floor(R, [(0, 1), (1, 2)]).vanish
    True
    >>> floor = support_floor(R, [(0, 2)])
    >>> floor.vanish, round(floor.squared_bound, 4), round(floor.worst_bound, 4)
    (False, 0.36, 0.3464)
    """
    matrix = check_matrix(R)
    mask, _ = read_restrictions(Problem.of(matrix), support)
    p = len(matrix)
    squared, worst = (
        solve_support(
            SupportProblem(
                Problem.of(matrix, criterion=criterion),
                np.zeros(p),
                mask,
                n_starts=n_starts,
                random_state=random_state,
            )
        )
        for criterion in ("squared", "worst")
    )
    pairs = max(p * (p - 1) / 2, 1.0)
    # Each number bounds the other: a value of one is attained by the transformation of the other.
    bounds = (proved_bound(matrix.R, each.rho_min, each.certificate) for each in (squared, worst))
    of_squared, of_worst = bounds
    low_squared = max(of_squared, of_worst**2)
    low_worst = max(of_worst, float(np.sqrt(of_squared / pairs)))
    exact = criteria.value("worst", squared.correlation) <= EXACT
    vanish = True if exact else False if low_squared > 0 else None
    return SupportFloor(squared.objective, low_squared, worst.objective, low_worst, vanish)
