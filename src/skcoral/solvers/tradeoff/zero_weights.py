"""Pairs of weight zero: floors above ρ★ at which all pairs that count can be uncorrelated.

Where the criterion vanishes does not depend on which criterion it is. The sum of absolute values
leaves zero at a positive slope, so that its convex curve tells the highest such floor to all
digits, by Newton's method from above; its dual point there, of any scale, proves that no criterion
vanishes at higher floors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.problem import Settings
from skcoral.solvers.exact import ExactThreshold
from skcoral.solvers.tradeoff.points import Solved
from skcoral.solvers.tradeoff.solver import solve_floors

_RESOLVED = 1e-8  # how closely the highest floor is enclosed
_UNCORRELATED = 1e-10  # sum of absolute correlations, relative to that of the sources
_MAX_FLOORS = 60  # tried at most; Newton's method needs about eight
_SHIFT = 1e-9  # by which a finite multiple of the dual point overstates that floor for squares


class ZeroWeights:
    """The least sum of absolute correlations of the pairs that count, at common floors."""

    def __init__(
        self, R: Any, settings: Settings, threshold: ExactThreshold, everything: float
    ) -> None:
        self._R, self._threshold = R, threshold
        counts = (criteria.pair_matrix(settings.pair_weights, R.shape[0]) > 0).astype(np.float64)
        self._options = replace(settings, criterion="absolute", pair_weights=counts, callback=None)
        self._weights, self._criterion = settings.pair_weights, settings.criterion
        self._solved: dict[float, Solved] = {}
        self._largest = everything
        self._above = 1.0  # the lowest floor at which they do not vanish
        self.highest = self._find()

    def _at(self, rho: float) -> Solved:
        if rho not in self._solved:
            floors = np.full(self._R.shape[0], rho)
            self._solved[rho] = solve_floors(
                self._R, floors, self._options, refused=self._threshold
            )
        return self._solved[rho]

    def _vanishes(self, rho: float) -> bool:
        return self._at(rho).objective <= _UNCORRELATED * self._largest

    def _find(self) -> float:
        """Enclose the highest floor at which the pairs that count vanish; return the lower end."""
        lower, upper = self._threshold.lower, 1.0
        if self._vanishes(1.0):
            return 1.0
        rho = _between(lower, upper)
        for _ in range(_MAX_FLOORS):
            if upper - lower <= _RESOLVED:
                break
            if self._vanishes(rho):
                lower, rho = rho, _between(rho, upper)
                continue
            at, width = self._at(rho), upper - lower
            self._above = min(self._above, rho)
            slope = 2.0 * float(at.lam.sum())
            # The tangent of a convex function lies below it: its root lies above the true one.
            root = rho - max(at.lower_bound, 0.0) / slope if slope > 0 else rho
            step, upper = rho - root, min(upper, max(root, lower))
            if step < 10.0 * _RESOLVED:
                rho = max(upper - 0.5 * _RESOLVED, lower)  # next to the root: its other side
            else:
                rho = upper if upper - lower < 0.5 * width else _between(lower, upper)
        return lower

    def solve(self, rho: float) -> Solved:
        """Return outputs at a floor up to the highest one; their pairs that count vanish."""
        at = self._at(rho)
        p = len(at.lam)
        return replace(
            at,
            objective=criteria.value(self._criterion, at.G, self._weights),
            lower_bound=0.0,
            lam=np.zeros(p),
            H=np.zeros((p, p)),
            binding=np.zeros(p, dtype=bool),
        )

    def proof(self) -> tuple[Array, Array, float]:
        """Multipliers and H for the criterion that prove the highest floor, and that floor.

        Every multiple of a dual point of the absolute sum that lies in the domain of the criterion
        is one of the criterion; squares charge its square.
        """
        at = self._at(self._above)
        slope = 2.0 * float(at.lam.sum())
        omega = criteria.pair_matrix(self._weights, len(at.lam))
        if self._criterion == "squared":
            charge = criteria.conjugate("squared", at.H, self._weights)
            scale = _SHIFT * slope / max(charge, 1e-300)
        else:
            charge, scale = 0.0, 1.0 / criteria.gauge(self._criterion, at.H, omega)
            scale *= 1.0 - 1e-13
        top = self._above - (at.lower_bound - scale * charge) / slope
        return scale * at.lam, scale * at.H, min(top, 1.0)


def _between(lower: float, upper: float) -> float:
    """The floor half-way in angle."""
    return float(np.cos(0.5 * (np.arccos(lower) + np.arccos(upper))))
