"""The columns of a support as unit vectors, and the floors of their first entries.

Column j of T lives on Ω_j, and its fidelity is ``b_jᵀR t_j`` over the length of the anchor b_j (the
variable itself, or a composite). Only the projection of the anchor onto Ω_j counts: with
``K_j R_Ω K_jᵀ = I`` and the first row of K_j along ``x_j = R_Ω⁻¹(R b_j)_Ω``, the column
``t_j = K_jᵀ s`` has unit variance where s has unit length, and its fidelity is the first entry of s
times the ``reach`` of Ω_j, the correlation between the anchor and its projection. The floor of that
entry is therefore ``ρ_j / reach``. For a variable within its own support nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, exactly
from skcoral.bounds.dual import numbers
from skcoral.core.arrays import Array, Index, Mask
from skcoral.exceptions import CertificateError

# Where the reflection changes its sign: any number that no anchor is likely to meet will do, so
# that another implementation finds the same axes.
_TURN = -0.73


@dataclass(frozen=True)
class Column:
    """One column: its sources, the axes K (one row if the floor leaves no freedom), its reach."""

    sources: Index
    K: Array
    reach: float
    length: float  # of the anchor

    @property
    def anchor(self) -> Array:
        """The coefficients of the projected anchor on the sources."""
        return np.asarray(self.K[0])


def in_range(anchors: Array) -> Array:
    """Anchors times powers of two: the same directions, and squares that are floats."""
    return np.asarray(np.ldexp(anchors, 1 - np.frexp(np.abs(anchors).max(axis=0))[1]))


def column(R: Array, b: Array, allowed: Mask, *, fixed: bool = False) -> Column:
    """The axes of a column with the anchor ``b``; ``fixed`` leaves the first one."""
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
    return Column(omega, K[:1] if fixed else K, reach, length)


def supports_at(mask: Mask, anchors: Array, rho_min: Array) -> Mask:
    """What the columns may consist of: a floor of one leaves an allowed anchor itself."""
    allowed = (mask | (anchors == 0)).all(axis=0)
    return np.asarray(np.where((rho_min >= 1) & allowed, anchors != 0, mask))


@dataclass(frozen=True)
class Proved:
    """A column with what is proved of it.

    ``floor`` is a number that ``x_jᵀR t_j`` does not fall below, ``apart`` a bound of the distance
    between a fixed column and the one that its axis stands for.
    """

    column: Column
    floor: Enclosure
    apart: float


def proved_columns(
    support: Array, rho_min: Array, R: Array, anchors: Array | None, arithmetic: Arithmetic
) -> list[Proved]:
    """The columns of the support of a certificate."""
    p, k = len(R), len(rho_min)
    B = np.eye(p) if anchors is None else in_range(anchors)
    given = numbers(support, (p, k), "`support`")
    own = np.diag(given) if anchors is None else given.any(axis=0)
    if not np.isin(given, (0.0, 1.0)).all() or not own.all():
        raise CertificateError(
            "a support consists of zeros and ones, with ones on the diagonal, or with anchors "
            "somewhere in every column."
        )
    mask = supports_at(given > 0, B, rho_min)
    each = zip(B.T, mask.T, rho_min, strict=True)
    return [_proved(R, b, on, float(rho), arithmetic) for b, on, rho in each]


def _proved(R: Array, b: Array, allowed: Mask, rho: float, arithmetic: Arithmetic) -> Proved:
    fixed = bool(rho >= 1) or int(np.sum(allowed)) == 1
    found = column(R, b, allowed, fixed=fixed)
    if np.count_nonzero(b) == 1 and allowed[np.argmax(np.abs(b))] and np.abs(b).max() == 1:
        return Proved(found, exactly(1.0 if fixed else float(rho)), 0.0)
    if not fixed and rho == 0:
        return Proved(found, exactly(0.0), 0.0)
    omega, K = found.sources, column(R, b, allowed).K
    inside, x = R[np.ix_(omega, omega)], K[:1].T
    lack = arithmetic.enclosed(K, inside, K.T, minus=np.eye(len(K)))
    if not float(np.sum(lack.size())) < 0.1:
        raise CertificateError("R is too nearly singular to prove a bound for this support.")
    unity = (lack[0, 0] + 1.0).sqrt()  # the length of x
    # With c = reach · length and q = c R_Ω x − (R b)_Ω: c xᵀRt is at least ρ √(bᵀRb) − |qᵀt|, and
    # t = Kᵀs with ‖s‖ < 2, so that |qᵀt| ≤ 2 ‖K q‖.
    c = found.reach * found.length
    image, wanted = arithmetic.enclosed(inside, x), arithmetic.enclosed(R[omega], b[:, None])
    off = 2.0 * float(np.sum(np.abs(K) @ (image * c - wanted).size()))
    if fixed:
        turned = 2.0 * off / found.length if rho >= 1 else 0.0
        return Proved(found, unity, turned + float((unity - 1.0).size()))
    length = arithmetic.enclosed(b[None], R, b[:, None])[0, 0].sqrt()
    floor = (length * rho - off) / c
    ends = (
        min(float(floor.lower), float(unity.lower)),
        min(float(floor.upper), float(unity.upper)),
    )
    return Proved(found, Enclosure(*ends), 0.0)
