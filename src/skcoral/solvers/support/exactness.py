"""Whether a support admits an exact decorrelator: possible, impossible (proved) or undecided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import EPS, Array, Frozen, Mask
from skcoral.core.problem import Problem
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.frame_relaxation import frame_bound
from skcoral.solvers.support.pattern import read_restrictions

_MAX_TRIES = 20_000  # eliminations


@dataclass(frozen=True)
class Exactness(Frozen):
    """Verdict on exact decorrelation within a support.

    Attributes
    ----------
    verdict : {"possible", "impossible", "undecided"}
        "possible" comes with ``T``, "impossible" with a positive ``bound``.
    T : ndarray of shape (p, p) or None
        A supported exact decorrelator: the Cholesky factor of ``R⁻¹`` in a suitable order.
    order : tuple of str
        That order of the variables; empty if none was found.
    pair : tuple of str or None
        Two variables that share no output although their partial correlation is not zero.
    partial_correlation : float
        The partial correlation of that pair given all others.
    bound : float
        No transformation with this support has D2 below it.

    Examples
    --------
    >>> from skcoral.solvers.support import exactness
    >>> exactness([[1.0, 0.8], [0.8, 1.0]], [(0, 1)]).verdict
    'possible'
    """

    verdict: Literal["possible", "impossible", "undecided"]
    T: Array | None = None
    order: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None
    partial_correlation: float = 0.0
    bound: float = 0.0

    def __repr__(self) -> str:
        reason = f"D2 ≥ {self.bound:.6g}"
        if self.verdict == "possible":
            reason = f"Cholesky factor in the order {', '.join(self.order)}"
        elif self.pair is not None:
            one, other = self.pair
            reason = (
                f"{one} and {other} share no output, partial correlation "
                f"{self.partial_correlation:.4f}; {reason}"
            )
        elif self.verdict == "undecided":
            reason = "no order gives a supported factor, and the bound is zero"
        return f"Exactness({self.verdict}: {reason})"


def exactness(R: Any, support: Any) -> Exactness:
    """Decide whether some exact decorrelator has zeros wherever the support demands them.

    Exactness means ``T Tᵀ = R⁻¹``. If in some order of the variables the Cholesky factor of R⁻¹
    stays within the support, it is such a T. If two rows of the support share no column, their
    entry of ``T Tᵀ`` is zero, so a partial correlation that is not zero excludes exactness. The
    frame relaxation bounds D2 from below, and excludes further supports.

    Parameters
    ----------
    R : array or DataFrame of shape (p, p)
        Correlation matrix.
    support : mask, mapping, DataFrame, edge list or number
        As in :func:`skcoral.decorrelate`.

    Returns
    -------
    Exactness

    Examples
    --------
    A chain of variables, each correlated with the next, needs only its neighbours:

    >>> R = [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]
    >>> exactness(R, [(0, 1), (1, 2)]).verdict
    'possible'
    >>> exactness(R, [(0, 2)])
    Exactness(impossible: x0 and x1 share no output, partial correlation 0.4472; D2 ≥ 0.36)
    """
    problem = Problem.of(R)
    matrix, names = problem.sources.regular(), problem.sources.names
    mask, _ = read_restrictions(problem, support)
    factor = cholesky_within(matrix, mask)
    if factor is not None:
        T, order = factor
        return Exactness("possible", T, tuple(names[k] for k in order))
    bound = frame_bound(feasible_set(matrix, mask, np.zeros(len(matrix))), tol=1e-6).value
    # A partial correlation is known up to a rounding that grows with the condition of R.
    doubt = _doubt(matrix)
    i, j, partial = _strongest_apart(matrix, mask)
    if abs(partial) > doubt:
        bound = max(bound, partial**2 / (1.0 + partial**2))  # Proposition 10.2 (b)
        return Exactness("impossible", None, (), (names[i], names[j]), partial, bound)
    if bound > max(1e-9, doubt):
        return Exactness("impossible", bound=bound)
    return Exactness("undecided")


def _strongest_apart(R: Array, mask: Mask) -> tuple[int, int, float]:
    """Two variables that share no output, with the largest partial correlation, zero if none do."""
    counts = mask.astype(np.int64)
    K = np.linalg.inv(R)
    scale = np.sqrt(np.diag(K))
    partial = np.where(np.triu(counts @ counts.T == 0, 1), -K / np.outer(scale, scale), 0.0)
    i, j = np.unravel_index(int(np.argmax(np.abs(partial))), partial.shape)
    return int(i), int(j), float(partial[i, j])


def cholesky_within(R: Array, mask: Mask) -> tuple[Array, list[int]] | None:
    """A triangular exact decorrelator within the mask, and its order; None if none was found.

    Eliminating variable j from R⁻¹ writes column j; it must stay within the mask. Orders are
    searched depth first, least fill-in first, within a fixed effort.
    """
    p = len(R)
    K = sla.cho_solve(sla.cho_factor(R, lower=True), np.eye(p))
    K = 0.5 * (K + K.T)
    scale = np.sqrt(np.diag(K))
    tolerance = _doubt(R)
    tries = 0

    def eliminate(K: Array, left: list[int], order: list[int]) -> list[int] | None:
        nonlocal tries
        if not left:
            return order
        options = []
        for j in left:
            others = [i for i in left if i != j and abs(K[i, j]) > tolerance * scale[i] * scale[j]]
            if all(mask[i, j] for i in others):
                block = np.abs(K[np.ix_(others, others)])
                filled = block <= tolerance * np.outer(scale[others], scale[others])
                options.append((int(filled.sum()), len(others), j, others))
        for fill, _, j, others in sorted(options):
            tries += 1
            if tries > _MAX_TRIES:
                return None
            reduced = K.copy()
            reduced[np.ix_(others, others)] -= np.outer(K[others, j], K[others, j]) / K[j, j]
            done = eliminate(reduced, [i for i in left if i != j], [*order, j])
            # A variable without fill-in can be eliminated first: if that fails, every order fails.
            if done is not None or fill == 0:
                return done
        return None

    order = eliminate(K, list(range(p)), [])
    if order is None:
        return None
    # The exact decorrelator that is lower triangular in this order.
    backwards = np.ix_(order[::-1], order[::-1])
    T = np.zeros((p, p))
    T[backwards] = sla.solve_triangular(np.linalg.cholesky(R[backwards]), np.eye(p), lower=True).T
    T[~mask] = 0.0
    defect = float(np.abs(T.T @ R @ T - np.eye(p)).max())
    return (T, order) if defect <= 1e3 * tolerance else None


def _doubt(R: Array) -> float:
    """Relative rounding error of an entry of R⁻¹."""
    return float(64 * len(R) * EPS * np.linalg.cond(R))
