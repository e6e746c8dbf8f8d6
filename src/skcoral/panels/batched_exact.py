"""Exact decorrelation of many small matrices at once: Newton's method on batches.

The problems are those of :mod:`skcoral.exact`, and so are the equations: with ``D = Diag(λ)`` and
``S = (D C D)^{1/2}``, the threshold minimises ``tr S`` over the simplex and the largest mean
minimises ``tr S - λᵀρ`` over ``λ ≥ 1``. The first axis of the arrays is the batch. A matrix whose
search does not end with a closed proof is marked as not solved, and left to
:func:`skcoral.threshold` and :func:`skcoral.decorrelate`. What is computed for one matrix does not
depend on the others in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skcoral.exact.largest_mean import stretch
from skcoral.panels.batches import Batch, Mask, add_diagonal, solve
from skcoral.results import Array

_EPS = float(np.finfo(np.float64).eps)
_STEPS = 20
_ROUNDS = 3  # corrections of which variables bind
_EJECT = 0.02  # weights below this share of the largest may be taken for zero
_STUCK = 1e-8  # gap below which a search may have been stopped by rounding
_CLOSED = 1e-11  # gap of a threshold, or violation of an optimality condition, that ends a search


@dataclass
class Roots(Batch):
    """``S = V diag(σ) Vᵀ`` with its trace, diagonal and fidelities ``S_jj / λ_j``."""

    weights: Array
    sigma: Array
    V: Array

    @classmethod
    def of(cls, C: Array, weights: Array) -> Roots:
        """Decompose ``D C D``; weights of zero leave zero rows."""
        values, V = np.linalg.eigh(C * (weights[:, :, None] * weights[:, None, :]))
        return cls(weights, np.sqrt(np.maximum(values, 0.0)), V)

    def __post_init__(self) -> None:
        self.trace: Array = self.sigma.sum(axis=1)
        self.diagonal: Array = ((self.V * self.V) @ self.sigma[:, :, None])[:, :, 0]
        positive = self.weights > 0
        self.fidelity: Array = np.where(
            positive, self.diagonal / np.where(positive, self.weights, 1.0), np.inf
        )

    def curvature(self) -> Array:
        """The Hessian of ``tr S`` in relative changes of the weights, less ``Diag(S_jj d_j)``.

        As in :class:`skcoral.exact.weighted.WeightedRoot`, formed row by row.
        """
        s, V = self.sigma, self.V
        sums = s[:, :, None] + s[:, None, :]
        spread = (s[:, :, None] - s[:, None, :]) ** 2 / (2.0 * np.where(sums > 0, sums, 1.0))
        K = np.empty(V.shape)
        for j in range(V.shape[1]):
            pairs = V[:, j, None, :] * V
            K[:, j] = ((pairs @ spread) * pairs).sum(axis=2)
        return K

    def root(self) -> Array:
        """``S``."""
        return (self.V * self.sigma[:, None, :]) @ self.V.transpose(0, 2, 1)

    def transform(self) -> Array:
        """``D S⁻¹`` where weights are positive, zero elsewhere."""
        kept = self.sigma > 1e-14 * self.sigma[:, -1:]
        inverse = np.where(kept, 1.0 / np.where(kept, self.sigma, 1.0), 0.0)
        S = (self.V * inverse[:, None, :]) @ self.V.transpose(0, 2, 1)
        return np.asarray(self.weights[:, :, None] * S)

    def moved(self, C: Array, weights: Callable[[Array], Array], rises: Rises, tries: int) -> Roots:
        """The roots at ``weights(length)``, from length one down until the value does not rise."""
        length = np.ones(len(C))
        trial = Roots.of(C, weights(length[:, None]))
        for _ in range(tries):
            short = np.flatnonzero(rises(trial))
            if not len(short):
                break
            length[short] *= 0.5
            trial.put(short, Roots.of(C[short], weights(length[:, None])[short]))
        return trial


Rises = Callable[[Roots], Mask]


@dataclass
class Thresholds:
    """ρ★ of a batch, between two bounds where ``solved``, with weights and transformations."""

    lower: Array
    upper: Array
    weights: Array
    T: Array
    solved: Mask


@dataclass
class LargestMeans:
    """Exact decorrelators of largest mean fidelity; ``refuted`` floors are proved out of reach."""

    T: Array
    weights: Array
    solved: Mask
    refuted: Mask


def thresholds(R: Array, near: Array) -> Thresholds:
    """Find ρ★ of each matrix from weights of a neighbouring one.

    Where these are zero, a variable is taken not to bind.
    """
    n, p = near.shape
    roots = Roots.of(R, near / near.sum(axis=1, keepdims=True))
    T, solved = np.zeros(R.shape), np.zeros(n, dtype=bool)
    at = np.arange(n)
    for _ in range(_ROUNDS):
        now = roots.take(at)
        solved[at] = _minimise_trace(R[at], now)
        roots.put(at, now)
        T[at] = now.transform()
        members = now.weights > 0
        idle = solved[at] & ~members.all(axis=1)
        at, members = at[idle], members[idle]
        if not len(at):
            break
        residual, mix = complement(R[at], members)
        floors = np.where(members, 0.0, roots.trace[at][:, None] - 1e-12)
        rest = largest_means(residual, floors, np.ones(members.shape))
        T[at] = assemble(members, T[at], rest.T, mix)
        solved[at] = rest.solved
        again = ~rest.solved
        at = at[again]
        # what refutes the completion is a direction of descent: these variables bind after all
        push = np.where(members[again], 0.0, rest.weights[again])
        push /= push.max(axis=1, keepdims=True)
        grown = roots.weights[at] + np.where(push > 0.03, 0.01 * push, 0.0)
        roots.put(at, Roots.of(R[at], grown / grown.sum(axis=1, keepdims=True)))
    T, size = make_exact(R, T)
    dots = np.einsum("bij,bij->bj", R, T)
    shift = np.sqrt(1.0 + size) * ((1.0 - np.minimum(size, 0.5)) ** -0.5 - 1.0)
    rounding = 4.0 * _EPS * np.einsum("bij,bij->bj", np.abs(R), np.abs(T))
    lower = (dots - shift[:, None] - rounding).min(axis=1)
    upper = roots.trace * (1.0 + 4.0 * p * _EPS) + shift
    return Thresholds(lower, upper, roots.weights, T, solved & (upper - lower <= 10.0 * _CLOSED))


def _minimise_trace(R: Array, roots: Roots) -> Mask:
    """Minimise ``tr S`` over the simplex, in place; returns where that succeeded."""
    n = len(R)
    live, last, slow = np.ones(n, dtype=bool), np.full(n, np.inf), np.zeros(n, dtype=int)
    for _ in range(_STEPS):
        gap = roots.trace - roots.fidelity.min(axis=1)
        # small weights have fewer digits: where rounding stops the search, the bounds decide
        slow = np.where((gap < _STUCK) & (gap > 0.3 * last), slow + 1, 0)
        live, last = live & (gap > _CLOSED) & (slow < 3), gap
        at = np.flatnonzero(live)
        if not len(at):
            break
        now = roots.take(at)
        d, leaving = _simplex_direction(now)
        # close by, rounding decides whether the trace falls, and Newton's step needs no test
        slope = ((now.diagonal - now.trace[:, None] * now.weights) * d).sum(axis=1)
        tested = ~leaving.any(axis=1) & (np.abs(slope) > 1e-9 * now.trace)

        def weights(length: Array, now=now, d=d, leaving=leaving) -> Array:
            moved = np.where(leaving, 0.0, now.weights * stretch(length * d))
            return np.asarray(moved / moved.sum(axis=1, keepdims=True))

        def rises(trial: Roots, now=now, tested=tested) -> Mask:
            return (trial.trace > now.trace) & tested

        roots.put(at, now.moved(R[at], weights, rises, 4))
    return ~live


def _simplex_direction(roots: Roots) -> tuple[Array, Mask]:
    """Newton's direction for ``tr S`` on the simplex, and which weights are to become zero."""
    w = roots.weights
    idle = w == 0
    gradient = roots.diagonal - roots.trace[:, None] * w
    K = roots.curvature() + roots.trace[:, None, None] * (w[:, :, None] * w[:, None, :])
    add_diagonal(K, 1e-11 * roots.diagonal + idle)
    both = np.nan_to_num(solve(K, np.stack([-gradient, w], axis=2)))
    along = (w * both[:, :, 0]).sum(axis=1) / (w * both[:, :, 1]).sum(axis=1)
    d = both[:, :, 0] - along[:, None] * both[:, :, 1]
    leaving = ~idle & (d < -2.0) & (w < _EJECT * w.max(axis=1, keepdims=True))
    leaving &= roots.fidelity > roots.trace[:, None]
    return np.where(idle, 0.0, d), leaving


