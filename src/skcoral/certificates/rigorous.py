"""Prove a result in ball arithmetic: a statement about the given R, not about any solver.

Every float of ``R``, ``T`` and the certificate is taken as the exact number it is; every operation
encloses its rounding (python-flint, the Arb library). What comes out is a theorem about the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.certificates.floating import (
    EXACT_TOL,
    FIDELITY_GAP,
    FLOOR_TOL,
    OPTIMAL_GAP,
    Check,
    claimed_matrix,
    dual_arrays,
    require_size,
)
from skcoral.exceptions import CertificateError
from skcoral.results import Decorrelation, Threshold

Array = NDArray[np.float64]

PRECISION = 212  # bits: four times that of a float, so that rounding is never what fails


def prove(result: Threshold | Decorrelation, R: Any) -> Check:
    """Enclose both sides of a result's claim in ball arithmetic.

    For a threshold: ``lower`` is a proved lower and ``upper`` a proved upper bound on ρ★. For a
    dense decorrelation: ``T`` with its columns scaled to unit variance exactly leaves a residual of
    at most ``upper``, and no transformation that meets the floors leaves less than ``lower``.
    What is called exact must also be proved uncorrelated and of the largest mean fidelity to 1e-8.

    Parameters
    ----------
    result : Threshold or Decorrelation
        What is claimed. Support restrictions and anchors are re-checked in floating point only.
    R : array-like of shape (p, p)
        The correlation matrix; each entry stands for exactly the float it is.

    Returns
    -------
    Check
        With ``rigorous=True``.

    Notes
    -----
    Needs python-flint (``pip install "scikit-coral[rigorous]"``).

    Examples
    --------
    >>> from skcoral import threshold
    >>> from skcoral.certificates import prove
    >>> R = [[1.0, 0.6], [0.6, 1.0]]
    >>> proof = prove(threshold(R), R)
    >>> proof.rigorous, proof.gap < 1e-9
    (True, True)
    """
    try:
        import flint
    except ImportError:
        raise ImportError(
            "A proof in ball arithmetic needs python-flint: "
            'pip install "scikit-coral[rigorous]". `check` does without.'
        ) from None

    matrix = claimed_matrix(result, R)
    precision, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        balls = _Balls(flint)
        if isinstance(result, Threshold):
            require_size(result.T, len(matrix), len(matrix))
            return balls.threshold(result, matrix)
        if result.certificate.kind == "support" or result.anchors is not None:
            raise CertificateError(
                "support restrictions and anchors are re-checked in floating point only; use "
                "`check`."
            )
        require_size(result.T, len(matrix), len(result.fidelity))
        return balls.decorrelation(result, matrix)
    finally:
        flint.ctx.prec = precision


class _Balls:
    def __init__(self, flint: Any) -> None:
        self.arb = flint.arb
        self.mat = flint.arb_mat

    def threshold(self, result: Threshold, R: Array) -> Check:
        weights, S = dual_arrays(result.certificate, len(R))
        upper = self._trace_bound(R, weights, S) / self._total(weights)
        lower = self._attained(R, result.T)
        problems = []
        if not lower <= upper:
            problems.append("the bounds cross")
        if not lower >= self.arb(result.lower) - FLOOR_TOL:
            problems.append(f"T is proved to attain only {_below(lower):.12g}")
        if not upper <= self.arb(result.upper) + FLOOR_TOL:
            problems.append(f"the weights prove only {_above(upper):.12g}")
        if result.status == "optimal" and not upper - lower <= result.tol:
            problems.append(f"the proved gap is {_above(upper - lower):.1e}")
        return Check(not problems, _below(lower), _above(upper), tuple(problems), rigorous=True)

    def decorrelation(self, result: Decorrelation, R: Array) -> Check:
        G, f = self._gram(R, result.T)
        k = len(f)
        length = [G[j, j].sqrt() for j in range(k)]
        f = [f[j] / length[j] for j in range(k)]
        problems = []
        for j in range(k):
            if not f[j] >= self.arb(float(result.rho_min[j])) - self.arb(FLOOR_TOL):
                problems.append(f"the floor of {result.names[j]} is not proved to {FLOOR_TOL:.0e}")
        upper = self._residual(result, G, length)
        close = FLOOR_TOL * (1 + upper)
        if not upper <= self.arb(result.objective) + close:
            problems.append(f"the residual is proved to be only {_above(upper):.9g}")
        if result.certificate.kind == "tradeoff":
            lower = self._dual_bound(result, R)
            if not lower >= self.arb(result.lower_bound) - close:
                problems.append(f"the certificate proves only {_below(lower):.9g}")
            if result.status == "optimal" and not upper - lower <= 1.01 * OPTIMAL_GAP * (1 + upper):
                problems.append(f"the proved gap is {_above(upper - lower):.1e}")
        else:
            lower = self.arb(0)
            if result.status == "exact":
                problems += self._best_exact_problems(result, R, G, length, f)
        return Check(
            not problems, max(_below(lower), 0.0), _above(upper), tuple(problems), rigorous=True
        )

    def _best_exact_problems(
        self, result: Decorrelation, R: Array, G: Any, length: list[Any], f: list[Any]
    ) -> list[str]:
        """What is not proved of outputs said to be uncorrelated and as faithful as can be."""
        problems = []
        for i in range(len(f)):
            for j in range(i):
                if not abs(G[i, j] / (length[i] * length[j])) <= EXACT_TOL:
                    pair = f"{result.names[j]} and {result.names[i]}"
                    problems.append(f"{pair} are not proved to be uncorrelated")
        weights, S = dual_arrays(result.certificate, len(R))
        bound = self._trace_bound(R, weights, S)
        floors = [self.arb(float(r)) for r in result.rho_min]
        if result.certificate.kind == "threshold":
            reached = sum(self.arb(float(w)) * r for w, r in zip(weights, floors, strict=True))
            if not bound - reached <= FIDELITY_GAP * self._total(weights):
                problems.append("the floors are not proved to be the highest")
            return problems
        if np.any(weights < 1 - 1e-12):
            raise CertificateError("weights below one prove nothing about the mean fidelity.")
        spent = sum(self.arb(float(w) - 1) * r for w, r in zip(weights, floors, strict=True))
        if not bound - spent - sum(f) <= FIDELITY_GAP * len(f):
            problems.append("the mean fidelity is not proved to be the largest")
        return problems

    def _matrix(self, A: Array) -> Any:
        return self.mat([[self.arb(float(a)) for a in row] for row in A])

    def _total(self, v: Array) -> Any:
        return sum((self.arb(float(a)) for a in v), self.arb(0))

    def _gram(self, R: Array, T: Array) -> tuple[Any, list[Any]]:
        """``TᵀRT`` and the fidelities."""
        exact_T = self._matrix(T)
        image = self._matrix(R) * exact_T
        return exact_T.transpose() * image, [image[j, j] for j in range(len(R))]

    def _attained(self, R: Array, T: Array) -> Any:
        """Least fidelity of ``T (TᵀRT)^{-1/2}``, which is exactly decorrelating."""
        p = len(R)
        G, f = self._gram(R, T)
        square = self.arb(0)
        for i in range(p):
            for j in range(p):
                square += (G[i, j] - (1 if i == j else 0)) ** 2
        defect = square.sqrt()
        if not defect < 1:
            raise CertificateError("T is too far from exact decorrelation to prove anything.")
        shift = (1 + defect).sqrt() * ((1 - defect).rsqrt() - 1)
        least = f[0]
        for value in f[1:]:
            least = least.min(value)
        return least - shift

    def _trace_bound(self, R: Array, weights: Array, S: Array) -> Any:
        on = np.flatnonzero(weights > 0)
        scale = [self.arb(float(w)) for w in weights[on]]
        root = self._matrix(0.5 * (S + S.T))
        self._require_definite(root)
        scaled = self.mat(
            [[scale[a] * float(R[i, j]) * scale[b] for b, j in enumerate(on)]
             for a, i in enumerate(on)]
        )  # fmt: skip
        return (root.solve(scaled).trace() + root.trace()) / 2

    def _dual_bound(self, result: Decorrelation, R: Array) -> Any:
        multipliers, H = dual_arrays(result.certificate, len(R))
        p = len(R)
        if not multipliers.any() and not H.any():
            return self.arb(0)  # no criterion is negative
        exact_H = self._matrix(0.5 * (H + H.T))
        self._require_definite(exact_H)
        scale = [self.arb(float(m)) for m in multipliers]
        scaled = self.mat(
            [[scale[i] * float(R[i, j]) * scale[j] for j in range(p)] for i in range(p)]
        )
        reward = sum(
            (2 * self.arb(float(result.rho_min[j])) * scale[j] for j in range(p)), self.arb(0)
        )
        penalty, shrink = self._conjugate(result, exact_H)
        # A point just outside the conjugate's domain is pulled inside by scaling λ and H together.
        bound = reward - exact_H.trace() - exact_H.solve(scaled).trace()
        return shrink * bound - penalty

    def _conjugate(self, result: Decorrelation, H: Any) -> tuple[Any, Any]:
        """Conjugate of the criterion at off H, and the factor that brings H into its domain."""
        p = H.nrows()
        weights = np.ones((p, p)) if result.pair_weights is None else result.pair_weights
        one = self.arb(1)
        total, excess = self.arb(0), one
        for i in range(p):
            for j in range(i):
                w = self.arb(float(weights[i, j]))
                h = abs(H[i, j])
                if not w > 0:
                    if not h == 0:
                        raise CertificateError("H is not zero at a pair of weight zero.")
                elif result.criterion == "squared":
                    total += h**2 / w
                elif result.criterion == "absolute":
                    excess = excess.max(2 * h / w)
                else:
                    total += 2 * h / w
        if result.criterion == "squared":
            return total, one
        if result.criterion == "worst":
            excess = excess.max(total)
        return self.arb(0), one / excess

    def _residual(self, result: Decorrelation, G: Any, length: list[Any]) -> Any:
        p = len(length)
        weights = np.ones((p, p)) if result.pair_weights is None else result.pair_weights
        total = self.arb(0)
        for i in range(p):
            for j in range(i):
                r = abs(G[i, j] / (length[i] * length[j]))
                w = self.arb(float(weights[i, j]))
                if result.criterion == "squared":
                    total += w * r**2
                elif result.criterion == "absolute":
                    total += w * r
                else:
                    total = total.max(w * r)
        return total

    def _require_definite(self, A: Any) -> None:
        """Prove ``A ≻ 0`` by the pivots of an LDLᵀ factorisation."""
        p = A.nrows()
        rows = [[A[i, j] for j in range(i + 1)] for i in range(p)]
        for k in range(p):
            pivot = rows[k][k]
            if not pivot > 0:
                raise CertificateError("a matrix of the certificate is not positive definite.")
            for i in range(k + 1, p):
                factor = rows[i][k] / pivot
                for j in range(k + 1, i + 1):
                    rows[i][j] -= factor * rows[j][k]


def _below(ball: Any) -> float:
    return float(np.nextafter(float(ball.lower()), -np.inf))


def _above(ball: Any) -> float:
    return float(np.nextafter(float(ball.upper()), np.inf))
