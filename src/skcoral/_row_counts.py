"""How many rows moments stand for, and what their weights make of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Array
from ._validation import check_choice
from .exceptions import InvalidTableError

WEIGHT_KINDS = ("auto", "frequency", "reliability")


class RowCounts:
    """Number of rows, sums of their weights and of the squares of these."""

    n_rows: int
    weight: float
    squared_weight: float
    whole_weights: bool
    weight_kind: str

    def _count(self, n: int, weights: Array | None, kind: str) -> None:
        """Set the counts to those of ``n`` rows."""
        self.weight_kind = check_choice("weight_kind", kind, WEIGHT_KINDS)
        self.n_rows, self.weight, self.squared_weight = n, float(n), float(n)
        self.whole_weights = True
        if weights is not None:
            self.weight, self.squared_weight = float(weights.sum()), float(weights @ weights)
            # beyond 2^53 every float is whole, and nothing was counted
            whole = (weights == np.floor(weights)) & (weights <= 2.0**53)
            self.whole_weights = bool(whole.all())

    @property
    def weights_count_rows(self) -> bool:
        """Whether the weights are frequencies: by ``weight_kind``, or because all are whole."""
        if self.weight_kind == "auto":
            return self.whole_weights
        return self.weight_kind == "frequency"

    @property
    def effective_rows(self) -> float:
        """Sum of the frequencies, or Kish's ``(Σw)² / Σw²`` for reliability weights."""
        if self.weights_count_rows or not self.n_rows:
            return self.weight
        return self.weight**2 / self.squared_weight

    @property
    def degrees_of_freedom(self) -> float:
        """What the comoment is divided by to give an unbiased covariance."""
        if self.weights_count_rows:
            return self.weight - 1.0
        return self.weight - self.squared_weight / self.weight

    def _enough_freedom(self) -> float:
        """The degrees of freedom, refused where there are none."""
        if self.n_rows < 2 and self.weight <= 1.0:
            raise InvalidTableError(
                "A covariance needs at least two rows with a positive weight, or one that counts "
                f"twice; got {self.n_rows} {'sample' if self.n_rows == 1 else 'rows'}."
            )
        if self.weights_count_rows and self.weight < 2.0:
            raise InvalidTableError(
                f"Weights that count rows sum to {self.weight:g} over {self.n_rows} rows, so they "
                "are no frequencies (weight 2 is a row that occurs twice). Use "
                "weight_kind='reliability' for weights that only compare rows."
            )
        return self.degrees_of_freedom

    def _counts(self) -> dict[str, Any]:
        names = ("n_rows", "weight", "squared_weight", "whole_weights", "weight_kind")
        return {name: getattr(self, name) for name in names}

    def _read_counts(self, state: dict[str, Any]) -> None:
        kind = str(state.get("weight_kind", "auto"))
        self.weight_kind = check_choice("weight_kind", kind, WEIGHT_KINDS)
        self.n_rows, self.weight = int(state["n_rows"]), float(state["weight"])
        # earlier files have no squares: their weights counted rows
        self.squared_weight = float(state.get("squared_weight", self.weight))
        self.whole_weights = bool(state.get("whole_weights", True))