def complement(R: Array, kept: Mask) -> tuple[Array, Array]:
    """Return what the ``kept`` variables leave of the others, and the mix that takes them out.

    The arrays keep their size: the residual is the identity on the kept variables.
    """
    p = kept.shape[1]
    inside = kept[:, :, None] & kept[:, None, :]
    across = kept[:, :, None] & ~kept[:, None, :]
    outside = ~kept[:, :, None] & ~kept[:, None, :]
    own = np.where(inside, R, 0.0)
    add_diagonal(own, (~kept).astype(np.float64))
    mix = solve(own, np.where(across, R, 0.0))
    residual = np.where(outside, R - np.where(across, R, 0.0).transpose(0, 2, 1) @ mix, np.eye(p))
    residual = np.where(outside | inside, residual, 0.0)
    return 0.5 * (residual + residual.transpose(0, 2, 1)), mix


def assemble(kept: Mask, T_kept: Array, T_rest: Array, mix: Array) -> Array:
    """Put the outputs of both groups together."""
    rest = np.where(~kept[:, None, :] & ~kept[:, :, None], T_rest, 0.0)
    return np.where(kept[:, None, :], T_kept, rest - mix @ rest)


def largest_means(C: Array, floors: Array, near: Array) -> LargestMeans:
    """Find the exact decorrelators of largest mean fidelity with ``f_j ≥ floors_j``.

    The matrices are positive definite; the search starts from the weights ``near``, at least one.
    """
    n, p = near.shape
    roots = Roots.of(C, near)
    live, refuted = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    best = np.full(n, np.inf)
    for _ in range(2 * _STEPS):
        room = roots.fidelity - floors
        off = np.abs(np.minimum(roots.weights - 1.0, room)).max(axis=1)
        refuted |= live & (roots.trace < (roots.weights * floors).sum(axis=1) * (1.0 - 1e-14))
        goal = np.minimum(1e-13, 1e-11 / roots.weights.max(axis=1))
        live &= ~refuted & (off > goal) & ((off < 0.5 * best) | (off > 1e-11))
        best = np.minimum(best, off)
        at = np.flatnonzero(live)
        if not len(at):
            break
        now, rho = roots.take(at), floors[at]
        gradient = now.weights * room[at]
        bound = 1.0 + np.minimum(0.1, off[at])[:, None]
        free = (now.weights > bound) | (gradient < 0)
        K = np.where(free[:, :, None] & free[:, None, :], now.curvature(), 0.0)
        add_diagonal(K, np.where(free, np.maximum(gradient, 0.0) + 1e-14 * now.diagonal, 1.0))
        d = np.nan_to_num(solve(K, np.where(free, -gradient, 0.0)[:, :, None])[:, :, 0])
        d = np.where(free, d, -1.0)

        def weights(length: Array, now=now, d=d) -> Array:
            return np.maximum(1.0, now.weights * stretch(length * d))

        def rises(trial: Roots, now=now, rho=rho) -> Mask:
            fall = ((now.weights - trial.weights) * rho).sum(axis=1)
            return np.asarray(trial.trace - now.trace + fall > 1e-14 * now.trace)

        roots.put(at, now.moved(C[at], weights, rises, 6))
    T, size = make_exact(C, roots.transform())
    dots = np.einsum("bij,bij->bj", C, T)
    # how far another decorrelator can exceed these in the mean; see exact.largest_mean.mean_excess
    S = roots.root()
    E = roots.transform() - T
    defect = T.transpose(0, 2, 1) @ (C @ T) - np.eye(p)
    excess = 0.5 * (E * (C @ (E @ S))).sum(axis=(1, 2)) - 0.5 * (S * defect).sum(axis=(1, 2))
    excess = (excess + ((roots.weights - 1.0) * (dots - floors)).sum(axis=1)) / p
    met = (dots >= floors - 1e-11).all(axis=1)
    solved = ~refuted & met & (best <= 1e-11) & (size < 1e-9) & (np.abs(excess) <= 1e-9)
    return LargestMeans(T, roots.weights, solved, refuted)


def make_exact(R: Array, T: Array) -> tuple[Array, Array]:
    """Two Newton–Schulz steps towards ``T (TᵀRT)^{-1/2}``, and ``‖TᵀRT - I‖`` after them."""
    identity = np.eye(T.shape[1])
    for _ in range(2):
        defect = T.transpose(0, 2, 1) @ (R @ T) - identity
        T = T - 0.5 * (T @ defect)
    defect = T.transpose(0, 2, 1) @ (R @ T) - identity
    return T, np.sqrt((defect * defect).sum(axis=(1, 2)))
