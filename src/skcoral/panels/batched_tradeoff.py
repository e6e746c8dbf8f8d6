"""The trade-off of many small matrices at once, from neighbours: squared criterion and worst pair.

Newton's method for the floors that bind is in :mod:`skcoral.panels.batched_newton`. The variables
whose floors do not bind are completed exactly. Each result is certified by the bound (★)
of :mod:`skcoral.tradeoff.dual`; one that does not close its gap counts as not solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcoral.panels.batched_exact import Roots, assemble, complement, largest_means
from skcoral.panels.batched_newton import Problems, newton
from skcoral.panels.batches import Batch, Mask, inverse, solve
from skcoral.results import Array
from skcoral.tradeoff.lexicographic import TIE

_EPS = float(np.finfo(np.float64).eps)
_ROUNDS = 3  # corrections of which floors bind
_CLOSED = 1e-10  # gap, relative to max(1, objective), of a result that is kept


@dataclass
class Tradeoffs(Batch):
    """Least residuals of a batch; ``multipliers`` and ``H`` prove ``lower_bound``."""

    T: Array
    G: Array
    objective: Array
    lower_bound: Array
    multipliers: Array
    H: Array
    solved: Mask


def tradeoffs(R: Array, floors: Array, multipliers: Array, H: Array) -> Tradeoffs:
    """Solve from the dual points of neighbouring problems, for floors above the threshold.

    Where a multiplier is zero, the floor is taken not to bind.
    """
    n, p = multipliers.shape
    members = multipliers > 0
    H, T, lam = H.copy(), np.zeros((n, p, p)), np.zeros((n, p))
    solved = np.zeros(n, dtype=bool)
    at = np.arange(n)
    for _ in range(_ROUNDS):
        problem = Problems.squares(R[at], floors, members[at])
        found = newton(problem, H[at])
        points, negative = found.points, found.negative(problem)
        H[at], T[at], lam[at] = points.H, points.T, points.lam
        drop = found.done & negative.any(axis=1)
        drop &= negative.sum(axis=1) < members[at].sum(axis=1)
        solved[at] = found.done & ~negative.any(axis=1)
        ready = at[solved[at] & ~members[at].all(axis=1)]
        joined = np.empty(0, dtype=np.intp)
        if len(ready):
            residual, mix = complement(R[ready], members[ready])
            rho = np.where(members[ready], 0.0, floors)
            rest = largest_means(residual, rho, np.ones(rho.shape))
            T[ready] = assemble(members[ready], T[ready], rest.T, mix)
            solved[ready] = rest.solved
            joined = ready[rest.refuted]
            push = np.where(members[ready], 0.0, rest.weights)[rest.refuted]
            if len(joined):
                more = push > 0.03 * push.max(axis=1, keepdims=True)
                H[joined] = _joined(
                    R[joined], members[joined], H[joined], T[joined], lam[joined], more
                )
                members[joined] |= more
        dropped = at[drop]
        members[dropped] &= ~negative[drop]
        at = np.sort(np.concatenate([joined, dropped]))
        if not len(at):
            break
    return certified(R, floors, members, T, np.where(members, lam, 0.0), H, solved)


def above_thresholds(R: Array, floors: Array, weights: Array) -> tuple[Array, Array]:
    """Dual points ``H = s S`` to start from, with the weights and the root of the thresholds."""
    roots = Roots.of(R, weights)
    S = roots.root()
    off = (S * S).sum(axis=(1, 2)) - (roots.diagonal**2).sum(axis=1)
    s = 2.0 * ((weights * floors).sum(axis=1) - roots.trace) / off
    return s[:, None] * weights, s[:, None, None] * S


def _joined(R: Array, members: Mask, H: Array, T: Array, lam: Array, more: Mask) -> Array:
    """``H`` where more floors begin to bind: as :func:`skcoral.tradeoff.binding.with_joined`."""
    residual, mix = complement(R, members)
    small = 1e-2 * np.where(members, lam, np.inf).min(axis=1)[:, None, None]
    inside = np.where(members[:, None, :] & members[:, :, None], T, np.eye(members.shape[1]))
    across = small * solve(inside, mix)
    across = np.where(members[:, :, None] & more[:, None, :], across, 0.0)
    values, V = np.linalg.eigh(residual)
    own = small * ((V * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ V.transpose(0, 2, 1))
    own = own + across.transpose(0, 2, 1) @ solve(H, across)
    out = np.where(more[:, :, None] & more[:, None, :], own, H)
    return np.asarray(out + across + across.transpose(0, 2, 1))


def certified(
    R: Array,
    floors: Array,
    pinned: Mask,
    T: Array,
    lam: Array,
    H: Array,
    solved: Mask,
    *,
    worst: bool = False,
) -> Tradeoffs:
    """Put every output on its cap, and compare the residual with the bound (★)."""
    p = pinned.shape[1]
    rows, priced = np.arange(p), lam > 0
    T = _on_caps(R, np.where(solved[:, None, None], T, np.eye(p)), floors, pinned)
    G = T.transpose(0, 2, 1) @ (R @ T)
    defect = G - np.eye(p)
    own = H[:, rows, rows]
    # the bound wants H ≻ 0, so variables without a price get a little
    little = 1e-13 * np.minimum(np.where(priced, own, 0.0).max(axis=1, keepdims=True), 1.0)
    H = np.where(priced[:, :, None] & priced[:, None, :], H, 0.0)
    H[:, rows, rows] = np.where(priced, own, little)
    off, between = H.copy(), G.copy()
    off[:, rows, rows] = between[:, rows, rows] = 0.0
    if worst:
        # a little less than one in sum, so that rounding leaves the bound valid
        total = (1.0 + p * p * _EPS) * np.abs(off).sum(axis=(1, 2)) + np.finfo(np.float64).tiny
        lam, H = lam / total[:, None], H / total[:, None, None]
        conjugate, objective = np.zeros(len(R)), np.abs(between).max(axis=(1, 2))
    else:
        conjugate = 0.5 * (off * off).sum(axis=(1, 2))
        objective = 0.5 * (between * between).sum(axis=(1, 2))
    Z = T @ H
    Z[:, rows, rows] -= lam
    rest = (inverse(H) * (Z.transpose(0, 2, 1) @ (R @ Z))).sum(axis=(1, 2))
    fidelity = np.einsum("bij,bij->bj", R, T)
    slack = 2.0 * (lam * (floors - fidelity)).sum(axis=1)
    bound = slack + (defect * H).sum(axis=(1, 2)) - conjugate - np.abs(rest)
    gap = np.abs(objective - bound)
    closed = _CLOSED + (3.0 * TIE if worst else 0.0)
    solved = solved & (gap <= closed * np.maximum(1.0, objective)) & (bound > 0.0)
    solved &= np.linalg.eigvalsh(H)[:, 0] > 0.0  # the bound holds for positive definite H
    solved &= (fidelity >= floors).all(axis=1) & (np.abs(defect[:, rows, rows]) < 1e-12).all(axis=1)
    return Tradeoffs(T, G, objective, bound, lam, H, solved)


def _on_caps(R: Array, T: Array, floors: Array, pinned: Mask) -> Array:
    """Scale outputs to unit variance and move them onto their caps: as ``tradeoff.feasible``."""
    p = T.shape[1]
    rows = np.arange(p)
    T = T / np.sqrt((T * (R @ T)).sum(axis=1))[:, None, :]
    f = (R * T).sum(axis=1)
    target = floors + 4.0 * _EPS * (np.abs(R) * np.abs(T)).sum(axis=1)
    turn = pinned | (f < target)
    away = T.copy()
    away[:, rows, rows] -= f
    away[:, rows, rows] -= (R * away).sum(axis=1)
    length = np.sqrt(np.maximum((away * (R @ away)).sum(axis=1), np.finfo(np.float64).tiny))
    factor = np.sqrt(1.0 - target * target) / length
    turned = away * factor[:, None, :]
    turned[:, rows, rows] += target
    return np.where(turn[:, None, :], turned, T)
