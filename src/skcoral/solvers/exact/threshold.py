"""The threshold: the largest common fidelity that exact decorrelation allows.

    ρ★(C) = max_{TᵀCT = I} min_j f_j(T) = min_{λ ≥ 0, Σλ = 1} tr (D_λ C D_λ)^{1/2}

The right side is convex. It is solved by Newton's method in the square roots of the weights.
Variables whose weight tends to zero do not bind: they leave the problem, the binding ones are
solved alone, and the others are completed in the orthogonal complement with the largest mean
fidelity that keeps the common floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import (
    EPS,
    Array,
    Index,
    column_dots,
    diagonal,
    norm,
    scaled,
    submatrix,
    to_device,
)
from skcoral.core.linalg import gram_defect, gram_rounding, make_exact, precise_column_dots
from skcoral.solvers.exact.largest_mean import complete_exactly
from skcoral.solvers.exact.newton import (
    Callback,
    NewtonSystem,
    Problem,
    WeightedRoot,
    minimise,
    trace_excess,
)

_STRETCH = 0.05, 5.0  # factors by which the root of a weight may change in one step
_EJECT = 1e-5  # weight relative to the largest below which a variable may leave
# A weight that does not bind changes by -2, which takes its root to zero, but for its curvature
# over its gradient. Weights that bind can be as small, far along a chain, but not as decoupled.
_DECOUPLED = 0.05
# By how much smaller weights have to be once some that left have returned. At 1e-6 the thresholds
# of 200 and 300 points of Brownian motion take a third more steps.
_FURTHER = 1e-15
_COUPLED, _TOGETHER = 1e-3, -1.5  # share of the former, and change, of weights that leave together
_ROUNDING = 1e-12  # of variances, up to which that of fidelities does not show in the bound


@dataclass(frozen=True)
class ExactThreshold:
    """Result of :func:`exact_threshold`; the matrices lie where ``C`` does.

    ``rest_weights`` and ``rest_S`` are the dual point behind the largest mean fidelity of the
    variables that do not bind, beside the outputs that do: weights of at least one, zero where a
    variable binds.
    """

    lower: float  # attained by T, as min f_j / floors_j
    upper: float  # no exact decorrelator exceeds it
    weights: Array  # λ ≥ 0 with Σ λ_j floors_j = 1; exactly zero where a variable does not bind
    S: Any  # (D C D)^{1/2} of the binding variables: with the weights it proves the upper bound
    rest_weights: Array
    rest_S: Any  # None where all variables bind
    T: Any
    fidelity: Array
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
    near: Array | None = None,
) -> ExactThreshold:
    """Find the largest t such that some exact decorrelator has ``f_j ≥ t floors_j`` for all j.

    ``C`` is positive definite; its diagonal need not be one. The work is done where it lies. The
    floors are ones by default; one of zero is met by the sign of the output. ``tol`` is the gap to
    aim at: convergence is quadratic, so that the gap reached is usually far smaller. The callback
    is called as ``callback(iteration, upper, lower)``. The search begins at the weights of a
    matrix that is ``near``, if they are given.
    """
    p = C.shape[0]
    floors = np.ones(p) if floors is None else np.asarray(floors, dtype=np.float64)
    relative = scaled(C, 1 / np.where(floors > 0, floors, 1.0))
    positive: Index = np.flatnonzero(floors > 0)
    last = diagonal(relative) ** -0.5
    last /= last.sum()
    binding, weights = positive, last[positive]
    eject, rest_S = _EJECT, None
    rest_weights, n_iter = np.zeros(p), 0
    if near is not None and np.any(near[binding] > 0):
        binding = binding[near[binding] > 0]
        weights = near[binding] * floors[binding]
    # Weights that fall to zero leave; what is left is solved again, and then completed.
    while True:
        among = submatrix(relative, binding, binding)
        problem = _Simplex(among, eject, tol, callback, n_iter)
        root = minimise(problem, problem.at(weights / weights.sum()), max_iter)
        n_iter = problem.n_iter
        last[binding] = root.weights
        if problem.idle.any():
            binding, weights = binding[~problem.idle], problem.kept
            continue
        T = root.transform() / to_device(floors[binding][:, None], C)
        if len(binding) == p:
            break
        rest: Index = np.setdiff1d(np.arange(p), binding)
        # Floors that can all be raised a little bind the others no higher than asked.
        least = min(float(root.fidelity.min()), 1.0) * floors
        full, completion = complete_exactly(C, least, binding, T, tol=1e-2 * tol)
        if completion.feasible or len(binding) == len(positive) or n_iter >= max_iter:
            T, rest_S = full, completion.S
            rest_weights[rest] = completion.weights
            break
        tiny = root.weights < eject * root.weights.max()
        if tiny.any():
            # Where they do not bind, their ratios are arbitrary, and outputs made by these leave
            # too little to the others.
            binding, weights = binding[~tiny], root.weights[~tiny]
            continue
        # Some that left bind after all, by weights smaller than these: all return.
        binding, weights, eject = positive, last[positive], _FURTHER * eject
    T, defect = make_exact(C, T)
    fidelity = column_dots(C, T)
    allowance = fidelity_allowance(C, T, norm(defect))
    weights = np.zeros(p)
    weights[binding] = root.weights / floors[binding]
    S = root.root()
    on = floors > 0
    return ExactThreshold(
        lower=float(np.min((fidelity - allowance)[on] / floors[on])),
        upper=_upper_bound(C, T, defect, binding, weights[binding], S),
        weights=weights,
        S=S,
        rest_weights=rest_weights,
        rest_S=rest_S,
        T=T,
        fidelity=fidelity,
        n_iter=n_iter,
    )


def _upper_bound(C: Any, T: Any, defect: Any, on: Index, weights: Array, S: Any) -> float:
    """Bound ``Σ λ_j f_j`` of all exact decorrelators, where λ is positive ``on`` some variables."""
    if len(on) < C.shape[0]:
        C, T = submatrix(C, on, on), submatrix(T, on, on)
        defect = gram_defect(C, T)
    usual = gram_rounding(C, T)
    dots = column_dots if 0.0 < usual < _ROUNDING else precise_column_dots
    attained = float(weights @ dots(C, T))
    rounding = 0.5 * usual * float(diagonal(S).sum())
    return attained + trace_excess(C, weights, S, T, defect) + rounding


def fidelity_allowance(C: Any, T: Any, defect: float) -> Array:
    """How far the fidelities of ``T (TᵀCT)^{-1/2}`` can lie below the computed ones of ``T``.

    The exact decorrelator next to ``T`` differs by ``C^{1/2} T [(TᵀCT)^{-1/2} - I]``; the second
    term is the rounding of ``e_jᵀ C t_j`` itself.
    """
    if not defect < 1:
        return np.full(C.shape[0], np.inf)
    shift = np.sqrt(1 + defect) * ((1 - defect) ** -0.5 - 1)
    rounding = 4 * EPS * column_dots(abs(C), abs(T))
    return np.asarray(shift * np.sqrt(diagonal(C)) + rounding)


class _Simplex(Problem):
    """Minimise ``tr S`` over ``Σλ = 1`` by Newton's method in the square roots of the weights.

    With ``λ_j = u_j²`` a weight of zero is an ordinary point: roots of variables that do not bind
    fall to it at Newton's pace, without a barrier. Along a chain the weights of the optimum behave
    like ``sin²``, with ends that are small (about 1/p²) but bind. The search ends early when
    weights are found to tend to zero: ``idle``.
    """

    def __init__(
        self, C: Any, eject: float, tol: float, callback: Callback | None, n_iter: int
    ) -> None:
        super().__init__(C, goal=min(0.1 * tol, 1e-11), close=tol, callback=callback)
        self.eject, self.n_iter = eject, n_iter
        self.idle = np.zeros(C.shape[0], dtype=bool)
        self.kept = np.zeros(0)

    def gradient(self, root: WeightedRoot) -> Array:
        return root.diagonal - root.trace * root.weights

    def residual(self, root: WeightedRoot) -> float:
        return root.trace - float(root.fidelity.min())

    def finished(self, root: WeightedRoot) -> bool:
        if self.callback is not None:
            self.callback(self.n_iter, root.trace, float(root.fidelity.min()))
        return bool(self.idle.any())

    def move(self, weights: Array, d: Array) -> Array:
        moved = weights * np.clip(1 + 0.5 * d, *_STRETCH) ** 2
        return np.asarray(moved / moved.sum())

    def direction(self, root: WeightedRoot) -> Array | None:
        """Return Newton's relative changes of the weights, to first order; None where some leave.

        With ``d = 2 du/u`` the equations are ``(K + ½ Diag(g)) d = -g``, g the gradient in relative
        changes of λ and K the curvature there. Negative g, which vanish at the optimum, would cost
        definiteness.
        """
        gradient, weights = self.gradient(root), root.weights
        accuracy = min(0.3, max(self.residual(root) / root.trace, 1e-4))
        bend = 0.5 * np.maximum(gradient, 0.0)
        every = np.arange(len(weights))
        d = NewtonSystem(root, bend, every, weights).solve(gradient, accuracy)
        small, tiny = (
            weights < part * weights.max() for part in (self.eject, self.eject * _COUPLED)
        )
        falling = (np.abs(d + 2.0) < _DECOUPLED) & (root.fidelity > root.trace)
        # Several that fall together keep their ratio, and with it fidelities below the trace.
        falling |= tiny & (d < _TOGETHER)
        idle = falling & small
        if not idle.any():
            return d
        self.idle = idle
        self.kept = self.move(weights, d)[~idle]
        return None
