"""How a criterion ties ``off(H)`` to the residual correlations, as complementarity conditions.

At the optimum ``off(G)`` is a subgradient of the conjugate at ``off(H)``. For the criteria that are
not smooth this is a set of complementarity conditions, relaxed here by a parameter τ. Each model
keeps its own variables, one per pair ``i < j``, and answers the questions of the interior-point
method: what is the residual correlation S now, how does it move with H, how far can we go.

A tie-break ``κ Σ_{i<j} G_ij²`` is added where the criterion itself does not settle a pair.
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

    def products(self, h: Array) -> Array:
        """All complementarity products at ``h = H[pairs]``."""

    def equations(self, h: Array, tau: float) -> Array:
        """All equations of the model, relaxed by τ, as one vector of residuals."""

    def respond(self, h: Array, tau: float) -> Response:
        """Linearise S in H."""

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[PairModel, float]:
        """Direction of the model's own variables, and the longest step that keeps them inside."""

    def moved(self, direction: PairModel, length: float) -> PairModel:
        """Return the model after a step."""


def longest_step(x: Array, dx: Array) -> float:
    """Longest step in [0, 1] that keeps ``x + step · dx`` positive, with a margin."""
    shrinking = dx < 0
    if not shrinking.any():
        return 1.0
    return float(min(1.0, 0.99 * np.min(-x[shrinking] / dx[shrinking])))


@dataclass(frozen=True)
class Quadratic:
    """Squared criterion: ``H = ω S``. No variables of its own."""

    omega: Array
    s: Array

    @property
    def residual_correlation(self) -> Array:
        """The current S."""
        return self.s

    def products(self, h: Array) -> Array:
        """There are none."""
        return np.zeros(0)

    def equations(self, h: Array, tau: float) -> Array:
        """``H - ω S``."""
        return h - self.omega * self.s

    def respond(self, h: Array, tau: float) -> Response:
        """``S = H / ω``."""
        return Response(1.0 / self.omega, h / self.omega - self.s)

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[Quadratic, float]:
        """Direction of S."""
        return replace(self, s=(h + dh) / self.omega - self.s), 1.0

    def moved(self, direction: PairModel, length: float) -> Quadratic:
        """Return the model after a step."""
        return replace(self, s=self.s + length * direction.residual_correlation)


@dataclass(frozen=True)
class Box:
    """Absolute criterion: ``|H_ij| ≤ ω_ij / 2``, ``S = s⁺ - s⁻``.

    With slacks ``u = ω/2 - H`` and ``v = ω/2 + H``, kept as variables for the sake of their digits,
    ``s⁺ u = τ/2`` and ``s⁻ v = τ/2``; pairs of weight zero have ``H = κ S``.
    """

    live: NDArray[np.bool_]
    plus: Array
    minus: Array
    u: Array
    v: Array
    kappa: float

    @classmethod
    def start(cls, omega: Array, h: Array, kappa: float) -> Box:
        """Start from S = 0 at ``h = H[pairs]``, which must lie inside the box."""
        live = omega > 0
        tenth = np.where(live, 0.1, 0.0)
        u, v = np.where(live, 0.5 * omega - h, 1.0), np.where(live, 0.5 * omega + h, 1.0)
        return cls(live, tenth, tenth.copy(), u, v, kappa)

    @property
    def residual_correlation(self) -> Array:
        """The current S."""
        return self.plus - self.minus

    def products(self, h: Array) -> Array:
        """All complementarity products."""
        m = self.live
        return np.concatenate([(self.plus * self.u)[m], (self.minus * self.v)[m]])

    def equations(self, h: Array, tau: float) -> Array:
        """Complementarity, and ``H - κ S`` for pairs that do not count."""
        m = ~self.live
        return np.concatenate(
            [self.products(h) - 0.5 * tau, h[m] - self.kappa * self.residual_correlation[m]]
        )

    def respond(self, h: Array, tau: float) -> Response:
        """Linearise S in H."""
        m, u, v = self.live, self.u, self.v
        soft = 1.0 / max(self.kappa, 1e-300)
        stiffness = np.where(m, self.plus / u + self.minus / v, soft)
        target = np.where(m, 0.5 * tau / u - 0.5 * tau / v, h * soft)
        return Response(stiffness, target - self.residual_correlation)

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[Box, float]:
        """Direction of s⁺, s⁻ and their slacks."""
        m, u, v = self.live, self.u, self.v
        plus = np.where(m, (0.5 * tau + self.plus * dh) / u - self.plus, 0.0)
        minus = np.where(m, (0.5 * tau - self.minus * dh) / v - self.minus, 0.0)
        du, dv = np.where(m, -dh, 0.0), np.where(m, dh, 0.0)
        length = min(
            longest_step(self.plus[m], plus[m]),
            longest_step(self.minus[m], minus[m]),
            longest_step(u, du),
            longest_step(v, dv),
        )
        plus = np.where(m, plus, (h + dh) / max(self.kappa, 1e-300) - self.plus)
        return replace(self, plus=plus, minus=minus, u=du, v=dv), length

    def moved(self, direction: PairModel, length: float) -> Box:
        """Return the model after a step."""
        if not isinstance(direction, Box):
            raise TypeError("the direction belongs to another criterion")
        return replace(
            self,
            plus=self.plus + length * direction.plus,
            minus=self.minus + length * direction.minus,
            u=self.u + length * direction.u,
            v=self.v + length * direction.v,
        )


