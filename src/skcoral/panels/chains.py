"""Chains of neighbouring windows: one matrix of each at a time, from the solutions before it.

The floors decide what is solved: the threshold alone, the largest mean fidelity where exact
decorrelation allows them, the trade-off above. What a batch does not certify is solved singly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral import api
from skcoral.panels.batched_exact import largest_means, thresholds
from skcoral.panels.batched_tradeoff import above_thresholds, tradeoffs
from skcoral.panels.batched_worst_pair import beyond_squares, worst_pairs
from skcoral.panels.batches import Mask
from skcoral.results import OPTIMAL_GAP, Array, Decorrelation

_LARGEST = 24  # columns up to which trade-offs are solved in batches
_EDGE = 1e-7  # floors this close to the threshold are not solved here


@dataclass
class Decorrelations:
    """Transformations of a batch, where ``solved``; ``exact`` ones leave no correlation.

    ``lower`` and ``upper`` are the bounds of ρ★, ``bound`` is that of the residual.
    """

    T: Array
    lower: Array
    upper: Array
    bound: Array
    exact: Mask
    solved: Mask


class Chains:
    """The latest solutions of ``n`` chains of ``p × p`` matrices."""

    def __init__(self, n: int, p: int, floors: Array | None, criterion: str) -> None:
        self.floors, self.criterion = floors, criterion
        self.batched = criterion in ("squared", "worst") and p <= _LARGEST
        self.weights, self.mean_weights = np.ones((n, p)), np.ones((n, p))
        self.multipliers = np.zeros((n, p))
        self.H = np.zeros((n, p, p) if self.batched else (n, 0, 0))
        self.N = np.ones(n)  # of the worst pair
        self.has_dual = np.zeros(n, dtype=bool)
        self.single: dict[int, Decorrelation] = {}

    def solve(self, on: Any, R: Array) -> Decorrelations:
        """Solve the next matrix of each chain ``on``."""
        th = thresholds(R, self.weights[on])
        for k in np.flatnonzero(~th.solved).tolist():
            single = api.threshold(R[k])
            th.lower[k], th.upper[k] = single.lower, single.upper
            th.weights[k], th.T[k] = single.weights, single.T
        self.weights[on] = th.weights
        n = len(on)
        found = Decorrelations(
            th.T, th.lower, th.upper, np.zeros(n), np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        )
        if self.floors is None:
            found.solved[:] = th.upper - th.lower <= OPTIMAL_GAP
            return found
        above = self.floors.min() >= th.upper + _EDGE
        some = np.flatnonzero(~above)
        if len(some):
            above[some] = self._solve_exact(on, R, some, found, th.weights)
        found.exact[above] = False
        at = np.flatnonzero(above)
        if len(at):
            found.T[at], found.bound[at], found.solved[at] = self._solve_tradeoffs(
                on[at], R[at], th.weights[at]
            )
        self.has_dual[on] &= above  # an exact solution is no neighbour of a trade-off
        return found

    def _solve_exact(
        self, on: Any, R: Array, some: Any, found: Decorrelations, weights: Array
    ) -> Mask:
        """Solve ``some`` for the largest mean, in place; returns which floors are out of reach.

        The ``weights`` that prove the latter are where their trade-off begins.
        """
        assert self.floors is not None
        floors = np.broadcast_to(self.floors, (len(some), len(self.floors)))
        means = largest_means(R[some], floors, self.mean_weights[on[some]])
        self.mean_weights[on[some]] = np.where(means.solved[:, None], means.weights, 1.0)
        below = self.floors.max() <= found.lower[some] - _EDGE
        kept = means.solved & (below | (means.weights.max(axis=1) < 1e4))
        found.T[some[kept]], found.solved[some[kept]] = means.T[kept], True
        refuted = means.refuted & ~below
        heavy = means.weights[refuted]
        heavy = np.where(heavy > 0.01 * heavy.max(axis=1, keepdims=True), heavy, 0.0)
        weights[some[refuted]] = heavy
        return refuted

    def _solve_tradeoffs(self, on: Any, R: Array, weights: Array) -> tuple[Array, Array, Mask]:
        """Transformations, bounds and success: from the chains' dual points, or else cold."""
        T, bound, solved = np.empty(R.shape), np.zeros(len(on)), np.zeros(len(on), dtype=bool)
        for warm in (True, False) if self.batched else ():
            at = np.flatnonzero(~solved & (self.has_dual[on] | (not warm)))
            if len(at):
                T[at], bound[at], solved[at] = self._solve_batch(on[at], R[at], weights[at], warm)
        for k in np.flatnonzero(~solved).tolist():
            chain = int(on[k])
            single = api.decorrelate(
                R[k], self.floors, criterion=self.criterion, warm=self.single.get(chain)
            )
            self.single[chain] = single
            T[k], bound[k], solved[k] = single.T, single.lower_bound, single.status == "optimal"
            if solved[k] and self.batched and self.criterion == "squared":
                self.multipliers[chain] = single.certificate.arrays["multipliers"]
                self.H[chain] = single.certificate.arrays["H"]
                self.has_dual[chain] = True
        return T, bound, solved

    def _solve_batch(
        self, on: Any, R: Array, weights: Array, warm: bool
    ) -> tuple[Array, Array, Mask]:
        assert self.floors is not None
        start: Any = (self.multipliers[on], self.H[on])
        dual: Any
        if not warm:
            start = above_thresholds(R, self.floors, weights)
        if self.criterion == "squared" or not warm:
            found = tradeoffs(R, self.floors, *start)
            dual = found.multipliers, found.H
        if self.criterion == "worst":
            if not warm:
                *start, self.N[on] = beyond_squares(R, self.floors, found)
            found, *dual = worst_pairs(R, self.floors, start[0], start[1], self.N[on])
        kept = found.solved
        self.multipliers[on[kept]], self.H[on[kept]] = (side[kept] for side in dual)
        self.has_dual[on[kept]] = True
        return found.T, found.lower_bound, kept
