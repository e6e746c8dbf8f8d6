"""A primal-dual interior-point method for the criteria that are not smooth.

Newton's method on the optimality conditions of the dual, all relaxed by the same τ:

    G + τ H⁻¹ - I = S           unit variances, residual correlations as the criterion wants
    f_j = ρ_j + z_j/2,  λ_j z_j = τ
    the pair model's conditions between S and off(H)

with ``T = D_λ H⁻¹``. The multiplier of a floor of one is infinite; it is held at a large value, at
which the output is its source to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.results import Criterion
from skcoral.tradeoff.dual import DualPoint, dual_point, inverse
from skcoral.tradeoff.iterative import IterativeSystem
from skcoral.tradeoff.linear import NewtonSystem
from skcoral.tradeoff.pairs import Box, PairModel, Quadratic, Simplex, longest_step

Array = NDArray[np.float64]

_NOISE = 1e-12  # equations met this well are met
_STALL = 1e-7  # shortest useful step
_DENSE = 24  # largest system whose Newton equations are formed
_DENSE_SCALAR = 90  # the same for the worst pair, whose equations are hard to iterate on
_FIXED = 1e7  # the multiplier of a floor of one


@dataclass(frozen=True)
class InteriorSolution:
    """Where the method stopped: the dual point, the slacks of λ, τ, and the steps taken."""

    point: DualPoint
    z: Array
    tau: float
    n_iter: int


@dataclass(frozen=True)
class _State:
    point: DualPoint
    z: Array
    model: PairModel


class _Problem:
    def __init__(self, R: Array, floors: Array) -> None:
        self.R = R
        self.floors = floors
        self.root = sla.cholesky(R, lower=True, check_finite=False)
        self.pairs = np.triu_indices(len(R), 1)
        self.identity = np.eye(len(R))
        self.free = floors < 1.0

    def point(self, lam: Array, H: Array) -> DualPoint | None:
        inverted = inverse(H)
        if inverted is None:
            return None
        return dual_point(self.R, self.root, lam, H, inverted[0])

    def matrix(self, values: Array) -> Array:
        M = np.zeros_like(self.R)
        M[self.pairs] = values
        return M + M.T

    def stationarity(self, state: _State, tau: float) -> Array:
        S = self.matrix(state.model.residual_correlation)
        return np.asarray(state.point.G + tau * state.point.B - self.identity - S)

    def size(self, state: _State, tau: float) -> float:
        """Norm of all equations relaxed by τ."""
        point = state.point
        fidelity = (point.fidelity - self.floors - 0.5 * state.z)[self.free]
        own = state.model.equations(point.H[self.pairs], tau)
        total = np.sum(self.stationarity(state, tau) ** 2) + np.sum(fidelity**2)
        return float(
            np.sqrt(total + np.sum((point.lam * state.z - tau)[self.free] ** 2) + own @ own)
        )

    def mean_product(self, state: _State) -> float:
        products = state.model.products(state.point.H[self.pairs])
        total = float((state.point.lam * state.z)[self.free].sum() + 2.0 * products.sum())
        return total / max(int(self.free.sum()) + len(products), 1)


def solve_interior(
    R: Array,
    floors: Array,
    omega: Array,
    criterion: Criterion,
    *,
    kappa: float,
    goal: float,
    max_iter: int,
    scale: float = 1.0,
    report: Callable[[DualPoint], object] | None = None,
) -> InteriorSolution:
    """Solve for positive floors; ``goal`` is the complementarity at which to stop.

    ``omega`` (largest weight one) may contain zeros; the tie-break ``κ`` then decides those pairs.
    ``scale`` sets the size of the multipliers at the start.
    """
    problem = _Problem(R, floors)
    state = _start(problem, omega, criterion, kappa, scale)
    centring = 0.3
    steps = 0
    mu = problem.mean_product(state)
    previous = np.inf
    while steps < max_iter:
        tau = max(centring * mu, 0.3 * goal)
        before = problem.size(state, tau)
        if mu <= goal and before > (0.5 if before <= 1e-9 else 0.99) * previous:
            break
        previous = before if mu <= goal else np.inf
        moved = _step(problem, state, tau, before)
        if moved is None:
            break
        state, length = moved
        steps += 1
        mu = problem.mean_product(state)
        centring = 0.5 if length < 0.3 else 0.2 if length < 0.8 else 0.05
        if report is not None:
            report(state.point)
    return InteriorSolution(state.point, state.z, mu, steps)


def _start(
    problem: _Problem, omega: Array, criterion: Criterion, kappa: float, scale: float
) -> _State:
    """Start from H and λ diagonal, where ``T = I``: well inside whatever R and the weights are."""
    p = len(problem.R)
    slack = np.minimum(0.1, np.maximum(1.0 - problem.floors, 1e-12))
    weights = omega[problem.pairs]
    model: PairModel
    if criterion == "worst":
        model = Simplex.start(weights, kappa)
        scale = scale / p**2
    elif criterion == "absolute":
        model = Box.start(weights, np.zeros(len(weights)), kappa)
    else:
        model = Quadratic(weights + kappa, np.zeros(len(weights)))
    lam = np.where(problem.free, scale, _FIXED)
    point = problem.point(lam, np.diag(lam))
    if point is None:
        raise AssertionError("the start is positive definite")
    return _State(point, slack, model)


def _step(
    problem: _Problem, state: _State, tau: float, before: float
) -> tuple[_State, float] | None:
    point, z = state.point, state.z
    lam, H = point.lam, point.H
    h = H[problem.pairs]
    response = state.model.respond(h, tau)
    # M dλ = (C V B)_jj - (f - ρ - z/2) + dz/2 with dz eliminated by λ z = τ.
    free = problem.free
    missing = np.where(free, problem.floors + 0.5 * tau / lam - point.fidelity, 0.0)
    barrier = np.where(free, 0.5 * z / lam, np.inf)
    try:
        dense = len(lam) <= (_DENSE_SCALAR if response.lever is not None else _DENSE)
        make = NewtonSystem if dense else IterativeSystem
        system = make(problem.R, point, barrier, tau, response.stiffness)
        shift = problem.matrix(response.shift)
        right = problem.stationarity(state, tau) - shift
        V, scalar = system.solve(right, missing, response)
    except sla.LinAlgError:
        return None
    d_lam = system.multipliers(V, missing)
    d_z = np.where(free, (tau - z * d_lam) / lam - z, 0.0)
    direction, length = state.model.step(h, V[problem.pairs], scalar, tau)
    length = min(length, longest_step(lam, d_lam), longest_step(z, d_z))
    while length > _STALL:
        trial_point = problem.point(lam + length * d_lam, H + length * V)
        if trial_point is not None:
            trial = _State(trial_point, z + length * d_z, state.model.moved(direction, length))
            if problem.size(trial, tau) <= max((1 - 1e-4 * length) * before, _NOISE):
                return trial, length
        length *= 0.6
    return None
