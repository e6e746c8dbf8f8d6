"""What a transformation does, enclosed: the attained side of every claim."""

from __future__ import annotations

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.enclosures import exactly, up
from skcoral.certificates.inequalities import along, floors_of, residual, scaled_floors
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import require_fields
from skcoral.results import Decorrelation


class Outputs:
    """The outputs of ``T``: their correlations and their fidelities to the anchors ``B``."""

    def __init__(
        self, T: Array, B: Array, rho_min: Array, R: Array, arithmetic: Arithmetic
    ) -> None:
        self.T, self.B, self.rho_min, self.k = T, B, rho_min, T.shape[1]
        image = arithmetic.product(R, T)
        self.gram = arithmetic.apply(np.ascontiguousarray(T.T), image)
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


class Attained(Outputs):
    """What the ``T`` of a result does, with the residual by its criterion."""

    def __init__(self, result: Decorrelation, R: Array, arithmetic: Arithmetic) -> None:
        B, self.weights = require_fields(result, len(R))
        super().__init__(result.T, B, result.rho_min, R, arithmetic)
        self.correlation = arithmetic.enclosure(self.gram)
        self.misreported = arithmetic.enclosure(self.gram, result.correlation).size()
        off = self.defect.size()
        np.fill_diagonal(off, 0.0)
        self.largest = off.max(axis=0, initial=0.0)
        self.worst = float(self.largest.max(initial=0.0))
        self.residual = residual(result.criterion, self.correlation, self.weights)
