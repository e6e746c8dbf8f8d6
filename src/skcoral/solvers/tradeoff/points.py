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


Goals = tuple[Any, Any] | None  # the products ``a u`` and ``b v`` that a step aims at

_LEAST = 1e-3  # slacks at the start of the squares within bounds


@dataclass(frozen=True)
class Response:
    """``S + dS = target + stiffness ∘ dH + lever · dδ``, with one equation for the scalar dδ.

    It is ``constant + ⟨lever, dH⟩ + bend · dδ = 0``; without a scalar, ``lever`` is None.
    """

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

    def products(self) -> float:
        """Sum of all complementarity products."""
        return 0.0

    def goals(self, tau: float, direction: Any = None, share: float = 0.0) -> Goals:
        """The products at τ, less a ``share`` of the second-order terms of a predicted step."""
        return None

    def respond(self, H: Any, stiffness: Any, goals: Goals) -> Response:
        """Linearise S in H on the way to the goals; ``stiffness`` is the model's."""
        return Response(stiffness * H)

    def direction(
        self, V: Any, scalar: float, stiffness: Any, response: Response, goals: Goals
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
    """Direction of a two-sided model: its multipliers, what it bounds, and the level of the bounds.

    Those of the slacks follow.
    """

    a: Any
    b: Any
    bounded: Any
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
        du, dv = self._slacks(direction.bounded, direction.level)
        return 0.5 * tau - share * direction.a * du, 0.5 * tau - share * direction.b * dv

    def longest(self, direction: Change) -> float:
        """Longest step that keeps all four positive."""
        du, dv = self._slacks(direction.bounded, direction.level)
        changes = (direction.a, self.a), (direction.b, self.b), (du, self.u), (dv, self.v)
        ratio = max(largest_ratio(-change, value) for change, value in changes)
        return 1.0 / ratio if ratio > 0 else float("inf")

    def moved(self, direction: Change, length: float) -> Self:
        """Return the model after a step."""
        du, dv = self._slacks(direction.bounded, direction.level)
        a, b = self.a + length * direction.a, self.b + length * direction.b
        return replace(self, a=a, b=b, u=self.u + length * du, v=self.v + length * dv)

    def _slacks(self, bounded: Any, level: float) -> tuple[Any, Any]:
        """The changes of u and v."""
        step = bounded * self.bound
        return -step, step

    def _change(self, bounded: Any, level: float, goals: Goals) -> Change:
        """The direction in which the products meet their goals to first order."""
        assert goals is not None
        du, dv = self._slacks(bounded, level)
        da = ((goals[0] - self.a * du) / self.u - self.a) * self.bound
        db = ((goals[1] - self.b * dv) / self.v - self.b) * self.bound
        return Change(da, db, bounded, level)


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

    def respond(self, H: Any, stiffness: Any, goals: Goals) -> Response:
        """Linearise S in H."""
        assert goals is not None
        return Response((goals[0] / self.u - goals[1] / self.v) * self.bound)

    def direction(
        self, V: Any, scalar: float, stiffness: Any, response: Response, goals: Goals
    ) -> Change:
        """Direction of the multipliers and their slacks."""
        return self._change(V, 0.0, goals)


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

    def respond(self, H: Any, stiffness: Any, goals: Goals) -> Response:
        """Linearise S and δ in H."""
        assert goals is not None
        a, b, u, v = self.a, self.b, self.u, self.v
        first, second = (self.left * excess for excess in self.wide)
        # a - b after a step in which S and δ stay as they are.
        over = ((goals[0] + a * first) / u - (goals[1] + b * second) / v) * self.bound
        target = self.s + stiffness * (H - over - self.kappa * self.s)
        if self.kappa != 0.0:
            return Response(target)
        del over
        turn = stiffness * (a / u - b / v)
        # Without the differences of nearly equal numbers that a single active pair would leave.
        lean = 2.0 * stiffness / (u * v) * self.c
        constant = inner(turn * H, self.c) + inner(lean, goals[0] * b + goals[1] * a) - 1.0
        return Response(target, turn * self.c, constant, -2.0 * inner(lean * a * b, self.c))

    def direction(
        self, V: Any, scalar: float, stiffness: Any, response: Response, goals: Goals
    ) -> Change:
        """Direction of a, b, S and the slacks."""
        ds = stiffness * V + (response.target - self.s)
        if response.lever is not None:
            ds += scalar * response.lever
        return self._change(ds, scalar, goals)

    def _slacks(self, bounded: Any, level: float) -> tuple[Any, Any]:
        rise = level * self.c
        first, second = (self.left * excess for excess in self.wide)
        return (rise - bounded - first) * self.bound, (rise + bounded - second) * self.bound

    def moved(self, direction: Change, length: float) -> Self:
        """Return the model after a step."""
        s, left = self.s + length * direction.bounded, (1.0 - length) * self.left
        return replace(super().moved(direction, length), s=s, left=left)


PairModel = Quadratic | Box | Bounded