@dataclass(frozen=True)
class Simplex:
    """Worst pair: ``H = a - b + κ S`` with ``a, b ≥ 0`` and ``Σ_{i<j} 2 (a + b)/ω = 1``.

    ``|S_ij| ≤ δ/ω_ij`` with slacks ``u = δ/ω - S`` and ``v = δ/ω + S``, which are kept as variables
    because they become far smaller than what they are the difference of; ``a u = τ/2``,
    ``b v = τ/2``. Pairs of weight zero have ``H = κ S``.
    """

    omega: Array
    a: Array
    b: Array
    s: Array
    u: Array
    v: Array
    kappa: float

    @classmethod
    def start(cls, omega: Array, kappa: float) -> Simplex:
        """Start from S = 0, δ = 1 and even weights."""
        live = omega > 0
        even = np.where(live, 0.25 * omega / max(int(live.sum()), 1), 0.0)
        level = np.where(live, 1.0 / np.where(live, omega, 1.0), 1.0)
        return cls(omega, even, even.copy(), np.zeros(len(omega)), level, level.copy(), kappa)

    @property
    def residual_correlation(self) -> Array:
        """The current S."""
        return self.s

    @property
    def live(self) -> NDArray[np.bool_]:
        """The pairs that count."""
        return self.omega > 0

    @property
    def _inverse(self) -> Array:
        return np.where(self.live, 1.0 / np.where(self.live, self.omega, 1.0), 0.0)

    def products(self, h: Array) -> Array:
        """All complementarity products."""
        m = self.live
        return np.concatenate([(self.a * self.u)[m], (self.b * self.v)[m]])

    def equations(self, h: Array, tau: float) -> Array:
        """Complementarity, the split of H, and the sum."""
        total = 2.0 * float(np.sum((self.a + self.b) * self._inverse)) - 1.0
        split = h - (self.a - self.b) - self.kappa * self.s
        return np.concatenate([self.products(h) - 0.5 * tau, split, [total]])

    def respond(self, h: Array, tau: float) -> Response:
        """Linearise S and δ in H."""
        u, v, m, inverse = self.u, self.v, self.live, self._inverse
        pull = np.where(m, self.a / u + self.b / v, 0.0)
        twist = np.where(m, self.a / u - self.b / v, 0.0)
        new_a, new_b = np.where(m, 0.5 * tau / u, 0.0), np.where(m, 0.5 * tau / v, 0.0)
        stiffness = 1.0 / (pull + self.kappa)
        shift = stiffness * (h - (new_a - new_b) - self.kappa * self.s)
        lever = stiffness * twist * inverse
        # Σ 2 (a + da + b + db)/ω = 1 with da + db = ... - pull dδ/ω + twist dS
        constant = 2.0 * float(np.sum((new_a + new_b + twist * shift) * inverse)) - 1.0
        bend = 2.0 * float(np.sum((twist * lever - pull * inverse) * inverse))
        return Response(stiffness, shift, lever, constant, bend)

    def step(self, h: Array, dh: Array, scalar: float, tau: float) -> tuple[Simplex, float]:
        """Direction of a, b, S and δ."""
        response = self.respond(h, tau)
        if response.lever is None:
            raise TypeError("the worst pair has a scalar")
        ds = response.stiffness * dh + response.shift + response.lever * scalar
        u, v, m = self.u, self.v, self.live
        du = np.where(m, scalar * self._inverse - ds, 0.0)
        dv = np.where(m, scalar * self._inverse + ds, 0.0)
        da = np.where(m, (0.5 * tau - self.a * du) / u - self.a, 0.0)
        db = np.where(m, (0.5 * tau - self.b * dv) / v - self.b, 0.0)
        length = min(
            longest_step(self.a[m], da[m]),
            longest_step(self.b[m], db[m]),
            longest_step(u[m], du[m]),
            longest_step(v[m], dv[m]),
        )
        return replace(self, a=da, b=db, s=ds, u=du, v=dv), length

    def moved(self, direction: PairModel, length: float) -> Simplex:
        """Return the model after a step."""
        if not isinstance(direction, Simplex):
            raise TypeError("the direction belongs to another criterion")
        return replace(
            self,
            a=self.a + length * direction.a,
            b=self.b + length * direction.b,
            s=self.s + length * direction.s,
            u=self.u + length * direction.u,
            v=self.v + length * direction.v,
        )
