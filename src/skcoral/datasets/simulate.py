"""Simulated correlation matrices: the paper's construction and other spectra and topologies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import toeplitz

from skcoral.core.arrays import Array
from skcoral.core.validation import check_count, check_number, float_array, shown_value
from skcoral.exceptions import InvalidArgumentError


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
    return _definite(loadings @ loadings.T, f"a communality of {share!r}")


def make_block_system(sizes: ArrayLike, *, within: ArrayLike = 0.5, between: float = 0.0) -> Array:
    """Make blocks of equally correlated variables.

    Parameters
    ----------
    sizes : sequence of int
        Variables in each block.
    within : float or sequence of float, default=0.5
        Correlation inside the blocks, one for all or one per block.
    between : float, default=0.0
        Correlation of variables in different blocks.

    Returns
    -------
    ndarray of shape (sum(sizes), sum(sizes))

    Examples
    --------
    >>> from skcoral.datasets import make_block_system
    >>> make_block_system([2, 1], within=0.8, between=0.1).tolist()
    [[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]]
    """
    listed = _numbers(sizes, "sizes")
    counts = listed.astype(np.int64)
    if counts.ndim != 1 or counts.size == 0 or (counts < 1).any() or (counts != listed).any():
        raise InvalidArgumentError(
            f"sizes must be a list of whole numbers of at least 1; got {shown_value(sizes)}."
        )
    inside = _numbers(within, "within")
    outside = _numbers(check_number("between", between), "between")
    if inside.ndim > 1 or inside.size not in (1, counts.size):
        raise InvalidArgumentError(
            f"within must be one number or one per block ({counts.size}); got {inside.size}."
        )
    block = np.repeat(np.arange(counts.size), counts)
    per_block = np.broadcast_to(inside, counts.shape)
    R = np.where(block[:, None] == block, per_block[block], outside)
    return _definite(R, "these correlations within and between blocks")


def make_ar_system(p: int, phi: float = 0.7) -> Array:
    """Make a first-order autoregression: ``R_ij = phi ** |i - j|``.

    Parameters
    ----------
    p : int
        Number of variables.
    phi : float in (-1, 1), default=0.7
        Correlation of neighbours.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> from skcoral.datasets import make_ar_system
    >>> make_ar_system(3, 0.5)[0].tolist()
    [1.0, 0.5, 0.25]
    """
    lags = np.arange(check_count("p", p))
    neighbour = check_number("phi", phi, "strictly between -1 and 1", lambda v: -1 < v < 1)
    return _definite(toeplitz(neighbour**lags), f"phi = {neighbour!r} and p = {lags.size}")


def make_toeplitz_system(row: ArrayLike) -> Array:
    """Make a stationary system from the correlations at lag 0, 1, 2, and so on.

    Parameters
    ----------
    row : sequence of float
        First row of the matrix; it starts with 1.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> from skcoral.datasets import make_toeplitz_system
    >>> make_toeplitz_system([1, 0.4, 0.1]).tolist()
    [[1.0, 0.4, 0.1], [0.4, 1.0, 0.4], [0.1, 0.4, 1.0]]
    """
    lags = _numbers(row, "row")
    if lags.ndim != 1 or lags.size == 0 or lags[0] != 1.0:
        raise InvalidArgumentError("row must be a list of correlations that starts with 1.")
    return _definite(toeplitz(lags), "this row")


def make_spectrum_system(eigenvalues: ArrayLike, *, seed: int = 1) -> Array:
    """Make a random correlation matrix with given eigenvalues.

    A random rotation of the diagonal matrix is given a unit diagonal by at most p - 1 plane
    rotations (Bendel and Mickey 1978; Davies and Higham 2000), which leave the spectrum alone.

    Parameters
    ----------
    eigenvalues : sequence of float
        Positive, with sum p.
    seed : int, default=1
        Seed of the rotation.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> from skcoral.datasets import make_spectrum_system
    >>> R = make_spectrum_system([2.5, 1.2, 0.2, 0.1])
    >>> np.linalg.eigvalsh(R).round(9).tolist()
    [0.1, 0.2, 1.2, 2.5]
    """
    values = _numbers(eigenvalues, "eigenvalues")
    if values.ndim != 1 or values.size == 0:
        raise InvalidArgumentError("eigenvalues must be a non-empty list of numbers.")
    if not (values > 0).all():
        raise InvalidArgumentError(f"eigenvalues must be positive; the least is {values.min()}.")
    p = values.size
    if abs(values.sum() - p) > 1e-8 * p:
        raise InvalidArgumentError(
            f"the eigenvalues of a correlation matrix sum to their number {p}; these sum to "
            f"{values.sum():.12g}. Multiply them by {p / values.sum():.12g}."
        )
    Q, triangle = np.linalg.qr(_generator(seed).normal(size=(p, p)))
    # Fixing the signs makes Q uniform over the orthogonal group and independent of LAPACK's choice.
    Q = Q * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return _definite(_unit_diagonal_by_rotations((Q * values) @ Q.T), "these eigenvalues")


def make_near_singular_system(p: int, *, condition: float = 1e8, seed: int = 1) -> Array:
    """Make a system with one near-perfect linear relation among all of its variables.

    Parameters
    ----------
    p : int
        Number of variables, at least 2.
    condition : float > 1, default=1e8
        Condition number; the other p - 1 eigenvalues are spread evenly over a factor of four.
    seed : int, default=1
        Seed of the eigenvectors.

    Returns
    -------
    ndarray of shape (p, p)

    Examples
    --------
    >>> from skcoral.datasets import make_near_singular_system
    >>> f"{np.linalg.cond(make_near_singular_system(6, condition=1e6)):.3e}"
    '1.000e+06'
    """
    values = np.linspace(1.0, 0.25, check_count("p", p, minimum=2))
    ratio = check_number("condition", condition, "above 1 and finite", lambda v: 1 < v < np.inf)
    values[-1] = 1.0 / ratio
    return make_spectrum_system(values * p / values.sum(), seed=seed)


def _unit_diagonal_by_rotations(M: Array) -> Array:
    """Rotate pairs of coordinates until every diagonal entry is one."""
    M = (M + M.T) / 2
    for _ in range(len(M) - 1):
        diagonal = np.diag(M)
        i, j = int(diagonal.argmin()), int(diagonal.argmax())
        low, high = diagonal[i] - 1.0, diagonal[j] - 1.0
        if low >= 0.0 or high <= 0.0:
            break
        # tan of the angle solves  high·t² + 2·M_ij·t + low = 0  for the new M_ii to be 1;
        # the root of smaller size without cancellation.
        b = M[i, j]
        t = -low / (b + np.copysign(np.sqrt(b * b - low * high), b))
        c = 1.0 / np.hypot(1.0, t)
        rotation = np.array([[c, t * c], [-t * c, c]])
        pair = [i, j]
        M[pair] = rotation @ M[pair]
        M[:, pair] = M[:, pair] @ rotation.T
        M[i, i] = 1.0
    return M


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_count("seed", seed, minimum=0))


def _numbers(value: ArrayLike, what: str) -> Array:
    numbers, _ = float_array(value, what, InvalidArgumentError)
    if not np.isfinite(numbers).all():
        raise InvalidArgumentError(
            f"{what} must contain only finite numbers; got {shown_value(value)}."
        )
    return numbers


def _exact(R: Array) -> Array:
    """Make the symmetry and the unit diagonal exact where only rounding is in the way."""
    R = (R + R.T) / 2
    np.fill_diagonal(R, 1.0)
    return R


def _definite(R: Array, what: str) -> Array:
    R = _exact(R)
    least = float(np.linalg.eigvalsh(R)[0])
    if least <= 1e-14 * R.shape[0]:
        raise InvalidArgumentError(
            f"no positive definite matrix comes of {what}: its least eigenvalue would be "
            f"{least:.3g}, which is zero to the precision of floating point or less."
        )
    return R
