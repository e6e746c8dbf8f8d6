"""Lower bounds for transformations with a prescribed support.

Column j of T lives on Ω_j, its anchor x_j too (:mod:`skcoral.bounds.columns`), and ρ_j is the floor
of ``x_jᵀR t_j``. Three inequalities bound the residual of k such columns from below:

* frame: for any symmetric P and η ≥ 0, with θ_j such that ``P_Ω - η_j r_j r_jᵀ - θ_j R_Ω ⪰ 0`` on
  Ω_j (``r_j = R x_j``),

      D2 ≥ Σ_j (θ_j + η_j ρ_j²) - tr(R⁻¹P) - ½ tr(R⁻¹PR⁻¹P) - (p - k)/2,

  and half the linear part less ``p - k`` bounds the absolute sum if also ``-R ⪯ P ⪯ R``; P is taken
  as ``L M Lᵀ`` with float matrices M and L, ``R ≈ L Lᵀ``;
* lifted: the inequality of the trade-off with ``H ⊗ R`` restricted to the support;
* moments: sums of squares, see :mod:`skcoral.bounds.moments`.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from skcoral.bounds.arithmetic import UNIT, Arithmetic, Enclosure, Floats, around, exactly, up_to
from skcoral.bounds.columns import Proved, proved_columns
from skcoral.bounds.dual import (
    Proof,
    definite,
    definite_of_any_size,
    first_definite,
    numbers,
)
from skcoral.bounds.moments import MomentDual, Spheres, moment_bound, unpacked
from skcoral.bounds.tradeoff import along, conjugate
from skcoral.core.arrays import Array
from skcoral.core.solution import Certificate
from skcoral.exceptions import CertificateError

_MARGINS = (1e-13, 1e-12, 1e-10, 1e-8)
_SHIFTS = (0.0, 1e-14, 1e-12, 1e-10)


def support_bound(
    certificate: Certificate,
    rho_min: Array,
    R: Array,
    arithmetic: Arithmetic,
    anchors: Array | None = None,
) -> Enclosure:
    """Return the lower bound that a certificate proves for every T with its support."""
    bound = _Bound(certificate, rho_min, R, anchors, arithmetic)
    kinds = {"moments": bound.moments, "lifted": bound.lifted}
    value: Enclosure = kinds.get(certificate.info["bound"], bound.frame)()
    # No criterion changes by more than this if fixed columns move that far.
    apart = 4.0 * bound.k * sum(one.apart for one in bound.columns)
    return value - up_to(apart) if apart > 0 else value


def proved_bound(
    R: Array, rho_min: Array, certificate: Certificate, anchors: Array | None = None
) -> float:
    """The lower bound that a dual point proves, from R and its arrays alone."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = support_bound(certificate, rho_min, R, Floats(parts=2), anchors)
    return max(float(bound.lower), 0.0)


