"""Riemannian trust regions (Absil, Baker, Gallivan 2007) on the two manifolds of the paper.

A point is a flat vector: a p×p matrix, column by column on the unit sphere or orthogonal as a
whole, followed by any number of free scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
HessianProduct = Callable[[Array], Array]


@dataclass(frozen=True)
class Manifold:
    """Matrices with unit columns, or orthogonal ones, times free scalars; embedded geometry.

    Attributes
    ----------
    p : int
        Size of the matrix.
    orthogonal : bool
        Orthogonal matrices instead of the oblique manifold.
    """

    p: int
    orthogonal: bool

    def _split(self, x: Array) -> tuple[Array, Array]:
        return x[: self.p**2].reshape(self.p, self.p), x[self.p**2 :]

    def _weight(self, W: Array, U: Array) -> Array:
        """The matrix or row of multipliers that the constraint puts on a normal direction."""
        if self.orthogonal:
            product = W.T @ U
            return (product + product.T) / 2
        return np.einsum("ij,ij->j", W, U)

    def _apply(self, W: Array, weight: Array) -> Array:
        return W @ weight if self.orthogonal else W * weight

    def project(self, x: Array, u: Array) -> Array:
        """Project an ambient vector on the tangent space at ``x``."""
        W, _ = self._split(x)
        U, rest = self._split(u)
        return np.concatenate([(U - self._apply(W, self._weight(W, U))).ravel(), rest])

    def hessian(self, x: Array, gradient: Array, ambient: Array, v: Array) -> Array:
        """Turn an ambient Hessian product along ``v`` into the Riemannian one."""
        W, _ = self._split(x)
        normal = self._weight(W, self._split(gradient)[0])
        correction = np.zeros_like(x)
        correction[: self.p**2] = self._apply(self._split(v)[0], normal).ravel()
        return self.project(x, ambient - correction)

    def retract(self, x: Array, v: Array) -> Array:
        """Step from ``x`` along ``v`` and return to the manifold."""
        moved = x + v
        W, rest = self._split(moved)
        if self.orthogonal:
            left, _, right = np.linalg.svd(W)
            W = left @ right
        else:
            W = W / np.linalg.norm(W, axis=0)
        return np.concatenate([W.ravel(), rest])


def minimise(
    manifold: Manifold,
    evaluate: Callable[[Array], tuple[float, Array, HessianProduct]],
    x: Array,
    *,
    tol: float,
    max_iter: int,
) -> Array:
    """Minimise a smooth function from ``x`` until its gradient is below ``tol``.

    ``evaluate`` returns value, ambient gradient and ambient Hessian product.
    """
    largest = np.sqrt(x.size)
    radius = largest / 8
    value, ambient, hessian = evaluate(x)
    for _ in range(max_iter):
        gradient = manifold.project(x, ambient)
        if np.linalg.norm(gradient) < tol:
            break
        step, model_hessian, hit = _steihaug(manifold, x, ambient, gradient, hessian, radius)
        candidate = manifold.retract(x, step)
        new = evaluate(candidate)
        # Rounding of the value must not reject the last steps (Conn, Gould, Toint, 17.4.2).
        slack = max(1.0, abs(value)) * 1e-14
        predicted = -(gradient @ step + step @ model_hessian / 2) + slack
        ratio = (value - new[0] + slack) / predicted
        if ratio < 0.25:
            radius /= 4
        elif ratio > 0.75 and hit:
            radius = min(2 * radius, largest)
        if ratio > 0.1:
            x = candidate
            value, ambient, hessian = new
        if radius < 1e-14:
            break
    return x


def _steihaug(
    manifold: Manifold,
    x: Array,
    ambient: Array,
    gradient: Array,
    hessian: HessianProduct,
    radius: float,
) -> tuple[Array, Array, bool]:
    """Truncated conjugate gradients: step, its Hessian product, and whether it met the boundary."""
    step = np.zeros_like(x)
    product = np.zeros_like(x)
    r = gradient
    d = -r
    rr = float(r @ r)
    goal = np.sqrt(rr) * min(np.sqrt(rr), 0.1)
    for _ in range(manifold.p**2):
        Hd = manifold.hessian(x, ambient, hessian(d), d)
        curvature = float(d @ Hd)
        alpha = rr / curvature if curvature > 0 else np.inf
        if curvature <= 0 or np.linalg.norm(step + alpha * d) >= radius:
            a, b, c = float(d @ d), 2 * float(step @ d), float(step @ step) - radius**2
            tau = (-b + np.sqrt(max(b * b - 4 * a * c, 0.0))) / (2 * a)
            return step + tau * d, product + tau * Hd, True
        step = step + alpha * d
        product = product + alpha * Hd
        r = r + alpha * Hd
        old, rr = rr, float(r @ r)
        if np.sqrt(rr) <= goal:
            break
        d = -r + rr / old * d
    return step, product, False
