"""How much of a guarantee survives new rows: hold-out, bootstrap, influence of single rows.

A fidelity floor is met exactly on the rows fitted. On other rows of the same population it
fluctuates by about one over the square root of their number; these functions measure by how much.
"""

from skcoral.stability.bootstrap import Bootstrap, bootstrap
from skcoral.stability.holdout import Holdout, holdout
from skcoral.stability.influence import Influence, influence

__all__ = ["Bootstrap", "Holdout", "Influence", "bootstrap", "holdout", "influence"]
