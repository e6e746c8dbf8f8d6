"""The bound of the rank: Gram matrices of p outputs in r dimensions have r eigenvalues.

With ``R = AᵀA``, for any ``λ ≥ 0``, ``H ≻ 0`` and S, which is H with another diagonal, all outputs
have

    D2 ≥ 2ρᵀλ - tr(D_λ R D_λ H⁻¹) - Σ(H_jj - S_jj) - p/2 - ½ Σ_{i ≤ r} s_i²,

where the s_i are the eigenvalues of S with the largest squares.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skcoral._arrays import Array
from skcoral.certificates.definiteness import definite
from skcoral.certificates.enclosures import Enclosure, around, exactly
from skcoral.certificates.frame_bounds import floors_of_columns
from skcoral.certificates.inequalities import complete_square
from skcoral.certificates.products import Arithmetic
from skcoral.certificates.reading import numbers

_LOWERED = (1e-13, 1e-12, 1e-11, 1e-10)  # of η, relative to the largest square


def rank_bound(
    arrays: Mapping[str, Array], rho_min: Array, A: Array, arithmetic: Arithmetic
) -> Enclosure:
    """Lower bound of D2 that a certificate of kind "rank" proves."""
    r, p = A.shape
    H = numbers(arrays["H"], (p, p), "`H`", symmetric=True)
    lam = numbers(arrays["multipliers"], (p,), "`multipliers`", nonnegative=True)
    S = H.copy()
    np.fill_diagonal(S, numbers(arrays["diagonal"], (p,), "`diagonal`"))
    square = complete_square(arithmetic, np.eye(r), A, lam, H, "`H`")
    floors = floors_of_columns(A, rho_min, arithmetic)
    value = square.value(floors) + exactly(np.diag(S)).total() - float(p) * 0.5
    return value - largest_squares(S, r, arithmetic) * 0.5


def largest_squares(S: Array, r: int, arithmetic: Arithmetic) -> Enclosure:
    """The sum of the r largest squares of eigenvalues of S.

    Those left over are at least ``(p - r) η - tr P`` for any P ⪰ 0 with ``S² + P ⪰ ηI``, and no
    more than ``tr VᵀS²V`` for any orthonormal V.
    """
    p = len(S)
    product = arithmetic.enclosed(S, S)
    whole = product.diagonal().total()
    values, Q = np.linalg.eigh(S)
    squares = values * values
    order = np.argsort(squares)
    eta = float(squares[order[-r]])
    V = Q[:, order[: p - r]]
    length = float(np.sqrt(np.sum(arithmetic.enclosed(V.T, V, minus=np.eye(p - r)).size() ** 2)))
    most = arithmetic.enclosed(V.T, S, S, V).diagonal().total() / around(1.0, 2.0 * length)
    roots = Q * np.sqrt(np.maximum(eta - squares, 0.0))
    P = arithmetic.enclosed(roots, roots.T)
    middle = product.middle + P.middle
    middle = 0.5 * (middle + middle.T)
    radius = (product + P - middle).size() + 2 * np.spacing(np.abs(middle) + eta)
    for shift in _LOWERED:
        level = eta - shift * float(squares.max())
        if definite(arithmetic, middle - level * np.eye(p), radius) is not None:
            least = exactly(level) * float(p - r) - P.diagonal().total()
            return whole - Enclosure(max(float(least.lower), 0.0), float(most.upper))
    return whole - Enclosure(0.0, float(most.upper))
