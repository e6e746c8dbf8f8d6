"""The problem of the interior-point method, its points, and the models of its criteria.

A pair model says how a criterion ties ``off(H)`` to the residual correlations. At the optimum these
are a subgradient ``S`` of the conjugate at ``off(H)``. For the criteria that are not smooth this is
a set of complementarity conditions, relaxed by a parameter τ on the central path. A model holds its
own variables as symmetric matrices, one entry per pair; entries of pairs that do not count are kept
at one and masked out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.core.arrays import (
    Array,
    Index,
    cholesky_or_none,
    diagonal_matrix,
    inner,
    inverse_factored,
    largest_ratio,
    library,
    plus_diagonal,
    submatrix,
    to_device,
    to_host,
)
from skcoral.core.linalg import accurate_factor


class Problem:
    """A correlation matrix, floors in (0, 1], and which entries of H are unknown.

    ``live`` is True for the pairs that count. ``within`` is a problem with more variables, whose
    constants are shared.
    """

    def __init__(
        self, R: Any, floors: Array, live: NDArray[np.bool_], within: Problem | None = None
    ) -> None:
        self.R = R
        self.p = len(floors)
        self.floor_values = floors
        root = accurate_factor(R)
        if root is None:
            raise sla.LinAlgError("R is not positive definite to rounding")
        self.root = root
        self.fixed = floors >= 1.0
        free = ~self.fixed
        self.n_free = int(free.sum())
        self.any_fixed = self.n_free < self.p
        self.floors = to_device(floors, R)
        self.free = to_device(free.astype(np.float64), R)
        own = np.eye(self.p, dtype=bool)
        self.every = bool(np.all(live | own))
        self.pairs: Any
        if within is not None and within.every:
            self.pairs = within.pairs[: self.p, : self.p]
        else:
            self.pairs = to_device((live & ~own).astype(np.float64), R)
        if self.any_fixed:
            self.live = plus_diagonal(1.0 * self.pairs, self.free)
            self.block = self.free[:, None] * self.free[None, :]
            self.held = diagonal_matrix(1.0 - self.free)
        else:
            self.block, self.held = _constant(1.0, R), _constant(0.0, R)
            self.live = self.block if self.every else plus_diagonal(1.0 * self.pairs, 1.0)

    @cached_property
    def unknowns(self) -> tuple[Index, Index]:
        """Rows and columns of the unknown entries of H on and above the diagonal, in NumPy."""
        i, j = np.nonzero(np.triu(self.live))
        return i, j

    def restricted(self, members: Index) -> Problem:
        """Return the problem of some of the variables."""
        live = np.asarray(to_host(submatrix(self.pairs, members, members))) > 0
        R = submatrix(self.R, members, members)
        return Problem(R, self.floor_values[members], live, within=self)

    def definite(self, X: Any) -> Any:
        """Cholesky factor of the free block of ``X``, one elsewhere; None if not definite."""
        return cholesky_or_none(X if not self.any_fixed else X * self.block + self.held)

    def inverse(self, H: Any) -> Any:
        """Inverse of the free block of ``H``, zero elsewhere; None if not definite."""
        factor = self.definite(H)
        return None if factor is None else inverse_factored(factor) * self.block

    def gram(self, T: Any) -> Any:
        """``TᵀRT``, by the factor of R."""
        W = self.root.T @ T
        return W.T @ W

    def outputs(self, H: Any, B: Any, lam: Any) -> Any:
        """T with ``T H = D_λ`` and the outputs that are their sources; ``B`` is the inverse."""
        T = lam[:, None] * B
        if not self.any_fixed:
            return T
        across = H * (1.0 - self.free)[:, None] * self.free[None, :]
        return T - across @ B + self.held


def _constant(value: float, R: Any) -> Any:
    """A matrix like ``R`` of one value, which takes no memory."""
    return library(R).broadcast_to(to_device(np.array(value), R), R.shape)


@dataclass(frozen=True)
class State:
    """An interior point."""

    H: Any
    lam: Any
    z: Any
    T: Any
    P: Any
    model: PairModel


Corrector = tuple[Any, Any] | None

_LEAST = 1e-3  # slacks at the start of the squares within bounds


@dataclass(frozen=True)
class Response:
    """``S + dS = target + stiffness ∘ dH + lever · dδ``, with one equation for the scalar dδ.

    It is ``constant + ⟨lever, dH⟩ + bend · dδ = 0``; without a scalar, ``lever`` is None.
    """

    stiffness: Any
    target: Any
    lever: Any = None
    constant: float = 0.0
    bend: float = -1.0


@dataclass(frozen=True)
class Quadratic:
    """Squares: ``S = stiffness ∘ H``. Stiffness zero asks for S = 0 at whatever cost.

    The methods are what the interior-point method asks of every criterion; squares have no
    variables of their own.
    """

    stiffness: Any
    count: ClassVar[int] = 0  # of complementarity products

    def residual(self, H: Any) -> Any:
        """The current S."""
        return self.stiffness * H

    def products(self, direction: Any = None, length: float = 0.0) -> float:
        """Sum of all complementarity products, here or after a step."""
        return 0.0

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """Linearise S in H on the way to τ."""
        return Response(self.stiffness, self.stiffness * H)

    def direction(self, H: Any, V: Any, scalar: float, tau: float, corrector: Corrector) -> Any:
        """Direction of the model's own variables that goes with ``dH = V``."""

    def longest(self, direction: Any) -> float:
        """Longest step that keeps the variables positive."""
        return float("inf")

    def correct(self, direction: Any, share: float) -> Corrector:
        """A share of the second-order terms of the products, for the corrector step."""
        return None

    def moved(self, direction: Any, length: float) -> Quadratic:
        """Return the model after a step."""
        return self


