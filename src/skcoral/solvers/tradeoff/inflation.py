"""The highest common floor at which no variance inflation factor exceeds a limit.

With φ of :mod:`~skcoral.solvers.tradeoff.inflation_equations`, the best common fidelity of outputs
with correlation matrix G, the problem is

    max over G of min over λ of  φ(λ, G)   subject to   1/(G⁻¹)_jj ≥ 1/limit,   G_jj = 1,

concave in G and convex in λ. An interior-point method follows the central path, on which
``λ_j z_j = κ_j t_j = μ``, with ``z_j = f_j - γ`` the leads over the common floor γ and ``t_j`` the
slack of the limits. Stationarity,
``off(H + G⁻¹ Diag(σ) G⁻¹) = 0`` with ``σ_j = 2 κ_j / (G⁻¹)_jj²``, is what the bound of
:mod:`skcoral.bounds.vif` needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from skcoral.bounds.vif import proved_floor
from skcoral.core import criteria
from skcoral.core.arrays import Array, column_dots, row_products
from skcoral.core.linalg import inflation_factors
from skcoral.core.problem import Settings
from skcoral.core.solution import Solution, VifLimit
from skcoral.core.tolerances import LIMIT_GAP
from skcoral.exceptions import InvalidArgumentError
from skcoral.solvers.exact import threshold_solution
from skcoral.solvers.tradeoff.binding import correlation_of
from skcoral.solvers.tradeoff.frontier import Path
from skcoral.solvers.tradeoff.inflation_equations import Equations, Point, off_diagonal, start

# Gap to stop at: a hundredth of what makes an answer optimal. At ten times this, a few answers next
# to a fidelity of one keep a gap of nearly what is allowed, for a tenth fewer steps; at a
# thirtieth, rounding spoils the last step of a few.
_AIM = 0.01 * LIMIT_GAP
_MAX_STEPS = 100  # ten are taken on average
# Sum of the products λ_j z_j at the start; a tenth of it takes a tenth more steps at 60 variables.
_FIRST = 0.3
_CENTRING = 0.05  # the share of μ that a step aims at; ten times this doubles the number of steps
# μ stays above this share of what is left of the equations, per variable: without it, some problems
# of 150 variables stay open. Ten times this takes a tenth more steps.
_AHEAD = 0.002
# Share of what is left of the equations that a solution may leave; ten times this leaves gaps open
# where R is nearly singular.
_ACCURACY = 0.01
_WORSE = 3.0  # factor by which a step may increase what is left of the equations and the products
_INSIDE = 0.95  # part of the longest step that keeps all multipliers positive
_SHORTEST = 1e-6  # step, as a part of Newton's


def solve_vif(R: Any, limit: float, settings: Settings) -> Solution:
    """Find the highest common floor whose largest VIF is at most ``limit``.

    The criterion says what the residual in the result is; every pair counts. The callback is called
    as ``callback(step, weighted, weakest)`` with two fidelities of each step, which meet at the
    answer.

    The floor is in ``rho_min`` of the solution. Its residual need not be the least: bound and
    slopes are those of the least squared residual at this floor. The goal holds the largest VIF
    reached, and a bound on the common floor of every transformation within the limit that the dual
    point proves.
    """
    if settings.pair_weights is not None:
        raise InvalidArgumentError(
            "pair_weights cannot be combined with a limit on the VIF: every pair counts in it."
        )
    path = Path(R, replace(settings, callback=None))
    if limit <= 1.0:
        exact = threshold_solution(R, path.threshold, settings)
        return _limited(exact, limit, min(path.threshold.upper, 1.0))
    if float(inflation_factors(path.R).max()) <= limit:
        return _limited(_at_floor(path, np.eye(len(path.R)), settings), limit, 1.0)
    best = highest_floor(path.R, limit, settings.callback)
    T = _transformation(path.R, best.at.inside().outputs)
    solution = _at_floor(path, T, settings)
    # the multipliers; see bounds/vif.py
    Y = best.at.X * np.sqrt(best.sigma)
    arrays = {
        "vif_weights": best.at.lam,
        "vif_H": 0.5 * (best.at.H + best.at.H.T),
        "vif_roots": np.diag(Y) / limit,
        "vif_vectors": Y,
    }
    upper = proved_floor(path.R, T, arrays, limit)
    if upper < 1.0:
        dual = solution.certificate
        solution = replace(solution, certificate=replace(dual, arrays={**dual.arrays, **arrays}))
    return _limited(solution, limit, max(min(upper, 1.0), float(solution.rho_min[0])))


def _at_floor(path: Path, T: Array, settings: Settings) -> Solution:
    """Compare T with the least squared residual at the floor that it keeps."""
    fidelity = column_dots(path.R, T)
    floor = min(float(fidelity.min()), 1.0)
    solved = path.solve(floor).solved
    G = correlation_of(path.R, T)
    objective = criteria.value(path.settings.criterion, G)
    solved = replace(solved, T=T, G=G, fidelity=fidelity, objective=objective)
    return solved.solution(np.full(len(T), floor), settings)


def _transformation(R: Array, outputs: Array) -> Array:
    """The transformation to these outputs."""
    L: Array = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    T = np.asarray(solve_triangular(L, outputs, lower=True, trans="T"))
    # corrected for the rounding of L⁻ᵀW, which shows where variables are nearly collinear
    actual, wanted = (np.linalg.cholesky(G) for G in (correlation_of(R, T), outputs.T @ outputs))
    return np.asarray(T @ solve_triangular(actual, wanted.T, lower=True, trans="T"))


def _limited(solution: Solution, limit: float, upper: float) -> Solution:
    largest = float(inflation_factors(solution.correlation).max())
    return replace(solution, goal=VifLimit(limit, largest, upper))


@dataclass(frozen=True)
class Iterate:
    """A point with the multipliers κ of the limits, their slack t, and the leads z."""

    at: Point
    kappa: Array
    t: Array
    z: Array

    @property
    def sigma(self) -> Array:
        """The multipliers of ``(G⁻¹)_jj`` itself."""
        return 2.0 * self.kappa / self.at.vif**2

    @property
    def products(self) -> float:
        """``Σ κ_j t_j + Σ λ_j z_j``: the gap on the path."""
        return float(self.kappa @ self.t + self.z @ self.at.lam)

    @property
    def mu(self) -> float:
        """μ, as an average over all products."""
        return 0.5 * self.products / self.at.p

    def left(self) -> float:
        """What is left of the equations, in units of the common floor, at these multipliers.

        A floor or a limit has at least a mean price, even where it has no multiplier yet.
        """
        at = self.at
        stationary = off_diagonal(0.5 * at.H + 0.5 * (at.X * self.sigma) @ at.X)
        # No entry of G exceeds the root of the explained share.
        left = np.sqrt(at.share) * np.abs(stationary).sum()
        floor = at.value - at.lam @ self.z
        leads, slacks = np.abs(at.fidelity - self.z - floor), np.abs(at.slack - self.t)
        left += (at.lam + at.lam.mean()) @ leads
        return float(left + (self.kappa + self.kappa.mean()) @ slacks)

    @cached_property
    def gap(self) -> float:
        """What the multipliers prove, less the weakest fidelity of the point within the limit."""
        at = self.at
        Y = at.X * np.sqrt(self.sigma)
        H = off_diagonal(at.H)
        # The completed square of the bound is at its minimum: tr(DRDH⁻¹) = φ = ⟨G, H⟩.
        spent = (
            at.value + np.trace(at.H) + np.sum(Y**2) - np.sum(np.diag(Y) ** 2) / (1.0 + at.excess)
        )
        upper = 0.5 * float(spent + np.abs(H + off_diagonal(Y @ Y.T)).sum())
        return min(upper, 1.0) - float(at.inside().fidelity.min())


def highest_floor(
    R: Array, limit: float, callback: Callable[[int, float, float], object] | None = None
) -> Iterate:
    """Follow the central path; ``limit`` exceeds one, and R has a VIF above it.

    The callback is called as ``callback(step, φ, weakest fidelity)``; the two meet at the end.
    """
    at = start(R, limit)
    mu = _FIRST / at.p
    now = Iterate(at, mu / at.slack, at.slack, mu / at.lam)
    for n_iter in range(_MAX_STEPS):
        if callback is not None:
            callback(n_iter, now.at.value, float(now.at.fidelity.min()))
        following = None if now.products < _AIM and now.gap <= _AIM else _advance(now)
        if following is None:
            break
        now = following
    return now


def _advance(now: Iterate) -> Iterate | None:
    """One step of Newton's method towards a smaller μ; None where rounding stops it."""
    at, left = now.at, now.left()
    centred = max(_CENTRING * now.mu, min(0.5 * now.mu, _AHEAD * left / at.p))
    target = max(centred, 0.1 * _AIM / at.p)  # a smaller gap than the last one is of no use
    missing = at.slack - now.t
    # κ where G stays as it is; the change of the slack with G is part of the equations.
    kappa = (target - now.kappa * missing) / now.t
    b = off_diagonal(0.5 * at.H + (at.X * (kappa / at.vif**2)) @ at.X)
    try:
        system = Equations(at, now.sigma, now.t, now.z, _ACCURACY * max(left, _AIM))
        E, d, beyond = system.solve(b, target - at.lam * at.fidelity)
    except np.linalg.LinAlgError:
        return None
    t = row_products(at.X @ E, at.X) / at.vif**2 + missing
    kappa = (target - now.kappa * (now.t + t)) / now.t + beyond
    z = (target - at.lam * now.z) / at.lam - now.z * d
    ratios = (d, kappa / now.kappa, t / now.t, z / now.z)
    most = max(-float(ratio.min()) for ratio in ratios)
    length = 1.0 if most <= 1.0 else _INSIDE / most
    while length > _SHORTEST:
        try:
            lam = at.lam * (1.0 + length * d)
            moved = Iterate(
                at.at(at.G + length * E, lam / lam.sum()),
                now.kappa + length * kappa,
                now.t + length * t,
                now.z + length * z,
            )
            if moved.left() + moved.products <= _WORSE * (left + now.products):
                return moved
        except np.linalg.LinAlgError:  # G would not be positive definite
            pass
        length *= 0.5
    return None
