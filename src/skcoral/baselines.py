"""Classical decorrelators, matched to the variables they resemble, for comparison.

Each baseline is an exact decorrelator ``T`` (``TᵀRT = I``; sparse PCA, which leaves correlation, is
the exception) whose columns were reordered and signed so that column j belongs to variable j, as
for every transformation of this package.

With ``R = L Lᵀ`` every exact decorrelator is ``T = L⁻ᵀQ`` for some orthogonal ``Q``, and its
correlations with the variables are ``R T = L Q``; the baselines differ in ``Q`` alone.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from skcoral.core.arrays import Array, Frozen, Index, column_dots
from skcoral.core.display import Fidelities
from skcoral.core.linalg import make_exact
from skcoral.core.problem import check_correlation
from skcoral.core.validation import float_array, shown_value
from skcoral.exceptions import InvalidArgumentError

_STEPS = 10_000  # of the iteration for minimum torsion


@dataclass(frozen=True)
class Baseline(Fidelities, Frozen):
    """A decorrelator of the literature and how well it keeps each variable.

    Attributes
    ----------
    T : ndarray of shape (p, p)
        Column j belongs to variable j.
    fidelity : ndarray of shape (p,)
        Correlation of each output with its own variable; not negative where signs are free.

    Examples
    --------
    >>> zca_cor([[1.0, 0.8], [0.8, 1.0]]).fidelity
    array([0.89442719, 0.89442719])
    """

    T: Array
    fidelity: Array

    def __repr__(self) -> str:
        return (
            f"Baseline(min_fidelity={self.min_fidelity:.6f}, "
            f"mean_fidelity={self.mean_fidelity:.6f}, p={len(self.fidelity)})"
        )


def pca(R: Any) -> Baseline:
    """Principal components at unit variance, each matched to one variable.

    Signs and order of components are arbitrary, so components are matched to variables in the way
    that favours PCA most: the smallest absolute correlation of a component with its variable is as
    large as possible, and among such matchings the sum is.

    Examples
    --------
    >>> from skcoral.baselines import pca
    >>> pca([[1.0, 0.6], [0.6, 1.0]])
    Baseline(min_fidelity=0.447214, mean_fidelity=0.670820, p=2)
    """
    R = check_correlation(R)
    components = _decorrelator(R, lambda root: np.linalg.svd(root)[0])
    return match_to_sources(R, components)


def zca_cor(R: Any) -> Baseline:
    """ZCA on standardised variables, ``T = R^{-1/2}``: the largest mean fidelity there is.

    Examples
    --------
    >>> from skcoral.baselines import zca_cor
    >>> zca_cor([[1.0, 0.6], [0.6, 1.0]])
    Baseline(min_fidelity=0.948683, mean_fidelity=0.948683, p=2)
    """
    return _in_place(check_correlation(R), _polar)


def zca(R: Any, *, scale: Any) -> Baseline:
    """ZCA on the variables in their own units, expressed on standardised variables.

    With ``D`` the diagonal matrix of standard deviations and ``C = D R D`` the covariance matrix,
    ZCA maps centred rows by ``C^{-1/2}``; on standardised rows that is ``T = D C^{-1/2}``. A
    variable with large units keeps its identity at the expense of the others.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    scale : array-like of shape (p,)
        Standard deviations.

    Examples
    --------
    >>> from skcoral.baselines import zca
    >>> zca([[1.0, 0.6], [0.6, 1.0]], scale=[1.0, 10.0]).fidelity.round(6)
    array([0.83205, 0.99846])
    """
    R = check_correlation(R)
    sd = float_array(scale, "scale", InvalidArgumentError)[0]
    if sd.shape != (len(R),) or not (np.isfinite(sd) & (sd > 0.0)).all():
        raise InvalidArgumentError(
            f"scale must hold {len(R)} standard deviations, finite and above 0; got "
            f"{shown_value(scale)}."
        )
    # Only ratios matter; units near the ends of the floating-point range must not overflow.
    return _in_place(R, lambda root: _polar(root * (sd / sd.max())))


def minimum_torsion(R: Any) -> Baseline:
    """Uncorrelated outputs that are nearest to the variables: least sum of ``1 - f_j²``.

    The outputs may be rescaled, so what is lost of variable j is ``1 - f_j²`` of its variance with
    ``f_j`` its fidelity. The largest ``Σ f_j²`` is attained in the weighted-ZCA family by weights
    that equal the fidelities: a fixed point (Meucci, Santangelo and Deguest, 2015).

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.

    Examples
    --------
    >>> from skcoral.baselines import minimum_torsion
    >>> minimum_torsion([[1.0, 0.6], [0.6, 1.0]])
    Baseline(min_fidelity=0.948683, mean_fidelity=0.948683, p=2)
    """
    R = check_correlation(R)
    weights = np.ones(len(R))
    for _ in range(_STEPS):
        values, V = np.linalg.eigh(R * np.outer(weights, weights))
        f = (V * V) @ np.sqrt(np.maximum(values, 0.0)) / weights
        change, weights = float(np.abs(f - weights).max()), f
        if change <= 1e-13:
            break
    return _in_place(R, lambda root: _polar(root * weights))


def cholesky(R: Any) -> Baseline:
    """Gram-Schmidt in input order: variable j minus its regression on the earlier ones.

    The first variable is unchanged, and the last one changes most: the order matters.

    Examples
    --------
    >>> from skcoral.baselines import cholesky
    >>> cholesky([[1.0, 0.6], [0.6, 1.0]]).fidelity
    array([1. , 0.8])
    """
    return _in_place(check_correlation(R), lambda root: np.eye(len(root)))


def sparse_pca(R: Any, *, alpha: float) -> Baseline:
    """Sparse principal components at unit variance, each matched to one variable.

    scikit-learn's ``SparsePCA`` with as many components as variables, fitted to the paper's sample
    of 5,000 normal rows with population correlation ``R`` and rescaled to ``t_jᵀRt_j = 1``. Sparse
    components are not decorrelated: what they leave is the price of choosing zeros by a penalty
    instead of by a support.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    alpha : float
        The penalty; larger means sparser.

    Examples
    --------
    >>> from skcoral.baselines import sparse_pca
    >>> sparse_pca([[1.0, 0.6], [0.6, 1.0]], alpha=40.0).T
    array([[1., 0.],
           [0., 1.]])
    """
    from sklearn.decomposition import SparsePCA

    R = check_correlation(R)
    rows = np.random.default_rng(2).normal(size=(5000, len(R))) @ np.linalg.cholesky(R).T
    model = SparsePCA(len(R), alpha=alpha, method="lars", max_iter=500, random_state=0)
    loadings = np.asarray(model.fit(rows).components_.T, dtype=np.float64)
    empty = np.flatnonzero(~loadings.any(axis=0))
    if empty.size:
        raise InvalidArgumentError(
            f"{empty.size} of {len(R)} sparse components are entirely zero; lower alpha."
        )
    T = loadings / np.sqrt(np.einsum("ij,ij->j", loadings, R @ loadings))
    return match_to_sources(R, T)


def match_to_sources(R: Array, T: Array) -> Baseline:
    """Reorder and sign the columns of ``T``, of unit variance, so that column j is variable j's."""
    correlations = R @ T
    output = bottleneck_assignment(np.abs(correlations))
    matched = correlations[np.arange(len(R)), output]
    # A zero correlation has no sign to fix, and its column must not vanish.
    signs = np.where(matched < 0.0, -1.0, 1.0)
    return Baseline(T=T[:, output] * signs, fidelity=matched * signs)


