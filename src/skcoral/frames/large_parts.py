"""The bound (★★) on one part of the caps, where there are too many variables for dense matrices.

The same bound as in ``parts``: Newton's method in N by conjugate gradients, with separate terms for
the variables that are cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.cuts import Cuts, Slab
from skcoral.frames.dual import FrameDual, maximise_bound
from skcoral.frames.parts import PartPoint, best_shares
from skcoral.frames.point import frame_point

_STEPS = 60
_FIRST = 50.0  # what the barrier leaves open at the start, relative to the gap


def bound_part(
    A: Array,
    floors: Array,
    slabs: tuple[Slab, ...],
    before: PartPoint | None,
    shares: Array,
    *,
    enough: float,
    share: float,
    goal: float,
) -> PartPoint:
    """Raise the bound of one part until it is ``enough``, or until little is left to gain.

    Parameters
    ----------
    A, floors, slabs, shares
        As in :class:`skcoral.frames.parts.Parts`, for one part.
    before : PartPoint or None
        Of the part that this one was cut from.
    enough, share, goal
        As in :meth:`skcoral.frames.parts.Parts.maximise`.
    """
    cuts = Cuts(A, floors, slabs, shares)
    whole = np.setdiff1d(np.arange(A.shape[1]), cuts.variables)
    resume = None
    if before is not None:
        resume = _resumed(A, floors, cuts, whole, before, enough, shares[whole])

    dual = maximise_bound(
        A[:, whole],
        floors[whole],
        goal=lambda dual: max(goal, share * (enough - dual.value)),
        max_iter=_STEPS,
        judge=lambda dual: dual.value >= enough,
        resume=resume,
        shares=shares[whole],
    )
    return _as_point(A, floors, cuts, whole, dual)


def _resumed(
    A: Array,
    floors: Array,
    cuts: Cuts,
    whole: Any,
    before: PartPoint,
    enough: float,
    shares: Array,
) -> FrameDual:
    """The dual point of the part before, moved away from the boundary."""
    r = len(A)
    tau = max(_FIRST * (enough - before.bound), 1e-12) / (2 * r)
    values, Q = np.linalg.eigh(before.N)
    n = np.maximum(values, 0.0) + tau
    barrier = r / len(whole) * tau
    point = frame_point(
        n,
        Q.T @ A[:, whole],
        floors[whole],
        barrier=barrier,
        kappa=before.kappa[whole],
        shares=shares,
    )
    least = barrier / (0.5 * (cuts.hi - cuts.lo)) ** 2
    mu = np.maximum(np.r_[before.mu, np.zeros(len(least) - len(before.mu))], least)
    lam = np.maximum(np.sqrt(cuts.shares) * before.lam[cuts.variables], tau)
    cut = None
    if len(cuts.variables):
        cut = cuts.at(n, Q, np.r_[before.kappa[cuts.variables], lam, mu])
    return FrameDual(point, Q, tau, 0, 0, cut)


def _as_point(A: Array, floors: Array, cuts: Cuts, whole: Any, dual: FrameDual) -> PartPoint:
    r, p = A.shape
    U, kappa, lam = np.empty((r, p)), np.empty(p), np.empty(p)
    U[:, whole] = dual.U / np.sqrt(dual.point.shares)
    energy = np.zeros(p)  # the least uᵀNu of each variable
    energy[whole] = _least_energies(dual)
    finite = np.where(floors[whole] < 1.0, dual.point.lam, 0.0)
    kappa[whole], lam[whole] = dual.point.kappa, finite / np.sqrt(dual.point.shares)
    mu = np.zeros(0)
    # what an uncut output lacks in length, the relaxation has along the least direction of N
    short = np.where(floors[whole] < 1.0, 1.0 - np.einsum("ij,ij->j", U[:, whole], U[:, whole]), 0)
    most = int(np.argmax(short))
    widest = float(short[most]), int(whole[most]), dual.Q[:, 0]
    if dual.cut is not None:
        k = len(cuts.variables)
        kappa[cuts.variables], lam[cuts.variables], mu = np.split(dual.cut.x, [k, 2 * k])
        lam[cuts.variables] /= np.sqrt(cuts.shares)
        U[:, cuts.variables] = dual.Q @ dual.cut.U.T / np.sqrt(cuts.shares)
        energy[cuts.variables] = dual.cut.terms / cuts.shares
        values, vectors = np.linalg.eigh(dual.point.barrier * dual.cut.W)
        j = int(np.argmax(values[:, -1]))
        if values[j, -1] > widest[0]:
            widest = float(values[j, -1]), int(cuts.variables[j]), dual.Q @ vectors[j, :, -1]
    bound, shares = best_shares(dual.N, energy)
    return PartPoint(bound, U, widest[1:], dual.N, kappa, lam, mu, shares)


def _least_energies(dual: FrameDual) -> Array:
    point = dual.point
    pinned = ~np.isfinite(point.lam)
    lam = np.where(pinned, 0.0, point.lam)
    own = np.einsum("ij,i,ij->j", point.B, point.n, point.B)
    return np.where(pinned, own, lam**2 * point.phi / point.shares - point.kappa)
