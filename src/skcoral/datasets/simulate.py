"""Simulated correlation matrices: the paper's construction, and factor models."""

from __future__ import annotations

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.validation import check_count, check_number


def make_system(p: int, seed: int = 1) -> Array:
    """Make a moderately correlated system as the paper does: ``GGᵀ/p + I/2``, rescaled.

    Parameters
    ----------
    p : int
        Number of variables.
    seed : int, default=1
        Seed of `numpy.random.default_rng`; 1 gives the paper's own matrices.

    Returns
    -------
    ndarray of shape (p, p)
        A positive definite correlation matrix.

    Examples
    --------
    >>> from skcoral.datasets import make_system
    >>> R = make_system(50)
    >>> off = abs(R[~np.eye(50, dtype=bool)])
    >>> round(float(off.max()), 4), round(float(off.mean()), 4)
    (0.2909, 0.0748)
    """
    p = check_count("p", p)
    G = _generator(seed).normal(size=(p, p))
    M = G @ G.T / p + 0.5 * np.eye(p)
    scale = np.sqrt(np.diag(M))
    return _exact(M / np.outer(scale, scale))


def make_factor_system(
    p: int, n_factors: int = 3, *, communality: float = 0.6, seed: int = 1
) -> Array:
    """Make a factor model: ``LLᵀ + Ψ`` with the same communality for every variable.

    Parameters
    ----------
    p : int
        Number of variables.
    n_factors : int, default=3
        Rank of the common part.
    communality : float in [0, 1), default=0.6
        Share of each variable's variance that the factors explain.
    seed : int, default=1
        Seed of the loadings, which have random directions.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> from skcoral.datasets import make_factor_system
    >>> eigenvalues = np.linalg.eigvalsh(make_factor_system(10, 2, communality=0.75))
    >>> eigenvalues[:8].round(6).tolist()
    [0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25]
    """
    size = check_count("p", p), check_count("n_factors", n_factors)
    share = check_number("communality", communality, "a number in [0, 1)", lambda v: 0 <= v < 1)
    loadings = _generator(seed).normal(size=size)
    loadings *= np.sqrt(share) / np.linalg.norm(loadings, axis=1, keepdims=True)
    return _exact(loadings @ loadings.T)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_count("seed", seed, minimum=0))


def _exact(R: Array) -> Array:
    """Make the symmetry and the unit diagonal exact where only rounding is in the way."""
    R = (R + R.T) / 2
    np.fill_diagonal(R, 1.0)
    return R
