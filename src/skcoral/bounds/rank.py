"""The bound of the rank: Gram matrices of p outputs in r dimensions have r eigenvalues.

With ``R = AᵀA``, for any ``λ ≥ 0``, ``H ≻ 0`` and S, which is H with another diagonal, all outputs
have

    D2 ≥ 2ρᵀλ - tr(D_λ R D_λ H⁻¹) - Σ(H_jj - S_jj) - p/2 - ½ Σ_{i ≤ r} s_i²,

where the s_i are the eigenvalues of S with the largest squares.

In factor form, for tables with many more columns than rows, for any ``λ ≥ 0``, V (r × p), ``ν ≥ 0``
and κ of either sign with ``H = VᵀV + diag(κ) ≻ 0``, all outputs have

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
from dataclasses import dataclass

import numpy as np

from skcoral.bounds.arithmetic import WIDER, Arithmetic, Enclosure, down, exactly
from skcoral.bounds.dual import Definite, definite, least_shift, part
from skcoral.bounds.frame import from_dual, from_squares, spent, square_of_columns
from skcoral.bounds.tradeoff import complete_square, floors_of_columns, tradeoff_bound
from skcoral.core.arrays import Array
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

_DECADES = range(1, 13)  # below the least diagonal entry of H, where its eigenvalues may end


def rank_bound(
    arrays: Mapping[str, Array], rho_min: Array, A: Array, arithmetic: Arithmetic
) -> Enclosure:
    """Lower bound of D2 that a certificate of kind "rank" proves, with H or its factors."""
    if "V" in arrays:
        return _factored(arrays, rho_min, A, arithmetic)
    r, p = A.shape
    H, lam = part(arrays, "H", p, p), part(arrays, "multipliers", p)
    S = H.copy()
    np.fill_diagonal(S, part(arrays, "diagonal", p))
    floors = floors_of_columns(A, rho_min)
    square = complete_square(arithmetic, np.eye(r), A, lam, H, floors)
    value = square + exactly(np.diag(S)).total() - float(p) * 0.5
    return value - largest_squares(S, r, arithmetic) * 0.5


def largest_squares(S: Array, r: int, arithmetic: Arithmetic) -> Enclosure:
    """No less than the sum of the r largest squares of eigenvalues of S.

    Those left over are at least ``(p - r) η - tr P`` for any P ⪰ 0 with ``S² + P ⪰ ηI``.
    """
    p = len(S)
    product = arithmetic.enclosed(S, S)
    squared = product.diagonal().total()
    values, Q = np.linalg.eigh(S)
    squares = values * values
    eta = float(np.sort(squares)[-r])
    roots = Q * np.sqrt(np.maximum(eta - squares, 0.0))
    P = arithmetic.enclosed(roots, roots.T)
    middle, radius = (product + P).spread(symmetric=True)
    radius = radius + 2 * np.spacing(np.abs(middle) + eta)
    shift, _ = least_shift(
        lambda shift: definite(arithmetic, middle - (eta - shift) * np.eye(p), radius),
        float(squares.max()),
        "the least squares of the matrix of the rank cannot be proved.",
    )
    least = exactly(eta - shift) * float(p - r) - P.diagonal().total()
    return squared - least.at_least(0.0)


def _factored(
    arrays: Mapping[str, Array], rho_min: Array, A: Array, arithmetic: Arithmetic
) -> Enclosure:
    """Lower bound of D2 by V and κ."""
    r, p = A.shape
    V = part(arrays, "V", r, p)
    lam, kappa = part(arrays, "multipliers", p), part(arrays, "kappa", p)
    least = _least_eigenvalue(kappa, V, arithmetic)
    X = _solved(kappa, V, A * lam)
    inner = arithmetic.product(V, X.T)
    image = arithmetic.product(V.T, inner)
    value = square_of_columns(arithmetic, A, X, image, lam, kappa, least, rho_min)
    value = value + arithmetic.enclosure(inner).square().total()
    return from_dual(value, arithmetic.enclosed(V, V.T), p, lowest=0.0)


def _least_eigenvalue(kappa: Array, V: Array, arithmetic: Arithmetic) -> float:
    """A number above zero that no eigenvalue of H is below."""
    top = float(np.min(np.sum(V * V, axis=0) + kappa))
    for c in (top * 10.0**-k for k in _DECADES if top > 0):
        if _definite(down(kappa - c), V, arithmetic) is not None:
            return c
    raise CertificateError("`V` and `kappa` make no positive definite matrix: no proof.")


def _definite(kappa: Array, V: Array, arithmetic: Arithmetic) -> Definite | None:
    """A proof that ``VᵀV + diag(κ)`` is positive definite, by K; None where that fails."""
    J, P = np.split(np.argsort(kappa), [len(V)])
    if not (kappa[P] > 0).all():
        return None
    V_J, scaled = V[:, J], V[:, P] / np.sqrt(kappa[P])
    Y = np.linalg.solve(np.eye(len(V)) + scaled @ scaled.T, V_J)
    middle = V_J.T @ Y + np.diag(kappa[J])
    if not np.isfinite(Y).all() or not np.linalg.eigvalsh(middle + middle.T)[0] > 0:
        return None
    rows = arithmetic.enclosed(V[:, P].T, np.asarray(Y)) / exactly(kappa[P, None]).sqrt()
    near, radius = rows.spread()
    off = np.linalg.norm(radius, axis=0)
    far = np.linalg.norm(near, axis=0) + off
    left, right = np.vstack([Y, V_J, Y, near]), np.vstack([V_J, Y, -Y, -near])
    K = arithmetic.enclosed(left.T, right, minus=-np.diag(kappa[J]))
    middle, radius = K.spread(symmetric=True)
    doubt = (np.outer(far, off) + np.outer(off, far)) * WIDER
    return definite(arithmetic, middle, radius + doubt)


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


@dataclass(frozen=True)
class DualBound:
    """A lower bound of the criterion, and its slopes in the floors.

    ``tangent`` holds the bound that grows linearly with a common floor, of D2 (``of_squares``) or
    of the criterion itself, and the sum of its slopes.
    """

    bound: Enclosure
    slopes: Array
    tangent: tuple[Enclosure, Enclosure]
    of_squares: bool = True

    def highest_floor(self, budget: float, criterion: str, floor: float) -> float:
        """A common floor that no transformation within the budget exceeds; infinite for none."""
        p, limit = len(self.slopes), exactly(budget)
        if criterion == "worst" and self.of_squares:
            limit = limit.square() * max(p * (p - 1) / 2, 1.0)
        bound, slope = self.tangent
        top = float(((limit - bound) / slope + floor).upper)
        return np.inf if np.isnan(top) else top


def factor_bound(
    dual: Certificate,
    criterion: str,
    pair_weights: Array | None,
    rho_min: Array,
    A: Array,
    arithmetic: Arithmetic,
) -> DualBound:
    """What a dual point proves about the outputs of ``AᵀA``."""
    arrays, (r, p) = dual.arrays, A.shape
    lam = part(arrays, "multipliers", p)
    slope = (exactly(lam) * 2.0).total()
    if dual.kind == "tradeoff":
        floors = floors_of_columns(A, rho_min)
        square = np.eye(r), A, lam, part(arrays, "H", p, p)
        bound = tradeoff_bound(arithmetic, *square, floors, criterion, pair_weights)
        return DualBound(bound, 2.0 * lam, (bound, slope), of_squares=False)
    if dual.kind == "rank":
        squares = rank_bound(arrays, rho_min, A, arithmetic)
    else:
        squares = from_dual(*spent(arrays, "multipliers", rho_min, A, arithmetic), p)
    if pair_weights is not None:  # Welch's bound is about equal weights
        if lam.any() or dual.kind != "frame":
            raise CertificateError("a frame is not combined with pair weights.")
        return DualBound(exactly(0.0), lam, (exactly(0.0), slope))
    bound, slopes = from_squares(criterion, squares, max(p * (p - 1) / 2, 1.0)), 2.0 * lam
    if not slopes.any() and criterion == "absolute":
        bound = bound.at_least(float(p - r))  # by the projection on the null space
    if slopes.any() and criterion == "worst":
        slopes = slopes * (0.5 * float(bound.lower) / float(squares.lower))
    return DualBound(bound, slopes, (squares, slope))
