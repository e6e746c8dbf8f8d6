"""Branch and bound: the least sum of squares where one relaxation leaves a gap.

Where the bound (★★) is not attained, it takes some outputs for a mixture of two places on their
caps. Cutting such a cap between the two, and bounding each part for itself, removes the mixture;
the least bound of all parts is one for the whole. The part with the least bound is cut next.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.answer import Answer, BranchProof, FrameProof
from skcoral.frames.caps import on_caps
from skcoral.frames.cuts import Slab
from skcoral.frames.descent import descend
from skcoral.frames.large_parts import bound_part
from skcoral.frames.parts import PartPoint, Parts
from skcoral.frames.proof import at_source

_ALIGNED = 0.5  # cosine to an earlier cut of the same cap, which is then refined
_INNER = 0.4  # share of a slab that a cut leaves on either side at least
_COARSE = 4e-3  # gap, relative to the objective, that is worth all parts
_CHECKED = 3600  # parts times squared number of variables between two looks at the progress
_FINE = 1e-4  # gap that large parts are cut for longer
_DENSE = 300  # unknowns of a part, ½r² + 2p, up to which dense matrices are faster
_HALVED = 0.5  # what smaller gaps have to shrink to by 100 parts
_PAYS = 0.998  # and larger ones between two looks
_WIDE = 0.4  # of all large parts, those that larger gaps are cut for
_WORTH = 0.5  # of the gap of the least part, that of others cut with it
_STACKED = 2e4  # (½r² + 2p)² of the parts that are bounded together
_SHARE = 0.1  # of the gap that is left, how accurately a part is bounded
_ROUNDS, _GAIN = 8, 0.03  # of shares for all of the caps, and what a round has to gain of the gap


@dataclass(frozen=True)
class _Part:
    point: PartPoint
    slabs: tuple[Slab, ...]
    place: tuple[int, int] | None  # the cut and the side


def branch(
    A: Array, floors: Array, U: Array, value: float, *, goal: float, max_parts: int
) -> Answer:
    """Cut caps until the gap is closed, or ``max_parts`` parts have been bounded.

    Parameters
    ----------
    A : ndarray of shape (r, p)
        Factor with unit columns.
    floors : ndarray of shape (p,)
        The least fidelities.
    U, value : ndarray of shape (r, p) and float
        Feasible outputs and their sum of squares.
    goal : float
        Gap at which to stop, relative to ``max(1, objective)``. The search also ends where the gap
        shrinks too slowly.
    max_parts : int
        Largest number of parts; fewer where they are large.
    """
    cuts: list[tuple[int, Array, float]] = []
    children: list[list[int]] = []
    aim = goal * max(1.0, value)
    r, p = A.shape
    size = 0.5 * r * r + 2 * p  # unknowns of a part
    dense = size <= _DENSE
    stack = int(np.clip(_STACKED / size**2, 1, 32))
    max_parts = min(max_parts, int(3e7 / size**2.5 if dense else 4e7 / (r * r * p + 2e5)))
    if max_parts < (3 if dense else 40):
        return Answer(U, value, -np.inf, None, 0)
    first = _bounded(A, floors, [()], [None], value, aim, dense=dense)[0]
    for _ in range(_ROUNDS):
        if (first.shares == 1.0).all():
            break
        again = _bounded(A, floors, [()], [first], value, aim, dense=dense)[0]
        gain, first = again.bound - first.bound, max(first, again, key=lambda point: point.bound)
        if gain <= _GAIN * (value - first.bound):
            break
    heap = [(first.bound, 0, _Part(first, (), None))]
    count, last = 1, value - first.bound
    look = int(np.clip(_CHECKED / p**2, 4, 100)) if dense else 20 if last > _FINE * value else 60
    check = look
    while count < max_parts:
        gap = value - heap[0][0]
        wide = gap > _COARSE * value
        if gap <= aim or (wide and not dense and count > _WIDE * max_parts):
            break
        if count > check:
            if gap > last * (_PAYS if wide else _HALVED ** (look / 100)):
                break
            last, check = gap, check + look
        most = min(stack, (len(heap) + 1) // 2, (max_parts - count + 1) // 2)
        least = [heapq.heappop(heap)[2]]
        while len(least) < most and value - heap[0][0] > max(aim, _WORTH * gap):
            least.append(heapq.heappop(heap)[2])
        start = on_caps(A, least[0].point.U, floors)
        found, reached, _ = descend(
            A, start, floors, bound=least[0].point.bound, goal=0.1 * goal, max_iter=100
        )
        if reached < value:
            U, value = found, reached
        slabs: list[tuple[Slab, ...]] = []
        for part in least:
            place, slab = _chosen(A, floors, part)
            width = slab.hi - slab.lo
            middle = slab.direction @ part.point.U[:, slab.variable]
            at = float(np.clip(middle, slab.lo + _INNER * width, slab.hi - _INNER * width))
            if part.place is not None:
                children[part.place[0]][part.place[1]] = len(cuts)
            for ends in ((slab.lo, at), (at, slab.hi)):
                cut = Slab(slab.variable, slab.direction, *ends)
                slabs.append((*part.slabs[:place], cut, *part.slabs[place + 1 :]))
            cuts.append((slab.variable, slab.direction, at))
            children.append([0, 0])
        parents = [part for part in least for _ in range(2)]
        before = [part.point for part in parents]
        points = _bounded(A, floors, slabs, before, value - 0.5 * aim, aim, dense=dense)
        for k, (own, point) in enumerate(zip(slabs, points, strict=True)):
            count += 1
            new = _Part(point, own, (len(cuts) - len(least) + k // 2, k % 2))
            heapq.heappush(heap, (point.bound, count, new))
    if not cuts:
        proof = _finite(A, floors, first, ()) if (first.shares == 1.0).all() else None
        return Answer(U, value, first.bound if proof else -np.inf, proof, count)
    parts = [part for _, _, part in sorted(heap, key=lambda entry: entry[1])]
    for number, part in enumerate(parts):
        if part.place is not None:
            children[part.place[0]][part.place[1]] = -1 - number
    return Answer(U, value, heap[0][0], _proof(A, floors, cuts, children, parts), count)


def _bounded(
    A: Array,
    floors: Array,
    slabs: Sequence[tuple[Slab, ...]],
    before: Sequence[PartPoint | None],
    enough: float,
    aim: float,
    *,
    dense: bool,
) -> list[PartPoint]:
    """Bound parts from the points of those that they were cut from, and no worse than these."""
    goal = 0.1 * aim
    known = [point for point in before if point is not None]
    shares = np.array([point.shares for point in known] or [np.ones(len(floors))])
    if not dense:
        return [
            bound_part(A, floors, own, point, part, enough=enough, share=_SHARE, goal=goal)
            for own, point, part in zip(slabs, before, shares, strict=True)
        ]
    points = Parts(A, floors, slabs, shares).maximise(
        enough=enough, share=_SHARE, goal=goal, before=known or None
    )
    low = [k for k, point in enumerate(known) if points[k].bound < min(point.bound, enough)]
    if low:
        again = Parts(A, floors, [slabs[k] for k in low], shares[low]).maximise(
            enough=enough, share=0.1 * _SHARE, goal=goal
        )
        for k, point in zip(low, again, strict=True):
            points[k] = max(points[k], point, key=lambda candidate: candidate.bound)
    return points


def _chosen(A: Array, floors: Array, part: _Part) -> tuple[int, Slab]:
    """The slab to cut, and its place: where an output of the relaxation is spread most."""
    j, v = part.point.widest
    cosines = [abs(float(slab.direction @ v)) if slab.variable == j else 0.0 for slab in part.slabs]
    if max(cosines, default=0.0) > _ALIGNED:
        place = int(np.argmax(cosines))
        return place, part.slabs[place]
    v = np.copysign(1.0, A[:, j] @ v) * v / np.linalg.norm(v)
    return len(part.slabs), Slab(j, v, *limits(A[:, j], v, float(floors[j])))


def limits(a: Array, v: Array, rho: float) -> tuple[float, float]:
    """The range of ``vᵀu`` on the cap ``aᵀu ≥ ρ``, for unit vectors with ``aᵀv ≥ 0``."""
    cosine = float(a @ v)
    turned = float(np.linalg.norm(v - cosine * a) * np.sqrt((1.0 - rho) * (1.0 + rho)))
    return cosine * rho - turned, 1.0 if cosine >= rho else cosine * rho + turned


def _finite(A: Array, floors: Array, point: PartPoint, slabs: tuple[Slab, ...]) -> FrameProof:
    """Multipliers of a part, with N shifted to its smallest and those of floors of one finite.

    With shares, variable j has ``ω_j N`` in place of N, and its multipliers are ω_j times as large.
    """
    shift = float(np.linalg.eigvalsh(point.N)[0])
    N = point.N - shift * np.eye(len(A))
    N, lam, kappa = 0.5 * (N + N.T), point.lam.copy(), point.kappa + shift
    whole = np.setdiff1d(np.arange(A.shape[1]), [slab.variable for slab in slabs])
    kappa[whole] = np.maximum(kappa[whole], 0.0)
    pinned = floors >= 1.0
    if pinned.any():
        lam[pinned], kappa[pinned] = at_source(N, A[:, pinned])
    return FrameProof(N, point.shares * lam, point.shares * kappa)


def _proof(
    A: Array,
    floors: Array,
    cuts: list[tuple[int, Array, float]],
    children: list[list[int]],
    parts: list[_Part],
) -> BranchProof:
    """All leaves in arrays."""
    most = max(len(part.slabs) for part in parts)
    leaves = [_finite(A, floors, part.point, part.slabs) for part in parts]
    mu = np.zeros((len(parts), most))
    for part, row in zip(parts, mu, strict=True):
        own = [slab.variable for slab in part.slabs]
        row[: len(own)] = part.point.shares[own] * part.point.mu
    return BranchProof(
        variable=np.array([cut[0] for cut in cuts], dtype=np.float64),
        direction=np.array([cut[1] for cut in cuts]),
        at=np.array([cut[2] for cut in cuts]),
        children=np.array(children, dtype=np.float64),
        N=np.vstack([leaf.N for leaf in leaves]),
        kappa=np.array([leaf.kappa for leaf in leaves]),
        lam=np.array([leaf.lam for leaf in leaves]),
        mu=mu,
        shares=np.array([part.point.shares for part in parts]),
        least=int(np.argmin([part.point.bound for part in parts])),
    )
