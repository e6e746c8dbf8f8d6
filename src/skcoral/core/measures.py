"""What a transformation keeps and what it leaves: pure functions of ``R`` and ``T``.

``R`` is the p×p correlation matrix of the sources, ``T`` a p×k transformation whose columns have
unit variance, ``t_jᵀRt_j = 1``; the outputs then have the correlation matrix ``G = TᵀRT``.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import inflation_factors
from skcoral.core.problem import check_pair_weights, check_semidefinite
from skcoral.core.validation import check_choice, check_names, float_array
from skcoral.exceptions import InvalidArgumentError


def fidelity(R: Any, T: Any, *, anchors: Any = None) -> Array:
    """Correlation of each output with its own source, ``f_j = e_jᵀ R t_j``.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix of the sources.
    T : array-like of shape (p, k)
        Transformation with unit-variance columns.
    anchors : array-like of shape (p, k), optional
        Composites ``b_j`` that stand in for single sources; then
        ``f_j = b_jᵀ R t_j / sqrt(b_jᵀ R b_j)``.

    Returns
    -------
    ndarray of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.core.measures import fidelity
    >>> fidelity([[1.0, 0.6], [0.6, 1.0]], np.eye(2))
    array([1., 1.])
    """
    R, T = _pair(R, T)
    if anchors is None:
        k = T.shape[1]
        if k != R.shape[0]:
            raise InvalidArgumentError(
                f"T has {k} columns for {R.shape[0]} variables: without anchors, output j belongs "
                "to variable j, so T must be square."
            )
        return np.asarray(np.einsum("ji,ij->j", R, T), dtype=np.float64)
    B = float_array(anchors, "anchors", InvalidArgumentError)[0]
    if B.shape != T.shape:
        raise InvalidArgumentError(
            f"anchors and T must have the same shape, got {B.shape} and {T.shape}."
        )
    RB = R @ B
    return np.asarray((RB * T).sum(axis=0) / np.sqrt((RB * B).sum(axis=0)), dtype=np.float64)


def residual(R: Any, T: Any) -> Array:
    """Correlations left between the outputs: ``TᵀRT`` with its diagonal set to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.core.measures import residual
    >>> residual([[1.0, 0.6], [0.6, 1.0]], np.eye(2))
    array([[0. , 0.6],
           [0.6, 0. ]])
    """
    R, T = _pair(R, T)
    E: Array = T.T @ R @ T
    # Averaged so that a pair has one residual, whatever the order of summation in the product.
    E = 0.5 * (E + E.T)
    np.fill_diagonal(E, 0.0)
    return E


def residual_by(criterion: str, R: Any, T: Any, *, pair_weights: Any = None) -> float:
    """Residual correlation by a criterion, over the pairs, with weights ω of these if given.

    "squared" is ``Σ_{i<j} ω_ij G_ij²`` (the paper's D2), "worst" ``max_{i<j} ω_ij |G_ij|`` and
    "absolute" ``Σ_{i<j} ω_ij |G_ij|``. A single output has no pairs: 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.core.measures import residual_by
    >>> residual_by("worst", [[1.0, -0.6], [-0.6, 1.0]], np.eye(2))
    0.6
    """
    check_choice("criterion", criterion, criteria.CRITERIA)
    E, W = residual(R, T), None
    if pair_weights is not None:
        by_place = float_array(pair_weights, "pair_weights", InvalidArgumentError)[0]
        W = check_pair_weights(by_place, check_names(None, len(E)))
    return criteria.value(cast(Criterion, criterion), E, W)


def vif(R: Any) -> Array:
    """Variance inflation factors, the diagonal of ``R⁻¹``; infinite where others determine one.

    Examples
    --------
    >>> from skcoral.core.measures import vif
    >>> vif([[1.0, 1.0, 0.6], [1.0, 1.0, 0.6], [0.6, 0.6, 1.0]]).round(4)
    array([   inf,    inf, 1.5625])
    """
    return inflation_factors(check_semidefinite(R).R)


def _pair(R: Any, T: Any) -> tuple[Array, Array]:
    R = float_array(R, "R", InvalidArgumentError)[0]
    T = float_array(T, "T", InvalidArgumentError)[0]
    if R.ndim != 2 or R.shape[0] != R.shape[1] or T.ndim != 2 or T.shape[0] != R.shape[0]:
        raise InvalidArgumentError(
            f"R must be p by p and T must have p rows, got shapes {R.shape} and {T.shape}."
        )
    return R, T
