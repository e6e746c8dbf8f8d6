"""One point of the dual in N: the least ``uᵀNu`` on every cap, its value and its derivatives.

With ``A`` (r × p, unit columns) a factor of the correlation matrix and U the outputs in the same r
dimensions, the sum of squares is ``½(‖UUᵀ‖² - p)``, and every ``N ⪰ 0`` (r × r) proves

    ½(‖UUᵀ‖² - p)  ≥  q(N) = (p²/r - p)/2 - (p/r) tr N - ½‖dev N‖² + Σ_j c_j(N)

where ``dev N = N - (tr N / r) I`` and ``c_j(N)`` is the least ``uᵀNu`` with ``‖u‖ ≤ 1`` and
``a_jᵀu ≥ ρ_j``. Its minimiser is ``u_j = λ_j (N + κ_j I)⁻¹ a_j``; one scalar equation in κ_j puts
it on the unit sphere. q is concave and its gradient is ``UUᵀ - dev N - (p/r) I``. Everything here
is written in the eigenbasis of N, where ``(N + κI)⁻¹`` is elementwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import (
    Array,
    column_dots,
    column_sums,
    diagonal,
    plus_diagonal,
    to_device,
)

_ROOT_TOL = 1e-12  # relative step of κ that ends Newton's method, after three to six


@dataclass(frozen=True)
class FramePoint:
    """Values at ``N = Q diag(n) Qᵀ``; matrices are in the eigenbasis ``Q``."""

    n: Array  # eigenvalues of N, positive
    B: Any  # QᵀA
    E: Any  # 1 / (n_a + κ_j); zero in columns with a floor of one, which cannot move
    U: Any  # the minimisers u_j
    lam: Array  # multipliers of the floors, infinite at a floor of one
    kappa: Array  # multipliers of the unit norms
    phi: Array  # a_jᵀ(N + κ_jI)⁻¹a_j
    F: Any  # UUᵀ
    excess: float  # what q(N) has above the bound of the rank, to the accuracy of N
    barrier: float  # weight of Σ log κ_j
    logs: float  # that sum

    @property
    def gradient(self) -> Any:
        """``UUᵀ - dev N - (p/r) I``, in the eigenbasis."""
        r, p = self.B.shape
        return plus_diagonal(self.F + 0.0, -self.n + self.n.mean() - p / r)


def frame_point(
    n: Array, B: Any, floors: Array, *, barrier: float = 0.0, kappa: Array | None = None
) -> FramePoint:
    """Evaluate the dual where N has the eigenvalues ``n``, and the factor is ``B`` in their basis.

    ``barrier`` is the weight of ``Σ log κ_j``, which keeps every ‖u_j‖ below one and the dual twice
    differentiable; the bound is valid with any. ``kappa`` is a first guess.
    """
    r, p = B.shape
    pinned = floors >= 1.0
    kappa, E, phi = _norm_roots(n, B, floors, barrier, kappa)
    lam = np.where(pinned, np.inf, floors / phi)
    factor = np.where(pinned, 0.0, lam)
    U = to_device(factor[None, :], B) * (E * B)
    least = factor**2 * phi - kappa
    if pinned.any():
        stay = to_device(pinned.astype(np.float64)[None, :], B)
        E = E * (1.0 - stay)
        U = U + stay * B
        energy = column_dots(B, to_device(n[:, None], B) * B)
        least = np.where(pinned, energy, least)
    F = U @ U.T
    spread = float(n @ n) - float(n.sum()) ** 2 / r
    excess = float(least.sum()) - p / r * float(n.sum()) - 0.5 * spread
    logs = float(np.log(np.where(pinned, 1.0, kappa)).sum()) if barrier else 0.0
    return FramePoint(n, B, E, U, lam, kappa, phi, F, excess, barrier, logs)


def _norm_roots(
    n: Array, B: Any, floors: Array, barrier: float, start: Array | None
) -> tuple[Array, Any, Array]:
    """The κ_j with ``‖u_j‖² = 1 - τ/κ_j``, then ``1/(n + κ)`` and ``a_jᵀ(N+κ_jI)⁻¹a_j``.

    With weights ``b_a²`` the values ``e_a = 1/(n_a + κ)`` have mean m and variance v, and the
    equation says ``g(κ) = ρ²v/m² + τ/κ = 1 - ρ²``. ``1/m`` is κ plus a constant, less
    ``∫dσ(x)/(x + κ)`` for a measure σ, so that ``v/m² = ∫dσ(x)/(x + κ)²``: ``1/√g`` is a power mean
    of concave functions of κ, and concave. Newton's method on it comes from below, after one step
    at the latest, and never passes the root. Without a barrier κ is zero where the norm is below
    one already.
    """
    live = (floors > 0.0) & (floors < 1.0)
    rho = np.where(live, floors, 0.5)
    rest = (1.0 - rho) * (1.0 + rho)
    low = np.where(live, barrier / rest, barrier)
    kappa = low if start is None else np.where(live, np.maximum(start, low), low)
    W, rows, moving, rose = B * B, to_device(n[:, None], B), live, np.zeros_like(live)
    while True:
        E = 1.0 / (rows + to_device(kappa[None, :], B))
        WE = W * E
        m = column_sums(WE)
        if not moving.any():
            return kappa, E, m
        spread, WE2 = E - to_device(m[None, :], B), WE * E
        v, used = column_dots(W * spread, spread), barrier / np.maximum(kappa, 1e-300)
        g = rho**2 * v / m**2 + used
        # derivatives by κ: m' = -Σ w e², v' = -2 Σ w e² (e - m)
        fall = column_dots(WE2, spread) - v * column_sums(WE2) / m
        fall = 2.0 * rho**2 * fall / m**2 + used / np.maximum(kappa, 1e-300)
        move = 2.0 * g * (np.sqrt(g / rest) - 1.0) / np.maximum(fall, 1e-300)
        new = np.maximum(kappa + move, low)
        # rounding alone leads down again
        moving = moving & ~(rose & (new < kappa)) & (np.abs(new - kappa) > _ROOT_TOL * kappa)
        rose = new > kappa
        kappa = np.where(moving, new, kappa)


class Curvature:
    """Minus the second derivative of q and of its barriers: two products of size r × r × p.

    With ``X = VU`` the minimisers change by ``-E∘X`` plus what keeps ``a_jᵀu_j`` and ``‖u_j‖``:
    multiples of ``u_j`` and of ``u_j ∘ (e_j - ē_j)``, which are orthogonal in the metric of E.
    """

    def __init__(self, point: FramePoint, tau: float) -> None:
        self._U, self._E = point.U, point.E
        U, E = point.U, point.E
        live = np.isfinite(point.lam) & (point.lam > 0.0)
        lam = np.where(live, point.lam, 1.0)
        # Σ u²/e, and the mean of e with the weights u²/e
        floor = lam**2 * point.phi
        mean = column_dots(U, U) / floor
        spread = E - to_device(mean[None, :], U)
        self._C = U * spread
        size = lam * column_dots(point.B * self._C, spread)  # Σ C²/e, where u/e = λb
        on_sphere = live & (point.kappa > 0.0)
        soft = 0.5 * point.barrier / np.where(on_sphere, point.kappa, 1.0) ** 2
        size = np.where(on_sphere, size + soft, 0.0)
        self._inverse_floor = np.where(live, 1.0 / floor, 0.0)
        self._inverse_norm = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
        square = U * U
        cross = E @ square.T
        self._barrier = to_device(tau / np.outer(point.n, point.n), U)
        self.diagonal = 1.0 + cross + cross.T + self._barrier

    def apply(self, V: Any) -> Any:
        """One product with the operator."""
        X = V @ self._U
        s = column_dots(self._U, X) * self._inverse_floor
        t = column_dots(self._C, X) * self._inverse_norm
        dU = self._E * X - to_device(s[None, :], X) * self._U - to_device(t[None, :], X) * self._C
        Y = dU @ self._U.T
        out = V + Y + Y.T
        out = plus_diagonal(out, -float(diagonal(V).sum()) / V.shape[0])
        return out + self._barrier * V
