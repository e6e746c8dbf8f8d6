"""Floors above what exact decorrelation allows: the least residual correlation, with its proof.

One interior-point method follows the central path for every criterion. Once the products separate
the floors that bind from those that do not, the binding ones are solved alone and the others are
completed exactly. The completion and the certificate judge the guess; where it was wrong, the path
is followed further.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.problem import Settings
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Solution
from skcoral.solvers.exact import BestExact, ExactThreshold
from skcoral.solvers.tradeoff.points import Solved, Warm
from skcoral.solvers.tradeoff.search import Search


def solve_tradeoff(
    R: Any, floors: Array, settings: Settings, *, refused: BestExact | None = None
) -> Solution:
    """Least residual correlation for floors that exact decorrelation cannot meet.

    The work is done where ``R`` lies; the result is in NumPy. For the criterion "worst", the answer
    has the least sum of squares among the optima. ``refused`` is how exact decorrelation was
    refused; it is computed if not given.
    """
    return solve_floors(R, floors, settings, refused=refused).solution(floors, settings)


def solve_from_neighbour(
    R: Any, floors: Array, neighbour: Decorrelation, settings: Settings
) -> Solution | None:
    """Try Newton's method from the dual point of a neighbouring answer; None if it is too far.

    A certified answer with a residual also proves that the floors are out of reach of exact
    decorrelation.
    """
    arrays = neighbour.certificate.arrays
    if settings.criterion != "squared" or neighbour.certificate.kind != "tradeoff":
        return None
    search = Search.of(R, floors, settings)
    warm = Warm(arrays["H"], arrays["multipliers"] > 0)
    solved = None if search is None else search.from_neighbour(warm)
    if solved is None or not solved.lower_bound > 0.0:
        return None
    return solved.solution(floors, settings)


def solve_floors(
    R: Any,
    floors: Array,
    settings: Settings,
    *,
    warm: Warm | None = None,
    rough: bool = False,
    refused: BestExact | ExactThreshold | None = None,
) -> Solved:
    """Solve, from a neighbouring problem if there is one; ``rough``: no further than to ``tol``."""
    search = Search.of(R, floors, settings)
    if search is None:
        # No pair counts: the objective is zero, and ties go to the least sum of squares.
        plain = replace(settings, criterion="squared", pair_weights=None, callback=None)
        p = len(floors)
        return replace(
            solve_floors(R, floors, plain),
            objective=0.0,
            lower_bound=-1e-15 * p,
            lam=np.zeros(p),
            H=1e-15 * np.eye(p),
        )
    search.exact, search.rough = refused, rough
    near = None
    if warm is not None and settings.criterion == "squared":
        near = search.from_neighbour(warm)
    return search.run() if near is None else near
