"""The bound on the common floor within a limit on the variance inflation factors (VIF).

Let no VIF exceed v: ``(G⁻¹)_jj ≤ v`` with ``G = TᵀRT``. For any numbers s and vectors ``y_j``,

    2 s_j Y_jj ≤ s_j² (G⁻¹)_jj + y_jᵀ G y_j,   so   ⟨G, YYᵀ⟩ ≥ Σ (2 s_j Y_jj - s_j² v).

For weights λ ≥ 0 and ``H ≻ 0`` the completed square of :mod:`~skcoral.bounds.tradeoff`
bounds ``2 Σ λ_j (f_j - c_j)`` by ``⟨G - I, H⟩`` less its value. No entry of G exceeds one, so

    ⟨G - I, H⟩ ≤ ‖Y‖² + Σ_{i≠j} |H + YYᵀ|_ij + Σ (s_j² v - 2 s_j Y_jj),

and floors that all lie above the bound are not met by any transformation within the limit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, Floats, column_dots, exactly
from skcoral.bounds.dual import definite, part
from skcoral.bounds.tradeoff import Outputs
from skcoral.core.arrays import Array
from skcoral.exceptions import CertificateError


def limited_room(arrays: Mapping[str, Array], limit: float, outputs: Outputs) -> Enclosure:
    """By how much the floors of the outputs can all be raised within the limit, at most."""
    k = outputs.k
    weights, H = part(arrays, "vif_weights", k), part(arrays, "vif_H", k, k)
    s, Y = part(arrays, "vif_roots", k), part(arrays, "vif_vectors", k, k)
    if not weights.any():
        raise CertificateError("the weights of a limit on the VIF are all zero.")
    square, total = outputs.square(weights, H, "`vif_H`")
    left = outputs.arithmetic.enclosed(Y, Y.T, minus=-H).size()
    np.fill_diagonal(left, 0.0)
    gained = exactly(s) * np.diag(Y) * 2.0  # 2 s_j Y_jj
    spent = exactly(Y).square().total() + exactly(left).total()
    spent = spent + (exactly(s).square() * limit - gained).total()
    return (spent - square) * 0.5 / total


def proved_floor(R: Array, T: Array, arrays: Mapping[str, Array], limit: float) -> float:
    """The bound on the common floor that these arrays prove; infinite where they prove nothing.

    ``T`` is any transformation near the best one: the bound is measured from its weakest fidelity.
    """
    floor = float(np.einsum("ij,ij->j", R, T).min())
    outputs = Outputs(T, np.eye(len(R)), np.full(T.shape[1], floor), R, Floats())
    try:
        top = limited_room(arrays, limit, outputs) + floor
    except CertificateError:
        return np.inf
    return float(np.nan_to_num(top.upper, nan=np.inf))


def least_unique(G: Enclosure, arithmetic: Arithmetic) -> Enclosure:
    """The least ``1 / (G⁻¹)_jj``; nothing is known of it where G may be singular."""
    middle, radius = G.spread(symmetric=True)
    proof = definite(arithmetic, middle, np.maximum(radius, radius.T))
    if proof is None:
        return Enclosure(-np.inf, np.inf)
    # KᵀK / (1 + doubt) ⪯ G⁻¹ ⪯ KᵀK / (1 - doubt)
    K = proof.inverse
    return exactly(1.0).widened(proof.doubt) / column_dots(K, K, np.zeros(len(K))).greatest()