class _Bound:
    """The inequality of a certificate, on the columns of its support."""

    def __init__(
        self,
        certificate: Certificate,
        rho_min: Array,
        R: Array,
        anchors: Array | None,
        arithmetic: Arithmetic,
    ) -> None:
        self.R, self.arithmetic, self.arrays = R, arithmetic, certificate.arrays
        self.criterion, self.norm = certificate.info["criterion"], certificate.info.get("norm")
        self.columns = proved_columns(
            certificate.arrays["support"], rho_min, R, anchors, arithmetic
        )
        self.k = len(self.columns)

    def frame(self) -> Enclosure:
        """The bound of a frame operator P."""
        R, p, k, arrays, criterion = self.R, len(self.R), self.k, self.arrays, self.criterion
        arithmetic = self.arithmetic
        P = numbers(arrays["P"], (p, p), "`P`", symmetric=True)
        eta = numbers(arrays["eta"], (k,), "`eta`", nonnegative=True)
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
        for one, slope in zip(self.columns, eta, strict=True):
            linear += self._column(one, L, M, float(slope))
        # k outputs leave p - k eigenvalues of the frame operator at zero, each one away from one.
        if norm == "nuclear":
            return (linear / _spectral_size(M, doubt, arithmetic) - float(p - k)) * 0.5
        value = linear - squares * 0.5 - 0.5 * (p - k)
        return from_squares(criterion, value, max(k * (k - 1) / 2, 1.0))

    def _column(self, one: Proved, L: Array, M: Array, eta: float) -> Enclosure:
        """``θ + η ρ²``, with ``θ + η`` proved in coordinates that make R_Ω unity.

        The first axis is the anchor x itself, and ``r rᵀ / xᵀRx`` becomes ``e₁e₁ᵀ`` but for a doubt
        that leaves the first row of ``R_Ω - r rᵀ / xᵀRx`` exactly zero: a large η does no harm.
        """
        R, arithmetic, omega, K = self.R, self.arithmetic, one.column.sources, one.column.K
        rows, inside = L[omega], R[np.ix_(omega, omega)]
        lack = arithmetic.enclosed(K, inside, K.T, minus=np.eye(len(K)))
        unity = lack.size()
        form = arithmetic.enclosed(K, rows, M, rows.T, K.T)
        middle = 0.5 * (form.middle + form.middle.T)
        spread = np.maximum(form.upper - middle, middle - form.lower)
        beside = np.ones(len(K))
        beside[0] = 0.0
        size = 2 * float(np.abs(np.linalg.eigvalsh(middle)).max()) or 1.0
        whole = middle + np.diag(eta * beside)
        half = np.linalg.inv(np.linalg.cholesky(whole + size * np.eye(len(K))))
        guess = 1 / float(np.linalg.eigvalsh(half @ half.T)[-1]) - size
        guess -= 2 * float(spread.sum(axis=1).max())
        for margin in _MARGINS:
            theta = guess - margin * (size + abs(guess))
            A = whole - theta * np.eye(len(K))
            doubt = unity * (abs(theta) + 2 * eta * np.outer(beside, beside))
            doubt += 2 * eta * np.outer(unity[0] * beside, unity[0] * beside)
            radius = spread + doubt + 6 * UNIT * (np.abs(A) + np.abs(middle) + abs(theta))
            if definite(arithmetic, A, radius) is not None:
                # 1 - ρ² / xᵀRx, without the rounding of ρ² where it is next to one
                below = (exactly(1.0) - one.floor) * (exactly(1.0) + one.floor) + lack[0, 0]
                proved: Enclosure = exactly(theta) - below / (lack[0, 0] + 1.0) * eta
                return proved
        raise CertificateError("the certificate proves nothing about a column: it is not definite.")

    def moments(self) -> Enclosure:
        """The bound of sums of squares; its weights select the worst pair."""
        k, arrays = self.k, self.arrays
        space = Spheres(
            tuple(one.column for one in self.columns),
            np.array([float(one.floor.lower) for one in self.columns]),
        )
        n, (pairs, floors) = int(space.offsets[-1]), space.block_sizes
        dual = MomentDual(
            numbers(arrays["S"], (n, n), "`S`", symmetric=True),
            numbers(arrays["weights"], (k, k), "`weights`", symmetric=True, nonnegative=True),
            unpacked(numbers(arrays["pairs"], np.shape(arrays["pairs"]), "`pairs`"), pairs),
            unpacked(numbers(arrays["floors"], np.shape(arrays["floors"]), "`floors`"), floors),
        )
        above = dual.weights[np.triu_indices(k, 1)]
        if self.criterion != "worst" and np.any(above != 1.0):
            raise CertificateError("the weights of a sum over pairs are one.")
        value = moment_bound(space, self.R, dual, self.arithmetic)
        return from_squares(self.criterion, value, exactly(above).total())

    def lifted(self) -> Enclosure:
        """The bound of the trade-off with ``H ⊗ R`` on the support; fixed columns are constants."""
        R, k, arrays, arithmetic = self.R, self.k, self.arrays, self.arithmetic
        H = numbers(arrays["H"], (k, k), "`H`", symmetric=True)
        lam = numbers(arrays["multipliers"], (k,), "`multipliers`", nonnegative=True)
        penalty, outside = conjugate(self.criterion, H, np.ones((k, k)))
        X, free = np.zeros((len(R), k)), np.zeros((len(R), k), dtype=np.bool_)
        for j, one in enumerate(self.columns):
            X[one.column.sources, j] = one.column.anchor
            free[one.column.sources, j] = len(one.column.K) > 1
        lam = np.where(free.any(axis=0), lam, 0.0)
        columns, rows = np.nonzero(free.T)
        among = R[np.ix_(rows, rows)]
        pull = X * lam
        target = R @ pull
        shifted, proof = H, None
        V = np.where(free.any(axis=0), 0.0, X)
        if len(rows):
            trials = (H + np.diag(shift * np.abs(np.diag(H))) for shift in _SHIFTS)
            forms = ((trial, among * trial[np.ix_(columns, columns)]) for trial in trials)
            (shifted, Q), proof = first_definite(
                ((form, _definite_form(form[1], arithmetic)) for form in forms),
                "H is not positive definite on the support: it proves nothing.",
            )
            factor = sla.cho_factor(Q, lower=True, check_finite=False)
            for _ in range(2):
                left = arithmetic.enclosed(R, V, shifted, minus=target)
                V[rows, columns] -= sla.cho_solve(factor, left.middle[rows, columns])
        image = arithmetic.product(R, V)
        gram = arithmetic.enclosure(arithmetic.apply(V.T, image), np.eye(k))
        left = arithmetic.enclosed(R, V, shifted, minus=target)
        # what the products λ_j x_j and R(λ_j x_j) were rounded by
        z = left.size() + arithmetic.enclosed(R, pull, minus=target).size()
        z = (z + np.abs(R) @ np.spacing(np.abs(pull)))[rows, columns]
        rest = 0.0 if proof is None else proof.inverse_form(z)
        low, high = (
            np.array([float(getattr(one.floor, end)) for one in self.columns])
            for end in ("lower", "upper")
        )
        short = Enclosure(low, high) - along(arithmetic, X, image)
        value: Enclosure = (short * (2.0 * lam)).total() + (gram * shifted).total()
        return ((value - up_to(rest) - penalty) / outside).at_least(0.0)


def from_squares(criterion: str, squares: Enclosure, total: Enclosure | float) -> Enclosure:
    """What a bound of ``Σ ω r²`` says about the criterion, where the weights ω sum to ``total``.

    The largest square is no less than their mean, and a sum of |r| ≤ 1 is at least that of their
    squares and at least the root of it.
    """
    if criterion == "squared":
        return squares
    squares = squares.at_least(0.0)
    if criterion == "worst":
        return (squares / total).sqrt() if float(exactly(total).lower) > 0 else exactly(0.0)
    return squares if float(squares.lower) >= 1.0 else squares.sqrt()


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
