"""How much of a guarantee holds for new rows, and floors that hold for the population.

A fidelity floor is met exactly on the rows fitted. On other rows of the same population it
fluctuates by about one over the square root of their number; these functions measure by how much,
and raise floors so that they hold there with a stated confidence.
"""

from skcoral.stability.bootstrap import Bootstrap, bootstrap
from skcoral.stability.confidence import ConfidentFloors, confident_floors
from skcoral.stability.holdout import Holdout, holdout
from skcoral.stability.influence import Influence, influence

__all__ = [
    "Bootstrap",
    "ConfidentFloors",
    "Holdout",
    "Influence",
    "bootstrap",
    "confident_floors",
    "holdout",
    "influence",
]
