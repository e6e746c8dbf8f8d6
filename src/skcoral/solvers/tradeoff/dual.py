"""The dual of the trade-off: a lower bound from any multipliers, and its derivatives.

For **any** ``λ ≥ 0`` and ``H ≻ 0``, every transformation with unit variances and fidelities of at
least ``ρ_j`` has

    φ(off G) ≥ 2 ρᵀλ - tr H - φ*(off H) - tr(D_λ R D_λ H⁻¹)                                      (★)

with φ the criterion and φ* its conjugate. At the best ``λ, H`` the two sides are equal.
"""

from __future__ import annotations

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import (
    Array,
    cholesky_or_none,
    column_dots,
    inner,
    inverse_factored,
    norm,
    plus_diagonal,
    solve_lower,
    to_device,
)
from skcoral.core.linalg import gram_defect
from skcoral.core.results import Criterion
from skcoral.exceptions import CertificateError


def dual_bound(
    R: Array,
    floors: Array,
    multipliers: Array,
    H: Array,
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    *,
    near: Array | None = None,
    near_correlation: Array | None = None,
) -> float:
    """Evaluate the lower bound (★), valid for any ``multipliers ≥ 0`` and ``H ≻ 0``.

    With ``Z = T H - D_λ``, ``G = TᵀRT`` and ``f = diag(RT)`` for an arbitrary ``T``, (★) equals

        2 λᵀ(ρ - f) + ⟨G - I, H⟩ - φ*(off H) - tr(H⁻¹ Zᵀ R Z),

    which does not lose its digits when λ is large (floors near one). That ``T`` is ``near``,
    ``D_λ H⁻¹`` by default; it does not change the bound, only its rounding. ``near_correlation`` is
    its ``TᵀRT``, if it is known already. The bound is ``-inf`` where the conjugate is infinite.
    """
    if np.any(multipliers < 0):
        raise CertificateError(
            f"multipliers must not be negative, the least is {multipliers.min():.3g}."
        )
    if not multipliers.any() and norm(H) == 0.0:
        return 0.0  # the limit of small H: no criterion is negative
    factor = cholesky_or_none(H)
    if factor is None:
        raise CertificateError("H is not positive definite, so it proves nothing.")
    penalty = criteria.conjugate(criterion, H, pair_weights)
    if not np.isfinite(penalty):
        return -np.inf
    if near is None:
        near = (inverse_factored(factor) * to_device(multipliers[None, :], H)).T
    defect = gram_defect(R, near) if near_correlation is None else near_correlation
    if near_correlation is not None:
        defect = plus_diagonal(1.0 * defect, -1.0)
    Z = plus_diagonal(near @ H, -multipliers)
    half = solve_lower(factor, Z.T)
    slack = 2.0 * float(multipliers @ (floors - column_dots(R, near)))
    return float(slack + inner(defect, H) - penalty - inner(half @ R, half))
