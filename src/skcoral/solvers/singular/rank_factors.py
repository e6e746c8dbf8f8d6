"""The bound (★r) in factor form, and outputs that prove themselves by it, at a cost of O(p r²).

For V of r rows, ``ν = max(0, (p - ‖V‖²)/r)`` and ``H = VᵀV + diag(κ) ≻ 0``, the matrix
``S = νI + VᵀV`` has the r largest squares ``‖VVᵀ + νI‖²``, and (★r) is

    D2 ≥ νp - p/2 - ½‖VVᵀ + νI‖² + 2ρᵀλ - Σκ_j - tr(D_λ R D_λ H⁻¹) .

No p × p array is formed. Some κ may be negative, no more than r of them.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import Array
from skcoral.solvers.singular.answer import RankFactorProof
from skcoral.solvers.singular.proof import at_source, rounding_of_lengths

_RIM = 1e-7  # above the floor, where an output still counts as at the rim of its cap


def proof_by_outputs(A: Array, U: Array, floors: Array) -> RankFactorProof:
    """The dual point that stationary outputs suggest; it proves them optimal if ``H ≻ 0``.

    ``UG + U diag(κ - ν) = A D_λ`` is the condition of a stationary U, with λ where floors bind, and
    ``S = νI + VᵀV`` is G on its range and ν, the least eigenvalue of ``UUᵀ``, elsewhere: half the
    sum of the r largest squares is then ``½‖G‖²``, and the bound is attained.
    """
    values, Q = np.linalg.eigh(U @ U.T)
    values = np.maximum(values, np.finfo(np.float64).eps * values[-1])  # outputs may span less
    above = values - values[0]
    B, W = Q.T @ A, Q.T @ U
    slope = above[:, None] * W
    fidelity, own, along = (np.einsum("ij,ij->j", *ab) for ab in ((B, W), (W, slope), (B, slope)))
    rim = (fidelity <= floors + _RIM) & (fidelity < 1.0)
    lam = np.where(rim, (along - fidelity * own) / np.where(rim, 1.0 - fidelity**2, 1.0), 0.0)
    lam = np.maximum(lam, 0.0)
    kappa = lam * fidelity - own
    pinned = floors >= 1.0
    if pinned.any():
        lam[pinned], kappa[pinned] = at_source(np.diag(above), B[:, pinned])
    return RankFactorProof(np.sqrt(above / values)[:, None] * W, lam, kappa)


def gap_of_factors(proof: RankFactorProof, A: Array, U: Array, floors: Array) -> float:
    """How far the sum of squares of a feasible ``U`` can be above the bound of ``proof``.

    ``½‖UUᵀ‖² + ½‖VVᵀ + νI‖² - ‖UVᵀ‖² - νp + Σ 2λ_j(f_j - ρ_j) + tr(ZH⁻¹Zᵀ)`` with
    ``Z = UH - AD_λ``.
    """
    (r, p), V = A.shape, proof.V
    N, K = V @ V.T, U @ V.T
    nu = max((p - float(np.trace(N))) / r, 0.0)
    rest = _inverse_form(proof.kappa, V, K @ V + U * proof.kappa - A * proof.lam)
    slack = np.where(floors >= 1.0, 0.0, np.einsum("ij,ij->j", A, U) - floors)
    half = 0.5 * float(np.sum((U @ U.T) ** 2) + np.sum((N + nu * np.eye(r)) ** 2))
    off = half - float(np.sum(K * K)) - nu * p
    return float(off + 2.0 * (proof.lam @ slack) + rest + rounding_of_lengths(proof, floors))


def _inverse_form(kappa: Array, V: Array, Z: Array) -> float:
    """``tr(ZH⁻¹Zᵀ)`` for ``H = VᵀV + diag(κ)``; infinite unless ``H ≻ 0``.

    The columns of the r least κ are eliminated last: the others have to be positive, as H is on r
    dimensions at most more than its diagonal.
    """
    r = len(V)
    few, many = np.split(np.argsort(kappa), [r])
    if not kappa[many[0]] > 0.0:
        return np.inf
    root = np.sqrt(kappa[many])
    W, Y = V[:, many] / root, Z[:, many] / root
    inner = np.linalg.cholesky(np.eye(r) + W @ W.T)
    own, crossed = (
        sla.solve_triangular(inner, right, lower=True) for right in (V[:, few], W @ Y.T)
    )
    outer, info = sla.lapack.dpotrf(np.diag(kappa[few]) + own.T @ own, lower=1, clean=1)
    if info != 0:
        return np.inf
    last = sla.solve_triangular(outer, Z[:, few].T - own.T @ crossed, lower=True)
    return float(np.sum(Y * Y) - np.sum(crossed * crossed) + np.sum(last * last))
