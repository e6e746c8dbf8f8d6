"""The search for one trade-off: floors above what exact decorrelation allows.

Squares are entered by Newton's method from an exact decorrelator, as if all floors were binding.
Where that does not arrive, and for the other criteria, an interior-point method follows the central
path to its end: the outputs with a price are the columns of T there, and the others are completed
exactly. The certificate judges both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

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
    library,
    plus_diagonal,
    submatrix,
    to_device,
    to_host,
    zeros,
)
from skcoral.core.linalg import gram_defect
from skcoral.core.problem import Settings
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Solution
from skcoral.solvers.exact import BestExact, ExactThreshold, best_exact
from skcoral.solvers.tradeoff.binding import (
    CLOSE,
    Candidate,
    DualPoint,
    binding_floors,
    complete,
    correlation_of,
    decided_outputs,
    enlarged,
    in_rows,
    make_feasible,
    near_sources,
    with_fixed,
    with_joined,
)
from skcoral.solvers.tradeoff.interior import Allowance, Progress, follow, start
from skcoral.solvers.tradeoff.lexicographic import break_ties
from skcoral.solvers.tradeoff.newton import Refined, Stationary, entry, refine
from skcoral.solvers.tradeoff.points import Problem, Quadratic, State
from skcoral.solvers.tradeoff.solved import Solved

# The share at which the binding floors are guessed for the squares, and by how much of the
# objective the equations may be violated. A tenth of it, and ten times, take as many steps on 26
# problems of 150 variables, as the completion corrects a guess.
_EARLY = 1e-4
# The share of the objective that the products make up where the path is judged. At ten times it,
# one in forty problems that are kept for being hard stays open; the absolute sum needs a smaller
# one, as it completes outputs whose correlations are of this order.
_SHARES = {"squared": 1e-11, "absolute": 1e-13, "worst": 1e-11}
# Residuals of Newton's method: where the completion is judged, where a gap need only be within the
# tolerance, and where no further digit is expected. Ten times the first saves a tenth of the steps
# on the same problems, a tenth of it costs one; neither leaves any of them open.
_PASSING, _ROUGH, _ACCURATE = 1e-2, 2e-5, 1e-11
# One in so many of the steps allowed may go into one attempt by Newton's method. At half of that,
# chains of several hundred close variables begin the path when they have nearly arrived.
_NEWTON_SHARE = 4
# Variables from which worst pairs and absolute sums are followed roughly at first too, and the
# share up to which they are: the worst pair of 200 variables of 30 rows takes 14 seconds instead of
# 22, and 17 at a hundred times the share. Small singular matrices would end far from the path.
_FAR = 1e-6
_LARGE = 64
_TIE_BREAK = 0.5  # of the work up to a proof that may be spent on choosing among the optima
_UNNOTICED = 2e9  # multiply-adds, a fraction of a second, that may be spent on it in any case


class Search:
    """One problem; its weights ``omega``, None if equal, are divided by the largest, ``top``.

    The ``active`` variables are those with a pair that counts; the others are left to the tie-break
    from the beginning. ``exact`` has an exact decorrelator of all variables if one is known, and a
    ``rough`` search ends as soon as the gap is within the tolerance. One for the bound alone
    (``bound_only``) has the outputs that it suggests, and breaks no ties.

    Large matrices that are needed once are handed on in lists, and taken out of them.
    """

    def __init__(
        self,
        R: Any,
        floors: Array,
        settings: Settings,
        *,
        exact: list[BestExact | ExactThreshold] | None = None,
        rough: bool = False,
        bound_only: bool = False,
    ) -> None:
        omega = criteria.pair_matrix(settings.pair_weights, len(floors))
        self.top = float(omega.max(initial=0.0)) or 1.0
        self.R, self.floors = R, floors
        self.criterion, self.callback = settings.criterion, settings.callback
        self.tol, self.exact, self.p = settings.tol, exact or [], len(floors)
        self.rough, self.bound_only = rough, bound_only
        self.allowance = Allowance(settings.max_iter)
        own, positive = np.eye(len(floors), dtype=bool), floors > 0
        live = (omega > 0) & np.outer(positive, positive)
        even = bool(np.all(omega / self.top + own == 1.0))
        self.omega = None if even else omega / self.top
        # Whether idle outputs are uncorrelated with all others at every optimum.
        every = bool(np.all(live | own | ~np.outer(positive, positive)))
        self.separable = self.criterion == "squared" and every
        self.active = np.flatnonzero(live.any(axis=0))

    @cached_property
    def problem(self) -> Problem:
        """That of the active variables; floors next to one leave an interior of rounding."""
        active, floors = self.active, np.where(self.floors > CLOSE, 1.0, self.floors)
        R = self.R if len(active) == self.p else submatrix(self.R, active, active)
        return Problem(R, floors[active], criteria.weights_among(self.omega, active) > 0)

    def run(self) -> Solved:
        """Solve from a cold start."""
        problem = self.problem
        if problem.fixed.all():
            # Outputs are sources. The bound tends to the objective as the multipliers grow, λ = s
            # and H = s I + K with K a subgradient of the criterion.
            K = criteria.subgradient(
                np.asarray(to_host(problem.R)),
                self.criterion,
                criteria.weights_among(self.omega, self.active),
            )
            dual = with_fixed(self.active, np.zeros(problem.p), K, problem.fixed)
            T = in_rows(identity(problem.p, self.R), self.active, self.p)
            candidate = complete(self.R, self.floors, T, dual)
            if not (candidate.complete or self.bound_only):
                candidate = self._tied(T, dual)
            return self.finish(candidate)
        entered = self._newton(self._entry(), np.arange(problem.p))
        return self._path() if entered is None else entered

    def _entry(self) -> list[Any]:
        """H for the squares, from an exact decorrelator; empty if there is none."""
        problem, exact = self.problem, self.exact.pop() if self.exact else None
        if self.criterion != "squared" or problem.any_fixed:
            return []
        if exact is None or problem.p < self.p:
            exact = best_exact(problem.R, problem.floor_values)
        return entry(problem, self._squares(problem, np.arange(problem.p)), exact)

    def from_neighbour(self, H: Array, binding: NDArray[np.bool_]) -> Solved | None:
        """Newton's method from the H of a neighbouring problem; None if it is too far."""
        if self.problem.any_fixed:
            return None
        keep = np.flatnonzero(binding[self.active])
        members = self.active[keep]
        return self._newton([to_device(H[np.ix_(members, members)] / self.top, self.R)], keep)

    def _newton(self, at: list[Any], keep: Index) -> Solved | None:
        """Newton's method for the floors ``keep`` from their H; None if it does not arrive."""
        try:
            return self._newton_steps(at, keep)
        except sla.LinAlgError:
            return None  # floors that are guessed wrongly leave matrices singular to rounding

    def _newton_steps(self, at: list[Any], keep: Index) -> Solved | None:
        problem, joined = self.problem, False
        until = self.allowance.spent_steps + self.allowance.steps // _NEWTON_SHARE
        # Once for which floors bind, then for the answer.
        goals = [_PASSING, _ROUGH, _ACCURATE] if self.rough else [_PASSING, _ACCURATE]
        level = 0
        while at and len(keep) and self.allowance.spent_steps < until:
            sub = problem.restricted(keep) if len(keep) < problem.p else problem
            members = self.active[keep]
            found = refine(
                sub,
                at,
                self._squares(sub, keep),
                goal=goals[level],
                max_iter=max(self.allowance.steps - self.allowance.spent_steps, 1),
                hold=joined,
                report=self._reporter(sub, members),
            )
            if found is None:
                return None
            self.allowance.spent_steps += found.n_iter
            on = np.flatnonzero(~found.idle)
            if len(on) < len(keep):  # floors that seem idle leave
                at, keep, level = [submatrix(found.H, on, on)], keep[on], 0
            elif level == 0:  # those that the completion of the others misses join again
                joins = np.setdiff1d(self._enlarged(keep), keep)
                if len(joins):
                    at, joined = [self._with_joined(sub, found, keep, joins)], True
                    keep = np.union1d(keep, joins)
                else:
                    at, level = [found.H], 1
            else:
                candidate = complete(self.R, self.floors, *dual_of(found, members, sub))
                if not candidate.complete:
                    return None
                solved, at, level = self.finish(candidate), [found.H], level + 1
                if level == len(goals) or solved.gap <= self.tol * max(1.0, solved.objective):
                    return solved if solved.certified else None
            del found  # large matrices
        return None

    def _with_joined(self, sub: Problem, found: Refined, keep: Index, joins: Index) -> Any:
        """H of the floors ``keep``, whose problem is ``sub``, and of those that join."""
        T, dual = dual_of(found, self.active[keep], sub)
        stiffness = self._squares(self.problem, np.arange(self.problem.p)).stiffness
        H = with_joined(self.problem, stiffness, keep, dual.H, T, joins)
        every = np.union1d(keep, joins)
        return submatrix(H, every, every)

    def _enlarged(self, keep: Index) -> Index:
        """The floors ``keep`` and those that have to bind beside them."""
        if not self.separable:
            return keep
        binding = enlarged(self.R, self.floors, self.active[keep])
        return np.flatnonzero(binding[self.active])

    def _path(self) -> Solved:
        """Follow the central path: its end proves what the criterion attains.

        The outputs with a price are the columns of T there, whatever variables they are made of.
        """
        problem = self.problem
        at = [start(problem, self.criterion, self._weights(self.active))]
        if self.criterion == "squared":
            at = [self._follow(at, _EARLY).state]
            solved = self._newton(*self._guess(at[0]))
            if solved is not None:
                return solved
        elif problem.p > _LARGE:
            at = [self._follow(at, _FAR).state]
        state = self._follow(at, _SHARES[self.criterion]).state
        T, dual, room = self._decided(state)
        candidate = complete(self.R, self.floors - room, T, dual)
        decided = candidate.complete or self.bound_only
        solved = self.finish(candidate) if decided else None
        if solved is not None and solved.certified:
            return solved
        whole = self.finish(complete(self.R, self.floors, *dual_of(state, self.active, problem)))
        whole = replace(whole, unique=False)
        del state, candidate  # large matrices
        if solved is None:
            if whole.certified:
                more = max(_TIE_BREAK * self.allowance.spent, _UNNOTICED)
                self.allowance.work = min(self.allowance.work, self.allowance.spent + more)
            solved = self.finish(self._tied(T, dual))
        return solved if solved.certified else solved.joined(whole)

    def _guess(self, state: State) -> tuple[list[Any], Index]:
        """H of the floors that seem to bind at a point of the path, and which they are."""
        guess = binding_floors(self.problem, state, self._size(self.problem.gram(state.T)))
        keep = self._enlarged(np.flatnonzero(guess))
        return [submatrix(state.H, keep, keep)], keep

    def _follow(self, at: list[State], share: float) -> Progress:
        """Follow the path from the last point of ``at``, which is not kept."""
        return follow(
            self.problem,
            at.pop(),
            share=share,
            size_of=self._size,
            allowance=self.allowance,
            # A guess of what binds needs no equations that hold to the last digit.
            tolerance=_EARLY if share >= _FAR else 0.0,
            careful=share < _FAR,
            report=self._reporter(self.problem, self.active),
        )

    def _size(self, G: Any) -> float:
        """About the objective at ``TᵀRT``, or where that is smaller, what counts as zero."""
        value = criteria.value(self.criterion, G, self._weights(self.active))
        return max(value, 1e-3 * self.tol / self.top, 1e-14)

    def _weights(self, members: Index) -> Any:
        """The weights of the pairs of some variables, where R lies; None if they are equal."""
        if self.omega is None:
            return None
        return to_device(criteria.weights_among(self.omega, members), self.R)

    def _squares(self, problem: Problem, keep: Index) -> Quadratic:
        """The model of ``keep``, whose problem it is."""
        if self.omega is None:
            return Quadratic(problem.pairs)
        weights = criteria.weights_among(self.omega, self.active[keep])
        stiffness = np.where(weights > 0, 1.0 / np.where(weights > 0, weights, 1.0), 0.0)
        return Quadratic(to_device(stiffness, self.R))

    def _decided(self, state: State) -> tuple[Any, DualPoint, Array]:
        """The outputs with a price at the end of a path, with a row for every variable.

        Also returns their dual point, and the room that the floors of the others need.
        """
        problem = self.problem
        binding = binding_floors(problem, state, self._size(problem.gram(state.T)))
        room = np.zeros(self.p)
        if self.criterion != "worst":
            binding, room[self.active] = decided_outputs(problem, state, binding)
        keep, every = np.flatnonzero(binding), np.arange(problem.p)
        members = self.active[keep]
        dual = with_fixed(
            members,
            np.asarray(to_host(state.lam))[keep],
            submatrix(state.H, keep, keep),
            problem.fixed[keep],
        )
        # On their rims first: the completed outputs are uncorrelated with what they are beside.
        T = make_feasible(problem.R, state.T, problem.floor_values, binding)
        T = in_rows(submatrix(T, every, keep), self.active, self.p)
        return T, dual, room

    def _tied(self, T: Any, dual: DualPoint) -> Candidate:
        """Add what the criterion leaves open beside the decided outputs by the least squares."""
        members = dual.members
        worst = self._worst(T, members) if self.criterion == "worst" and len(members) else 0.0
        try:
            found = break_ties(self.R, self.floors, self.omega, members, T, worst, self.allowance)
        except sla.LinAlgError:
            found = None  # the tie-break has no part in the proof
        if found is None:
            return complete(self.R, self.floors, T, dual)
        members, T, room = found
        return complete(self.R, self.floors - room, T, dual, members)

    def _worst(self, T: Any, members: Index) -> float:
        return criteria.value("worst", T.T @ self.R @ T, self._weights(members))

    def finish(self, candidate: Candidate) -> Solved:
        """Make the candidate feasible to the last digit, and evaluate both bounds."""
        T, H = to_device(candidate.T, self.R), to_device(candidate.H, self.R)
        lam = np.maximum(candidate.lam, 0.0)
        if self.criterion != "squared" or self.omega is not None:
            H = to_device(criteria.admissible(self.criterion, to_host(H), self.omega), self.R)
        if np.any((self.floors > CLOSE) & (self.floors < 1.0)):
            near = near_sources(to_host(self.R), to_host(T), to_host(H), self.floors, lam)
            T, lam, H = near
            T, H = to_device(T, self.R), to_device(H, self.R)
        T = make_feasible(self.R, T, self.floors, candidate.binding)
        G = correlation_of(self.R, T, precise=self.omega is not None)
        if cholesky_or_none(H) is None:
            # Rounding has spoiled the dual point; no criterion is negative.
            lam, H = 0.0 * lam, 1e-16 * identity(len(lam), self.R)
        fidelity = column_dots(self.R, T)
        bound = plain_bound(
            lam,
            H,
            self.floors,
            self.criterion,
            self.omega,
            X=T,
            fidelity=fidelity,
            defect=plus_diagonal(1.0 * G, -1.0),
            R=self.R,
        )
        value = criteria.value(self.criterion, G, self._weights(np.arange(self.p)))
        return Solved(
            T=np.asarray(to_host(T)),
            G=np.asarray(to_host(G)),
            fidelity=fidelity,
            objective=self.top * value,
            lower_bound=self.top * bound,
            lam=self.top * lam,
            H=self.top * np.asarray(to_host(H)),
            binding=candidate.binding,
            n_iter=self.allowance.spent_steps,
            unique=candidate.complete,
        )

    def _reporter(self, problem: Problem, members: Index) -> Callable[[Any], object] | None:
        callback = self.callback
        if callback is None:
            return None

        calls = itertools.count(self.allowance.spent_steps + 1)

        def report(at: State | Stationary) -> None:
            solved = self.finish(complete(self.R, self.floors, *dual_of(at, members, problem)))
            callback(next(calls), solved.objective, solved.lower_bound)

        return report


