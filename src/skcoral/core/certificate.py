"""The dual point of a result: what a claim is checked with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skcoral.core.frozen import Array, Frozen, read_only


@dataclass(frozen=True, eq=False)
class Certificate(Frozen):
    """The numbers from which anyone can re-check a claim, without the solver that made it.

    Attributes
    ----------
    kind : {"threshold", "exact", "tradeoff", "support", "rank", "frame", "frame_threshold"}
        Which inequality the arrays plug into; see :mod:`skcoral.certificates`.
    arrays : mapping of str to ndarray
        The dual point: ``"weights"`` (λ) with ``"S"`` for the exact regime (``"rest_weights"`` with
        ``"rest_S"`` for the outputs beside those that bind a threshold), ``"multipliers"`` (λ) with
        ``"H"`` for the trade-off.
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
        return self.kind in ("exact", "threshold")

    def __post_init__(self) -> None:
        frozen = {name: read_only(_symmetric(name, a)) for name, a in self.arrays.items()}
        object.__setattr__(self, "arrays", frozen)
        super().__post_init__()


def rank_of(certificate: Certificate) -> int:
    """The rank of the matrix that a certificate is about."""
    return int(certificate.info["rank"])


def _symmetric(name: str, a: Any) -> Any:
    """Average a symmetric matrix of a dual point with its transpose: rounding makes them differ."""
    if np.iscomplexobj(a):
        raise ValueError(f"`{name}` of a certificate must hold real numbers.")
    a = np.asarray(a, dtype=np.float64)
    if (
        name not in ("S", "H", "P", "N", "slope", "rest_S", "vif_H")
        or a.ndim != 2
        or len(set(a.shape)) > 1
    ):
        return a
    return a if (a == a.T).all() else 0.5 * a + 0.5 * a.T
