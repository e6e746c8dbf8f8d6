"""A primal-dual interior-point method for the trade-off, whatever the criterion.

The problem lifted to the Gram matrix ``[[R, RT], [TᵀR, G̃]] ⪰ 0`` of sources and outputs is convex
and tight. Its optimality conditions, relaxed by τ, are

    T H = D_λ,    P H = τ I                        P = G̃ - TᵀRT, what the outputs may vary outside
    diag(RT) = ρ + z/2,    λ_j z_j = τ             floors
    G̃ - I = S                                      unit variances, residual correlations
    the pair model's conditions between S and off(H)

A step solves their linearisation and keeps ``H, P ≻ 0`` and ``λ, z > 0``. ``G̃`` moves along a
line, so ``P`` loses the second-order term ``dTᵀR dT``; where that would shorten a step by more
than half, ``P`` moves along a line and ``G̃`` takes the term. Outputs with a floor of one are their
sources: the limit λ → ∞, in which their rows of ``H⁻¹`` and ``P`` vanish. Pairs that do not count
have ``H_ij = 0`` and no equation. All arrays stay in the library and on the device of ``R``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import (
    Array,
    diagonal_matrix,
    inner,
    largest_ratio,
    library,
    norm,
    own_diagonal,
    plus_diagonal,
    row_products,
    symmetric,
    to_device,
)
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import spectral_norm
from skcoral.solvers.tradeoff.equations import (
    Equations,
    Linearisation,
    equations,
    formable,
)
from skcoral.solvers.tradeoff.points import (
    Bounded,
    Box,
    Goals,
    PairModel,
    Problem,
    Quadratic,
    State,
)

# Violation over products that calls for equations solved accurately: where iterations leave more,
# the path ends far from feasible. Without it squares of some fifty variables with floors within
# 1e-14 of one stay open by up to a tenth of a per cent.
_INACCURATE = 1e6
_TRUSTED = 1.0 / 3.0  # reach of a predictor whose second-order terms count in full
# So many steps in a row that are this short lead nowhere: without the limit, a tie-break takes all
# the steps that the rest of the path needs.
_SHORT, _PATIENCE = 0.01, 5
_FREE = 0.9  # longest step that leaves the second-order term to the linear equations
_PRODUCTS = 20  # of a step, beside those of its equations
_SHORTER = (0.95, 0.92, *((0.8,) * 80))  # by which a step is shortened, one after the other


@dataclass
class Allowance:
    """Steps and work that are left, shared by all that is charged to it.

    Work is counted in products of matrices, each p³: it does not depend on how busy a machine is,
    so that the same problem gives the same answer everywhere.
    """

    steps: int
    work: float = np.inf
    spent_steps: int = 0
    spent: float = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return self.spent_steps >= self.steps or self.spent >= self.work

    def charge(self, work: float) -> None:
        """Count one step."""
        self.spent_steps += 1
        self.spent += work


@dataclass(frozen=True)
class Progress:
    """Where the method stopped; the products and the violation there."""

    state: State
    total: float = np.inf
    violation: float = np.inf
    done: bool = False


@dataclass(frozen=True)
class _Direction(State):
    """Changes of a state, the second-order term of P, and the longest step of the rest."""

    model: Any
    second: Any
    longest: float

    def moved(self, s: State, length: float, *, curved: bool) -> State:
        """Return the state after a step."""
        return State(
            H=s.H + length * self.H,
            lam=s.lam + length * self.lam,
            z=s.z + length * self.z,
            T=s.T + length * self.T,
            P=self.moved_P(s, length, curved=curved),
            model=s.model.moved(self.model, length),
        )

    def moved_P(self, s: State, length: float, *, curved: bool) -> Any:
        """P after a step; ``curved`` if it takes the second-order term."""
        P = s.P + length * self.P
        if curved:
            P -= length**2 * self.second
        return symmetric(P)


@dataclass(frozen=True)
class _Target:
    """What a step aims at: the changes of T and P where H stays, and the products.

    Those of the pair model are its ``goals``.
    """

    T: Any
    P: Any
    product: Any
    goals: Goals


class _Point:
    """The quantities at one state that every direction from it needs."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem, self.state = problem, state
        B = problem.inverse(state.H)
        if B is None:
            raise sla.LinAlgError("H is not positive definite to rounding")
        self.B = B
        W = problem.root.T @ state.T
        self.C = problem.root @ W
        self.half_gram = W.T @ W + 0.5 * state.P
        self.fidelity = own_diagonal(self.C)
        model = state.model
        self.stiffness = model.stiffness
        self.count = 2 * problem.n_free + model.count
        self.total = (
            inner(state.lam * problem.free, state.z) + inner(state.P, state.H) + model.products()
        )
        self.mu = self.total / max(self.count, 1)

    @property
    def G(self) -> Any:
        """``TᵀRT``."""
        return self.half_gram - 0.5 * self.state.P

    @property
    def residual(self) -> Any:
        """``G̃ - I``."""
        return plus_diagonal(self.half_gram + 0.5 * self.state.P, -1.0)

    @property
    def violation(self) -> float:
        """By how much the linear equations are violated, in the units of the criterion."""
        problem, state = self.problem, self.state
        off = (self.residual - state.model.residual(state.H)) * problem.live
        floors = (self.fidelity - problem.floors - 0.5 * state.z) * problem.free
        xp = library(state.H)
        by_floors = 2.0 * float(xp.sum(abs(floors * state.lam)))
        return norm(off) * self.units + by_floors

    @property
    def units(self) -> float:
        """About what an error of one in the correlations costs."""
        return max(norm(self.state.H) / self.problem.p, 1.0)

    def linearised(self) -> Linearisation:
        state = self.state
        return Linearisation(
            self.problem,
            state.H,
            self.B,
            self.C,
            self.half_gram,
            state.lam,
            state.z,
            self.stiffness,
            state.P,
        )

    def target(
        self, tau: float, predicted: _Direction | None = None, share: float = 0.0
    ) -> _Target:
        """Aim at τ, less a ``share`` of the second-order terms of a predicted step."""
        state, B, outputs = self.state, self.B, self.problem.outputs
        if predicted is None:
            T, P = outputs(state.H, B, state.lam) - state.T, tau * B - state.P
            return _Target(T, P, tau, state.model.goals(tau))
        goals = state.model.goals(tau, predicted.model, share)
        product = tau - share * predicted.lam * predicted.z
        less = -share * (predicted.H @ B)
        T = predicted.T @ less
        T += outputs(state.H, B, state.lam)
        T -= state.T
        P = symmetric(predicted.P @ less)
        P += share * predicted.second
        P += tau * B
        P -= state.P
        return _Target(T, P, product, goals)

    def direction(self, system: Equations, target: _Target) -> _Direction:
        """Newton direction towards the target, whose matrices are overwritten."""
        problem, state, B = self.problem, self.state, self.B
        free, lam = problem.free, state.lam + (1.0 - problem.free)
        lever = state.model.lever(state.H, self.stiffness, target.goals)
        missing = problem.floors + 0.5 * target.product / lam - self.fidelity
        missing = (missing - row_products(problem.R, target.T.T)) * free
        V, scalar = system.solve(self._right(target), missing, lever)
        model: Any = state.model.direction(state.H, V, self.stiffness, target.goals, lever, scalar)
        del lever  # as large as H
        d_lam = system.multipliers(V, missing) * free
        d_z = ((target.product - state.z * d_lam) / lam - state.z) * free
        ratio = max(largest_ratio(-d_lam, lam), largest_ratio(-d_z, state.z))
        longest = min(1.0 / ratio if ratio > 0 else np.inf, state.model.longest(model))
        VB, d_T, d_P = V @ B, target.T, target.P
        d_T += d_lam[:, None] * B
        d_T -= state.T @ VB
        d_P -= symmetric(state.P @ VB)
        W = problem.root.T @ d_T
        return _Direction(V, d_lam, d_z, d_T, d_P, model, W.T @ W, longest)

    def _right(self, target: _Target) -> Any:
        """What is missing in the equations of the pairs and variances where H stays."""
        right = self.residual + target.P
        right += 2.0 * symmetric(self.C.T @ target.T)
        right -= self.state.model.target(self.state.H, self.stiffness, target.goals)
        right *= self.problem.live
        return right

    def step_length(self, d: _Direction, margin: float, *, curved: bool = True) -> float:
        """Longest step, at most one, that stays a ``margin`` away from the boundary; 0 if none."""
        definite = self.problem.definite
        length = min(1.0, margin * d.longest)
        for shorter in (1.0, *_SHORTER):
            length *= shorter
            beyond = length / margin
            if (
                definite(self.state.H + beyond * d.H) is not None
                and definite(d.moved_P(self.state, beyond, curved=curved)) is not None
            ):
                return length
        return 0.0


