"""Where the squared criterion may be entered close to its optimum, from an exact decorrelator.

Two dual points are at hand. Weights w that prove the floors out of reach of exact decorrelation,
``tr S < wᵀρ``, are a direction of ascent ``(λ, H) = s (w, S)``: good just above the threshold. And
a transformation that meets the floors, here the exact one turned towards the sources, has
``off(H) = ω∘off(TᵀRT)`` if it is optimal, and ``T H = D_λ`` gives the diagonal: good from there on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import (
    diagonal,
    inner,
    library,
    own_diagonal,
    plus_diagonal,
    row_products,
    to_device,
)
from skcoral.solvers.exact import BestExact, ExactThreshold
from skcoral.solvers.tradeoff.feasible import make_feasible
from skcoral.solvers.tradeoff.newton import Stationary, evaluate
from skcoral.solvers.tradeoff.pairs import Quadratic
from skcoral.solvers.tradeoff.points import Problem


def entry(problem: Problem, model: Quadratic, exact: BestExact | ExactThreshold) -> Any:
    """Return the H of the better bound; None if neither has positive multipliers throughout."""
    points = [_turned(problem, model, exact), _refuted(problem, model, exact)]
    known = [at for at in points if at is not None and float(library(at.lam).min(at.lam)) > 0.0]
    return max(known, key=lambda at: at.value).H if known else None


def _turned(
    problem: Problem, model: Quadratic, exact: BestExact | ExactThreshold
) -> Stationary | None:
    R, live = problem.R, problem.pairs
    T = make_feasible(
        R, to_device(exact.T, R), problem.floor_values, np.zeros(problem.p, dtype=bool)
    )
    C = R @ T
    G = T.T @ C
    K = live / (model.stiffness + (1.0 - live)) * G
    fidelity = own_diagonal(C)
    own = fidelity * row_products(C, K) - row_products(G, K)
    own = own / (1.0 - fidelity * fidelity + 1e-15)
    xp = library(R)
    least = 1e-3 * float(xp.mean(abs(own)))
    own = xp.where(own > least, own, least + 0.0 * own)
    return evaluate(problem, plus_diagonal(1.0 * K, own), model)


def _refuted(
    problem: Problem, model: Quadratic, exact: BestExact | ExactThreshold
) -> Stationary | None:
    if exact.S.shape[0] < problem.p:  # a threshold that some variables do not bind
        return None
    S = to_device(exact.S, problem.R) * problem.live
    gain = float(exact.weights @ problem.floor_values) - float(diagonal(S).sum())
    loss = 0.5 * inner(model.stiffness * S, S)
    return evaluate(problem, gain / loss * S, model) if min(gain, loss) > 0 else None
