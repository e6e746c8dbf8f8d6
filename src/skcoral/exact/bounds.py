"""Analytic bounds on the threshold ρ★: the ones that need no optimisation.

For a correlation matrix ``R`` and any non-empty set S of its variables,

    min_j (R^{1/2})_jj  ≤  ρ★(R)  ≤  tr((R_SS)^{1/2}) / |S|.

The lower bound is what ZCA-cor attains; S = all variables is the trace bound; the best S gives the
subset bound. :func:`skcoral.threshold` closes the interval: its weights generalise the sets S.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skcoral._arrays import Array
from skcoral._validation import check_correlation, check_count

# One round of single additions and drops costs about p⁴ operations; past this it would cost more
# than computing the threshold itself, which is the better bound.
_LOCAL_SEARCH_UP_TO = 200


@dataclass(frozen=True)
class SubsetBound:
    """The smallest ``tr((R_SS)^{1/2}) / |S|`` found, an upper bound on ρ★ whatever S is.

    Attributes
    ----------
    value : float
        The bound.
    subset : tuple of int
        Positions of the variables in S, in increasing order.
    method : {"exhaustive", "heuristic"}
        Whether every subset was tried, or only those on a search path.
    n_subsets : int
        How many subsets were evaluated.
    """

    value: float
    subset: tuple[int, ...]
    method: Literal["exhaustive", "heuristic"]
    n_subsets: int


def zca_bound(R: Any) -> float:
    """Lower bound on ρ★: the least fidelity of ZCA-cor, ``min_j (R^{1/2})_jj``.

    Examples
    --------
    >>> from skcoral.exact.bounds import zca_bound
    >>> round(zca_bound([[1.0, 0.6], [0.6, 1.0]]), 9)
    0.948683298
    """
    return float(_root_diagonal(check_correlation(R)).min())


def trace_bound(R: Any) -> float:
    """Upper bound on ρ★: the mean fidelity of ZCA-cor, ``tr(R^{1/2}) / p``.

    Examples
    --------
    >>> from skcoral.exact.bounds import trace_bound
    >>> round(trace_bound([[1.0, 0.6], [0.6, 1.0]]), 9)
    0.948683298
    """
    R = check_correlation(R)
    return float(_root_traces(R[None])[0]) / len(R)


def subset_bound(R: Any, *, max_exhaustive: int = 16, max_bytes: int = 64 * 2**20) -> SubsetBound:
    """Best upper bound on ρ★ of the form ``tr((R_SS)^{1/2}) / |S|``.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    max_exhaustive : int, default=16
        Up to this many variables all ``2**p - 1`` subsets are tried; beyond, a search over
        subsets that usually ends at the best one, and always at a valid bound.
    max_bytes : int, default=64 MiB
        Memory for the stacked submatrices of one batch.

    Returns
    -------
    SubsetBound
        ``method`` tells which of the two it was.

    Examples
    --------
    Two correlated variables and a bystander: the pair alone gives the threshold.

    >>> from skcoral.exact.bounds import subset_bound
    >>> bound = subset_bound([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> bound.subset, bound.method, round(bound.value, 9)
    ((0, 1), 'exhaustive', 0.948683298)
    """
    R = check_correlation(R)
    check_count("max_exhaustive", max_exhaustive, minimum=0)
    check_count("max_bytes", max_bytes)
    if len(R) <= max_exhaustive:
        return _exhaustive(R, max_bytes)
    return _search(R, max_bytes)


def _exhaustive(R: Array, max_bytes: int) -> SubsetBound:
    p = len(R)
    best = np.inf
    winner: tuple[int, ...] = ()
    for size in range(1, p + 1):
        subsets = combinations(range(p), size)
        for batch in _batches(subsets, size, max_bytes, comb(p, size)):
            value, subset = _best_of(R, batch)
            # A set must be better by more than rounding to displace a smaller one.
            if value < best - 1e-14:
                best, winner = value, subset
    return SubsetBound(best, winner, "exhaustive", 2**p - 1)


def _search(R: Array, max_bytes: int) -> SubsetBound:
    """Drop the best-kept variables from the full set, then improve by single additions and drops.

    The derivative of the bound with respect to the weight of a variable is its fidelity within
    S, (R_SS^{1/2})_jj: those far above the mean only dilute it.
    """
    p = len(R)
    current = np.arange(p)
    best, winner = np.inf, tuple(range(p))
    tried = 0
    while current.size:
        kept = _root_diagonal(R[np.ix_(current, current)])
        tried += 1
        if kept.mean() < best:
            best, winner = float(kept.mean()), tuple(int(j) for j in current)
        # A twentieth at a time keeps the number of decompositions logarithmic in p.
        leaving = max(1, current.size // 20)
        current = np.sort(current[np.argsort(kept, kind="stable")[: current.size - leaving]])

    # Each round changes one variable; a search that wanders farther than this is cut short.
    for _ in range(2 * p if p <= _LOCAL_SEARCH_UP_TO else 0):
        value, subset, count = _best_neighbour(R, winner, max_bytes)
        tried += count
        if value >= best - 1e-14:
            break
        best, winner = value, subset
    return SubsetBound(best, winner, "heuristic", tried)


def _best_neighbour(
    R: Array, subset: tuple[int, ...], max_bytes: int
) -> tuple[float, tuple[int, ...], int]:
    """Best subset that differs from ``subset`` in one variable, added or dropped."""
    inside = set(subset)
    larger = [tuple(sorted((*subset, j))) for j in range(len(R)) if j not in inside]
    smaller = [tuple(i for i in subset if i != j) for j in subset] if len(subset) > 1 else []
    best, winner = np.inf, subset
    for group in (smaller, larger):
        if group:
            for batch in _batches(iter(group), len(group[0]), max_bytes, len(group)):
                value, candidate = _best_of(R, batch)
                if value < best:
                    best, winner = value, candidate
    return best, winner, len(smaller) + len(larger)


def _batches(
    subsets: Iterator[tuple[int, ...]], size: int, max_bytes: int, total: int
) -> Iterator[NDArray[np.intp]]:
    """Stack subsets of equal size, as many at a time as ``max_bytes`` allows."""
    per_batch = max(1, min(total, max_bytes // (8 * size * size)))
    while rows := list(islice(subsets, per_batch)):
        yield np.array(rows, dtype=np.intp)


def _best_of(R: Array, subsets: NDArray[np.intp]) -> tuple[float, tuple[int, ...]]:
    stacked = R[subsets[:, :, None], subsets[:, None, :]]
    values = _root_traces(stacked) / subsets.shape[1]
    best = int(np.argmin(values))
    return float(values[best]), tuple(int(j) for j in subsets[best])


def _root_traces(stacked: Array) -> Array:
    """``tr(M^{1/2})`` of each matrix of a stack."""
    return np.asarray(_roots(np.linalg.eigvalsh(stacked)).sum(axis=-1), dtype=np.float64)


def _root_diagonal(R: Array) -> Array:
    """The diagonal of ``R^{1/2}``."""
    eigenvalues, vectors = np.linalg.eigh(R)
    return np.asarray(vectors**2 @ _roots(eigenvalues), dtype=np.float64)


def _roots(eigenvalues: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    # R is positive definite; an eigenvalue below zero can only be rounding of a tiny one.
    return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0)))
