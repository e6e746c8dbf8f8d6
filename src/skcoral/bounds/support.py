"""Lower bounds for transformations with a prescribed support.

Column j of T lives on Ω_j, its anchor x_j too (:mod:`skcoral.bounds.columns`), and ρ_j is the floor
of ``x_jᵀR t_j``. Three inequalities bound the residual of k such columns from below:

* frame: for any symmetric Q and η ≥ 0, with P = RQR, ``r_j = R x_j`` and θ_j such that
  ``P_Ω - η_j r_j r_jᵀ - θ_j R_Ω ⪰ 0`` on Ω_j,

      D2 ≥ Σ_j (θ_j + η_j ρ_j²) - tr(QR) - ½ tr(QRQR) - (p - k)/2,

  and half the linear part less ``p - k`` bounds the absolute sum if also ``-R ⪯ P ⪯ R``;
* lifted: the inequality of the trade-off with ``H ⊗ R`` restricted to the support;
* moments: sums of squares, see :mod:`skcoral.bounds.moments`.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from skcoral.bounds.arithmetic import UNIT, Arithmetic, Enclosure, Floats, exactly, up_to
from skcoral.bounds.columns import Column, Proved, proved_columns
from skcoral.bounds.dual import definite, definite_form, least_shift, part
from skcoral.bounds.frame import from_squares
from skcoral.bounds.moments import moment_bound
from skcoral.bounds.tradeoff import along, at_point, conjugate
from skcoral.core.arrays import Array
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError


def support_bound(
    certificate: Certificate,
    rho_min: Array,
    R: Array,
    arithmetic: Arithmetic,
    anchors: Array | None = None,
) -> Enclosure:
    """Return the lower bound that a certificate proves for every T with its support."""
    support = certificate.arrays["support"]
    proved = proved_columns(support, rho_min, R, anchors, arithmetic)
    inequality = {"moments": moment_bound, "lifted": _lifted, "frame": _frame}[
        certificate.info["bound"]
    ]
    value: Enclosure = inequality(certificate, proved, R, arithmetic)
    # No criterion changes by more than this if fixed columns move that far.
    apart = 4.0 * len(proved.columns) * proved.apart
    return value - up_to(apart)


def proved_bound(
    R: Array, rho_min: Array, certificate: Certificate, anchors: Array | None = None
) -> float:
    """The lower bound that a dual point proves, from R and its arrays alone."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = support_bound(certificate, rho_min, R, Floats(parts=2), anchors)
    return max(float(bound.lower), 0.0)


def _frame(certificate: Certificate, proved: Proved, R: Array, arithmetic: Arithmetic) -> Enclosure:
    """The bound of a frame operator."""
    arrays, p, k = certificate.arrays, len(R), len(proved.columns)
    criterion, norm = certificate.info["criterion"], certificate.info["norm"]
    if norm not in ("frobenius", "nuclear") or (norm == "nuclear" and criterion != "absolute"):
        raise CertificateError(f"the norm {norm!r} says nothing about {criterion!r}.")
    Q, eta = part(arrays, "Q", p, p), part(arrays, "eta", k)
    linear = -arithmetic.enclosed(Q, R).diagonal().total()
    for j, one in enumerate(proved.columns):
        linear += _column(one, proved.floors[j], Q, float(eta[j]), R, arithmetic)
    # k outputs leave p - k eigenvalues of the frame operator at zero, each one away from one.
    if norm == "nuclear":
        return (linear / _spectral_size(Q, R, arithmetic) - float(p - k)) * 0.5
    squares = arithmetic.enclosed(Q, R, Q, R).diagonal().total()
    value = linear - squares * 0.5 - 0.5 * (p - k)
    return from_squares(criterion, value, max(k * (k - 1) / 2, 1.0))