@dataclass(frozen=True)
class _TwoSided:
    """Two inequalities for each pair, with multipliers ``a, b ≥ 0`` and slacks ``u, v``.

    Slacks are variables, because they become far smaller than what they are the difference of:
    ``a u = b v = τ/2``. ``bound`` marks the pairs.
    """

    bound: Any
    a: Any
    b: Any
    u: Any
    v: Any

    _moving: ClassVar[tuple[str, ...]] = ("a", "b", "u", "v")

    @property
    def count(self) -> int:
        """Two products for each pair, counted from both sides of the diagonal, of size τ/2."""
        return int(library(self.bound).sum(self.bound))

    def products(self, direction: Self | None = None, length: float = 0.0) -> float:
        """``Σ a u + b v``, here or after a step."""
        here = inner(self.a * self.bound, self.u) + inner(self.b * self.bound, self.v)
        if direction is None:
            return here
        d = direction  # zero where no pair counts
        first = inner(self.a, d.u) + inner(self.b, d.v) + inner(d.a, self.u) + inner(d.b, self.v)
        return here + length * (first + length * (inner(d.a, d.u) + inner(d.b, d.v)))

    def longest(self, direction: Self) -> float:
        """Longest step that keeps all four positive."""
        names = ("a", "b", "u", "v")
        ratio = max(largest_ratio(-getattr(direction, n), getattr(self, n)) for n in names)
        return 1.0 / ratio if ratio > 0 else float("inf")

    def correct(self, direction: Self, share: float) -> Corrector:
        """A share of ``da du`` and ``db dv``."""
        return share * direction.a * direction.u, share * direction.b * direction.v

    def moved(self, direction: Self, length: float) -> Self:
        """Return the model after a step."""
        after = {n: getattr(self, n) + length * getattr(direction, n) for n in self._moving}
        return replace(self, **after)

    def _wanted(self, tau: float, corrector: Corrector) -> tuple[Any, Any]:
        """The products ``a u`` and ``b v`` that a step aims at."""
        first, second = (0.0, 0.0) if corrector is None else corrector
        return 0.5 * tau - first, 0.5 * tau - second


@dataclass(frozen=True)
class Box(_TwoSided):
    """Absolute criterion: ``|H_ij| ≤ ω_ij / 2``, so ``u, v = ω/2 ∓ H`` and ``S = a - b``."""

    @classmethod
    def start(cls, omega: Any, live: Any, S: Any, mu: float) -> Box:
        """Start from H = 0 and the residual correlations ``S``."""
        weight = omega + (1.0 - live)
        size, level = abs(S), mu / weight
        half = 0.5 * weight
        return cls(live, level + 0.5 * (size + S), level + 0.5 * (size - S), half, 1.0 * half)

    def residual(self, H: Any) -> Any:
        """``a - b``."""
        return (self.a - self.b) * self.bound

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """Linearise S in H."""
        first, second = self._wanted(tau, corrector)
        stiffness = (self.a / self.u + self.b / self.v) * self.bound
        return Response(stiffness, (first / self.u - second / self.v) * self.bound)

    def direction(self, H: Any, V: Any, scalar: float, tau: float, corrector: Corrector) -> Box:
        """Direction of the multipliers and their slacks."""
        first, second = self._wanted(tau, corrector)
        da = ((first + self.a * V) / self.u - self.a) * self.bound
        db = ((second - self.b * V) / self.v - self.b) * self.bound
        step = V * self.bound
        return Box(self.bound, da, db, -step, step)


