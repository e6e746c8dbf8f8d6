"""The problem of the interior-point method, its points, and the models of its criteria.

A pair model says how a criterion ties ``off(H)`` to the residual correlations. At the optimum these
are a subgradient ``S`` of the conjugate at ``off(H)``. For the criteria that are not smooth this is
a set of complementarity conditions, relaxed by a parameter τ on the central path. A model holds its
own variables as symmetric matrices, one entry per pair; entries of pairs that do not count are kept
at one and masked out.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        else:
            self.block = _all_one(R)
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
        return cholesky_or_none(self.with_held(X * self.block) if self.any_fixed else X)

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
        return self.with_held(T - across @ B)

    def with_held(self, X: Any) -> Any:
        """``X`` with one added to the diagonal where outputs are their sources, in place."""
        return plus_diagonal(X, 1.0 - self.free) if self.any_fixed else X


def _all_one(R: Any) -> Any:
    """A matrix like ``R`` of ones, which takes no memory."""
    return library(R).broadcast_to(to_device(np.array(1.0), R), R.shape)


@dataclass(frozen=True)
class State:
    """An interior point."""

    H: Any
    lam: Any
    z: Any
    T: Any
    P: Any
    model: PairModel


Goals = tuple[Any, Any] | None  # the products ``a u`` and ``b v`` that a step aims at

_LEAST = 1e-3  # slacks at the start of the squares within bounds


@dataclass(frozen=True)
class Lever:
    """``pull · dδ`` joins the equations of a criterion with a scalar δ.

    Its own is ``constant + ⟨pull, dH⟩ + bend · dδ = 0``.
    """

    pull: Any
    constant: float
    bend: float


@dataclass(frozen=True)
class Quadratic:
    """Squares: ``S = stiffness ∘ H``. Stiffness zero asks for S = 0 at whatever cost.

    The methods are what the interior-point method asks of every criterion; squares have no
    variables of their own. ``stiffness`` is that of the model, and ``goals`` are the products that
    a step aims at: then ``S + dS = target + stiffness ∘ dH + pull · dδ``.
    """

    stiffness: Any
    count: ClassVar[int] = 0  # of complementarity products

    def residual(self, H: Any) -> Any:
        """The current S."""
        return self.stiffness * H

    def products(self) -> float:
        """Sum of all complementarity products."""
        return 0.0

    def goals(self, tau: float, direction: Any = None, share: float = 0.0) -> Goals:
        """The products at τ, less a ``share`` of the second-order terms of a predicted step."""
        return None

    def target(self, H: Any, stiffness: Any, goals: Goals) -> Any:
        """S at the goals where H and δ stay."""
        return stiffness * H

    def lever(self, H: Any, stiffness: Any, goals: Goals) -> Lever | None:
        """What a scalar adds to the equations; None without one."""
        return None

    def direction(
        self, H: Any, V: Any, stiffness: Any, goals: Goals, lever: Lever | None, scalar: float
    ) -> Any:
        """Direction of the model's own variables that goes with ``dH = V``."""

    def longest(self, direction: Any) -> float:
        """Longest step that keeps the variables positive."""
        return float("inf")

    def moved(self, direction: Any, length: float) -> Quadratic:
        """Return the model after a step."""
        return self


