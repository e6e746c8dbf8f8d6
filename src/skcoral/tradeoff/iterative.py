"""The Newton equations of the interior-point method without forming them, for large systems.

Conjugate gradients on symmetric matrices. Pairs that the criterion pins down (stiff ones) are
preconditioned one by one, the others in the eigenbasis of H, as for the smooth criterion.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.tradeoff.dual import DualPoint
from skcoral.tradeoff.pairs import Response

Array = NDArray[np.float64]

_RTOL = 1e-8  # the last steps of the interior-point method need directions this good


class IterativeSystem:
    """Same questions as :class:`skcoral.tradeoff.linear.NewtonSystem`, answered by iteration."""

    def __init__(
        self, R: Array, point: DualPoint, barrier: Array, tau: float, stiffness: Array
    ) -> None:
        p = len(R)
        self.upper = np.triu_indices(p, 1)
        self.B, self.Ct = point.B, np.ascontiguousarray(point.C.T)
        self.G = point.G + 0.5 * tau * point.B
        self.stiffness = self._symmetric(stiffness)
        self.held = np.isinf(barrier)
        K = R * point.B
        K[np.diag_indices(p)] += np.where(self.held, 0.0, barrier)
        K[self.held, :] = 0.0
        K[:, self.held] = 0.0
        K[self.held, self.held] = 1.0
        self.factor, info = sla.lapack.dpotrf(K, lower=1)
        if info != 0:
            raise sla.LinAlgError("R∘H⁻¹ is not positive definite to rounding")
        b, g = np.diag(self.B), np.diag(self.G)
        own = np.outer(g, b) + np.outer(b, g) + 2.0 * self.G * self.B
        self.pinned = self.stiffness > 3.0 * own
        self.single = 1.0 / (own + self.stiffness)
        h, self.Q = np.linalg.eigh(point.H)
        self.Qt = np.ascontiguousarray(self.Q.T)
        h = np.maximum(h, 1e-15 * h[-1])
        # The diagonal of the operator in the eigenbasis, stiffness of the free pairs included.
        spread = self.Q**2
        level = spread.T @ np.where(self.pinned, 0.0, self.stiffness) @ spread
        self.model = 1.0 / (1.0 / h[:, None] + 1.0 / h[None, :] + level + tau / np.outer(h, h))

    def _symmetric(self, values: Array) -> Array:
        M = np.zeros((len(self.B), len(self.B)))
        M[self.upper] = values
        return M + M.T

    def _respond(self, U: Array) -> Array:
        right = np.einsum("ki,ki->i", self.Ct, U)
        right[self.held] = 0.0
        return np.asarray(sla.lapack.dpotrs(self.factor, right, lower=1)[0])

    def _apply(self, V: Array) -> Array:
        U = V @ self.B
        Y: Array = self.G @ U - self.Ct @ (self._respond(U)[:, None] * self.B)
        return np.asarray(Y + Y.T + self.stiffness * V)

    def _precondition(self, V: Array) -> Array:
        free = np.where(self.pinned, 0.0, V)
        smooth: Array = self.Q @ ((self.Qt @ free @ self.Q) * self.model) @ self.Qt
        return np.where(self.pinned, V * self.single, smooth)

    def _conjugate_gradients(self, right: Array, rtol: float) -> Array:
        x = np.zeros_like(right)
        r = right
        z = self._precondition(r)
        d = z
        rz = float(np.vdot(r, z))
        goal = rtol**2 * rz
        for _ in range(500 + 10 * len(right)):
            if rz <= goal:
                break
            image = self._apply(d)
            bend = float(np.vdot(d, image))
            if not bend > 0.0:
                break
            step = rz / bend
            x = x + step * d
            r = r - step * image
            z = self._precondition(r)
            rz, before = float(np.vdot(r, z)), rz
            d = z + (rz / before) * d
        return 0.5 * (x + x.T)

    def multipliers(self, V: Array, missing: Array) -> Array:
        """``dλ`` that goes with ``dH = V`` when the fidelities are to change by ``missing``."""
        return self._respond(V @ self.B) + self._solve_multipliers(missing)

    def _solve_multipliers(self, right: Array) -> Array:
        right = np.where(self.held, 0.0, right)
        return np.asarray(sla.lapack.dpotrs(self.factor, right, lower=1)[0])

    def solve(self, right: Array, missing: Array, response: Response) -> tuple[Array, float]:
        """Solve for ``dH`` and the scalar of the criterion (0 if it has none)."""
        Y = self.Ct @ (self._solve_multipliers(missing)[:, None] * self.B)
        x = self._conjugate_gradients(right + Y + Y.T, _RTOL)
        if response.lever is None:
            return x, 0.0
        lever = self._symmetric(response.lever)
        y = self._conjugate_gradients(lever, _RTOL)
        gain = response.constant + float(np.vdot(lever, x))
        scalar = -gain / (response.bend - float(np.vdot(lever, y)))
        return x - scalar * y, scalar
