"""A dual point of the bound (★r), with its values, and what the bound pays for the matrix S.

For Gram matrices G of rank r, ``⟨S, G⟩ - ½‖G‖²`` is at most half the maximum of ``⟨Z, S²⟩`` over
the projections Z of rank r, the sum of the r largest squares of eigenvalues of S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcoral.core.arrays import Array


@dataclass(frozen=True)
class RankPoint:
    """Values at one dual point.

    Attributes
    ----------
    H, kappa, lam : ndarray of shape (p, p), (p,) and (p,)
        The point; κ and λ are zero where the floor is one.
    tau : float
        Weight of the barrier.
    value, merit : float
        The bound, and what is maximised instead of it.
    inverse : ndarray of shape (p, p)
        ``H⁻¹`` of the other outputs, zero in the rows and columns of those at their sources.
    U : ndarray of shape (r, p)
        The minimisers.
    penalty : LargestSquares
        Of ``S = H - diag(κ)``.
    """

    H: Array
    kappa: Array
    lam: Array
    tau: float
    value: float
    merit: float
    inverse: Array
    U: Array
    penalty: LargestSquares

    @property
    def left(self) -> float:
        """What the barriers leave open."""
        return 4 * len(self.lam) * self.tau


class LargestSquares:
    """Half the sum of the r largest squares of eigenvalues of S, made smooth.

    Barriers of weight τ keep Z and ``I - Z``, which have the eigenvectors of S, positive definite.
    ``value`` is the penalty and ``merit`` the smooth one, of which ``gradient`` is the derivative.
    """

    def __init__(self, S: Array, r: int, tau: float) -> None:
        s, self.Q = np.linalg.eigh(S)
        squares = 0.5 * s * s
        z, rest = occupations(squares, r, tau)
        self.value = float(np.sort(squares)[-r:].sum())
        self.merit = float(z @ squares + tau * (np.log(z) + np.log(rest)).sum())
        self.gradient = (self.Q * (z * s)) @ self.Q.T
        # (z_a - z_b)/(½s_a² - ½s_b²), without a difference
        slopes = 1.0 / (tau * (1.0 / np.outer(z, z) + 1.0 / np.outer(rest, rest)))
        self._between = 0.5 * np.add.outer(z, z) + 0.25 * np.add.outer(s, s) ** 2 * slopes
        own = np.diag(slopes)
        self._common = own * s / np.sqrt(own.sum())

    def apply(self, V: Array) -> Array:
        """The second derivative of the smooth penalty times a step of S."""
        E = self.Q.T @ V @ self.Q
        image = self._between * E - np.diag((np.diag(E) @ self._common) * self._common)
        return np.asarray(self.Q @ image @ self.Q.T)

    def diagonal_in(self, basis: Array) -> Array:
        """About the diagonal of the second derivative, in an orthonormal basis."""
        turned = (basis.T @ self.Q) ** 2
        return np.asarray(turned @ self._between @ turned.T)


def occupations(w: Array, r: int, tau: float) -> tuple[Array, Array]:
    """The maximiser z of ``Σ z_i w_i + τ Σ (log z_i + log(1 - z_i))``, ``Σ z_i = r``, and 1 - z.

    Without the barrier it is one for the r largest ``w_i`` and zero for the others.
    """

    def at(eta: float) -> tuple[Array, Array]:
        d = (w - eta) / tau
        smaller = 2.0 / (2.0 + np.abs(d) + np.hypot(d, 2.0))  # of z and 1 - z
        below = d < 0.0
        return np.where(below, smaller, 1.0 - smaller), np.where(below, 1.0 - smaller, smaller)

    lo, hi = float(w.min()) - 2 * tau * (len(w) + 1), float(w.max()) + 2 * tau * (len(w) + 1)
    eta = float(np.sort(w)[::-1][r - 1 : r + 1].mean())
    for _ in range(200):
        z, rest = at(eta)
        over = float(z.sum()) - r
        lo, hi = (eta, hi) if over > 0.0 else (lo, eta)
        step = over * tau / float((1.0 / (1.0 / z**2 + 1.0 / rest**2)).sum())
        new = eta + step if lo < eta + step < hi else 0.5 * (lo + hi)
        if abs(new - eta) <= 1e-15 * max(1.0, abs(eta)):
            break
        eta = new
    return z, rest
