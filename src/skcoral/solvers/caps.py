"""What descents on caps share: the nearest point of a cap, and smooth criteria of correlations."""

from __future__ import annotations

import numpy as np

from skcoral.core.arrays import EPS, Array
from skcoral.core.criteria import Criterion


def nearest_on_cap(along: Array, across: Array, floors: Array) -> tuple[Array, Array]:
    """The nearest unit vector with at least ``floors`` along an axis, from the parts of a vector.

    ``across`` is the length of what is orthogonal to the axis. Returns the part along the axis, and
    the factor of what is orthogonal. A vector without any direction ends on the axis.
    """
    size = np.hypot(along, across)
    inside = along >= floors * size
    rim = np.sqrt(np.maximum((1.0 - floors) * (1.0 + floors), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(inside, along / size, floors)
        factor = np.where(inside, 1.0 / size, rim / across)
    on_axis = (across <= 4 * EPS * np.maximum(size, 1e-300)) | (floors >= 1.0)
    return np.where(on_axis, 1.0, cosine), np.where(on_axis, 0.0, factor)


def smooth_criterion(
    G: Array, criterion: Criterion, width: float, omega: Array | float = 1.0
) -> tuple[Array, Array, Array]:
    """Smooth functions near a criterion, their half-gradients, and the criterion itself.

    Of stacked residuals, zero on the diagonal, with weights of the pairs: for the squares those
    themselves, for the worst pair the norm of power ``1 / width``, for the absolute sum
    ``√(g² + width²) − width``. With a half-gradient C, ``dvalue = Σ_ij C_ij dG_ij``.
    """
    if criterion == "squared":
        slope = omega * G
        true = 0.5 * np.einsum("...ij,...ij->...", slope, G)
        return true, slope, true
    size = omega * np.abs(G)
    if criterion == "absolute":
        root = np.hypot(G, width)
        value, true = (0.5 * a.sum(axis=(-2, -1)) for a in (omega * (root - width), size))
        return value, 0.5 * omega * G / root, true
    true = size.max(axis=(-2, -1))
    scaled = size / np.where(true > 0.0, true, 1.0)[..., None, None]
    raised = scaled ** (1.0 / width - 1.0)
    total = 0.5 * np.einsum("...ij,...ij->...", raised, scaled)
    norm = total**width
    share = 0.5 * norm / np.where(true > 0.0, total, 1.0)
    return true * norm, share[..., None, None] * raised * omega * np.sign(G), true
