"""One recipe per kind of number in the paper: how this package computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.exact.bounds import trace_bound, zca_bound
from skcoral.measures import condition_number, fidelity, mean_residual, worst_residual
from skcoral.paper.study import Study
from skcoral.results import Decorrelation
from skcoral.support.pattern import degrees_of_freedom

Args = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """What this package computes for one cell.

    Attributes
    ----------
    ours : float or str
        The value.
    gap : float or None
        Width of the proved interval around the optimum that the value belongs to: of ρ★, of D2 or
        of the criterion named. None for plain arithmetic, which needs no proof.
    note : str
        One line worth saying even where the digits agree.
    """

    ours: float | str
    gap: float | None = None
    note: str = ""


def _threshold(study: Study, args: Args) -> Finding:
    found = study.threshold(args["system"])
    return Finding(found.lower, found.gap)


def _threshold_upper(study: Study, args: Args) -> Finding:
    found = study.threshold(args["system"])
    return Finding(found.upper, found.gap)


def _superseded(study: Study, args: Args, bound: float) -> Finding:
    upper = study.threshold(args["system"]).upper
    return Finding(bound, note=f"the certified upper bound on ρ★ is {upper:.9f}")


def _trace_bound(study: Study, args: Args) -> Finding:
    return _superseded(study, args, trace_bound(study.matrix(args["system"])))


def _subset_bound(study: Study, args: Args) -> Finding:
    return _superseded(study, args, study.subset(args["system"]).value)


def _subset(study: Study, args: Args) -> Finding:
    names = study.system(args["system"])[1]
    return Finding(", ".join(names[j] for j in study.subset(args["system"]).subset))


def _of_solution(quantity: str) -> Recipe:
    def recipe(study: Study, args: Args) -> Finding:
        found = study.solution(args["system"], args["rho_min"])
        measure = MEASURES[quantity]
        return Finding(measure(study.matrix(args["system"]), found.T, args["rho_min"]), found.gap)

    return recipe


def _budget_fidelity(study: Study, args: Args) -> Finding:
    found = study.budget(args["system"], args["budget"])
    return Finding(found.min_fidelity, found.gap)


def _supported(study: Study, args: Args) -> Decorrelation:
    criterion = args.get("criterion", "squared")
    return study.supported(args["system"], args.get("rho_min", 0.0), criterion)


def _supported_note(study: Study, args: Args) -> str:
    found = _supported(study, args)
    if found.status == "best_found":
        return f"best found, proved within [{found.lower_bound:.6f}, {found.objective:.6f}]"
    return f"certified: {found.objective:.6f}"


def _of_supported(measure: Callable[[Study, Args, Decorrelation], float]) -> Recipe:
    def recipe(study: Study, args: Args) -> Finding:
        found = _supported(study, args)
        return Finding(measure(study, args, found), found.gap, _supported_note(study, args))

    return recipe


def _degrees(name: str) -> Recipe:
    def recipe(study: Study, args: Args) -> Finding:
        counted = degrees_of_freedom(study.support(args["system"]))
        return Finding(float(getattr(counted, name)))

    return recipe


def _off_diagonal(study: Study, args: Args) -> tuple[int, int]:
    """Allowed and possible coefficients off the diagonal."""
    mask = study.support(args["system"])
    p = len(mask)
    return int(mask.sum()) - p, p * (p - 1)


def _of_correlation(measure: Callable[[Any], float]) -> Recipe:
    def recipe(study: Study, args: Args) -> Finding:
        R = study.matrix(args["system"])
        return Finding(float(measure(np.abs(R[np.triu_indices(len(R), 1)]))))

    return recipe


def _of_sparse_pca(measure: Callable[[Any, Any], float]) -> Recipe:
    def recipe(study: Study, args: Args) -> Finding:
        R = study.matrix(args["system"])
        return Finding(float(measure(R, study.sparse_pca(args["system"], args["alpha"]))))

    return recipe


Recipe = Callable[[Study, Args], Finding]

#: What the paper prints about a transformation at a common floor: of R, T and the floor.
MEASURES: Mapping[str, Callable[[Array, Array, float], float]] = {
    "max_residual": lambda R, T, rho_min: worst_residual(R, T),
    "mean_residual": lambda R, T, rho_min: mean_residual(R, T),
    "min_fidelity": lambda R, T, rho_min: float(fidelity(R, T).min()),
    "violation": lambda R, T, rho_min: max(0.0, rho_min - float(fidelity(R, T).min())),
}

QUANTITIES: Mapping[str, Recipe] = {
    "n_variables": lambda study, args: Finding(float(len(study.matrix(args["system"])))),
    "n_rows": lambda study, args: Finding(float(study.system(args["system"])[2] or 0)),
    "max_correlation": _of_correlation(np.max),
    "mean_correlation": _of_correlation(np.mean),
    "condition": lambda study, args: Finding(condition_number(study.matrix(args["system"]))),
    "zca_min": lambda study, args: Finding(zca_bound(study.matrix(args["system"]))),
    "pca_min": lambda study, args: Finding(study.pca(args["system"], "bottleneck").min_fidelity),
    "pca_mean": lambda study, args: Finding(study.pca(args["system"], "sum").mean_fidelity),
    "threshold": _threshold,
    "threshold_upper": _threshold_upper,
    "trace_bound": _trace_bound,
    "subset_bound": _subset_bound,
    "subset": _subset,
    **{quantity: _of_solution(quantity) for quantity in MEASURES},
    "budget_fidelity": _budget_fidelity,
    "support_max_residual": _of_supported(
        lambda study, args, found: worst_residual(study.matrix(args["system"]), found.T)
    ),
    "support_mean_residual": _of_supported(
        lambda study, args, found: mean_residual(study.matrix(args["system"]), found.T)
    ),
    "support_min_fidelity": _of_supported(lambda study, args, found: found.min_fidelity),
    "floor_objective": _of_supported(lambda study, args, found: found.objective),
    "floor_max_residual": _of_supported(
        lambda study, args, found: worst_residual(study.matrix(args["system"]), found.T)
    ),
    "floor_mean_residual": _of_supported(
        lambda study, args, found: mean_residual(study.matrix(args["system"]), found.T)
    ),
    "support_off_diagonal": lambda study, args: Finding(float(_off_diagonal(study, args)[0])),
    "off_diagonal_entries": lambda study, args: Finding(float(_off_diagonal(study, args)[1])),
    "support_density": lambda study, args: Finding(100 * np.divide(*_off_diagonal(study, args))),
    "support_free": _degrees("free"),
    "support_zeros": _degrees("zeros"),
    "rotation_dimension": _degrees("rotations"),
    "decorrelation_equations": _degrees("equations"),
    "sparse_nonzeros": _of_sparse_pca(lambda R, found: float(np.count_nonzero(found.T))),
    "sparse_max_residual": _of_sparse_pca(lambda R, found: worst_residual(R, found.T)),
    "sparse_mean_residual": _of_sparse_pca(lambda R, found: mean_residual(R, found.T)),
    "sparse_min_fidelity": _of_sparse_pca(lambda R, found: found.min_fidelity),
    "sparse_mean_fidelity": _of_sparse_pca(lambda R, found: found.mean_fidelity),
    "frontier_seconds": lambda study, args: Finding(study.frontier_seconds(args["system"])),
    "threshold_seconds": lambda study, args: Finding(study.threshold_seconds(args["system"])),
}
