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

    def __post_init__(self) -> None:
        frozen = {name: read_only(_symmetric(name, a)) for name, a in self.arrays.items()}
        object.__setattr__(self, "arrays", frozen)
        super().__post_init__()


def _symmetric(name: str, a: Any) -> Any:
    """Average a symmetric matrix of a dual point with its transpose: rounding makes them differ."""
    if np.iscomplexobj(a):
        raise ValueError(f"`{name}` of a certificate must hold real numbers.")
    a = np.asarray(a, dtype=np.float64)
    if name not in SYMMETRIC or a.ndim != 2 or len(set(a.shape)) > 1 or (a == a.T).all():
        return a
    return 0.5 * a + 0.5 * a.T


@dataclass(frozen=True)
class Floors(Frozen):
    """The least residual for given floors."""


@dataclass(frozen=True)
class Budget(Frozen):
    """The highest common floor whose least residual is within a budget."""

    budget: float  #: The residual that was allowed.
    rho_upper: float  #: A common floor that no transformation within the budget exceeds.


@dataclass(frozen=True)
class VifLimit(Frozen):
    """The highest common floor at which no variance inflation factor exceeds a limit."""

    max_vif: float  #: The largest VIF that was allowed.
    largest_vif: float  #: The largest VIF of the outputs.
    rho_upper: float  #: A common floor that no transformation within the limit exceeds.


Goal = Floors | Budget | VifLimit


@dataclass(frozen=True)
class SupportSearch(Frozen):
    """How the search for an answer with restricted coefficients went."""

    n_starts: int = 0  #: Starts of the search.
    n_best: int = 0  #: How many of them reached the best value.


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """A feasible transformation, its dual point, and the bound that this proves.

    These fields a solution and the result made from it have in common; see
    :class:`skcoral.core.results.Decorrelation`.
    """

    T: Any  # in main memory, as `correlation`; of wide tables as factors
    correlation: Any
    fidelity: Array
    rho_min: Array
    objective: float
    lower_bound: float
    certificate: Certificate
    n_iter: int
    goal: Goal = field(default_factory=Floors)
    unique: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution(Answer):
    """What a solver returns, with the bound as the solver evaluated it."""

    slopes: Array  # of the bound by the floors; in the exact regime the weights of the mean
    converged: bool = True  # before the last step that was allowed
    room: float = 0.0  # in the exact regime, by how much the fidelities could be larger
    search: SupportSearch = field(default_factory=SupportSearch)
