"""The threshold: the largest common fidelity that exact decorrelation allows.

    ρ★(C) = max_{TᵀCT = I} min_j f_j(T) = min_{λ ≥ 0, Σλ = 1} tr (D_λ C D_λ)^{1/2}

The right side is convex. It is solved by Newton's method with a logarithmic barrier. Variables
whose weight tends to zero do not bind: they leave the problem, the binding ones are solved alone,
and the others are completed in the orthogonal complement with the largest mean fidelity that keeps
the common floor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import (
    Array,
    column_dots,
    diagonal,
    norm,
    scaled,
    submatrix,
    to_device,
    to_host,
)
from skcoral._linalg import gram_defect, gram_rounding, make_exact, precise_column_dots
from skcoral.exact.completion import assemble, complement
from skcoral.exact.largest_mean import BestExact, best_exact
from skcoral.exact.newton import Problem, minimise, newton_direction, stretch
from skcoral.exact.weighted import WeightedRoot, trace_excess

Index = NDArray[np.intp]
Callback = Callable[[int, float, float], object]

_PURE = 0.5  # longest fall of a weight that needs no barrier
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
    rest_weights, rest_S : ndarray
        The dual point behind the largest mean fidelity of the variables that do not bind, beside
        the outputs that do: weights of at least one, zero where a variable binds.
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
    rest_weights: Array
    rest_S: Array
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
    relative = scaled(C, 1 / np.where(floors > 0, floors, 1.0))
    binding: Index = np.flatnonzero(floors > 0)
    start = np.ones(len(binding)) / np.sqrt(diagonal(relative)[binding])
    eject = 1e-3
    n_iter = 0
    rest_weights, rest_S = np.zeros(p), np.zeros((0, 0))
    while True:
        binding, root, n_iter = _solve(
            relative, binding, start, eject, tol, n_iter, max_iter, callback
        )
        T = root.transform() / to_device(floors[binding][:, None], C)
        rest: Index = np.setdiff1d(np.arange(p), binding)
        if not len(rest):
            break
        rest_floors = float(root.fidelity.min()) * floors[rest]
        residual, mix = complement(C, binding, rest)
        completion = _complete(residual, rest_floors, tol)
        if completion.feasible or n_iter >= max_iter or eject < 1e-12:
            T = assemble(binding, rest, T, to_device(completion.T, C), mix)
            rest_weights[rest], rest_S = completion.weights, completion.S
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
    size = norm(defect)
    weights = np.zeros(p)
    weights[binding] = root.weights / floors[binding]
    S = root.root()
    on = floors > 0
    return ExactThreshold(
        lower=float(np.min((fidelity - fidelity_allowance(C, T, size))[on] / floors[on])),
        upper=_upper_bound(C, T, defect, binding, weights[binding], S),
        weights=weights,
        S=to_host(S),
        rest_weights=rest_weights,
        rest_S=rest_S,
        T=to_host(T),
        fidelity=fidelity,
        defect=size,
        n_iter=n_iter,
    )


class KeptThreshold:
    """ρ★ of one matrix: solved when first asked for, and again only for more accuracy."""

    def __init__(self, R: Any) -> None:
        self._R = R
        self._found: ExactThreshold | None = None
        self._tol, self._max_iter = np.inf, 0

    def solve(
        self, *, tol: float = 1e-10, max_iter: int = 100, callback: Callback | None = None
    ) -> ExactThreshold:
        """As :func:`exact_threshold`; the callback hears nothing where ρ★ is known."""
        tried = tol >= self._tol and max_iter <= self._max_iter
        if self._found is None or not (tried or self._found.gap <= tol):
            self._found = exact_threshold(self._R, tol=tol, max_iter=max_iter, callback=callback)
            self._tol, self._max_iter = tol, max_iter
        return self._found


def _upper_bound(C: Any, T: Any, defect: Any, on: Index, weights: Array, S: Any) -> float:
    """Bound ``Σ λ_j f_j`` of all exact decorrelators, where λ is positive ``on`` some variables."""
    if len(on) < C.shape[0]:
        C, T = submatrix(C, on, on), submatrix(T, on, on)
        defect = gram_defect(C, T)
    attained = float(weights @ precise_column_dots(C, T))
    rounding = 0.5 * gram_rounding(C, T) * float(diagonal(S).sum())
    return attained + trace_excess(C, weights, S, T, defect) + rounding


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


def _complete(residual: Any, floors: Array, tol: float) -> BestExact:
    """Best decorrelator of what the binding variables leave of the others."""
    completion = best_exact(residual, floors, tol=1e-2 * tol)
    if not completion.feasible:
        # Floors on the very edge of what is possible: ask for a hair less before giving up.
        second = best_exact(residual, floors - 0.3 * tol, tol=1e-2 * tol)
        if second.feasible:
            completion = second
    return completion


def _solve(
    C: Any,
    members: Index,
    weights: Array,
    eject: float,
    tol: float,
    n_iter: int,
    max_iter: int,
    callback: Callback | None,
) -> tuple[Index, WeightedRoot, int]:
    """Return the binding members, the weighted root at the minimum over them, and the steps."""
    while True:
        problem = _Simplex(submatrix(C, members, members), eject, tol, callback)
        problem.n_iter = n_iter
        root = minimise(problem, problem.at(weights / weights.sum()), max_iter)
        n_iter = problem.n_iter
        if not problem.idle.any():
            return members, root, n_iter
        members, weights = members[~problem.idle], root.weights[~problem.idle]


class _Simplex(Problem):
    """Minimise ``tr S - τ Σ log λ_j`` over ``Σλ = 1``, with τ tending to zero.

    The search ends early when weights are found to tend to zero: ``idle``.
    """

    def __init__(self, C: Any, eject: float, tol: float, callback: Callback | None) -> None:
        super().__init__(C, goal=min(0.1 * tol, 1e-11), close=tol)
        self.eject = eject
        self.callback = callback
        self.barrier, self.pure = np.inf, False
        self.idle = np.zeros(C.shape[0], dtype=bool)

    def value(self, root: WeightedRoot) -> float:
        inside = self.barrier * float(np.log(root.weights).sum()) if not self.pure else 0.0
        return root.trace - inside

    def gradient(self, root: WeightedRoot) -> Array:
        plain = root.diagonal - root.trace * root.weights
        return plain if self.pure else plain + self.barrier * (len(plain) * root.weights - 1)

    def residual(self, root: WeightedRoot) -> float:
        return root.trace - float(root.fidelity.min())

    def finished(self, root: WeightedRoot) -> bool:
        if self.callback is not None:
            self.callback(self.n_iter, root.trace, float(root.fidelity.min()))
        return bool(self.idle.any())

    def move(self, weights: Array, d: Array) -> Array:
        moved = weights * stretch(d)
        return np.asarray(moved / moved.sum())

    def direction(self, root: WeightedRoot) -> Array | None:
        gap = self.residual(root)
        accuracy = min(0.3, max(gap / root.trace, 1e-4))
        weights = root.weights
        # Without the barrier convergence is quadratic, unless a weight wants to vanish. Blocks that
        # are tied have no curvature between them: a little keeps them where they are.
        self.pure = True
        plain, little = self.gradient(root), 1e-11 * root.diagonal
        d = newton_direction(root, plain, little, normal=weights, rtol=None)
        idle = (weights < self.eject * weights.max()) & (d < -2) & (root.fidelity > root.trace)
        if idle.any():
            # They leave together: when the others are near their optimum, many have gathered, or
            # small weights begin to cost digits.
            d = newton_direction(root, plain, little, free=~idle, normal=weights, rtol=None)
            tiny = weights[idle].min() < 1e-5 * weights.max()
            if d.min() > -_PURE or idle.mean() > 0.2 or tiny:
                self.idle = idle
                return None
        elif d.min() > -_PURE:
            d = newton_direction(root, plain, little, normal=weights, rtol=accuracy)
            if d.min() > -_PURE:
                return d
        self.pure = False
        self.barrier = min(self.barrier, 0.02 * gap / len(weights))
        bend = np.maximum(plain, self.barrier)
        return newton_direction(root, self.gradient(root), bend, normal=weights, rtol=accuracy)