def start(problem: Problem, criterion: Criterion, omega: Array | None) -> State:
    """Start on the central path but for the squares: shrunken sources, H diagonal.

    ``t_j = (1 + ρ_j)/2`` times the source leaves the same room to the floor and to unit variance,
    so ``λ_j = μ/(1 - ρ_j)`` makes both products equal to about μ. ``omega`` is None for equal
    weights.
    """
    t = 0.5 * (1.0 + problem.floors)
    S = (t[:, None] * t[None, :]) * problem.R * problem.pairs  # symmetric to the last bit
    pairs = problem.pairs
    weights = pairs if omega is None else to_device(omega, problem.R) * pairs
    model: PairModel
    if criterion == "worst":
        worst = Bounded.worst(weights, problem.pairs, S)
        model, mu = worst, worst.products() / worst.count
    else:
        # H must outweigh the residual correlations that it takes over, or steps will be short.
        least = float(np.min((1.0 - problem.floor_values)[~problem.fixed]))
        mu = max(0.5 * inner(weights * S, S) / problem.p, 2.0 * least * spectral_norm(weights * S))
        mu = max(mu, 1e-3)
        if criterion == "squared":
            model = Quadratic(pairs if omega is None else pairs / (weights + (1.0 - pairs)))
        else:
            model = Box.start(weights, problem.pairs, S, mu)
    return start_from(problem, model, mu)


