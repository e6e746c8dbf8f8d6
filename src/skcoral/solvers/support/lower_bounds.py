"""Lower bounds that hold for every supported transformation, and how to re-check them.

Four dual points prove a bound, each from a few arrays and without the solver that found them:

* ``"frame"`` and ``"least-norm"``: a symmetric P and η ≥ 0, see
  :mod:`skcoral.solvers.support.frame_relaxation` (``P = L M Lᵀ`` with ``R = L Lᵀ``; the
  least-norm point has P zero on every Ω_k × Ω_k);
* ``"lifted"``: multipliers λ ≥ 0 of the floors and a symmetric H whose quadratic form
  ``Q = (H ⊗ R)`` restricted to the support is positive definite. For a convex loss φ of the
  residual with conjugate φ*,

      φ ≥ 2 ρᵀλ − tr H − φ*(off H) − bᵀ Q⁻¹ b,    b_ij = λ_j R_ij,

  which for a full support is the bound of the unrestricted problem. λ and H are those of a
  stationary point: with ``dφ = Σ_ij H_ij dG_ij`` its Lagrangian is the quadratic form

      Σ_ij H_ij w_i·w_j − 2 Σ_j λ_j (f_j − ρ_j) − tr H,    H = off(H) + Diag(h),

  in the points u, whose Hessian is 2Q with blocks ``Q_kl = H_kl B_kᵀ B_l``: if Q ⪰ 0, the point
  is globally optimal;
* ``"moments"``: sums of squares, see :mod:`skcoral.bounds.moments`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla
import scipy.optimize as so

from skcoral.bounds.moments import packed
from skcoral.core import criteria
from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.solution import Certificate
from skcoral.solvers.support.caps import Caps
from skcoral.solvers.support.frame_relaxation import FrameBound, Norm
from skcoral.solvers.support.moment_admm import bound_by_moments
from skcoral.solvers.support.moments import Relaxation
from skcoral.solvers.support.pattern import Mask

_ON_RIM = 1e-7  # a floor binds if the fidelity is no further above it
_EPS = float(np.finfo(np.float64).eps)
_MAX_PAIRS = 2000  # of disjoint rows; one equation each, the strongest first
_MAX_FORM = 3000  # coefficients, the size of a matrix whose eigenvalues are wanted


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of a criterion: its value, its name, and the dual point that proves it."""

    value: float
    name: str
    certificate: Certificate


@dataclass(frozen=True)
class LeastNorm(FrameBound):
    """The least-norm bound on D2, zero if no two rows of the support are disjoint.

    The ``pair`` is that of disjoint rows with the largest absolute partial correlation.
    """

    pair: tuple[int, int] | None = None
    partial_correlation: float = 0.0


def least_norm_bound(R: Array, mask: Mask) -> LeastNorm:
    """Bound D2 by the pairs of sources that share no output.

    For such a pair ``(T Tᵀ)_ij = 0`` while exactness needs ``T Tᵀ = R⁻¹``. All pairs together are
    linear conditions on ``F − I``, whose least norm is a closed form.
    """
    p, k = mask.shape
    if k < p:  # T Tᵀ has the rank k, and no inverse to compare it with
        return LeastNorm(0.0, np.zeros((p, p)), np.zeros(k))
    counts = mask.astype(np.int64)
    i, j = np.nonzero(np.triu(counts @ counts.T == 0, 1))
    factor = sla.cho_factor(R, lower=True)
    K = sla.cho_solve(factor, np.eye(p))
    K = 0.5 * (K + K.T)
    if not len(i):
        return LeastNorm(0.0, np.zeros((p, p)), np.zeros(p))
    scale = np.sqrt(np.diag(K))
    partial = -K / np.outer(scale, scale)
    strength = np.abs(partial[i, j])
    top = int(np.argmax(strength))
    pair = (int(i[top]), int(j[top]))
    if len(i) > _MAX_PAIRS:
        chosen = np.argsort(-strength, kind="stable")[:_MAX_PAIRS]
        i, j = i[chosen], j[chosen]
    gram = 0.5 * (K[np.ix_(i, i)] * K[np.ix_(j, j)] + K[np.ix_(i, j)] * K[np.ix_(j, i)])
    y = sla.solve(gram, K[i, j], assume_a="pos")
    P = np.zeros((p, p))
    P[i, j] = P[j, i] = -0.5 * y
    half = sla.solve_triangular(np.tril(factor[0]), P, lower=True)
    M = sla.solve_triangular(np.tril(factor[0]), half.T, lower=True)
    M = 0.5 * (M + M.T)
    value = float(-np.trace(M) - 0.5 * np.sum(M * M))
    return LeastNorm(
        max(value, 0.0),
        M,
        np.zeros(p),
        pair=pair,
        partial_correlation=float(partial[pair]),
    )


