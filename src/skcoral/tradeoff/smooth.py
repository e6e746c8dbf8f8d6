"""The squared criterion from start to finish: start, binding set, barrier path, completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import beside, eigh, library, scaled, submatrix, to_host
from skcoral.tradeoff.binding import Candidate, binding_set, settle
from skcoral.tradeoff.criteria import off
from skcoral.tradeoff.dual import DualPoint
from skcoral.tradeoff.newton import SmoothDual, SmoothSolution, maximise

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Report = Callable[[DualPoint], object]

_EPS = float(np.finfo(np.float64).eps)
_PATH = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
_POLISH_STEPS = 15
_MISSED = 1e-9


def best_start(R: Any, floors: Array, omega: Array, weights: Array) -> tuple[Array, Array]:
    """Start (H, λ) from the threshold or from the identity, whichever has the larger dual value."""
    problem = SmoothDual.build(R, floors, omega)
    near = start_near_identity(to_host(R), floors, omega)
    starts = [start_from_weights(R, floors, weights), near]
    values = []
    for H, lam in starts:
        reached = problem.evaluate(beside(H, R), lam, 0.0)
        values.append(-np.inf if reached is None else reached[0])
    return starts[int(np.argmax(values))]


def start_from_weights(R: Any, floors: Array, weights: Array) -> tuple[Array, Array]:
    """Start (H, λ) from the weights of the threshold: on the curve ``H = s (D R D)^{1/2}``, G = I.

    The scale s is where the dual is largest along the curve. Weights that vanish are lifted a
    little, because H must be positive definite; so little that the margin above the threshold stays
    visible.
    """
    spectrum = to_host(library(R).linalg.eigvalsh(scaled(R, weights)))
    total = float(floors @ weights)
    margin = total - float(np.sum(np.sqrt(np.maximum(spectrum, 0.0))))
    lift = min(1e-2, 0.1 * max(margin, 1e-12) / total)
    lam = np.maximum(weights, lift * weights.max())
    squares, V = eigh(scaled(R, lam), overwrite=True)
    w = np.asarray(to_host(squares))
    root = to_host((V * beside(np.sqrt(np.maximum(w, _EPS * w[-1])), R)) @ V.T)
    gain = max(2.0 * float(floors @ lam - np.trace(root)), margin, 1e-12 * total)
    spread = max(float(np.sum(off(root) ** 2)), 1e-8 * float(np.sum(root**2)))
    return root * (gain / spread), lam * (gain / spread)


def start_near_identity(R: Array, floors: Array, omega: Array) -> tuple[Array, Array]:
    """Start (H, λ) for floors near one, where ``T = I - K D_λ⁻¹`` to first order, ``K = ω∘off(R)``.

    The multipliers are those that turn each output by the angle its floor allows.
    """
    K = omega * off(R)
    angle = np.sqrt(np.maximum(1.0 - floors**2, _EPS**2))
    lam = np.maximum(limit_at_one(R, omega), 1e-3) / angle
    return K + np.diag(lam + np.abs(K).sum(axis=1)), lam


def limit_at_one(R: Array, omega: Array) -> Array:
    """Limit of ``λ sin(arccos ρ)`` as the floors tend to one: the slope along the sphere there."""
    K = omega * off(R)
    tangent = np.einsum("ij,ij->j", K, R @ K) - np.einsum("ij,ij->j", R, K) ** 2
    return np.asarray(np.sqrt(np.maximum(tangent, 0.0)))


def solve_squared(
    R: Any,
    floors: Array,
    omega: Array,
    H: Array,
    lam: Array,
    *,
    guesses: Sequence[Index],
    goal: float,
    max_iter: int,
    follow: bool = True,
    report: Report | None = None,
) -> Candidate | None:
    """Solve the squared criterion from the start ``(H, λ)``, given for the positive floors.

    ``guesses`` are binding sets (indices into all variables) to try before the barrier path is
    followed (with ``follow=False`` it is not, and None is returned if no guess was right). Floors
    of zero never bind: the sign of an output is free.
    """
    active = np.flatnonzero(floors > 0)
    problem = SmoothDual.build(
        submatrix(R, active, active), floors[active], omega[np.ix_(active, active)]
    )
    R = to_host(R)
    used = 0
    tried: dict[bytes, int] = {}

    def attempt(members: Index, H: Array, lam: Array) -> Candidate | None:
        """Solve for these binding floors alone and complete; None if they are the wrong ones."""
        nonlocal used
        key = members.tobytes()
        # The right set can fail from a start too far away; it deserves another try, not many.
        if tried.get(key, 0) >= 3 or not len(members):
            return None
        tried[key] = tried.get(key, 0) + 1
        inner = np.searchsorted(active, members)
        whole = len(members) == len(active)
        solution = maximise(
            problem if whole else problem.restricted(inner),
            H[np.ix_(inner, inner)],
            lam[inner],
            tau=0.0,
            goal=goal,
            max_iter=min(_POLISH_STEPS, max_iter - used),
            report=report if whole else None,
        )
        if solution is None:
            return None
        used += solution.n_iter
        point = solution.point
        if point.lam.min() <= 0 or not solution.converged:
            return None
        answer = settle(R, floors, members, point.lam, point.H, point.T, used)
        if answer.settled:
            return answer
        # The floors that the completion misses are likely to be the ones that bind as well.
        missed = np.einsum("ji,ij->j", R, answer.T) < floors - _MISSED
        more = np.union1d(members, np.flatnonzero(missed))
        return attempt(more, H, lam) if len(more) > len(members) else None

    for members in guesses:
        answer = attempt(members, H, lam)
        if answer is not None:
            return answer
    if not follow:
        return None
    last: SmoothSolution | None = None
    for sigma in _PATH:
        solution = maximise(
            problem,
            H,
            lam,
            tau=sigma * float(np.mean(lam)),
            goal=1e-2,
            max_iter=max(max_iter - used, 0),
            report=report,
        )
        if solution is None:
            break
        last = solution
        used += solution.n_iter
        point = solution.point
        H, lam = point.H, point.lam
        members = active[binding_set(lam, point.fidelity - problem.floors)]
        answer = attempt(members, H, lam)
        if answer is not None:
            return answer
        if used >= max_iter:
            break
    if last is None:
        raise AssertionError("the start lies in the domain of the dual")
    point = last.point
    inner = binding_set(point.lam, point.fidelity - problem.floors)
    H = point.H[np.ix_(inner, inner)]
    T = point.lam[inner][:, None] * np.linalg.inv(H)
    return settle(R, floors, active[inner], point.lam[inner], H, T, used)
