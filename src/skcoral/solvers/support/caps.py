"""Columns with a prescribed support as points on caps of small spheres, all starts in one array.

With the axes K of a column (:mod:`skcoral.bounds.columns`), ``t_j = Kᵀu`` has unit variance exactly
when u has unit length, and its fidelity to the projected anchor is the first entry of u. A floor is
therefore a cap around the first axis, whatever R, the support and the anchor are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skcoral.bounds.columns import columns_of
from skcoral.core.arrays import Array, Mask
from skcoral.exceptions import InfeasibleError
from skcoral.solvers.caps import nearest_on_cap

_ROUNDING = 1e-12  # floors may exceed what their supports allow by this, and count as equal


@dataclass(frozen=True)
class Caps:
    """The feasible set of a support problem; columns are padded to a common size m.

    The vectors ``w_j = u_j @ frames[j]`` satisfy ``w_i · w_j = t_iᵀ R t_j``.
    """

    R: Array
    mask: Mask  # True where a coefficient exists
    floors: Array  # of the first entries
    reach: Array  # largest fidelity that each support allows
    valid: Mask  # (k, m): False on padding
    axes: Array  # (k, m, p): t_j = u_j @ axes[j]
    frames: Array  # (k, m, p), row-wise orthonormal

    @property
    def p(self) -> int:
        """Number of variables, the dimension of the frames."""
        return len(self.R)

    @property
    def k(self) -> int:
        """Number of columns."""
        return len(self.valid)

    @property
    def m(self) -> int:
        """Size of the largest column."""
        return int(self.valid.shape[1])

    @property
    def spread(self) -> Array:
        """Squared distance ``1 − ρ²`` of the rims from the first axis, exact also near one."""
        return np.asarray((1.0 - self.floors) * (1.0 + self.floors))

    def height(self, U: Array) -> Array:
        """Fidelity above the floor of points (…, k, m), without cancellation in small caps."""
        side = np.einsum("...a,...a->...", U[..., 1:], U[..., 1:])
        small = (self.spread - side) / np.maximum(U[..., 0] + self.floors, 1e-300)
        return np.where(U[..., 0] > 0.5, small, U[..., 0] - self.floors)

    def on_rim(self, U: Array, width: float) -> Mask:
        """Columns whose fidelity is at the floor; a tenth of a small cap counts as its rim."""
        return np.asarray(
            (self.floors > 0)
            & (self.height(U) <= np.minimum(width, np.maximum(0.1 * (1.0 - self.floors), 0.0)))
        )

    def transform(self, U: Array) -> Array:
        """Coefficients (S, p, k) of points (S, k, m)."""
        return np.asarray(np.matmul(U.swapaxes(0, 1), self.axes).transpose(1, 2, 0))

    def coordinates(self, T: Array) -> Array:
        """Inverse of :meth:`transform`, for any coefficients on the support."""
        image = np.matmul(self.R, np.where(self.mask, T, 0.0)).transpose(2, 0, 1)
        return np.asarray(np.matmul(image, self.axes.swapaxes(1, 2)).swapaxes(0, 1))

    def points(self, T: Array) -> Array:
        """Points (S, k, m) of coefficients (S, p, k): masked, rescaled, and put on their caps."""
        return self.upright(self.coordinates(T))

    def upright(self, U: Array) -> Array:
        """Points of the caps with positive fidelities: a sign changes the size of no residual."""
        return self.onto_caps(U * np.where(U[..., :1] < 0, -1.0, 1.0))

    def onto_caps(self, U: Array) -> Array:
        """Nearest unit vectors with first entry at least the floor, if there is one."""
        # A floor of zero asks for nothing.
        floors = np.where(self.floors > 0, self.floors, -1.0)
        across = np.linalg.norm(U[..., 1:], axis=2)
        cosine, factor = nearest_on_cap(U[..., 0], across, floors)
        return np.concatenate((cosine[..., None], factor[..., None] * U[..., 1:]), axis=2)

    def spread_out(self, X: Array) -> Array:
        """Points all over the caps from ones all over the spheres: ``f = ρ + (1 − ρ) x₁²``."""
        floors, floored = self.floors, self.floors > 0
        f = np.where(floored, floors + (1 - floors) * X[..., 0] ** 2, X[..., 0])
        U = X * np.where(floored, np.sqrt((1 - floors) * (1 + f)), 1.0)[..., None]
        U[..., 0] = f
        return U

    def outputs(self, U: Array) -> Array:
        """Vectors w_j, shape (S, k, p), whose inner products are the output correlations."""
        return np.ascontiguousarray(np.matmul(U.swapaxes(0, 1), self.frames).swapaxes(0, 1))

    def pull_back(self, gradient: Array) -> Array:
        """Gradient with respect to the points from one with respect to the vectors w_j."""
        back = np.matmul(gradient.swapaxes(0, 1), self.frames.swapaxes(1, 2))
        return np.ascontiguousarray(back.swapaxes(0, 1))


def feasible_set(
    R: Array,
    mask: Mask,
    floors: Array,
    anchors: Array | None = None,
    names: Sequence[str] | None = None,
) -> Caps:
    """The caps of a support problem, without freedom where it asks for none.

    A floor of one leaves only the anchor itself, and so does a column with a single source.
    """
    p, k = mask.shape
    _, columns = columns_of(R, mask, floors, anchors)
    fixed = np.array([one.fixed for one in columns])
    reach = np.array([one.reach for one in columns])
    for j in np.flatnonzero(floors > reach * (1.0 + _ROUNDING))[:1]:
        raise InfeasibleError(
            f"the sources of output {names[j] if names else j!r} allow a fidelity of at most "
            f"{np.floor(1e6 * reach[j]) / 1e6:.6f}, but {floors[j]:.6g} is asked for: lower this "
            "floor, or allow further sources in its support."
        )
    # A fidelity is its column's first entry times the reach.
    heights = np.minimum(floors / np.where(floors > 0, reach, 1.0), 1.0)
    m = max(len(one.K) for one in columns)
    valid = np.zeros((k, m), dtype=np.bool_)
    axes, mask = np.zeros((k, m, p)), np.zeros((p, k), dtype=np.bool_)
    for j, one in enumerate(columns):
        mask[one.sources, j] = True
        valid[j, : len(one.K)] = True
        axes[j, : len(one.K), one.sources] = one.K.T
    frames = np.matmul(axes, np.linalg.cholesky(R))
    return Caps(R, mask, np.where(fixed, 1.0, heights), reach, valid, axes, frames)
