"""Dual points as they are handed over: numbers of the right shape, and proofs of definiteness.

A bound holds for any dual point whose multipliers are not negative and whose matrices are positive
definite; the former is looked up, the latter proved in spite of rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from skcoral.bounds.arithmetic import UNIT, WIDER, Arithmetic, Floats
from skcoral.core.arrays import Array
from skcoral.core.solution import SYMMETRIC
from skcoral.exceptions import CertificateError

LARGEST = 1e100  # beyond it products leave the range of floating point
#: The arrays of a dual point whose numbers are multipliers of inequalities.
_NONNEGATIVE = frozenset(("weights", "mean_weights", "multipliers", "eta", "vif_weights"))


def numbers(value: Any, shape: tuple[int, ...], what: str, *, open_ended: bool = False) -> Array:
    """Return an array of finite numbers of this shape; prices may also be infinite or undefined."""
    a = np.asarray(value)
    if a.dtype != np.float64 or a.shape != shape:
        wanted = f"{what} must be floats of shape {shape}, got shape {a.shape}"
        raise CertificateError(f"{wanted} and type {a.dtype}.")
    if not open_ended and not np.isfinite(a).all():
        raise CertificateError(f"{what} holds numbers that are not finite.")
    with np.errstate(invalid="ignore"):
        if np.any(np.abs(a[np.isfinite(a)]) > LARGEST):
            raise CertificateError(f"{what} holds numbers beyond {LARGEST:g}.")
    return a


def part(arrays: Mapping[str, Array], name: str, *shape: int) -> Array:
    """An array of a dual point, not negative or symmetric where its inequality needs that."""
    if name not in arrays:
        raise CertificateError(f"the certificate holds no array {name}.")
    a = numbers(arrays[name], shape, f"`{name}`")
    if name in _NONNEGATIVE and np.any(a < 0):
        raise CertificateError(f"`{name}` holds a negative number ({a.min():.3g}).")
    if name in SYMMETRIC and a.ndim == 2 and not np.array_equal(a, a.T):
        raise CertificateError(f"`{name}` is not symmetric.")
    return a


def multipliers_and_matrix(
    arrays: Mapping[str, Array], names: tuple[str, str], k: int
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Multipliers, the matrix that goes with them, and the outputs that it covers.

    Outputs without a multiplier are left out of the matrix.
    """
    weights = part(arrays, names[0], k)
    on = np.flatnonzero(weights > 0)
    if not len(on):
        raise CertificateError("all weights are zero: they prove nothing.")
    return weights, part(arrays, names[1], len(on), len(on)), on


_LARGE = 400  # from here on a form on a support takes minutes in balls, and undivided factors do
# Shares of its size by which a matrix is shifted until it is proved to be definite: at the optimum
# many are semidefinite, and a computed eigenvalue is off by some 1e-16 per row. A bound loses about
# as many digits as the share has, so the first one that does is taken; beyond 1e-8 nothing is left.
_SHARES = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)


@dataclass(frozen=True)
class Definite:
    """A proof that A is definite: a nonsingular K with ``‖K A Kᵀ - I‖ ≤ doubt < ½``.

    ``A⁻¹ ⪯ KᵀK / (1 - doubt)``; ``factor`` is a Cholesky factor, ``inverse`` is K.
    """

    factor: Array
    inverse: Array
    doubt: float

    def inverse_form(self, z: Array) -> float:
        """Upper bound of ``tr(ZᵀA⁻¹Z)``, but for rounding, from the sizes of the entries of Z."""
        y = np.abs(self.inverse) @ z
        return float(np.sum(y * y)) / (1 - self.doubt)


def definite(arithmetic: Arithmetic, A: Array, radius: Array | None = None) -> Definite | None:
    """Prove that ``A``, known within ``radius``, is positive definite; None where that fails."""
    # Powers of two make the diagonal nearly one without a rounding.
    d = np.ldexp(1.0, -(np.frexp(np.diag(A))[1] // 2))
    scaled = A * np.outer(d, d)
    factor, info = sla.lapack.dpotrf(scaled, lower=1, clean=1)
    if info != 0:
        return None
    K = sla.lapack.dtrtri(factor, lower=1)[0]
    error = arithmetic.enclosed(K, scaled, K.T, minus=np.eye(len(A))).size()
    if radius is not None:
        size = np.abs(K)
        error = error + size @ (radius * np.outer(d, d)) @ size.T
    doubt = float(np.sqrt(np.sum(error * error)) * WIDER)
    if not doubt < 0.5:  # so that what is left of a completed square at most doubles
        return None
    return Definite(factor / d[:, None], K * d[None, :], doubt)


def surely_definite(arithmetic: Arithmetic, A: Array) -> Definite | None:
    """Prove that ``A`` is positive definite; in floats, undivided factors mostly suffice."""
    quick = None if arithmetic.rigorous else definite(Floats(1), A)
    return quick or definite(arithmetic, A)


def definite_form(arithmetic: Arithmetic, A: Array) -> Definite | None:
    """Prove that ``A`` is definite, each entry of which was rounded twice."""
    return definite(Floats(1) if len(A) > _LARGE else arithmetic, A, 2 * UNIT * np.abs(A))


def least_shift(prove: Callable[[float], Any], unit: float, problem: str) -> tuple[float, Any]:
    """The first of some small shares of ``unit`` for which there is a proof, and that proof."""
    for share in _SHARES:
        proof = prove(share * unit)
        if proof is not None:
            return share * unit, proof
    raise CertificateError(problem)


def check_definite(arithmetic: Arithmetic, R: Array, *, slack: float = 0.0) -> None:
    """Refuse a correlation matrix that is not proved to have eigenvalues above ``-slack``.

    The completed squares hold for no other: a transformation can be arbitrarily large along an
    eigenvector whose eigenvalue is not positive.
    """
    if surely_definite(arithmetic, R + slack * np.eye(len(R))) is None:
        least = float(np.linalg.eigvalsh(R)[0])
        raise CertificateError(
            f"R is singular, or so nearly that its rank is not certain (an eigenvalue of about "
            f"{least:.1e}), and the result is about a matrix of full rank."
        )
