"""Lower bounds for transformations with a prescribed support.

Column k of T lives on Ω_k. Three inequalities bound the residual of every such T from below:

* frame: for any symmetric P and η ≥ 0, with θ_k such that ``P_Ω - η_k r_k r_kᵀ - θ_k R_Ω ⪰ 0`` on
  Ω_k (``r_k = R e_k``),

      D2 ≥ Σ_k (θ_k + η_k ρ_k²) - tr(R⁻¹P) - ½ tr(R⁻¹PR⁻¹P),

  and half the linear part bounds the absolute sum if also ``-R ⪯ P ⪯ R``; P is taken as ``L M Lᵀ``
  with float matrices M and L, ``R ≈ L Lᵀ``;
* lifted: the inequality of the trade-off with ``H ⊗ R`` restricted to the support;
* moments: sums of squares, see :mod:`skcoral.bounds.moments`.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.bounds.arithmetic import Arithmetic
from skcoral.bounds.definiteness import (
    Proof,
    definite,
    definite_of_any_size,
    first_definite,
)
from skcoral.bounds.dual import numbers
from skcoral.bounds.enclosures import UNIT, Enclosure, around, exactly, up_to
from skcoral.bounds.moments import MomentDual, moment_bound, spheres, unpacked
from skcoral.bounds.tradeoff import conjugate
from skcoral.core.arrays import Array
from skcoral.core.results import Certificate
from skcoral.exceptions import CertificateError

Mask = NDArray[np.bool_]

_MARGINS = (1e-13, 1e-12, 1e-10, 1e-8)
_SHIFTS = (0.0, 1e-14, 1e-12, 1e-10)


def support_bound(
    certificate: Certificate, rho_min: Array, R: Array, arithmetic: Arithmetic
) -> Enclosure:
    """Return the lower bound that a certificate proves for every T with its support."""
    bound = _Bound(certificate, rho_min, R, arithmetic)
    if certificate.info["bound"] == "moments":
        return bound.moments()
    return bound.lifted() if certificate.info["bound"] == "lifted" else bound.frame()


def columns_of(certificate: Certificate, rho_min: Array, p: int) -> tuple[Mask, Array]:
    """What each column may consist of, and its floor.

    A floor of one leaves the source alone, and a source alone has a fidelity of one.
    """
    given = numbers(certificate.arrays["support"], (p, p), "`support`")
    if not np.isin(given, (0.0, 1.0)).all() or not np.diag(given).all():
        raise CertificateError("a support consists of zeros and ones, with ones on the diagonal.")
    mask = np.where(rho_min >= 1, np.eye(p), given) > 0
    return mask, np.where(mask.sum(axis=0) == 1, 1.0, rho_min)


class _Bound:
    """The inequality of a certificate, on the columns of its support."""

    def __init__(
        self, certificate: Certificate, rho_min: Array, R: Array, arithmetic: Arithmetic
    ) -> None:
        self.R, self.arithmetic, self.arrays = R, arithmetic, certificate.arrays
        self.criterion, self.norm = certificate.info["criterion"], certificate.info.get("norm")
        self.mask, self.floors = columns_of(certificate, rho_min, len(R))

    def frame(self) -> Enclosure:
        """The bound of a frame operator P."""
        R, p, arrays, criterion = self.R, len(self.R), self.arrays, self.criterion
        arithmetic = self.arithmetic
        P = numbers(arrays["P"], (p, p), "`P`", symmetric=True)
        eta = numbers(arrays["eta"], (p,), "`eta`", nonnegative=True)
        norm = self.norm
        if norm not in ("frobenius", "nuclear") or (norm == "nuclear" and criterion != "absolute"):
            raise CertificateError(f"the norm {norm!r} says nothing about {criterion!r}.")
        L: Array = np.linalg.cholesky(R).astype(np.float64)
        half = sla.solve_triangular(L, P, lower=True)
        M = sla.solve_triangular(L, half.T, lower=True)
        M = 0.5 * (M + M.T)
        E, doubt, unknown = _factor_error(L, R, arithmetic)
        # With R = L(I + E)Lᵀ, tr(R⁻¹P) is tr M - tr(EM) and tr(R⁻¹PR⁻¹P) is tr M² - 2 tr(EM²), but
        # for squares of E.
        second = unknown + 4 * doubt**2
        trace_size = float(np.abs(np.linalg.eigvalsh(M)).sum())
        square_size = float(np.sum(M * M))
        traces = exactly(np.diag(M)).total() - around(np.sum(E * M), second * trace_size)
        squares = exactly(M).square().total()
        squares = squares - around(2 * np.sum(E * (M @ M)), 4 * second * square_size)
        linear = -traces
        for k in range(p):
            linear += self._column(k, L, M, float(eta[k]))
        if norm == "nuclear":
            return linear * 0.5 / _spectral_size(M, doubt, arithmetic)
        value = linear - squares * 0.5
        if criterion == "squared":
            return value
        value = value.at_least(0.0)
        if criterion == "worst":
            value = value / max(p * (p - 1) / 2, 1.0)
        return value.sqrt()

    def _column(self, k: int, L: Array, M: Array, eta: float) -> Enclosure:
        """``θ_k + η_k ρ_k²``, with ``θ_k + η_k`` proved in coordinates that make R_Ω unity.

        The first axis is the source itself, and ``r_k r_kᵀ`` becomes ``e₁e₁ᵀ`` but for a doubt
        that leaves the first row of ``R_Ω - r_k r_kᵀ`` exactly zero: a large η_k does no harm.
        """
        R, arithmetic, floor = self.R, self.arithmetic, self.floors[k]
        omega = np.flatnonzero(self.mask[:, k])
        omega = np.concatenate(([k], omega[omega != k]))
        rows, inside = L[omega], R[np.ix_(omega, omega)]
        K = sla.lapack.dtrtri(np.linalg.cholesky(inside), lower=1)[0]
        unity = arithmetic.enclosed(K, inside, K.T, minus=np.eye(len(omega))).size()
        form = arithmetic.enclosed(K, rows, M, rows.T, K.T)
        middle = 0.5 * (form.middle + form.middle.T)
        spread = np.maximum(form.upper - middle, middle - form.lower)
        beside = np.ones(len(omega))
        beside[0] = 0.0
        size = 2 * float(np.abs(np.linalg.eigvalsh(middle)).max()) or 1.0
        whole = middle + np.diag(eta * beside)
        half = np.linalg.inv(np.linalg.cholesky(whole + size * np.eye(len(omega))))
        guess = 1 / float(np.linalg.eigvalsh(half @ half.T)[-1]) - size
        guess -= 2 * float(spread.sum(axis=1).max())
        for margin in _MARGINS:
            theta = guess - margin * (size + abs(guess))
            A = whole - theta * np.eye(len(omega))
            doubt = unity * (abs(theta) + 2 * eta * np.outer(beside, beside))
            radius = spread + doubt + 6 * UNIT * (np.abs(A) + np.abs(middle) + abs(theta))
            if definite(arithmetic, A, radius) is not None:
                below = (exactly(1.0) - floor) * (exactly(1.0) + floor)
                proved: Enclosure = exactly(theta) - below * eta
                return proved
        raise CertificateError("the certificate proves nothing about a column: it is not definite.")

    def moments(self) -> Enclosure:
        """The bound of sums of squares; its weights select the worst pair."""
        p, arrays, space = len(self.R), self.arrays, spheres(self.mask, self.floors)
        n, (pairs, floors) = int(space.offsets[-1]), space.block_sizes
        dual = MomentDual(
            numbers(arrays["S"], (n, n), "`S`", symmetric=True),
            numbers(arrays["weights"], (p, p), "`weights`", symmetric=True, nonnegative=True),
            unpacked(numbers(arrays["pairs"], np.shape(arrays["pairs"]), "`pairs`"), pairs),
            unpacked(numbers(arrays["floors"], np.shape(arrays["floors"]), "`floors`"), floors),
        )
        above = dual.weights[np.triu_indices(p, 1)]
        if self.criterion != "worst" and np.any(above != 1.0):
            raise CertificateError("the weights of a sum over pairs are one.")
        value = moment_bound(space, self.R, dual, self.arithmetic)
        if self.criterion == "squared":
            return value
        if self.criterion == "worst":  # the largest square is no less than a mean of squares
            total = exactly(above).total()
            return (value / total).sqrt() if float(total.lower) > 0 else exactly(0.0)
        # A sum of |r| ≤ 1 is at least that of their squares, and at least the root of it.
        return value if float(value.lower) >= 1.0 else value.sqrt()

    def lifted(self) -> Enclosure:
        """The bound of the trade-off with ``H ⊗ R`` on the support."""
        R, p, arrays, criterion = self.R, len(self.R), self.arrays, self.criterion
        arithmetic, mask = self.arithmetic, self.mask
        H = numbers(arrays["H"], (p, p), "`H`", symmetric=True)
        lam = numbers(arrays["multipliers"], (p,), "`multipliers`", nonnegative=True)
        penalty, outside = conjugate(criterion, H, np.ones((p, p)))
        columns, rows = np.nonzero(mask.T)
        among = R[np.ix_(rows, rows)]
        target = R * lam
        trials = (H + np.diag(shift * np.abs(np.diag(H))) for shift in _SHIFTS)
        forms = ((trial, among * trial[np.ix_(columns, columns)]) for trial in trials)
        (shifted, Q), proof = first_definite(
            ((form, _definite_form(form[1], arithmetic)) for form in forms),
            "H is not positive definite on the support: it proves nothing.",
        )
        V = np.zeros((p, p))
        factor = sla.cho_factor(Q, lower=True, check_finite=False)
        V[rows, columns] = sla.cho_solve(factor, target[rows, columns])
        left = arithmetic.enclosed(R, V, shifted, minus=target)
        V[rows, columns] -= sla.cho_solve(factor, left.middle[rows, columns])
        image = arithmetic.product(R, V)
        gram = arithmetic.enclosure(arithmetic.apply(V.T, image), np.eye(p))
        left = arithmetic.enclosed(R, V, shifted, minus=target)
        z = (left.size() + np.spacing(np.abs(target)))[rows, columns]
        rest = proof.inverse_form(z)
        fidelity = arithmetic.enclosure(image).diagonal()
        value: Enclosure = ((exactly(self.floors) - fidelity) * (2.0 * lam)).total()
        value = value + (gram * shifted).total()
        return ((value - up_to(rest) - penalty) / outside).at_least(0.0)


def _factor_error(L: Array, R: Array, arithmetic: Arithmetic) -> tuple[Array, float, float]:
    """``E = L⁻¹ R L⁻ᵀ - I``: an approximation, a bound of its norm, and one of the error."""
    K = sla.lapack.dtrtri(L, lower=1)[0]
    lack = arithmetic.enclosed(L, L.T, minus=R)
    E = -K @ lack.middle @ K.T
    sizes = np.abs(K) @ lack.size() @ np.abs(K).T
    apart = arithmetic.enclosed(K, L, minus=np.eye(len(R))).size()
    off = float(np.sqrt(np.sum(apart * apart)))  # how far K is from L⁻¹
    norm = float(np.sqrt(np.sum(sizes * sizes)))
    if not (off < 0.1 and norm < 0.1):
        raise CertificateError("R is too nearly singular to prove a bound for this support.")
    return 0.5 * (E + E.T), norm / (1 - off) ** 2, norm * (3 * off + 1e-12)


def _spectral_size(M: Array, doubt: float, arithmetic: Arithmetic) -> Enclosure:
    """A number α ≥ 1 with ``-α R ⪯ P ⪯ α R``."""
    size = float(np.abs(np.linalg.eigvalsh(M)).max())
    for margin in _MARGINS:
        bound = size * (1 + margin) + margin
        radius = 2 * UNIT * (np.abs(M) + bound * np.eye(len(M)))
        sides = (bound * np.eye(len(M)) + sign * M for sign in (1.0, -1.0))
        if all(definite(arithmetic, A, radius) is not None for A in sides):
            return (exactly(bound) / (exactly(1.0) - doubt)).at_least(1.0)
    raise CertificateError("the size of `P` cannot be proved.")


def _definite_form(Q: Array, arithmetic: Arithmetic) -> Proof | None:
    """Prove ``Q ≻ 0``, where each entry of ``Q`` was rounded once."""
    return definite_of_any_size(arithmetic, Q, 2 * UNIT * np.abs(Q))
