"""How a criterion ties ``off(H)`` to the residual correlations, as complementarity conditions.

At the optimum the residual correlations ``S`` are a subgradient of the conjugate at ``off(H)``. For
the criteria that are not smooth this is a set of complementarity conditions, relaxed by a parameter
τ on the central path. A model holds its own variables as symmetric matrices, one entry per pair;
entries of pairs that do not count are kept at one and masked out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from skcoral._arrays import inner, largest_ratio, library

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


class PairModel(Protocol):
    """What the interior-point method asks of a criterion."""

    @property
    def count(self) -> int:
        """Number of complementarity products."""

    def residual(self, H: Any) -> Any:
        """The current S."""

    def products(self, direction: Any = None, length: float = 0.0) -> float:
        """Sum of all complementarity products, here or after a step."""

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """Linearise S in H on the way to τ."""

    def direction(self, H: Any, V: Any, scalar: float, tau: float, corrector: Corrector) -> Any:
        """Direction of the model's own variables that goes with ``dH = V``."""

    def longest(self, direction: Any) -> float:
        """Longest step that keeps the variables positive."""

    def correct(self, direction: Any, share: float) -> Corrector:
        """A share of the second-order terms of the products, for the corrector step."""

    def moved(self, direction: Any, length: float) -> PairModel:
        """Return the model after a step."""

    def restricted(self, members: Any) -> PairModel:
        """Return the model of some of the variables."""


@dataclass(frozen=True)
class Quadratic:
    """Squares: ``S = stiffness ∘ H``. Stiffness zero asks for S = 0 at whatever cost."""

    stiffness: Any
    count = 0

    def residual(self, H: Any) -> Any:
        """``stiffness ∘ H``."""
        return self.stiffness * H

    def products(self, direction: Any = None, length: float = 0.0) -> float:
        """There are none."""
        return 0.0

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """S is linear in H."""
        return Response(self.stiffness, self.stiffness * H)

    def direction(self, H: Any, V: Any, scalar: float, tau: float, corrector: Corrector) -> Any:
        """There are no variables."""

    def longest(self, direction: Any) -> float:
        """No variable limits the step."""
        return float("inf")

    def correct(self, direction: Any, share: float) -> Corrector:
        """There are no products."""
        return None

    def moved(self, direction: Any, length: float) -> Quadratic:
        """Nothing moves."""
        return self

    def restricted(self, members: Any) -> Quadratic:
        """Return the model of some of the variables."""
        return Quadratic(members(self.stiffness))


@dataclass(frozen=True)
class Box:
    """Absolute criterion: ``|H_ij| ≤ ω_ij / 2``, ``S = s⁺ - s⁻``.

    With slacks ``u = ω/2 - H`` and ``v = ω/2 + H``, kept as variables because they become far
    smaller than what they are the difference of; ``s⁺ u = τ/2`` and ``s⁻ v = τ/2``.
    """

    live: Any
    plus: Any
    minus: Any
    u: Any
    v: Any

    @classmethod
    def start(cls, omega: Any, live: Any, S: Any, mu: float) -> Box:
        """Start from H = 0 and the residual correlations ``S``."""
        weight = omega + (1.0 - live)
        size, level = abs(S), mu / weight
        half = 0.5 * weight
        return cls(live, level + 0.5 * (size + S), level + 0.5 * (size - S), half, 1.0 * half)

    @property
    def count(self) -> int:
        """Two products for each pair, counted from both sides of the diagonal, of size τ/2."""
        return int(library(self.live).sum(self.live))

    def residual(self, H: Any) -> Any:
        """``s⁺ - s⁻``."""
        return (self.plus - self.minus) * self.live

    def products(self, direction: Any = None, length: float = 0.0) -> float:
        """``Σ s⁺u + s⁻v``."""
        at = self if direction is None else self.moved(direction, length)
        return inner(at.plus * at.live, at.u) + inner(at.minus * at.live, at.v)

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """Linearise S in H."""
        first, second = (0.0, 0.0) if corrector is None else corrector
        half = 0.5 * tau
        stiffness = (self.plus / self.u + self.minus / self.v) * self.live
        target = ((half - first) / self.u - (half - second) / self.v) * self.live
        return Response(stiffness, target)

    def direction(self, H: Any, V: Any, scalar: float, tau: float, corrector: Corrector) -> Box:
        """Direction of s⁺, s⁻ and their slacks."""
        first, second = (0.0, 0.0) if corrector is None else corrector
        half = 0.5 * tau
        plus = ((half - first + self.plus * V) / self.u - self.plus) * self.live
        minus = ((half - second - self.minus * V) / self.v - self.minus) * self.live
        step = V * self.live
        return Box(self.live, plus, minus, -step, step)

    def longest(self, direction: Box) -> float:
        """Longest step that keeps all four positive."""
        names = ("plus", "minus", "u", "v")
        return _longest([(getattr(self, n), getattr(direction, n)) for n in names])

    def correct(self, direction: Box, share: float) -> Corrector:
        """A share of ``ds⁺ du`` and ``ds⁻ dv``."""
        return share * direction.plus * direction.u, share * direction.minus * direction.v

    def moved(self, direction: Box, length: float) -> Box:
        """Return the model after a step."""
        return Box(
            self.live,
            self.plus + length * direction.plus,
            self.minus + length * direction.minus,
            self.u + length * direction.u,
            self.v + length * direction.v,
        )

    def restricted(self, members: Any) -> Box:
        """Return the model of some of the variables."""
        return Box(*map(members, (self.live, self.plus, self.minus, self.u, self.v)))


