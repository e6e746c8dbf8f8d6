"""A primal-dual interior-point method for the criteria that are not smooth.

Newton's method on the optimality conditions of the dual, all relaxed by the same τ:

    G + τ H⁻¹ - I = S           unit variances, residual correlations as the criterion wants
    f_j = ρ_j + z_j/2,  λ_j z_j = τ
    the pair model's conditions between S and off(H)

with ``T = D_λ H⁻¹``. Outputs with a floor of one are their sources: the limit of λ → ∞, in which
their rows of ``H⁻¹`` vanish and ``T = [-H_Fc; D_λ] H_cc⁻¹`` for the others. Pairs that do not count
have ``H_ij = 0`` and no equation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.tradeoff.dual import DualPoint, dual_point, inverse
from skcoral.tradeoff.iterative import IterativeSystem
from skcoral.tradeoff.linear import NewtonSystem, Unknowns
from skcoral.tradeoff.pairs import PairModel, Response, longest_step

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Report = Callable[[DualPoint], object]

_NOISE = 1e-12  # equations met this well are met
_EXACT = 1e-14  # equations met this well cannot be met better
_STALL = 1e-7  # shortest useful step
_FAR = 0.1  # equations met no better than this, and hardly better than before, come first
_SHORT = 0.03  # steps shorter than this lead nowhere ...
_PATIENCE = 4  # ... if so many of them come in a row: there is no feasible point
_SMALL = 24  # up to here it is quicker to form the Newton equations than to iterate on them
_LARGE = 90  # up to here they can be formed if the iteration does not end
_INEXACT = 1e-3  # what an iteration may leave of all equations


@dataclass(frozen=True)
class State:
    """An interior point: the dual point, the slacks of λ, and the variables of the pair model."""

    point: DualPoint
    z: Array
    model: PairModel


class Problem:
    """Floors in (0, 1], and the pairs whose ``H_ij`` is unknown."""

    def __init__(self, R: Array, floors: Array, rows: Index, cols: Index) -> None:
        self.R = R
        self.floors = floors
        self.root = sla.cholesky(R, lower=True, check_finite=False)
        self.free = floors < 1.0
        self.unknowns = Unknowns(rows, cols, np.flatnonzero(self.free), len(R))
        self.identity = np.eye(len(R))

    def start(self, model: PairModel, scale: float) -> State:
        """Start from H and λ diagonal, where ``T = I``: well inside whatever R and the weights."""
        angle = np.sqrt(np.maximum(1.0 - self.floors**2, 1e-16))
        lam = np.where(self.free, scale * np.maximum(1.0, 0.3 / angle), 0.0)
        point = self.point(lam, np.diag(lam))
        if point is None:
            raise AssertionError("the start is positive definite")
        return State(point, 2.0 * (1.0 - self.floors), model)

    def restricted(self, state: State, members: Index) -> tuple[Problem, State] | None:
        """Return the problem and the point of some of the variables; None if H is not definite."""
        place = np.full(len(self.R), -1)
        place[members] = np.arange(len(members))
        rows, cols = place[self.unknowns.rows], place[self.unknowns.cols]
        keep = (rows >= 0) & (cols >= 0)
        block = np.ix_(members, members)
        smaller = Problem(self.R[block], self.floors[members], rows[keep], cols[keep])
        point = smaller.point(state.point.lam[members], state.point.H[block])
        if point is None:
            return None
        return smaller, State(point, state.z[members], state.model.restricted(keep))

    def point(self, lam: Array, H: Array) -> DualPoint | None:
        """The dual point, or None where H is not positive definite."""
        if self.free.all():
            inverted = inverse(H)
            return None if inverted is None else dual_point(self.R, self.root, lam, H, inverted[0])
        c, fixed = self.unknowns.own, np.flatnonzero(~self.free)
        inverted = inverse(H[np.ix_(c, c)])
        if inverted is None:
            return None
        B, T = np.zeros_like(H), np.zeros_like(H)
        B[np.ix_(c, c)] = inverted[0]
        T[fixed, fixed] = 1.0
        T[np.ix_(c, c)] = lam[c][:, None] * inverted[0]
        T[np.ix_(fixed, c)] = -H[np.ix_(fixed, c)] @ inverted[0]
        W = self.root.T @ T
        return DualPoint(lam=lam, H=H, B=B, T=T, C=self.root @ W, G=W.T @ W)

    def stationarity(self, state: State, tau: float) -> Array:
        """What is left of the first equation, where it counts."""
        S = self.unknowns.matrix(state.model.residual_correlation)
        return np.asarray(state.point.G + tau * state.point.B - self.identity - S)

    def size(self, state: State, tau: float) -> float:
        """Norm of all equations relaxed by τ."""
        point = state.point
        h = point.H[self.unknowns.rows, self.unknowns.cols]
        fidelity = (point.fidelity - self.floors - 0.5 * state.z)[self.free]
        products = (point.lam * state.z - tau)[self.free]
        own = state.model.equations(h, tau)
        total = self.unknowns.norm(self.stationarity(state, tau)) ** 2
        return float(np.sqrt(total + fidelity @ fidelity + products @ products + own @ own))

    def mean_product(self, state: State) -> float:
        """Mean of all complementarity products, which τ is to become."""
        products = state.model.products()
        total = float((state.point.lam * state.z)[self.free].sum() + 2.0 * products.sum())
        return total / max(int(self.free.sum()) + len(products), 1)


@dataclass(frozen=True)
class Progress:
    """Where the method stopped, and after how many steps; ``done``: at its goal."""

    state: State
    n_iter: int
    done: bool


def advance(
    problem: Problem,
    state: State,
    *,
    goal: float,
    max_iter: int,
    rough: bool = False,
    report: Report | None = None,
) -> Progress:
    """Follow the path until complementarity falls to ``goal``, or no step is left.

    Unless ``rough``, the other equations are then solved as well as rounding allows.
    """
    if not len(problem.unknowns.rows) and not len(problem.unknowns.own):
        return Progress(state, 0, done=True)
    centring = 0.3
    steps = 0
    mu = problem.mean_product(state)
    previous = np.inf
    short = 0
    last = np.inf
    while steps < max_iter and short < _PATIENCE and not (rough and mu <= goal):
        # Complementarity must not run ahead of the other equations, which would not catch up.
        lag = problem.size(state, mu)
        if lag > _FAR and lag > 0.5 * last:
            centring = 1.0
        last = lag
        tau = max(centring * mu, 0.3 * goal)
        before = problem.size(state, tau)
        if mu <= goal and (
            before <= _EXACT or before > (0.5 if before <= 1e-9 else 0.99) * previous
        ):
            break
        previous = before if mu <= goal else np.inf
        # With the old τ in the derivative of τ H⁻¹, a step takes the vanishing part of H all the
        # way down; Newton's own takes it less far, but is sure to descend.
        moved = _step(problem, state, tau, mu, before)
        if moved is None and tau < 0.5 * mu:
            moved = _step(problem, state, 0.5 * mu, mu, problem.size(state, 0.5 * mu))
        if moved is None:
            moved = _step(problem, state, tau, tau, before)
        if moved is None:
            break
        state, length = moved
        steps += 1
        short = short + 1 if length < _SHORT else 0
        mu = problem.mean_product(state)
        centring = 0.5 if length < 0.3 else 0.2 if length < 0.8 else 0.05
        if report is not None:
            report(state.point)
    return Progress(state, steps, mu <= max(goal, _NOISE))


def _step(
    problem: Problem, state: State, tau: float, mu: float, before: float
) -> tuple[State, float] | None:
    """Aim at τ, with μ in the derivative of the barrier on H; new state, and length of the step."""
    point, z, unknowns = state.point, state.z, problem.unknowns
    lam, H, free = point.lam, point.H, problem.free
    h = H[unknowns.rows, unknowns.cols]
    response = state.model.respond(h, tau)
    # M dλ = (C V B)_jj - (f - ρ - z/2) + dz/2 with dz eliminated by λ z = τ.
    safe = np.where(free, lam, 1.0)
    missing = np.where(free, problem.floors + 0.5 * tau / safe - point.fidelity, 0.0)
    barrier = np.where(free, 0.5 * z / safe, np.inf)
    try:
        right = problem.stationarity(state, tau) - unknowns.matrix(response.shift)
        V, d_lam, scalar = _solve(problem, point, barrier, mu, response, right, missing, before)
    except sla.LinAlgError:
        return None
    d_z = np.where(free, (tau - z * d_lam) / safe - z, 0.0)
    direction, length = state.model.step(h, V[unknowns.rows, unknowns.cols], scalar, tau)
    length = min(length, longest_step(lam, d_lam), longest_step(z, d_z))
    while length > _STALL:
        trial_point = problem.point(lam + length * d_lam, H + length * V)
        if trial_point is not None:
            trial = State(trial_point, z + length * d_z, state.model.moved(direction, length))
            if problem.size(trial, tau) <= max((1 - 1e-4 * length) * before, _NOISE):
                return trial, length
        length *= 0.6
    return None


def _solve(
    problem: Problem,
    point: DualPoint,
    barrier: Array,
    tau: float,
    response: Response,
    right: Array,
    missing: Array,
    before: float,
) -> tuple[Array, Array, float]:
    """Directions of H, of λ and of the scalar; iterated where that is quicker and possible."""
    p, unknowns = len(right), problem.unknowns
    if p > _SMALL:
        iterated = IterativeSystem(problem.R, point, barrier, tau, unknowns, response.stiffness)
        answer = iterated.solve(
            right,
            missing,
            response,
            accuracy=max(_INEXACT * before, 0.1 * _NOISE),
            limit=10 * p if p <= _LARGE else 100 * p,
        )
        if answer is not None:
            V, scalar = answer
            return V, iterated.multipliers(V, missing), scalar
        if p > _LARGE:
            raise sla.LinAlgError("the iteration on the Newton equations does not end")
    formed = NewtonSystem(problem.R, point, barrier, tau, unknowns, response.stiffness)
    V, scalar = formed.solve(right, missing, response)
    return V, formed.multipliers(V, missing), scalar
