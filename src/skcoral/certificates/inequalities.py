"""The inequalities behind the certificates, evaluated with every rounding enclosed.

For anchors ``b_j`` (the variables themselves by default), ``κ ≥ 0`` and ``H ≻ 0``, every ``T`` has

    ⟨TᵀRT - I, H⟩ - 2 Σ κ_j (b_jᵀRt_j - c_j)  ≥  2 Σ κ_j (c_j - b_jᵀRx_j) + ⟨XᵀRX - I, H⟩ - rest

with any ``X``, ``Z = X H - B D_κ`` and ``rest = tr(H⁻¹ Zᵀ R Z)``: a square completed at ``X``
instead of at its minimum ``B D_κ H⁻¹``. With ``X`` near the minimum ``rest`` is of the order
of the square of a rounding, so a crude bound of it will do, and no inverse has to be enclosed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral._arrays import Array
from skcoral.certificates.enclosures import WIDER, Enclosure, down, exactly, up
from skcoral.certificates.products import Arithmetic
from skcoral.exceptions import CertificateError

# Diagonals that are tried, relative to that of H: a semidefinite H proves its bound in the limit.
_SHIFTS = (0.0, 1e-15, 1e-13, 1e-11)


@dataclass(frozen=True)
class Definite:
    """A proof that a symmetric matrix is positive definite.

    ``inverse`` is a nonsingular K with ``‖K A Kᵀ - I‖ ≤ doubt < 1``: ``A⁻¹ ⪯ KᵀK / (1 - doubt)``.
    """

    factor: Array
    inverse: Array
    doubt: float

    def inverse_form(self, z: Array) -> float:
        """Upper bound of ``tr(ZᵀA⁻¹Z)`` from the sizes of the entries of ``Z``."""
        y = (np.abs(self.inverse) @ z) * WIDER
        form = float(np.sum(y * y)) * WIDER / (1 - self.doubt) * WIDER
        return form if np.isfinite(form) else np.inf


def definite(
    arithmetic: Arithmetic, A: Array, radius: Array | None = None, *, scale: bool = True
) -> Definite | None:
    """Prove that ``A``, known within ``radius``, is positive definite; None where that fails."""
    diagonal = np.diag(A)
    if not np.all(diagonal > 0):
        return None
    # Powers of two make the diagonal nearly one without a rounding.
    d = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2)) if scale else np.ones(len(A))
    scaled = A * np.outer(d, d)
    factor, info = sla.lapack.dpotrf(scaled, lower=1, clean=1)
    if info != 0:
        return None
    K, info = sla.lapack.dtrtri(factor, lower=1)
    if info != 0 or not np.isfinite(K).all():
        return None
    image = arithmetic.product(scaled, np.ascontiguousarray(K.T))
    error = arithmetic.enclosure(arithmetic.apply(K, image), np.eye(len(A))).size()
    if radius is not None:
        size = np.abs(K)
        error = error + size @ (radius * np.outer(d, d)) @ size.T * WIDER
    doubt = float(np.sqrt(np.sum(error * error)) * WIDER)
    if not doubt < 1:
        return None
    return Definite(factor / d[:, None], K * d[None, :], doubt)


@dataclass(frozen=True)
class Floors:
    """``ρ_j √(b_jᵀRb_j)``, the floors of anchors of any length: a float and what it lacks."""

    near: Array
    rest: Enclosure

    def __getitem__(self, on: Any) -> Floors:
        return Floors(self.near[on], self.rest[on])


def floors_of(rho_min: Array) -> Floors:
    """Floors of anchors of length one."""
    return Floors(rho_min, exactly(np.zeros(len(rho_min))))


def scaled_floors(arithmetic: Arithmetic, R: Array, B: Array, rho_min: Array) -> Floors:
    """Floors of anchors as they are, to more digits than a float has."""
    gram = arithmetic.apply(np.ascontiguousarray(B.T), arithmetic.product(R, B))
    length = np.sqrt(np.diag(arithmetic.enclosure(gram).upper))
    squares = [Fraction(c) ** 2 for c in length.tolist()]
    near = np.array([float(q) for q in squares])
    lack = np.array([float(q - Fraction(n)) for q, n in zip(squares, near.tolist(), strict=True)])
    short = arithmetic.enclosure(gram, np.diag(near))
    short = Enclosure(np.diag(short.lower), np.diag(short.upper)) - lack
    # √(b) = c + (b - c²) / (√b + c), and the denominator is 2c but for a rounding
    more = short / (Enclosure(down(2 * length), up(2 * length)) * Enclosure(1 - 1e-12, 1 + 1e-12))
    products = [
        Fraction(c) * Fraction(r) for c, r in zip(length.tolist(), rho_min.tolist(), strict=True)
    ]
    near = np.array([float(q) for q in products])
    lack = np.array([float(q - Fraction(n)) for q, n in zip(products, near.tolist(), strict=True)])
    return Floors(near, more * rho_min + Enclosure(down(lack), up(lack)))


@dataclass(frozen=True)
class Square:
    """A square completed at ``X``; see the head of this file."""

    arithmetic: Arithmetic
    kappa: Array
    fidelity: Any
    slack: Enclosure

    def value(self, floors: Floors) -> Enclosure:
        """``2 Σ κ_j (c_j - b_jᵀRx_j) + ⟨XᵀRX - I, H⟩ - rest``: the bound lies between the ends."""
        over = self.arithmetic.enclosure(self.fidelity, np.diag(floors.near))
        short = floors.rest - Enclosure(np.diag(over.lower), np.diag(over.upper))
        return (short * (2.0 * self.kappa)).total() + self.slack


def complete_square(
    arithmetic: Arithmetic, R: Array, B: Array, kappa: Array, H: Array, what: str
) -> Square:
    """Complete the square at a point near its minimum, with a proof that ``H ≻ 0``.

    Parameters
    ----------
    arithmetic : Arithmetic
        Floating point or balls.
    R : ndarray of shape (p, p)
        Positive semidefinite.
    B : ndarray of shape (p, k)
        Anchors, the identity if there are none.
    kappa : ndarray of shape (k,)
        Multipliers of the fidelities, not negative.
    H : ndarray of shape (k, k)
        Symmetric.
    what : str
        The name of ``H`` in messages.
    """
    for shift in _SHIFTS:
        shifted = H + np.diag(shift * np.diag(H)) if shift else H
        proof = definite(arithmetic, shifted)
        if proof is not None:
            break
    else:
        raise CertificateError(f"{what} is not positive definite, so it proves nothing.")
    target = B * kappa
    X = sla.lapack.dpotrs(proof.factor, np.ascontiguousarray(target.T), lower=1)[0].T
    X = np.ascontiguousarray(X)
    if not np.isfinite(X).all():
        raise CertificateError(f"{what} is too nearly singular to prove anything.")
    Z = arithmetic.enclosure(arithmetic.product(X, shifted), target).size()
    Z = Z + np.where((B == 0) | (B == 1), 0.0, np.spacing(np.abs(target)))  # B D_κ was rounded
    largest = float(np.abs(R).sum(axis=1).max()) * WIDER  # no eigenvalue of R exceeds it
    rest = largest * proof.inverse_form(Z.T) * WIDER
    image = arithmetic.product(R, X)
    defect = arithmetic.enclosure(
        arithmetic.apply(np.ascontiguousarray(X.T), image), np.eye(len(H))
    )
    slack = (defect * shifted).total() - Enclosure(0.0, rest)
    return Square(arithmetic, kappa, anchored(arithmetic, B, image), slack)


def anchored(arithmetic: Arithmetic, B: Array, image: Any) -> Any:
    """``Bᵀ (R X)``, whose diagonal holds the fidelities, in the arithmetic's own form."""
    if B.shape[0] == B.shape[1] and np.array_equal(B, np.eye(len(B))):
        return image
    return arithmetic.apply(np.ascontiguousarray(B.T), image)


