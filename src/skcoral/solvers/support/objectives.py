"""Smooth measures of residual correlation on the caps, with their gradients, for many starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import Array, Index
from skcoral.solvers.descent import descend
from skcoral.solvers.support.caps import Caps

# A loss maps residuals (S, k, k), zero on the diagonal, to values (S,) and half-gradients C with
# dvalue = Σ_ij C_ij dG_ij.
Loss = Callable[[Array], tuple[Array, Array]]
# A penalty maps points (S, k, m) to values and gradients.
Penalty = Callable[[Array], tuple[Array, Array]]

_FIRST = 0.1  # length of the first step: a longer one leaves the valley of the start
_PATIENCE = 15  # steps after which progress is looked at; with 8 one seed in forty more misses
_NOTHING = 1e-15  # gain that is none even of a value of zero


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


def descended(
    caps: Caps,
    loss: Loss,
    U: Array,
    *,
    tol: float,
    max_iter: int,
    penalty: Penalty | None = None,
) -> tuple[Array, Array]:
    """Points (S, k, m) below the given ones on the caps, and the values of a loss there.

    A start ends when it gains less than ``tol``, relative to its value, in some steps.
    """

    def smooth(U: Array, _: Index) -> tuple[Array, Array, Array]:
        W = caps.outputs(U)
        value, slope = loss(_off_gram(W))
        gradient = caps.pull_back(2.0 * np.matmul(slope, W))
        if penalty is not None:
            extra, extra_gradient = penalty(U)
            value, gradient = value + extra, gradient + extra_gradient
        # Along the spheres: the radial part would limit the length of the steps.
        gradient -= np.einsum("spm,spm->sp", gradient, U)[..., None] * U
        return value, gradient, value

    gradient = smooth(U, np.arange(len(U)))[1]
    steepest = np.sqrt(np.einsum("spm,spm->sp", gradient, gradient)).max(axis=1)
    points, values, _ = descend(
        U,
        smooth,
        lambda U, _: caps.onto_caps(U),
        step=np.minimum(_FIRST / np.maximum(steepest, 1e-12), 1.0),
        max_iter=max_iter,
        patience=_PATIENCE,
        enough=lambda value: tol * np.abs(value) + _NOTHING,
    )
    return np.stack(points), values
