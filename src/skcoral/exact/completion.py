"""Outputs that some variables determine, completed by exactly uncorrelated ones for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import block_triangular, solve_positive, submatrix

Index = NDArray[np.intp]


def complement(C: Any, kept: Index, rest: Index) -> tuple[Any, Any]:
    """Return what the variables ``kept`` leave of the ``rest``, and the mix that takes them out.

    With ``C̃ = C_cc - C_cB C_BB⁻¹ C_Bc`` the outputs ``[-C_BB⁻¹ C_Bc; I] T̃`` are orthogonal to every
    output made of the kept variables B, and their fidelities are those of ``T̃`` for ``C̃``.

    Returns
    -------
    residual : array of shape (m, m)
        ``C̃``.
    mix : array of shape (p - m, m)
        ``C_BB⁻¹ C_Bc``.
    """
    mix = solve_positive(submatrix(C, kept, kept), submatrix(C, kept, rest))
    residual = submatrix(C, rest, rest) - submatrix(C, rest, kept) @ mix
    return (residual + residual.T) / 2, mix


def assemble(kept: Index, rest: Index, T_kept: Any, T_rest: Any, mix: Any) -> Any:
    """Put the outputs of both groups together, in the order of the variables."""
    order = np.argsort(np.concatenate([kept, rest]))
    return submatrix(block_triangular(T_kept, -mix @ T_rest, T_rest), order, order)
