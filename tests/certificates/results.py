"""Honest results of every kind, each with the matrix that it is about: the one table of kinds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.bounds.support import proved_bound
from skcoral.core.deficiency import Deficiency
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.problem import Matrix
from skcoral.core.solution import Certificate
from skcoral.datasets import make_system
from skcoral.solvers.singular.rank_bound import multipliers_of_outputs
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.lower_bounds import to_squares
from skcoral.solvers.support.moments import bound_by_moments

# Full rank: six variables, four composites of them, and a support.
R = make_system(6)
PAIRS = np.abs(np.subtract.outer(range(6), range(6))).astype(float)
ANCHORS = np.random.default_rng(5).normal(size=(6, 4))
MASK = np.abs(R) > 0.2
SOURCES = np.abs(np.random.default_rng(1).normal(size=(6, 4))) > 0.25  # of the composites
SYSTEM = 0.1 * R + 0.9  # residuals of about ten
FULL: dict[str, Callable[[], Any]] = {
    "threshold": lambda: threshold(R),
    "edge": lambda: decorrelate(R),
    "exact": lambda: decorrelate(R, [0.97, 0.96, 0.0, 0.5, 0.9, 0.9]),
    "exact, anchors": lambda: decorrelate(R, 0.3, anchors=ANCHORS),
    "squared": lambda: decorrelate(R, 0.99),
    "worst": lambda: decorrelate(R, 0.99, criterion="worst"),
    "absolute": lambda: decorrelate(R, 0.99, criterion="absolute"),
    "weighted": lambda: decorrelate(R, 0.99, pair_weights=PAIRS),
    "weighted worst": lambda: decorrelate(R, 0.99, pair_weights=PAIRS, criterion="worst"),
    "a floor of one": lambda: decorrelate(R, [1.0, 0.99, 0.99, 0.99, 0.9, 0.2]),
    "anchors": lambda: decorrelate(R, 0.99, anchors=ANCHORS),
    "budget": lambda: maximize_fidelity(R, 0.05),
    "no budget": lambda: maximize_fidelity(R, 0.0),
    "vif": lambda: maximize_fidelity(R, 1.1, criterion="vif"),
    "vif, anchors": lambda: maximize_fidelity(R, 1.1, criterion="vif", anchors=ANCHORS),
    "vif of one": lambda: maximize_fidelity(R, 1.0, criterion="vif"),
    "open": lambda: decorrelate(R, 0.99, max_iter=2),
    "support": lambda: decorrelate(R, 0.99, support=MASK, n_starts=5),
    "support, open": lambda: decorrelate(R, 0.85, support=MASK, n_starts=5),
    "support, worst": lambda: decorrelate(R, 0.9, support=MASK, n_starts=5, criterion="worst"),
    "support, absolute": lambda: decorrelate(
        R, 0.9, support=MASK, n_starts=5, criterion="absolute"
    ),
    "support, anchors": lambda: decorrelate(R, 0.8, anchors=ANCHORS, support=SOURCES, n_starts=5),
    "support, exact": lambda: decorrelate(R, 0.5, support=np.tril(np.ones((6, 6))), n_starts=5),
}

# Rank 5 of eight variables, judged through the matrix or through its rows.
ROWS = np.random.default_rng(3).normal(size=(6, 8))
SINGULAR = np.corrcoef(ROWS.T)
ROWS = (ROWS - ROWS.mean(axis=0)) / np.linalg.norm(ROWS - ROWS.mean(axis=0), axis=0)
FLOORS = [1.0, 0.9, 0.99, 0.5, 0.99, 0.9, 1.0, 0.95]
SOME_PAIRS = np.ones((8, 8)) - np.eye(8) + np.eye(8)[::-1]
LOW: dict[str, Callable[[Any], Any]] = {
    "rank, welch": lambda S: decorrelate(S, 0.3),
    "rank, welch, worst": lambda S: decorrelate(S, 0.3, criterion="worst"),
    "rank, frame": lambda S: decorrelate(S, 0.999),
    "rank, rank": lambda S: by_matrix(decorrelate(S, 0.995)),
    "rank, rank, factor": lambda S: decorrelate(S, 0.995),
    "rank, open": lambda S: decorrelate(S, 0.99),
    "rank, open, mixed": lambda S: decorrelate(S, FLOORS),
    "rank, lifted": lambda S: decorrelate(S, 0.99, criterion="worst"),
    "rank, threshold": threshold,
    "rank, weighted": lambda S: decorrelate(S, 0.3, pair_weights=SOME_PAIRS),
    "rank, frame, worst": lambda S: decorrelate(S, 0.6, criterion="worst"),
    "rank, absolute": lambda S: decorrelate(S, 0.99, criterion="absolute"),
}

# Rank 8 of forty variables, kept as factors.
WIDE_ROWS = np.random.default_rng(1).normal(size=(9, 40))
WIDE_ROWS -= WIDE_ROWS.mean(axis=0)
WIDE_ROWS /= np.linalg.norm(WIDE_ROWS, axis=0)
FAR = np.abs(np.subtract.outer(range(40), range(40))).astype(float)
WIDE: dict[str, Callable[[Any], Any]] = {
    "wide, frame": lambda matrix: decorrelate(matrix, 0.995),
    "wide, welch": lambda matrix: decorrelate(matrix, 0.5),
    "wide, threshold": threshold,
    "wide, rank": lambda matrix: by_outputs(decorrelate(matrix, 0.995)),
    "wide, weighted": lambda matrix: decorrelate(matrix, 0.995, pair_weights=FAR),
    "wide, tradeoff": lambda matrix: decorrelate(matrix, 0.995, criterion="worst"),
}
KINDS = [*FULL, "support, moments", *LOW, "rank, budget", *WIDE]


@cache
def about(kind: str) -> tuple[Any, Any]:
    """A result, and the matrix that it is about; "large, squared" and so on are kinds, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in FULL:
            return FULL[kind](), R
        if kind in LOW:
            return LOW[kind](SINGULAR), SINGULAR
        if kind in WIDE:
            return WIDE[kind](few_rows()), FactoredCorrelation(WIDE_ROWS)
        if kind == "rank, budget":
            few = np.corrcoef(np.random.default_rng(3).normal(size=(3, 4)).T)
            return maximize_fidelity(few, decorrelate(few, 0.999).objective), few
        if kind == "support, moments":
            return by_moments("squared", 0.8)
        return decorrelate(SYSTEM, 0.999, criterion=kind.removeprefix("large, ")), SYSTEM