@dataclass(frozen=True)
class Change:
    """Direction of a two-sided model: what it bounds, the level of the bounds, and the goals.

    Those of the multipliers and slacks follow, and are computed where they are needed: each is as
    large as H.
    """

    bounded: Any
    goals: tuple[Any, Any]
    level: float = 0.0


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

    @property
    def count(self) -> int:
        """Two products for each pair, counted from both sides of the diagonal, of size τ/2."""
        return int(library(self.bound).sum(self.bound))

    @property
    def _pull(self) -> Any:
        return (self.a / self.u + self.b / self.v) * self.bound

    def products(self) -> float:
        """``Σ a u + b v``."""
        return inner(self.a * self.bound, self.u) + inner(self.b * self.bound, self.v)

    def goals(self, tau: float, direction: Change | None = None, share: float = 0.0) -> Goals:
        """``τ/2``, less a share of ``da du`` and ``db dv``."""
        if direction is None:
            return 0.5 * tau, 0.5 * tau
        first, second = (0.5 * tau - share * da * du for _, _, da, du in self._sides(direction))
        return first, second

    def longest(self, direction: Change) -> float:
        """Longest step that keeps all four positive."""
        ratio = max(
            max(largest_ratio(-da, a), largest_ratio(-du, u))
            for a, u, da, du in self._sides(direction)
        )
        return 1.0 / ratio if ratio > 0 else float("inf")

    def moved(self, direction: Change, length: float) -> Self:
        """Return the model after a step."""
        (a, u), (b, v) = (
            (a + length * da, u + length * du) for a, u, da, du in self._sides(direction)
        )
        return replace(self, a=a, b=b, u=u, v=v)

    def _sides(self, d: Change) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Multiplier and slack on either side, with the changes that meet the goals."""
        for side, (a, u) in enumerate(((self.a, self.u), (self.b, self.v))):
            du = self._slack(d, side)
            yield a, u, ((d.goals[side] - a * du) / u - a) * self.bound, du

    def _slack(self, d: Change, side: int) -> Any:
        """The change of u or v."""
        return (d.bounded if side else -d.bounded) * self.bound


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

    @property
    def stiffness(self) -> Any:
        """The derivative of S by H."""
        return self._pull

    def residual(self, H: Any) -> Any:
        """``a - b``."""
        return (self.a - self.b) * self.bound

    def target(self, H: Any, stiffness: Any, goals: Goals) -> Any:
        """S at the goals where H stays."""
        assert goals is not None
        return (goals[0] / self.u - goals[1] / self.v) * self.bound

    def lever(self, H: Any, stiffness: Any, goals: Goals) -> Lever | None:
        """None: there is no scalar."""
        return None

    def direction(
        self, H: Any, V: Any, stiffness: Any, goals: Goals, lever: Lever | None, scalar: float
    ) -> Change:
        """Direction of the multipliers and their slacks."""
        assert goals is not None
        return Change(V, goals)


@dataclass(frozen=True)
class Bounded(_TwoSided):
    """``|S_ij| ≤ δ c_ij``: worst pair with δ free, or squares within given bounds with δ = 1.

    ``H = a - b + κ S`` and ``u, v = δ c ∓ S``. The worst pair has ``κ = 0`` and
    ``Σ_{i≠j} c (a + b) = 1``. ``live`` marks the pairs, ``bound`` those with a bound. Slacks start
    no smaller than ``_LEAST``: ``left`` times ``wide`` is by how much u and v are still too large,
    which falls faster than the products do.
    """

    live: Any
    c: Any
    s: Any
    kappa: float
    wide: tuple[Any, Any] = (0.0, 0.0)
    left: float = 1.0

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

    @property
    def stiffness(self) -> Any:
        """The derivative of S by H, δ fixed."""
        return self.live / (self._pull + self.kappa + (1.0 - self.live))

    def residual(self, H: Any) -> Any:
        """The current S."""
        return self.s

    def target(self, H: Any, stiffness: Any, goals: Goals) -> Any:
        """S at the goals where H and δ stay."""
        return self.s + self._missing(H, stiffness, goals)

    def _missing(self, H: Any, stiffness: Any, goals: Goals) -> Any:
        """What the target adds to S."""
        assert goals is not None
        first, second = (self.left * excess for excess in self.wide)
        # a - b after a step in which S and δ stay as they are.
        over = (goals[0] + self.a * first) / self.u - (goals[1] + self.b * second) / self.v
        return stiffness * (H - over * self.bound - self.kappa * self.s)

    def lever(self, H: Any, stiffness: Any, goals: Goals) -> Lever | None:
        """What δ adds to the equations of the worst pair."""
        if self.kappa != 0.0:
            return None
        assert goals is not None
        a, b, u, v = self.a, self.b, self.u, self.v
        pull = stiffness * (a / u - b / v) * self.c
        # Without the differences of nearly equal numbers that a single active pair would leave.
        lean = 2.0 * stiffness / (u * v) * self.c
        constant = inner(pull, H) + inner(lean, goals[0] * b + goals[1] * a) - 1.0
        return Lever(pull, constant, -2.0 * inner(lean * a * b, self.c))

    def direction(
        self, H: Any, V: Any, stiffness: Any, goals: Goals, lever: Lever | None, scalar: float
    ) -> Change:
        """Direction of a, b, S and the slacks."""
        assert goals is not None
        ds = stiffness * V + self._missing(H, stiffness, goals)
        if lever is not None:
            ds += scalar * lever.pull
        return Change(ds, goals, scalar)

    def _slack(self, d: Change, side: int) -> Any:
        rise = d.level * self.c - self.left * self.wide[side]
        return (rise + (d.bounded if side else -d.bounded)) * self.bound

    def moved(self, direction: Change, length: float) -> Self:
        """Return the model after a step."""
        s, left = self.s + length * direction.bounded, (1.0 - length) * self.left
        return replace(super().moved(direction, length), s=s, left=left)


PairModel = Quadratic | Box | Bounded
