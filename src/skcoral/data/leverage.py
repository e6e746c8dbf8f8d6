"""Single rows that make a correlation: a typing mistake, a unit, or one country among many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.display import shortened

#: A correlation above the first that is below the second without the row is made by it.
_STRONG, _WEAK = 0.9, 0.7
#: Share of the scatter of two columns that goes with a row for it to be looked at. With shares
#: sin²a and sin²b, r = 0.9 falls to 0.7 only if 0.9 ≤ sin a sin b + 0.7 cos a cos b, and the
#: largest right side over a, √(sin²b + 0.49 cos²b), reaches 0.9 at sin²b = 0.627.
_SHARE = 0.627


@dataclass(frozen=True)
class DominantRow:
    """A row without which a strong correlation is gone; of several, that which changes most."""

    place: int  # line or row of the file
    names: tuple[str, str]
    correlation: float
    without: float

    def sentence(self, unit: str) -> str:
        """What stands next to an answer."""
        first, second = map(shortened, self.names)
        return (
            f"One row makes a correlation: {first} and {second} have {self.correlation:+.2f}, and "
            f"{self.without:+.2f} without {unit} {self.place}. Check it."
        )


def dominant_rows(
    values: Array, places: Sequence[int], names: Sequence[str], weights: Array | None = None
) -> tuple[DominantRow, ...]:
    """Rows that alone make a correlation strong, each with the pair of columns it changes most.

    Removing row i, of weight w out of W in all, lowers the scatter S by wW/(W-w) d dᵀ, where d is
    its deviation from the mean: n/(n-1) d dᵀ without weights. Each row looked at costs p²
    operations. Rows have no missing values.
    """
    w = np.ones(len(values)) if weights is None else weights
    rest = w.sum() - w
    if (w > 0).sum() < 4:
        return ()
    deviations = (values - np.average(values, axis=0, weights=w)) * np.sqrt(w)[:, None]
    scale = np.sqrt(np.sum(deviations**2, axis=0))
    deviations = deviations[:, scale > 0] / scale[scale > 0]
    varying = np.flatnonzero(scale > 0)
    R = deviations.T @ deviations
    dominant = []
    taken = np.sqrt(w.sum() / rest)[:, None] * deviations
    for i in np.flatnonzero((taken**2 > _SHARE).sum(axis=1) >= 2):
        left = R - np.outer(taken[i], taken[i])
        spread = np.sqrt(np.maximum(np.diag(left), np.finfo(float).tiny))
        without = left / np.outer(spread, spread)
        made = np.triu((np.abs(R) > _STRONG) & (np.abs(without) < _WEAK), 1)
        if made.any():
            change = np.where(made, np.abs(R - without), 0.0)
            j, k = np.unravel_index(int(np.argmax(change)), change.shape)
            pair = names[varying[j]], names[varying[k]]
            place = places[int(i)]
            dominant.append(DominantRow(place, pair, float(R[j, k]), float(without[j, k])))
    return tuple(dominant)
