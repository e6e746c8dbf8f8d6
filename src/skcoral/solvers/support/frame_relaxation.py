"""The frame relaxation: a rigorous lower bound for every support, from one concave problem.

``D2 = ½‖F − I‖² − (p − k)/2`` with ``F = Σ_j w_j w_jᵀ`` of k columns in p dimensions. Replacing
``u_j u_jᵀ`` by any ``X_j ⪰ 0`` with ``tr X_j = 1`` and ``(X_j)₁₁ ≥ ρ_j²`` makes the problem convex.
For any symmetric M, η ≥ 0 and θ with ``B_jᵀ M B_j − η_j e₁e₁ᵀ − θ_j I ⪰ 0`` its dual says

    D2 ≥ Σ_j (θ_j + η_j ρ_j²) − tr M − ½‖M‖² − (p − k)/2           (frame bound)

and, because the nuclear norm of ``F − I`` is at most p − k more than twice ``Σ_{i<j}|G_ij|``, for
``‖M‖₂ ≤ 1``

    Σ_{i<j}|G_ij| ≥ ½ [ Σ_j (θ_j + η_j ρ_j²) − tr M − (p − k) ].

The dual is maximised from inside by Newton steps on a logarithmic barrier, so every iterate is a
valid bound and the search may stop at any of them.

A cap shrinks to a point as its floor tends to one: with ``s² = 1 − ρ²`` all entries of ``X_k``
beside the first are of the order s, and η of the order 1/s. The steps are therefore taken for
``X_k = D Y D``, ``D = diag(1, s, …, s)``, whose trace beside the first entry is at most one, with
the multipliers ``μ = θ + η`` and ``φ = s²θ``: the slack ``D BᵀMB D − diag(μ, φ, …, φ)`` and
``s²μ − φ = s²η ≥ 0`` keep the size of their barrier whatever the floor is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skcoral.core.arrays import EPS, Array
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.support.caps import Caps

Norm = Literal["frobenius", "nuclear"]
Point = tuple[Array, Array, Array]  # M, μ, φ
_SHRINK = 0.1  # of the barrier, each time that a point is centred
_STEPS = 200  # of Newton's method, at most: 40 to 75 are usual
_WIDTH = 0.1  # slack of the first point; entries of M are of the order one
# Of a Newton step that is not small. A full one may end on the boundary, where rounding alone keeps
# a slack positive, and from a slack of 1e-17 the search does not return: of 330 problems, one lost
# a fifth of its bound. With 0.9 it takes 12 % more steps.
_SHORT = 0.99
_CENTERED = 0.5  # decrement, in units of the barrier, at which it shrinks
# Up to here a Newton system is factorised; beyond, it is solved by conjugate gradients.
DENSE_LIMIT = 60
# Of a factorised system, relative to its diagonal before the elimination of φ and μ, whose rounding
# may leave a direction no curvature at all: the same bounds with ten times and a tenth of it.
_DAMPING = 1e-15


@dataclass(frozen=True)
class FrameBound:
    """A dual point of the frame relaxation, and the lower bound at it."""

    value: float
    M: Array  # multiplier of F − I, in the coordinates of the Cholesky factor of R
    eta: Array  # multipliers of the squared floors


def frame_bound(
    caps: Caps,
    *,
    norm: Norm = "frobenius",
    stop_at: float = np.inf,
    tol: float = 1e-9,
    on_iteration: Callable[[float], object] | None = None,
) -> FrameBound:
    """Maximise the dual of the frame relaxation.

    The Frobenius norm bounds D2, the nuclear one the absolute sum. The search ends with a bound of
    ``stop_at``, or within ``tol`` of the optimum, relative to its size. ``on_iteration`` is given
    the best bound so far.
    """
    barrier = _Barrier(caps, norm)
    M, mu, phi = barrier.first()
    best = FrameBound(-np.inf, M, np.zeros(caps.k))
    tau = _WIDTH / 3
    for _ in range(_STEPS):
        step, decrement = barrier.newton(M, mu, phi, tau)
        moved = barrier.move((M, mu, phi), tau, step, decrement)
        if moved is not None:
            M, mu, phi = moved
        value, gap = barrier.bound(M, mu, phi), barrier.order * tau
        if value > best.value:
            best = FrameBound(value, M, barrier.floor_multipliers(mu, phi))
        if on_iteration is not None:
            on_iteration(best.value)
        if best.value >= stop_at:
            break
        if decrement < _CENTERED:
            if gap <= tol * max(abs(best.value), 1e-3):
                break
            tau *= _SHRINK
        elif moved is None:
            # Only rounding is left.
            break
    return best


class _Barrier:
    """τ-weighted logarithmic barrier of the dual, with exact Newton steps in (M, μ, φ)."""

    def __init__(self, caps: Caps, norm: Norm) -> None:
        self.caps = caps
        self.nuclear = norm == "nuclear"
        # Eigenvalues of F that k columns leave at zero: each counts one, or half of its square.
        self.missing = (1.0 if self.nuclear else 0.5) * (caps.p - caps.k)
        self.floored = ((caps.floors > 0) & (caps.floors < 1)).astype(np.float64)
        self.order = int(caps.valid.sum() + self.floored.sum()) + (
            2 * caps.p if self.nuclear else 0
        )
        p = caps.p
        self.rows, self.columns = np.triu_indices(p)
        self.off = self.rows != self.columns
        self.unpadded = np.where(caps.valid, 0.0, 1.0)
        on = self.floored > 0
        self.square = np.where(on, (1.0 - caps.floors) * (1.0 + caps.floors), 1.0)
        scale = np.where(np.arange(caps.m) > 0, np.sqrt(self.square)[:, None], 1.0)
        self.frames = caps.frames * scale[:, :, None]
        # Where φ stands on the diagonal; μ has the first place of a column with a floor.
        self.low = caps.valid * (1.0 - on[:, None] * (np.arange(caps.m) == 0))

    def first(self) -> Point:
        """M = 0, and multipliers with all slacks at least ``_WIDTH``."""
        M, mu = np.zeros((self.caps.p, self.caps.p)), -_WIDTH * self.floored
        return M, mu, self.square * mu - _WIDTH

    def floor_multipliers(self, mu: Array, phi: Array) -> Array:
        """η of the floors."""
        return np.asarray(np.maximum(mu - phi / self.square, 0.0) * self.floored)

    def slacks(self, M: Array, mu: Array, phi: Array) -> Array:
        """Block slack matrices, the identity on padding."""
        forms: Array = np.matmul(np.matmul(self.frames, M), self.frames.swapaxes(1, 2))
        diagonal = np.arange(self.caps.m)
        forms[:, diagonal, diagonal] += self.unpadded - phi[:, None] * self.low
        forms[:, 0, 0] -= mu * self.floored
        return forms

    def value(self, M: Array, mu: Array, phi: Array, tau: float) -> float:
        """The barrier function to maximise; −inf outside."""
        on = self.floored > 0
        room = self.square * mu - phi
        if np.any(room[on] <= 0):
            return -np.inf
        try:
            logs = np.log(
                np.diagonal(np.linalg.cholesky(self.slacks(M, mu, phi)), axis1=1, axis2=2)
            ).sum()
            total = self._objective(M, mu, phi) + tau * (2.0 * logs + np.log(room[on]).sum())
            if self.nuclear:
                identity = np.eye(self.caps.p)
                for ball in (identity - M, identity + M):
                    total += 2.0 * tau * np.log(np.diag(np.linalg.cholesky(ball))).sum()
        except np.linalg.LinAlgError:
            return -np.inf
        return float(total)

    def _objective(self, M: Array, mu: Array, phi: Array) -> float:
        linear = float(phi.sum() + (1.0 - self.square) @ mu - np.trace(M)) - self.missing
        return linear if self.nuclear else linear - 0.5 * float(np.sum(M * M))

    def bound(self, M: Array, mu: Array, phi: Array) -> float:
        """The lower bound at a point inside, up to rounding."""
        return (0.5 if self.nuclear else 1.0) * self._objective(M, mu, phi)

    def newton(self, M: Array, mu: Array, phi: Array, tau: float) -> tuple[Point, float]:
        """The Newton direction and its decrement, in units of the barrier."""
        caps, p, on, square = self.caps, self.caps.p, self.floored, self.square
        B = self.frames
        inverse = np.linalg.inv(self.slacks(M, mu, phi))
        inverse = 0.5 * (inverse + inverse.swapaxes(1, 2))
        inverse = inverse * (caps.valid[:, :, None] & caps.valid[:, None, :])
        lifted = np.matmul(inverse, B)
        P = np.matmul(B.swapaxes(1, 2), lifted)
        below = lifted * self.low[:, :, None]
        first = lifted[:, 0]
        corner = inverse[:, 0, 0]
        pull = on / np.where(on > 0, square * mu - phi, 1.0)
        gradient_M = tau * P.sum(axis=0) - np.eye(p)
        # Of φ in the first row, of μ in the second.
        gradient = np.stack(
            (
                1.0 - tau * (np.einsum("kaa,ka->k", inverse, self.low) + pull),
                on * (1.0 - square - tau * (corner - square * pull)),
            )
        )
        factors = np.sqrt(tau) * P
        if self.nuclear:
            low, high = np.linalg.inv(np.eye(p) + M), np.linalg.inv(np.eye(p) - M)
            gradient_M += tau * (low - high)
            factors = np.concatenate((factors, np.sqrt(tau) * np.stack((low, high))))
        else:
            gradient_M -= M
        # φ and μ enter block by block: eliminate them and keep one system for M.
        entries = inverse**2
        a = tau * (np.einsum("kab,ka,kb->k", entries, self.low, self.low) + pull**2)
        b = tau * on * (np.einsum("ka,ka->k", entries[:, 0], self.low) - square * pull**2)
        c = np.where(on > 0, tau * (corner**2 + (square * pull) ** 2), 1.0)
        cross = -tau * np.stack(
            (
                np.matmul(below.swapaxes(1, 2), below),
                on[:, None, None] * first[:, :, None] * first[:, None, :],
            )
        )
        determinant = np.maximum(a * c - b * b, 4 * EPS * a * c)
        block = np.array([[c, -b], [-b, a]]) / determinant
        solved, shift = (np.einsum("stk,tk...->sk...", block, x) for x in (cross, gradient))
        rhs = gradient_M - np.tensordot(shift, cross)
        if p <= DENSE_LIMIT:
            dM = self._solve(factors, cross, solved, rhs)
        else:
            dM = self._iterate(factors, np.sqrt(tau) * lifted, cross, solved, rhs)
        d_phi, d_mu = shift - np.tensordot(solved, dM)
        d_mu = d_mu * on
        decrement = np.sum(gradient_M * dM) + np.sum(gradient * (d_phi, d_mu))
        return (dM, d_mu, d_phi), float(np.sqrt(max(decrement, 0.0) / tau))

    def _solve(self, factors: Array, cross: Array, solved: Array, rhs: Array) -> Array:
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
        # Directions that change nothing, such as M + εI beside φ + ε, are singular to rounding.
        system[np.diag_indices_from(system)] *= 1.0 + _DAMPING
        left, right = (x[..., rows, columns].reshape(-1, len(rows)) for x in (cross, solved))
        system -= (left * weight).T @ (right * weight)
        packed = np.linalg.solve(system, rhs[rows, columns] * weight)
        dM = np.zeros((p, p))
        dM[rows, columns] = packed
        dM[columns, rows] = packed
        return dM

    def _iterate(
        self, factors: Array, lifted: Array, cross: Array, solved: Array, rhs: Array
    ) -> Array:
        """Solve the Newton system by conjugate gradients: an inexact step is still a bound."""
        p, k, m = self.caps.p, self.caps.k, self.caps.m
        balls = factors[k:]
        frames = self.frames
        squares = factors**2
        diagonals = np.einsum("kaa->ka", factors)
        scale = 0.5 * (diagonals.T @ diagonals + squares.sum(axis=0)) + (not self.nuclear)

        def apply(V: Array) -> Array:
            inner = np.matmul(np.matmul(lifted, V), lifted.swapaxes(1, 2))
            out = frames.reshape(k * m, p).T @ np.matmul(inner, frames).reshape(k * m, p)
            if self.nuclear:
                for ball in balls:
                    out += ball @ V @ ball
            else:
                out += V
            out -= np.tensordot(np.tensordot(solved, V), cross)
            return np.asarray(0.5 * (out + out.T))

        step, _, _ = conjugate_gradient(
            apply, rhs.copy(), lambda V: V / scale, rtol=3e-2, max_iter=150
        )
        return np.asarray(0.5 * (step + step.T))

    def move(self, point: Point, tau: float, step: Point, decrement: float) -> Point | None:
        """Step along the Newton direction, damped until the barrier function improves.

        None where no length of the step improves it.
        """
        value = self.value(*point, tau)
        length = 1.0 if decrement < 1.0 else _SHORT
        for _ in range(40):
            M, mu, phi = (x + length * dx for x, dx in zip(point, step, strict=True))
            if self.value(M, mu, phi, tau) >= value:
                return M, mu, phi
            length *= 0.5
        return None
