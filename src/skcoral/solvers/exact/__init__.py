"""Exact decorrelation: the threshold and the best decorrelator below it."""

from skcoral.solvers.exact.largest_mean import BestExact, best_exact, complement, complete_exactly
from skcoral.solvers.exact.solver import (
    kept_threshold,
    solve_exact,
    solve_threshold,
    threshold_solution,
)
from skcoral.solvers.exact.threshold import ExactThreshold, exact_threshold

__all__ = [
    "BestExact",
    "ExactThreshold",
    "best_exact",
    "complement",
    "complete_exactly",
    "exact_threshold",
    "kept_threshold",
    "solve_exact",
    "solve_threshold",
    "threshold_solution",
]
