"""Newton's method for H of many small trade-offs at once.

The equations are those of :mod:`skcoral.tradeoff.newton`: with the floors of the ``free`` variables
met with equality, ``λ`` follows from H by one linear solve, ``T = D_λ H⁻¹``, and what is left is

    TᵀRT - I = S,        S = clip(off(H), ±c).

Squares have no bound c. With the squares plus ``N`` times the worst pair, c is the level above
which the entries of H add up to N; given bounds are the tie-break of the worst pair. Either way S
is the gradient of a convex function, so that Newton's method goes up a concave one. The equations
for the entries of H are formed and solved for a whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.linalg as sla

from skcoral.panels.batches import Batch, Mask, cholesky, inverse, solve
from skcoral.results import Array

SOLVED = 1e-11  # relative residual at which Newton's method stops


@dataclass
class Problems(Batch):
    """Which entries of H are unknown, and how they are tied to the residual correlations.

    ``free`` variables have binding floors; ``held`` ones are outputs already. ``pairs`` count.
    ``worst`` is N; ``signs`` are those of the pairs known to be worst; ``caps`` are given bounds.
    """

    R: Array
    floors: Array
    free: Mask
    pairs: Mask
    held: Mask | None = None
    worst: Array | None = None
    signs: Array | None = None
    caps: Array | None = None

    @classmethod
    def squares(cls, R: Array, floors: Array, free: Mask) -> Self:
        """The sum of squares of all pairs of the ``free`` variables."""
        return cls(R, np.broadcast_to(floors, free.shape), free, pairs_of(free, free))

    def start(self, H: Array) -> Array:
        """``H`` with its unknown entries, and the identity on variables that are not free."""
        eye = np.eye(H.shape[1])
        live = self.pairs | ((eye > 0) & self.free[:, :, None])
        return np.where(live, H, np.where(self.free[:, :, None], 0.0, eye))

    def residual(self, H: Array) -> tuple[Array, Array, Array]:
        """S, its level c (not a number for squares), and the conjugate of the criterion."""
        off = np.where(self.pairs, H, 0.0)
        level = np.full(len(H), np.nan)
        cost: Any = 0.0
        if self.caps is not None:
            S = np.clip(off, -self.caps, self.caps)
        elif self.worst is None:
            return off, level, 0.5 * (off * off).sum(axis=(1, 2))
        else:
            if self.signs is not None:
                both = (self.signs * H).sum(axis=(1, 2)) - self.worst
                level = both / np.maximum((self.signs != 0).sum(axis=(1, 2)), 1)
                S = self.signs * level[:, None, None]
            else:
                level = _level(off, self.worst)
                S = np.clip(off, -level[:, None, None], level[:, None, None])
            cost = self.worst * level
        return S, level, (off * S - 0.5 * S * S).sum(axis=(1, 2)) - cost


_triangle = cache(np.triu_indices)


def pairs_of(some: Mask, others: Mask) -> Mask:
    """Pairs of one of ``some`` variables and one of the ``others``."""
    pairs = some[:, :, None] & others[:, None, :]
    return (pairs | pairs.transpose(0, 2, 1)) & ~np.eye(some.shape[1], dtype=bool)


def _level(off: Array, worst: Array) -> Array:
    """The level above which the entries of each matrix add up to ``worst``; zero if they do not."""
    i, j = _triangle(off.shape[1], 1)
    falling = -np.sort(-np.abs(off[:, i, j]), axis=1)
    above = (np.cumsum(falling, axis=1) - 0.5 * worst[:, None]) / np.arange(1, len(i) + 1)
    return np.maximum(above.max(axis=1, initial=0.0), 0.0)


@dataclass
class Points(Batch):
    """Where every free floor is met with equality; ``value`` is what Newton's method maximises."""

    H: Array
    B: Array
    lam: Array
    T: Array
    C: Array
    G: Array
    S: Array
    level: Array
    gradient: Array
    value: Array

    @classmethod
    def of(cls, problem: Problems, H: Array) -> Self:
        """Multipliers, transformation and residual at ``H``; not numbers outside the domain."""
        free, held, R = problem.free, problem.held, problem.R
        rows = np.arange(free.shape[1])
        both = free[:, :, None] & free[:, None, :]
        root = inverse(cholesky(np.where(both, H, np.eye(len(rows)))))
        B = np.where(both, root.transpose(0, 2, 1) @ root, 0.0)
        K = R * B
        K[:, rows, rows] += ~free
        T0: Any = 0.0
        reached: Any = 0.0
        rho = problem.floors
        if held is not None:
            T0 = np.where(held[:, :, None] & free[:, None, :], -H, 0.0) @ B
            T0[:, rows, rows] += held
            reached = (R * T0).sum(axis=1)
        lam = solve(K, np.where(free, rho - reached, 0.0)[:, :, None])[:, :, 0]
        T = T0 + lam[:, :, None] * B
        C = R @ T
        G = T.transpose(0, 2, 1) @ C
        S, level, conjugate = problem.residual(H)
        gradient = np.where(problem.pairs, G - S, 0.0)
        gradient[:, rows, rows] = np.where(free, G[:, rows, rows] - 1.0, 0.0)
        value = (2.0 * rho * lam - lam * C[:, rows, rows]).sum(axis=1) - conjugate
        value -= np.where(free, H[:, rows, rows], 0.0).sum(axis=1)
        if held is not None:
            value += np.where(held[:, :, None] & free[:, None, :], H * C, 0.0).sum(axis=(1, 2))
        return cls(H, B, lam, T, C, G, S, level, gradient, value)

    @property
    def residual(self) -> Array:
        """What is left of the equations."""
        return np.sqrt((self.gradient * self.gradient).sum(axis=(1, 2)))

    def factors(self, problem: Problems) -> list[Any]:
        """Factors of the Newton equations, None where they are not definite."""
        n, p = self.lam.shape
        i, j = _triangle(p)
        K = problem.R * self.B
        K[:, np.arange(p), np.arange(p)] += ~problem.free
        J = self.C[:, :, i] * self.B[:, :, j] + self.C[:, :, j] * self.B[:, :, i]
        J *= np.where(i != j, np.sqrt(0.5), 0.5) * problem.free[:, :, None]
        half = inverse(cholesky(K)) @ J
        usable: Any = np.isfinite(half).all(axis=(1, 2)) & np.isfinite(self.value)
        live = problem.pairs[:, i, j] | (problem.free[:, i] & (i == j))
        capped = (self.S != self.H)[:, i, j] & problem.pairs[:, i, j]
        stiff = np.where((i != j) & ~capped, 1.0, 0.0)
        lever = None
        if problem.worst is not None:  # the level moves with the entries that are at it
            lever = np.sign(self.S[:, i, j]) * capped
            lever = lever / np.sqrt(np.maximum(capped.sum(axis=1), 1))[:, None]
        found: list[Any] = [None] * n
        rows = np.arange(len(i))
        size = max(1, 60_000 // len(i) ** 2)  # systems at once, so that they stay in the cache
        for start in range(0, n, size):
            part = slice(start, start + size)
            A = _equations(self.G[part], self.B[part])
            A[:, rows, rows] += stiff[part]
            # one by one, SciPy's symmetric routines are faster than NumPy's LU of a batch
            for k, own in enumerate(A, start):
                if not usable[k]:
                    continue
                on, J_k = np.flatnonzero(live[k]), half[k]
                if len(on) < len(i):
                    own, J_k = own[np.ix_(on, on)], J_k[:, on]
                own = sla.blas.dsyrk(-2.0, J_k.T, beta=1.0, c=own.T, lower=1, overwrite_c=1)
                if lever is not None:
                    own = sla.blas.dsyr(1.0, lever[k, on], lower=1, a=own, overwrite_a=1)
                factor, info = sla.lapack.dpotrf(own, lower=1, clean=0)
                found[k] = (factor, on) if info == 0 else None
        return found

    def direction(self, factors: list[Any], right: Array | None = None) -> Array:
        """Newton's direction for H, zero without factors; those of a point nearby may be used."""
        p = self.H.shape[1]
        i, j = _triangle(p)
        weight = np.where(i != j, np.sqrt(2.0), 1.0)
        b = (self.gradient if right is None else right)[:, i, j] * weight
        v = np.zeros(b.shape)
        for k, known in enumerate(factors):
            if known is not None:
                factor, on = known
                v[k, on] = sla.lapack.dpotrs(factor, b[k, on], lower=1)[0]
        V = np.zeros(self.H.shape)
        V[:, i, j] = V[:, j, i] = v / weight
        return V


@cache
def _products(p: int) -> tuple[Any, ...]:
    """Where the equations' upper triangle lies, its scale, and the products it is made of.

    Entry ``(k, l), (i, j)`` is ``G_ki B_lj + G_lj B_ki + G_kj B_li + G_li B_kj``.
    """
    i, j = np.triu_indices(p)
    unit = np.where(i != j, 1.0, np.sqrt(0.5))
    a, b = np.triu_indices(len(i))
    ii, jj, ij, ji = (x[a] * p + y[b] for x, y in ((i, i), (j, j), (i, j), (j, i)))
    return a * len(i) + b, unit[a] * unit[b], ((ii, jj), (jj, ii), (ij, ji), (ji, ij))


def _equations(G: Array, B: Array) -> Array:
    """``G V B + B V G`` as matrices acting on the entries of V; their upper triangles."""
    n, p = len(G), G.shape[1]
    size = p * (p + 1) // 2
    upper, unit, products = _products(p)
    g, b = G.reshape(n, -1), B.reshape(n, -1)
    A = np.zeros((n, size**2))
    A[:, upper] = unit * sum(g.take(i, axis=1) * b.take(j, axis=1) for i, j in products)
    return A.reshape(n, size, size)


@dataclass
class Found:
    """Where Newton's method stopped: solved, or at a floor that does not bind (``done``)."""

    points: Points
    done: Mask
    factors: list[Any]

    def negative(self, problem: Problems) -> Mask:
        """Floors that do not bind."""
        return problem.free & (self.points.lam <= 0.0)

    def binding(self, problem: Problems) -> Mask:
        """Where it is solved, and every floor binds."""
        return self.done & ~self.negative(problem).any(axis=1)


def newton(problem: Problems, H: Array, goal: Any = SOLVED, steps: int = 10) -> Found:
    """Take Newton steps from ``H`` until the residual, relative to √p, is below ``goal``.

    Squares end early at floors that do not bind.
    """
    early = problem.worst is None and problem.caps is None
    points = Points.of(problem, problem.start(H))
    goal = np.broadcast_to(goal, len(H)) * np.sqrt(np.maximum(problem.free.sum(axis=1), 1))
    live = np.isfinite(points.value) & problem.free.any(axis=1)
    done = np.zeros(len(H), dtype=bool)
    last: list[Any] = [None] * len(H)
    for step in range(steps + 1):
        done |= live & (points.residual <= goal) & ((step > 0) | (goal < 1e-9))
        if early:
            done |= live & (problem.free & (points.lam <= 0.0)).any(axis=1)
        live &= ~done
        if problem.caps is not None:  # a value that no point within the bounds has: there is none
            most = 0.5 * np.where(problem.pairs, problem.caps**2, 0.0).sum(axis=(1, 2))
            live &= points.value <= most
        at = np.flatnonzero(live)
        if not len(at) or step == steps:
            break
        now, own = points.take(at), problem.take(at)
        factors = now.factors(own)
        for k, factor in zip(at.tolist(), factors, strict=True):
            last[k] = factor
        V = now.direction(factors)
        gain, before = (now.gradient * V).sum(axis=(1, 2)), now.residual
        length, trying = np.ones(len(at)), np.arange(len(at))
        for _ in range(5):
            ahead = now.H[trying] + length[trying, None, None] * V[trying]
            trial = Points.of(own.take(trying), ahead)
            good = trial.residual < (1.0 - 0.3 * length[trying]) * before[trying]
            good |= trial.value > now.value[trying] + 0.1 * length[trying] * gain[trying]
            points.put(at[trying[good]], trial.take(good))
            trying = trying[~good]
            if not len(trying):
                break
            length[trying] *= 0.5
        live[at[trying]] = False  # too far from the solution
        # rounding may stop the method a little above its goal
        done[at[trying]] = before[trying] <= 1e2 * goal[at[trying]]
    return Found(points, done, last)
