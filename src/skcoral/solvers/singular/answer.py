"""Feasible outputs with a lower bound, and the dual points that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skcoral.core.arrays import Array, to_host
from skcoral.core.tolerances import OPTIMAL_GAP


class PointProof:
    """One dual point, with the multipliers λ of the floors."""

    lam: Array

    @property
    def slopes(self) -> Array:
        """Derivatives of the bound by the floors."""
        return 2.0 * self.lam


@dataclass(frozen=True)
class LiftedProof(PointProof):
    """A dual point of (★): multipliers λ and H ≻ 0, and the outputs it suggests."""

    kind: ClassVar[str] = "tradeoff"

    lam: Array
    H: Array
    suggested: tuple[Array, ...]
    n_iter: int

    @property
    def arrays(self) -> dict[str, Array]:
        """Those of its certificate."""
        return {"multipliers": self.lam, "H": self.H}


@dataclass(frozen=True)
class FrameProof(PointProof):
    """A dual point of (★★): ``N`` (r × r), λ and κ, all finite."""

    kind: ClassVar[str] = "frame"

    N: Any
    lam: Array
    kappa: Array

    @property
    def arrays(self) -> dict[str, Array]:
        """Those of its certificate, besides the factor."""
        return {"N": to_host(self.N), "multipliers": self.lam, "kappa": self.kappa}


@dataclass(frozen=True)
class RankProof(PointProof):
    """A dual point of (★r): λ, ``H`` (p × p), and the diagonal of S, which is H elsewhere."""

    kind: ClassVar[str] = "rank"

    H: Array
    lam: Array
    diagonal: Array

    @property
    def arrays(self) -> dict[str, Array]:
        """Those of its certificate, besides the factor."""
        return {"H": self.H, "multipliers": self.lam, "diagonal": self.diagonal}


@dataclass(frozen=True)
class RankFactorProof(PointProof):
    """A dual point of (★r) with ``H = VᵀV + diag(κ)``: ``V`` (r × p), λ, and κ of either sign."""

    kind: ClassVar[str] = "rank"

    V: Array
    lam: Array
    kappa: Array

    @property
    def arrays(self) -> dict[str, Array]:
        """Those of its certificate, besides the factor."""
        return {"V": self.V, "multipliers": self.lam, "kappa": self.kappa}


Proof = LiftedProof | FrameProof | RankProof | RankFactorProof


@dataclass(frozen=True)
class Answer:
    """Feasible outputs and what is proved about them.

    Attributes
    ----------
    U : array of shape (r, p)
        The outputs in the basis of the factor.
    objective, lower_bound : float
        Attained, and proved to be the least possible.
    proof : Proof or None
        The dual point of the bound; None where it is that of the rank alone.
    n_iter : int
        Steps taken.
    share : float
        Derivative of the bound by the one that the proof is about.
    """

    U: Any
    objective: float
    lower_bound: float
    proof: Proof | None
    n_iter: int
    share: float = 1.0

    @property
    def slopes(self) -> Array:
        """Derivatives of the bound by the floors."""
        if self.proof is None:
            return np.zeros(self.U.shape[1])
        return self.share * self.proof.slopes

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.objective - self.lower_bound <= OPTIMAL_GAP * max(1.0, self.objective)