def along(arithmetic: Arithmetic, B: Array, image: Any) -> Enclosure:
    """``b_jᵀ (R X)_j`` for every output."""
    full = arithmetic.enclosure(anchored(arithmetic, B, image))
    return Enclosure(np.diag(full.lower).copy(), np.diag(full.upper).copy())


def conjugate(criterion: str, H: Array, weights: Array) -> tuple[Enclosure, Enclosure]:
    """Conjugate of the criterion at ``off(H)``, and how far H lies outside its domain (≥ 1).

    A point outside is pulled inside by dividing κ and H by that number.
    """
    rows, columns = np.triu_indices(len(H), 1)
    h, w = np.abs(H[rows, columns]), weights[rows, columns]
    if np.any(h[w == 0] > 0):
        raise CertificateError("H is not zero at a pair of weight zero, so it proves nothing.")
    h, w = h[w > 0], w[w > 0]
    none, one = exactly(0.0), exactly(1.0)
    if criterion == "squared":
        return (exactly(h).square() / w).total(), one
    ratio = exactly(h) * 2.0 / w
    outside = ratio.total() if criterion == "worst" else ratio.greatest()
    return none, Enclosure(max(1.0, float(outside.lower)), max(1.0, float(outside.upper)))


def residual(criterion: str, G: Enclosure, weights: Array) -> Enclosure:
    """Value of the criterion on the output correlations."""
    rows, columns = np.triu_indices(len(weights), 1)
    size = G[rows, columns].absolute()
    w = weights[rows, columns]
    if criterion == "squared":
        return (size.square() * w).total()
    return (size * w).total() if criterion == "absolute" else (size * w).greatest()


def root_diagonal(arithmetic: Arithmetic, R: Array) -> Enclosure:
    """The diagonal of ``R^{1/2}``: the fidelities of ZCA-cor.

    ``‖X - R^{1/2}‖ ≤ ‖X² - R‖ / λ_min(X)`` for any positive definite ``X``; here ``X`` is a float
    matrix plus the correction ``L`` of one Newton step.
    """
    p = len(R)
    values, vectors = np.linalg.eigh(R)
    roots = np.sqrt(np.maximum(values, 0.0))
    X = (vectors * roots) @ vectors.T
    X = 0.5 * (X + X.T)
    least = 0.5 * float(roots[0])
    if least <= 0 or definite(arithmetic, X - least * np.eye(p)) is None:
        return Enclosure(np.full(p, -np.inf), np.full(p, np.inf))
    error = arithmetic.enclosure(arithmetic.product(X, X), R)
    middle = vectors.T @ (0.5 * (error.lower + error.upper)) @ vectors
    L = -vectors @ (middle / np.add.outer(roots, roots)) @ vectors.T
    L = 0.5 * (L + L.T)
    step = arithmetic.enclosure(arithmetic.product(X, L))
    left = (error + step + Enclosure(step.lower.T, step.upper.T)).size()
    size = float(np.sqrt(np.sum(left * left)) + np.sum(L * L)) * WIDER
    off = float(up(size / (0.99 * least - float(np.sqrt(np.sum(L * L))))))
    spread = np.full(p, off)
    return exactly(np.diag(X)) + Enclosure(down(np.diag(L) - spread), up(np.diag(L) + spread))
