"""The bound (★r) on the sum of squares: the bound (★) for Gram matrices of rank r.

``G = UᵀU`` has r eigenvalues besides zeros, so that for every symmetric S, with eigenvalues
``s_1² ≥ s_2² ≥ …``,

    ½‖G‖² ≥ ⟨S, G⟩ - ½ Σ_{i ≤ r} s_i² .

With ``H = S + diag(κ) ≻ 0`` and ``λ ≥ 0``, every feasible U has

    D2 ≥ 2ρᵀλ - Σκ_j - p/2 - tr(D_λ R D_λ H⁻¹) - ½ Σ_{i ≤ r} s_i² .                          (★r)

For r = p it is (★), and λ = 0 with ``S = (p/r) I`` gives the bound of the rank alone. It is concave
in (H, κ, λ) and is maximised by Newton's method with logarithmic barriers for H and λ. Outputs with
a floor of one are held at their sources.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import Array
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.singular.answer import RankProof
from skcoral.solvers.singular.rank_point import LargestSquares, RankPoint

_FIRST = 1.0  # weight of the barrier at the start
_SHRINK = 0.3  # of it, once the point is centred; squared where one step was enough
_STEPS = 100
_CENTRED = 3.0  # Newton decrement, in weights of the barrier, where this may shrink
_INSIDE = 0.95  # share of the way to λ = 0 that a step may take
# Accuracy and steps of the inner conjugate gradients. Ten times as accurate takes a fifth more
# time for the same bounds; at a tenth of the accuracy a bound ends short of the relaxation's.
_FORCING, _INNER = 0.01, 300
_LIFT = 5e7  # κ of floors of one


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
        own = np.ix_(live, live)
        factor, info = sla.lapack.dpotrf(H[own], lower=1, clean=1)
        if info != 0:
            return None
        penalty = LargestSquares(H - np.diag(kappa), len(A), tau)
        inverse, U = np.zeros_like(H), A.copy()
        triangle = sla.lapack.dtrtri(factor, lower=1)[0]
        inverse[own] = triangle.T @ triangle
        forced = A[:, live] * lam[live] - A[:, ~live] @ H[np.ix_(~live, live)]
        U[:, live] = forced @ inverse[own]
        held = float(np.sum((A[:, ~live] @ H[np.ix_(~live, ~live)]) * A[:, ~live]))
        linear = 2.0 * float(self.floors @ lam) - float(kappa.sum()) - 0.5 * len(lam) + held
        linear -= float(np.sum(U[:, live] * forced))
        logs = 2.0 * float(np.log(np.diag(factor)).sum()) + float(np.log(lam[live]).sum())
        value, merit = linear - penalty.value, linear - penalty.merit + tau * logs
        return RankPoint(H, kappa, lam, tau, value, merit, inverse, U, penalty)

    def maximise(self, enough: Callable[[RankPoint], bool]) -> RankPoint:
        """Raise the bound until a centred point is ``enough``."""
        now = best = self.start()
        for _ in range(_STEPS):
            try:
                V, on_kappa, on_lam, decrement = newton_step(self.A, self.floors, now)
            except np.linalg.LinAlgError:  # at the edge of the domain the equations are singular
                break
            found, length = None, self._longest(now, on_lam)
            while found is None and length > 1e-9:
                kappa, lam = now.kappa + length * on_kappa, now.lam + length * on_lam
                found = self.at(now.H + length * V, kappa, lam, now.tau)
                wanted = now.merit + 1e-4 * length * decrement - 1e-13 * abs(now.merit)
                found = found if found is not None and found.merit >= wanted else None
                length *= 0.5
            if found is None:
                break
            now = found
            best = max(best, now, key=lambda point: point.value)
            if decrement < _CENTRED * now.tau:
                if enough(now):
                    break
                tau = now.tau * _SHRINK ** (1 if decrement > now.tau else 2)
                shrunk = self.at(now.H, now.kappa, now.lam, tau)
                assert shrunk is not None
                now = shrunk
        return best

    def _longest(self, now: RankPoint, on_lam: Array) -> float:
        """How far λ, which stays positive, allows a step to go."""
        ratios = on_lam[self.live] / now.lam[self.live]
        return min(1.0, _INSIDE / max(-float(ratios.min(initial=0.0)), _INSIDE))

    def proof(self, point: RankPoint) -> RankProof:
        """A dual point with all multipliers finite."""
        H, lam, pinned = point.H.copy(), point.lam.copy(), np.flatnonzero(~self.live)
        diagonal = np.diag(H) - point.kappa
        if len(pinned):
            pull = np.einsum("ij,ij->j", self.A, point.U @ H)
            H[pinned, pinned] += _LIFT
            lam[pinned] = _LIFT + pull[pinned]
        return RankProof(H, lam, diagonal)


def newton_step(A: Array, floors: Array, at: RankPoint) -> tuple[Array, Array, Array, float]:
    """The Newton step of H, κ and λ, and its decrement.

    The smooth bound has the second derivative ``X V W + W V X`` in H, with ``W = H⁻¹`` and
    ``X = G + ½τW``, besides that of the penalty, which knows H and κ by ``S = H - diag(κ)`` alone.
    κ and λ are eliminated, and the step of H is found by conjugate gradients.
    """
    live, penalty = np.flatnonzero(floors < 1.0), at.penalty
    U, W, lam = at.U, at.inverse, at.lam[live]
    G = U.T @ U
    X = G + 0.5 * at.tau * W
    force = G + at.tau * W - penalty.gradient
    fidelity = np.einsum("ij,ij->j", A, U)
    on_lam = (2.0 * (floors - fidelity))[live] + at.tau / lam
    on_kappa = np.diag(penalty.gradient)[live] - 1.0
    R = A[:, live].T @ A[:, live]
    of_lam = np.linalg.inv(2.0 * R * W[np.ix_(live, live)] + np.diag(at.tau / lam**2))

    def penalised(x: Array) -> Array:  # what a step of κ adds to the equations of S
        D = np.zeros_like(G)
        D[live, live] = -x
        return penalty.apply(D)

    def on_diagonal(image: Array) -> Array:
        return np.asarray(-np.diag(image)[live])

    of_kappa = np.linalg.inv(np.array([on_diagonal(penalised(x)) for x in np.eye(len(live))]))

    def moved_lam(x: Array) -> Array:  # what a step of λ adds to the equations of H
        Y = U.T @ ((A[:, live] * x) @ W[live])
        return np.asarray(-(Y + Y.T))

    def pulled(VW: Array) -> Array:  # what a step of H adds to the equations of λ
        return np.asarray(-2.0 * np.einsum("ij,ij->j", A, U @ VW)[live])

    def apply(V: Array) -> Array:
        image, VW = penalty.apply(V), V @ W
        Y = X @ VW
        out = image + Y + Y.T - penalised(of_kappa @ on_diagonal(image))
        return np.asarray(out - moved_lam(of_lam @ pulled(VW)))

    values, basis = np.linalg.eigh(W)
    values = np.maximum(values, 0.0)
    energy = np.einsum("ia,ij,ja->a", basis, G, basis)
    diagonal = penalty.diagonal_in(basis) + at.tau * np.outer(values, values)
    diagonal += np.outer(values, energy) + np.outer(energy, values)

    def precondition(V: Array) -> Array:
        return np.asarray(basis @ ((basis.T @ V @ basis) / diagonal) @ basis.T)

    right = force - penalised(of_kappa @ on_kappa) - moved_lam(of_lam @ on_lam)
    V, _, _ = conjugate_gradient(apply, right, precondition, rtol=_FORCING, max_iter=_INNER)
    V = 0.5 * (V + V.T)
    moves = np.zeros((2, len(G)))
    moves[0, live] = of_kappa @ (on_kappa - on_diagonal(penalty.apply(V)))
    moves[1, live] = of_lam @ (on_lam - pulled(V @ W))
    decrement = np.sum(force * V) + on_kappa @ moves[0, live] + on_lam @ moves[1, live]
    return V, moves[0], moves[1], float(decrement)


def gap_of_rank(proof: RankProof, A: Array, U: Array, floors: Array) -> float:
    """How far the sum of squares of a feasible ``U`` can be above the bound of ``proof``.

    ``½‖G - S‖² - ½Σ_{i > r} s_i² + Σ 2λ_j(f_j - ρ_j) + tr(ZH⁻¹Zᵀ)`` with ``Z = UH - AD_λ``.
    """
    S = proof.H.copy()
    np.fill_diagonal(S, proof.diagonal)
    factor, info = sla.lapack.dpotrf(proof.H, lower=1, clean=1)
    if info != 0:
        return np.inf
    squares = np.sort(np.linalg.eigvalsh(S) ** 2)
    off = U.T @ U - S
    Z = sla.solve_triangular(factor, (U @ proof.H - A * proof.lam).T, lower=True)
    slack = np.where(floors >= 1.0, 0.0, np.einsum("ij,ij->j", A, U) - floors)
    gap = 0.5 * float(np.sum(off * off) - squares[: len(S) - len(A)].sum())
    return gap + 2.0 * float(proof.lam @ slack) + float(np.sum(Z * Z))
