"""One problem in the factor form: any criterion, any floors, the best bound that there is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Floats
from skcoral.bounds.rank import DualBound, factor_bound
from skcoral.core.arrays import Array, column_dots, to_host
from skcoral.core.criteria import Criterion
from skcoral.core.problem import Callback, Settings
from skcoral.core.solution import Certificate, Solution
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.exceptions import CertificateError
from skcoral.solvers.exact import solve_exact
from skcoral.solvers.singular.caps import on_caps, squares
from skcoral.solvers.singular.dual import least_squares
from skcoral.solvers.singular.pairs import criterion_of, lowest
from skcoral.solvers.singular.rank_bound import RankBound, RankPoint, multipliers_of_outputs
from skcoral.solvers.tradeoff.search import solve_floors

STARTS = 12  # from other places, where the gap stays open; with 24 as many tables end higher
_RANK_LIMIT = 150  # variables for which (★r) is maximised
_LIFTED_LIMIT = 300  # variables for which (★) is tried
# Towards the identity, for the search of (★) only: where R has null directions that H shares
# (duplicates) the bound loses the root of it; the larger one is for tables with few rows, some of
# which have no digits left at the smaller one.
_SHRUNK = (1e-14, 1e-8)
_PAIRS_LIMIT = 3000  # variables for which pairs are looked at one by one
_FURTHER = 3e4  # rp² of all further starts for the other criteria together
_GRADIENTS = 2e9  # rp² of the gradients of one stage of smoothing, within 20 and 300 of these
NEAR = 0.03  # width of the smoothing for starts near the best outputs
_HIDDEN = 0.05  # of an open gap, how accurately it is known; twice this shows in the median gap
_EFFORT = 3e5  # r²p of all starts around the sources together
_ROOM = 1e-15  # above the floors, for the rounding of what is computed from the outputs
_ROUNDING = 1e-13  # relative gain of an objective that counts as none


@dataclass(frozen=True)
class FrameProblem:
    """A factor ``A`` (r × p, unit columns) with a criterion.

    Where the gap is open, outputs are looked for from ``starts`` further places. ``dropped`` is the
    variance that the factor leaves out, ``lengths`` are those of its columns before they were unit
    vectors, and ``dense`` says whether ``T`` and ``TᵀRT`` are wanted as p × p arrays or as factors.
    """

    A: Any
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    starts: int = STARTS
    dropped: float = 0.0
    lengths: Array | float = 1.0
    dense: bool = True

    @cached_property
    def host(self) -> Array:
        """The factor in main memory."""
        return np.asarray(to_host(self.A))

    @property
    def least(self) -> float:
        """What the rank alone proves about the criterion, for every transformation."""
        return Answer(self, np.zeros(self.A.shape[1])).lower_bound

    @property
    def _plain(self) -> bool:
        return self.criterion == "squared" and self.pair_weights is None

    def value(self, U: Array) -> float:
        """The criterion of outputs."""
        if self._plain:
            return squares(U)
        return criterion_of(U, self.criterion, self.pair_weights)

    def solve(
        self, floors: Array, *, start: Array | None = None, callback: Callback | None = None
    ) -> Answer:
        """Solve for these floors, from the outputs of a neighbouring problem if given."""
        answer, p = Answer(self, floors), self.A.shape[1]
        # 1. Least squares and their bound (★★); the other criteria begin there.
        U, dual, answer.n_iter = least_squares(
            self.A,
            floors,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback if self._plain else None,
            start=start,
        )
        answer.offer(np.asarray(to_host(U)))
        if dual is not None:
            answer.prove("frame", dual.multipliers())
        # 2. Where a gap is left: (★r) by the outputs, then by its maximiser, for plain squares;
        # (★) for the others; and other starts for both.
        if self._plain:
            if not answer.certified:
                answer.prove("rank", multipliers_of_outputs(self.host, answer.U, floors))
            if not answer.certified:
                self._look_around(answer)
        else:
            lifted = None if p > _LIFTED_LIMIT or answer.certified else self.lifted(floors)
            if lifted is not None:
                arrays, suggested, steps = lifted
                answer.offer(suggested)
                answer.prove("tradeoff", arrays)
                answer.n_iter += steps
            if p <= _PAIRS_LIMIT and not answer.certified:
                self._descend(answer)
        if callback is not None:
            callback(answer.n_iter, answer.objective, answer.lower_bound)
        return answer

    @property
    def further(self) -> int:
        """How many further starts the other criteria have, four times and once more."""
        return int(min(self.starts, _FURTHER / self._work))

    @property
    def _work(self) -> int:
        """Multiplications of one gradient of the other criteria."""
        r, p = self.A.shape
        return int(r * p * p)

    def lifted(self, floors: Array) -> tuple[dict[str, Array], Array, int] | None:
        """A dual point of (★), valid for every R, outputs that it suggests, and the steps.

        (★) lets outputs leave the span of the sources; it is tight at high floors. The dual point
        is found for a matrix that is shrunk a little, where the solver of the trade-off works, but
        no less than by the variance ``dropped`` with small eigenvalues. None where none is found.
        """
        settings = Settings(
            tuple(f"x{j}" for j in range(self.A.shape[1])),
            self.criterion,
            self.pair_weights,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        for shrunk in _SHRUNK:
            R = (1.0 - max(shrunk, self.dropped)) * (self.host.T @ self.host)
            np.fill_diagonal(R, 1.0)
            try:
                refused = solve_exact(R, floors, settings)
                if isinstance(refused, Solution):  # nothing that (★) could exclude
                    return None
                solved = solve_floors(R, floors, settings, refused=[refused], bound_only=True)
            except (ArithmeticError, ValueError, RuntimeError):  # no digits left
                continue
            arrays = {"multipliers": solved.lam, "H": solved.H}
            return arrays, self.host @ solved.T, solved.n_iter
        return None

    def _look_around(self, answer: Answer) -> None:
        """Maximise (★r), and look for other local minima, from a fixed seed.

        Starts are the outputs, places around the sources and, where (★r) is maximised, around the
        minimisers of its dual point, as far off as these are shorter than one.
        """
        A, floors, rng = self.host, answer.floors, np.random.default_rng(0)
        (r, p), bound = A.shape, answer.lower_bound
        count = int(min(self.starts, _EFFORT / (r * r * p)))
        starts = [answer.U[None], A + rng.normal(size=(count, r, p)) / np.sqrt(r)]
        # with more than two columns per dimension no p × p array is formed
        dual = RankBound(A, floors) if p <= min(_RANK_LIMIT, 2 * r) else None
        if dual is not None:
            point = dual.maximise(partial(self._accurate, answer.objective))
            short = np.sqrt(np.maximum(1.0 - column_dots(point.U, point.U), 0.0) / r)
            starts += [point.U + short * rng.normal(size=(self.starts, r, p))]
            bound = max(bound, point.value)
        answer.descend(np.concatenate(starts), bound=bound)
        answer.prove("rank", multipliers_of_outputs(A, answer.U, floors))
        if dual is not None and not answer.certified:
            point = dual.maximise(partial(self._accurate, answer.objective), point)
            answer.prove("rank", dual.multipliers(point))

    def _accurate(self, best: float, point: RankPoint) -> bool:
        """Whether (★r) is known as accurately as the gap to the best outputs makes it worth."""
        aim = 0.1 * min(self.tol, OPTIMAL_GAP) * max(1.0, best)
        return point.left <= max(aim, _HIDDEN * (best - point.value))

    def _descend(self, answer: Answer) -> None:
        """Look for outputs that are better by the criterion itself.

        Equal outputs have no slope along which they would part: further starts are moved at random,
        from a fixed seed.
        """
        A, floors, rng = self.host, answer.floors, np.random.default_rng(0)
        further = self.further
        # from the outputs alone, which may be enough; from further places; from near the best
        for widest, size, count in (
            (np.inf, 0.0, 0),
            (np.inf, 1.0, 4 * further),
            (NEAR, 0.4, further),
        ):
            U = answer.U[None]
            moved = rng.normal(size=(count, *A.shape)) * np.sqrt((1.0 - floors) / len(A))
            moved = U + size * moved
            if size == 1.0:
                moved[::2] += A - U
            answer.descend(moved if count else U, widest=widest)
            if answer.certified or not further:
                break


class Answer:
    """The best outputs so far and the best bound so far, for one problem with floors.

    ``U`` (r × p) are feasible, in the basis of the factor. The first are the sources themselves,
    and the first bound is that of the rank.
    """

    def __init__(self, problem: FrameProblem, floors: Array) -> None:
        self.problem, self.floors = problem, floors
        self.U, self.objective, self.n_iter = problem.host, problem.value(problem.host), 0
        r, p = problem.A.shape
        nothing = {"N": np.zeros((r, r)), "multipliers": np.zeros(p), "kappa": np.zeros(p)}
        self.certificate, self.proved = self._evaluated("frame", nothing)

    @property
    def lower_bound(self) -> float:
        """The bound as proved, but for a rounding above the objective."""
        return min(max(float(self.proved.bound.lower), 0.0), self.objective)

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.objective - self.lower_bound <= OPTIMAL_GAP * max(1.0, self.objective)

    def highest_floor(self, budget: float) -> float:
        """A common floor that no transformation within the budget exceeds; infinite for none."""
        floor = float(self.floors.max())
        return self.proved.highest_floor(budget, self.problem.criterion, floor)

    def offer(self, U: Array) -> None:
        """Put outputs on the caps, and keep them where they are better by more than rounding."""
        U = on_caps(self.problem.host, U, self.floors, room=_ROOM)
        value = self.problem.value(U)
        if value < self.objective - _ROUNDING * max(1.0, self.objective):
            self.U, self.objective = U, value

    def descend(self, starts: Array, *, bound: float = 0.0, widest: float = np.inf) -> None:
        """Offer the best outputs that descent finds from starts; none are below ``bound``.

        The smoothing of the other criteria leads away from the starts, unless it is made narrow.
        """
        problem, bound = self.problem, max(bound, self.lower_bound)
        U, steps = lowest(
            problem.host,
            on_caps(problem.host, starts, self.floors),
            self.floors,
            problem.criterion,
            problem.pair_weights,
            bound=bound,
            goal=0.1 * (problem.tol if problem._plain else OPTIMAL_GAP),
            max_iter=int(np.clip(_GRADIENTS / problem._work, 20, 300)),
            widest=widest,
        )
        self.offer(U)
        self.n_iter += steps

    def prove(self, kind: str, arrays: dict[str, Array]) -> None:
        """Evaluate a dual point, and keep it where its bound is larger."""
        try:
            certificate, proved = self._evaluated(kind, arrays)
        except CertificateError:  # it proves nothing
            return
        if proved.bound.lower > self.proved.bound.lower:
            self.certificate, self.proved = certificate, proved

    def prove_by(self, other: Answer) -> None:
        """Take the dual point of other floors, whatever its bound."""
        dual = other.certificate
        self.certificate, self.proved = self._evaluated(dual.kind, dict(dual.arrays))

    def _evaluated(self, kind: str, arrays: dict[str, Array]) -> tuple[Certificate, DualBound]:
        problem = self.problem
        info = {"criterion": problem.criterion, "rank": len(problem.host)}
        certificate = Certificate(kind, {"factor": problem.host, **arrays}, info)
        given = certificate, problem.criterion, problem.pair_weights, self.floors
        return certificate, factor_bound(*given, problem.host, Floats(parts=2))
