"""Exact decorrelation: the threshold and the best decorrelator below it."""

from skcoral.solvers.exact.largest_mean import BestExact, best_exact, complement, complete_exactly
from skcoral.solvers.exact.options import KeptThreshold, Options
from skcoral.solvers.exact.results import solve_exact, solve_threshold, threshold_result
from skcoral.solvers.exact.threshold import ExactThreshold, exact_threshold

__all__ = [
    "BestExact",
    "ExactThreshold",
    "KeptThreshold",
    "Options",
    "best_exact",
    "complement",
    "complete_exactly",
    "exact_threshold",
    "solve_exact",
    "solve_threshold",
    "threshold_result",
]
