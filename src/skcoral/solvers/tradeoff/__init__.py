"""The trade-off: floors above the threshold, budgets, the frontier, each with a certificate."""

from skcoral.solvers.tradeoff.frontier import solve_budget, trace_frontier
from skcoral.solvers.tradeoff.inflation import solve_vif
from skcoral.solvers.tradeoff.search import solve_from_neighbour, solve_tradeoff

__all__ = [
    "solve_budget",
    "solve_from_neighbour",
    "solve_tradeoff",
    "solve_vif",
    "trace_frontier",
]
