"""The bound of the rank in factor form, for tables with many more columns than rows.

With ``R = AᵀA`` (A is r × p), for any ``λ ≥ 0``, V (r × p), ``ν ≥ 0`` and κ of either sign with
``H = VᵀV + diag(κ) ≻ 0``, all outputs have

    D2 ≥ νp - p/2 - ½‖VVᵀ + νI‖² + 2ρᵀλ - Σκ_j - tr(D_λ R D_λ H⁻¹) .

H is nowhere more than r dimensions away from its diagonal, and no p × p array is made: that it is
positive definite follows from a matrix of order r. With P the variables other than those of the r
least κ, which are J, ``κ_P > 0`` and any Y (r × r),

    xᵀHx ≥ x_Jᵀ K x_J,   K = diag(κ_J) + V_JᵀY + YᵀV_J - YᵀY - (V_PᵀY)ᵀ diag(κ_P)⁻¹ (V_PᵀY),

for all x, and ``xᵀHx > 0`` where ``x_J = 0``. With Y near ``(I + V_P diag(κ_P)⁻¹ V_Pᵀ)⁻¹ V_J``
nothing is lost: K is the Schur complement.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.definiteness import Definite, definite, first_definite
from skcoral.certificates.enclosures import WIDER, Enclosure, down, exactly, up_to
from skcoral.certificates.frame_bounds import from_columns, from_dual
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import numbers
from skcoral.exceptions import CertificateError

_DECADES = range(1, 13)  # below the least diagonal entry of H, where its eigenvalues may end


def rank_factor_bound(
    arrays: Mapping[str, Array], rho_min: Array, A: Array, arithmetic: Arithmetic
) -> Enclosure:
    """Lower bound of D2 that a certificate of kind "rank_factor" proves."""
    r, p = A.shape
    V = numbers(arrays["V"], (r, p), "`V`")
    lam = numbers(arrays["multipliers"], (p,), "`multipliers`", nonnegative=True)
    kappa = numbers(arrays["kappa"], (p,), "`kappa`")
    least = _least_eigenvalue(kappa, V, arithmetic)
    pull = A * lam
    X = _solved(kappa, V, pull)
    push = X * kappa
    image = arithmetic.product(V, X.T)
    z = arithmetic.enclosure(arithmetic.apply(V.T, image), (pull - push).T).size()
    z = z + 4 * np.spacing(np.abs(pull) + np.abs(push)).T
    value = from_columns(A, X, lam, kappa, rho_min, arithmetic)
    value = value + arithmetic.enclosure(image).square().total()
    value = value - up_to(float(np.sum(z * z)) / least)
    return from_dual(value, arithmetic.enclosed(V, V.T), p, lowest=0.0)


def _least_eigenvalue(kappa: Array, V: Array, arithmetic: Arithmetic) -> float:
    """A number above zero that no eigenvalue of H is below."""
    top = float(np.min(np.sum(V * V, axis=0) + kappa))
    trials = (top * 10.0**-k for k in _DECADES if top > 0)
    least, _ = first_definite(
        ((c, _definite(down(kappa - c), V, arithmetic)) for c in trials),
        "`V` and `kappa` make no positive definite matrix, so they prove nothing.",
    )
    return float(least)


def _definite(kappa: Array, V: Array, arithmetic: Arithmetic) -> Definite | None:
    """A proof that ``VᵀV + diag(κ)`` is positive definite, by K; None where that fails."""
    J, P = np.split(np.argsort(kappa), [len(V)])
    if not (kappa[P] > 0).all():
        return None
    own, scaled = V[:, J], V[:, P] / np.sqrt(kappa[P])
    Y = np.linalg.solve(np.eye(len(V)) + scaled @ scaled.T, own)
    middle = own.T @ Y + np.diag(kappa[J])
    if not np.isfinite(Y).all() or not np.linalg.eigvalsh(middle + middle.T)[0] > 0:
        return None
    rows = arithmetic.enclosed(V[:, P].T, np.asarray(Y)) / exactly(kappa[P, None]).sqrt()
    near: Array = rows.middle
    off = np.linalg.norm((rows - near).size(), axis=0)
    far = np.linalg.norm(near, axis=0) + off
    left, right = np.vstack([Y, own, Y, near]), np.vstack([own, Y, -Y, -near])
    K = arithmetic.enclosed(left.T, right, minus=-np.diag(kappa[J]))
    middle = 0.5 * (K.middle + K.middle.T)
    doubt = (np.outer(far, off) + np.outer(off, far)) * WIDER
    return definite(arithmetic, middle, (K - middle).size() + doubt)


def _solved(kappa: Array, V: Array, B: Array) -> Array:
    """Floats near ``B H⁻¹``."""
    r = len(V)
    J, P = np.split(np.argsort(kappa), [r])
    scaled = V[:, P] / kappa[P]
    system = np.block([[np.diag(kappa[J]), V[:, J].T], [V[:, J], -np.eye(r) - scaled @ V[:, P].T]])
    try:
        both = np.linalg.solve(system, np.vstack([B[:, J].T, -scaled @ B[:, P].T]))
    except np.linalg.LinAlgError:
        raise CertificateError(
            "`V` and `kappa` are too nearly singular to prove anything."
        ) from None
    X = np.empty_like(B)
    X[:, J] = both[:r].T
    X[:, P] = (B[:, P] - both[r:].T @ V[:, P]) / kappa[P]
    return X
