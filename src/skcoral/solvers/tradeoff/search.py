"""The search for one trade-off: floors above what exact decorrelation allows.

One interior-point method follows the central path for every criterion. Once the products separate
the floors that bind from those that do not, the binding ones are solved alone and the others are
completed exactly. The completion and the certificate judge the guess; where it was wrong, the path
is followed further.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.core import criteria
from skcoral.core.arrays import Array, Index, identity, submatrix, to_device, to_host, zeros
from skcoral.core.problem import Settings
from skcoral.core.results import Decorrelation
from skcoral.core.solution import Solution
from skcoral.solvers.exact import BestExact, ExactThreshold, best_exact
from skcoral.solvers.tradeoff.binding import (
    DualPoint,
    binding_floors,
    complete,
    enlarged,
    with_fixed,
    with_joined,
)
from skcoral.solvers.tradeoff.equations import FORMED
from skcoral.solvers.tradeoff.interior import Progress, follow, start
from skcoral.solvers.tradeoff.newton import ACCURATE, entry, refine
from skcoral.solvers.tradeoff.points import Problem, State
from skcoral.solvers.tradeoff.scaled import Binding, Scaled, Solved, Warm, dual_of

# Shares of the objective that the products make up when the binding floors are guessed: early where
# Newton's method can take over, and further down the path where the guess was wrong.
_EARLY = (1e-4, 1e-5, 1e-8)
_GUESS = 1e-4  # of the objective by which the equations may be violated there
_LATE = (1e-13, 1e-17, 1e-21)
# The same where the end of the path is the answer: the absolute sum completes outputs whose
# correlations are of this order, the worst pair only holds what is decided and goes on from there.
# At a tenth, three more steps; at ten times it, correlations of 1e-9 beside outputs without floors.
_SHARP = {"absolute": (1e-12, 1e-16, 1e-20), "worst": (1e-9, 1e-13, 1e-17)}
_TIE_BREAK = 0.5  # of the work up to a proof that may be spent on choosing among the optima
_UNNOTICED = 2e9  # multiply-adds, a fraction of a second, that may be spent on it in any case
_TRIES = 4  # corrections of one guess
# Residuals at which the other outputs are completed for the first time, and at the end; where the
# gap, about their square, need only be within the tolerance, larger ones will do.
_GOALS, _ROUGH_GOALS = (1e-6, ACCURATE), (2e-5, 1e-8)
_PASSING = 1e-2  # residual at which floors join again that a far start took for idle


class Search(Scaled):
    """One problem, and the steps spent on it."""

    rough = False  # whether to end as soon as the gap is within the tolerance
    exact: BestExact | ExactThreshold | None = None  # if known, of all variables

    @property
    def goals(self) -> tuple[float, float]:
        """Residuals of Newton's method."""
        return _ROUGH_GOALS if self.rough else _GOALS

    def run(self) -> Solved:
        """Follow the path from a cold start."""
        problem = self.problem
        if problem is None:
            nothing = DualPoint(self.active, np.zeros(0), np.zeros((0, 0)))
            return self.finish(self._undecided(nothing, zeros((len(self.floors), 0), self.R)))
        if problem.fixed.all():
            every = self._solve_binding(problem, None, np.arange(problem.p))
            assert every is not None
            return self.finish(self._completed(every, final=True))
        if self.criterion == "squared" and not problem.fixed.any():
            entered = self._enter(problem)
            if entered is not None:
                return entered
        if self.criterion != "squared":
            return self._sharp(problem)
        state = start(problem, self.criterion, self.inner_omega)
        best: Solved | None = None
        for share in (*_EARLY, *_LATE):
            progress = self._follow(problem, [state], share)
            state = progress.state
            for by_slack in (False, True) if share in _LATE else (False,):
                size = self._size(problem.gram(state.T))
                guess = binding_floors(problem, state, size, by_slack=by_slack)
                solved = self._attempt(problem, state.H, guess, final=share in _LATE, far=False)
                if solved is not None and solved.certified:
                    return replace(solved, n_iter=self.used)
                if solved is not None:
                    best = solved if best is None else best.joined(solved)
                if self._exhausted:
                    break
            if self._exhausted or not progress.done:
                break
        if best is None:
            T, dual = dual_of(state, self.active, problem)
            best = self.finish(complete(self.R, self.floors, T, dual))
        return replace(best, n_iter=self.used)

    def _sharp(self, problem: Problem) -> Solved:
        """Follow the path of a criterion that is not smooth: its end proves what it attains.

        The outputs with a price are the columns of T there, whatever variables they are made of.
        """
        best: Solved | None = None
        at = [start(problem, self.criterion, self.inner_omega)]
        for share in _SHARP[self.criterion]:
            progress = self._follow(problem, at, share)
            state = progress.state
            T, dual = dual_of(state, self.active, problem)
            whole = self.finish(complete(self.R, self.floors, T, dual))
            best = replace(whole, unique=False) if best is None else best.joined(whole)
            if best.certified:
                more = max(_TIE_BREAK * self.work, _UNNOTICED)
                self.most_work = min(self.most_work, self.work + more)
            solved = self.finish(self._decided(problem, state))
            best = solved if solved.certified else solved.joined(best)
            if (best.certified and best.unique) or self._exhausted or not progress.done:
                break
            at = [state]
            del progress, state  # large matrices, like those of the start
        assert best is not None
        return replace(best, n_iter=self.used)

    def _follow(self, problem: Problem, at: list[State], share: float) -> Progress:
        """Follow the path from the last point of ``at``, which is not kept."""
        allowance = self._allowance()
        progress = follow(
            problem,
            at.pop(),
            share=share,
            size_of=self._size,
            allowance=allowance,
            # A guess of what binds needs no equations that hold to the last digit.
            tolerance=0.0 if share < _EARLY[-1] else _GUESS,
            careful=share <= _EARLY[-1],
            report=self._reporter(problem, self.active),
        )
        self._charge(allowance)
        return progress

    def _attempt(
        self,
        problem: Problem,
        H: Any,
        guess: NDArray[np.bool_],
        *,
        final: bool = False,
        far: bool = True,
    ) -> Solved | None:
        """Solve for the floors that seem to bind, and complete the others; correct the guess.

        Only a ``final`` attempt looks for what the criterion leaves open; others end after an
        eighth of the steps. ``far`` from the optimum Newton's method gets on best without what it
        takes for idle. None where the guess could not be corrected.
        """
        try:
            return self._attempted(problem, H, guess, final=final, far=far)
        except sla.LinAlgError:
            return None  # floors that are guessed wrongly can leave a matrix singular to rounding

    def _attempted(
        self, problem: Problem, H: Any, guess: NDArray[np.bool_], *, final: bool, far: bool
    ) -> Solved | None:
        tried: set[bytes] = set()
        until = self.used + self.max_iter // (1 if final else 8)
        for _ in range(_TRIES):
            if self.used >= until:
                return None
            if not far:
                guess = guess | self._missing(problem, np.flatnonzero(guess))
            found = self._solve_binding(problem, H, np.flatnonzero(guess), far=far)
            far = False
            if found is None or found[2].tobytes() in tried:
                return None
            tried.add(found[2].tobytes())
            candidate = self._completed(found, final=final)
            inexact = self.rough or problem.p > FORMED
            if candidate.complete and inexact and not problem.fixed[found[2]].all():
                solved = self.finish(candidate) if self.rough else None
                if solved is not None and solved.gap <= self.tol * max(1.0, solved.objective):
                    return solved
                dual, _, keep = found
                del candidate, found  # large matrices
                found = self._newton(problem, dual.H, keep, self.goals[1])
                if found is None:
                    return None
                candidate = self._completed(found, final=final)
            if candidate.complete:
                return self.finish(candidate)
            dual, T, keep = found
            guess = np.zeros(problem.p, dtype=bool)
            guess[keep] = True
            joins = self._missing(problem, keep)
            if not joins.any():
                return None
            guess |= joins
            if len(keep):
                stiffness = self._squares(problem, np.arange(problem.p)).stiffness
                H = with_joined(problem, stiffness, keep, dual.H, T, np.flatnonzero(joins))
            del candidate, found, dual, T  # large matrices
        return None

    def _solve_binding(
        self, problem: Problem, H: Any, keep: Index, *, far: bool = False
    ) -> Binding | None:
        """Solve for the floors ``keep`` alone, without those that turn out not to bind."""
        if not np.any(self.inner_omega[np.ix_(keep, keep)] > 0):
            keep = np.flatnonzero(problem.fixed)
        members = self.active[keep]
        if not len(keep):
            return DualPoint(members, np.zeros(0), np.zeros((0, 0))), None, keep
        if problem.fixed[keep].all():
            # Outputs are sources. The bound tends to the objective as the multipliers grow, λ = s
            # and H = s I + K with K a subgradient of the criterion. What grows is added at the end.
            R = np.asarray(to_host(submatrix(self.R, members, members)))
            K = criteria.subgradient(R, self.criterion, self.omega[np.ix_(members, members)])
            dual = with_fixed(members, np.zeros(len(keep)), K, np.ones(len(keep), dtype=bool))
            return dual, identity(len(keep), self.R), keep
        # Iterated equations are solved accurately only when it is known which floors bind.
        goal = self.goals[0] if self.rough or problem.p > FORMED else self.goals[1]
        H = H if len(keep) == problem.p else submatrix(H, keep, keep)
        return self._newton(problem, H, keep, goal, far=far)

    def _newton(
        self, problem: Problem, H: Any, keep: Index, goal: float, *, far: bool = False
    ) -> Binding | None:
        """Newton's method for the floors ``keep`` from their ``H``, for the squared criterion.

        Floors that seem idle leave. Where the completion does not meet them, the start was ``far``
        from the optimum: what is left is solved only roughly before they join again.
        """
        rough = far and bool(self._missing(problem, keep, once=True).any())
        while len(keep):
            sub = problem.restricted(keep) if len(keep) < problem.p else problem
            members = self.active[keep]
            found = refine(
                sub,
                H,
                self._squares(sub, keep),
                goal=max(goal, _PASSING) if rough else goal,
                max_iter=max(self.max_iter - self.used, 1),
                report=self._reporter(sub, members),
            )
            if found is None:
                return None
            self.used += found.n_iter
            if not found.idle.any():
                T, dual = dual_of(found.point, members, sub)
                return dual, T, keep
            on = np.flatnonzero(~found.idle)
            every = len(keep) == problem.p
            needed = int(self._missing(problem, keep[on], once=not every).sum())
            # Where several, and most of them, bind after all, the start was too far away.
            if every and needed > max(1, 0.5 * found.idle.sum()):
                return None
            rough = needed > 0
            keep, H = keep[on], submatrix(found.point.H, on, on)
            del found, sub  # large matrices
        return None

    def _missing(self, problem: Problem, keep: Index, *, once: bool = False) -> NDArray[np.bool_]:
        """The floors that have to bind beside those in ``keep``; ``once``: the first of them."""
        missing = np.zeros(problem.p, dtype=bool)
        if self.separable:
            binding = np.zeros(len(self.floors), dtype=bool)
            binding[self.active[keep]] = True
            binding = enlarged(self.R, self.floors, binding, self.completions, once=once)
            missing = binding[self.active]
            missing[keep] = False
        return missing

    def from_neighbour(self, warm: Warm) -> Solved | None:
        """Newton's method from the dual point of a neighbouring problem; None if it is too far."""
        if self.problem is None or self.problem.fixed.any():
            return None
        H = np.asarray(to_host(warm.H))[np.ix_(self.active, self.active)] / self.top
        return self._from(self.problem, to_device(H, self.R), warm.binding[self.active])

    def _enter(self, problem: Problem) -> Solved | None:
        """Newton's method as if all floors were binding; None if it does not arrive."""
        every = np.ones(problem.p, dtype=bool)
        whole = problem.p == len(self.floors)
        exact = self.exact if whole else None
        exact = exact or best_exact(problem.R, problem.floor_values)
        H = entry(problem, self._squares(problem, np.arange(problem.p)), exact)
        return None if H is None else self._from(problem, H, every)

    def _from(self, problem: Problem, H: Any, guess: NDArray[np.bool_]) -> Solved | None:
        solved = self._attempt(problem, H, guess)
        return solved if solved is not None and solved.certified else None


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
