"""What a solver returns: a feasible transformation with a dual point, and no verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skcoral.core.certificate import Certificate
from skcoral.core.frozen import Array
from skcoral.core.goals import Floors, Goal, SupportSearch


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible transformation, its dual point, and the bound as the solver evaluated it.

    Attributes
    ----------
    T, correlation : array
        The transformation and ``TᵀRT``, in main memory; of wide tables as factors.
    fidelity, rho_min : ndarray of shape (k,)
        What is kept of each variable, and the floors.
    objective, lower_bound : float
        The residual, and what the dual point proves to be the least.
    certificate : Certificate
        The dual point.
    n_iter : int
        Steps taken.
    slopes : ndarray of shape (k,)
        Derivatives of the bound by the floors; in the exact regime the weights of the mean.
    converged : bool
        Whether the solver ended before the last step that it was allowed.
    room : float
        In the exact regime, by how much the fidelities could be larger.
    unique : bool
        Whether ties were broken.
    goal : Floors, Budget or VifLimit
        What was asked for.
    search : SupportSearch
        How a transformation with restricted coefficients was found.
    """

    T: Any
    correlation: Any
    fidelity: Array
    rho_min: Array
    objective: float
    lower_bound: float
    certificate: Certificate
    n_iter: int
    slopes: Array
    converged: bool = True
    room: float = 0.0
    unique: bool = True
    goal: Goal = field(default_factory=Floors)
    search: SupportSearch = field(default_factory=SupportSearch)
