"""Whether a support admits an exact decorrelator: possible, impossible (proved) or undecided."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import Array, Frozen
from skcoral.core.problem import check_correlation, frame_names
from skcoral.core.validation import check_names
from skcoral.solvers.support.caps import feasible_set
from skcoral.solvers.support.frame_relaxation import frame_bound
from skcoral.solvers.support.lower_bounds import least_norm_bound
from skcoral.solvers.support.pattern import DegreesOfFreedom, Mask, degrees_of_freedom, pattern

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
    bound_name : str
        "least-norm", "frame", or "" if there is none.
    degrees_of_freedom : DegreesOfFreedom
        The counting diagnostic.

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
    bound_name: str = ""
    degrees_of_freedom: DegreesOfFreedom = field(kw_only=True)

    def __repr__(self) -> str:
        if self.verdict == "possible":
            reason = f"Cholesky factor in the order {', '.join(self.order)}"
        elif self.pair is not None:
            reason = (
                f"{self.pair[0]} and {self.pair[1]} share no output, partial correlation "
                f"{self.partial_correlation:.4f}; D2 ≥ {self.bound:.6g} by the "
                f"{self.bound_name} bound"
            )
        elif self.verdict == "impossible":
            reason = f"D2 ≥ {self.bound:.6g} by the {self.bound_name} bound"
        else:
            reason = "no order gives a supported factor, and the bounds are zero"
        return f"Exactness({self.verdict}: {reason})"


def exactness(R: Any, support: Any) -> Exactness:
    """Decide whether some exact decorrelator has zeros wherever the support demands them.

    Exactness means ``T Tᵀ = R⁻¹``. If in some order of the variables the Cholesky factor of R⁻¹
    stays within the support, it is such a T. If two rows of the support share no column, their
    entry of ``T Tᵀ`` is zero, so a partial correlation that is not zero excludes exactness and
    bounds D2 from below; the frame relaxation excludes further supports.

    Parameters
    ----------
    R : array or DataFrame of shape (p, p)
        Correlation matrix.
    support : mask, DataFrame, mapping, graph or pairs
        As in :func:`skcoral.solvers.support.pattern`.

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
    Exactness(impossible: x0 and x1 share no output, partial correlation 0.4472;
    D2 ≥ 0.285714 by the least-norm bound)
    """
    matrix = check_correlation(R)
    names = check_names(frame_names(R), len(matrix))
    mask = pattern(support, names)
    verdict = partial(Exactness, degrees_of_freedom=degrees_of_freedom(mask))
    found = cholesky_within(matrix, mask)
    if found is not None:
        T, order = found
        return verdict("possible", T, tuple(names[k] for k in order))
    least = least_norm_bound(matrix, mask)
    # A partial correlation is known up to a rounding that grows with the condition of R.
    doubt = _doubt(matrix)
    if least.pair is not None and abs(least.partial_correlation) > doubt:
        return verdict(
            "impossible",
            pair=(names[least.pair[0]], names[least.pair[1]]),
            partial_correlation=least.partial_correlation,
            bound=least.value,
            bound_name="least-norm",
        )
    space = feasible_set(matrix, mask, np.zeros(len(matrix)))
    frame = frame_bound(space, start=least.M, tol=1e-6)
    if frame.value > max(1e-9, doubt):
        return verdict("impossible", bound=frame.value, bound_name="frame")
    return verdict("undecided")


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
    return float(64 * len(R) * np.finfo(np.float64).eps * np.linalg.cond(R))
