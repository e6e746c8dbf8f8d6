"""Which floors bind, and the outputs whose floors do not.

An output whose floor does not bind is uncorrelated with all others at the optimum. So the binding
outputs are solved among themselves, inside the span of their own sources, and the others are
completed exactly for the covariance that is left, with the largest mean fidelity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.exact import best_exact

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Candidate:
    """A dual point, the transformation it stands for, and which floors bind there.

    ``settled`` says that the outputs whose floors do not bind meet them.
    """

    lam: Array
    H: Array
    T: Array
    binding: NDArray[np.bool_]
    n_iter: int
    settled: bool


def binding_set(lam: Array, slack: Array) -> Index:
    """Guess the binding floors at a point of the barrier path, where ``λ_j · slack_j`` is constant.

    A guess only: the caller verifies it by solving for it.
    """
    return np.flatnonzero(lam > np.maximum(slack, 0.0) * lam.max())


def settle(
    R: Array, floors: Array, members: Index, lam: Array, H: Array, T: Array, n_iter: int
) -> Candidate:
    """Extend the dual point and the transformation of ``members`` to all variables.

    The other outputs are exactly uncorrelated with everything. Where they cannot meet their floors,
    ``members`` was too small, and the candidate is not settled.
    """
    p = len(R)
    full, feasible = complete(R, floors, members, T)
    all_lam = np.zeros(p)
    all_lam[members] = lam
    all_H = negligible(H, p)
    all_H[np.ix_(members, members)] = H
    bind = np.zeros(p, dtype=bool)
    bind[members] = True
    return Candidate(all_lam, all_H, full, bind, n_iter, feasible)


def negligible(H: Array, p: int) -> Array:
    """A diagonal next to nothing: the bound wants H ≻ 0, and an output left out costs that much."""
    size = min(float(np.max(np.diag(H), initial=0.0)), 1.0) or 1e-3
    return np.diag(np.full(p, 1e-13 * size))


def complete(R: Array, floors: Array, members: Index, T_members: Array) -> tuple[Array, bool]:
    """Extend the transformation of ``members`` by exactly uncorrelated outputs for the others.

    Parameters
    ----------
    R, floors : ndarray
        The whole problem.
    members : ndarray of int
        The variables already solved.
    T_members : ndarray of shape (m, m)
        Their transformation, within the span of their own sources.

    Returns
    -------
    T : ndarray of shape (p, p)
    feasible : bool
        Whether the completed outputs meet their floors; if not, ``members`` was too small.
    """
    p = len(R)
    if len(members) == p:
        return T_members, True
    if not len(members):
        answer = best_exact(R, floors)
        return answer.T, answer.feasible
    T = np.zeros((p, p))
    T[np.ix_(members, members)] = T_members
    rest = np.setdiff1d(np.arange(p), members)
    across = R[np.ix_(members, rest)]
    mix = sla.cho_solve(sla.cho_factor(R[np.ix_(members, members)], lower=True), across)
    residual = R[np.ix_(rest, rest)] - across.T @ mix
    answer = best_exact(0.5 * (residual + residual.T), floors[rest])
    T[np.ix_(rest, rest)] = answer.T
    T[np.ix_(members, rest)] = -mix @ answer.T
    return T, answer.feasible
