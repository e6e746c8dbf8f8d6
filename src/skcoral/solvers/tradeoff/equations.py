"""The Newton equations of the trade-off, reduced to the change ``V`` of the symmetric matrix H.

    G' V B + B V G' - 2 sym(Cᵀ D_dλ B) + stiffness ∘ V + pull · dδ = right side,
    K dλ = diag(C V B) + missing,        K = R∘B + barrier,

with ``B = H⁻¹``, ``C = RT``, ``G' = TᵀRT + ½P``. Small systems are formed and factorised; larger
ones are solved by conjugate gradients, three matrix products a step, preconditioned by the diagonal
of the equations plus a coarse correction.

The coarse space holds the changes of scale ``V = EH + HE`` with E diagonal. There the elimination
of λ takes away almost all curvature, which the diagonal does not show; and there the curvature is
known in closed form, because ``tr(D_λ R D_λ H⁻¹)`` does not change when H and λ are rescaled
together:

    2 G̃∘H + (stiffness ∘ off(H)², with its row sums on the diagonal) + diag(2 (PH)_jj + λ_j z_j)
    - 2 D_ρ K⁻¹ D_ρ,        G̃ = TᵀRT + P.

Where λ_j is small, or a floor close to one, the softest change of variable j is another
combination of the entries of its scale, the diagonal one with another weight than the pairs. So the
change of ``H_jj`` alone joins, made conjugate to the scale of j. In closed form too, with
``Q = K⁻¹ (C∘B)``, its curvature and that with the scale are

    2 G'_jj B_jj - 2 ((C∘B)ᵀQ)_jj,        2 G'_jj + (PH)_jj B_jj - 2 ρ_j Q_jj.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from skcoral.core.arrays import (
    Array,
    cholesky_or_none,
    inner,
    inverse_factored,
    library,
    norm,
    own_diagonal,
    plus_diagonal,
    row_products,
    symmetric,
)
from skcoral.core.linalg import conjugate_gradient
from skcoral.solvers.tradeoff.points import Lever, Problem

FORMED = 24  # up to this many variables the equations are formed

_MAX_ITER = 200
# The same where most pairs have weight zero, or accuracy is asked for. A factorisation is the work
# of p³/2,880 iterated solves of twenty steps: ninety here, seven hundred at twice as many.
_FORMABLE = 64
_SOUND = 1e-12  # share of the curvature of a change that elimination must leave to be trusted
# What an iteration may leave of the lever's equations. At five times it, single worst pairs of 130
# variables take twice the steps; at a tenth, they take a tenth more iterations.
_LEVER = 1e-2
_SLACK = 0.3  # what an iteration may leave of the equations, in units of P


@dataclass(frozen=True)
class Linearisation:
    """Everything at one point that the Newton equations are made of.

    ``half_gram`` is ``G' = TᵀRT + ½P``, and ``P`` is None where it is zero.
    """

    problem: Problem
    H: Any
    B: Any
    C: Any
    half_gram: Any
    lam: Any
    z: Any
    stiffness: Any
    P: Any = None

    def multiplier_factor(self) -> Any:
        """Cholesky factor of K, with the multipliers that are not free taken out."""
        free, R = self.problem.free, self.problem.R
        held = 1.0 - free
        barrier = 0.5 * self.z / (self.lam + held) * free + held
        factor = cholesky_or_none(plus_diagonal(R * self.B * self.problem.block, barrier))
        if factor is None:
            raise sla.LinAlgError("R∘H⁻¹ is not positive definite to rounding")
        return factor


class FormedEquations:
    """The equations as one dense matrix, in NumPy.

    The unknown entries of V are flattened to a vector with ``√2`` on the pairs, so that inner
    products agree.
    """

    arrived = True

    def __init__(self, at: Linearisation) -> None:
        p, self.free = at.problem.p, at.problem.free
        self.work = p**6 / 48.0  # of a factorisation, in multiply-adds
        i, j = at.problem.unknowns
        self.rows, self.cols, self.size = i, j, p
        pair = i != j
        self.weight = np.where(pair, np.sqrt(2.0), 1.0)
        unit = np.where(pair, 1.0, np.sqrt(0.5))
        self.multiplier_factor = at.multiplier_factor()
        Gi, Gj, Bi, Bj = (M.take(ij, axis=1) for M in (at.half_gram, at.B) for ij in (i, j))
        # Entry (ij, kl) is G_ik B_jl + G_jl B_ik + G_il B_jk + G_jk B_il. Rows are copied, which
        # takes a third of the time of columns.
        A = Gi[i]
        A *= Bj[j]
        A += Gj[j] * Bi[i]
        across = Gi[j] * Bj[i]
        A += across
        A += across.T
        A *= unit
        A *= unit[:, None]
        plus_diagonal(A, at.stiffness[i, j] * pair)
        self.J = at.C.take(i, axis=1) * Bj + at.C.take(j, axis=1) * Bi
        self.J *= unit * np.sqrt(0.5)
        self.J *= self.free[:, None]
        half = sla.lapack.dtrtrs(self.multiplier_factor, np.asfortranarray(self.J), lower=1)[0]
        self.lower = sla.blas.dsyrk(-2.0, half, beta=1.0, c=A.T, trans=1, lower=1, overwrite_c=1)
        self.factor = regularised_cholesky(self.lower)

    def _flatten(self, M: Array) -> Array:
        return np.asarray(M[self.rows, self.cols] * self.weight)

    def _unflatten(self, v: Array) -> Array:
        M = np.zeros((self.size, self.size))
        M[self.rows, self.cols] = v / self.weight
        M[self.cols, self.rows] = M[self.rows, self.cols]
        return M

    def multipliers(self, V: Array, missing: Array) -> Array:
        """``dλ`` that goes with ``dH = V`` when the fidelities are to change by ``missing``."""
        right = self.J @ self._flatten(V) + missing * self.free
        return np.asarray(sla.lapack.dpotrs(self.multiplier_factor, right, lower=1)[0])

    def solve(
        self, right: Array, missing: Array, lever: Lever | None = None
    ) -> tuple[Array, float]:
        """Solve for ``dH`` and the scalar of the criterion (0 if it has none)."""
        lam = sla.lapack.dpotrs(self.multiplier_factor, missing * self.free, lower=1)[0]
        b = self._flatten(right) + 2.0 * (self.J.T @ lam)
        if lever is None:
            return self._unflatten(self._solve(b)), 0.0
        pull = self._flatten(lever.pull)
        x, y = self._solve(b), self._solve(pull)
        scalar = -(lever.constant + float(pull @ x)) / (lever.bend - float(pull @ y))
        return self._unflatten(x - scalar * y), scalar

    def _solve(self, b: Array) -> Array:
        """Solve with one step of refinement: stiff pairs need more digits than large ones leave."""
        x = sla.lapack.dpotrs(self.factor, b, lower=1)[0]
        left = sla.blas.dsymv(-1.0, self.lower, x, beta=1.0, y=b, lower=1)
        return np.asarray(x + sla.lapack.dpotrs(self.factor, left, lower=1)[0])


def regularised_cholesky(lower: Array) -> Array:
    """Cholesky factor; where rounding spoils definiteness, of the least diagonal increase."""
    factor, info = sla.lapack.dpotrf(lower, lower=1)
    if info == 0:
        return np.asarray(factor)
    own, increase = np.abs(np.diag(lower)) + np.finfo(np.float64).tiny, 1e-15
    while info != 0:
        if increase > 1e-6:
            raise sla.LinAlgError("the Newton equations are not positive definite to rounding")
        raised = lower.copy(order="F")
        raised[np.diag_indices(len(own))] += increase * own
        factor, info = sla.lapack.dpotrf(raised, lower=1, overwrite_a=1)
        increase *= 10.0
    return np.asarray(factor)


@dataclass(frozen=True)
class _Coarse:
    """Inverse of the equations among the scales, and the changes ``E_jj - tilt_j · scale_j``.

    ``local`` is one over the curvature of the latter.
    """

    scales: Any
    tilt: Any
    local: Any


class IteratedEquations:
    """The same equations by conjugate gradients, in the library that holds the matrices."""

    def __init__(self, at: Linearisation, *, accuracy: float, careful: bool) -> None:
        self.at, self.accuracy, self.careful = at, accuracy, careful
        self.live, self.free = at.problem.live, at.problem.free
        self.steps = 0
        self.arrived = True  # unless an iteration ends for having taken all its steps
        # Inverses, because a triangular solve for one vector is slow on a graphics card.
        self.multiplier_inverse = inverse_factored(at.multiplier_factor())
        b, g = own_diagonal(at.B), own_diagonal(at.half_gram)
        own = at.half_gram * at.B
        own *= 2.0
        own += g[:, None] * b[None, :]
        own += b[:, None] * g[None, :]
        own = plus_diagonal(own, -2.0 * g * b)
        own += at.stiffness
        # Entries of H that are not unknown stay zero in every vector.
        self.inverse_diagonal = self.live / (own + (1.0 - self.live))
        del own
        self.slack_scale = self._slack_scale() if careful else None
        self.coarse = self._coarse_space()
        self.by_lever: Any = None
        self.last: Any = None

    @property
    def soft(self) -> Any:
        """The share of the diagonal that is not the criterion's own stiffness."""
        return 1.0 - self.inverse_diagonal * self.at.stiffness

    def _slack_scale(self) -> Any:
        """Of i times j: one over what P allows an error of equation (i, j) to be."""
        own, held = own_diagonal(self.at.P), 1.0 - self.free
        least = float(library(own).min(own + held * float(library(own).max(own))))
        return (own + least * held) ** -0.5

    def _coarse_space(self) -> _Coarse | None:
        """The soft changes of H; None where rounding has spoiled their curvature."""
        at, xp = self.at, library(self.at.H)
        PH = 0.0 * self.free if at.P is None else row_products(at.P, at.H)
        matrix = self._scale_curvature(PH)
        scale = own_diagonal(matrix)
        factor = cholesky_or_none(matrix)
        del matrix
        if factor is None:
            return None
        scales = inverse_factored(factor)
        del factor
        CB = at.C * at.B
        Q = self.multiplier_inverse @ CB
        g, b, q = (own_diagonal(M) for M in (at.half_gram, at.B, Q))
        mixed = 2.0 * g + PH * b - 2.0 * at.problem.floors * q
        tilt = mixed / scale * self.free
        curvature = 2.0 * g * b - 2.0 * row_products(CB.T, Q.T) - tilt * mixed
        sound = (curvature > _SOUND * g * b) & (self.free > 0)
        local = xp.where(sound, 1.0 / xp.where(sound, curvature, 1.0 + 0.0 * g), 0.0 * g)
        return _Coarse(scales, tilt, local)

    def _scale_curvature(self, PH: Any) -> Any:
        """The matrix of the equations among the changes of scale; ``PH`` is its diagonal."""
        at, free, floors = self.at, self.free, self.at.problem.floors
        matrix = at.stiffness * at.H * at.H
        own = 2.0 * PH + at.lam * at.z + 2.0 * library(matrix).sum(matrix, axis=1)
        matrix += (at.half_gram if at.P is None else at.half_gram + 0.5 * at.P) * at.H
        matrix -= floors[:, None] * self.multiplier_inverse * floors[None, :]
        matrix = plus_diagonal(2.0 * matrix, own)
        return plus_diagonal(matrix * free[:, None] * free[None, :], 1.0 - free)

    def _multipliers(self, right: Any) -> Any:
        return self.multiplier_inverse @ (right * self.free)

    def multipliers(self, V: Any, missing: Any) -> Any:
        """``dλ`` that goes with ``dH = V`` when the fidelities are to change by ``missing``."""
        return self._multipliers(row_products(self.at.C, (V @ self.at.B).T) + missing)

    def _apply(self, V: Any) -> Any:
        at = self.at
        U = V @ at.B
        d_lam = self._multipliers(row_products(at.C, U.T))
        Y = at.half_gram @ U
        del U
        Y -= at.C.T @ (d_lam[:, None] * at.B)
        Y = Y + Y.T
        Y += at.stiffness * V
        Y *= self.live
        return Y

    def _precondition(self, residual: Any) -> Any:
        fine = residual * self.inverse_diagonal
        if self.coarse is None:
            return fine
        at, space = self.at, self.coarse
        scale = 2.0 * row_products(at.H, residual) * self.free
        own = (own_diagonal(residual) - space.tilt * scale) * space.local
        scale = space.scales @ scale - space.tilt * own
        coarse = scale[:, None] + scale[None, :]
        coarse *= at.H
        coarse = plus_diagonal(coarse, own)
        coarse *= self.live
        fine += coarse
        return fine

    def solve(self, right: Any, missing: Any, lever: Lever | None = None) -> tuple[Any, float]:
        """Solve for ``dH`` and the scalar of the criterion, iterating from the last solution.

        That is overwritten.
        """
        right = self._without_multipliers(right, missing)
        if lever is not None and self.by_lever is None:
            self.by_lever = self._iterate(1.0 * lever.pull, rtol=min(self.accuracy, _LEVER))
        within = _SLACK if self.careful or lever is not None else float("inf")
        V = self._iterate(right, rtol=self.accuracy, within=within, start=self.last)
        self.last = V
        if lever is None:
            return V, 0.0
        bend = lever.bend - inner(lever.pull, self.by_lever)
        scalar = -(lever.constant + inner(lever.pull, V)) / bend
        return V - scalar * self.by_lever, scalar

    @property
    def work(self) -> float:
        """Multiply-adds so far: three products of matrices a step."""
        return 3.0 * self.steps * self.at.problem.p**3

    def _without_multipliers(self, right: Any, missing: Any) -> Any:
        Y = self.at.C.T @ (self._multipliers(missing)[:, None] * self.at.B)
        # Symmetric to the last bit: the iteration would let an antisymmetric part grow.
        return symmetric(right + 2.0 * Y) * self.live

    def _iterate(
        self, right: Any, *, rtol: float, within: float = float("inf"), start: Any = None
    ) -> Any:
        def small(left: Any) -> bool:
            if within == float("inf"):
                return True
            beside = left * self.soft
            if self.slack_scale is not None:
                beside *= self.slack_scale[:, None]
                beside *= self.slack_scale[None, :]
            return norm(beside) <= within

        V, left, steps = conjugate_gradient(
            self._apply,
            right,
            self._precondition,
            rtol=rtol,
            small=small,
            max_iter=_MAX_ITER,
            start=start,
        )
        self.steps += steps
        self.arrived = self.arrived and steps < _MAX_ITER
        # Where the criterion is stiff, an error that is small in V is large in the correlations.
        V = V + left * (self.inverse_diagonal * (1.0 - self.soft))
        return symmetric(V)


Equations = FormedEquations | IteratedEquations


def formable(problem: Problem) -> bool:
    """Whether the equations of a problem may be formed."""
    return isinstance(problem.R, np.ndarray) and problem.p <= _FORMABLE


def equations(
    at: Linearisation, *, accuracy: float = 0.1, careful: bool = False, formed: bool = False
) -> Equations:
    """Form the equations where they are small, or have few unknowns, and iterate elsewhere.

    The iteration leaves ``accuracy`` of the preconditioned right side; a ``careful`` one leaves
    errors of the single equations that are small beside P. ``formed`` asks for larger ones to be
    formed as well.
    """
    p = at.problem.p
    if formable(at.problem):
        formed = formed or p <= FORMED or bool(np.sum(at.problem.live) <= FORMED**2)
        if formed:
            return FormedEquations(at)
    return IteratedEquations(at, accuracy=accuracy, careful=careful)
