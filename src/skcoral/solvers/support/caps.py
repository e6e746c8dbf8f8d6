"""Columns with a prescribed support as points on caps of small spheres, all starts in one array.

With ``R[Ω_j, Ω_j] = L Lᵀ`` and j first in Ω_j, the column ``t_j = L⁻ᵀ u`` has unit variance exactly
when u has unit length, and its fidelity is the first entry of u. A floor is therefore a cap around
the first axis, whatever R and the support are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skcoral.core.results import Array
from skcoral.solvers.support.pattern import Mask


@dataclass(frozen=True)
class Caps:
    """The feasible set of a support problem; columns are padded to a common size m.

    The vectors ``w_j = u_j @ frames[j]`` satisfy ``w_i · w_j = t_iᵀ R t_j``.
    """

    R: Array
    mask: Mask  # True where a coefficient exists
    floors: Array
    index: NDArray[np.intp]  # (p, m): the sources of each column, its own first
    valid: Mask  # (p, m): False on padding
    frames: Array  # (p, m, p), row-wise orthonormal
    to_coefficients: Array  # (p, m, m): t_j[Ω_j] = u_j @ to_coefficients[j]
    from_coefficients: Array  # the inverse map

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.R)

    @property
    def m(self) -> int:
        """Size of the largest column."""
        return int(self.valid.shape[1])

    @property
    def reach(self) -> Array:
        """Squared distance ``1 − ρ²`` of the rims from the first axis, exact also near one."""
        return np.asarray((1.0 - self.floors) * (1.0 + self.floors))

    def height(self, U: Array) -> Array:
        """Fidelity above the floor of points (…, p, m), without cancellation in small caps."""
        side = np.einsum("...a,...a->...", U[..., 1:], U[..., 1:])
        small = (self.reach - side) / np.maximum(U[..., 0] + self.floors, 1e-300)
        return np.where(U[..., 0] > 0.5, small, U[..., 0] - self.floors)

    def on_rim(self, U: Array, width: float) -> Mask:
        """Columns whose fidelity is at the floor; a tenth of a small cap counts as its rim."""
        return np.asarray(
            (self.floors > 0)
            & (self.height(U) <= np.minimum(width, np.maximum(0.1 * (1.0 - self.floors), 0.0)))
        )

    def transform(self, U: Array) -> Array:
        """Coefficients (S, p, p) of points (S, p, m)."""
        t = np.matmul(U.swapaxes(0, 1), self.to_coefficients).swapaxes(0, 1)
        T = np.zeros((len(U), self.p, self.p))
        rows, slots = np.nonzero(self.valid)
        T[:, self.index[rows, slots], rows] = t[:, rows, slots]
        return T

    def points(self, T: Array) -> Array:
        """Points (S, p, m) of coefficients (S, p, p): masked, rescaled, and put on their caps."""
        t = np.where(self.valid, T[:, self.index, np.arange(self.p)[:, None]], 0.0)
        return self.onto_caps(np.matmul(t.swapaxes(0, 1), self.from_coefficients).swapaxes(0, 1))

    def onto_caps(self, U: Array) -> Array:
        """Nearest unit vectors with first entry at least the floor; a sign change is free."""
        length = np.linalg.norm(U, axis=2, keepdims=True)
        pole = np.zeros(self.m)
        pole[0] = 1.0
        U = np.where(length > 0, U / np.where(length > 0, length, 1.0), pole)
        U = U * np.where(U[..., :1] < 0, -1.0, 1.0)
        low = self.height(U) < 0
        if low.any():
            rest = U[..., 1:]
            room = np.sqrt(self.reach)
            side = np.linalg.norm(rest, axis=2)
            # side > 0 wherever a unit vector misses its floor.
            factor = np.where(low, room / np.where(side > 0, side, 1.0), 1.0)
            U = np.concatenate(
                (np.where(low, self.floors, U[..., 0])[..., None], rest * factor[..., None]), axis=2
            )
        return U

    def outputs(self, U: Array) -> Array:
        """Vectors w_j, shape (S, p, p), whose inner products are the output correlations."""
        return np.ascontiguousarray(np.matmul(U.swapaxes(0, 1), self.frames).swapaxes(0, 1))

    def pull_back(self, gradient: Array) -> Array:
        """Gradient with respect to the points from one with respect to the vectors w_j."""
        back = np.matmul(gradient.swapaxes(0, 1), self.frames.swapaxes(1, 2))
        return np.ascontiguousarray(back.swapaxes(0, 1))


def feasible_set(R: Array, mask: Mask, floors: Array) -> Caps:
    """The caps of a support problem, without freedom where it asks for none.

    A floor of one leaves only the source itself, and a column without other sources has fidelity
    one whatever its floor.
    """
    p = len(R)
    mask = (mask & (floors < 1.0)) | np.eye(p, dtype=np.bool_)
    floors = np.where(mask.sum(axis=0) == 1, 1.0, floors)
    m = int(mask.sum(axis=0).max())
    index = np.repeat(np.arange(p)[:, None], m, axis=1)
    valid = np.zeros((p, m), dtype=np.bool_)
    frames = np.zeros((p, m, p))
    to_coefficients = np.zeros((p, m, m))
    from_coefficients = np.zeros((p, m, m))
    root = np.linalg.cholesky(R)
    for j in range(p):
        others = np.flatnonzero(mask[:, j])
        own_first = np.concatenate(([j], others[others != j]))
        k = len(own_first)
        factor = np.linalg.cholesky(R[np.ix_(own_first, own_first)])
        index[j, :k] = own_first
        valid[j, :k] = True
        to_coefficients[j, :k, :k] = np.linalg.inv(factor)
        from_coefficients[j, :k, :k] = factor
        frames[j, :k] = np.linalg.solve(factor, root[own_first])
    return Caps(R, mask, floors, index, valid, frames, to_coefficients, from_coefficients)


def fold(caps: Caps, X: Array) -> Array:
    """Map unit vectors onto the caps, smoothly, so that the floors need no inequality.

    The first entry becomes ``f = ρ + (1 − ρ) x₁²`` and the others are scaled to unit length. A zero
    floor needs no folding, because the sign of a column is free.
    """
    floors = caps.floors
    folded = floors > 0
    f = np.where(folded, floors + (1 - floors) * X[..., 0] ** 2, X[..., 0])
    U = X * np.where(folded, np.sqrt((1 - floors) * (1 + f)), 1.0)[..., None]
    U[..., 0] = f
    return U


def fold_gradient(caps: Caps, X: Array, U: Array, gradient: Array) -> Array:
    """Chain rule of :func:`fold`."""
    floors = caps.floors
    folded = floors > 0
    f = U[..., 0]
    out = gradient * np.where(folded, np.sqrt((1 - floors) * (1 + f)), 1.0)[..., None]
    side = np.einsum("spm,spm->sp", gradient[..., 1:], X[..., 1:])
    along = gradient[..., 0] + side * np.sqrt(1 - floors) / (2 * np.sqrt(1 + np.abs(f)))
    out[..., 0] = np.where(folded, 2 * (1 - floors) * X[..., 0] * along, gradient[..., 0])
    return out


def unfold(caps: Caps, U: Array, margin: float = 1e-3) -> Array:
    """Inverse of :func:`fold`, a little inside: the rim of a cap is stationary for the fold."""
    floors = caps.floors
    folded = floors > 0
    spread = np.where(folded, 1 - floors, 1.0)
    height = np.where(spread > 0, caps.height(U) / np.where(spread > 0, spread, 1.0), 1.0)
    first = np.where(folded, np.sqrt(np.clip(height, margin, 1.0)), U[..., 0])
    rest = U[..., 1:]
    side = np.linalg.norm(rest, axis=2)
    target = np.sqrt(np.maximum(1.0 - first**2, 0.0))
    factor = np.where(side > 0, target / np.where(side > 0, side, 1.0), 0.0)
    X = np.concatenate((first[..., None], rest * factor[..., None]), axis=2)
    at_pole = (side == 0)[..., None]
    pole = np.zeros(caps.m)
    pole[0] = 1.0
    return np.where(at_pole, pole, X)
