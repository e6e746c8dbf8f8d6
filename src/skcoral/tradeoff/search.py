"""The search for one trade-off: path, binding floors, completion, certificate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import beside, cholesky_or_none, column_dots, submatrix, to_host
from skcoral.results import Criterion
from skcoral.tradeoff import criteria
from skcoral.tradeoff.binding import (
    Candidate,
    DualPoint,
    binding_floors,
    settle,
    with_joined,
)
from skcoral.tradeoff.caps import correlation_of, on_caps
from skcoral.tradeoff.dual import dual_bound
from skcoral.tradeoff.interior import Progress, follow, follow_until
from skcoral.tradeoff.lexicographic import break_ties
from skcoral.tradeoff.newton import refine
from skcoral.tradeoff.outcome import Solved
from skcoral.tradeoff.pairs import Quadratic
from skcoral.tradeoff.points import Problem, State, start
from skcoral.tradeoff.sources import CLOSE, lifted, near_sources, subgradient, with_fixed

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Callback = Callable[[int, float, float], object]

# Shares of the objective that the products make up when the binding floors are guessed: early where
# Newton's method can take over, and further down the path where the guess was wrong.
_EARLY = (1e-3, 1e-5, 1e-8)
_LATE = (1e-13, 1e-17, 1e-21)
_TRIES = 4  # corrections of one guess
_FIRST = 1e-2  # multiplier of a floor that joins the binding ones, relative to the least of them


@dataclass(frozen=True)
class Warm:
    """Where a neighbouring problem ended: multipliers and H of all variables, and what bound."""

    lam: Array
    H: Any
    binding: NDArray[np.bool_]


class Search:
    """One problem, its weights scaled to a largest one of one, and the steps spent on it."""

    def __init__(
        self,
        R: Any,
        floors: Array,
        omega: Array,
        criterion: Criterion,
        top: float,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> None:
        self.R, self.floors, self.omega, self.criterion, self.top = R, floors, omega, criterion, top
        # Floors this close to one leave an interior that rounding fills.
        self.solved_floors = np.where(floors > CLOSE, 1.0, floors)
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.used = 0
        self.even = bool(np.all(omega + np.eye(len(omega)) == 1.0))
        positive = floors > 0
        live = (omega > 0) & np.outer(positive, positive)
        # A variable none of whose pairs counts is left to the tie-break from the beginning.
        self.active = np.flatnonzero(live.any(axis=0))
        self.inner_omega = omega[np.ix_(self.active, self.active)]
        self.omega_there = beside(self.inner_omega, R)
        self.problem: Problem | None = None
        if len(self.active):
            self.problem = Problem(
                submatrix(R, self.active, self.active),
                self.solved_floors[self.active],
                self.inner_omega > 0,
            )

    @classmethod
    def of(
        cls,
        R: Any,
        floors: Array,
        criterion: Criterion,
        pair_weights: Array | None,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> Search | None:
        """Scale the weights; None if all of them are zero."""
        omega = criteria.pair_matrix(pair_weights, len(floors))
        top = float(omega.max(initial=0.0))
        if top == 0.0:
            return None
        return cls(R, floors, omega / top, criterion, top, tol, max_iter, callback)

    def run(self) -> Solved:
        """Follow the path from a cold start."""
        problem = self.problem
        if problem is None:
            return self.finish(self._undecided(self.active[:0], None, 0.0))
        if problem.fixed.all():
            return self.finish(self._at_sources())
        state = start(problem, self.criterion, self.inner_omega)
        early = _EARLY if self.criterion == "squared" else ()
        best: Solved | None = None
        for share in (*early, *_LATE):
            progress = self._follow(problem, state, share)
            state = progress.state
            guess = binding_floors(problem, state, self._size(state))
            final = share in _LATE or self.criterion != "squared"
            candidate = self.attempt(problem, state, guess, final=final)
            solved = self.finish(candidate)
            best = solved if best is None else best.joined(solved)
            if best.certified or self.used >= self.max_iter or not progress.done:
                break
        assert best is not None
        return replace(best, n_iter=self.used)

    def _follow(self, problem: Problem, state: State, share: float) -> Progress:
        progress = follow_until(
            problem,
            state,
            share=share,
            size_of=self._size,
            max_iter=self.max_iter - self.used,
            careful=share != _EARLY[0],
            report=self._reporter(),
        )
        self.used += progress.n_iter
        return progress

    def _size(self, state: State) -> float:
        """About the objective at a state, or where that is smaller, what counts as zero."""
        value = criteria.value_there(self.criterion, state.W.T @ state.W, self.omega_there)
        return max(value, 1e-3 * self.tol / self.top, 1e-14)

    def attempt(
        self, problem: Problem, state: State, guess: NDArray[np.bool_], *, final: bool
    ) -> Candidate:
        """Solve for the floors that seem to bind, and complete the others; correct the guess.

        Only a ``final`` attempt looks for what the criterion leaves open.
        """
        for _ in range(_TRIES):
            keep = np.flatnonzero(guess)
            solved = self._solve_binding(problem, state, keep)
            if solved is None:
                break
            dual, T, idle = solved
            if idle.any():
                guess = guess.copy()
                guess[keep[idle]] = False
                continue
            candidate = settle(self.R, self.floors, dual.members, T, dual)
            if not candidate.settled and final:
                candidate = self._undecided(dual.members, (dual, T), self._worst(dual.members, T))
            if candidate.settled:
                return candidate
            joins = np.isin(self.active, candidate.missed) & ~guess
            if not joins.any():
                break
            if self.criterion == "squared" and len(dual.members):
                small = _FIRST * float(np.min(dual.lam[dual.lam > 0], initial=1.0))
                H = with_joined(problem.R, keep, dual.H, T, np.flatnonzero(joins), small)
                state = replace(state, H=H)
            guess = guess | joins
        # Not separated yet: all floors bind as far as one can tell.
        dual, T = self._all_of(problem, state)
        return settle(self.R, self.floors, dual.members, T, dual)

    def _squares(self, keep: Index) -> Quadratic:
        weights = self.inner_omega[np.ix_(keep, keep)]
        stiffness = np.where(weights > 0, 1.0 / np.where(weights > 0, weights, 1.0), 0.0)
        return Quadratic(beside(stiffness, self.R))

    def _solve_binding(
        self, problem: Problem, state: State, keep: Index
    ) -> tuple[DualPoint, Any, NDArray[np.bool_]] | None:
        """Solve for the floors ``keep`` alone; also tells which of them turn out idle."""
        if not np.any(self.inner_omega[np.ix_(keep, keep)] > 0):
            keep = np.flatnonzero(problem.fixed)
        members = self.active[keep]
        nothing = np.zeros(len(keep), dtype=bool)
        if not len(keep):
            return DualPoint(members, np.zeros(0), np.zeros((0, 0))), None, nothing
        if problem.fixed[keep].all():
            dual = with_fixed(members, np.zeros(len(keep)), self._kernel(members), ~nothing)
            return dual, beside(np.eye(len(keep)), self.R), nothing
        if isinstance(state.model, Quadratic):
            return self._refined(problem, state.H, keep)
        sub = problem.restricted(keep)
        size = self._size(state)
        progress = follow(
            sub,
            state.restricted(sub, keep),
            goal=_LATE[0] * size,
            tolerance=1e-11 * size,
            max_iter=max(self.max_iter - self.used, 1),
        )
        self.used += progress.n_iter
        if not progress.total <= _EARLY[-1] * size:
            return None
        at = progress.state
        dual = with_fixed(members, np.asarray(to_host(at.lam)), at.H, sub.fixed)
        return dual, at.T, ~binding_floors(sub, at, size)

    def _refined(
        self, problem: Problem, H: Any, keep: Index
    ) -> tuple[DualPoint, Any, NDArray[np.bool_]] | None:
        """Newton's method for the floors ``keep`` from ``H`` of all, for the squared criterion."""
        sub = problem.restricted(keep) if len(keep) < problem.p else problem
        point, steps = refine(
            sub,
            submatrix(H, keep, keep),
            self._squares(keep),
            max_iter=max(self.max_iter - self.used, 1),
        )
        self.used += steps
        if point is None:
            return None
        lam = np.asarray(to_host(point.lam))
        dual = with_fixed(self.active[keep], lam, point.H, sub.fixed)
        return dual, point.T, ~sub.fixed & (lam <= 0)

    def _all_of(self, problem: Problem, state: State) -> tuple[DualPoint, Any]:
        lam = np.asarray(to_host(state.lam))
        return with_fixed(self.active, lam, state.H, problem.fixed), state.T

    def _undecided(
        self, members: Index, decided: tuple[DualPoint, Any] | None, worst: float
    ) -> Candidate:
        """Add the outputs that the criterion leaves open, by the least sum of squares."""
        dual, T = decided or (DualPoint(members, np.zeros(0), np.zeros((0, 0))), None)
        more = break_ties(
            self.R, self.floors, self.omega, members, T, worst, max(self.max_iter - self.used, 1)
        )
        if more is not None:
            self.used += more.n_iter
            members, T = more.members, more.T
        return settle(self.R, self.floors, members, T, dual)

    def _worst(self, members: Index, T: Any) -> float:
        """The worst pair among the decided outputs; zero for the other criteria."""
        if self.criterion != "worst" or not len(members):
            return 0.0
        G = np.asarray(to_host(T.T @ submatrix(self.R, members, members) @ T))
        return criteria.value("worst", G, self.omega[np.ix_(members, members)])

    def _kernel(self, members: Index) -> Array:
        """A subgradient of the criterion at the sources themselves."""
        block = np.ix_(members, members)
        return subgradient(
            np.asarray(to_host(submatrix(self.R, members, members))),
            self.criterion,
            self.omega[block],
        )

    def _at_sources(self) -> Candidate:
        """Every floor that counts is one: outputs are sources, the others are completed exactly.

        The bound tends to the objective as the multipliers grow, ``λ = s`` and ``H = s I + K`` with
        K a subgradient of the criterion at R. What grows is added at the end.
        """
        every = np.ones(len(self.active), dtype=bool)
        dual = with_fixed(self.active, np.zeros(len(every)), self._kernel(self.active), every)
        T = beside(np.eye(len(every)), self.R)
        candidate = settle(self.R, self.floors, self.active, T, dual)
        if candidate.settled:
            return candidate
        return self._undecided(self.active, (dual, T), 0.0)

    def from_neighbour(self, warm: Warm) -> Solved | None:
        """Newton's method from the dual point of a neighbouring problem; None if it is too far."""
        problem = self.problem
        if problem is None or problem.fixed.any():
            return None
        H = beside(np.asarray(to_host(warm.H))[np.ix_(self.active, self.active)] / self.top, self.R)
        keep = np.flatnonzero(warm.binding[self.active])
        found = self._refined(problem, H, keep) if len(keep) else None
        if found is None or found[2].any():
            return None
        dual, T, _ = found
        candidate = settle(self.R, self.floors, dual.members, T, dual)
        solved = self.finish(candidate) if candidate.settled else None
        return solved if solved is not None and solved.certified else None

    def finish(self, candidate: Candidate) -> Solved:
        """Make the candidate feasible to the last digit, and evaluate both bounds."""
        T, H = beside(candidate.T, self.R), beside(candidate.H, self.R)
        lam = np.maximum(candidate.lam, 0.0)
        if self.criterion != "squared" or not self.even:
            H = beside(criteria.admissible(self.criterion, to_host(H), self.omega), self.R)
        if np.any((self.floors > CLOSE) & (self.floors < 1.0)):
            near = near_sources(to_host(self.R), to_host(T), to_host(H), self.floors, lam)
            T, lam, H = near
            T, H = beside(T, self.R), beside(H, self.R)
        T = on_caps(self.R, T, self.floors, candidate.binding)
        G = correlation_of(self.R, T)
        lam, H = lifted(lam, H, self.floors)
        omega = None if self.even else self.omega
        if cholesky_or_none(H) is None:
            # Rounding has spoiled the dual point; no criterion is negative.
            lam, H = 0.0 * lam, beside(1e-16 * np.eye(len(lam)), self.R)
        bound = dual_bound(
            self.R, self.floors, lam, H, self.criterion, omega, near=T, near_correlation=G
        )
        value = criteria.value_there(self.criterion, G, beside(self.omega, self.R))
        return Solved(
            T=np.asarray(to_host(T)),
            G=np.asarray(to_host(G)),
            fidelity=column_dots(self.R, T),
            objective=self.top * value,
            lower_bound=self.top * bound,
            lam=self.top * lam,
            H=self.top * np.asarray(to_host(H)),
            binding=candidate.binding,
            n_iter=self.used,
        )

    def _reporter(self) -> Callable[[State], object] | None:
        callback, problem = self.callback, self.problem
        if callback is None or problem is None:
            return None

        calls = itertools.count(self.used + 1)

        def report(state: State) -> None:
            dual, T = self._all_of(problem, state)
            solved = self.finish(settle(self.R, self.floors, dual.members, T, dual))
            callback(next(calls), solved.objective, solved.lower_bound)

        return report
