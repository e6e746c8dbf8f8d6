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
    """Values at one dual point."""

    H: Array
    kappa: Array  # zero where the floor is one, as λ
    lam: Array
    tau: float  # weight of the barriers
    value: float  # the bound
    merit: float  # what is maximised instead of it
    inverse: Array  # of H without the outputs at their sources, whose rows and columns are zero
    U: Array  # the minimisers
    penalty: LargestSquares  # of S = H - diag(κ)

    @property
    def left(self) -> float:
        """What the barriers leave open."""
        return 4 * len(self.lam) * self.tau


class LargestSquares:
    """Half the sum of the r largest squares of eigenvalues of S, made smooth.

    Barriers of weight τ keep Z and ``I - Z``, which have the eigenvectors ``Q`` of S, positive
    definite. ``value`` is the penalty and ``merit`` the smooth one. In the basis Q its derivative
    is diagonal, ``slope``, and the second one is ``between`` entry by entry, less a product with
    ``common`` on the diagonal.
    """

    def __init__(self, S: Array, r: int, tau: float) -> None:
        s, self.Q = np.linalg.eigh(S)
        squares = 0.5 * s * s
        z, rest = occupations(squares, r, tau)
        self.value = float(np.sort(squares)[-r:].sum())
        self.merit = float(z @ squares + tau * (np.log(z) + np.log(rest)).sum())
        self.slope = z * s
        # (z_a - z_b)/(½s_a² - ½s_b²), without a difference
        slopes = 1.0 / (tau * (1.0 / np.outer(z, z) + 1.0 / np.outer(rest, rest)))
        self.between = 0.5 * np.add.outer(z, z) + 0.25 * np.add.outer(s, s) ** 2 * slopes
        own = np.diag(slopes)
        self.common = own * s / np.sqrt(own.sum())

    def apply(self, E: Array) -> Array:
        """The second derivative of the smooth penalty times a step of S, in the basis Q."""
        image: Array = self.between * E
        np.einsum("ii->i", image)[:] -= (np.diag(E) @ self.common) * self.common
        return image

    def on_diagonals(self, rows: Array) -> Array:
        """The second derivative in the diagonal entries of S whose rows of Q are given."""
        products = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        common = rows**2 @ self.common
        return np.asarray((products * self.between.ravel()) @ products.T) - np.outer(common, common)


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
