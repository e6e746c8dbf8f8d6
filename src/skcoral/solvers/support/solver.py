"""Support problems: many starts in one array, a refined best, and the bound that judges it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skcoral.bounds.arithmetic import exactly
from skcoral.bounds.frame import from_squares
from skcoral.bounds.support import proved_bound
from skcoral.core.arrays import Array, Mask, column_dots
from skcoral.core.linalg import gram_defect, raised_to_floors
from skcoral.core.problem import Problem, Settings
from skcoral.core.solution import Certificate, Solution, SupportSearch
from skcoral.core.tolerances import EXACT_TOL
from skcoral.exceptions import CertificateError
from skcoral.solvers.support.caps import Caps, feasible_set
from skcoral.solvers.support.frame_relaxation import DENSE_LIMIT, Norm, frame_bound
from skcoral.solvers.support.interior_point import Candidate
from skcoral.solvers.support.lower_bounds import (
    Arrays,
    frame_arrays,
    lifted_points,
    multipliers,
    to_squares,
)
from skcoral.solvers.support.moments import bound_by_moments
from skcoral.solvers.support.search import Ends, Progress, Search, structured_starts, up_to

EXACT = 0.01 * EXACT_TOL  # the largest residual correlation of an answer that is called exact
_STATIONARY = 1e-6  # the largest violation of stationarity of an answer that has converged


@dataclass(frozen=True)
class SupportProblem:
    """A problem whose coefficients are restricted, and how hard to search."""

    asked: Problem
    floors: Array  # the sign of a column is free, so a floor of zero asks for nothing
    mask: Mask  # (p, k), True where ``T[i, j]`` may differ from zero
    bounds: tuple[Array, Array] | None = None  # least and largest coefficients
    n_starts: int = 100  # at most, structured ones included
    random_state: int | np.random.Generator | None = 0
    warm: Array | None = None  # a transformation to start from as well
    by_moments: bool = False  # look for a better bound where the gap is open

    @property
    def R(self) -> Array:
        """Correlations of the variables."""
        return np.asarray(self.asked.sources.R)

    @property
    def settings(self) -> Settings:
        """Criterion, tolerance and callback."""
        return self.asked.settings

    @property
    def anchors(self) -> Array | None:
        """The composites that outputs are anchored to, as they were given; None for variables."""
        return None if self.asked.composites is None else self.asked.composites.B

    @property
    def unit_anchors(self) -> Array:
        """What the outputs are anchored to, of unit variance: variables or composites."""
        composites = self.asked.composites
        return np.eye(len(self.R)) if composites is None else composites.unit

    @cached_property
    def space(self) -> Caps:
        """The feasible set without bounds on coefficients."""
        return feasible_set(self.R, self.mask, self.floors, self.anchors, self.settings.names)

    def fidelity(self, T: Array) -> Array:
        """Correlations of the outputs with their anchors."""
        return column_dots(self.R @ self.unit_anchors, T)


def solve_support(problem: SupportProblem) -> Solution:
    """Least residual correlation among the transformations with a given support.

        minimise φ(off(TᵀRT))  subject to  t_jᵀRt_j = 1,  b_jᵀRt_j ≥ ρ_j,  T_ij = 0 off the support

    The problem is not convex. Structured starts come first; if a bound already meets their best,
    that is the answer. Otherwise random starts follow, and hops from the best of them, each along
    several routes: directly, and by way of the problem without floors and with higher ones.

    With bounds on coefficients the sign of a column is no longer free, and ``f_j ≥ 0`` is required
    also for a floor of zero. Where ``warm`` is feasible, the answer is never worse.

    Raises
    ------
    InfeasibleError
        The support or the bounds on coefficients leave some output no admissible column.
    """
    if problem.bounds is None:
        return solve_unbounded(problem)
    from skcoral.solvers.support.bounded import solve_within

    return solve_within(problem, problem.bounds)


def solve_unbounded(problem: SupportProblem) -> Solution:
    """Solve a support problem without bounds on coefficients."""
    space, n = problem.space, problem.n_starts
    progress = Progress(problem.settings.callback)
    search = Search(space, problem.settings, progress)
    bounds = BestBound(problem, progress)
    first = structured_starts(space, problem.unit_anchors, problem.settings.memory, problem.warm)
    ends = search.run(first[:n])
    best = search.polish(ends)
    bounds.improve_by_multipliers(best)
    if not bounds.certifies(best):
        bounds.improve_by_frames(best)
    if n > len(first) and not bounds.certifies(best):
        rng = np.random.default_rng(problem.random_state)
        ends = search.explore(ends, n - len(first), rng)
        better = search.polish(ends)
        if better.value < best.value:
            best = better
            bounds.improve_by_multipliers(best)
    if problem.by_moments and not bounds.certifies(best):
        bounds.improve_by_moments(best)
    return _solution(problem, search, ends, best, bounds)


class BestBound:
    """The best lower bound known, and whether it proves an answer optimal."""

    def __init__(self, problem: SupportProblem, progress: Progress) -> None:
        self.problem, self.space, self.progress = problem, problem.space, progress
        self.criterion = problem.settings.criterion
        self.prove_nothing()

    def prove_nothing(self) -> None:
        """Fall back to zero, which no criterion is below."""
        p, k = self.problem.mask.shape
        nothing = {"Q": np.zeros((p, p)), "eta": np.zeros(k)}
        self.value = 0.0
        self.certificate = self._certificate(nothing, bound="frame", norm="frobenius")

    def certifies(self, answer: Candidate) -> bool:
        """Whether the bound meets the objective."""
        return answer.worst <= EXACT or answer.value - self.value <= self._gap(answer)

    def improve_by_multipliers(self, answer: Candidate) -> None:
        """Look for a bound in the multipliers of ``answer``, which are stationary."""
        at = multipliers(self.space, answer.U, answer.half_slope)
        for point in lifted_points(self.space, at, self.criterion):
            self._offer(point, answer, bound="lifted")
            if self.certifies(answer):
                break

    def improve_by_frames(self, answer: Candidate) -> None:
        """Look for a bound by the frame relaxation, which depends on no answer."""
        squared = self.criterion == "squared"
        # Only the squared criterion can be met by the frame bound, so only there digits matter. In
        # large systems the last digits take most of the time, and any early end is a valid bound.
        tol = 0.1 * self.problem.settings.tol if squared else 1e-6
        norms: list[Norm] = ["frobenius"]
        norms += ["nuclear"] if self.criterion == "absolute" else []
        for norm in norms:
            frame = frame_bound(
                self.space,
                norm=norm,
                stop_at=answer.value - self._gap(answer) if squared else np.inf,
                tol=1e-3 if self.space.p > DENSE_LIMIT else tol,
                on_iteration=lambda value: self.progress.step(
                    answer.value, value if squared else 0.0
                ),
            )
            self._offer(frame_arrays(self.problem.R, frame), answer, bound="frame", norm=norm)

    def improve_by_moments(self, answer: Candidate) -> None:
        """Look for a bound by second-order moments."""

        def tell(squares: float) -> bool:
            value = from_squares(self.criterion, exactly(max(squares, 0.0)), 1.0)
            return self.progress.step(answer.value, float(value.lower))

        goal = to_squares(self.criterion, answer.value - self._gap(answer))
        arrays = bound_by_moments(self.space, goal, tell, worst=self.criterion == "worst")
        self._offer(arrays, answer, bound="moments")

    def _gap(self, answer: Candidate) -> float:
        """Largest gap that still counts as proved."""
        return self.problem.settings.tol * max(answer.value, 1e-3)

    def _certificate(self, arrays: Arrays, **info: str) -> Certificate:
        arrays = {**arrays, "support": self.problem.mask.astype(np.float64)}
        return Certificate("support", arrays, {**info, "criterion": self.criterion})

    def _offer(self, arrays: Arrays, answer: Candidate, **info: str) -> None:
        """Evaluate a dual point and remember it where it proves more."""
        certificate, problem = self._certificate(arrays, **info), self.problem
        try:
            value = proved_bound(problem.R, problem.floors, certificate, problem.anchors)
        except CertificateError:  # not definite, for one
            return
        if value > self.value:
            # A bound above an attained value can only be rounding.
            self.value, self.certificate = min(value, answer.value), certificate
            self.progress.step(answer.value, self.value)


def _solution(
    problem: SupportProblem, search: Search, ends: Ends, best: Candidate, bound: BestBound
) -> Solution:
    R, space = problem.R, search.space
    # Every column gets its sign, unit variance, and its floor against rounding.
    T = np.where(space.mask, space.transform(best.U[None])[0], 0.0)
    T = T * np.where(problem.fidelity(T) < 0, -1.0, 1.0)
    T = raised_to_floors(R, T, space.axes[:, 0].T, space.floors)
    state = multipliers(space, best.U, best.half_slope)
    exact = best.worst <= EXACT
    if exact:
        bound.prove_nothing()
    # The half-gradient of the criterion at T, from which the prices follow.
    arrays = {**bound.certificate.arrays, "slope": best.half_slope}
    return Solution(
        T=T,
        correlation=np.eye(space.k) + gram_defect(R, T),
        fidelity=problem.fidelity(T),
        rho_min=problem.floors,
        objective=best.value,
        lower_bound=bound.value,
        certificate=Certificate(bound.certificate.kind, arrays, bound.certificate.info),
        n_iter=search.progress.iteration,
        slopes=2.0 * state.floors / np.where(space.reach > 0, space.reach, 1.0),
        converged=exact or state.stationarity <= _STATIONARY,
        unique=problem.settings.criterion == "squared",
        search=SupportSearch(len(ends.values), int(np.sum(ends.values <= up_to(best.value)))),
    )