@dataclass(frozen=True)
class Bounded(_TwoSided):
    """``|S_ij| ≤ δ c_ij``: worst pair with δ free, or squares within given bounds with δ = 1.

    ``H = a - b + κ S`` and ``u, v = δ c ∓ S``. The worst pair has ``κ = 0`` and
    ``Σ_{i≠j} c (a + b) = 1``. ``live`` marks the pairs, ``bound`` those with a bound. Slacks start
    no smaller than ``_LEAST``: ``wide`` is by how much u and v are still too large, which falls
    faster than the products do.
    """

    live: Any
    c: Any
    s: Any
    kappa: float
    wide: tuple[Any, Any] = (0.0, 0.0)

    _moving = ("a", "b", "u", "v", "s")

    @classmethod
    def worst(cls, omega: Any, live: Any, S: Any) -> Bounded:
        """Worst pair: start from H = 0, the residual correlations ``S`` and twice their level."""
        c = live / (omega + (1.0 - live))
        level = 2.0 * float(library(S).max(abs(omega * S))) + 1e-3
        even = omega / (2.0 * float(library(live).sum(live))) + (1.0 - live)
        s = S * live
        u, v = level * c - s + (1.0 - live), level * c + s + (1.0 - live)
        return cls(live, even, 1.0 * even, u, v, live, c, s, 0.0)

    @classmethod
    def squares(
        cls, bounds: Any, live: Any, bound: Any, S: Any, mu: float, share: float = 0.9
    ) -> Bounded:
        """Squares within ``bounds`` where ``bound`` is one: start from ``S``, moved inside.

        ``share`` is how far towards the bounds it may stay.
        """
        xp = library(S)
        c = bounds * bound
        inside = xp.clip(S, -share * c, share * c)
        s = inside * bound + S * (1.0 - bound)
        exact = c - inside * bound + (1.0 - bound), c + inside * bound + (1.0 - bound)
        u, v = (xp.clip(slack, _LEAST, None) for slack in exact)
        wide = (u - exact[0], v - exact[1])
        return cls(bound, 0.5 * mu / u, 0.5 * mu / v, u, v, live, c, s, 1.0, wide)

    def residual(self, H: Any) -> Any:
        """The current S."""
        return self.s

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """Linearise S and δ in H."""
        return self._linearised(H, tau, corrector)[0]

    def _linearised(
        self, H: Any, tau: float, corrector: Corrector
    ) -> tuple[Response, Any, Any, Any, Any]:
        first, second = self._wanted(tau, corrector)
        m = self.bound
        new_a, new_b = first / self.u * m, second / self.v * m
        over_u, over_v = self.a / self.u * m, self.b / self.v * m
        pull, twist = over_u + over_v, over_u - over_v
        stiffness = self.live / (pull + self.kappa + (1.0 - self.live))
        over = new_a + over_u * self.wide[0] - new_b - over_v * self.wide[1]
        target = self.s + stiffness * (H - over - self.kappa * self.s)
        if self.kappa != 0.0:
            return Response(stiffness, target), new_a, new_b, over_u, over_v
        # Without the differences of nearly equal numbers that a single active pair would leave.
        turn = stiffness * twist
        lever = turn * self.c
        two = 2.0 * stiffness
        constant = inner(turn * H + two * (new_a * over_v + new_b * over_u), self.c) - 1.0
        bend = -2.0 * inner(two * over_u * over_v * self.c, self.c)
        return Response(stiffness, target, lever, constant, bend), new_a, new_b, over_u, over_v

    def direction(self, H: Any, V: Any, scalar: float, tau: float, corrector: Corrector) -> Bounded:
        """Direction of a, b, S and the slacks."""
        response, new_a, new_b, over_u, over_v = self._linearised(H, tau, corrector)
        ds = response.stiffness * V + (response.target - self.s)
        level = 0.0
        if response.lever is not None:
            ds = ds + response.lever * scalar
            level = scalar * self.c
        du = (level - ds - self.wide[0]) * self.bound
        dv = (level + ds - self.wide[1]) * self.bound
        da = (new_a - over_u * du - self.a) * self.bound
        db = (new_b - over_v * dv - self.b) * self.bound
        return replace(self, a=da, b=db, s=ds, u=du, v=dv)

    def moved(self, direction: Self, length: float) -> Self:
        """Return the model after a step."""
        left = tuple((1.0 - length) * excess for excess in self.wide)
        return replace(super().moved(direction, length), wide=left)


PairModel = Quadratic | Box | Bounded