@dataclass(frozen=True)
class Bounded:
    """``|S_ij| ≤ δ c_ij``: worst pair with δ free, or squares within given bounds with δ = 1.

    ``H = a - b + κ S`` with ``a, b ≥ 0``, slacks ``u = δ c - S`` and ``v = δ c + S``, kept as
    variables like those of :class:`Box`, and ``a u = τ/2``, ``b v = τ/2``. The worst pair has
    ``κ = 0`` and ``Σ_{i≠j} c (a + b) = 1``. ``live`` marks the pairs, ``bound`` those with a bound.
    Slacks start no smaller than ``_LEAST``: ``wide`` is by how much u and v are still too large,
    which falls faster than the products do.
    """

    live: Any
    bound: Any
    c: Any
    a: Any
    b: Any
    s: Any
    u: Any
    v: Any
    kappa: float
    wide: tuple[Any, Any] = (0.0, 0.0)

    @classmethod
    def worst(cls, omega: Any, live: Any, S: Any) -> Bounded:
        """Worst pair: start from H = 0, the residual correlations ``S`` and twice their level."""
        c = live / (omega + (1.0 - live))
        level = 2.0 * float(library(S).max(abs(omega * S))) + 1e-3
        even = omega / (2.0 * float(library(live).sum(live))) + (1.0 - live)
        s = S * live
        u, v = level * c - s + (1.0 - live), level * c + s + (1.0 - live)
        return cls(live, live, c, even, 1.0 * even, s, u, v, 0.0)

    @classmethod
    def squares(
        cls, bounds: Any, live: Any, bound: Any, S: Any, mu: float, share: float = 0.9
    ) -> Bounded:
        """Squares within ``bounds`` where ``bound`` is one: start from ``S``, moved inside."""
        xp = library(S)
        c = bounds * bound
        inside = xp.clip(S, -share * c, share * c)
        s = inside * bound + S * (1.0 - bound)
        exact = c - inside * bound + (1.0 - bound), c + inside * bound + (1.0 - bound)
        u, v = (xp.clip(slack, _LEAST, None) for slack in exact)
        wide = (u - exact[0], v - exact[1])
        return cls(live, bound, c, 0.5 * mu / u, 0.5 * mu / v, s, u, v, 1.0, wide)

    @property
    def count(self) -> int:
        """Two products for each pair, counted from both sides of the diagonal, of size τ/2."""
        return int(library(self.bound).sum(self.bound))

    def residual(self, H: Any) -> Any:
        """The current S."""
        return self.s

    def products(self, direction: Any = None, length: float = 0.0) -> float:
        """``Σ a u + b v``."""
        at = self if direction is None else self.moved(direction, length)
        return inner(at.a * at.bound, at.u) + inner(at.b * at.bound, at.v)

    def respond(self, H: Any, tau: float, corrector: Corrector) -> Response:
        """Linearise S and δ in H."""
        return self._linearised(H, tau, corrector)[0]

    def _linearised(
        self, H: Any, tau: float, corrector: Corrector
    ) -> tuple[Response, Any, Any, Any, Any]:
        first, second = (0.0, 0.0) if corrector is None else corrector
        m = self.bound
        new_a, new_b = (0.5 * tau - first) / self.u * m, (0.5 * tau - second) / self.v * m
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

    def longest(self, direction: Bounded) -> float:
        """Longest step that keeps a, b and the slacks positive."""
        names = ("a", "b", "u", "v")
        return _longest([(getattr(self, n), getattr(direction, n)) for n in names])

    def correct(self, direction: Bounded, share: float) -> Corrector:
        """A share of ``da du`` and ``db dv``."""
        return share * direction.a * direction.u, share * direction.b * direction.v

    def moved(self, direction: Bounded, length: float) -> Bounded:
        """Return the model after a step."""
        names = ("a", "b", "s", "u", "v")
        after = {n: getattr(self, n) + length * getattr(direction, n) for n in names}
        left = tuple((1.0 - length) * excess for excess in self.wide)
        return replace(self, **after, wide=left)

    def restricted(self, members: Any) -> Bounded:
        """Return the model of some of the variables, at the end of a path."""
        names = ("live", "bound", "c", "a", "b", "s", "u", "v")
        return replace(self, **{n: members(getattr(self, n)) for n in names}, wide=(0.0, 0.0))


def _longest(pairs: list[tuple[Any, Any]]) -> float:
    ratio = max(largest_ratio(-dx, x) for x, dx in pairs)
    return 1.0 / ratio if ratio > 0 else float("inf")
