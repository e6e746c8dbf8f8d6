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
from numpy.typing import NDArray

from skcoral._arrays import beside, column_dots, column_sums, diagonal, plus_diagonal

Array = NDArray[np.float64]

_ROOT_STEPS = 60  # of Newton's method for κ; it takes three to six
_ROOT_TOL = 1e-14


def welch(p: int, r: int) -> float:
    """The least sum of squared correlations of p unit vectors in r dimensions."""
    return 0.5 * p * (p - r) / r


@dataclass(frozen=True)
class FramePoint:
    """Values at ``N = Q diag(n) Qᵀ``; matrices are in the eigenbasis ``Q``.

    Attributes
    ----------
    n : ndarray of shape (r,)
        Eigenvalues of N, positive.
    B : array of shape (r, p)
        ``QᵀA``.
    E : array of shape (r, p)
        ``1 / (n_a + κ_j)``; zero in columns with a floor of one, which cannot move.
    U : array of shape (r, p)
        The minimisers ``u_j``, in the eigenbasis.
    lam, kappa : ndarray of shape (p,)
        Multipliers of the floors (infinite at a floor of one) and of the unit norms.
    phi : ndarray of shape (p,)
        ``a_jᵀ(N + κ_jI)⁻¹a_j``.
    F : array of shape (r, r)
        ``UUᵀ``.
    excess : float
        What q(N) has above the bound of the rank, to the accuracy of N.
    """

    n: Array
    B: Any
    E: Any
    U: Any
    lam: Array
    kappa: Array
    phi: Array
    F: Any
    excess: float

    @property
    def value(self) -> float:
        """q(N), a lower bound."""
        r, p = self.B.shape
        return welch(p, r) + self.excess

    @property
    def gradient(self) -> Any:
        """``UUᵀ - dev N - (p/r) I``, in the eigenbasis."""
        r, p = self.B.shape
        return plus_diagonal(self.F + 0.0, -self.n + self.n.mean() - p / r)


def frame_point(n: Array, B: Any, floors: Array, kappa: Array | None = None) -> FramePoint:
    """Evaluate the dual where N has the eigenvalues ``n``; ``kappa`` is a first guess."""
    r, p = B.shape
    pinned = floors >= 1.0
    kappa, E, phi = _norm_roots(n, B, floors, kappa)
    lam = np.where(pinned, np.inf, floors / phi)
    factor = np.where(pinned, 0.0, lam)
    U = beside(factor[None, :], B) * (E * B)
    if pinned.any():
        stay = beside(pinned.astype(np.float64)[None, :], B)
        E = E * (1.0 - stay)
        U = U + stay * B
    F = U @ U.T
    c = float(n @ diagonal(F))
    spread = float(n @ n) - float(n.sum()) ** 2 / r
    excess = c - p / r * float(n.sum()) - 0.5 * spread
    return FramePoint(n=n, B=B, E=E, U=U, lam=lam, kappa=kappa, phi=phi, F=F, excess=excess)


def _norm_roots(
    n: Array, B: Any, floors: Array, start: Array | None
) -> tuple[Array, Any, Array]:
    """The κ_j ≥ 0 that bring ``‖u_j‖`` down to one, ``1/(n + κ)`` and ``a_jᵀ(N+κ_jI)⁻¹a_j``.

    With weights ``b_a²`` the values ``e_a = 1/(n_a + κ)`` have mean m and standard deviation s, and
    ``‖u‖ = 1`` says ``m/s = ρ/√(1-ρ²)``: m/s is increasing and nearly linear in κ, so that
    Newton's method takes a few steps, also for floors next to one.
    """
    W = B * B
    rho = np.where(floors >= 1.0, 0.0, floors)
    goal = rho / np.sqrt((1.0 - rho) * (1.0 + rho))
    column = beside(n[:, None], B)
    kappa = np.zeros(len(floors)) if start is None else start.copy()
    low, high = np.zeros_like(kappa), np.full_like(kappa, np.inf)
    scale = float(n.max())
    for _ in range(_ROOT_STEPS):
        E = 1.0 / (column + beside(kappa[None, :], B))
        WE = W * E
        m = column_sums(WE)
        spread = E - beside(m[None, :], B)
        v = column_dots(W * spread, spread)
        s = np.sqrt(v)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(s > 1e-14 * m, m / s, np.inf)
            # derivatives by κ: m' = -Σ w e², v' = -2 Σ w e² (e - m)
            E2 = WE * E
            dm = -column_sums(E2)
            dv = -2.0 * column_dots(E2, spread)
            slope = dm / s - 0.5 * m * dv / (v * s)
            move = (goal - ratio) / slope
        low = np.where(ratio < goal, np.maximum(low, kappa), low)
        high = np.where(ratio >= goal, np.minimum(high, kappa), high)
        done = (np.abs(ratio - goal) <= _ROOT_TOL * np.maximum(goal, 1.0)) | (high <= 0.0)
        if done.all():
            break
        new = kappa + move
        middle = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * kappa + scale)
        bad = ~np.isfinite(new) | (new < low) | (new > high)
        new = np.where(bad & (new < low) & (low == 0.0), 0.0, np.where(bad, middle, new))
        settled = done | (np.abs(new - kappa) <= 4e-16 * np.abs(kappa))
        if settled.all():
            break
        kappa = np.where(settled, kappa, new)
    return kappa, E, m


class Curvature:
    """Minus the second derivative of ``q + τ log det N``: two products of size r × r × p.

    With ``X = VU`` the minimisers change by ``-E∘X`` plus what keeps ``a_jᵀu_j`` and ``‖u_j‖``:
    multiples of ``u_j`` and of ``u_j ∘ (e_j - ē_j)``, which are orthogonal in the metric of E.
    """

    def __init__(self, point: FramePoint, tau: float) -> None:
        self._U, self._E = point.U, point.E
        U, E = point.U, point.E
        live = np.isfinite(point.lam) & (point.lam > 0.0)
        held = live & (point.kappa > 0.0)
        lam = np.where(live, point.lam, 1.0)
        # Σ u²/e, and the mean of e with the weights u²/e
        floor = lam**2 * point.phi
        mean = column_dots(U, U) / floor
        spread = E - beside(mean[None, :], U)
        self._C = U * spread
        size = lam * column_dots(point.B * self._C, spread)  # Σ C²/e, where u/e = λb
        self._inverse_floor = np.where(live, 1.0 / floor, 0.0)
        usable = held & (size > 0.0)
        self._inverse_norm = np.where(usable, 1.0 / np.where(usable, size, 1.0), 0.0)
        square = U * U
        cross = E @ square.T
        self._barrier = beside(tau / np.outer(point.n, point.n), U)
        self.diagonal = 1.0 + cross + cross.T + self._barrier

    def apply(self, V: Any) -> Any:
        """One product with the operator."""
        X = V @ self._U
        s = column_dots(self._U, X) * self._inverse_floor
        t = column_dots(self._C, X) * self._inverse_norm
        dU = self._E * X - beside(s[None, :], X) * self._U - beside(t[None, :], X) * self._C
        Y = dU @ self._U.T
        out = V + Y + Y.T
        out = plus_diagonal(out, -float(diagonal(V).sum()) / V.shape[0])
        return out + self._barrier * V
