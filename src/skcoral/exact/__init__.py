"""Exact decorrelation: the threshold and the best decorrelator below it."""

from skcoral.exact.largest_mean import BestExact, best_exact
from skcoral.exact.results import solve_exact, solve_threshold
from skcoral.exact.threshold import ExactThreshold, KeptThreshold, exact_threshold

__all__ = [
    "BestExact",
    "ExactThreshold",
    "KeptThreshold",
    "best_exact",
    "exact_threshold",
    "solve_exact",
    "solve_threshold",
]
