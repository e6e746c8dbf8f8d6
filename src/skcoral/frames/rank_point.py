"""A dual point of the bound (★r), with its values."""

from __future__ import annotations

from dataclasses import dataclass

from skcoral._arrays import Array
from skcoral.frames.rank_penalties import SmoothPenalty


@dataclass(frozen=True)
class RankPoint:
    """Values at one dual point.

    Attributes
    ----------
    H, kappa, lam, y : ndarray of shape (p, p), (p,), (p,) and (m,)
        The point; κ and λ are zero where the floor is one, and y belongs to the penalty.
    tau : float
        Weight of the barrier.
    value, merit : float
        The bound, and what is maximised instead of it.
    inverse : ndarray of shape (p, p)
        ``H⁻¹`` of the other outputs, zero in the rows and columns of those at their sources.
    U : ndarray of shape (r, p)
        The minimisers.
    penalty : SmoothPenalty
        Of ``S = H - diag(κ)``.
    early : RankPoint, optional
        A point on the way here, further inside, where a similar problem can start.
    """

    H: Array
    kappa: Array
    lam: Array
    y: Array
    tau: float
    value: float
    merit: float
    inverse: Array
    U: Array
    penalty: SmoothPenalty
    early: RankPoint | None = None

    @property
    def left(self) -> float:
        """What the barriers leave open."""
        return 4 * len(self.lam) * self.tau
