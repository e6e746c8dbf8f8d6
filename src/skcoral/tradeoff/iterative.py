"""The Newton equations of the interior-point method without forming them, for large systems.

Conjugate gradients on symmetric matrices, scaled by the diagonal of the equations: the pairs that
the criterion pins down and those it leaves to G differ by many orders of magnitude, and apart from
that the equations are well conditioned unless ``R`` is nearly singular.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.tradeoff.dual import DualPoint
from skcoral.tradeoff.linear import Unknowns, factorise_multipliers
from skcoral.tradeoff.pairs import Response

Array = NDArray[np.float64]


class IterativeSystem:
    """Same questions as :class:`skcoral.tradeoff.linear.NewtonSystem`, answered by iteration."""

    def __init__(
        self,
        R: Array,
        point: DualPoint,
        barrier: Array,
        tau: float,
        unknowns: Unknowns,
        stiffness: Array,
    ) -> None:
        self.unknowns = unknowns
        self.B, self.Ct = point.B, np.ascontiguousarray(point.C.T)
        self.G = point.G + 0.5 * tau * point.B
        self.stiffness = unknowns.matrix(stiffness)
        self.held = np.isinf(barrier)
        self.factor = factorise_multipliers(R * point.B, barrier)
        b, g = np.diag(self.B), np.diag(self.G)
        own = np.outer(g, b) + np.outer(b, g) + 2.0 * self.G * self.B
        own[np.diag_indices_from(own)] *= 0.5
        own += self.stiffness
        # Zero where the entry of H is not unknown: those stay out of every vector.
        mask = unknowns.matrix(np.ones(len(unknowns.rows)), np.ones(len(unknowns.own)))
        self.scale = np.where(mask > 0, 1.0 / np.where(mask > 0, own, 1.0), 0.0)
        self.mask = None if mask.all() else mask

    def _respond(self, U: Array) -> Array:
        right = np.einsum("ki,ki->i", self.Ct, U)
        right[self.held] = 0.0
        return np.asarray(sla.lapack.dpotrs(self.factor, right, lower=1)[0])

    def _apply(self, V: Array) -> Array:
        U = V @ self.B
        Y: Array = self.G @ U - self.Ct @ (self._respond(U)[:, None] * self.B)
        Y = Y + Y.T + self.stiffness * V
        return Y if self.mask is None else Y * self.mask

    def multipliers(self, V: Array, missing: Array) -> Array:
        """``dλ`` that goes with ``dH = V`` when the fidelities are to change by ``missing``."""
        return self._respond(V @ self.B) + self._solve_multipliers(missing)

    def _solve_multipliers(self, right: Array) -> Array:
        return np.asarray(sla.lapack.dpotrs(self.factor, right, lower=1)[0])

    def solve(
        self, right: Array, missing: Array, response: Response, *, accuracy: float, limit: int
    ) -> tuple[Array, float] | None:
        """Solve for ``dH`` and the scalar of the criterion; None if ``limit`` steps do not do it.

        ``accuracy`` is the norm of what may be left over.
        """
        Y = self.Ct @ (self._solve_multipliers(missing)[:, None] * self.B)
        right = right + Y + Y.T
        lever, weight = None, 0.0
        if response.lever is not None:
            # With the scalar eliminated, the equations gain a positive rank-one term.
            lever, weight = self.unknowns.matrix(response.lever), -1.0 / response.bend
            right = right - (weight * response.constant) * lever
        if self.mask is not None:
            right = right * self.mask
        x = np.zeros_like(right)
        r = right
        z = self.scale * r
        d = z
        rz = float(np.vdot(r, z))
        for _ in range(limit):
            if np.linalg.norm(r) <= accuracy:
                break
            image = self._apply(d)
            if lever is not None:
                image += (weight * float(np.vdot(lever, d))) * lever
            bend = float(np.vdot(d, image))
            if not bend > 0.0:
                return None
            step = rz / bend
            x = x + step * d
            r = r - step * image
            z = self.scale * r
            rz, before = float(np.vdot(r, z)), rz
            d = z + (rz / before) * d
        else:
            return None
        scalar = 0.0
        if lever is not None:
            scalar = weight * (response.constant + float(np.vdot(lever, x)))
        return x, scalar
