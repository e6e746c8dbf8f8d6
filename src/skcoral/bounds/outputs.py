"""What a transformation does, enclosed: correlations of its outputs, and their fidelities."""

from __future__ import annotations

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.enclosures import exactly, up
from skcoral.bounds.tradeoff import along, floors_of, scaled_floors
from skcoral.core.arrays import Array


class Outputs:
    """The outputs of ``T``: their correlations and their fidelities to the anchors ``B``."""

    def __init__(
        self, T: Array, B: Array, rho_min: Array, R: Array, arithmetic: Arithmetic
    ) -> None:
        self.T, self.B, self.rho_min, self.k = T, B, rho_min, T.shape[1]
        image = arithmetic.product(R, T)
        self.gram = arithmetic.apply(T.T, image)
        self.defect = arithmetic.enclosure(self.gram, np.eye(self.k))
        self.length = exactly(np.ones(self.k))
        self.floors = floors_of(rho_min)
        if not np.array_equal(B, np.eye(len(B))):
            own = arithmetic.product(R, B)
            self.length = along(arithmetic, B, own).sqrt()
            self.floors = scaled_floors(arithmetic, R, B, rho_min)
        self.fidelity = along(arithmetic, B, image) / self.length

    def scaled(self, multipliers: Array) -> Array:
        """Multipliers of the anchors as given instead of those of unit length, never smaller."""
        if np.array_equal(self.length.lower, np.ones(self.k)):
            return multipliers
        return np.where(multipliers > 0, up(up(multipliers / self.length.lower)), 0.0)
