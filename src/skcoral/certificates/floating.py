"""Re-check a result in floating point, from its definition and its certificate.

Nothing of a solver enters: the attained side is computed from ``T`` and ``R``, the bound from the
inequality that the certificate's arrays plug into,

* threshold: ``ρ★ ≤ [tr(S⁻¹ D R D) + tr S] / (2 Σλ)`` for any λ ≥ 0 and S ≻ 0;
* best exact decorrelator: ``Σ f_j ≤ [tr(S⁻¹ D R D) + tr S] / 2 - Σ (d_j - 1) ρ_j`` for any d ≥ 1;
* trade-off: ``φ ≥ 2ρᵀλ - tr H - φ*(off H) - tr(D R D H⁻¹)`` for any λ ≥ 0 and H ≻ 0;
* support: the same with the frame or lifted relaxation.

None of them needs a square root of ``R``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral._linalg import gram_defect
from skcoral._validation import check_correlation, frame_names
from skcoral.exact.maxmean import mean_excess
from skcoral.exact.minmax import fidelity_allowance
from skcoral.exact.weighted import trace_bound_at
from skcoral.exceptions import CertificateError
from skcoral.measures import fidelity, residual, residual_by
from skcoral.results import Certificate, Decorrelation, Threshold
from skcoral.support import certified_bound
from skcoral.tradeoff import dual_bound

Array = NDArray[np.float64]

UNIT_VARIANCE_TOL = 1e-10
FLOOR_TOL = 1e-9
EXACT_TOL = 1e-8
FIDELITY_GAP = 1e-8
OPTIMAL_GAP = 1e-7


@dataclass(frozen=True)
class Check:
    """What a re-check found.

    Attributes
    ----------
    passed : bool
        Whether every claim of the result holds.
    lower, upper : float
        The two numbers, computed again: for a threshold ``lower ≤ ρ★ ≤ upper``; for a
        decorrelation ``lower ≤ least possible residual ≤ upper``, ``upper`` being the residual
        that ``T`` really leaves.
    problems : tuple of str
        What does not hold, in words; empty if ``passed``.
    rigorous : bool
        Whether the numbers come from ball arithmetic and are proved, or from floating point.
    """

    passed: bool
    lower: float
    upper: float
    problems: tuple[str, ...]
    rigorous: bool = False

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        kind = "proved" if self.rigorous else "re-checked"
        verdict = "passed" if self.passed else "FAILED: " + "; ".join(self.problems)
        return f"Check({self.lower:.9g} to {self.upper:.9g}, gap {self.gap:.1e}, {kind}, {verdict})"


def check(result: Threshold | Decorrelation, R: Any) -> Check:
    """Compute both sides of a result's claim again.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed.
    R : array-like of shape (p, p)
        The correlation matrix that it is claimed of.

    Returns
    -------
    Check

    Raises
    ------
    CertificateError
        The certificate does not fit the matrix (wrong size, negative multipliers, S or H not
        positive definite).

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.certificates import check
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> check(threshold(R), R).passed
    True
    """
    matrix = claimed_matrix(result, R)
    if isinstance(result, Threshold):
        require_size(result.T, len(matrix), len(matrix))
        return _check_threshold(result, matrix)
    anchors = result.anchors
    require_size(result.T, len(matrix), len(result.fidelity))
    if anchors is not None:
        require_size(anchors, len(matrix), len(result.fidelity))
    return _check_decorrelation(result, matrix)


def claimed_matrix(result: Any, R: Any) -> Array:
    """Return ``R`` as an array; refuse what carries no certificate, and variables out of order."""
    if not isinstance(result, Threshold | Decorrelation):
        raise CertificateError(
            "a certificate comes with a Threshold or a Decorrelation, got "
            f"{type(result).__name__}; of a fitted CORAL, use result_ or threshold_ with "
            "correlation_."
        )
    matrix, names = check_correlation(R), frame_names(R)
    if names and names != list(result.names) and sorted(names) == sorted(result.names):
        raise CertificateError(
            "the variables of R are in another order than those of the result: use "
            "R.loc[list(result.names), list(result.names)]."
        )
    return matrix


def require_size(T: Array, rows: int, columns: int) -> None:
    """Refuse a matrix that does not belong to the problem."""
    if T.shape != (rows, columns):
        raise CertificateError(
            f"the result is for a {T.shape[0]} by {T.shape[1]} transformation, the matrix asks for "
            f"{rows} by {columns}."
        )


def dual_arrays(certificate: Certificate, p: int) -> tuple[Array, Array]:
    """Multipliers and matrix of a certificate, checked for sign and size."""
    tradeoff = certificate.kind == "tradeoff"
    wanted = ("multipliers", "H") if tradeoff else ("weights", "S")
    missing = [name for name in wanted if name not in certificate.arrays]
    if missing:
        raise CertificateError(f"the certificate holds no array {' and '.join(missing)}.")
    weights, matrix = (certificate.arrays[name] for name in wanted)
    if not (np.isfinite(weights).all() and np.isfinite(matrix).all()):
        raise CertificateError("the certificate holds numbers that are not finite.")
    if np.any(weights < 0):
        raise CertificateError(f"a weight is negative ({weights.min():.3g}): it proves nothing.")
    size = p if tradeoff else int(np.sum(weights > 0))
    if weights.shape != (p,) or matrix.shape != (size, size):
        raise CertificateError(
            f"the certificate holds weights of shape {weights.shape} and a matrix of shape "
            f"{matrix.shape}; {p} variables need ({p},) and ({size}, {size})."
        )
    if not size:
        raise CertificateError("all weights are zero: they prove nothing.")
    return weights, matrix


def composites(result: Decorrelation, R: Array) -> tuple[Array, Array]:
    """The composites that the outputs are anchored to (unit variance), and their correlations."""
    if result.anchors is None:
        return np.eye(len(R)), R
    B = result.anchors / np.sqrt(np.einsum("ij,ij->j", result.anchors, R @ result.anchors))
    return B, B.T @ R @ B


def _check_threshold(result: Threshold, R: Array) -> Check:
    problems: list[str] = []
    weights, S = dual_arrays(result.certificate, len(R))
    upper = _trace_bound(R, weights, S) / float(weights.sum())
    defect = float(np.linalg.norm(gram_defect(R, result.T)))
    f = fidelity(R, result.T)
    lower = float(np.min(f - fidelity_allowance(R, result.T, defect)))
    _expect(
        defect <= EXACT_TOL, f"T leaves residual correlation: ‖TᵀRT - I‖ = {defect:.1e}", problems
    )
    _expect(
        bool(np.allclose(f, result.fidelity, rtol=0, atol=1e-9)),
        "the reported fidelities are not those of T",
        problems,
    )
    _expect(result.lower <= lower + 1e-12, f"T attains only {lower:.12g}", problems)
    _expect(result.upper >= upper - 1e-12, f"the weights prove only {upper:.12g}", problems)
    _expect(result.lower <= result.upper, "the bounds cross", problems)
    if result.status == "optimal":
        _expect(upper - lower <= result.tol + 1e-12, f"the gap is {upper - lower:.1e}", problems)
    return Check(not problems, lower, upper, tuple(problems))


def _check_decorrelation(result: Decorrelation, R: Array) -> Check:
    problems: list[str] = []
    B, reduced = composites(result, R)
    G = np.eye(result.T.shape[1]) + gram_defect(R, result.T)
    f = np.asarray(np.einsum("ij,ij->j", B, R @ result.T))
    excess = float(np.max(np.abs(np.diag(G) - 1)))
    _expect(excess <= UNIT_VARIANCE_TOL, f"a variance differs from 1 by {excess:.1e}", problems)
    short = float(np.max(result.rho_min - f))
    _expect(short <= FLOOR_TOL, f"a floor is missed by {short:.1e}", problems)
    _expect(
        bool(np.allclose(f, result.fidelity, rtol=0, atol=1e-9)),
        "the reported fidelities are not those of T",
        problems,
    )
    upper = residual_by(result.criterion, G, np.eye(len(G)), pair_weights=result.pair_weights)
    close = 1e-9 * max(1.0, upper)
    _expect(
        abs(upper - result.objective) <= close,
        f"the residual of T is {upper:.9g}, not {result.objective:.9g}",
        problems,
    )
    if result.certificate.kind in ("exact", "threshold"):
        lower = 0.0
        worst = float(np.max(np.abs(residual(G, np.eye(len(G)))), initial=0.0))
        _expect(worst <= EXACT_TOL, f"not exact: a residual of {worst:.1e}", problems)
        if result.status == "exact":
            _check_best_exact(result, reduced, f, problems)
    else:
        lower = _lower_bound(result, reduced, problems)
        _expect(
            result.lower_bound <= lower + close,
            f"the certificate proves only {lower:.9g}, not {result.lower_bound:.9g}",
            problems,
        )
        if result.status == "optimal":
            limit = OPTIMAL_GAP * max(1.0, upper)
            _expect(upper - lower <= 1.01 * limit, f"the gap is {upper - lower:.1e}", problems)
    return Check(not problems, lower, upper, tuple(problems))


def _check_best_exact(result: Decorrelation, R: Array, f: Array, problems: list[str]) -> None:
    """Mean fidelity (or, at the threshold, the common floor) must be as large as can be."""
    weights, S = dual_arrays(result.certificate, len(R))
    bound = _trace_bound(R, weights, S)
    if result.certificate.kind == "threshold":
        reached = float(result.rho_min @ weights)
        _expect(
            bound - reached <= FIDELITY_GAP * float(weights.sum()),
            f"floors could be {bound - reached:.1e} higher",
            problems,
        )
        return
    if np.any(weights < 1 - 1e-12):
        raise CertificateError("weights below one prove nothing about the mean fidelity.")
    if result.anchors is None:
        open_gap = mean_excess(R, result.rho_min, weights, S, result.T)
    else:
        open_gap = (bound - float((weights - 1) @ result.rho_min)) / len(f) - float(f.mean())
    _expect(open_gap <= FIDELITY_GAP, f"the mean fidelity could be {open_gap:.1e} larger", problems)


def _lower_bound(result: Decorrelation, R: Array, problems: list[str]) -> float:
    if result.certificate.kind == "support":
        allowed = result.certificate.arrays["support"] > 0.5
        _expect(not np.any(result.T[~allowed]), "T is not zero off its support", problems)
        return float(certified_bound(R, result.rho_min, result.certificate))
    multipliers, H = dual_arrays(result.certificate, len(R))
    near = result.T if result.anchors is None else None
    return dual_bound(
        R, result.rho_min, multipliers, H, result.criterion, result.pair_weights, near=near
    )


def _trace_bound(R: Array, weights: Array, S: Array) -> float:
    try:
        return trace_bound_at(R, weights, S)
    except np.linalg.LinAlgError:
        raise CertificateError("S is not positive definite, so it proves nothing.") from None


def _expect(holds: bool, problem: str, problems: list[str]) -> None:
    if not holds:
        problems.append(problem)
