"""Support restrictions: transformations with exact zeros, and bounds that judge them."""

from skcoral.solvers.support.exactness import Exactness, exactness
from skcoral.solvers.support.floor import SupportFloor, support_floor
from skcoral.solvers.support.pattern import pattern

__all__ = [
    "Exactness",
    "SupportFloor",
    "exactness",
    "pattern",
    "support_floor",
]
