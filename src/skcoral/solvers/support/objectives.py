"""Smooth measures of residual correlation on the caps, with their gradients, for many starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.solvers.support.caps import Caps, fold, fold_gradient
from skcoral.solvers.support.quasi_newton import Function, Rows

# A loss maps residuals (S, k, k), zero on the diagonal, to values (S,) and half-gradients C with
# dvalue = Σ_ij C_ij dG_ij.
Loss = Callable[[Array], tuple[Array, Array]]
# A penalty maps points (S, k, m) and the starts they belong to, to values and gradients.
Penalty = Callable[[Array, Rows], tuple[Array, Array]]


def residuals(caps: Caps, U: Array) -> Array:
    """``off(TᵀRT)`` of points (S, k, m)."""
    W = caps.outputs(U)
    return _off_gram(W)


def _off_gram(W: Array) -> Array:
    E: Array = np.matmul(W, W.swapaxes(1, 2))
    diagonal = np.arange(W.shape[1])
    E[:, diagonal, diagonal] = 0.0
    return E


def squared_loss(E: Array) -> tuple[Array, Array]:
    """D2, half the sum of squares over ordered pairs."""
    return criteria.values("squared", E), E


def power_loss(power: float) -> Loss:
    """The q-norm over pairs, an upper bound of the worst pair that tends to it as q grows."""

    def loss(E: Array) -> tuple[Array, Array]:
        top = np.abs(E).max(axis=(1, 2), keepdims=True)
        top = np.where(top > 0, top, 1.0)
        scaled = np.abs(E) / top
        raised = scaled ** (power - 1)
        total = 0.5 * np.einsum("sij,sij->s", raised, scaled)[:, None, None]
        norm = np.where(total > 0, total, 1.0) ** (1 / power)
        slope = raised * np.sign(E) * norm / np.where(total > 0, total, 1.0)
        return (top * norm)[:, 0, 0] * (total[:, 0, 0] > 0), 0.5 * slope

    return loss


def absolute_loss(width: float) -> Loss:
    """The absolute sum over pairs, rounded off within ``width`` of zero."""

    def loss(E: Array) -> tuple[Array, Array]:
        root = np.sqrt(E * E + width * width)
        return 0.5 * (root - width).sum(axis=(1, 2)), 0.5 * E / root

    return loss


# What a descent minimises instead of each criterion: smooth, and near it.
LOSSES: dict[str, Loss] = {
    "squared": squared_loss,
    "worst": power_loss(8.0),
    "absolute": absolute_loss(0.02),
}


def on_spheres(caps: Caps, loss: Loss, penalty: Penalty | None = None) -> Function:
    """Value and gradient of a loss as a function of free vectors Z of shape (S, k·m).

    Only the directions of the blocks of Z matter, so the unit lengths need no constraint.
    """
    k, m = caps.k, caps.m

    def function(Z: Array, rows: Rows) -> tuple[Array, Array]:
        blocks = Z.reshape(len(Z), k, m)
        length = np.sqrt(np.einsum("spm,spm->sp", blocks, blocks))[..., None]
        X = blocks / length
        U = fold(caps, X)
        W = caps.outputs(U)
        value, slope = loss(_off_gram(W))
        gradient = caps.pull_back(2.0 * np.matmul(slope, W))
        if penalty is not None:
            extra, extra_gradient = penalty(U, rows)
            value, gradient = value + extra, gradient + extra_gradient
        gradient = fold_gradient(caps, X, U, gradient)
        radial = np.einsum("spm,spm->sp", gradient, X)[..., None]
        return value, ((gradient - radial * X) / length).reshape(len(Z), k * m)

    return function