def honest(kind: str) -> Any:
    return about(kind)[0]


def by_matrix(result: Any) -> Any:
    """The same proof by the rank with H as a matrix instead of its factor."""
    c = result.certificate
    V, kappa = c.arrays["V"], c.arrays["kappa"]
    r, p = V.shape
    lengths = np.sum(V * V, axis=0)
    arrays = {key: c.arrays[key] for key in ("factor", "multipliers")}
    arrays |= {"H": V.T @ V + np.diag(kappa), "diagonal": lengths + (p - lengths.sum()) / r}
    return replace(result, certificate=Certificate("rank", arrays, c.info))


def by_outputs(result: Any) -> Any:
    """The same answer, proved by its outputs."""
    A, U = result.certificate.arrays["factor"], result.correlation.factor
    arrays = multipliers_of_outputs(A, U, result.rho_min)
    proof = Certificate("rank", {"factor": A, **arrays}, result.certificate.info)
    lam = arrays["multipliers"]
    return replace(result, certificate=proof, weights=lam, prices=2 * lam)


def few_rows() -> Matrix:
    """The matrix of the wide rows, by a factor with as many rows as its rank."""
    _, size, right = np.linalg.svd(WIDE_ROWS, full_matrices=False)
    A = (size[:, None] * right)[:8]
    factor = A / np.linalg.norm(A, axis=0)
    deficiency = Deficiency(factor, np.ones(40), [])
    return Matrix(FactoredCorrelation(factor), tuple(f"v{j}" for j in range(40)), deficiency)


def by_moments(criterion: Any, floor: Any) -> tuple[Any, Any]:
    """An answer on a support of five variables, proved by moments whatever other bounds prove.

    Its first column has no freedom where floors are mixed.
    """
    S = np.corrcoef(np.random.default_rng(4).normal(size=(9, 5)).T)
    mask = np.abs(np.subtract.outer(range(5), range(5))) <= 1
    floors = np.array([1.0, 0.9, 0.0, 0.7, 0.0]) if floor == "mixed" else floor
    result = decorrelate(S, floors, support=mask, criterion=criterion, n_starts=30)
    steps, squares = iter(range(1000)), to_squares(criterion, result.objective)
    caps = feasible_set(S, mask, result.rho_min)
    worst = criterion == "worst"
    arrays = bound_by_moments(caps, squares, lambda _: next(steps) > 20, worst=worst)
    arrays |= {name: result.certificate.arrays[name] for name in ("slope", "support")}
    proof = Certificate("support", arrays, {"bound": "moments", "criterion": criterion})
    lower = proved_bound(S, result.rho_min, proof)
    status: Any = "optimal" if result.objective - lower < 0.7e-7 else "best_found"
    return replace(result, certificate=proof, lower_bound=lower, status=status), S