def dual_of(
    at: State | Stationary | Refined, members: Index, problem: Problem
) -> tuple[Any, DualPoint]:
    """Transformation and dual point of ``members``, whose problem it is."""
    return at.T, with_fixed(members, np.asarray(to_host(at.lam)), at.H, problem.fixed)


def solve_tradeoff(
    R: Any,
    floors: Array,
    settings: Settings,
    *,
    refused: list[BestExact | ExactThreshold] | None = None,
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
    if not pairs_count(floors, settings):
        return None
    search = Search(R, floors, settings)
    solved = search.from_neighbour(arrays["H"], arrays["multipliers"] > 0)
    if solved is None or not solved.lower_bound > 0.0:
        return None
    return solved.solution(floors, settings)


def solve_floors(
    R: Any,
    floors: Array,
    settings: Settings,
    *,
    near: tuple[Array, NDArray[np.bool_]] | None = None,
    rough: bool = False,
    bound_only: bool = False,
    refused: list[BestExact | ExactThreshold] | None = None,
) -> Solved:
    """Solve, perhaps from ``near``, the H and the binding floors of a neighbouring problem.

    ``rough`` and ``bound_only`` are those of :class:`Search`.
    """
    if not pairs_count(floors, settings):
        return solve_vanishing(R, floors, settings)
    search = Search(R, floors, settings, exact=refused, rough=rough, bound_only=bound_only)
    warm = None
    if near is not None and settings.criterion == "squared":
        warm = search.from_neighbour(*near)
    return search.run() if warm is None else warm


def solve_vanishing(R: Any, floors: Array, settings: Settings, T: Any = None) -> Solved:
    """Outputs of which no pair that counts is correlated, and the others as little as possible.

    ``T`` are such outputs if they are known. Others may miss their floors by what the correction to
    no correlation takes: see their fidelities. No multipliers are needed.
    """
    search, p = Search(R, floors, settings), len(floors)
    if T is None:
        none = DualPoint(np.arange(0), np.zeros(0), zeros((0, 0), R))
        candidate = search._tied(zeros((p, 0), R), none)
        T, positive = make_feasible(R, candidate.T, floors, candidate.binding), floors > 0
        # To first order, T less half of T G⁻¹ E has no correlations E.
        E = gram_defect(R, T, precise=True)
        counts = criteria.weights_among(search.omega, np.arange(p)) * np.outer(positive, positive)
        counted = E * to_device(1.0 * (counts > 0), R)
        T = T - 0.5 * T @ library(R).linalg.solve(plus_diagonal(1.0 * E, 1.0), counted)
        candidate = replace(candidate, T=T, binding=np.zeros(p, dtype=bool))
        search.floors = np.zeros(p)  # nothing is turned back onto its floor
    else:
        H = 1e-16 * identity(p, R)
        candidate = Candidate(np.zeros(p), H, T, np.zeros(p, dtype=bool), True)
    H = np.asarray(to_host(candidate.H))
    return replace(search.finish(candidate), lam=np.zeros(p), H=H, lower_bound=-float(np.trace(H)))


def pairs_count(floors: Array, settings: Settings) -> bool:
    """Whether a pair of outputs with positive floors has a positive weight."""
    weights = criteria.pair_matrix(settings.pair_weights, len(floors))
    return bool(np.any(weights[np.ix_(floors > 0, floors > 0)] > 0))
