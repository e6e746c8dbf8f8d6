"""What a transformation does, enclosed: the attained side of every claim."""

from __future__ import annotations

import numpy as np

from skcoral.certificates.enclosures import Array, exactly, up
from skcoral.certificates.inequalities import along, floors_of, residual, scaled_floors
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import require_fields
from skcoral.results import Decorrelation


class Attained:
    """What ``T`` does: correlations, fidelities and residual, enclosed."""

    def __init__(self, result: Decorrelation, R: Array, arithmetic: Arithmetic) -> None:
        self.B, self.weights = require_fields(result, len(R))
        self.k = len(result.names)
        image = arithmetic.product(R, result.T)
        gram = arithmetic.apply(np.ascontiguousarray(result.T.T), image)
        self.correlation = arithmetic.enclosure(gram)
        self.defect = arithmetic.enclosure(gram, np.eye(self.k))
        self.misreported = arithmetic.enclosure(gram, result.correlation).size()
        self.length = exactly(np.ones(self.k))
        self.floors = floors_of(result.rho_min)
        if result.anchors is not None:
            own = arithmetic.product(R, self.B)
            self.length = along(arithmetic, self.B, own).sqrt()
            self.floors = scaled_floors(arithmetic, R, self.B, result.rho_min)
        self.fidelity = along(arithmetic, self.B, image) / self.length
        off = self.defect.size()
        np.fill_diagonal(off, 0.0)
        self.worst = float(off.max(initial=0.0))
        self.residual = residual(result.criterion, self.correlation, self.weights)

    def scaled(self, multipliers: Array) -> Array:
        """Multipliers of the anchors as given instead of those of unit length, never smaller."""
        if np.array_equal(self.length.lower, np.ones(self.k)):
            return multipliers
        return np.where(multipliers > 0, up(up(multipliers / self.length.lower)), 0.0)
