"""The frame relaxation: a rigorous lower bound for every support, from one concave problem.

``D2 = ½‖F − I‖²`` with ``F = Σ_k w_k w_kᵀ``. Replacing ``u_k u_kᵀ`` by any ``X_k ⪰ 0`` with
``tr X_k = 1`` and ``(X_k)₁₁ ≥ ρ_k²`` makes the problem convex. For any symmetric M, η ≥ 0 and θ
with ``B_kᵀ M B_k − η_k e₁e₁ᵀ − θ_k I ⪰ 0`` its dual says

    D2 ≥ Σ_k (θ_k + η_k ρ_k²) − tr M − ½‖M‖²                      (frame bound)

and, because the nuclear norm of ``F − I`` is at most twice ``Σ_{i<j}|G_ij|``, for ``‖M‖₂ ≤ 1``

    Σ_{i<j}|G_ij| ≥ ½ [ Σ_k (θ_k + η_k ρ_k²) − tr M ].

The dual is maximised from inside by Newton steps on a logarithmic barrier, so every iterate is a
valid bound and the search may stop at any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg as sla

from skcoral._linalg import conjugate_gradient
from skcoral.results import Array
from skcoral.support.geometry import Caps

Norm = Literal["frobenius", "nuclear"]
# Blocks that couple θ and η to M, and the same with θ and η eliminated.
_Crosses = tuple[tuple[Array, Array], ...]

_SHRINK = 0.1
_CENTERED = 0.5
# Up to here a Newton system is factorised; beyond, it is solved by conjugate gradients.
DENSE_LIMIT = 60


@dataclass(frozen=True)
class FrameBound:
    """A dual point of the frame relaxation.

    Attributes
    ----------
    value : float
        The lower bound that it proves.
    M : ndarray of shape (p, p)
        Symmetric multiplier of ``F − I``, in the coordinates of the Cholesky factor of R.
    eta : ndarray of shape (p,)
        Multipliers of the squared floors.
    gap : float
        How far the value can be from the optimum of the relaxation.
    n_iter : int
        Newton steps.
    """

    value: float
    M: Array
    eta: Array
    gap: float
    n_iter: int


def block_forms(caps: Caps, M: Array, eta: Array) -> Array:
    """``B_kᵀ M B_k − η_k e₁e₁ᵀ`` for every column; padding is left at zero."""
    forms: Array = np.matmul(np.matmul(caps.frames, M), caps.frames.swapaxes(1, 2))
    forms[:, 0, 0] -= eta
    return forms


def block_minima(caps: Caps, M: Array, eta: Array) -> Array:
    """θ_k, the smallest eigenvalue of each block form."""
    forms = block_forms(caps, M, eta)
    padding = np.arange(caps.m)
    # Padding must never be the smallest: give it the largest value of the block.
    bound = np.abs(forms).sum(axis=2).max(axis=1)
    forms[:, padding, padding] += np.where(caps.valid, 0.0, bound[:, None])
    return np.asarray(np.linalg.eigvalsh(forms)[:, 0], dtype=np.float64)


def frame_value(caps: Caps, M: Array, eta: Array, norm: Norm = "frobenius") -> float:
    """The bound that a dual point proves, recomputed from nothing but the point."""
    theta = block_minima(caps, M, eta)
    linear = float(theta.sum() + eta @ caps.floors**2 - np.trace(M))
    if norm == "frobenius":
        return linear - 0.5 * float(np.sum(M * M))
    return 0.5 * linear / max(1.0, float(np.linalg.norm(M, 2)))


def frame_bound(
    caps: Caps,
    *,
    norm: Norm = "frobenius",
    start: Array | None = None,
    stop_at: float = np.inf,
    tol: float = 1e-9,
    max_iter: int = 200,
    on_iteration: Callable[[int, float], None] | None = None,
) -> FrameBound:
    """Maximise the dual of the frame relaxation.

    Parameters
    ----------
    caps : Caps
        The feasible set; a floor of 1 must come with a column of size one.
    norm : {"frobenius", "nuclear"}
        Bound D2 or the absolute sum.
    start : ndarray of shape (p, p), optional
        Symmetric M to start from, such as that of the least-norm bound.
    stop_at : float
        Stop as soon as the bound reaches this value.
    tol : float
        Stop when the bound is this close to its optimum, relative to its size.
    max_iter : int
        Largest number of Newton steps.
    on_iteration : callable, optional
        Called with the step and the best bound so far.
    """
    barrier = _Barrier(caps, norm)
    M = np.zeros((caps.p, caps.p)) if start is None else 0.9 * start
    if norm == "nuclear":
        M = M * min(1.0, 0.9 / max(float(np.linalg.norm(M, 2)), 1e-300))
    eta = np.full(caps.p, 1e-2) * barrier.floored
    width = 0.1
    theta = block_minima(caps, M, eta) - width
    tau = width / 3
    best = FrameBound(frame_value(caps, M, 0 * eta, norm), M, 0 * eta, np.inf, 0)
    for n_iter in range(1, max_iter + 1):
        step, decrement = barrier.newton(M, theta, eta, tau)
        M, theta, eta = barrier.move(M, theta, eta, tau, step, decrement)
        value = frame_value(caps, M, eta, norm)
        gap = barrier.order * tau
        if value > best.value:
            best = FrameBound(value, M, eta, gap, n_iter)
        if on_iteration is not None:
            on_iteration(n_iter, best.value)
        if best.value >= stop_at:
            break
        if decrement < _CENTERED:
            if gap <= tol * max(abs(best.value), 1e-3):
                break
            tau *= _SHRINK
    return best


class _Barrier:
    """τ-weighted logarithmic barrier of the dual, with exact Newton steps in (M, θ, η)."""

    def __init__(self, caps: Caps, norm: Norm) -> None:
        self.caps = caps
        self.nuclear = norm == "nuclear"
        self.floored = ((caps.floors > 0) & (caps.floors < 1)).astype(np.float64)
        self.order = int(caps.valid.sum() + self.floored.sum()) + (
            2 * caps.p if self.nuclear else 0
        )
        p = caps.p
        self.rows, self.columns = np.triu_indices(p)
        self.off = self.rows != self.columns
        self.unpadded = np.where(caps.valid, 0.0, 1.0)

    def slacks(self, M: Array, theta: Array, eta: Array) -> Array:
        """Block slack matrices, the identity on padding."""
        forms = block_forms(self.caps, M, eta)
        diagonal = np.arange(self.caps.m)
        forms[:, diagonal, diagonal] -= theta[:, None] * self.caps.valid
        forms[:, diagonal, diagonal] += self.unpadded
        return forms

    def value(self, M: Array, theta: Array, eta: Array, tau: float) -> float:
        """The barrier function to maximise; −inf outside."""
        on = self.floored > 0
        if np.any(eta[on] <= 0):
            return -np.inf
        try:
            logs = np.log(
                np.diagonal(np.linalg.cholesky(self.slacks(M, theta, eta)), axis1=1, axis2=2)
            ).sum()
            total = float(theta.sum() + eta @ self.caps.floors**2 - np.trace(M))
            total += tau * (2.0 * logs + np.log(eta[on]).sum())
            if not self.nuclear:
                return float(total - 0.5 * np.sum(M * M))
            identity = np.eye(self.caps.p)
            for ball in (identity - M, identity + M):
                total += 2.0 * tau * np.log(np.diag(np.linalg.cholesky(ball))).sum()
        except np.linalg.LinAlgError:
            return -np.inf
        return float(total)

    def newton(
        self, M: Array, theta: Array, eta: Array, tau: float
    ) -> tuple[tuple[Array, Array, Array], float]:
        """The Newton direction and its decrement, in units of the barrier."""
        caps, p = self.caps, self.caps.p
        B = caps.frames
        inverse = np.linalg.inv(self.slacks(M, theta, eta))
        inverse = 0.5 * (inverse + inverse.swapaxes(1, 2))
        inverse = inverse * (caps.valid[:, :, None] & caps.valid[:, None, :])
        lifted = np.matmul(inverse, B)
        P = np.matmul(B.swapaxes(1, 2), lifted)
        PP = np.matmul(lifted.swapaxes(1, 2), lifted)
        first = lifted[:, 0]
        corner = inverse[:, 0, 0]
        gradient_M = tau * P.sum(axis=0) - np.eye(p)
        gradient_theta = 1.0 - tau * np.trace(inverse, axis1=1, axis2=2)
        safe_eta = np.where(self.floored > 0, eta, 1.0)
        gradient_eta = self.floored * (caps.floors**2 - tau * corner + tau / safe_eta)
        factors = np.sqrt(tau) * P
        if self.nuclear:
            low, high = np.linalg.inv(np.eye(p) + M), np.linalg.inv(np.eye(p) - M)
            gradient_M += tau * (low - high)
            factors = np.concatenate((factors, np.sqrt(tau) * np.stack((low, high))))
        else:
            gradient_M -= M
        # θ and η enter block by block: eliminate them and keep one system for M.
        a = tau * np.einsum("kab,kab->k", inverse, inverse)
        b = tau * np.einsum("ka,ka->k", inverse[:, 0], inverse[:, 0])
        c = tau * (corner**2 + 1.0 / safe_eta**2)
        cross_theta = -tau * PP
        cross_eta = -tau * self.floored[:, None, None] * first[:, :, None] * first[:, None, :]
        b = b * self.floored
        determinant = a * c - b * b
        solved_theta = (c[:, None, None] * cross_theta - b[:, None, None] * cross_eta) / (
            determinant[:, None, None]
        )
        solved_eta = (a[:, None, None] * cross_eta - b[:, None, None] * cross_theta) / (
            determinant[:, None, None]
        )
        rhs_theta = (c * gradient_theta - b * gradient_eta) / determinant
        rhs_eta = (a * gradient_eta - b * gradient_theta) / determinant
        rhs = gradient_M - np.einsum("kab,k->ab", cross_theta, rhs_theta)
        rhs -= np.einsum("kab,k->ab", cross_eta, rhs_eta)
        crosses = ((cross_theta, solved_theta), (cross_eta, solved_eta))
        if p <= DENSE_LIMIT:
            dM = self._solve(factors, crosses, rhs)
        else:
            dM = self._iterate(factors, np.sqrt(tau) * lifted, crosses, rhs)
        d_theta = rhs_theta - np.einsum("kab,ab->k", solved_theta, dM)
        d_eta = (rhs_eta - np.einsum("kab,ab->k", solved_eta, dM)) * self.floored
        decrement = np.sum(gradient_M * dM) + gradient_theta @ d_theta + gradient_eta @ d_eta
        return (dM, d_theta, d_eta), float(np.sqrt(max(decrement, 0.0) / tau))

    def _solve(self, factors: Array, crosses: _Crosses, rhs: Array) -> Array:
        """Solve the Newton system by factorisation."""
        p = self.caps.p
        rows, columns = self.rows, self.columns
        # ⟨E_ab, Σ_k P_k E_cd P_k⟩ for symmetric unit matrices E_ab: four products of entries.
        flat = factors.reshape(len(factors), p * p)
        products = (flat.T @ flat).reshape(p, p, p, p)
        quad = products[rows[:, None], rows, columns[:, None], columns]
        quad = quad + products[rows[:, None], columns, columns[:, None], rows]
        weight = np.where(self.off, 2.0, 1.0)
        system = 0.5 * quad * np.outer(weight, weight)
        if not self.nuclear:
            system[np.diag_indices_from(system)] += weight
        for cross, solved in crosses:
            system -= (cross[:, rows, columns] * weight).T @ (solved[:, rows, columns] * weight)
        system = 0.5 * (system + system.T)
        right = rhs[rows, columns] * weight
        try:
            packed = sla.cho_solve(sla.cho_factor(system, lower=True), right)
        except np.linalg.LinAlgError:
            packed = sla.lstsq(system, right)[0]
        dM = np.zeros((p, p))
        dM[rows, columns] = packed
        dM[columns, rows] = packed
        return dM

    def _iterate(self, factors: Array, lifted: Array, crosses: _Crosses, rhs: Array) -> Array:
        """Solve the Newton system by conjugate gradients: an inexact step is still a bound."""
        p, m = self.caps.p, self.caps.m
        balls = factors[p:]
        frames = self.caps.frames
        flat = [(c.reshape(p, p * p), s.reshape(p, p * p)) for c, s in crosses]
        squares = factors**2
        diagonals = np.einsum("kaa->ka", factors)
        scale = 0.5 * (diagonals.T @ diagonals + squares.sum(axis=0)) + (not self.nuclear)

        def apply(x: Array) -> Array:
            V = x.reshape(p, p)
            inner = np.matmul(np.matmul(lifted, V), lifted.swapaxes(1, 2))
            out = frames.reshape(p * m, p).T @ np.matmul(inner, frames).reshape(p * m, p)
            if self.nuclear:
                for ball in balls:
                    out += ball @ V @ ball
            else:
                out += V
            for cross, solved in flat:
                out -= (cross.T @ (solved @ x)).reshape(p, p)
            return np.asarray(0.5 * (out + out.T).ravel())

        step, _ = conjugate_gradient(apply, rhs.ravel(), scale.ravel(), rtol=3e-2, max_iter=150)
        return np.asarray(0.5 * (step + step.reshape(p, p).T.ravel()).reshape(p, p))

    def move(
        self,
        M: Array,
        theta: Array,
        eta: Array,
        tau: float,
        step: tuple[Array, Array, Array],
        decrement: float,
    ) -> tuple[Array, Array, Array]:
        """Step along the Newton direction, damped until the barrier function improves."""
        value = self.value(M, theta, eta, tau)
        length = 1.0
        for _ in range(40):
            trial = (M + length * step[0], theta + length * step[1], eta + length * step[2])
            if self.value(*trial, tau) >= value:
                return trial
            length *= 0.5
        return M, theta, eta
