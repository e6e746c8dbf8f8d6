"""The dual of the trade-off: a lower bound from any multipliers, and its derivatives.

For **any** ``λ ≥ 0`` and ``H ≻ 0``, every transformation with unit variances and fidelities of at
least ``ρ_j`` has

    φ(off G) ≥ 2 ρᵀλ - tr H - φ*(off H) - tr(D_λ R D_λ H⁻¹)                                      (★)

with φ the criterion and φ* its conjugate. At the best ``λ, H`` the two sides are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral._arrays import (
    beside,
    cholesky_or_none,
    column_dots,
    diagonal,
    inverse_factored,
    norm,
    plus_diagonal,
    solve_factored,
    to_host,
)
from skcoral._linalg import gram_defect
from skcoral.exceptions import CertificateError
from skcoral.results import Criterion
from skcoral.tradeoff import criteria

Array = NDArray[np.float64]


def dual_bound(
    R: Array,
    floors: Array,
    multipliers: Array,
    H: Array,
    criterion: Criterion = "squared",
    pair_weights: Array | None = None,
    *,
    near: Array | None = None,
    near_correlation: Array | None = None,
) -> float:
    """Evaluate the lower bound (★), valid for any ``multipliers ≥ 0`` and ``H ≻ 0``.

    With ``Z = T H - D_λ``, ``G = TᵀRT`` and ``f = diag(RT)`` for an arbitrary ``T``, (★) equals

        2 λᵀ(ρ - f) + ⟨G - I, H⟩ - φ*(off H) - tr(H⁻¹ Zᵀ R Z),

    which does not lose its digits when λ is large (floors near one).

    Parameters
    ----------
    R, floors : ndarray
        The problem.
    multipliers, H : ndarray
        The dual point; ``-inf`` is returned where the conjugate is infinite.
    criterion : {"squared", "worst", "absolute"}
        What is bounded.
    pair_weights : ndarray of shape (p, p), optional
        Weights of the pairs.
    near : ndarray of shape (p, p), optional
        The ``T`` at which the formula is expanded, ``D_λ H⁻¹`` by default. It does not change the
        bound, only its rounding.
    near_correlation : ndarray of shape (p, p), optional
        ``TᵀRT`` of that ``T``, if it is known already.

    Raises
    ------
    CertificateError
        A multiplier is negative, or ``H`` is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral.tradeoff.dual import dual_bound
    >>> R = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> H = np.array([[2.0, 0.5], [0.5, 2.0]])
    >>> dual_bound(R, np.array([0.95, 0.95]), np.array([2.0, 2.0]), H) <= 0.64
    True
    """
    if np.any(multipliers < 0):
        raise CertificateError(
            f"multipliers must not be negative, the least is {multipliers.min():.3g}."
        )
    if not multipliers.any() and not H.any():
        return 0.0  # the limit of small H: no criterion is negative
    factor, info = sla.lapack.dpotrf(H, lower=1)
    if info != 0:
        raise CertificateError("H is not positive definite, so it proves nothing.")
    penalty = criteria.conjugate(criterion, H, pair_weights)
    if not np.isfinite(penalty):
        return -np.inf
    solve = sla.lapack.dpotrs
    T = solve(factor, np.diag(multipliers), lower=1)[0].T if near is None else near
    G = near_correlation
    defect = gram_defect(R, T) if G is None else G - np.eye(len(R))
    f = np.einsum("ji,ij->j", R, T)
    Z = T @ H - np.diag(multipliers)
    rest = float(np.sum((R @ Z) * solve(factor, Z.T, lower=1)[0].T))
    return float(2 * multipliers @ (floors - f) + np.sum(defect * H) - penalty - rest)


@dataclass(frozen=True)
class DualPoint:
    """A dual point with everything that its derivatives need.

    ``B = H⁻¹``, ``T = D_λ B``, ``C = R T``, ``G = TᵀRT``; the fidelities are ``diag(C)``.
    """

    lam: Array
    H: Any
    B: Any
    T: Any
    C: Any
    G: Any

    @property
    def fidelity(self) -> Array:
        """The fidelities of ``T``."""
        return diagonal(self.C).copy()

    def on_host(self) -> DualPoint:
        """Return the same point in NumPy."""
        return DualPoint(self.lam, *map(to_host, (self.H, self.B, self.T, self.C, self.G)))


def inverse(H: Any) -> tuple[Any, Any] | None:
    """``H⁻¹`` and the Cholesky factor of ``H``, or None where ``H`` is not positive definite.

    Cholesky keeps the small entries of a graded ``H`` accurate, as an eigendecomposition does not.
    """
    if not H.shape[0]:  # which LAPACK takes for a mistake
        return H, H
    if not np.isfinite(norm(H)):
        return None
    factor = cholesky_or_none(H)
    return None if factor is None else (inverse_factored(factor), factor)


def dual_point(R: Any, root: Any, lam: Array, H: Any, B: Any) -> DualPoint:
    """Build a :class:`DualPoint`; ``root`` is the Cholesky factor of ``R``, ``R = root rootᵀ``."""
    T = beside(lam[:, None], R) * B
    # Through the factor: TᵀRT formed directly loses cond(R) digits, WᵀW only half of them.
    W = root.T @ T
    return DualPoint(lam=lam, H=H, B=B, T=T, C=root @ W, G=W.T @ W)


def curvature(R: Any, point: DualPoint, tau: float) -> Callable[[Any], Any]:
    """Second derivative, sign changed, of the part of the dual that involves ``R``.

    That is ``max_λ [2ρᵀλ - λᵀ(R∘H⁻¹)λ + τ Σ log λ_j] + τ log det H`` as a function of H. One
    application takes three matrix products and one solve of size p.
    """
    B, C, G = point.B, point.C, point.G
    K = R * B
    if tau > 0:
        K = plus_diagonal(K, 0.5 * tau / point.lam**2)
        G = G + 0.5 * tau * B
    factor = cholesky_or_none(K)
    if factor is None:
        raise sla.LinAlgError("R∘H⁻¹ is not positive definite to rounding")
    Ct = np.ascontiguousarray(C.T) if isinstance(C, np.ndarray) else C.T

    def apply(V: Any) -> Any:
        U = V @ B
        d_lam = solve_factored(factor, column_dots(Ct, U))
        Y = G @ U - Ct @ (beside(d_lam[:, None], B) * B)
        return Y + Y.T

    return apply
