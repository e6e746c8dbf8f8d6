"""One trade-off with its weights scaled, what was spent on it, and what a candidate proves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skcoral.bounds.tradeoff import plain_bound
from skcoral.core import criteria
from skcoral.core.arrays import (
    Array,
    cholesky_or_none,
    column_dots,
    identity,
    plus_diagonal,
    submatrix,
    to_device,
    to_host,
)
from skcoral.core.problem import Settings
from skcoral.solvers.exact import BestExact
from skcoral.solvers.tradeoff.binding import Candidate
from skcoral.solvers.tradeoff.feasible import (
    CLOSE,
    correlation_of,
    lifted,
    make_feasible,
    near_sources,
)
from skcoral.solvers.tradeoff.interior import Allowance
from skcoral.solvers.tradeoff.pairs import Quadratic
from skcoral.solvers.tradeoff.points import Problem, Solved

Index = NDArray[np.intp]


class Scaled:
    """Matrix, floors and criterion; the weights ``omega`` are divided by the largest, ``top``.

    ``problem`` is that of the ``active`` variables, those with a pair that counts; the others are
    left to the tie-break from the beginning. Steps and work are counted here.
    """

    def __init__(self, R: Any, floors: Array, omega: Array, top: float, settings: Settings) -> None:
        self.R, self.floors, self.omega, self.top = R, floors, omega, top
        self.criterion, self.callback = settings.criterion, settings.callback
        self.tol, self.max_iter = settings.tol, settings.max_iter
        self.used = 0
        self.work, self.most_work = 0.0, np.inf  # multiply-adds spent, and allowed
        self.completions: dict[bytes, BestExact] = {}  # the last one, by the floors that bind
        # Floors this close to one leave an interior that rounding fills.
        self.solved_floors = np.where(floors > CLOSE, 1.0, floors)
        own, positive = np.eye(len(floors), dtype=bool), floors > 0
        live = (omega > 0) & np.outer(positive, positive)
        self.even = bool(np.all(omega + own == 1.0))
        # Whether idle outputs are uncorrelated with all others at every optimum.
        every = bool(np.all(live | own | ~np.outer(positive, positive)))
        self.separable = self.criterion == "squared" and every
        self.active = np.flatnonzero(live.any(axis=0))
        whole = len(self.active) == len(floors)
        self.inner_omega = omega if whole else omega[np.ix_(self.active, self.active)]
        self.problem: Problem | None = None
        if len(self.active):
            self.problem = Problem(
                R if whole else submatrix(R, self.active, self.active),
                self.solved_floors[self.active],
                self.inner_omega > 0,
            )

    @classmethod
    def of(cls, R: Any, floors: Array, settings: Settings) -> Self | None:
        """Scale the weights; None if all of them are zero."""
        omega = criteria.pair_matrix(settings.pair_weights, len(floors))
        top = float(omega.max(initial=0.0))
        return None if top == 0.0 else cls(R, floors, omega / top, top, settings)

    @property
    def _exhausted(self) -> bool:
        return self.used >= self.max_iter or self.work >= self.most_work

    def _allowance(self, most_steps: int | None = None) -> Allowance:
        """What is left of steps and of work."""
        left = self.max_iter - self.used
        if most_steps is not None:
            left = min(max(left, 1), most_steps)
        return Allowance(left, self.most_work - self.work)

    def _charge(self, allowance: Allowance) -> None:
        self.used += allowance.spent_steps
        self.work += allowance.spent

    def _size(self, G: Any) -> float:
        """About the objective at ``TᵀRT``, or where that is smaller, what counts as zero."""
        assert self.problem is not None
        omega = self.problem.pairs if self.even else to_device(self.inner_omega, self.R)
        value = criteria.value_there(self.criterion, G, omega)
        return max(value, 1e-3 * self.tol / self.top, 1e-14)

    def _squares(self, problem: Problem, keep: Index) -> Quadratic:
        """The model of ``keep``, whose problem it is."""
        if self.even:
            return Quadratic(problem.pairs)
        weights = self.inner_omega[np.ix_(keep, keep)]
        stiffness = np.where(weights > 0, 1.0 / np.where(weights > 0, weights, 1.0), 0.0)
        return Quadratic(to_device(stiffness, self.R))

    def finish(self, candidate: Candidate) -> Solved:
        """Make the candidate feasible to the last digit, and evaluate both bounds."""
        T, H = to_device(candidate.T, self.R), to_device(candidate.H, self.R)
        lam = np.maximum(candidate.lam, 0.0)
        if self.criterion != "squared" or not self.even:
            H = to_device(criteria.admissible(self.criterion, to_host(H), self.omega), self.R)
        if np.any((self.floors > CLOSE) & (self.floors < 1.0)):
            near = near_sources(to_host(self.R), to_host(T), to_host(H), self.floors, lam)
            T, lam, H = near
            T, H = to_device(T, self.R), to_device(H, self.R)
        T = make_feasible(self.R, T, self.floors, candidate.binding)
        G = correlation_of(self.R, T, precise=not self.even)
        lam, H = lifted(lam, H, self.floors)
        omega = None if self.even else self.omega
        if cholesky_or_none(H) is None:
            # Rounding has spoiled the dual point; no criterion is negative.
            lam, H = 0.0 * lam, 1e-16 * identity(len(lam), self.R)
        fidelity = column_dots(self.R, T)
        bound = plain_bound(
            lam,
            H,
            self.floors,
            self.criterion,
            omega,
            X=T,
            fidelity=fidelity,
            defect=plus_diagonal(1.0 * G, -1.0),
            R=self.R,
        )
        value = criteria.value_there(self.criterion, G, to_device(self.omega, self.R))
        return Solved(
            T=np.asarray(to_host(T)),
            G=np.asarray(to_host(G)),
            fidelity=fidelity,
            objective=self.top * value,
            lower_bound=self.top * bound,
            lam=self.top * lam,
            H=self.top * np.asarray(to_host(H)),
            binding=candidate.binding,
            n_iter=self.used,
        )
