"""The bound (★) of the trade-off: for any multipliers, and at a point that keeps its digits.

For **any** ``λ ≥ 0`` and ``H ≻ 0``, every transformation with unit variances and fidelities of at
least ``ρ_j`` has

    φ(off G) ≥ 2 ρᵀλ - tr H - φ*(off H) - tr(D_λ R D_λ H⁻¹)                                      (★)

with φ the criterion and φ* its conjugate. At the best ``λ, H`` the two sides are equal. The last
term is evaluated as a square, here and in all other bounds that have one like it. For anchors b_j
(the variables themselves by default), ``κ ≥ 0`` and ``H ≻ 0``, every ``T`` has

    ⟨TᵀRT - I, H⟩ - 2 Σ κ_j (b_jᵀRt_j - c_j)  ≥  2 Σ κ_j (c_j - b_jᵀRx_j) + ⟨XᵀRX - I, H⟩ - rest

with any ``X``, ``Z = X H - B D_κ`` and ``rest = tr(H⁻¹ Zᵀ R Z)``: a square completed at ``X``
instead of at its minimum ``B D_κ H⁻¹``. With ``X`` near the minimum ``rest`` is of the order
of the square of a rounding, so a crude bound of it will do, and no inverse has to be enclosed.
Certificates enclose every rounding (:func:`tradeoff_bound`). Solvers evaluate (★) in floats at the
transformation that they found (:func:`plain_bound`), which does not lose its digits when λ is
large: a tenth of the time, on any device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, column_dots, exactly, up, up_to
from skcoral.bounds.dual import least_shift, surely_definite
from skcoral.core import criteria
from skcoral.core.arrays import Array, cholesky, inner, plus_diagonal, solve_lower
from skcoral.core.criteria import Criterion
from skcoral.exceptions import CertificateError


def plain_bound(
    lam: Array,
    H: Any,
    floors: Array,
    criterion: Criterion,
    pair_weights: Array | None,
    *,
    X: Any,
    fidelity: Array,
    defect: Any,
    R: Any,
) -> float:
    """Evaluate (★) in floats, wherever the matrices lie, at any point ``X``.

    ``fidelity`` holds ``(RX)_jj`` and ``defect`` is ``XᵀRX - I``. The bound is ``-inf`` where the
    conjugate is infinite.
    """
    half = solve_lower(cholesky(H), plus_diagonal(X @ H, -lam).T)
    square = 2.0 * float(lam @ (floors - fidelity)) + inner(H, defect) - inner(half @ R, half)
    return square - criteria.conjugate(criterion, H, pair_weights)


def at_point(kappa: Array, short: Enclosure, H: Array, defect: Enclosure) -> Enclosure:
    """``2 Σ κ_j (c_j - b_jᵀRx_j) + ⟨XᵀRX - I, H⟩`` at any point X.

    ``short`` is how far the fidelities of X are below the floors, ``defect`` is ``XᵀRX - I``.
    """
    return (short * (2.0 * kappa)).total() + (defect * H).total()


@dataclass(frozen=True)
class Floors:
    """``ρ_j √(b_jᵀRb_j)``, the floors of anchors of any length: a float and what it lacks."""

    near: Array
    rest: Enclosure

    def __getitem__(self, on: Any) -> Floors:
        return Floors(self.near[on], self.rest[on])


def floors_of_columns(A: Array, rho_min: Array) -> Floors:
    """``ρ_j ‖a_j‖``, what the floors are for columns that miss unit length by a rounding."""
    ones = np.ones(A.shape[1])
    return _floors_of_lengths(ones, column_dots(A, A, ones), rho_min)


def _floors_of_lengths(near: Array, over: Enclosure, rho_min: Array) -> Floors:
    """Floors of anchors with squared lengths ``c² + over``, to more digits than a float has."""
    # √b = c + (b - c²) / (√b + c)
    more = over / ((exactly(near).square() + over).sqrt() + near)
    return Floors(near * rho_min, more * rho_min + _rounded_off(near, rho_min))


def _rounded_off(a: Array, b: Array) -> Enclosure:
    """What rounding took of the products ``a b``, entry by entry."""
    return column_dots(a[None], b[None], a * b)


def complete_square(
    arithmetic: Arithmetic,
    R: Array,
    B: Array,
    kappa: Array,
    H: Array,
    floors: Floors,
    what: str = "`H`",
) -> Enclosure:
    """``2 Σ κ_j (c_j - b_jᵀRx_j) + ⟨XᵀRX - I, H⟩ - rest`` near its maximum, if ``H ≻ 0``.

    ``R`` is positive semidefinite (p × p), ``B`` holds the anchors (p × k), ``kappa`` their
    multipliers, none negative, and ``H`` is symmetric; ``what`` is its name in messages. The bound
    lies between the ends.
    """
    diagonal = np.diag(np.diag(H))  # a semidefinite H proves its bound in the limit
    problem = f"{what} is not positive definite, so it proves nothing."
    shift, proof = least_shift(
        lambda shift: surely_definite(arithmetic, H + shift * diagonal), 1.0, problem
    )
    shifted = H + shift * diagonal
    target = B * kappa
    X = sla.lapack.dpotrs(proof.factor, target.T, lower=1)[0].T
    Z = arithmetic.enclosed(X, shifted, minus=target).size()
    Z = Z + np.spacing(np.abs(target))  # B D_κ was rounded
    largest = float(np.abs(R).sum(axis=1).max())  # no eigenvalue of R exceeds it
    rest = largest * proof.inverse_form(Z.T)
    image = arithmetic.product(R, X)
    defect = arithmetic.enclosure(arithmetic.product(X.T, image), np.eye(len(H)))
    short = floors.rest - along(arithmetic, B, image, floors.near)
    return at_point(kappa, short, shifted, defect) - up_to(rest)


def tradeoff_bound(
    arithmetic: Arithmetic,
    R: Array,
    B: Array,
    kappa: Array,
    H: Array,
    floors: Floors,
    criterion: str,
    weights: Array | None,
) -> Enclosure:
    """Return what (★) proves: ``φ ≥ 2 Σ κ_j c_j - tr H - φ*(off H) - tr(D_κ BᵀRB D_κ H⁻¹)``.

    ``weights`` are those of the pairs, one by default.
    """
    k = len(kappa)
    on = np.flatnonzero((kappa > 0) | np.any(H != 0, axis=0))
    if not len(on):
        return exactly(0.0)  # no criterion is negative
    H, weights = H[np.ix_(on, on)], np.ones((k, k)) if weights is None else weights
    square = complete_square(arithmetic, R, B[:, on], kappa[on], H, floors[on])
    penalty, outside = conjugate(criterion, H, weights[np.ix_(on, on)])
    return (square - penalty) / outside


def along(arithmetic: Arithmetic, B: Array, image: Any, minus: Array | None = None) -> Enclosure:
    """``b_jᵀ (R X)_j`` for every output, or what it exceeds ``minus`` by."""
    if not np.array_equal(B, np.eye(len(B))):
        image = arithmetic.product(B.T, image)
    return arithmetic.enclosure(image, None if minus is None else np.diag(minus)).diagonal()


def conjugate(criterion: str, H: Array, weights: Array) -> tuple[Enclosure, Enclosure]:
    """Conjugate of the criterion at ``off(H)``, and how far H lies outside its domain (≥ 1).

    A point outside is pulled inside by dividing κ and H by that number.
    """
    rows, columns = np.triu_indices(len(H), 1)
    h, w = np.abs(H[rows, columns]), weights[rows, columns]
    if np.any(h[w == 0] > 0):
        raise CertificateError("H is not zero at a pair of weight zero, so it proves nothing.")
    h, w = h[w > 0], w[w > 0]
    if criterion == "squared":
        return (exactly(h).square() / w).total(), exactly(1.0)
    ratio = exactly(h) * 2.0 / w
    outside = ratio.total() if criterion == "worst" else ratio.greatest()
    return exactly(0.0), outside.at_least(1.0)


class Outputs:
    """The outputs of ``T``: their correlations and their fidelities to the anchors ``B``."""

    def __init__(
        self, T: Array, B: Array, rho_min: Array, R: Array, arithmetic: Arithmetic
    ) -> None:
        self.T, self.B, self.rho_min, self.k = T, B, rho_min, T.shape[1]
        self.R, self.arithmetic = R, arithmetic
        image = arithmetic.product(R, T)
        self.gram = arithmetic.product(T.T, image)
        self.defect = arithmetic.enclosure(self.gram, np.eye(self.k))
        near = np.ones(self.k)  # the variables themselves, whose products with R are not needed
        self.length, over = exactly(near), exactly(0.0 * near)
        if not np.array_equal(B, np.eye(len(B))):
            covariances = arithmetic.product(R, B)
            self.length = along(arithmetic, B, covariances).sqrt()
            near = self.length.upper
            over = along(arithmetic, B, covariances, near * near) - _rounded_off(near, near)
        self.floors = _floors_of_lengths(near, over, rho_min)
        self.fidelity = along(arithmetic, B, image) / self.length

    def scaled(self, multipliers: Array) -> Array:
        """Multipliers of the anchors as given instead of those of unit length, never smaller."""
        return np.where(multipliers > 0, up(up(multipliers / self.length.lower)), 0.0)

    def square(
        self, multipliers: Array, H: Array, what: str, on: Any = slice(None)
    ) -> tuple[Enclosure, Enclosure]:
        """The completed square for multipliers of the floors ``on``, and the multipliers' sum."""
        kappa, given = self.scaled(multipliers)[on], (self.arithmetic, self.R, self.B[:, on])
        square = complete_square(*given, kappa, H, self.floors[on], what)
        return square, (self.length[on] * kappa).total()
