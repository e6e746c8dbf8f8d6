"""Support restrictions: transformations with exact zeros, and bounds that judge them."""

from skcoral.solvers.support.exactness import Exactness, exactness
from skcoral.solvers.support.floor import SupportFloor, support_floor
from skcoral.solvers.support.pattern import pattern, read_restrictions, support_from_threshold
from skcoral.solvers.support.solver import SupportProblem, solve_support

__all__ = [
    "Exactness",
    "SupportFloor",
    "SupportProblem",
    "exactness",
    "pattern",
    "read_restrictions",
    "solve_support",
    "support_floor",
    "support_from_threshold",
]
