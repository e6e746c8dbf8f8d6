"""Support restrictions: transformations with exact zeros, and bounds that judge them."""

from skcoral.solvers.support.exactness import Exactness, exactness
from skcoral.solvers.support.floor import SupportFloor, support_floor
from skcoral.solvers.support.pattern import pattern, support_from_threshold

__all__ = [
    "Exactness",
    "SupportFloor",
    "exactness",
    "pattern",
    "support_floor",
    "support_from_threshold",
]
