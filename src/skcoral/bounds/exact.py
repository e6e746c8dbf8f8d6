"""How much room an exact decorrelator leaves: for higher floors, or for a larger mean fidelity.

For weights ``d ≥ 0`` and ``S ≻ 0`` every exact decorrelator has

    Σ d_j f_j ≤ [tr(S⁻¹ D R D) + tr S] / 2.

If that is ``Σ d_j ρ_j``, the floors ρ cannot all be raised. With ``d ≥ 1`` and ``f ≥ ρ`` it bounds
``Σ f_j``. At a threshold the weights of the outputs that bind tend to infinity; there the others
are judged beside them. They are uncorrelated with the binding outputs ``T_B``, so an anchor ``b_j``
counts for as much as ``b_j - T_B y_j`` with any ``y_j``, and the inequality for these bounds the
sum of their fidelities.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skcoral.bounds.arithmetic import Enclosure, exactly, up_to
from skcoral.bounds.dual import multipliers_and_matrix
from skcoral.bounds.tradeoff import Outputs, complete_square
from skcoral.core.arrays import Array
from skcoral.exceptions import CertificateError


def floor_room(arrays: Mapping[str, Array], outputs: Outputs) -> Enclosure:
    """By how much the floors of the outputs can all be raised, at most."""
    weights, S, on = multipliers_and_matrix(arrays, ("weights", "S"), outputs.k)
    square, total = outputs.square(weights, S, "`S`", on)
    return square * -0.5 / total


def mean_room(arrays: Mapping[str, Array], outputs: Outputs) -> Enclosure:
    """By how much the mean fidelity can be larger beside the outputs that bind a threshold."""
    binding = arrays.get("weights", np.zeros(outputs.k)) > 0
    if binding.all() and "mean_S" not in arrays:
        return exactly(0.0)
    if "mean_S" not in arrays:
        raise CertificateError("nothing is proved about the outputs that do not bind.")
    weights, S, _ = multipliers_and_matrix(arrays, ("mean_weights", "mean_S"), outputs.k)
    rest, fixed = np.flatnonzero(~binding), outputs.T[:, binding]
    if np.any(weights[binding]):
        raise CertificateError("an output that binds is counted among those that do not.")
    if np.any(weights[rest] < 1):
        raise CertificateError("weights below one prove nothing about the mean fidelity.")
    B, R, arithmetic = outputs.B[:, rest], outputs.R, outputs.arithmetic
    kappa, doubt = outputs.scaled(weights)[rest], 0.0
    if binding.any():
        anchors, Y = B, fixed.T @ (R @ B)
        B = anchors - fixed @ Y
        # What rounding took from B, times outputs of unit variance.
        off = (arithmetic.enclosed(fixed, Y, minus=anchors) + B).size()
        largest = float(np.abs(R).sum(axis=1).max())  # no eigenvalue of R exceeds it
        doubt = float(np.sqrt(largest * np.sum(off * off, axis=0)) @ kappa)
    square = complete_square(arithmetic, R, B, kappa, S, outputs.floors[rest], "`mean_S`")
    short = (exactly(outputs.rho_min[rest]) - outputs.fidelity[rest]).total()
    return (square * -0.5 + short) / float(outputs.k) + up_to(doubt)