def _column(
    one: Column, floor: Enclosure, Q: Array, eta: float, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """``θ + η ρ²``, with ``θ + η`` proved in coordinates that make R_Ω unity.

    The first axis is the anchor x itself, and ``r rᵀ / xᵀRx`` becomes ``e₁e₁ᵀ`` but for a doubt
    that leaves the first row of ``R_Ω - r rᵀ / xᵀRx`` exactly zero: a large η does no harm.
    """
    omega, K = one.sources, one.K
    lack = arithmetic.enclosed(K, R[np.ix_(omega, omega)], K.T, minus=np.eye(len(K)))
    unity = lack.size()
    form = arithmetic.enclosed(K, R[omega], Q, R[:, omega], K.T)
    middle, spread = form.spread(symmetric=True)
    beside = np.ones(len(K))
    beside[0] = 0.0
    size = 2 * float(np.abs(np.linalg.eigvalsh(middle)).max()) or 1.0
    full = middle + np.diag(eta * beside)
    half = np.linalg.inv(np.linalg.cholesky(full + size * np.eye(len(K))))
    guess = 1 / float(np.linalg.eigvalsh(half @ half.T)[-1]) - size
    # what is not known of the form: P, and R_Ω beside the anchor, whose row is exact
    apart = spread + 2 * eta * np.outer(unity[0] * beside, unity[0] * beside)
    apart += 2 * eta * unity * np.outer(beside, beside)
    # less that, and the roundings of a proof, so that the first trial passes as a rule
    off = float((apart + unity * abs(guess)).sum(axis=1).max())
    guess -= 2 * len(K) * (off + 16 * UNIT * (size + abs(guess)))

    def prove(shift: float) -> float | None:
        theta = guess - shift
        A = full - theta * np.eye(len(K))
        radius = apart + unity * abs(theta) + 6 * UNIT * (np.abs(A) + np.abs(middle) + abs(theta))
        return None if definite(arithmetic, A, radius) is None else theta

    _, theta = least_shift(prove, size + abs(guess), "a column of the frame is not definite.")
    # 1 - ρ² / xᵀRx, without the rounding of ρ² where it is next to one
    below = (exactly(1.0) - floor) * (exactly(1.0) + floor) + lack[0, 0]
    value: Enclosure = exactly(theta) - below / (lack[0, 0] + 1.0) * eta
    return value


def _spectral_size(Q: Array, R: Array, arithmetic: Arithmetic) -> Enclosure:
    """A number α ≥ 1 with ``-α R ⪯ RQR ⪯ α R``."""
    P, spread = arithmetic.enclosed(R, Q, R).spread(symmetric=True)
    size = float(np.abs(sla.eigh(P, R, eigvals_only=True)).max())

    def prove(shift: float) -> float | None:
        bound = size + shift
        radius = spread + 2 * UNIT * (np.abs(P) + bound * np.abs(R))
        sides = (bound * R + sign * P for sign in (1.0, -1.0))
        return bound if all(definite(arithmetic, A, radius) is not None for A in sides) else None

    _, bound = least_shift(prove, 1.0 + size, "the size of `Q` cannot be proved.")
    return exactly(bound).at_least(1.0)


def _lifted(
    certificate: Certificate, proved: Proved, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """The bound of the trade-off with ``H ⊗ R`` on the support; fixed columns are constants."""
    arrays, k = certificate.arrays, len(proved.columns)
    H, lam = part(arrays, "H", k, k), part(arrays, "multipliers", k)
    penalty, outside = conjugate(certificate.info["criterion"], H, np.ones((k, k)))
    X, free = np.zeros((len(R), k)), np.zeros((len(R), k), dtype=np.bool_)
    for j, one in enumerate(proved.columns):
        X[one.sources, j] = one.anchor
        free[one.sources, j] = not one.fixed
    lam = np.where(free.any(axis=0), lam, 0.0)
    pull = X * lam
    target = R @ pull
    V, shifted, rest = np.where(free.any(axis=0), 0.0, X), H, 0.0
    at, rows = np.nonzero(free.T)
    if len(rows):
        # (H ⊗ R) on the free coefficients, with the proof that it is definite.
        among, diagonal = R[np.ix_(rows, rows)], np.diag(np.abs(np.diag(H)))
        shift, proof = least_shift(
            lambda s: definite_form(arithmetic, among * (H + s * diagonal)[np.ix_(at, at)]),
            1.0,
            "H is not positive definite on the support: it proves nothing.",
        )
        shifted = H + shift * diagonal
        for _ in range(2):  # the square is completed at V, where R V H = R X D_λ nearly
            left = arithmetic.enclosed(R, V, shifted, minus=target)
            V[rows, at] -= sla.cho_solve((proof.factor, True), left.middle[rows, at])
        left = arithmetic.enclosed(R, V, shifted, minus=target)
        # what the products λ_j x_j and R(λ_j x_j) were rounded by
        z = left.size() + arithmetic.enclosed(R, pull, minus=target).size()
        rest = proof.inverse_form((z + np.abs(R) @ np.spacing(np.abs(pull)))[rows, at])
    image = arithmetic.product(R, V)
    gram = arithmetic.enclosure(arithmetic.product(V.T, image), np.eye(k))
    short = proved.floors - along(arithmetic, X, image)
    value: Enclosure = at_point(lam, short, shifted, gram) - up_to(rest) - penalty
    return (value / outside).at_least(0.0)
