"""The numbers behind the paper's Figure 1, for any system of three variables.

Column j of ``T`` lies on the ellipsoid ``tᵀRt = 1``; its floor cuts out a cap. Under
``w = R^{1/2}t`` the ellipsoid is the unit sphere and the cap a round one about
``a_j = R^{1/2}e_j``; the chosen frame is as orthogonal as the caps allow; ``c_j = Rt_j`` are the
correlations with the variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skcoral.api import decorrelate
from skcoral.exceptions import InvalidArgumentError
from skcoral.results import Decorrelation, read_only

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """Surfaces, caps and frames of a three-variable system; every array read-only.

    Attributes
    ----------
    names : tuple of str
        The three variables.
    R : ndarray of shape (3, 3)
        Their correlation matrix.
    solution : Decorrelation
        The chosen transformation, with its certificate.
    sphere : ndarray of shape (3, k, 2k)
        Mesh of the unit sphere (panels b and c).
    ellipsoid : ndarray of shape (3, k, 2k)
        The same mesh on ``tᵀRt = 1`` (panel a).
    caps_w, caps_t : ndarray of shape (3, 3, k, 2k)
        Mesh of each variable's cap: first axis the variable, second the coordinate.
    rims_w, rims_t : ndarray of shape (3, 3, 2k)
        Boundary curve of each cap.
    centres : ndarray of shape (3, 3)
        Column j is ``a_j``, where variable j itself lies (panel b).
    W : ndarray of shape (3, 3)
        The chosen frame, in columns (panel c).
    cosines : ndarray of shape (3, 3)
        ``WᵀW``: the cosines of the angles between its vectors, which are the residual correlations.
    C : ndarray of shape (3, 3)
        Column j is ``c_j = R t_j`` in the basis of the variables; its entry j is the fidelity
        (panel d).
    """

    names: tuple[str, ...]
    R: Array
    solution: Decorrelation
    sphere: Array
    ellipsoid: Array
    caps_w: Array
    caps_t: Array
    rims_w: Array
    rims_t: Array
    centres: Array
    W: Array
    cosines: Array
    C: Array

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))


def cap_geometry(
    R: ArrayLike,
    rho_min: float | ArrayLike,
    *,
    names: tuple[str, ...] = ("x1", "x2", "x3"),
    n_points: int = 25,
) -> Geometry:
    """Compute the four panels of Figure 1 for a system of three variables.

    Parameters
    ----------
    R : array-like of shape (3, 3)
        Correlation matrix.
    rho_min : float or array-like of shape (3,)
        Floors.
    names : tuple of str
        The variables.
    n_points : int, default=25
        Mesh lines from pole to pole; twice as many around.

    Returns
    -------
    Geometry

    Examples
    --------
    >>> from skcoral.paper import cap_geometry
    >>> figure = cap_geometry([[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]], 0.99)
    >>> bool((np.diag(figure.C) >= 0.99).all())
    True
    """
    matrix = np.asarray(R, dtype=np.float64)
    if matrix.shape != (3, 3):
        raise InvalidArgumentError(
            f"the figure is about three variables; the matrix has shape {matrix.shape}."
        )
    solution = decorrelate(matrix, rho_min)
    values, vectors = np.linalg.eigh(matrix)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T

    around = np.linspace(0.0, 2 * np.pi, 2 * n_points)
    down = np.linspace(0.0, np.pi, n_points)
    sphere = _polar_mesh(np.eye(3), down, around)
    caps = np.stack(
        [
            _polar_mesh(
                _basis_about(root[:, j]),
                np.linspace(0.0, np.arccos(min(1.0, solution.rho_min[j])), n_points),
                around,
            )
            for j in range(3)
        ]
    )
    W = root @ solution.T
    return Geometry(
        names=tuple(names),
        R=matrix,
        solution=solution,
        sphere=sphere,
        ellipsoid=np.einsum("ab,bij->aij", inverse, sphere),
        caps_w=caps,
        caps_t=np.einsum("ab,vbij->vaij", inverse, caps),
        rims_w=caps[:, :, -1, :],
        rims_t=np.einsum("ab,vbj->vaj", inverse, caps[:, :, -1, :]),
        centres=root,
        W=W,
        cosines=W.T @ W,
        C=matrix @ solution.T,
    )


def _polar_mesh(basis: Array, down: Array, around: Array) -> Array:
    """Unit vectors at angle ``down`` from the basis' last column and ``around`` it."""
    sine, cosine = np.sin(down)[:, None], np.cos(down)[:, None]
    local = np.stack(
        [
            sine * np.cos(around),
            sine * np.sin(around),
            np.broadcast_to(cosine, (down.size, around.size)),
        ]
    )
    return np.einsum("ab,bij->aij", basis, local)


def _basis_about(axis: Array) -> Array:
    """An orthonormal basis whose last column is the unit vector ``axis``."""
    complement = np.linalg.svd(axis[:, None])[0][:, 1:]
    return np.column_stack([complement, axis])
