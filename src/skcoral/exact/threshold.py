"""The threshold: the largest common fidelity that exact decorrelation allows.

    ρ★(C) = max_{TᵀCT = I} min_j f_j(T) = min_{λ ≥ 0, Σλ = 1} tr (D_λ C D_λ)^{1/2}

The right side is convex. It is solved by Newton's method with a logarithmic barrier. Variables
whose weight tends to zero do not bind: they leave the problem, the binding ones are solved alone,
and the others are completed in the orthogonal complement with the largest mean fidelity that keeps
the common floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array, column_dots, diagonal, norm, scaled, submatrix, to_device
from skcoral._linalg import gram_defect, gram_rounding, make_exact, precise_column_dots
from skcoral.exact.largest_mean import complete_exactly
from skcoral.exact.newton import Callback, NewtonSystem, Problem, minimise
from skcoral.exact.weighted import WeightedRoot, trace_excess

Index = NDArray[np.intp]

_PURE = 0.5  # longest fall of a weight that needs no barrier
_VANISHING, _FAR = 10.0, 0.01  # fall that needs one as long as the relative gap is this large
_LEAVES = 1.2  # fall of a small weight that does not bind: more than the whole of it
_EPS = float(np.finfo(np.float64).eps)


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
    start: Array  # fidelities at the first weights: of a correlation matrix, those of ZCA-cor
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

    ``C`` is positive definite; its diagonal need not be one. The work is done where it lies. The
    floors are ones by default; one of zero is met by the sign of the output. ``tol`` is the gap to
    aim at: convergence is quadratic, so that the gap reached is usually far smaller. The callback
    is called as ``callback(iteration, upper, lower)``.
    """
    p = C.shape[0]
    floors = np.ones(p) if floors is None else np.asarray(floors, dtype=np.float64)
    relative = scaled(C, 1 / np.where(floors > 0, floors, 1.0))
    binding: Index = np.flatnonzero(floors > 0)
    weights = diagonal(relative)[binding] ** -0.5
    eject, rest_S = 1e-3, None  # weights relative to the largest that may leave
    rest_weights, first, n_iter = np.zeros(p), None, 0
    while True:
        among = submatrix(relative, binding, binding)
        problem = _Simplex(among, eject, tol, callback, n_iter)
        root = problem.at(weights / weights.sum())
        first = root.fidelity if first is None else first
        root = minimise(problem, root, max_iter)
        n_iter = problem.n_iter
        if problem.idle.any():
            binding, weights = binding[~problem.idle], problem.kept
            continue
        T = root.transform() / to_device(floors[binding][:, None], C)
        rest: Index = np.setdiff1d(np.arange(p), binding)
        if not len(rest):
            break
        least = float(root.fidelity.min()) * floors
        full, completion = complete_exactly(C, least, binding, T, tol=1e-2 * tol)
        if not completion.feasible:
            # For floors at the edge of what is possible, lower them within the tolerance.
            second = complete_exactly(C, least - 0.3 * tol, binding, T, tol=1e-2 * tol)
            full, completion = second if second[1].feasible else (full, completion)
        if completion.feasible or n_iter >= max_iter or eject < 1e-12:
            T, rest_S = full, completion.S
            rest_weights[rest] = completion.weights
            break
        # The weights that refute the completion are a descent direction: they join the binding set.
        push = completion.weights * floors[rest] / np.max(completion.weights * floors[rest])
        joins = push > 0.03
        members = np.concatenate([binding, rest[joins]])
        weights = np.concatenate([root.weights, 0.03 * root.weights.max() * push[joins]])
        order = np.argsort(members)
        binding, weights = members[order], weights[order]
        eject *= 1e-3
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
        start=first,
        n_iter=n_iter,
    )


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


class _Simplex(Problem):
    """Minimise ``tr S - τ Σ log λ_j`` over ``Σλ = 1``, with τ tending to zero.

    The search ends early when weights are found to tend to zero: ``idle``.
    """

    def __init__(
        self, C: Any, eject: float, tol: float, callback: Callback | None, n_iter: int
    ) -> None:
        super().__init__(C, goal=min(0.1 * tol, 1e-11), close=tol, callback=callback)
        self.eject, self.n_iter = eject, n_iter
        self.barrier, self.pure, self.vanishing = np.inf, False, False
        self.idle = np.zeros(C.shape[0], dtype=bool)
        self.kept = np.zeros(0)

    def merit(self, root: WeightedRoot) -> tuple[float, Array]:
        plain = root.diagonal - root.trace * root.weights
        if self.pure:
            return root.trace, plain
        value = root.trace - self.barrier * float(np.log(root.weights).sum())
        return value, plain + self.barrier * (len(plain) * root.weights - 1)

    def residual(self, root: WeightedRoot) -> float:
        return root.trace - float(root.fidelity.min())

    def finished(self, root: WeightedRoot) -> bool:
        if self.callback is not None:
            self.callback(self.n_iter, root.trace, float(root.fidelity.min()))
        return bool(self.idle.any())

    def move(self, weights: Array, d: Array) -> Array:
        moved = weights * np.clip(1 + d, 0.05, 20.0)
        return np.asarray(moved / moved.sum())

    def direction(self, root: WeightedRoot) -> Array | None:
        gap, weights = self.residual(root), root.weights
        accuracy = min(0.3, max(gap / root.trace, 1e-4))
        self.pure = True
        plain = self.merit(root)[1]
        # Far from the optimum, weights that would vanish without the barrier are not tried again.
        if not (self.vanishing and gap > _FAR * root.trace):
            d = self._pure_direction(root, plain, accuracy)
            if d is None or d.min() > -_PURE:
                return d
            self.vanishing = bool(d.min() < -_VANISHING)
        self.pure = False
        self.barrier = min(self.barrier, 0.02 * gap / len(weights))
        bend = np.maximum(plain, self.barrier)
        return NewtonSystem(root, bend, normal=weights).solve(self.merit(root)[1], accuracy)

    def _pure_direction(self, root: WeightedRoot, plain: Array, accuracy: float) -> Array | None:
        """Newton's direction without the barrier; None where weights leave.

        Its convergence is quadratic, unless a weight tends to zero.
        """
        weights = root.weights
        # Blocks with equal thresholds have no curvature between them: add a negligible one.
        little = 1e-11 * root.diagonal
        system = NewtonSystem(root, little, normal=weights)
        d = system.solve(plain)
        small = weights < self.eject * weights.max()
        idle = small & (d < -_LEAVES) & (root.fidelity > root.trace)
        if not idle.any():
            return system.solve(plain, accuracy) if d.min() > -_PURE else d
        # They leave together: when the others are near their optimum, many have gathered, or small
        # weights begin to cost digits.
        rest = NewtonSystem(root, little, free=~idle, normal=weights).solve(plain)
        tiny = weights[idle].min() < 1e-5 * weights.max()
        near = rest.min() > -_PURE
        if near or idle.mean() > 0.2 or tiny:
            self.idle = idle
            self.kept = self.move(weights, rest if near else 0.0 * rest)[~idle]
            return None
        return d
