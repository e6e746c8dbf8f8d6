"""One trade-off with its weights scaled: what completes a point, and what that proves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.bounds.tradeoff import plain_bound
from skcoral.core import criteria
from skcoral.core.arrays import (
    Array,
    Index,
    cholesky_or_none,
    column_dots,
    identity,
    plus_diagonal,
    submatrix,
    to_device,
    to_host,
    zeros,
)
from skcoral.core.problem import Settings
from skcoral.core.solution import Certificate, Floors, Goal, Solution
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.exact import BestExact
from skcoral.solvers.tradeoff.binding import (
    CLOSE,
    Candidate,
    DualPoint,
    binding_floors,
    complete,
    correlation_of,
    decided_outputs,
    in_rows,
    lifted,
    make_feasible,
    near_sources,
    with_fixed,
)
from skcoral.solvers.tradeoff.interior import Allowance
from skcoral.solvers.tradeoff.lexicographic import break_ties
from skcoral.solvers.tradeoff.newton import Stationary
from skcoral.solvers.tradeoff.points import Problem, Quadratic, State

Binding = tuple[DualPoint, Any, Index]  # with T, and which floors of the problem they are

_AIM = 0.9  # of the gap that "optimal" promises, so that rounding does not decide a re-check
_TIE_STEPS = 150  # after which there is taken to be no feasible point


@dataclass(frozen=True)
class Warm:
    """Where a neighbouring problem ended: H of all variables, and which floors bound."""

    H: Any
    binding: NDArray[np.bool_]


@dataclass(frozen=True)
class Solved:
    """A feasible transformation with its dual point."""

    T: Array
    G: Array
    fidelity: Array
    objective: float
    lower_bound: float
    lam: Array
    H: Array
    binding: NDArray[np.bool_]
    n_iter: int
    unique: bool = True  # whether ties were broken, so that no other answer is as good

    @property
    def gap(self) -> float:
        """``objective - lower_bound``."""
        return self.objective - self.lower_bound

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.gap <= _AIM * OPTIMAL_GAP * max(1.0, self.objective)

    def joined(self, other: Solved) -> Solved:
        """Return the better transformation of the two with the better bound."""
        best = self if self.objective <= other.objective else other
        return best.proved_by(self if self.lower_bound >= other.lower_bound else other)

    def proved_by(self, other: Solved) -> Solved:
        """Return this transformation with the dual point and the bound of another."""
        return replace(
            self, lower_bound=other.lower_bound, lam=other.lam, H=other.H, binding=other.binding
        )

    def prices(self, floors: Array) -> Array:
        """∂objective/∂ρ_j = 2 λ_j; infinite for a floor of one that costs anything.

        Near one the objective falls like the square root of ``1 - ρ_j``: its slope has no bound.
        """
        prices = 2.0 * self.lam
        ones = floors >= 1.0
        costs = np.max(np.abs(criteria.off(self.H)), axis=1, initial=0.0) > 0
        prices[ones] = np.where(costs[ones], np.inf, 0.0)
        return prices

    def solution(self, floors: Array, settings: Settings, goal: Goal | None = None) -> Solution:
        """As an answer for these floors, with (★) for a bound."""
        return Solution(
            T=self.T,
            correlation=self.G,
            fidelity=self.fidelity,
            rho_min=floors,
            objective=self.objective,
            lower_bound=self.lower_bound,
            certificate=Certificate(
                kind="tradeoff",
                arrays={"multipliers": self.lam, "H": self.H},
                info={"criterion": settings.criterion},
            ),
            n_iter=self.n_iter,
            slopes=2.0 * self.lam,
            converged=self.n_iter < settings.max_iter,
            unique=self.unique,
            goal=goal or Floors(),
        )


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

    def _completed(self, found: Binding, *, final: bool) -> Candidate:
        """Complete the other outputs, or at last what the squares leave open."""
        dual, T, _ = found
        candidate = complete(self.R, self.floors, T, dual, known=self.completions)
        if candidate.complete or not final:
            return candidate
        T = zeros((len(self.floors), 0), self.R) if T is None else T
        return self._undecided(dual, in_rows(T, dual.members, len(self.floors)))

    def _decided(self, problem: Problem, state: State) -> Candidate:
        """The outputs with a price at the end of a path, and the others beside them."""
        binding = binding_floors(problem, state, self._size(problem.gram(state.T)))
        keep, room = np.flatnonzero(binding), np.zeros(problem.p)
        if self.criterion == "absolute":
            # Pairs of weight zero may correlate where all that count have a price and vanish.
            decided, room = decided_outputs(problem, state, self.inner_omega)
            keep, room = np.flatnonzero(decided | binding), np.where(binding, 0.0, room)
        p, every, members = len(self.floors), np.arange(problem.p), self.active[keep]
        dual = with_fixed(
            members,
            np.asarray(to_host(state.lam))[keep],
            submatrix(state.H, keep, keep),
            problem.fixed[keep],
        )
        pinned = np.isin(every, keep)
        # On their rims first: the completed outputs are uncorrelated with what they are beside.
        T = make_feasible(problem.R, state.T, problem.floor_values, pinned)
        T = in_rows(submatrix(T, every, keep), self.active, p)
        missed = np.zeros(p)
        missed[self.active] = room
        candidate = complete(self.R, self.floors, T, dual, room=missed)
        return candidate if candidate.complete else self._undecided(dual, T, state)

    def _undecided(self, dual: DualPoint, T: Any, state: State | None = None) -> Candidate:
        """Add the outputs that the criterion leaves open, by the least sum of squares.

        ``T`` are the decided outputs, with a row for every variable, and ``state`` is where their
        path has ended.
        """
        allowance = self._allowance(_TIE_STEPS)
        near = None if state is None else (state, self.active)
        given = self.R, self.floors, self.omega, dual.members, T, self._worst(dual.members, T)
        found = None
        try:
            found = break_ties(*given, allowance, near)
        except sla.LinAlgError:
            pass  # the tie-break has no part in the proof
        finally:
            self._charge(allowance)
        if found is None:
            return complete(self.R, self.floors, T, dual)
        return complete(self.R, self.floors, found.T, dual, found.members, room=found.room)

    def _worst(self, members: Index, T: Any) -> float:
        """The worst pair among the decided outputs; zero for the other criteria."""
        if self.criterion != "worst" or not len(members):
            return 0.0
        G = np.asarray(to_host(T.T @ self.R @ T))
        return criteria.value("worst", G, self.omega[np.ix_(members, members)])

    def _reporter(self, problem: Problem, members: Index) -> Callable[[Any], object] | None:
        callback = self.callback
        if callback is None:
            return None

        calls = itertools.count(self.used + 1)

        def report(at: State | Stationary) -> None:
            solved = self.finish(complete(self.R, self.floors, *dual_of(at, members, problem)))
            callback(next(calls), solved.objective, solved.lower_bound)

        return report


def dual_of(at: State | Stationary, members: Index, problem: Problem) -> tuple[Any, DualPoint]:
    """Transformation and dual point of ``members``, whose problem it is."""
    return at.T, with_fixed(members, np.asarray(to_host(at.lam)), at.H, problem.fixed)
