"""One recipe per kind of number in the paper: how this package computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from skcoral.api import decorrelate, maximize_fidelity, threshold
from skcoral.baselines import Baseline, pca, sparse_pca
from skcoral.core import criteria
from skcoral.core.arrays import Array, column_dots
from skcoral.core.results import Decorrelation
from skcoral.paper.bounds import subset_bound, trace_bound, zca_bound
from skcoral.paper.study import matrix, solved, support, supported, system_of

#: The floors that the paper's timed frontier consists of.
TIMED_FLOORS = (0.50, 0.70, 0.85, 0.95, 0.99)


@dataclass(frozen=True)
class Finding:
    """What this package computes for one cell, with one line worth saying even where it agrees.

    ``gap`` is the width of the proved interval around the optimum that the value belongs to: of ρ★,
    of D2 or of the criterion named; None for plain arithmetic, which needs no proof.
    """

    ours: float | str
    gap: float | None = None
    note: str = ""


#: From the system's name and the other arguments of the cell.
Recipe = Callable[..., Finding]

#: What the paper prints about a transformation at a common floor: of R, T and the floor.
MEASURES: Mapping[str, Callable[[Array, Array, float], float]] = {
    "max_residual": lambda R, T, rho_min: max_residual(R, T),
    "mean_residual": lambda R, T, rho_min: mean_residual(R, T),
    "min_fidelity": lambda R, T, rho_min: float(column_dots(R, T).min()),
    "violation": lambda R, T, rho_min: max(0.0, rho_min - float(column_dots(R, T).min())),
}


def _of_matrix(measure: Callable[[Array], Any]) -> Recipe:
    return lambda system: Finding(float(measure(matrix(system))))


def _of_correlations(measure: Callable[[Array], Any]) -> Recipe:
    return _of_matrix(lambda R: measure(np.abs(R[np.triu_indices(len(R), 1)])))


def _of_support(measure: Callable[[Any], Any]) -> Recipe:
    return lambda system: Finding(float(measure(support(system))))


def _of_sparse_pca(measure: Callable[[Array, Any], Any]) -> Recipe:
    return lambda system, alpha: Finding(
        float(measure(matrix(system), solved(_sparse_pca, system, alpha)))
    )


def _sparse_pca(R: Array, alpha: float) -> Baseline:
    """On the paper's own sample: random rows, not the matrix itself."""
    return sparse_pca(R, alpha=alpha)


def _of_solution(quantity: str) -> Recipe:
    def recipe(system: str, rho_min: float) -> Finding:
        answer = solved(decorrelate, system, rho_min)
        return Finding(MEASURES[quantity](matrix(system), answer.T, rho_min), answer.gap)

    return recipe


def _of_supported(measure: Callable[[Array, Decorrelation], float]) -> Recipe:
    def recipe(system: str, **problem: Any) -> Finding:
        answer = supported(system, **problem)
        note = f"certified: {answer.objective:.6f}"
        if answer.status == "best_found":
            note = f"best found, proved within [{answer.lower_bound:.6f}, {answer.objective:.6f}]"
        return Finding(measure(matrix(system), answer), answer.gap, note)

    return recipe


def _threshold(end: str) -> Recipe:
    def recipe(system: str) -> Finding:
        answer = solved(threshold, system)
        return Finding(getattr(answer, end), answer.gap)

    return recipe


def _replaced_bound(value: Callable[[str], float]) -> Recipe:
    def recipe(system: str) -> Finding:
        upper = solved(threshold, system).upper
        return Finding(value(system), note=f"the certified upper bound on ρ★ is {upper:.9f}")

    return recipe


def _subset(system: str) -> Finding:
    names = system_of(system).names
    return Finding(", ".join(names[j] for j in solved(subset_bound, system)[1]))


def _budget_fidelity(system: str, budget: float) -> Finding:
    answer = solved(maximize_fidelity, system, budget)
    return Finding(answer.min_fidelity, answer.gap)


