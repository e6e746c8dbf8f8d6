"""Analytic bounds on the threshold ρ★: the ones that need no optimisation.

For a correlation matrix ``R`` and any non-empty set S of its variables,

    min_j (R^{1/2})_jj  ≤  ρ★(R)  ≤  tr((R_SS)^{1/2}) / |S|.

The lower bound is what ZCA-cor attains; S = all variables is the trace bound; the best S gives the
subset bound. :func:`skcoral.threshold` closes the interval: its weights generalise the sets S.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.problem import check_correlation
from skcoral.core.validation import check_count
from skcoral.solvers.exact.threshold import exact_threshold


@dataclass(frozen=True)
class SubsetBound:
    """The smallest ``tr((R_SS)^{1/2}) / |S|`` found, an upper bound on ρ★ whatever S is."""

    value: float
    subset: tuple[int, ...]  # positions of the variables in S, in increasing order
    method: Literal["exhaustive", "heuristic"]  # whether every subset was tried
    n_subsets: int  # how many were


def zca_bound(R: Any) -> float:
    """Lower bound on ρ★: the least fidelity of ZCA-cor, ``min_j (R^{1/2})_jj``."""
    values, vectors = np.linalg.eigh(check_correlation(R))
    return float((vectors**2 @ np.sqrt(np.maximum(values, 0.0))).min())


def trace_bound(R: Any) -> float:
    """Upper bound on ρ★: the mean fidelity of ZCA-cor, ``tr(R^{1/2}) / p``."""
    return float(_mean_roots(check_correlation(R)))


def subset_bound(R: Any, *, max_exhaustive: int = 16) -> SubsetBound:
    """Best upper bound on ρ★ of the form ``tr((R_SS)^{1/2}) / |S|``.

    Up to ``max_exhaustive`` variables all ``2**p - 1`` subsets are tried; beyond, the variables
    with the largest weights in the threshold, as many as give the best bound.
    """
    R = check_correlation(R)
    check_count("max_exhaustive", max_exhaustive, minimum=0)
    p = len(R)
    exhaustive = p <= max_exhaustive
    order = np.arange(p)
    if not exhaustive:
        order = np.argsort(-exact_threshold(R).weights, kind="stable")
    best, winner, tried = np.inf, order, 0
    for size in range(1, p + 1):
        among = list(combinations(range(p), size)) if exhaustive else [np.sort(order[:size])]
        sets = np.array(among, dtype=np.intp)
        values = _mean_roots(R[sets[:, :, None], sets[:, None, :]])
        tried += len(sets)
        # A set must be better by more than rounding to displace a smaller one.
        if values.min() < best - 1e-14:
            best, winner = float(values.min()), sets[np.argmin(values)]
    method: Literal["exhaustive", "heuristic"] = "exhaustive" if exhaustive else "heuristic"
    return SubsetBound(best, tuple(int(j) for j in winner), method, tried)


def _mean_roots(stacked: Array) -> Array:
    """``tr(M^{1/2})`` over the size, of each positive definite matrix of a stack."""
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(stacked), 0.0)).mean(axis=-1))
