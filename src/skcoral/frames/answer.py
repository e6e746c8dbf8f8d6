"""Feasible outputs with a lower bound, and the dual points that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral._arrays import Array
from skcoral.frames.lifted import LiftedProof
from skcoral.results import OPTIMAL_GAP


@dataclass(frozen=True)
class FrameProof:
    """A dual point of (★★): ``N`` (r × r), λ and κ, all finite."""

    N: Any
    lam: Array
    kappa: Array

    @property
    def slopes(self) -> Array:
        """Derivatives of the bound by the floors."""
        return 2.0 * self.lam


@dataclass(frozen=True)
class BranchProof:
    """A tree of cuts, and a dual point for each of its leaves.

    Attributes
    ----------
    variable, at : ndarray of shape (m,)
        Each cut: which output, and the value of ``vᵀu`` that separates the two sides.
    direction : ndarray of shape (m, r)
        ``v``, a unit vector with ``aᵀv ≥ 0`` for the output's source a.
    children : ndarray of shape (m, 2)
        Below and above: a later cut by its number, or a leaf as ``-1 - number``.
    N, kappa, lam : ndarray of shape (L·r, r), (L, p) and (L, p)
        Of each leaf; the matrices N below each other.
    mu : ndarray of shape (L, k)
        Of each leaf, for the slabs that it lies in, in the order of their first cuts.
    shares : ndarray of shape (L, p)
        ω of each leaf, between zero and one: variable j has the matrix ``ω_j N``.
    least : int
        The leaf with the least bound.
    """

    variable: Array
    direction: Array
    at: Array
    children: Array
    N: Array
    kappa: Array
    lam: Array
    mu: Array
    shares: Array
    least: int

    @property
    def slopes(self) -> Array:
        """Derivatives of the least bound by the floors."""
        return np.asarray(2.0 * self.lam[self.least])


@dataclass(frozen=True)
class Answer:
    """Feasible outputs and what is proved about them.

    Attributes
    ----------
    U : array of shape (r, p)
        The outputs in the basis of the factor.
    objective, lower_bound : float
        Attained, and proved to be the least possible.
    proof : FrameProof, LiftedProof, BranchProof or None
        The dual point of (★★), of (★), of (★★) on parts, or none: the bound of the rank.
    n_iter : int
        Steps taken.
    share : float
        Derivative of the bound by the one that the proof is about.
    """

    U: Any
    objective: float
    lower_bound: float
    proof: FrameProof | LiftedProof | BranchProof | None
    n_iter: int
    share: float = 1.0

    @property
    def slopes(self) -> Array:
        """Derivatives of the bound by the floors."""
        if self.proof is None:
            return np.zeros(self.U.shape[1])
        return self.share * self.proof.slopes

    @property
    def certified(self) -> bool:
        """Whether the gap is closed as far as the word "optimal" promises."""
        return self.objective - self.lower_bound <= OPTIMAL_GAP * max(1.0, self.objective)
