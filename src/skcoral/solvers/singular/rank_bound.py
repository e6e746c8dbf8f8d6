"""The bound (★r) on the sum of squares: the bound (★) for Gram matrices of rank r.

``G = UᵀU`` has r eigenvalues besides zeros, so that for every symmetric S, with eigenvalues
``s_1² ≥ s_2² ≥ …``,

    ½‖G‖² ≥ ⟨S, G⟩ - ½ Σ_{i ≤ r} s_i² .

With ``H = S + diag(κ) ≻ 0`` and ``λ ≥ 0``, every feasible U has

    D2 ≥ 2ρᵀλ - Σκ_j - p/2 - tr(D_λ R D_λ H⁻¹) - ½ Σ_{i ≤ r} s_i² .                          (★r)

The penalty is half the maximum of ``⟨Z, S²⟩`` over the projections Z of rank r. For r = p this is
(★), and λ = 0 with ``S = (p/r) I`` gives the bound of the rank alone. It is concave in (H, κ, λ)
and is maximised by Newton's method with logarithmic barriers for H and λ. Outputs with a floor of
one are held at their sources.

Stationary outputs suggest a dual point as well, in the factor form of (★r): for V of r rows and
``H = VᵀV + diag(κ) ≻ 0``, where some κ may be negative. No p × p array is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import EPS, Array, column_dots
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.singular.dual import at_source

_FIRST = 0.1  # weight of the barrier at the start
_SHRINK = 0.3  # of it, once the point is centred; squared where one step was enough
_STEPS = 100
_CENTRED = 10.0  # Newton decrement, in weights of the barrier, where this may shrink
_SHORTEST = 1e-9  # step below which rounding leaves nothing to gain; tight windows end there
_INSIDE = 0.95  # share of the way to λ = 0 that a step may take
# Accuracy and steps of the inner conjugate gradients. Ten times as accurate takes a fifth more
# time for the same bounds; at a third of the accuracy a tight one ends 1e-7 short.
_FORCING, _INNER = 0.01, 300
_LIFT = 5e7  # κ of floors of one
_RIM = 1e-7  # above the floor, where an output still counts as at the rim of its cap


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
        at_equal = np.diag(slopes)
        self.common = at_equal * s / np.sqrt(at_equal.sum())

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


class RankBound:
    """(★r) for a factor ``A`` (r × p, unit columns) and floors."""

    def __init__(self, A: Array, floors: Array) -> None:
        self.A, self.floors = A, floors
        self.live = floors < 1.0

    def start(self) -> RankPoint:
        """The multiple of the identity that belongs to the rank alone."""
        r, p = self.A.shape
        kappa, lam = np.where(self.live, 1.0 - p / r, 0.0), np.where(self.live, 0.5, 0.0)
        point = self.at(np.eye(p), kappa, lam, _FIRST)
        assert point is not None
        return point

    def at(self, H: Array, kappa: Array, lam: Array, tau: float) -> RankPoint | None:
        """Values at a point; None outside the domain."""
        A, live = self.A, self.live
        if not (lam[live] > 0.0).all():
            return None
        free = np.ix_(live, live)
        factor, info = sla.lapack.dpotrf(H[free], lower=1, clean=1)
        if info != 0:
            return None
        penalty = LargestSquares(H - np.diag(kappa), len(A), tau)
        inverse, U = np.zeros_like(H), A.copy()
        triangle = sla.lapack.dtrtri(factor, lower=1)[0]
        inverse[free] = triangle.T @ triangle
        forced = A[:, live] * lam[live] - A[:, ~live] @ H[np.ix_(~live, live)]
        U[:, live] = forced @ inverse[free]
        pinned = float(np.sum((A[:, ~live] @ H[np.ix_(~live, ~live)]) * A[:, ~live]))
        linear = 2.0 * float(self.floors @ lam) - float(kappa.sum()) - 0.5 * len(lam) + pinned
        linear -= float(np.sum(U[:, live] * forced))
        logs = 2.0 * float(np.log(np.diag(factor)).sum()) + float(np.log(lam[live]).sum())
        value, merit = linear - penalty.value, linear - penalty.merit + tau * logs
        return RankPoint(H, kappa, lam, tau, value, merit, inverse, U, penalty)

    def maximise(
        self, enough: Callable[[RankPoint], bool], resume: RankPoint | None = None
    ) -> RankPoint:
        """Raise the bound until a centred point is ``enough``; ``resume`` is one from before."""
        if resume is not None and enough(resume):
            return resume
        now = resume or self.start()
        for _ in range(_STEPS):
            V, on_kappa, on_lam, decrement = newton_step(self.A, self.floors, now)
            # shorten the step until λ stays positive, H definite, and the merit grows
            ratios = on_lam[self.live] / now.lam[self.live]
            length = _INSIDE / max(-float(ratios.min(initial=0.0)), _INSIDE)
            new = None
            while new is None and length > _SHORTEST:
                kappa, lam = now.kappa + length * on_kappa, now.lam + length * on_lam
                new = self.at(now.H + length * V, kappa, lam, now.tau)
                wanted = now.merit + 1e-4 * length * decrement - 1e-13 * abs(now.merit)
                if new is not None and not new.merit >= wanted:
                    new = None
                length *= 0.5
            if new is None:
                break
            now = new
            if decrement < _CENTRED * now.tau:
                if enough(now):
                    break
                tau = now.tau * _SHRINK ** (1 if decrement > now.tau else 2)
                shrunk = self.at(now.H, now.kappa, now.lam, tau)
                assert shrunk is not None
                now = shrunk
        return now

    def multipliers(self, point: RankPoint) -> dict[str, Array]:
        """The arrays of the certificate besides the factor, all finite."""
        H, lam, pinned = point.H.copy(), point.lam.copy(), np.flatnonzero(~self.live)
        diagonal = np.diag(H) - point.kappa
        if len(pinned):
            pull = column_dots(self.A, point.U @ H)
            H[pinned, pinned] += _LIFT
            lam[pinned] = _LIFT + pull[pinned]
        return {"H": H, "multipliers": lam, "diagonal": diagonal}


def newton_step(A: Array, floors: Array, at: RankPoint) -> tuple[Array, Array, Array, float]:
    """The Newton step of H, κ and λ, and its decrement.

    The smooth bound has the second derivative ``X V W + W V X`` in H, with ``W = H⁻¹`` and
    ``X = G + ½τW``, besides that of the penalty, which knows H and κ by ``S = H - diag(κ)`` alone.
    κ and λ are eliminated, and the step of H is found by conjugate gradients, all in the
    eigenbasis of S.
    """
    live, penalty, tau = np.flatnonzero(floors < 1.0), at.penalty, at.tau
    A, Q, lam = A[:, live], penalty.Q[live], at.lam[live]
    U, W = at.U @ penalty.Q, penalty.Q.T @ at.inverse @ penalty.Q
    G, W_live = U.T @ U, Q @ W
    X = G + 0.5 * tau * W
    force = G + tau * W - np.diag(penalty.slope)
    on_lam = 2.0 * (floors[live] - column_dots(A, at.U[:, live])) + tau / lam
    on_kappa = Q**2 @ penalty.slope - 1.0
    of_lam = np.linalg.inv(2.0 * (A.T @ A) * (W_live @ Q.T) + np.diag(tau / lam**2))
    of_kappa = np.linalg.inv(penalty.on_diagonals(Q))

    def penalised(x: Array) -> Array:  # what a step of κ adds to the equations of S
        return penalty.apply(-(Q.T * x) @ Q)

    def on_diagonal(image: Array) -> Array:
        return np.asarray(-np.einsum("ij,ij->i", Q @ image, Q))

    def moved_lam(x: Array) -> Array:  # what a step of λ adds to the equations of H
        Y = U.T @ ((A * x) @ W_live)
        return np.asarray(-(Y + Y.T))

    def pulled(VW: Array) -> Array:  # what a step of H adds to the equations of λ
        return -2.0 * column_dots(A, U @ (VW @ Q.T))

    def apply(V: Array) -> Array:
        image, VW = penalty.apply(V), V @ W
        Y = X @ VW
        out = image + Y + Y.T - penalised(of_kappa @ on_diagonal(image))
        return np.asarray(out - moved_lam(of_lam @ pulled(VW)))

    # preconditioned by about the diagonal of the operator in the eigenbasis of W
    values, basis = np.linalg.eigh(W)
    values, turned = np.maximum(values, 0.0), basis.T**2
    energy = column_dots(basis, G @ basis)
    diagonal = turned @ penalty.between @ turned.T + tau * np.outer(values, values)
    diagonal += np.outer(values, energy) + np.outer(energy, values)

    def precondition(V: Array) -> Array:
        return np.asarray(basis @ ((basis.T @ V @ basis) / diagonal) @ basis.T)

    right = force - penalised(of_kappa @ on_kappa) - moved_lam(of_lam @ on_lam)
    V, _, _ = conjugate_gradient(apply, right, precondition, rtol=_FORCING, max_iter=_INNER)
    V = 0.5 * (V + V.T)
    kappa = of_kappa @ (on_kappa - on_diagonal(penalty.apply(V)))
    moved = of_lam @ (on_lam - pulled(V @ W))
    decrement = float(np.sum(force * V) + on_kappa @ kappa + on_lam @ moved)
    moves = np.zeros((2, len(G)))
    moves[0, live], moves[1, live] = kappa, moved
    return penalty.Q @ V @ penalty.Q.T, moves[0], moves[1], decrement


def multipliers_of_outputs(A: Array, U: Array, floors: Array) -> dict[str, Array]:
    """The dual point that stationary outputs suggest; it proves them optimal if ``H ≻ 0``.

    ``UG + U diag(κ - ν) = A D_λ`` is the condition of a stationary U, with λ where floors bind, and
    ``S = νI + VᵀV`` is G on its range and ν, the least eigenvalue of ``UUᵀ``, elsewhere: half the
    sum of the r largest squares is then ``½‖G‖²``, and the bound is attained.
    """
    values, Q = np.linalg.eigh(U @ U.T)
    values = np.maximum(values, EPS * values[-1])  # outputs may span less
    above = values - values[0]
    B, W = Q.T @ A, Q.T @ U
    slope = above[:, None] * W
    fidelity, outward, along = column_dots(B, W), column_dots(W, slope), column_dots(B, slope)
    rim = (fidelity <= floors + _RIM) & (fidelity < 1.0)
    lam = np.where(rim, (along - fidelity * outward) / np.where(rim, 1.0 - fidelity**2, 1.0), 0.0)
    lam = np.maximum(lam, 0.0)
    kappa = lam * fidelity - outward
    pinned = floors >= 1.0
    if pinned.any():
        lam[pinned], kappa[pinned] = at_source(np.diag(above), B[:, pinned])
    return {"V": np.sqrt(above / values)[:, None] * W, "multipliers": lam, "kappa": kappa}
