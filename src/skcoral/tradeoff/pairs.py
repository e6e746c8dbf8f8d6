"""How a criterion ties ``off(H)`` to the residual correlations, as complementarity conditions.

At the optimum ``off(G)`` is a subgradient of the conjugate at ``off(H)``. For the criteria that are
not smooth this is a set of complementarity conditions, relaxed here by a parameter τ. Each model
keeps its own variables, one per pair ``i < j``, and answers the questions of the interior-point
method: what is the residual correlation S now, how does it move with H, how far can we go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Response:
    """``dS = stiffness · dH + shift + lever · dδ``, with one linear equation for the scalar dδ.

    The equation is ``constant + 2 lever · dH + bend dδ = 0`` (sums over pairs ``i < j``); without a
    scalar, ``lever`` is None.
    """

    stiffness: Array
    shift: Array
    lever: Array | None = None
    constant: float = 0.0
    bend: float = -1.0


class PairModel(Protocol):
    """What the interior-point method asks of a criterion."""

    @property
    def residual_correlation(self) -> Array:
        """The current S, one value per pair."""

    def products(self) -> Array:
        """All complementarity products."""

    def equations(self, h: Array, tau: float) -> Array:
        """All equations of the model at ``h = H[pairs]``, relaxed by τ, as one vector."""

    def respond(self, h: Array, tau: float) -> Response:
        """Linearise S in H."""

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[PairModel, float]:
        """Direction of the model's own variables, and the longest step that keeps them inside."""

    def moved(self, direction: PairModel, length: float) -> PairModel:
        """Return the model after a step."""

    def restricted(self, keep: NDArray[np.bool_]) -> PairModel:
        """Return the model of some of the pairs."""


def longest_step(x: Array, dx: Array) -> float:
    """Longest step in [0, 1] that keeps ``x + step · dx`` positive, with a margin."""
    shrinking = dx < 0
    if not shrinking.any():
        return 1.0
    return float(min(1.0, 0.99 * np.min(-x[shrinking] / dx[shrinking])))


@dataclass(frozen=True)
class Quadratic:
    """Squares: ``S = stiffness · H``. Stiffness zero: uncorrelated, at whatever cost."""

    stiffness: Array
    s: Array

    @property
    def residual_correlation(self) -> Array:
        """The current S."""
        return self.s

    def products(self) -> Array:
        """There are none."""
        return np.zeros(0)

    def equations(self, h: Array, tau: float) -> Array:
        """``S - stiffness · H``, in units of H where that is the smaller."""
        return (self.s - self.stiffness * h) / np.maximum(self.stiffness, 1.0)

    def respond(self, h: Array, tau: float) -> Response:
        """``S = stiffness · H``."""
        return Response(self.stiffness, self.stiffness * h - self.s)

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[Quadratic, float]:
        """Direction of S."""
        return replace(self, s=self.stiffness * (h + dh) - self.s), 1.0

    def moved(self, direction: PairModel, length: float) -> Quadratic:
        """Return the model after a step."""
        return replace(self, s=self.s + length * direction.residual_correlation)

    def restricted(self, keep: NDArray[np.bool_]) -> Quadratic:
        """Return the model of some of the pairs."""
        return Quadratic(self.stiffness[keep], self.s[keep])


@dataclass(frozen=True)
class Box:
    """Absolute criterion: ``|H_ij| ≤ ω_ij / 2``, ``S = s⁺ - s⁻``.

    With slacks ``u = ω/2 - H`` and ``v = ω/2 + H``, kept as variables for the sake of their digits,
    ``s⁺ u = τ/2`` and ``s⁻ v = τ/2``.
    """

    plus: Array
    minus: Array
    u: Array
    v: Array

    @classmethod
    def start(cls, omega: Array) -> Box:
        """Start from S = 0 at H = 0."""
        tenth = np.full(len(omega), 0.1)
        return cls(tenth, tenth.copy(), 0.5 * omega, 0.5 * omega)

    @property
    def residual_correlation(self) -> Array:
        """The current S."""
        return self.plus - self.minus

    def products(self) -> Array:
        """All complementarity products."""
        return np.concatenate([self.plus * self.u, self.minus * self.v])

    def equations(self, h: Array, tau: float) -> Array:
        """Complementarity."""
        return self.products() - 0.5 * tau

    def respond(self, h: Array, tau: float) -> Response:
        """Linearise S in H."""
        u, v = self.u, self.v
        target = 0.5 * tau / u - 0.5 * tau / v
        return Response(self.plus / u + self.minus / v, target - self.residual_correlation)

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[Box, float]:
        """Direction of s⁺, s⁻ and their slacks."""
        plus = (0.5 * tau + self.plus * dh) / self.u - self.plus
        minus = (0.5 * tau - self.minus * dh) / self.v - self.minus
        direction = Box(plus, minus, -dh, dh)
        return direction, min(
            longest_step(self.plus, plus),
            longest_step(self.minus, minus),
            longest_step(self.u, -dh),
            longest_step(self.v, dh),
        )

    def moved(self, direction: PairModel, length: float) -> Box:
        """Return the model after a step."""
        if not isinstance(direction, Box):
            raise TypeError("the direction belongs to another criterion")
        return Box(
            plus=self.plus + length * direction.plus,
            minus=self.minus + length * direction.minus,
            u=self.u + length * direction.u,
            v=self.v + length * direction.v,
        )

    def restricted(self, keep: NDArray[np.bool_]) -> Box:
        """Return the model of some of the pairs."""
        return Box(self.plus[keep], self.minus[keep], self.u[keep], self.v[keep])


