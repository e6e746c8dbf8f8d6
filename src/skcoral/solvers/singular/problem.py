"""One problem in the factor form: any criterion, any floors, the best bound that there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, to_device, to_host
from skcoral.core.criteria import Criterion
from skcoral.core.lowrank import welch
from skcoral.core.tolerances import OPTIMAL_GAP
from skcoral.solvers.singular.answer import Answer
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import descend, squares
from skcoral.solvers.singular.lifted import lifted_proof, robust_bound
from skcoral.solvers.singular.pairs import criterion_of, descend_pairs
from skcoral.solvers.singular.rank_bound import RankBound, gap_of_rank
from skcoral.solvers.singular.rank_factors import gap_of_factors, proof_by_outputs
from skcoral.solvers.singular.rank_point import RankPoint
from skcoral.solvers.singular.solver import STARTS, Callback, descend_from, solve_squares

_RANK_LIMIT = 150  # variables for which (★r) is maximised
_LIFTED_LIMIT = 300  # variables for which (★) is tried
_PAIRS_LIMIT = 3000  # variables for which pairs are looked at one by one
_FURTHER = 3e4  # rp² of all further starts for the other criteria together
_NEAR = 0.03  # width of the smoothing for starts near the best outputs
_HIDDEN = 0.1  # of an open gap, how accurately it is known; a fifth of this takes a tenth more time
_GRADIENTS = 1000  # from each start
_ROOM = 1e-15
_ROUNDING = 1e-13


@dataclass(frozen=True)
class FrameProblem:
    """A factor ``A`` (r × p, unit columns) with a criterion.

    Where the gap is open, outputs are looked for from ``starts`` further places. ``dropped`` is the
    variance that the factor leaves out.
    """

    A: Any
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    starts: int = STARTS
    dropped: float = 0.0

    @property
    def least(self) -> float:
        """What the rank alone proves about the criterion, for every transformation."""
        r, p = self.A.shape
        return max(self._from_squares(welch(p, r)), self._from_rank)

    @property
    def _from_rank(self) -> float:
        """``Σ|g_ij| ≥ p - r``, more than the squares say where p < 2r."""
        r, p = self.A.shape
        return float(p - r) if self.criterion == "absolute" and self.pair_weights is None else 0.0

    @property
    def _plain(self) -> bool:
        return self.criterion == "squared" and self.pair_weights is None

    def solve(
        self, floors: Array, *, start: Any = None, callback: Callback | None = None
    ) -> Answer:
        """Solve for these floors, from the outputs of a neighbouring problem if given."""
        if self.A.shape[0] == 1:  # one dimension leaves a sign and nothing to choose
            U = on_caps(self.A, self.A, floors, room=_ROOM)
            value = self.value(U)
            return Answer(U, value, min(self.least, value), None, 0)
        answer = solve_squares(
            self.A,
            floors,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback if self._plain else None,
            start=start,
            starts=self.starts if self._plain else 0,
        )
        if not self._plain:
            answer = self._of_criterion(answer)
        if answer.certified or (self.pair_weights is not None and not self.pair_weights.any()):
            return answer
        p = self.A.shape[1]
        if self._plain:
            answer = self._tightened(answer, floors)
        else:
            if p <= _LIFTED_LIMIT:
                answer = self._lifted(answer, floors)
            if p <= _PAIRS_LIMIT and not answer.certified:
                answer = self._descended(answer, floors)
        if callback is not None:
            callback(answer.n_iter, answer.objective, answer.lower_bound)
        return answer

    def value(self, U: Any) -> float:
        """The criterion of outputs."""
        if self._plain:
            return squares(U)
        return criterion_of(np.asarray(to_host(U)), self.criterion, self.pair_weights)

    def _from_squares(self, bound: float) -> float:
        """A bound on the sum of squares, as one on the criterion (correlations are at most 1)."""
        p = self.A.shape[1]
        if self.pair_weights is not None or p < 2:
            return 0.0
        if self.criterion == "worst":
            return float(np.sqrt(max(bound, 0.0) / (0.5 * p * (p - 1))))
        return bound

    def _of_criterion(self, solved: Answer) -> Answer:
        """What a solution for the sum of squares says about another criterion."""
        bound, value = self._from_squares(solved.lower_bound), self.value(solved.U)
        if self._from_rank > bound:
            return Answer(solved.U, value, min(self._from_rank, value), None, solved.n_iter)
        share = 0.5 * bound / solved.lower_bound if self.criterion == "worst" else 1.0
        proof = solved.proof if self.pair_weights is None else None
        return Answer(solved.U, value, min(bound, value), proof, solved.n_iter, share)

    def _with_outputs(self, answer: Answer, U: Array, floors: Array) -> Answer:
        """The answer with other outputs, where these are better by more than rounding."""
        U = on_caps(np.asarray(to_host(self.A)), U, floors, room=_ROOM)
        value = self.value(U)
        if value >= answer.objective - _ROUNDING * max(1.0, answer.objective):
            return answer
        return replace(answer, U=to_device(U, self.A), objective=value)

    @staticmethod
    def _with_bound(answer: Answer, bound: float, proof: Any) -> Answer:
        """The answer with another bound, where this is larger."""
        if bound <= answer.lower_bound:
            return answer
        return replace(answer, lower_bound=min(bound, answer.objective), proof=proof, share=1.0)

    def _lifted(self, answer: Answer, floors: Array) -> Answer:
        """Try the bound (★) and the outputs that its dual point suggests."""
        A, given = np.asarray(to_host(self.A)), (self.criterion, self.pair_weights)
        proof = lifted_proof(A, floors, *given, tol=self.tol, max_iter=self.max_iter)
        if proof is None:
            return answer
        for suggested in proof.suggested:
            answer = self._with_outputs(answer, suggested, floors)
        U = np.asarray(to_host(answer.U))
        bound, proof = robust_bound(proof, A, U, floors, *given, dropped=self.dropped)
        answer = replace(answer, n_iter=answer.n_iter + proof.n_iter)
        return self._with_bound(answer, bound, proof)

    def _tightened(self, answer: Answer, floors: Array) -> Answer:
        """Try the bound (★r): of the dual point that the outputs suggest, and at its maximum."""
        r, p = self.A.shape
        A, U = np.asarray(to_host(self.A)), np.asarray(to_host(answer.U))
        by_outputs = proof_by_outputs(A, U, floors)
        gap = gap_of_factors(by_outputs, A, U, floors)
        answer = self._with_bound(answer, answer.objective - gap, by_outputs)
        # with more than two columns per dimension no p × p array is formed
        if answer.certified or p > min(_RANK_LIMIT, 2 * r):
            return answer
        return self._ranked(answer, floors)

    def _ranked(self, answer: Answer, floors: Array) -> Answer:
        """Try the bound (★r), and outputs near those of its dual point."""
        A, best = np.asarray(to_host(self.A)), answer.objective
        problem = RankBound(A, floors)

        def enough(point: RankPoint) -> bool:
            aim = 0.1 * min(self.tol, OPTIMAL_GAP) * max(1.0, best)
            return point.left <= max(aim, _HIDDEN * (best - point.value))

        point = problem.maximise(enough)
        short = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->j", point.U, point.U), 0.0) / len(A))
        noise = np.random.default_rng(0).normal(size=(1 + self.starts, *A.shape))
        noise[0] = 0.0
        limits: dict[str, Any] = {
            "bound": point.value,
            "goal": 0.1 * self.tol,
            "max_iter": _GRADIENTS,
        }
        near = on_caps(A, point.U + short * noise, floors)
        U, _, steps = descend_from(A, near, floors, np.asarray(to_host(answer.U)), **limits)
        U, _, more = descend(A, U, floors, **limits)
        answer = self._with_outputs(answer, U, floors)
        answer, proof = replace(answer, n_iter=answer.n_iter + steps + more), problem.proof(point)
        gap = gap_of_rank(proof, A, np.asarray(to_host(answer.U)), floors)
        return self._with_bound(answer, answer.objective - gap, proof)

    def _descended(self, answer: Answer, floors: Array) -> Answer:
        """Look for outputs that are better by the criterion itself.

        Equal outputs have no slope along which they would part: further starts are moved at random,
        from a fixed seed.
        """
        A, rng = np.asarray(to_host(self.A)), np.random.default_rng(0)
        work = len(A) * A.shape[1] ** 2
        further = int(min(self.starts, _FURTHER / work))
        # from the outputs alone, which may be enough; from further places; from near the best
        for widest, size, count in (
            (np.inf, 0.0, 0),
            (np.inf, 1.0, 3 * further),
            (_NEAR, 0.4, further),
        ):
            U = np.asarray(to_host(answer.U))
            moved = rng.normal(size=(count, *A.shape)) * np.sqrt((1.0 - floors) / len(A))
            moved = U + size * moved
            if size == 1.0:
                moved[::2] += A - U
            starts = on_caps(A, moved, floors) if count else U[None]
            U, _, steps = descend_pairs(
                A,
                starts,
                floors,
                self.criterion,
                self.pair_weights,
                bound=answer.lower_bound,
                goal=0.1 * OPTIMAL_GAP,
                max_iter=int(np.clip(2e9 / work, 20, 300)),
                widest=widest,
            )
            answer = self._with_outputs(answer, U, floors)
            answer = replace(answer, n_iter=answer.n_iter + steps)
            if answer.certified or not further:
                break
        return answer