def bottleneck_assignment(similarity: Array) -> Index:
    """Column matched to each row, one to one, with the largest least entry.

    Bisection over the entries gives the value, with one assignment per step. Among the assignments
    that reach it, the one with the largest sum is returned, so that the answer does not depend on
    the matching algorithm.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    values = np.unique(similarity)

    def missed(level: float) -> bool:
        allowed = similarity >= level
        return not allowed[linear_sum_assignment(allowed, maximize=True)].all()

    best = values[bisect.bisect_right(values, False, key=missed) - 1]
    # A forbidden entry costs more than any whole assignment of allowed ones can gain.
    penalty = (len(similarity) + 1) * (1.0 + np.abs(similarity).max())
    gain = np.where(similarity >= best, similarity, -penalty)
    return np.asarray(linear_sum_assignment(gain, maximize=True)[1], dtype=np.intp)


def _in_place(R: Array, rotation: Callable[[Array], Array]) -> Baseline:
    """Baseline whose output j is made for variable j by construction."""
    T = _decorrelator(R, rotation)
    return Baseline(T=T, fidelity=column_dots(R, T))


def _decorrelator(R: Array, rotation: Callable[[Array], Array]) -> Array:
    """``L⁻ᵀQ`` with Q a function of Lᵀ, made exact where ``R`` is nearly singular."""
    L: Array = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    T: Array = make_exact(R, solve_triangular(L, rotation(L.T), lower=True, trans="T"))[0]
    return T


def _polar(M: Array) -> Array:
    """The orthogonal matrix nearest to ``M``."""
    # Columns from large to small: the decomposition then keeps the digits of the small ones.
    order = np.argsort(-np.linalg.norm(M, axis=0), kind="stable")
    U, _, Vt = np.linalg.svd(M[:, order])
    Q = np.empty_like(M)
    Q[:, order] = U @ Vt
    return Q