def _seconds(solve: Callable[[Array], object]) -> Recipe:
    # timed anew, because the study may have the answer already
    def measure(R: Array) -> float:
        start = perf_counter()
        solve(R)
        return perf_counter() - start

    return _of_matrix(measure)


def max_residual(R: Array, T: Array) -> float:
    """Largest absolute residual correlation."""
    return criteria.value("worst", T.T @ R @ T)


def mean_residual(R: Array, T: Array) -> float:
    """Mean absolute residual correlation over the pairs."""
    return criteria.value("absolute", T.T @ R @ T) / (0.5 * len(R) * (len(R) - 1))


def largest_mean_matched(loadings: Array) -> float:
    """Largest mean absolute entry over the ways to match components to variables.

    The paper matches anew for the mean, in the way that favours PCA most.
    """
    size = np.abs(loadings)
    return float(size[linear_sum_assignment(size, maximize=True)].mean())


_supported_max = _of_supported(lambda R, answer: max_residual(R, answer.T))
_supported_mean = _of_supported(lambda R, answer: mean_residual(R, answer.T))

QUANTITIES: Mapping[str, Recipe] = {
    "n_variables": _of_matrix(len),
    "n_rows": lambda system: Finding(float(system_of(system).n_rows)),
    "max_correlation": _of_correlations(np.max),
    "mean_correlation": _of_correlations(np.mean),
    "condition": _of_matrix(lambda R: float(np.linalg.cond(R))),
    "zca_min": _of_matrix(zca_bound),
    "pca_min": _of_matrix(lambda R: pca(R).min_fidelity),
    "pca_mean": _of_matrix(lambda R: largest_mean_matched(R @ pca(R).T)),
    "threshold": _threshold("lower"),
    "threshold_upper": _threshold("upper"),
    "trace_bound": _replaced_bound(lambda system: trace_bound(matrix(system))),
    "subset_bound": _replaced_bound(lambda system: solved(subset_bound, system)[0]),
    "subset": _subset,
    **{quantity: _of_solution(quantity) for quantity in MEASURES},
    "budget_fidelity": _budget_fidelity,
    "support_max_residual": _supported_max,
    "support_mean_residual": _supported_mean,
    "support_min_fidelity": _of_supported(lambda R, answer: answer.min_fidelity),
    "floor_objective": _of_supported(lambda R, answer: answer.objective),
    "floor_max_residual": _supported_max,
    "floor_mean_residual": _supported_mean,
    "support_off_diagonal": _of_support(lambda mask: mask.sum() - len(mask)),
    "off_diagonal_entries": _of_matrix(lambda R: R.size - len(R)),
    "support_density": _of_support(
        lambda mask: 100 * (mask.sum() - len(mask)) / (mask.size - len(mask))
    ),
    "support_free": _of_support(np.count_nonzero),
    "support_zeros": _of_support(lambda mask: mask.size - mask.sum()),
    "rotation_dimension": _of_support(lambda mask: len(mask) * (len(mask) - 1) / 2),
    "decorrelation_equations": _of_support(lambda mask: len(mask) * (len(mask) + 1) / 2),
    "sparse_nonzeros": _of_sparse_pca(lambda R, baseline: np.count_nonzero(baseline.T)),
    "sparse_max_residual": _of_sparse_pca(lambda R, baseline: max_residual(R, baseline.T)),
    "sparse_mean_residual": _of_sparse_pca(lambda R, baseline: mean_residual(R, baseline.T)),
    "sparse_min_fidelity": _of_sparse_pca(lambda R, baseline: baseline.min_fidelity),
    "sparse_mean_fidelity": _of_sparse_pca(lambda R, baseline: baseline.mean_fidelity),
    "frontier_seconds": _seconds(lambda R: [decorrelate(R, rho) for rho in TIMED_FLOORS]),
    "threshold_seconds": _seconds(threshold),
}
