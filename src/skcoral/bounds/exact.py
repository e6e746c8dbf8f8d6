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
from numpy.typing import NDArray

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, Floats, exactly, up_to
from skcoral.bounds.dual import multipliers_and_matrix
from skcoral.bounds.tradeoff import Outputs, complete_square
from skcoral.core.arrays import Array
from skcoral.exceptions import CertificateError


def floor_room(
    arrays: Mapping[str, Array], outputs: Outputs, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """By how much the floors of the outputs can all be raised, at most."""
    weights, S, on = multipliers_and_matrix(arrays, ("weights", "S"), outputs.k)
    kappa = outputs.scaled(weights)[on]
    square = complete_square(arithmetic, R, outputs.B[:, on], kappa, S, "S")
    room: Enclosure = square.value(outputs.floors[on]) * -0.5
    return room / (outputs.length[on] * kappa).total()


def mean_room(
    arrays: Mapping[str, Array], outputs: Outputs, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """By how much the mean fidelity can be larger, with all floors met."""
    weights, S, _ = multipliers_and_matrix(arrays, ("weights", "S"), outputs.k)
    every = np.arange(outputs.k)
    return _sum_room(weights, S, every, outputs.B, outputs, R, arithmetic)


def proved_mean_room(R: Array, rho_min: Array, weights: Array, S: Array, T: Array) -> float:
    """By how much the mean fidelity of an exact decorrelator can exceed that of T, proved.

    Infinite where ``S`` proves nothing.
    """
    arithmetic = Floats()
    outputs = Outputs(T, np.eye(len(R)), rho_min, R, arithmetic)
    try:
        room = mean_room({"weights": weights, "S": S}, outputs, R, arithmetic)
    except CertificateError:
        return np.inf
    return float(room.upper)


def rest_room(
    arrays: Mapping[str, Array], outputs: Outputs, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """By how much the mean fidelity can be larger beside the outputs that bind a threshold."""
    binding = arrays["weights"] > 0
    if binding.all() and "rest_S" not in arrays:
        return exactly(0.0)
    if "rest_S" not in arrays:
        raise CertificateError("nothing is proved about the outputs that do not bind.")
    weights, S, _ = multipliers_and_matrix(arrays, ("rest_weights", "rest_S"), outputs.k)
    rest, fixed = np.flatnonzero(~binding), outputs.T[:, binding]
    if np.any(weights[binding]):
        raise CertificateError("an output that binds is counted among those that do not.")
    own = outputs.B[:, rest]
    Y = fixed.T @ (R @ own)
    B = own - fixed @ Y
    room = _sum_room(weights, S, rest, B, outputs, R, arithmetic)
    # What rounding took from B, times outputs of unit variance.
    off = (arithmetic.enclosed(fixed, Y, minus=own) + B).size()
    largest = float(np.abs(R).sum(axis=1).max())  # no eigenvalue of R exceeds it
    doubt = np.sqrt(largest * np.sum(off * off, axis=0)) @ outputs.scaled(weights)[rest]
    return room + up_to(float(doubt))


def _sum_room(
    weights: Array,
    S: Array,
    on: NDArray[np.intp],
    B: Array,
    outputs: Outputs,
    R: Array,
    arithmetic: Arithmetic,
) -> Enclosure:
    """By how much ``Σ f_j`` over the outputs ``on`` can be larger, over the number of outputs."""
    if np.any(weights[on] < 1):
        raise CertificateError("weights below one prove nothing about the mean fidelity.")
    kappa = outputs.scaled(weights)[on]
    square = complete_square(arithmetic, R, B, kappa, S, "S")
    short = (exactly(outputs.rho_min[on]) - outputs.fidelity[on]).total()
    room: Enclosure = (square.value(outputs.floors[on]) * -0.5 + short) / float(outputs.k)
    return room
