"""What a transformation keeps and what it leaves: pure functions of ``R`` and ``T``.

``R`` is the p×p correlation matrix of the sources, ``T`` a p×k transformation whose columns have
unit variance, ``t_jᵀRt_j = 1``; the outputs then have the correlation matrix ``G = TᵀRT``.
"""

from __future__ import annotations

from typing import Any, cast, get_args

import numpy as np
from scipy.linalg import lapack

from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import regular_factor
from skcoral.core.matrix import check_semidefinite, square_matrix
from skcoral.core.tolerances import SINGULAR_TOL
from skcoral.core.validation import check_choice, float_array
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError

#: A variable with less of the null vectors than this takes part in no linear dependency.
_PART_OF_NONE = 1e-9
#: A condition estimate that leaves no doubt about the rank.
_CERTAINLY_REGULAR = 1e-10


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
    check_choice("criterion", criterion, get_args(Criterion))
    E, W = residual(R, T), None
    if pair_weights is not None:
        W = float_array(pair_weights, "pair_weights", InvalidArgumentError)[0]
        if W.shape != E.shape:
            raise InvalidArgumentError(
                f"pair_weights must have one weight per pair of outputs, shape {E.shape}, "
                f"got {W.shape}."
            )
    return criteria.value(cast(Criterion, criterion), E, W)


def mean_residual(R: Any, T: Any) -> float:
    """Mean absolute residual correlation over the pairs; a single output has none: 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.core.measures import mean_residual
    >>> mean_residual([[1.0, -0.6], [-0.6, 1.0]], np.eye(2))
    0.6
    """
    E = residual(R, T)
    k = len(E)
    return float(np.abs(E).sum() / (k * (k - 1))) if k > 1 else 0.0


def vif(R: Any, *, on_singular: str = "raise") -> Array:
    """Variance inflation factor of each variable, the diagonal of ``R⁻¹``.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix.
    on_singular : {"raise", "solve"}
        Where some variables are linear combinations of others, refuse R, or give the factors:
        infinite for these, and finite for the rest.

    Raises
    ------
    SingularCorrelationError
        Some variable is a linear combination of others: its factor is infinite.

    Examples
    --------
    >>> from skcoral.core.measures import vif
    >>> vif([[1.0, 0.6], [0.6, 1.0]])
    array([1.5625, 1.5625])
    >>> vif([[1.0, 1.0, 0.6], [1.0, 1.0, 0.6], [0.6, 0.6, 1.0]], on_singular="solve").round(4)
    array([   inf,    inf, 1.5625])
    """
    solve = check_choice("on_singular", on_singular, ("raise", "solve")) == "solve"
    matrix = check_semidefinite(R)
    return inflation_factors(matrix.R if solve else matrix.regular())


def inflation_factors(R: Any) -> Array:
    """The diagonal of ``R⁻¹`` of a matrix that needs no check.

    Infinite for the variables that others determine, and for all where ``R`` is indefinite.
    """
    R = np.asarray(R, dtype=np.float64)
    factor = regular_factor(R, _CERTAINLY_REGULAR)
    if factor is not None:
        inverse, _ = lapack.dtrtri(factor, lower=1)
        return np.asarray((np.tril(inverse) ** 2).sum(axis=0), dtype=np.float64)
    values, vectors = np.linalg.eigh(R)
    if values[0] < -SINGULAR_TOL * values[-1]:
        return np.full(len(R), np.inf)
    null = values <= SINGULAR_TOL * values[-1]
    free = np.linalg.norm(vectors[:, null], axis=1) <= _PART_OF_NONE
    return np.where(free, (vectors[:, ~null] ** 2 / values[~null]).sum(axis=1), np.inf)


def condition_number(R: Any) -> float:
    """Largest over smallest eigenvalue of ``R``; infinite when ``R`` is not positive definite.

    Examples
    --------
    >>> from skcoral.core.measures import condition_number
    >>> round(condition_number([[1.0, 0.6], [0.6, 1.0]]), 12)
    4.0
    """
    matrix = square_matrix(R, "R", InvalidCorrelationError)[0]
    if not np.isfinite(matrix).all():
        raise InvalidCorrelationError("The condition number needs a finite R, got NaN or infinity.")
    eigenvalues = np.linalg.eigvalsh(matrix)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    return largest / smallest if smallest > 0.0 else float("inf")


def _pair(R: Any, T: Any) -> tuple[Array, Array]:
    R = float_array(R, "R", InvalidArgumentError)[0]
    T = float_array(T, "T", InvalidArgumentError)[0]
    if R.ndim != 2 or R.shape[0] != R.shape[1] or T.ndim != 2 or T.shape[0] != R.shape[0]:
        raise InvalidArgumentError(
            f"R must be p by p and T must have p rows, got shapes {R.shape} and {T.shape}."
        )
    return R, T
