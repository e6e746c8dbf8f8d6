"""Support restrictions: transformations with exact zeros, and bounds that judge them."""

from skcoral.support.exactness import Exactness, exactness
from skcoral.support.floor import SupportFloor, support_floor
from skcoral.support.lower_bounds import certified_bound
from skcoral.support.pattern import (
    DegreesOfFreedom,
    degrees_of_freedom,
    pattern,
    support_from_threshold,
)
from skcoral.support.solver import solve_support, support_frontier

__all__ = [
    "DegreesOfFreedom",
    "Exactness",
    "SupportFloor",
    "certified_bound",
    "degrees_of_freedom",
    "exactness",
    "pattern",
    "solve_support",
    "support_floor",
    "support_from_threshold",
    "support_frontier",
]
