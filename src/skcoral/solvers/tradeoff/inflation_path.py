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

from skcoral.core.arrays import Array
from skcoral.core.tolerances import LIMIT_GAP
from skcoral.solvers.tradeoff.inflation_equations import Equations, Multipliers
from skcoral.solvers.tradeoff.inflation_point import Point, off_diagonal, start

_AIM = 0.01 * LIMIT_GAP  # gap to stop at
_ENOUGH, _PATIENCE = 0.1 * LIMIT_GAP, 3  # gap to stop at where so many further steps do not help
_MAX_STEPS = 100
_FIRST = 0.3  # the sum of the products λ_j z_j at the start
_WORSE = 3.0  # factor by which a step may increase what is left of the equations
_AHEAD = 0.002  # μ stays above this share of what is left of the equations, per variable
_SHORTEST = 1e-6  # step, as a part of Newton's
_ACCURACY = 1e-4, 0.1  # share of what is left of the equations that a solution may leave


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

    def left(self, slack_prices: Array, weights: Array) -> float:
        """What is left of the equations, in units of the common floor, at these multipliers.

        A floor or a limit has at least a mean price, even where it has no multiplier yet.
        """
        at, duals = self.at, self.duals
        stationary = off_diagonal(0.5 * at.H + 0.5 * (at.X * duals.sigma(at)) @ at.X)
        # No entry of G exceeds the root of the explained share.
        left = np.sqrt(at.share) * np.abs(stationary).sum()
        leads = np.abs(at.fidelity - duals.z - (at.value - at.lam @ duals.z))
        missing = np.abs(at.slack - duals.t)
        left += weights @ leads + weights.mean() * leads.sum()
        return float(left + slack_prices @ missing + slack_prices.mean() * missing.sum())

    def moved(self, by: _Step, length: float) -> _Iterate:
        """The iterate a part of a step further."""
        lam = self.at.lam * (1.0 + length * by.d)
        at = self.at.at(self.at.G + length * by.E, lam / lam.sum())
        duals = self.duals
        moved = Multipliers(
            duals.kappa + length * by.kappa, duals.t + length * by.t, duals.z + length * by.z
        )
        return replace(self, at=at, duals=moved)

    def judged(self) -> Limited:
        """The point, brought within the limit, with the multipliers that prove most."""
        at, limit = self.at, 1.0 + self.at.excess
        sigma = _fitted(at, self.duals.sigma(at), limit)
        Y = at.X * np.sqrt(sigma)
        H = off_diagonal(at.H)
        # The completed square of the bound is at its minimum: tr(DRDH⁻¹) = φ = ⟨G, H⟩.
        spent = at.value + np.trace(at.H) + np.sum(Y**2) - np.sum(np.diag(Y) ** 2) / limit
        upper = 0.5 * float(spent + np.abs(H + off_diagonal(Y @ Y.T)).sum())
        return Limited(at.inside(), at, sigma, min(upper, 1.0))


@dataclass(frozen=True)
class _Step:
    """A change of everything: G, λ (relative), and the multipliers."""

    E: Array
    d: Array
    kappa: Array
    t: Array
    z: Array

    def longest(self, duals: Multipliers, inside: float = 0.95) -> float:
        """A full step, or what keeps everything positive, of which ``inside`` is taken."""
        ratios = (self.d, self.kappa / duals.kappa, self.t / duals.t, self.z / duals.z)
        most = max(-float(ratio.min()) for ratio in ratios)
        return 1.0 if most <= 1.0 else inside / most


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
    now, best, accuracy, tried = _Iterate(at, duals, ratio), None, _ACCURACY[1], 0
    for n_iter in range(_MAX_STEPS):
        at, weakest = now.at, float(now.at.fidelity.min())
        if callback is not None:
            callback(n_iter, at.value, weakest)
        if now.products < _AIM or 1.0 - weakest < LIMIT_GAP:
            judged, tried = now.judged(), tried + 1
            best = judged if best is None or judged.gap < best.gap else best
            # No fidelity exceeds one; near it λ has hardly any influence, and few digits are left.
            enough = best.upper >= 1.0 or tried > _PATIENCE
            if best.gap <= (_ENOUGH if enough else _AIM):
                break
        following = _advance(now, accuracy)
        if following is None:
            break
        now, reduction = following
        least, most = _ACCURACY
        accuracy = min(2.0 * accuracy, most) if reduction < 0.5 else max(accuracy / 4.0, least)
    return now.judged() if best is None else best


