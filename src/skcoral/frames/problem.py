"""One problem in the factor form: any criterion, any floors, the best bound that there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skcoral._arrays import Array, column_dots, to_device, to_host
from skcoral.frames.branching import BranchProof, branch
from skcoral.frames.caps import on_caps
from skcoral.frames.descent import squares
from skcoral.frames.lifted import LiftedProof, lifted_bound, lifted_proof
from skcoral.frames.pairs import criterion_of, descend_pairs
from skcoral.frames.point import welch
from skcoral.frames.proof import FrameProof
from skcoral.frames.solver import FrameSolved, solve_squares
from skcoral.results import OPTIMAL_GAP, Criterion

Callback = Callable[[int, float, float], object]

_LIFTED_LIMIT = {True: 80, False: 300}  # variables for which (★) is tried: squares, or others
_PAIRS_LIMIT = 3000  # variables for which pairs are looked at one by one
_BRANCHING = 3e7  # (½r² + 2p)^2.5 of the parts that caps are cut into, all together
_ROOM = 1e-15


@dataclass(frozen=True)
class Answer:
    """Feasible outputs and what is proved about them.

    Attributes
    ----------
    U : array of shape (r, p)
        The outputs in the basis of the factor.
    objective, lower_bound : float
        By the criterion.
    proof : FrameProof, LiftedProof, BranchProof or None
        The dual point of (★★), of (★), of (★★) on parts, or none: the bound of the rank.
    slopes : ndarray of shape (p,)
        Derivatives of the bound by the floors.
    n_iter : int
        Steps taken.
    """

    U: Any
    objective: float
    lower_bound: float
    proof: FrameProof | LiftedProof | BranchProof | None
    slopes: Array
    n_iter: int

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.objective - self.lower_bound <= OPTIMAL_GAP * max(1.0, self.objective)


@dataclass(frozen=True)
class FrameProblem:
    """A factor ``A`` (r × p, unit columns) with a criterion.

    ``parts`` is the largest number of parts that caps are cut into where the gap is open.
    """

    A: Any
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    parts: int = 0

    @property
    def least(self) -> float:
        """What the rank alone proves about the criterion, for every transformation."""
        r, p = self.A.shape
        return self._from_squares(welch(p, r))

    def solve(
        self, floors: Array, *, start: Any = None, callback: Callback | None = None
    ) -> Answer:
        """Solve for these floors, from the outputs of a neighbouring problem if given."""
        if self.A.shape[0] == 1:  # one dimension leaves a sign and nothing to choose
            return self._answer(self.A, None, floors, 0)
        plain = self.criterion == "squared" and self.pair_weights is None
        squares = solve_squares(
            self.A,
            floors,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback if plain else None,
            start=start,
        )
        answer = self._from_frame(squares, floors)
        if answer.certified or (self.pair_weights is not None and not self.pair_weights.any()):
            return answer
        p = self.A.shape[1]
        if p <= _LIFTED_LIMIT[plain]:
            answer = self._lifted(answer, floors)
        if not plain and p <= _PAIRS_LIMIT and not answer.certified:
            answer = self._descended(answer, floors)
        if plain and not answer.certified:
            answer = self._branched(answer, floors)
        if callback is not None:
            callback(answer.n_iter, answer.objective, answer.lower_bound)
        return answer

    def value(self, U: Any) -> float:
        """The criterion of outputs."""
        return criterion_of(np.asarray(to_host(U)), self.criterion, self.pair_weights)

    def _from_squares(self, bound: float) -> float:
        """A bound on the sum of squares, as one on the criterion (correlations are at most 1)."""
        p = self.A.shape[1]
        if self.pair_weights is not None or p < 2:
            return 0.0
        if self.criterion == "worst":
            return float(np.sqrt(max(bound, 0.0) / (0.5 * p * (p - 1))))
        return bound

    def _from_frame(self, solved: FrameSolved, floors: Array) -> Answer:
        if self.criterion == "squared" and self.pair_weights is None:
            proof = solved.proof
            slopes = np.zeros(len(floors)) if proof is None else 2.0 * proof.lam
            return Answer(
                solved.U, solved.objective, solved.lower_bound, proof, slopes, solved.n_iter
            )
        bound = self._from_squares(solved.lower_bound)
        slopes = np.zeros(len(floors))
        if solved.proof is not None and self.pair_weights is None:
            share = bound / solved.lower_bound * 0.5 if self.criterion == "worst" else 1.0
            slopes = 2.0 * share * solved.proof.lam
        proof = solved.proof if self.pair_weights is None else None
        value = self.value(solved.U)
        return Answer(solved.U, value, min(bound, value), proof, slopes, solved.n_iter)

    def _answer(self, U: Any, proof: LiftedProof | None, floors: Array, n_iter: int) -> Answer:
        U = on_caps(self.A, U, floors, room=_ROOM)
        least = min(self.least, self.value(U))
        return Answer(U, self.value(U), least, proof, np.zeros(len(floors)), n_iter)

    def _lifted(self, answer: Answer, floors: Array) -> Answer:
        """Try the bound (★) and the outputs that its dual point suggests."""
        A = np.asarray(to_host(self.A))
        proof = lifted_proof(
            A, floors, self.criterion, self.pair_weights, tol=self.tol, max_iter=self.max_iter
        )
        if proof is None:
            return answer
        U, objective = np.asarray(to_host(answer.U)), answer.objective
        for suggested in proof.suggested:
            candidate = on_caps(A, suggested, floors, room=_ROOM)
            value = self.value(candidate)
            if value < objective:
                U, objective = candidate, value
        bound = lifted_bound(proof, A, U, floors, self.criterion, self.pair_weights)
        found = replace(
            answer, U=to_device(U, self.A), objective=objective, n_iter=answer.n_iter + proof.n_iter
        )
        if bound <= answer.lower_bound:
            return found
        return replace(
            found, lower_bound=min(bound, objective), proof=proof, slopes=2.0 * proof.lam
        )

    def _branched(self, answer: Answer, floors: Array) -> Answer:
        """Cut the caps into parts, as far as that is affordable."""
        A, U = np.asarray(to_host(self.A)), np.asarray(to_host(answer.U))
        parts = min(self.parts, int(_BRANCHING / (0.5 * len(A) ** 2 + 2 * A.shape[1]) ** 2.5))
        if parts < 3:
            return answer
        found = branch(
            A,
            floors,
            U,
            answer.objective,
            goal=0.5 * OPTIMAL_GAP,
            max_parts=parts,
        )
        U = on_caps(A, found.U, floors, room=_ROOM)
        new = replace(
            answer,
            U=to_device(U, self.A),
            objective=squares(U),
            n_iter=answer.n_iter + found.n_parts,
        )
        if found.lower_bound <= answer.lower_bound:
            return new
        proof, bound = found.proof, min(found.lower_bound, new.objective)
        lam = proof.lam if isinstance(proof, FrameProof) else proof.lam[proof.least]
        return replace(new, lower_bound=bound, proof=proof, slopes=2.0 * lam)

    def _descended(self, answer: Answer, floors: Array) -> Answer:
        A, U = np.asarray(to_host(self.A)), np.asarray(to_host(answer.U))
        cost = A.shape[0] * A.shape[1] ** 2
        U, value, steps = descend_pairs(
            A,
            U,
            floors,
            self.criterion,
            self.pair_weights,
            bound=answer.lower_bound,
            goal=0.1 * OPTIMAL_GAP,
            max_iter=int(np.clip(2e9 / max(cost, 1), 20, 300)),
        )
        U = on_caps(A, U, floors, room=_ROOM)
        value = self.value(U)
        answer = replace(answer, n_iter=answer.n_iter + steps)
        return (
            answer
            if value >= answer.objective
            else replace(answer, U=to_device(U, self.A), objective=value)
        )

    def fidelity(self, U: Any) -> Array:
        """Correlation of each output with its source."""
        return column_dots(self.A, U)
