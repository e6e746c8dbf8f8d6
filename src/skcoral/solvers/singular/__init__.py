"""Singular and wide: p variables of rank r < p, in the r dimensions that their outputs span."""

from skcoral.solvers.singular.curve import singular_budget, singular_frontier
from skcoral.solvers.singular.solver import singular_threshold, solve_singular

__all__ = ["singular_budget", "singular_frontier", "singular_threshold", "solve_singular"]