@dataclass(frozen=True)
class Bounded:
    """``|S_ij| ≤ δ c_ij``: worst pair with δ free, or squares within given bounds with δ = 1.

    ``H = a - b + κ S`` with ``a, b ≥ 0``, slacks ``u = δ c - S`` and ``v = δ c + S``, which are
    kept as variables because they become far smaller than what they are the difference of, and
    ``a u = τ/2``, ``b v = τ/2``. The worst pair has ``κ = 0`` and ``Σ_{i<j} 2 c (a + b) = 1``.
    Where ``c`` is infinite, there is no bound.
    """

    c: Array
    a: Array
    b: Array
    s: Array
    u: Array
    v: Array
    kappa: float

    @classmethod
    def worst(cls, omega: Array) -> Bounded:
        """Worst pair: start from S = 0, δ = 1 and even weights."""
        even = 0.25 * omega / max(len(omega), 1)
        level = 1.0 / omega
        return cls(level, even, even.copy(), np.zeros(len(omega)), level, level.copy(), 0.0)

    @classmethod
    def squares(cls, bounds: Array) -> Bounded:
        """Squares within bounds: start from S = 0."""
        live = np.isfinite(bounds)
        even = np.where(live, 0.1, 0.0)
        level = np.where(live, bounds, 1.0)
        return cls(bounds, even, even.copy(), np.zeros(len(bounds)), level, level.copy(), 1.0)

    @property
    def residual_correlation(self) -> Array:
        """The current S."""
        return self.s

    @property
    def live(self) -> NDArray[np.bool_]:
        """The pairs with a bound."""
        return np.isfinite(self.c)

    @property
    def free(self) -> bool:
        """Whether the level δ is a variable."""
        return self.kappa == 0.0

    def products(self) -> Array:
        """All complementarity products."""
        m = self.live
        return np.concatenate([(self.a * self.u)[m], (self.b * self.v)[m]])

    def equations(self, h: Array, tau: float) -> Array:
        """Complementarity, the split of H, and the sum."""
        split = h - (self.a - self.b) - self.kappa * self.s
        total = [2.0 * float(np.sum((self.a + self.b) * self.c)) - 1.0] if self.free else []
        return np.concatenate([self.products() - 0.5 * tau, split, total])

    def respond(self, h: Array, tau: float) -> Response:
        """Linearise S and δ in H."""
        u, v, m = self.u, self.v, self.live
        pull = self.a / u + self.b / v
        new_a, new_b = np.where(m, 0.5 * tau / u, 0.0), np.where(m, 0.5 * tau / v, 0.0)
        stiffness = 1.0 / (pull + self.kappa)
        shift = stiffness * (h - (new_a - new_b) - self.kappa * self.s)
        if not self.free:
            return Response(stiffness, shift)
        twist = self.a / u - self.b / v
        lever = stiffness * twist * self.c
        # Σ 2 c (a + da + b + db) = 1 with da + db = ... - pull c dδ + twist dS
        constant = 2.0 * float(np.sum((new_a + new_b + twist * shift) * self.c)) - 1.0
        bend = 2.0 * float(np.sum((twist * lever - pull * self.c) * self.c))
        return Response(stiffness, shift, lever, constant, bend)

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[Bounded, float]:
        """Direction of a, b, S and δ."""
        response = self.respond(h, tau)
        ds = response.stiffness * dh + response.shift
        m = self.live
        level = np.zeros(len(h))
        if response.lever is not None:
            ds = ds + response.lever * scalar
            level = scalar * self.c
        du = np.where(m, level - ds, 0.0)
        dv = np.where(m, level + ds, 0.0)
        da = np.where(m, (0.5 * tau - self.a * du) / self.u - self.a, 0.0)
        db = np.where(m, (0.5 * tau - self.b * dv) / self.v - self.b, 0.0)
        length = min(
            longest_step(self.a, da),
            longest_step(self.b, db),
            longest_step(self.u, du),
            longest_step(self.v, dv),
        )
        return replace(self, a=da, b=db, s=ds, u=du, v=dv), length

    def moved(self, direction: PairModel, length: float) -> Bounded:
        """Return the model after a step."""
        if not isinstance(direction, Bounded):
            raise TypeError("the direction belongs to another criterion")
        return replace(
            self,
            a=self.a + length * direction.a,
            b=self.b + length * direction.b,
            s=self.s + length * direction.s,
            u=self.u + length * direction.u,
            v=self.v + length * direction.v,
        )

    def restricted(self, keep: NDArray[np.bool_]) -> Bounded:
        """Return the model of some of the pairs."""
        c, a, b, s, u, v = (x[keep] for x in (self.c, self.a, self.b, self.s, self.u, self.v))
        return Bounded(c, a, b, s, u, v, self.kappa)
