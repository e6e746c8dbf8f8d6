"""What the bound (★r) pays for a matrix S, made smooth by a barrier.

For Gram matrices G of rank r, ``⟨S, G⟩ - ½‖G‖²`` is at most half the maximum of ``⟨Z, S²⟩`` over
the projections Z of rank r, the sum of the r largest squares of eigenvalues of S. For r = p - 1,
``Z = I - wwᵀ`` with a unit vector w that G maps to zero, and w may be held in slabs
``lo ≤ vᵀw ≤ hi``: with ``M = ½S² + ηI + Σ μ vvᵀ ≻ 0``, ``μ ≥ 0`` and ``z = Σ μ ½(lo + hi) v`` the
penalty is

    ½‖S‖² + η + zᵀM⁻¹z - Σ μ lo·hi .

A penalty has multipliers ``y`` of its own: none, or μ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.branching import Slab


class SmoothPenalty(Protocol):
    """The penalty at one point (S, y), with its derivatives.

    ``value`` is the penalty and ``merit`` the smooth one; ``gradient`` and ``on_y`` are the
    derivatives of the latter.
    """

    value: float
    merit: float
    gradient: Array
    on_y: Array

    def apply(self, V: Array, y: Array) -> tuple[Array, Array]:
        """The second derivative of the smooth penalty times a step of S and y, or a stack."""

    def diagonal_in(self, basis: Array) -> Array:
        """About the diagonal of that in S, in an orthonormal basis."""


class LargestSquares:
    """Half the sum of the r largest squares of eigenvalues."""

    first = np.zeros(0)

    def __init__(self, r: int) -> None:
        self.r = r

    def at(self, S: Array, y: Array, tau: float) -> _SpectralPenalty:  # noqa: D102
        return _SpectralPenalty(S, self.r, tau)


class _SpectralPenalty:
    """Barriers of weight τ for Z and ``I - Z``, both with the eigenvectors of S."""

    on_y = np.zeros(0)

    def __init__(self, S: Array, r: int, tau: float) -> None:
        s, self.Q = np.linalg.eigh(S)
        squares = 0.5 * s * s
        z, rest = occupations(squares, r, tau)
        self.value = float(np.sort(squares)[-r:].sum())
        self.merit = float(z @ squares + tau * (np.log(z) + np.log(rest)).sum())
        self.gradient = (self.Q * (z * s)) @ self.Q.T
        # (z_a - z_b)/(½s_a² - ½s_b²), without a difference
        slopes = 1.0 / (tau * (1.0 / np.outer(z, z) + 1.0 / np.outer(rest, rest)))
        self._between = 0.5 * np.add.outer(z, z) + 0.25 * np.add.outer(s, s) ** 2 * slopes
        own = np.diag(slopes)
        self._common = own * s / np.sqrt(own.sum())

    def apply(self, V: Array, y: Array) -> tuple[Array, Array]:
        E = self.Q.T @ V @ self.Q
        image, own = self._between * E, np.arange(len(self.Q))
        image[..., own, own] -= (E[..., own, own] @ self._common)[..., None] * self._common
        return self.Q @ image @ self.Q.T, y

    def diagonal_in(self, basis: Array) -> Array:
        turned = (basis.T @ self.Q) ** 2
        return np.asarray(turned @ self._between @ turned.T)


def occupations(w: Array, r: int, tau: float) -> tuple[Array, Array]:
    """The maximiser z of ``Σ z_i w_i + τ Σ (log z_i + log(1 - z_i))``, ``Σ z_i = r``, and 1 - z.

    Without the barrier it is one for the r largest ``w_i`` and zero for the others.
    """

    def at(eta: float) -> tuple[Array, Array]:
        d = (w - eta) / tau
        smaller = 2.0 / (2.0 + np.abs(d) + np.hypot(d, 2.0))  # of z and 1 - z
        below = d < 0.0
        return np.where(below, smaller, 1.0 - smaller), np.where(below, 1.0 - smaller, smaller)

    lo, hi = float(w.min()) - 2 * tau * (len(w) + 1), float(w.max()) + 2 * tau * (len(w) + 1)
    eta = float(np.sort(w)[::-1][r - 1 : r + 1].mean())
    for _ in range(200):
        z, rest = at(eta)
        over = float(z.sum()) - r
        lo, hi = (eta, hi) if over > 0.0 else (lo, eta)
        step = over * tau / float((1.0 / (1.0 / z**2 + 1.0 / rest**2)).sum())
        new = eta + step if lo < eta + step < hi else 0.5 * (lo + hi)
        if abs(new - eta) <= 1e-15 * max(1.0, abs(eta)):
            break
        eta = new
    return z, rest


class NullVector:
    """The penalty for r = p - 1, with w in slabs; ``y`` is μ, and η is the best for S and μ."""

    def __init__(self, slabs: Sequence[Slab]) -> None:
        self.V = np.array([slab.direction for slab in slabs])
        self.lo, self.hi = (np.array([getattr(s, end) for s in slabs]) for end in ("lo", "hi"))
        self.middle = 0.5 * (self.lo + self.hi)
        self.first = np.full(len(slabs), 0.1)

    def at(self, S: Array, y: Array, tau: float) -> SlabPenalty | None:  # noqa: D102
        return SlabPenalty(self, S, y, tau) if (y > 0.0).all() else None


class SlabPenalty:
    """Barriers of weight τ for M and μ.

    Attributes
    ----------
    eta : float
        Where the second moments of w have trace one, so that the penalty is convex in S.
    w, second : ndarray of shape (p,) and (p, p)
        Mean ``M⁻¹z`` and second moments ``wwᵀ + τM⁻¹`` of the null vector.
    """

    def __init__(self, slabs: NullVector, S: Array, mu: Array, tau: float) -> None:
        V, middle, ends = slabs.V, slabs.middle, slabs.lo * slabs.hi
        values, Q = np.linalg.eigh(0.5 * S @ S + (V.T * mu) @ V)
        z = (mu * middle) @ V @ Q
        self.eta = _with_unit_trace(values, z, tau)
        shifted = values + self.eta
        self._slabs, self._S, self._mu, self._tau = slabs, S, mu, tau
        self._W = (Q / shifted) @ Q.T
        self.w = Q @ (z / shifted)
        self.second = np.outer(self.w, self.w) + tau * self._W
        self.value = float(0.5 * np.sum(S * S) + self.eta + np.sum(z * z / shifted) - mu @ ends)
        logs = float(np.log(shifted).sum()) + float(np.log(mu).sum())
        self.merit = self.value - tau * logs
        self.gradient = S - 0.5 * (self.second @ S + S @ self.second)
        self.on_y = -(self._along(self.second, self.w) + ends + tau / mu)
        moved = np.outer(self._W @ self.w, self.w)
        self._by_eta = -(moved + moved.T + tau * self._W @ self._W), -self._W @ self.w

    def _along(self, second: Array, mean: Array) -> Array:
        V = self._slabs.V
        held = np.sum((V @ second) * V, axis=-1) - 2.0 * self._slabs.middle * (mean @ V.T)
        return np.asarray(held)

    def apply(self, V: Array, y: Array) -> tuple[Array, Array]:  # noqa: D102
        D, S, W, w, tau = self._slabs.V, self._S, self._W, self.w, self._tau
        moved = _symmetric(S @ V) + (D.T * y[..., None, :]) @ D
        dw = ((y * self._slabs.middle) @ D - moved @ w) @ W
        dP = 2.0 * _symmetric(dw[..., None] * w) - tau * W @ moved @ W
        by_eta, mean_by_eta = self._by_eta
        eta = -np.trace(dP, axis1=-2, axis2=-1) / np.trace(by_eta)
        dP, dw = dP + np.multiply.outer(eta, by_eta), dw + np.multiply.outer(eta, mean_by_eta)
        image = V - _symmetric(self.second @ V + dP @ S)
        return image, tau * y / self._mu**2 - self._along(dP, dw)

    def diagonal_in(self, basis: Array) -> Array:  # noqa: D102
        s, Q = np.linalg.eigh(self._S)
        P, W = (np.einsum("ia,ij,ja->a", Q, X, Q) for X in (self.second, self._W))
        crossed = np.outer(W, (Q.T @ self.w) ** 2)
        between = (
            1.0
            - 0.5 * np.add.outer(P, P)
            + 0.25 * np.add.outer(s, s) ** 2 * (self._tau * np.outer(W, W) + crossed + crossed.T)
        )
        turned = (basis.T @ Q) ** 2
        return np.asarray(turned @ between @ turned.T)


def _symmetric(X: Array) -> Array:
    return np.asarray(0.5 * (X + np.swapaxes(X, -1, -2)))


def _with_unit_trace(values: Array, z: Array, tau: float) -> float:
    """The η with ``Σ z_i²/(k_i + η)² + τ/(k_i + η) = 1``, for ascending k_i."""
    gap = values - values[0]
    # the left side falls in η: between where one term alone is above one and where all are below
    lo = 0.5 * tau
    hi = float(np.linalg.norm(z)) + tau * len(z) + 1.0
    x = hi
    for _ in range(200):
        shifted = gap + x
        over = float(np.sum(z * z / shifted**2 + tau / shifted)) - 1.0
        slope = -float(np.sum(2.0 * z * z / shifted**3 + tau / shifted**2))
        lo, hi = (x, hi) if over > 0.0 else (lo, x)
        new = x - over / slope
        new = new if lo < new < hi else float(np.sqrt(lo * hi))
        if abs(new - x) <= 1e-15 * x:
            break
        x = new
    return x - float(values[0])