def start_from(problem: Problem, model: PairModel, mu: float) -> State:
    """Start from shrunken sources with a given pair model."""
    floors, free = problem.floors, problem.free
    t = 0.5 * (1.0 + floors)
    lam = mu / (1.0 - floors + (1.0 - free)) * free
    z = (1.0 - floors) * free + (1.0 - free)
    T = diagonal_matrix(t)
    return State(
        H=diagonal_matrix(lam / t),
        lam=lam,
        z=z,
        T=T,
        P=diagonal_matrix((1.0 - t * t) * free),
        model=model,
    )


def follow(
    problem: Problem,
    state: State,
    *,
    share: float,
    allowance: Allowance,
    size_of: Callable[[Any], float] = lambda G: 1.0,
    tolerance: float = 0.0,
    careful: bool = True,
    report: Callable[[State], object] | None = None,
) -> Progress:
    """Follow the central path until the products make up ``share`` of the objective.

    ``size_of`` estimates the objective from ``TᵀRT``; it may fall along the path. The sum of the
    products is the duality gap of a point that meets the linear equations, which may be violated by
    ``tolerance`` times the objective. ``allowance`` is charged for every step. If not ``careful``,
    large systems are solved only roughly, which is enough far from the end.
    """
    short, formed = 0, False
    before: Progress | None = None
    while True:
        try:
            point = _Point(problem, state)
        except sla.LinAlgError:
            return Progress(state)
        violation, size = point.violation, size_of(point.G)
        goal = share * size
        close = point.total <= goal
        here = Progress(state, point.total, violation, done=close)
        if close and (
            violation <= max(share, tolerance) * size
            or (before is not None and violation > 0.5 * before.violation)
        ):
            return here if before is None or violation <= before.violation else before
        before = here if close else None
        if allowance.exhausted or not point.count:
            return here
        try:
            # Also where nothing but the violation is left to be reduced.
            formed = formed or close or violation > _INACCURATE * point.total
            system = equations(point.linearised(), careful=careful, formed=formed)
            direction, length, curved = _corrected_step(point, system, 0.3 * goal / point.count)
        except sla.LinAlgError:
            return here
        if not system.arrived and formable(problem):
            formed = True  # a few such solves take longer than one factorisation
            continue
        short = short + 1 if length < _SHORT else 0
        if length == 0.0 or short > _PATIENCE:
            return here
        allowance.charge(system.work + _PRODUCTS * problem.p**3)
        del system, point  # large matrices
        state = direction.moved(state, length, curved=curved)
        del direction
        if report is not None:
            report(state)


def _corrected_step(
    point: _Point, system: Equations, least: float
) -> tuple[_Direction, float, bool]:
    """Mehrotra's predictor and corrector: two solves of one system; τ is at least ``least``.

    Returns the direction, the length of the step, and whether P takes the second-order term.
    """
    predicted = point.direction(system, point.target(0.0))
    reach = point.step_length(predicted, 1.0)
    # Products fall like one less the step, to first order.
    tau = max(max((1.0 - reach) ** 3, 1e-4) * point.mu, least)
    target = point.target(tau, predicted, min(1.0, reach / _TRUSTED) ** 2)
    del predicted  # large matrices
    direction = point.direction(system, target)
    length = point.step_length(direction, 0.9 + 0.09 * reach)
    if 2.0 * length < _FREE:
        # Where a few directions of R carry most of it, the second-order term takes all of P in
        # these: unit variances and residual correlations take it over, as an error that the next
        # step corrects.
        further = min(point.step_length(direction, 0.9, curved=False), _FREE)
        if further > 2.0 * length:
            return direction, further, False
    return direction, length, True