def frame_certificate(
    space: Caps, bound: FrameBound, criterion: Criterion, norm: Norm
) -> LowerBound:
    """What a dual point of the frame relaxation says about the criterion."""
    root = np.linalg.cholesky(space.R)
    P = root @ bound.M @ root.T
    name = "least-norm" if isinstance(bound, LeastNorm) else "frame"
    value = max(bound.value, 0.0)
    if norm == "frobenius":
        value = from_squares(criterion, value, max(space.k * (space.k - 1) / 2, 1.0))
    arrays = {"P": 0.5 * (P + P.T), "eta": bound.eta, "support": space.mask.astype(np.float64)}
    info = {"bound": "frame", "criterion": criterion, "norm": norm}
    return LowerBound(value, name, Certificate("support", arrays, info))


def from_squares(criterion: Criterion, value: float, pairs: float = 1.0) -> float:
    """What a bound on a sum of squares over pairs, or on the largest square, says of a criterion.

    An absolute value is no polynomial: moments of degree four say no more about it.
    """
    if criterion == "squared":
        return value
    return float(np.sqrt(value / pairs) if criterion == "worst" else max(value, np.sqrt(value)))


def to_squares(criterion: Criterion, value: float) -> float:
    """Inverse of :func:`from_squares`."""
    return value if criterion == "squared" or (criterion == "absolute" and value > 1) else value**2


def moment_certificate(
    space: Caps, criterion: Criterion, goal: float, tell: Callable[[float], bool]
) -> LowerBound:
    """The bound by second-order moments, looked for until its squares reach ``goal``."""
    relaxation = Relaxation(space, worst=criterion == "worst")
    found = bound_by_moments(relaxation, goal, tell)
    arrays = {
        "S": found.dual.S,
        "weights": found.dual.weights,
        "pairs": packed(found.dual.pairs),
        "floors": packed(found.dual.floors),
        "support": space.mask.astype(np.float64),
    }
    info = {"bound": "moments", "criterion": criterion}
    value = from_squares(criterion, max(found.value, 0.0))
    return LowerBound(value, "moments", Certificate("support", arrays, info))


def nothing_proved(space: Caps, criterion: Criterion) -> LowerBound:
    """The bound of an exact answer: no residual is less than zero."""
    zero = FrameBound(0.0, np.zeros((space.p, space.p)), np.zeros(space.k))
    return replace(frame_certificate(space, zero, criterion, "frobenius"), name="none")


@dataclass(frozen=True)
class Multipliers:
    """λ of the floors, H of the correlations, and the largest violation of stationarity."""

    floors: Array
    H: Array
    stationarity: float


def multipliers(caps: Caps, U: Array, half_slope: Array) -> Multipliers:
    """Multipliers of one point (k, m), given ``off(H)`` as the half-gradient of the criterion."""
    W = caps.outputs(U[None])[0]
    gradient = caps.pull_back((half_slope @ W)[None])[0]
    f = U[:, 0]
    fixed = caps.floors >= 1.0
    active = ~fixed & caps.on_rim(U, _ON_RIM)
    radial = np.einsum("ka,ka->k", gradient, U)
    # λ = (g₁ − f uᵀg) / (1 − f²), where the difference is taken before the division.
    across = np.einsum("ka,ka->k", gradient[:, 1:], U[:, 1:])
    side = np.where(active, np.einsum("ka,ka->k", U[:, 1:], U[:, 1:]), 1.0)
    lam = np.where(active, gradient[:, 0] - f * across / np.maximum(side, 1e-300), 0.0)
    lam = np.maximum(lam, 0.0)
    h = np.where(fixed, 0.0, lam * f - radial)
    left = gradient + h[:, None] * U
    left[:, 0] -= lam
    left[fixed] = 0.0  # a column without freedom is stationary
    return Multipliers(lam, half_slope + np.diag(h), float(np.abs(left).max()))


