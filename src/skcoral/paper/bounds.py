"""The paper's analytic bounds on the threshold ρ★.

For a correlation matrix ``R`` and any non-empty set S of its variables,

    min_j (R^{1/2})_jj  ≤  ρ★(R)  ≤  tr((R_SS)^{1/2}) / |S|.

The lower bound is what ZCA-cor attains; S = all variables is the trace bound; the best S gives the
subset bound. :func:`skcoral.threshold` closes the interval: its weights generalise the sets S.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skcoral.core.arrays import Array


def zca_bound(R: Array) -> float:
    """The least fidelity of ZCA-cor."""
    values, vectors = np.linalg.eigh(R)
    return float((vectors**2 @ np.sqrt(values)).min())


def trace_bound(R: Array) -> float:
    """The mean fidelity of ZCA-cor."""
    return float(_mean_roots(R))


def subset_bound(R: Array) -> tuple[float, tuple[int, ...]]:
    """The least bound of all ``2**p - 1`` subsets, and the subset."""
    p = len(R)
    best, winner = np.inf, np.arange(p)
    for size in range(1, p + 1):
        sets = np.array(list(combinations(range(p), size)))
        values = _mean_roots(R[sets[:, :, None], sets[:, None, :]])
        # A set must be better by more than rounding to displace a smaller one.
        if values.min() < best - 1e-14:
            best, winner = float(values.min()), sets[np.argmin(values)]
    return best, tuple(winner.tolist())


def _mean_roots(stacked: Array) -> Array:
    """``tr(M^{1/2})`` over the size, of each positive definite matrix of a stack."""
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(stacked), 0.0)).mean(axis=-1))
