"""The threshold: the largest common fidelity that exact decorrelation allows.

    ρ★(C) = max_{TᵀCT = I} min_j f_j(T) = min_{λ ≥ 0, Σλ = 1} tr (D_λ C D_λ)^{1/2}

The right side is convex. It is solved in the relative variables ``dλ/λ`` by Newton's method with a
logarithmic barrier. Variables whose weight tends to zero do not bind: they leave the problem, the
binding ones are solved alone, and the others are completed in the orthogonal complement with the
largest mean fidelity that keeps the common floor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import beside, cholesky, column_dots, diagonal, scaled, submatrix, to_host
from skcoral._linalg import conjugate_gradient, make_exact
from skcoral.exact.completion import complement
from skcoral.exact.maxmean import BestExact, best_exact
from skcoral.exact.weighted import WeightedRoot, trace_bound_at

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Callback = Callable[[int, float, float], object]

_STEP_LIMIT = 3.0
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ExactThreshold:
    """Result of :func:`exact_threshold`.

    Attributes
    ----------
    lower, upper : float
        ``lower`` is attained by ``T`` (as ``min f_j / floors_j``); no exact decorrelator exceeds
        ``upper``.
    weights : ndarray of shape (p,)
        λ ≥ 0 with ``Σ λ_j floors_j = 1``; exactly zero where a variable does not bind.
    S : ndarray of shape (m, m)
        ``(D C D)^{1/2}`` on the binding variables: with ``weights`` it proves ``upper``.
    T, fidelity : ndarray
        The decorrelator and its fidelities.
    defect : float
        ``‖TᵀCT - I‖_F``; ``lower`` already allows for it.
    n_iter : int
        Newton steps.
    """

    lower: float
    upper: float
    weights: Array
    S: Array
    T: Array
    fidelity: Array
    defect: float
    n_iter: int

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower


def exact_threshold(
    C: Any,
    floors: Array | None = None,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> ExactThreshold:
    """Find the largest t such that some exact decorrelator has ``f_j ≥ t floors_j`` for all j.

    Parameters
    ----------
    C : array of shape (p, p)
        Positive definite matrix; its diagonal need not be one. The work is done where it lies, and
        the result is in NumPy.
    floors : ndarray of shape (p,), optional
        Relative floors, ones by default. A zero floor asks for nothing: it can always be met by the
        sign of the output.
    tol : float
        Gap to aim at. Convergence is quadratic, so the gap reached is usually far smaller.
    max_iter : int
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(iteration, upper, lower)``.
    """
    p = C.shape[0]
    floors = np.ones(p) if floors is None else np.asarray(floors, dtype=np.float64)
    search = _Search(scaled(C, 1 / np.where(floors > 0, floors, 1.0)), tol, callback)
    binding: Index = np.flatnonzero(floors > 0)
    start = np.ones(len(binding)) / np.sqrt(diagonal(search.C)[binding])
    eject = 1e-3
    while True:
        binding, root = search.solve(binding, start, eject, max_iter)
        common = float(root.fidelity.min())
        rest: Index = np.setdiff1d(np.arange(p), binding)
        if not len(rest):
            T = root.transform() / beside(floors[:, None], C)
            break
        rest_floors = common * floors[rest]
        completion, mix = _complete(C, binding, rest, rest_floors, tol)
        if completion.feasible or search.n_iter >= max_iter or eject < 1e-12:
            T = _assemble(C, binding, rest, root, floors, completion, mix)
            break
        # The weights that refute the completion are a descent direction: they join the binding set.
        push = completion.weights * floors[rest]
        joins = push > 0.03 * push.max()
        start = np.concatenate([root.weights, 0.03 * root.weights.max() * push[joins] / push.max()])
        members = np.concatenate([binding, rest[joins]])
        order = np.argsort(members)
        binding, start = members[order], start[order]
        eject *= 1e-3
    T, defect = make_exact(C, T)
    fidelity = column_dots(C, T)
    weights = np.zeros(p)
    weights[binding] = root.weights / floors[binding]
    S = root.root()
    on = floors > 0
    allowance = fidelity_allowance(C, T, defect)
    return ExactThreshold(
        lower=float(np.min((fidelity - allowance)[on] / floors[on])),
        upper=trace_bound_at(C, weights, S),
        weights=weights,
        S=to_host(S),
        T=to_host(T),
        fidelity=fidelity,
        defect=defect,
        n_iter=search.n_iter,
    )


def fidelity_allowance(C: Any, T: Any, defect: float) -> Array:
    """How far the fidelities of ``T (TᵀCT)^{-1/2}`` can lie below the computed ones of ``T``.

    The exact decorrelator next to ``T`` differs by ``C^{1/2} T [(TᵀCT)^{-1/2} - I]``; the second
    term is the rounding of ``e_jᵀ C t_j`` itself.
    """
    if not defect < 1:
        return np.full(C.shape[0], np.inf)
    shift = np.sqrt(1 + defect) * ((1 - defect) ** -0.5 - 1)
    rounding = 4 * _EPS * column_dots(abs(C), abs(T))
    return np.asarray(shift * np.sqrt(diagonal(C)) + rounding)


class _Search:
    """Newton's method on ``log tr S - log Σλ - τ Σ log(λ_j / Σλ)`` over what may bind.

    The merit does not depend on the scale of λ; every root is kept at Σλ = 1.
    """

    def __init__(self, C: Any, tol: float, callback: Callback | None) -> None:
        self.C = C
        self.goal = min(0.01 * tol, 1e-11)
        self.close = 0.1 * tol
        self.callback = callback
        self.n_iter = 0

    def solve(
        self, members: Index, weights: Array, eject: float, max_iter: int
    ) -> tuple[Index, WeightedRoot]:
        """Return the binding members and the weighted root at the minimum over them."""
        C = submatrix(self.C, members, members)
        factor = cholesky(C)
        root = _normalised(C, factor, weights)
        unit = max(float(np.ptp(root.fidelity)), _EPS)
        barrier, pure = np.inf, False
        best, stalled = np.inf, 0
        while True:
            relative = root.weights / root.weights.max()
            slack = (root.fidelity - root.trace) / unit
            upper = root.trace
            lower = float(root.fidelity.min())
            gap = upper - lower
            if self.callback is not None:
                self.callback(self.n_iter, upper, lower)
            idle = (relative < eject) & (slack > relative)
            if idle.any():
                members, kept = members[~idle], root.weights[~idle]
                C = submatrix(self.C, members, members)
                factor = cholesky(C)
                root = _normalised(C, factor, kept)
                best, stalled = np.inf, 0
                continue
            stalled = stalled + 1 if gap > 0.5 * best else 0
            best = min(best, gap)
            if gap <= self.goal or self.n_iter >= max_iter or (stalled >= 2 and gap <= self.close):
                return members, root
            barrier = min(0.1 * gap / (root.trace * C.shape[0]), barrier)
            self.n_iter += 1
            # A weight on its way to zero asks for d = -1 in every pure Newton step; once no step is
            # that long all members bind, and without the barrier convergence is quadratic.
            direction = _direction(C, root, 0.0 if pure else barrier)
            if not pure and np.max(np.abs(direction)) < 0.7:
                bold = _direction(C, root, 0.0)
                if np.max(np.abs(bold)) < 0.7:
                    pure, direction = True, bold
            elif pure and np.max(np.abs(direction)) > 0.9:
                pure, direction = False, _direction(C, root, barrier)
            step = _search_line(C, factor, root, direction, 0.0 if pure else barrier)
            if step is None:
                return members, root
            root = step


def _normalised(C: Any, factor: Any, weights: Array) -> WeightedRoot:
    """Root at ``weights`` scaled to sum to one."""
    return WeightedRoot(C, weights / weights.sum(), factor)


def _direction(C: Any, root: WeightedRoot, barrier: float) -> Array:
    """Newton direction for log λ."""
    gradient = root.diagonal / root.trace - root.weights
    # λ = e^z adds the gradient to the curvature; only where that keeps it positive. It is all the
    # curvature there is between blocks of variables that are not correlated with each other.
    bend = np.maximum(gradient, barrier)
    gradient += barrier * (C.shape[0] * root.weights - 1)

    def apply(d: Array) -> Array:
        return root.curvature(d) / root.trace + bend * d

    scale = root.curvature_diagonal() / root.trace + bend
    scale = np.maximum(scale, _EPS * root.weights)
    size = float(np.max(np.abs(gradient) / root.weights)) / max(float(scale.max()), _EPS)
    d, _ = conjugate_gradient(
        apply, -gradient, scale, rtol=min(0.1, max(size, 1e-6)), max_iter=20 + 2 * C.shape[0]
    )
    d -= float(root.weights @ d)
    return np.clip(d, -_STEP_LIMIT, _STEP_LIMIT)


def _search_line(
    C: Any, factor: Any, root: WeightedRoot, d: Array, barrier: float
) -> WeightedRoot | None:
    """Backtrack from the full step; None if rounding leaves no descent."""
    gradient = root.diagonal / root.trace - root.weights
    gradient += barrier * (C.shape[0] * root.weights - 1)
    slope = float(gradient @ d)
    if not slope < 0:
        return None
    value = _merit(root, barrier)
    noise = 8 * _EPS
    length = 1.0
    while length > 1e-10:
        candidate = _normalised(C, factor, root.weights * np.exp(length * d))
        if _merit(candidate, barrier) <= value + 1e-4 * length * slope + noise:
            return candidate
        if -slope < 1e-8 and np.ptp(candidate.fidelity) < 0.5 * np.ptp(root.fidelity):
            return candidate  # too close for the value to tell, but the fidelities draw together
        length *= 0.5
    return None


def _merit(root: WeightedRoot, barrier: float) -> float:
    value = float(np.log(root.trace))
    return value - barrier * float(np.log(root.weights).sum()) if barrier else value


def _complete(
    C: Any, binding: Index, rest: Index, floors: Array, tol: float
) -> tuple[BestExact, Any]:
    """Best decorrelator of what the binding variables leave of the others."""
    residual, mix = complement(C, binding, rest)
    completion = best_exact(residual, floors, tol=1e-2 * tol)
    if not completion.feasible:
        # Floors on the very edge of what is possible: ask for a hair less before giving up.
        second = best_exact(residual, floors - 0.3 * tol, tol=1e-2 * tol)
        if second.feasible:
            completion = second
    return completion, mix


def _assemble(
    C: Any,
    binding: Index,
    rest: Index,
    root: WeightedRoot,
    floors: Array,
    completion: BestExact,
    mix: Any,
) -> Any:
    T = np.zeros(C.shape)
    T[np.ix_(binding, binding)] = to_host(root.transform()) / floors[binding][:, None]
    T[np.ix_(binding, rest)] = to_host(-mix @ beside(completion.T, C))
    T[np.ix_(rest, rest)] = completion.T
    return beside(T, C)
