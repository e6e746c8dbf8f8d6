"""The highest common floor within a limit on the VIF, by an interior-point method.

With φ of :mod:`~skcoral.solvers.tradeoff.inflation_point` the problem is

    max over G of min over λ of  φ(λ, G)   subject to   1/(G⁻¹)_jj ≥ 1/limit,   G_jj = 1,

concave in G and convex in λ. On the central path ``λ_j z_j = μ`` and ``κ_j t_j = w μ``, with
``z_j = f_j - γ`` the leads over the common floor γ and ``t_j`` the slack of the limits; w is fixed.
Stationarity, ``off(H + G⁻¹ Diag(σ) G⁻¹) = 0`` with ``σ_j = 2 κ_j / (G⁻¹)_jj²``, is what the bound
of :mod:`skcoral.bounds.vif` needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skcoral.core.arrays import Array, row_products
from skcoral.core.tolerances import LIMIT_GAP
from skcoral.solvers.tradeoff.inflation_equations import Equations, Multipliers
from skcoral.solvers.tradeoff.inflation_point import Point, off_diagonal, start

# Gap to stop at: a hundredth of what makes an answer optimal. At ten times this, a few answers next
# to a fidelity of one keep a gap of nearly what is allowed, for a tenth fewer steps.
_AIM = 0.01 * LIMIT_GAP
_PATIENCE = 3  # steps in a row that may fail to halve the gap: rounding is what is left then
_MAX_STEPS = 100  # ten are taken on average
_FIRST = (
    0.3  # the sum of the products λ_j z_j at the start; ten times this takes a twelfth more steps
)
_CENTRING = 0.05  # the share of μ that a step aims at; ten times this doubles the number of steps
# μ stays above this share of what is left of the equations, per variable: without it, some problems
# of 150 variables keep gaps of 1e-5. Ten times this takes a tenth more steps.
_AHEAD = 0.002
# Share of what is left of the equations that a solution may leave; ten times this leaves gaps open
# where R is nearly singular.
_ACCURACY = 0.01
_WORSE = 3.0  # factor by which a step may increase what is left of the equations and the products
_INSIDE = 0.95  # part of the longest step that keeps all multipliers positive
_SHORTEST = 1e-6  # step, as a part of Newton's


@dataclass(frozen=True)
class Limited:
    """A point within the limit, with multipliers σ; the bound is not proved yet."""

    point: Point
    proof: Point
    sigma: Array
    upper: float

    @property
    def gap(self) -> float:
        """The bound less the weakest fidelity."""
        return self.upper - float(self.point.fidelity.min())


@dataclass(frozen=True)
class _Iterate:
    """A point with its multipliers; ``ratio`` is w."""

    at: Point
    duals: Multipliers
    ratio: float

    @property
    def products(self) -> float:
        """``Σ κ_j t_j + Σ λ_j z_j``: the gap on the path."""
        return float(self.duals.kappa @ self.duals.t + self.duals.z @ self.at.lam)

    @property
    def mu(self) -> float:
        """μ, as an average over all products."""
        return self.products / ((1.0 + self.ratio) * self.at.p)

    def left(self) -> float:
        """What is left of the equations, in units of the common floor, at these multipliers.

        A floor or a limit has at least a mean price, even where it has no multiplier yet: without
        it μ falls too fast where variables are nearly dependent.
        """
        at, duals = self.at, self.duals
        stationary = off_diagonal(0.5 * at.H + 0.5 * (at.X * duals.sigma(at)) @ at.X)
        # No entry of G exceeds the root of the explained share.
        left = np.sqrt(at.share) * np.abs(stationary).sum()
        floor = at.value - at.lam @ duals.z
        leads, slacks = np.abs(at.fidelity - duals.z - floor), np.abs(at.slack - duals.t)
        left += (at.lam + at.lam.mean()) @ leads
        return float(left + (duals.kappa + duals.kappa.mean()) @ slacks)

    def moved(self, E: Array, d: Array, duals: Multipliers, length: float) -> _Iterate:
        """The iterate a part of the step (E, d, duals) further; d is relative to λ."""
        lam, now = self.at.lam * (1.0 + length * d), self.duals
        moved = Multipliers(
            now.kappa + length * duals.kappa, now.t + length * duals.t, now.z + length * duals.z
        )
        return replace(self, at=self.at.at(self.at.G + length * E, lam / lam.sum()), duals=moved)

    def judged(self) -> Limited:
        """The point, brought within the limit, and what the multipliers prove."""
        at, sigma = self.at, self.duals.sigma(self.at)
        Y = at.X * np.sqrt(sigma)
        H = off_diagonal(at.H)
        # The completed square of the bound is at its minimum: tr(DRDH⁻¹) = φ = ⟨G, H⟩.
        spent = (
            at.value + np.trace(at.H) + np.sum(Y**2) - np.sum(np.diag(Y) ** 2) / (1.0 + at.excess)
        )
        upper = 0.5 * float(spent + np.abs(H + off_diagonal(Y @ Y.T)).sum())
        return Limited(at.inside(), at, sigma, min(upper, 1.0))


def highest_floor(
    R: Array, limit: float, callback: Callable[[int, float, float], object] | None = None
) -> Limited:
    """Follow the central path; ``limit`` exceeds one, and R has a VIF above it.

    The callback is called as ``callback(step, φ, weakest fidelity)``; the two meet at the end.
    """
    at = start(R, limit)
    p = at.p
    # Near a limit of one, all that G can gain is of the order of the root of what is left of it.
    rows = np.linalg.norm(off_diagonal(at.H), axis=1).max()
    ratio = float(np.clip(0.25 * np.sqrt(at.excess) * rows * p, 1e-10, 1.0))
    mu = _FIRST / p
    duals = Multipliers(ratio * mu / at.slack, at.slack, mu / at.lam)
    now, best, idle = _Iterate(at, duals, ratio), None, 0
    for n_iter in range(_MAX_STEPS):
        at, weakest = now.at, float(now.at.fidelity.min())
        if callback is not None:
            callback(n_iter, at.value, weakest)
        if now.products < _AIM:
            judged = now.judged()
            better = best is None or judged.gap < 0.5 * best.gap
            idle = 0 if better else idle + 1
            best = judged if best is None or judged.gap < best.gap else best
            if best.gap <= _AIM or idle == _PATIENCE:
                break
        following = _advance(now)
        if following is None:
            break
        now = following
    return now.judged() if best is None else best


def _advance(now: _Iterate) -> _Iterate | None:
    """One step of Newton's method towards a smaller μ; None where rounding stops it."""
    at, duals, w, left = now.at, now.duals, now.ratio, now.left()
    centred = max(_CENTRING * now.mu, min(0.5 * now.mu, _AHEAD * left / at.p))
    target = max(centred, 0.1 * _AIM / at.p)  # a smaller gap than the last one is of no use
    missing = at.slack - duals.t
    # κ where G stays as it is; the change of the slack with G is part of the equations.
    kappa = (w * target - duals.kappa * missing) / duals.t
    b = off_diagonal(0.5 * at.H + (at.X * (kappa / at.vif**2)) @ at.X)
    try:
        system = Equations(at, duals, _ACCURACY * max(left, _AIM))
        E, d, beyond = system.solve(b, target - at.lam * at.fidelity)
    except np.linalg.LinAlgError:
        return None
    t = row_products(at.X @ E, at.X) / at.vif**2 + missing
    kappa = (w * target - duals.kappa * (duals.t + t)) / duals.t + beyond
    z = (target - at.lam * duals.z) / at.lam - duals.z * d
    ratios = (d, kappa / duals.kappa, t / duals.t, z / duals.z)
    most = max(-float(ratio.min()) for ratio in ratios)
    length = 1.0 if most <= 1.0 else _INSIDE / most
    while length > _SHORTEST:
        try:
            moved = now.moved(E, d, Multipliers(kappa, t, z), length)
            if moved.left() + moved.products <= _WORSE * (left + now.products):
                return moved
        except np.linalg.LinAlgError:  # G would not be positive definite
            pass
        length *= 0.5
    return None
