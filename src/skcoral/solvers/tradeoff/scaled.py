"""One trade-off with its weights scaled, and what a candidate attains and proves in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skcoral.bounds.tradeoff import plain_bound
from skcoral.core import criteria
from skcoral.core.arrays import (
    Array,
    cholesky_or_none,
    column_dots,
    identity,
    plus_diagonal,
    to_device,
    to_host,
)
from skcoral.core.criteria import Criterion
from skcoral.core.problem import Settings
from skcoral.solvers.tradeoff.binding import Candidate
from skcoral.solvers.tradeoff.feasible import (
    CLOSE,
    correlation_of,
    lifted,
    make_feasible,
    near_sources,
)
from skcoral.solvers.tradeoff.points import Solved


@dataclass(frozen=True)
class Scaled:
    """Matrix, floors and criterion; the weights ``omega`` are divided by the largest, ``top``."""

    R: Any
    floors: Array
    omega: Array
    top: float
    criterion: Criterion

    @classmethod
    def of(cls, R: Any, floors: Array, settings: Settings) -> Scaled | None:
        """Scale the weights; None if all of them are zero."""
        omega = criteria.pair_matrix(settings.pair_weights, len(floors))
        top = float(omega.max(initial=0.0))
        return None if top == 0.0 else cls(R, floors, omega / top, top, settings.criterion)

    @cached_property
    def even(self) -> bool:
        """Whether all pairs weigh the same."""
        return bool(np.all(self.omega + np.eye(len(self.omega)) == 1.0))

    def finish(self, candidate: Candidate, n_iter: int) -> Solved:
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
            n_iter=n_iter,
        )
