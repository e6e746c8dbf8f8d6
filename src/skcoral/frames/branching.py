"""Branch and bound over slabs: what is bounded is told by ``cap_cuts`` and ``null_cuts``.

A part is given by slabs ``lo ≤ vᵀx ≤ hi`` of unit vectors x. Where the bound of a part is not
attained, its relaxation takes some x for a mixture of two places; cutting between the two, and
bounding each side for itself, removes the mixture. The part with the least bound is cut next, and
the least bound of all parts is one for the whole.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skcoral._arrays import Array

_ALIGNED = 0.5  # cosine to an earlier cut of the same vector, which is then refined
_INNER = 0.4  # share of a slab that a cut leaves on either side at least
_WORTH = 0.5  # of the gap of the least part, that of others cut with it


@dataclass(frozen=True)
class Slab:
    """``lo ≤ vᵀx ≤ hi`` for the vector x of one variable."""

    variable: int
    direction: Array
    lo: float
    hi: float


@dataclass(frozen=True)
class Part:
    """Slabs, the dual point that bounds what lies in them, and where the part was cut off.

    ``place`` holds the number of the cut and the side.
    """

    point: Any
    slabs: tuple[Slab, ...]
    place: tuple[int, int] | None = None


class Problem(Protocol):
    """What is cut."""

    value: float  # attained so far
    stack: int  # parts that are bounded together

    def bounded(self, slabs: list[tuple[Slab, ...]], before: list[Any]) -> list[Any]:
        """Points of parts, each with a ``bound``, from those of the parts they were cut from."""

    def widest(self, point: Any) -> tuple[int, Array]:
        """The vector that the relaxation spreads most, and in which direction."""

    def whole(self, variable: int, direction: Array) -> Slab:
        """The slab of a direction, or of its opposite, that has everything in it."""

    def mean(self, point: Any, slab: Slab) -> float:
        """Where the relaxation has the vector of a slab, along its direction."""

    def look_around(self, point: Any) -> None:
        """Look for a smaller value near the point of a part."""


@dataclass(frozen=True)
class Tree:
    """All cuts and the parts that are left.

    Attributes
    ----------
    cuts : list of tuples
        Variable, direction and the value at which each was cut.
    children : list of lists of int
        Below and above: a later cut by its number, or a part as ``-1 - number``.
    parts : list of Part
        In the order in which they were bounded.
    count : int
        Parts that were bounded.
    """

    cuts: list[tuple[int, Array, float]]
    children: list[list[int]]
    parts: list[Part]
    count: int

    @property
    def bound(self) -> float:
        """For the whole problem."""
        return min(float(part.point.bound) for part in self.parts)

    @property
    def arrays(self) -> dict[str, Any]:
        """Cuts, and multipliers of the slabs of each part, as a proof has them."""
        mu = np.zeros((len(self.parts), max(len(part.slabs) for part in self.parts)))
        for part, row in zip(self.parts, mu, strict=True):
            row[: len(part.slabs)] = part.point.mu
        return {
            "direction": np.array([cut[1] for cut in self.cuts]),
            "at": np.array([cut[2] for cut in self.cuts]),
            "children": np.array(self.children, dtype=np.float64),
            "mu": mu,
            "least": int(np.argmin([part.point.bound for part in self.parts])),
        }


def branch(
    problem: Problem, root: Part, *, aim: float, going: Callable[[int, float], bool], max_parts: int
) -> Tree:
    """Cut until the gap is at most ``aim``, or ``max_parts`` parts have been bounded.

    ``going`` is told the number of parts and the gap, and ends the search by False.
    """
    cuts: list[tuple[int, Array, float]] = []
    children: list[list[int]] = []
    heap = [(root.point.bound, 0, root)]
    count = 1
    while count < max_parts:
        gap = problem.value - heap[0][0]
        if gap <= aim or not going(count, gap):
            break
        most = min(problem.stack, (len(heap) + 1) // 2, (max_parts - count + 1) // 2)
        least = [heapq.heappop(heap)[2]]
        while len(least) < most and problem.value - heap[0][0] > max(aim, _WORTH * gap):
            least.append(heapq.heappop(heap)[2])
        problem.look_around(least[0].point)
        slabs: list[tuple[Slab, ...]] = []
        for part in least:
            place, slab = _chosen(problem, part)
            width = slab.hi - slab.lo
            middle = problem.mean(part.point, slab)
            at = float(np.clip(middle, slab.lo + _INNER * width, slab.hi - _INNER * width))
            if part.place is not None:
                children[part.place[0]][part.place[1]] = len(cuts)
            for ends in ((slab.lo, at), (at, slab.hi)):
                cut = Slab(slab.variable, slab.direction, *ends)
                slabs.append((*part.slabs[:place], cut, *part.slabs[place + 1 :]))
            cuts.append((slab.variable, slab.direction, at))
            children.append([0, 0])
        before = [part.point for part in least for _ in range(2)]
        points = problem.bounded(slabs, before)
        for k, (own, point) in enumerate(zip(slabs, points, strict=True)):
            count += 1
            new = Part(point, own, (len(cuts) - len(least) + k // 2, k % 2))
            heapq.heappush(heap, (point.bound, count, new))
    parts = [part for _, _, part in sorted(heap, key=lambda entry: entry[1])]
    for number, part in enumerate(parts):
        if part.place is not None:
            children[part.place[0]][part.place[1]] = -1 - number
    return Tree(cuts, children, parts, count)


def _chosen(problem: Problem, part: Part) -> tuple[int, Slab]:
    """The slab to cut, and its place: where a vector of the relaxation is spread most."""
    j, v = problem.widest(part.point)
    cosines = [abs(float(slab.direction @ v)) if slab.variable == j else 0.0 for slab in part.slabs]
    if max(cosines, default=0.0) > _ALIGNED:
        place = int(np.argmax(cosines))
        return place, part.slabs[place]
    return len(part.slabs), problem.whole(j, v / np.linalg.norm(v))
