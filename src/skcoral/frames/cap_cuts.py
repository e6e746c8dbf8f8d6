"""Branch and bound over the outputs: the bound (★★) on parts of the caps, for few variables."""

from __future__ import annotations

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.answer import Answer, CapProof, FrameProof
from skcoral.frames.branching import Part, Slab, Tree, branch
from skcoral.frames.caps import on_caps
from skcoral.frames.descent import descend
from skcoral.frames.parts import PartPoint, Parts
from skcoral.frames.proof import at_source

_LARGEST = 300  # unknowns of a part, ½r² + 2p
_COARSE = 4e-3  # gap, relative to the objective, that is worth all parts
_CHECKED = 3600  # parts times squared number of variables between two looks at the progress
_HALVED = 0.5  # what smaller gaps have to shrink to by 100 parts
_PAYS = 0.998  # and larger ones between two looks
_STACKED = 2e4  # (½r² + 2p)² of the parts that are bounded together
_SHARE = 0.1  # of the gap that is left, how accurately a part is bounded


class CapCuts:
    """Outputs ``U`` on the caps, with the sum of squares ``value``; parts are in slabs of them."""

    def __init__(self, A: Array, floors: Array, U: Array, value: float, goal: float) -> None:
        r, p = A.shape
        self.A, self.floors, self.U, self.value, self.goal = A, floors, U, value, goal
        self.aim = goal * max(1.0, value)
        self.stack = int(np.clip(_STACKED / (0.5 * r * r + 2 * p) ** 2, 1, 32))

    def bounded(
        self, slabs: list[tuple[Slab, ...]], before: list[PartPoint] | None
    ) -> list[PartPoint]:
        """Bound parts from the points of those that they were cut from, and no worse than these."""
        enough, goal = self.value - 0.5 * self.aim, 0.1 * self.aim
        parts = Parts(self.A, self.floors, slabs)
        points = parts.maximise(enough=enough, share=_SHARE, goal=goal, before=before)
        known = enumerate(before or ())
        low = [k for k, point in known if points[k].bound < min(point.bound, enough)]
        if low:
            again = Parts(self.A, self.floors, [slabs[k] for k in low]).maximise(
                enough=enough, share=0.1 * _SHARE, goal=goal
            )
            for k, point in zip(low, again, strict=True):
                points[k] = max(points[k], point, key=lambda candidate: candidate.bound)
        return points

    def widest(self, point: PartPoint) -> tuple[int, Array]:  # noqa: D102
        return point.widest

    def whole(self, variable: int, direction: Array) -> Slab:  # noqa: D102
        a = self.A[:, variable]
        v = np.copysign(1.0, a @ direction) * direction
        return Slab(variable, v, *limits(a, v, float(self.floors[variable])))

    def mean(self, point: PartPoint, slab: Slab) -> float:  # noqa: D102
        return float(slab.direction @ point.U[:, slab.variable])

    def look_around(self, point: PartPoint) -> None:  # noqa: D102
        found, reached, _ = descend(
            self.A,
            on_caps(self.A, point.U, self.floors),
            self.floors,
            bound=point.bound,
            goal=0.1 * self.goal,
            max_iter=100,
        )
        if reached < self.value:
            self.U, self.value = found, reached


def cut_caps(
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
    r, p = A.shape
    size = 0.5 * r * r + 2 * p
    max_parts = min(max_parts, int(3e7 / size**2.5))
    if max_parts < 3 or size > _LARGEST:
        return Answer(U, value, -np.inf, None, 0)
    problem = CapCuts(A, floors, U, value, goal)
    root = Part(problem.bounded([()], None)[0], ())
    look = check = int(np.clip(_CHECKED / p**2, 4, 100))
    last = value - root.point.bound

    def going(count: int, gap: float) -> bool:
        nonlocal last, check
        if count <= check:
            return True
        pays = bool(gap <= last * (_PAYS if gap > _COARSE * value else _HALVED ** (look / 100)))
        last, check = gap, check + look
        return pays

    tree = branch(problem, root, aim=problem.aim, going=going, max_parts=max_parts)
    proof = _proof(A, floors, tree) if tree.cuts else _finite(A, floors, root.point, ())
    return Answer(problem.U, problem.value, tree.bound, proof, tree.count)


def limits(a: Array, v: Array, rho: float) -> tuple[float, float]:
    """The range of ``vᵀu`` on the cap ``aᵀu ≥ ρ``, for unit vectors with ``aᵀv ≥ 0``."""
    cosine = float(a @ v)
    turned = float(np.linalg.norm(v - cosine * a) * np.sqrt((1.0 - rho) * (1.0 + rho)))
    return cosine * rho - turned, 1.0 if cosine >= rho else cosine * rho + turned


def _finite(A: Array, floors: Array, point: PartPoint, slabs: tuple[Slab, ...]) -> FrameProof:
    """Multipliers of a part, with N shifted to its smallest and those of floors of one finite."""
    shift = float(np.linalg.eigvalsh(point.N)[0])
    N = point.N - shift * np.eye(len(A))
    N, lam, kappa = 0.5 * (N + N.T), point.lam.copy(), point.kappa + shift
    whole = np.setdiff1d(np.arange(A.shape[1]), [slab.variable for slab in slabs])
    kappa[whole] = np.maximum(kappa[whole], 0.0)
    pinned = floors >= 1.0
    if pinned.any():
        lam[pinned], kappa[pinned] = at_source(N, A[:, pinned])
    return FrameProof(N, lam, kappa)


def _proof(A: Array, floors: Array, tree: Tree) -> CapProof:
    """All leaves in arrays."""
    leaves = [_finite(A, floors, part.point, part.slabs) for part in tree.parts]
    return CapProof(
        **tree.arrays,
        N=np.vstack([leaf.N for leaf in leaves]),
        kappa=np.array([leaf.kappa for leaf in leaves]),
        lam=np.array([leaf.lam for leaf in leaves]),
        variable=np.array([cut[0] for cut in tree.cuts], dtype=np.float64),
    )