def _advance(now: _Iterate, accuracy: float) -> tuple[_Iterate, float] | None:
    """One step of Newton's method, and the factor that it leaves; None where rounding stops it."""
    at, duals, mu = now.at, now.duals, now.mu
    p, least = at.p, 0.1 * _AIM / at.p
    left = now.left(duals.kappa, at.lam)
    try:
        system = Equations(at, duals, accuracy * (left + max(0.01 * mu * p, 0.1 * _AIM)))
        # Predictor: how far down the path does a step reach?
        step = _newton(now, system, 0.0)
        ahead = step.longest(duals, inside=1.0)
        reach = (duals.kappa + ahead * step.kappa) @ (duals.t + ahead * step.t)
        reach += (duals.z + ahead * step.z) @ (at.lam * (1.0 + ahead * step.d))
        centring = max(float(reach) / now.products, 0.0) ** 3
        # μ does not run ahead of the equations.
        target = max(max(centring, 1e-4) * mu, min(0.5 * mu, _AHEAD * left / p), least)
        step = _newton(now, system, target, step)
    except np.linalg.LinAlgError:
        return None
    trials = 0
    length = step.longest(duals)
    while length > _SHORTEST:
        prices = np.maximum(duals.kappa, duals.kappa + step.kappa)
        total = now.left(prices, at.lam) + now.products
        try:
            moved = now.moved(step, length)
            after = moved.left(prices, at.lam) + moved.products
        except np.linalg.LinAlgError:
            after = np.inf
        if after <= _WORSE * total:
            return moved, after / total
        length, trials = 0.5 * length, trials + 1
        if trials == 3:  # the correction was too large
            step = _newton(now, system, max(target, 0.5 * mu))
            length = step.longest(duals)
    return None


def _newton(
    now: _Iterate, system: Equations, target: float, predicted: _Step | None = None
) -> _Step:
    """Newton's step to μ = ``target``, corrected for the products of a predicted one."""
    at, duals, w = now.at, now.duals, now.ratio
    limits, weights = np.full(at.p, w * target), np.full(at.p, target)
    if predicted is not None:
        most = now.mu
        limits = limits - np.clip(predicted.kappa * predicted.t, -w * most, w * most)
        weights = weights - np.clip(at.lam * predicted.d * predicted.z, -most, most)
    missing = at.slack - duals.t
    kappa = (limits - duals.kappa * missing) / duals.t
    b = off_diagonal(0.5 * at.H + (at.X * (kappa / at.vif**2)) @ at.X)
    near = None if predicted is None else predicted.E
    E, d, beyond = system.solve(b, weights - at.lam * at.fidelity, near)
    t = np.einsum("ij,ij->i", at.X @ E, at.X) / at.vif**2 + missing
    return _Step(
        E,
        d,
        (limits - duals.kappa * (duals.t + t)) / duals.t + beyond,
        t,
        (weights - at.lam * duals.z) / at.lam - duals.z * d,
    )


def _fitted(at: Point, sigma: Array, limit: float) -> Array:
    """The multipliers next to σ at which the bound is least, nearly.

    The least of ``‖off(H + XΣX)‖²`` and of the squared products of slack and change, by normal
    equations.
    """
    X, d = at.X, np.diag(at.X)
    p = len(X)
    squares, others = X**2, off_diagonal(X)
    normal = (X @ X) ** 2 - squares @ squares.T
    rest = np.sum(others**2, axis=0)
    np.fill_diagonal(normal, 2.0 * d**2 * rest + rest**2 - np.sum(others**4, axis=0))
    left = off_diagonal(at.H + (X * sigma) @ X)
    normal[np.diag_indices(p)] += ((limit - d) / p) ** 2 + np.finfo(np.float64).tiny
    scale = 1.0 / np.sqrt(np.diag(normal))
    normal = normal * np.outer(scale, scale) + 1e-13 * np.eye(p)
    change = scale * np.linalg.solve(normal, scale * np.einsum("ij,ij->j", X, left @ X))
    return np.maximum(sigma - change, 0.0)
