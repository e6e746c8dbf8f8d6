"""The columns of a support as unit vectors, and the floors of their first entries.

Column j of T lives on Ω_j, and its fidelity is ``b_jᵀR t_j`` over the length of the anchor b_j (the
variable itself, or a composite). Only the projection of the anchor onto Ω_j counts: with
``K_j R_Ω K_jᵀ = I`` and the first row of K_j along ``x_j = R_Ω⁻¹(R b_j)_Ω``, the column
``t_j = K_jᵀ s`` has unit variance where s has unit length, and its fidelity is the first entry of s
times the ``reach`` of Ω_j, the correlation between the anchor and its projection. The floor of that
entry is therefore ``ρ_j / reach``. For a variable within its own support nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from skcoral.bounds.arithmetic import Arithmetic, Enclosure
from skcoral.bounds.dual import numbers
from skcoral.core.arrays import Array, Index, Mask
from skcoral.exceptions import CertificateError

# Where the reflection changes its sign: any number that no anchor is likely to meet will do, so
# that another implementation finds the same axes.
_TURN = -0.73


@dataclass(frozen=True)
class Column:
    """One column: its sources, the axes of its sphere, the reach and the length of its anchor."""

    sources: Index
    axes: Array
    reach: float
    length: float
    fixed: bool  # a floor of one or a single source leaves no freedom

    @property
    def K(self) -> Array:
        """The axes along which the column is free to move, and that of the anchor."""
        return self.axes[:1] if self.fixed else self.axes

    @property
    def anchor(self) -> Array:
        """The coefficients of the projected anchor on the sources."""
        return np.asarray(self.axes[0])


def in_range(anchors: Array) -> Array:
    """Anchors times powers of two: the same directions, and squares that are floats."""
    return np.asarray(np.ldexp(anchors, 1 - np.frexp(np.abs(anchors).max(axis=0))[1]))


def columns_of(
    R: Array, mask: Mask, rho_min: Array, anchors: Array | None
) -> tuple[Array, list[Column]]:
    """The anchors in range, and the columns; a floor of one leaves an allowed anchor itself."""
    B = np.eye(len(R)) if anchors is None else in_range(anchors)
    itself = (rho_min >= 1) & (mask | (B == 0)).all(axis=0)
    mask = np.where(itself, B != 0, mask)
    return B, [column(R, *each) for each in zip(B.T, mask.T, rho_min, strict=True)]


def column(R: Array, b: Array, allowed: Mask, rho: float) -> Column:
    """The axes of a column with the anchor ``b`` and its floor."""
    omega = np.flatnonzero(allowed)
    top = omega[int(np.argmax(np.abs(b[omega])))]
    omega = np.concatenate(([top], omega[omega != top]))
    factor = np.linalg.cholesky(R[np.ix_(omega, omega)])
    K = sla.lapack.dtrtri(factor, lower=1)[0]
    image = R @ b
    length = float(np.sqrt(b @ image))
    g = sla.solve_triangular(factor, image[omega], lower=True)
    size = float(np.sqrt(g @ g))
    # An anchor within its support is its own projection.
    reach = 1.0 if np.count_nonzero(b[omega]) == np.count_nonzero(b) else size / length
    if size > 0:
        # A reflection takes g to the first axis.
        g = g / size
        sign = float(np.sign(g[0] - _TURN))
        g[0] += sign
        K = K - np.outer(g, 2.0 * (g @ K) / (g @ g))
        K[0] *= -sign
    return Column(omega, K, reach, length, fixed=bool(rho >= 1) or len(omega) == 1)


@dataclass(frozen=True)
class Proved:
    """The columns of a support with what is proved of them.

    ``floors`` are numbers that ``x_jᵀR t_j`` does not fall below, ``apart`` bounds the distances
    between fixed columns and those that their axes stand for, all together.
    """

    columns: Sequence[Column]
    floors: Enclosure
    apart: float


def proved_columns(
    support: Array, rho_min: Array, R: Array, anchors: Array | None, arithmetic: Arithmetic
) -> Proved:
    """The columns of the support of a certificate."""
    given = numbers(support, (len(R), len(rho_min)), "`support`")
    needed = np.diag(given) if anchors is None else given.any(axis=0)
    if not np.isin(given, (0.0, 1.0)).all() or not needed.all():
        raise CertificateError(
            "a support consists of zeros and ones, with ones on the diagonal, or with anchors "
            "somewhere in every column."
        )
    B, columns = columns_of(R, given > 0, rho_min, anchors)
    each = zip(columns, B.T, rho_min.tolist(), strict=True)
    lower, upper, apart = np.array([_floor(R, *one, arithmetic) for one in each]).T
    return Proved(columns, Enclosure(lower, upper), float(np.sum(apart)))


def _floor(
    R: Array, one: Column, b: Array, rho: float, arithmetic: Arithmetic
) -> tuple[float, float, float]:
    """Both ends of the floor of a column, and how far it may be from the one that is meant."""
    omega, K = one.sources, one.axes
    if np.count_nonzero(b) == 1 and abs(b[omega[0]]) == 1:  # the anchor is the first source
        exact = 1.0 if one.fixed else rho
        return exact, exact, 0.0
    if not one.fixed and rho == 0:
        return 0.0, 0.0, 0.0
    inside, x = R[np.ix_(omega, omega)], K[:1].T
    lack = arithmetic.enclosed(K, inside, K.T, minus=np.eye(len(K)))
    if not float(np.sum(lack.size())) < 0.1:
        raise CertificateError("R is too nearly singular to prove a bound for this support.")
    unity = (lack[0, 0] + 1.0).sqrt()  # the length of x
    # With c = reach · length and q = c R_Ω x − (R b)_Ω: c xᵀRt is at least ρ √(bᵀRb) − |qᵀt|, and
    # t = Kᵀs with ‖s‖ < 2, so that |qᵀt| ≤ 2 ‖K q‖.
    c = one.reach * one.length
    image, wanted = arithmetic.enclosed(inside, x), arithmetic.enclosed(R[omega], b[:, None])
    off = 2.0 * float(np.sum(np.abs(K) @ (image * c - wanted).size()))
    if one.fixed:
        turned = 2.0 * off / one.length if rho >= 1 else 0.0
        return unity.lower, unity.upper, turned + float((unity - 1.0).size())
    length = arithmetic.enclosed(b[None], R, b[:, None])[0, 0].sqrt()
    floor = (length * rho - off) / c
    return min(floor.lower, unity.lower), min(floor.upper, unity.upper), 0.0
