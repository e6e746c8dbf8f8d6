"""Smooth measures of residual correlation on the caps, with their gradients, for many starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skcoral.core.arrays import Array, Index
from skcoral.core.criteria import Criterion
from skcoral.solvers.caps import smooth_criterion
from skcoral.solvers.descent import descend
from skcoral.solvers.support.caps import Caps

# A criterion and the width of its smoothing, as in :func:`skcoral.solvers.caps.smooth_criterion`.
Loss = tuple[Criterion, float]
# A penalty maps points (S, k, m) to values and gradients.
Penalty = Callable[[Array], tuple[Array, Array]]

SQUARES: Loss = ("squared", 0.0)
# What a descent minimises instead of each criterion: smooth, and near it.
LOSSES: dict[Criterion, Loss] = {
    "squared": SQUARES,
    "worst": ("worst", 1 / 8),
    "absolute": ("absolute", 0.02),
}
_FIRST = 0.1  # length of the first step: a longer one leaves the valley of the start
_PATIENCE = 15  # steps after which progress is looked at; with 8 one seed in forty more misses
_NOTHING = 1e-15  # gain that is none even of a value of zero


def residuals(caps: Caps, U: Array) -> Array:
    """``off(TᵀRT)`` of points (S, k, m)."""
    return _off_gram(caps.outputs(U))


def _off_gram(W: Array) -> Array:
    E: Array = np.matmul(W, W.swapaxes(1, 2))
    E[:, np.arange(W.shape[1]), np.arange(W.shape[1])] = 0.0
    return E


def descended(
    caps: Caps,
    loss: Loss,
    U: Array,
    *,
    tol: float,
    max_iter: int,
    nothing: float = _NOTHING,
    penalty: Penalty | None = None,
) -> tuple[Array, Array]:
    """Points (S, k, m) below the given ones on the caps, and the values of a loss there.

    A start ends when it gains less in some steps than ``nothing`` and ``tol`` times its value.
    """

    def smooth(U: Array, _: Index) -> tuple[Array, Array, Array]:
        W = caps.outputs(U)
        value, slope = smooth_criterion(_off_gram(W), *loss)[:2]
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
        enough=lambda value: tol * np.abs(value) + nothing,
    )
    return np.stack(points), values