def quadratic_form(caps: Caps, H: Array) -> tuple[Array, Array, float]:
    """Q, c and a constant: ``Σ_ij H_ij w_i · w_j = sᵀQs + 2 cᵀs + constant`` less fixed squares.

    s holds the entries of the columns that are not fixed.
    """
    free = caps.floors < 1.0
    slots = np.flatnonzero((caps.valid & free[:, None]).ravel())
    owner = slots // caps.m
    vectors = caps.frames.reshape(-1, caps.p)[slots]
    constants = np.where(free[:, None], 0.0, caps.frames[:, 0])
    inner = constants @ constants.T
    np.fill_diagonal(inner, 0.0)
    Q = (vectors @ vectors.T) * H[np.ix_(owner, owner)]
    c = np.einsum("ap,ap->a", vectors, (H @ constants)[owner])
    return Q, c, float(np.sum(H * inner))


def lifted_bound(space: Caps, H: Array, lam: Array, criterion: Criterion) -> LowerBound | None:
    """The best lifted bound with this ``off(H)``, over a common shift of its diagonal and over λ.

    A stationary point whose form is positive semidefinite is certified as it stands; otherwise
    the shift that makes it so is paid for, and the bound is weaker but valid.
    """
    # Into the domain of the conjugate: at an optimum this undoes a rounding.
    h = np.diag(np.diag(H))
    H = h + (H - h) / max(1.0, criteria.gauge(criterion, H, 1.0 - np.eye(space.k)) * (1.0 + 1e-14))
    free = space.floors < 1.0
    floors, sizes = space.floors[free], space.valid[free].sum(axis=1)
    if sizes.sum() > _MAX_FORM:
        return None
    Q, c, constant = quadratic_form(space, H)
    constant -= criteria.conjugate(criterion, H) + float(np.diag(H)[free].sum())
    # In the eigenbasis of Q every shift is a sum: b = Σ_j λ_j e_j1 − c.
    values, vectors = np.linalg.eigh(Q)
    scale = float(np.abs(values).max(initial=1e-8))
    least, base = len(Q) * _EPS * scale, max(0.0, -float(values.min(initial=0.0)))
    first, pushed = vectors[np.cumsum(sizes) - sizes], vectors.T @ c

    def attempt(shift: float) -> tuple[float, Array, float]:
        if values.min(initial=np.inf) + shift <= least:  # not definite, or not provably
            return -np.inf, lam[free], shift
        inverse = 1.0 / (values + shift)
        K = (first * inverse) @ first.T
        best = _best_floor_multipliers(K, floors + first @ (inverse * pushed), floors > 0)
        tried = []
        for option in (lam[free], best):
            quadratic = float(inverse @ (option @ first - pushed) ** 2)
            linear, diagonal = float(2.0 * floors @ option), shift * len(floors)
            # High floors have large multipliers: a small difference of large terms.
            terms = linear + quadratic + diagonal + abs(constant)
            value = linear - quadratic - diagonal + constant - (len(Q) + space.k) * _EPS * terms
            tried.append((value, option, shift))
        return max(tried, key=lambda item: item[0])

    tried = [attempt(base + share * scale) for share in (0.0, 1e-12, 1e-10, 1e-7, 1e-4)]
    if len(Q):
        best_shift = so.minimize_scalar(
            lambda log_shift: -attempt(base + float(np.exp(log_shift)))[0],
            bounds=(np.log(1e-9 * scale), np.log(10.0 * scale)),
            method="bounded",
        ).x
        tried.append(attempt(base + float(np.exp(best_shift))))
    value, option, shift = max(tried, key=lambda item: item[0])
    if value <= 0:
        return None
    multipliers = np.zeros(space.k)
    multipliers[free] = option
    arrays = {
        "H": H + shift * np.eye(space.k),
        "multipliers": multipliers,
        "support": space.mask.astype(np.float64),
    }
    info = {"bound": "lifted", "criterion": criterion}
    return LowerBound(value, "lifted", Certificate("support", arrays, info))


def _best_floor_multipliers(K: Array, f: Array, floored: Mask) -> Array:
    """λ ≥ 0 that maximises ``2 fᵀλ − λᵀKλ``; any λ gives a valid bound."""
    lam = np.zeros(len(f))
    if not floored.any():
        return lam
    values, vectors = np.linalg.eigh(K[np.ix_(floored, floored)])
    root = np.sqrt(np.maximum(values, _EPS * values.max(initial=0.0)))
    with suppress(RuntimeError):  # the active-set method may not converge
        lam[floored] = so.nnls(root[:, None] * vectors.T, (vectors.T @ f[floored]) / root)[0]
    return lam
