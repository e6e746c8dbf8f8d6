"""Newton steps for the outputs when the dual has spoken: N, λ and κ are given, U is wanted.

Where N is singular, most outputs are not determined by the dual, but their frame operator is:
``UUᵀ = N + νI``. With ``S`` the change of the multiplier of that equation, every output moves by

    du_j = (N + κ_j I + εI)⁻¹ (S u_j - z_j),     z_j = (N + κ_j I) u_j - λ_j a_j,

less the parts that would change its length, and its fidelity at the rim of the cap. S solves a
linear system of the order of N, well conditioned, in a few products of size r × r × p. Outputs that
the dual determines (κ_j > 0) go where it says, and the others make up for the frame operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral.core.arrays import Array, column_dots, plus_diagonal, to_device
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.singular.caps import on_caps
from skcoral.solvers.singular.descent import squares
from skcoral.solvers.singular.dual import FrameDual
from skcoral.solvers.singular.point import FramePoint

_SOFTENING = 1e-3  # ε, relative to ν = (p - tr N)/r, of the first step
_RIM = 1e-9  # above the floor, where an output still counts as at the rim
_PROGRESS = 0.5  # of the gap, that a step has to leave at most
_LEAST_SOFTENING = 1e-6
_PARALLEL = 1e-12  # height of the rim at which an output counts as equal to its source
_RTOL = 1e-2  # relative residual of the inner conjugate gradients
_INNER = 20  # of their steps at most


def newton_outputs(
    U: Any, floors: Array, dual: FrameDual, *, goal: float, max_iter: int = 20
) -> tuple[Any, float, int]:
    """Bring the feasible ``U`` towards the bound of ``dual``, as far as Newton's method goes.

    ``goal`` is relative to ``max(1, bound)``. Returns the best outputs met, their sum of squares,
    and the number of steps.
    """
    best, value, bound = U, squares(U), dual.bound
    V, softening = dual.Q.T @ U, _SOFTENING
    count = 0
    while count < max_iter and value - bound > goal * max(1.0, bound):
        left = value - bound
        V = on_caps(dual.point.B, _moved(dual, V, floors, softening), floors)
        reached = squares(V)
        if reached < value:
            best, value = dual.Q @ V, reached
        count += 1
        if count > 1 and value - bound > _PROGRESS * left:
            break
        softening = max(0.1 * softening, _LEAST_SOFTENING)
    return best, value, count


def _moved(dual: FrameDual, V: Any, floors: Array, softening: float) -> Any:
    """The outputs ``V``, in the eigenbasis of N, after one step."""
    point, (r, p) = dual.point, V.shape
    nu = (p - float(point.n.sum())) / r
    pinned = floors >= 1.0
    tangent = _Tangent(point, V, floors, softening * max(nu, float(point.n.mean())))
    z = to_device(point.n[:, None], V) * V + to_device(point.kappa[None, :], V) * V
    z = z - to_device(np.where(pinned, 0.0, point.lam)[None, :], V) * point.B
    own = tangent.project(-1.0 * z)
    Y = own @ V.T
    missing = plus_diagonal(-1.0 * (V @ V.T + Y + Y.T), point.n + nu)
    S, _, _ = conjugate_gradient(
        tangent.apply, missing, lambda Z: Z / tangent.diagonal, rtol=_RTOL, max_iter=_INNER
    )
    return V + own + tangent.project(S @ V)


class _Tangent:
    """Moves of the outputs along the sphere, and along the rim of the caps where they are at it."""

    def __init__(self, point: FramePoint, V: Any, floors: Array, softening: float) -> None:
        B = point.B
        free = to_device((floors < 1.0).astype(np.float64)[None, :], V)
        self._V = V
        self._E = free / (to_device(point.n[:, None], V) + to_device(point.kappa + softening, V))
        # normal directions in the metric of E, orthogonal to each other
        self._along = self._E * V
        length = column_dots(V, self._along)
        overlap = column_dots(B, self._along) / np.where(length > 0.0, length, 1.0)
        self._rim = self._E * B - to_device(overlap[None, :], V) * self._along
        height = column_dots(B, self._rim)
        at_rim = (column_dots(B, V) <= floors + _RIM) & (height > _PARALLEL * length)
        self._per_length = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)
        self._per_height = np.where(at_rim, 1.0 / np.where(at_rim, height, 1.0), 0.0)
        cross = self._E @ (V * V).T
        self.diagonal = 1.0 + cross + cross.T

    def project(self, X: Any) -> Any:
        """``(N + κ_j I + εI)⁻¹ x_j`` in the tangent space, for all columns."""
        s = column_dots(self._along, X) * self._per_length
        t = column_dots(self._rim, X) * self._per_height
        return (
            self._E * X
            - to_device(s[None, :], X) * self._along
            - to_device(t[None, :], X) * self._rim
        )

    def apply(self, S: Any) -> Any:
        """How the frame operator changes with ``S``, and S itself."""
        Y = self.project(S @ self._V) @ self._V.T
        return S + Y + Y.T
