"""Bounds for matrices of rank r < p in factor form: outputs are unit vectors in r dimensions.

With ``R = AᵀA`` (A is r × p), for **any** symmetric N, ν, λ ≥ 0 and κ with ``N + κ_j I ≻ 0``, all
outputs U of unit length with ``a_jᵀu_j ≥ ρ_j`` have

    D2 ≥ νp - p/2 - ½‖N + νI‖² + 2ρᵀλ - Σκ_j - Σ_j λ_j² a_jᵀ(N + κ_j I)⁻¹a_j,

and the rank alone gives ``D2 ≥ (p²/r - p)/2``. Each term of the last sum is a square completed at a
float vector ``v_j``: ``2λ_j a_jᵀv_j - v_jᵀ(N + κ_j I)v_j + rest``. The cost is O(p r²), and no
p × p array is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, column_dots, exactly, up_to
from skcoral.bounds.dual import definite, least_shift, numbers, part
from skcoral.bounds.tradeoff import floors_of_columns
from skcoral.core.arrays import Array
from skcoral.core.solution import Certificate
from skcoral.core.tolerances import FACTOR_TOL
from skcoral.exceptions import CertificateError


def certified_factor(certificate: Certificate, p: int) -> Array:
    """The factor A of a certificate: as many rows as it says, unit columns."""
    A = numbers(certificate.arrays["factor"], (certificate.info["rank"], p), "`factor`")
    off = float(np.abs(np.einsum("ij,ij->j", A, A) - 1).max())
    if not off <= FACTOR_TOL:
        raise CertificateError(f"the columns of the factor have no unit length (off by {off:.1e}).")
    return A


def factors_apart(A: Array, other: Array) -> float:
    """How far two factors are from having the same ``AᵀA``, without forming it.

    ``B = Qᵀ A`` with ``Q Qᵀ = I`` has the same products; Q is found by least squares.
    """
    if other.ndim != 2 or other.shape[1] != A.shape[1]:
        raise CertificateError(
            f"a factor with {A.shape[1]} columns is wanted, got shape {other.shape}."
        )
    Qt = np.linalg.lstsq(A.T, other.T, rcond=None)[0].T
    apart = float(np.abs(other - Qt @ A).max())
    return max(apart, float(np.abs(Qt.T @ Qt - np.eye(len(A))).max()))


def from_squares(criterion: str, squares: Enclosure, total: Enclosure | float) -> Enclosure:
    """What a bound of ``Σ ω r²`` says about the criterion, where the weights ω sum to ``total``.

    The largest square is no less than their mean, and a sum of |r| ≤ 1 is at least that of their
    squares and at least the root of it.
    """
    if criterion == "squared":
        return squares
    squares = squares.at_least(0.0)
    if criterion == "worst":
        return (squares / total).sqrt() if float(exactly(total).lower) > 0 else exactly(0.0)
    return squares if float(squares.lower) >= 1.0 else squares.sqrt()


def from_dual(
    total: Enclosure, N: Array | Enclosure, p: int, *, lowest: float = -np.inf
) -> Enclosure:
    """``νp - p/2 - ½‖N + νI‖²`` plus the terms of all variables; ν is no less than ``lowest``."""
    N = exactly(N)
    r = len(N.lower)
    nu = max((p - float(np.trace(N.middle))) / r, lowest)
    shifted = N + nu * np.eye(r)
    value: Enclosure = exactly(nu) * float(p) - 0.5 * p - shifted.square().total() * 0.5 + total
    return value


def threshold_bound(certificate: Certificate, A: Array, arithmetic: Arithmetic) -> Enclosure:
    """Upper bound of the largest common floor at which D2 has its least value."""
    r, p = A.shape
    linear, N = spent(certificate.arrays, "weights", np.zeros(p), A, arithmetic)
    lengths = floors_of_columns(A, np.ones(p))
    total = (exactly(certificate.arrays["weights"]) * (lengths.rest + 1.0)).total()
    traces = exactly(np.diag(N)).total() * float(p) / float(r)
    value: Enclosure = (traces - linear) * 0.5 / total
    return value


def spent(
    arrays: Mapping[str, Array], name: str, rho_min: Array, A: Array, arithmetic: Arithmetic
) -> tuple[Enclosure, Array]:
    """``Σ 2ρ_j‖a_j‖λ_j - Σκ_j - Σ_j λ_j² a_jᵀ(N + κ_j I)⁻¹a_j``, and N."""
    r, p = A.shape
    N, lam, kappa = part(arrays, "N", r, r), part(arrays, name, p), part(arrays, "kappa", p)
    if np.any(kappa < 0):
        raise CertificateError(f"`kappa` holds a negative number ({kappa.min():.3g}).")
    values, Q = np.linalg.eigh(N)
    size = max(float(np.abs(values).max()), float(np.min(kappa)), 1e-12)
    shift, _ = least_shift(
        lambda shift: definite(arithmetic, N + shift * np.eye(r)),
        size,
        "`N` is not positive semidefinite, so it proves nothing.",
    )
    shift = max(shift, 1e-15 * size)  # so that a κ of zero is raised above it
    kappa = kappa + 2 * shift  # N + κ_j I is then at least κ_j - shift
    if not lam.any():
        return -exactly(kappa).total(), N
    V = Q @ ((Q.T @ A) * lam / (np.maximum(values, 0.0)[:, None] + kappa))
    image, least = arithmetic.product(V.T, N), kappa - 1.5 * shift
    value = square_of_columns(arithmetic, A, V, image, lam, kappa, least, rho_min)
    return value + (arithmetic.enclosed(V, V.T) * N).total(), N


def square_of_columns(
    arithmetic: Arithmetic,
    A: Array,
    V: Array,
    image: Any,
    lam: Array,
    kappa: Array,
    least: Array | float,
    rho_min: Array,
) -> Enclosure:
    """``Σ 2λ_j(ρ_j‖a_j‖ - a_jᵀv_j) + Σ κ_j(‖v_j‖² - 1) - rest``: squares completed at V.

    They are those of a form that makes ``image`` (transposed) of V, besides ``κ_j v_j``, and has no
    eigenvalue below ``least``.
    """
    pull, push = A * lam, V * kappa
    z = arithmetic.enclosure(image, (pull - push).T).size().T
    z = z + 4 * np.spacing(np.abs(pull) + np.abs(push))
    floors = floors_of_columns(A, rho_min)
    fidelity = column_dots(A, V, floors.near) - floors.rest
    lengths = column_dots(V, V, np.ones(len(lam)))
    value: Enclosure = (lengths * kappa).total() - (fidelity * (2.0 * lam)).total()
    return value - up_to(float(np.sum(z * z / least)))
