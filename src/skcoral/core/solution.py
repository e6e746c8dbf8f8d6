"""What a solver returns: a feasible transformation with a dual point, and no verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Frozen, read_only

#: The arrays of a dual point that are symmetric where they are matrices.
SYMMETRIC = frozenset(("S", "H", "Q", "N", "slope", "mean_S", "vif_H", "weights"))


@dataclass(frozen=True, eq=False)
class Certificate(Frozen):
    """The numbers from which anyone can re-check a claim, without the solver that made it.

    Attributes
    ----------
    kind : {"exact", "tradeoff", "support", "rank", "frame", "frame_threshold"}
        Which inequality the arrays plug into; see :mod:`skcoral.certificates`.
    arrays : mapping of str to ndarray
        The dual point: in the exact regime ``"weights"`` (λ) with ``"S"`` where floors cannot be
        raised, ``"mean_weights"`` with ``"mean_S"`` for the largest mean of the other outputs;
        ``"multipliers"`` (λ) with ``"H"`` for the trade-off.
    info : mapping of str to str or float
        Settings that select the formula (criterion and the like).

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> proof = decorrelate([[1.0, 0.8], [0.8, 1.0]], rho_min=0.95).certificate
    >>> proof.kind, sorted(proof.arrays)
    ('tradeoff', ['H', 'multipliers'])
    """

    kind: str
    arrays: Mapping[str, Array]
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether it is about exact decorrelators: no residual, and the largest fidelities."""
        return self.kind == "exact"

    @property
    def rank(self) -> int:
        """The rank of the singular matrix that it is about."""
        return int(self.info["rank"])

    def __post_init__(self) -> None:
        frozen = {name: read_only(_symmetric(name, a)) for name, a in self.arrays.items()}
        object.__setattr__(self, "arrays", frozen)
        super().__post_init__()


def _symmetric(name: str, a: Any) -> Any:
    """Average a symmetric matrix of a dual point with its transpose: rounding makes them differ."""
    if np.iscomplexobj(a):
        raise ValueError(f"`{name}` of a certificate must hold real numbers.")
    a = np.asarray(a, dtype=np.float64)
    if name not in SYMMETRIC or a.ndim != 2 or len(set(a.shape)) > 1:
        return a
    return a if (a == a.T).all() else 0.5 * a + 0.5 * a.T


@dataclass(frozen=True)
class Floors(Frozen):
    """The least residual for given floors."""


@dataclass(frozen=True)
class Budget(Frozen):
    """The highest common floor whose least residual is within a budget.

    Attributes
    ----------
    budget : float
        The residual that was allowed.
    rho_upper : float
        A common floor that no transformation within the budget exceeds.
    """

    budget: float
    rho_upper: float


@dataclass(frozen=True)
class VifLimit(Frozen):
    """The highest common floor at which no variance inflation factor exceeds a limit.

    Attributes
    ----------
    max_vif : float
        The largest VIF that was allowed.
    largest_vif : float
        The largest VIF of the outputs.
    rho_upper : float
        A common floor that no transformation within the limit exceeds.
    """

    max_vif: float
    largest_vif: float
    rho_upper: float


Goal = Floors | Budget | VifLimit


@dataclass(frozen=True)
class SupportSearch(Frozen):
    """How an answer with restricted coefficients was found.

    Attributes
    ----------
    n_starts : int
        Starts of the search.
    n_best : int
        How many of them reached the best value.
    bound : str
        The name of the lower bound.
    stationarity : float or None
        Largest violation of stationarity, not measured where bounds on coefficients bind.
    random_state : int or None
        The seed, where it was a number.
    bounds_bind : bool
        Whether a bound on a coefficient binds.
    """

    n_starts: int = 0
    n_best: int = 0
    bound: str = "none"
    stationarity: float | None = 0.0
    random_state: int | None = None
    bounds_bind: bool = False


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
