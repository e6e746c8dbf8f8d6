"""Branch and bound over the null vector: the bound (★r) on parts, for r = p - 1.

The Gram matrix of p outputs in p - 1 dimensions maps a unit vector w to zero, which is w or -w. For
a given w the least residual is a convex problem, and the relaxation mixes few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.answer import NullProof
from skcoral.frames.branching import Part, Slab, branch
from skcoral.frames.rank_bound import RankBound
from skcoral.frames.rank_penalties import NullVector, SlabPenalty
from skcoral.frames.rank_point import RankPoint

_SHARE = 0.2  # of the gap that is left, how accurately a part is bounded
_FEW, _MOST = 9, 400  # parts that are worth it, and at most
_PARTS = 6.3e5  # the same times the number of variables to the power of 2.5
_CHECKED = 20  # parts after which to go on if the gap has shrunk to
_PAYS = 0.95  # this, or if at its pace it ends, with all parts, within
_NEAR = 1.25  # of the aim


@dataclass(frozen=True)
class NullPoint:
    """The dual point of a part, with the names that branching knows."""

    point: RankPoint

    @property
    def bound(self) -> float:
        """On the sum of squares of all outputs whose null vector is in the part."""
        return self.point.value

    @property
    def penalty(self) -> SlabPenalty:
        """With the mean of the null vector and its second moments."""
        assert isinstance(self.point.penalty, SlabPenalty)
        return self.point.penalty

    @property
    def mu(self) -> Array:
        """Multipliers of the slabs."""
        return self.point.y


class NullCuts:
    """The null vector of Gram matrices; ``value`` is the sum of squares that is attained."""

    stack = 1

    def __init__(self, A: Array, floors: Array, value: float, aim: float) -> None:
        self.A, self.floors, self.value, self.aim = A, floors, value, aim

    def bounded(
        self, slabs: list[tuple[Slab, ...]], before: Sequence[NullPoint | None]
    ) -> list[NullPoint]:
        """Bound parts, from an early point of those that they were cut from."""
        out = []
        for own, parent in zip(slabs, before, strict=True):
            part = RankBound(self.A, self.floors, NullVector(own))
            start = None
            if parent is not None and parent.point.early is not None:
                early = parent.point.early
                y = np.r_[early.y, np.full(len(own) - len(early.y), early.tau)]
                start = part.at(early.H, early.kappa, early.lam, y, early.tau)
            out.append(NullPoint(part.maximise(self._enough, start, self.value - self.aim)))
        return out

    def _enough(self, point: RankPoint) -> bool:
        return point.left <= _SHARE * (self.value - point.value)

    def widest(self, point: NullPoint) -> tuple[int, Array]:  # noqa: D102
        penalty = point.penalty
        return 0, np.linalg.eigh(penalty.second - np.outer(penalty.w, penalty.w))[1][:, -1]

    def whole(self, variable: int, direction: Array) -> Slab:  # noqa: D102
        return Slab(variable, direction, -1.0, 1.0)

    def mean(self, point: NullPoint, slab: Slab) -> float:  # noqa: D102
        return float(slab.direction @ point.penalty.w)

    def look_around(self, point: NullPoint) -> None:
        """Do nothing: outputs have been looked for near the point of the whole problem."""


def cut_null_vectors(
    A: Array, floors: Array, value: float, root: RankPoint, *, aim: float
) -> tuple[float, NullProof | None, int]:
    """Cut until the gap to ``value`` is at most ``aim``, or that takes too many parts.

    Returns the bound, its proof and the number of parts. ``root`` is the point of (★r) for the
    whole problem.
    """
    max_parts = int(min(_MOST, _PARTS / len(floors) ** 2.5))
    if max_parts < _FEW:
        return -np.inf, None, 0
    problem = NullCuts(A, floors, value, aim)
    values, vectors = np.linalg.eigh(root.H - np.diag(root.kappa))
    # w or -w is in the half towards its likeliest direction
    half = Slab(0, vectors[:, np.argmin(values**2)], 0.0, 1.0)
    first = Part(problem.bounded([(half,)], [None])[0], (half,))
    last = value - first.point.bound

    def going(count: int, gap: float) -> bool:
        nonlocal last
        if count < _CHECKED or count % _CHECKED > 1:
            return True
        pace, last = gap / last, gap
        end = gap * float(pace ** ((max_parts - count) / _CHECKED))
        return pace <= _PAYS or end <= _NEAR * aim

    tree = branch(problem, first, aim=aim, going=going, max_parts=max_parts)
    if not tree.cuts:
        return -np.inf, None, tree.count
    leaves = [RankBound(A, floors).proof(part.point.point) for part in tree.parts]
    proof = NullProof(
        **tree.arrays,
        half=half.direction,
        lam=np.array([leaf.lam for leaf in leaves]),
        H=np.vstack([leaf.H for leaf in leaves]),
        diagonal=np.array([leaf.diagonal for leaf in leaves]),
        eta=np.array([part.point.penalty.eta for part in tree.parts]),
    )
    return tree.bound, proof, tree.count
