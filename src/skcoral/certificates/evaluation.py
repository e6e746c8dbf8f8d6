"""What a transformation attains, what its dual point proves, and the prices that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, Enclosure, column_dots, exactly
from skcoral.bounds.dual import part
from skcoral.bounds.rank import DualBound, factor_bound
from skcoral.bounds.support import support_bound
from skcoral.bounds.tradeoff import Outputs, tradeoff_bound
from skcoral.certificates.reading import anchors_and_weights
from skcoral.core.arrays import Array
from skcoral.core.linalg import largest_residuals
from skcoral.core.lowrank import LowRankTransform
from skcoral.core.results import Decorrelation, RestrictedDecorrelation
from skcoral.core.solution import Budget, Goal, VifLimit
from skcoral.core.tolerances import CORRELATED, LIMIT_GAP, OPTIMAL_GAP
from skcoral.exceptions import CertificateError

_BLOCK = 512  # columns at a time: 50,000 of them take 200 MB


class Attained(Outputs):
    """What the ``T`` of a result does, with the residual by its criterion."""

    def __init__(self, result: Decorrelation, R: Array, arithmetic: Arithmetic) -> None:
        B, self.weights = anchors_and_weights(result, len(R))
        if isinstance(result.T, LowRankTransform) or hasattr(result.correlation, "factor"):
            raise CertificateError("a result kept as factors is judged with a FactoredCorrelation.")
        B = np.eye(len(R)) if B is None else B
        super().__init__(result.T, B, result.rho_min, R, arithmetic)
        self.correlation = arithmetic.enclosure(self.gram)
        self.variances = self.defect.diagonal()
        blocks = [(slice(0, self.k), self.correlation)]
        self.residual, self.misreported, self.largest = _of_pairs(result, self.weights, blocks)
        self.worst = float(self.largest.max(initial=0.0))


class FactorOutputs:
    """The outputs ``U = A T`` of a matrix ``AᵀA`` of rank r < p, without a p × p array.

    ``variances`` are less one, ``squares`` is D2, by the frame operator ``UUᵀ`` (r × r).
    """

    def __init__(self, T: Any, A: Array, arithmetic: Arithmetic) -> None:
        self.arithmetic, self.k = arithmetic, A.shape[1]
        if isinstance(T, LowRankTransform):  # the identity plus a product of two factors
            turned = arithmetic.enclosed(T.right.T, T.left.T, A.T, minus=-A.T)
            U, radius = (part.T for part in turned.spread())
        else:
            U, radius = arithmetic.enclosed(A, T).spread()
        self.U = U
        self._off = off = np.sqrt(np.sum(radius * radius, axis=0))
        self._length = np.sqrt(np.sum(U * U, axis=0))
        self.fidelity = column_dots(A, U, np.zeros(self.k)).widened(
            off
        )  # columns of A are unit vectors
        spread = (2 * self._length + off) * off
        self.variances = column_dots(U, U, np.ones(self.k)).widened(spread)
        frame = arithmetic.enclosed(U, U.T).widened(float(np.sum(spread)))
        squares = frame.square().total() - (self.variances + 1.0).square().total()
        self.squares = squares * 0.5

    def blocks(self) -> Iterator[tuple[slice, Enclosure]]:
        """Correlations of the outputs with some of them at a time."""
        off, length = self._off, self._length
        for start in range(0, self.k, _BLOCK):
            columns = slice(start, min(start + _BLOCK, self.k))
            block = self.arithmetic.enclosed(self.U.T, self.U[:, columns])
            spread = np.outer(off, length[columns] + off[columns]) + np.outer(length, off[columns])
            yield columns, block.widened(spread)


class FactorAttained(FactorOutputs):
    """What the ``T`` of a result does, judged through the factor of its matrix."""

    def __init__(self, result: Decorrelation, A: Array, arithmetic: Arithmetic) -> None:
        _, weights = anchors_and_weights(result, A.shape[1])
        super().__init__(result.T, A, arithmetic)
        self.residual, self.misreported, self.largest = self.squares, 0.0, np.zeros(self.k)
        reported = getattr(result.correlation, "factor", None)
        by_pairs = result.criterion != "squared" or weights is not None
        if reported is None or by_pairs or np.any(result.rho_min >= 1):
            pairs = _of_pairs(result, weights, self.blocks(), valued=by_pairs)
            residual, self.misreported, self.largest = pairs
            self.residual = residual if by_pairs else self.squares
        if reported is not None:
            same = reported.shape == self.U.shape
            self.misreported = float(np.abs(reported - self.U).max()) if same else np.inf


def _of_pairs(
    result: Decorrelation,
    weights: Array | None,
    blocks: Iterable[tuple[slice, Enclosure]],
    *,
    valued: bool = True,
) -> tuple[Enclosure, float, Array]:
    """The criterion, by how much reported correlations are off, and the largest of each output.

    Correlations come with some columns at a time; the criterion is zero if not ``valued``.
    """
    k, reported, criterion = len(result.names), result.correlation, result.criterion
    value, misreported, largest = exactly(0.0), 0.0, np.zeros(k)
    for columns, block in blocks:
        here = np.arange(columns.start, columns.stop)
        if isinstance(reported, np.ndarray):
            off = (block - reported[:, columns]).size()
            misreported = max(misreported, float(off.max(initial=0.0)))
        size = block.size()
        size[here, here - columns.start] = 0.0
        largest[columns] = size.max(axis=0, initial=0.0)
        if not valued:
            continue
        above = np.arange(k)[:, None] < here  # each pair once
        terms = block[above].square() if criterion == "squared" else block[above].absolute()
        if weights is not None:
            terms = terms * weights[:, columns][above]
        if criterion == "worst":
            top = terms.greatest()
            value = Enclosure(max(value.lower, top.lower), max(value.upper, top.upper))
        else:
            value = value + terms.total()
    return value, misreported, largest


def evaluate(result: Decorrelation, attained: Any, R: Any, arithmetic: Arithmetic) -> DualBound:
    """What the dual point of a result proves: (★), (★r) or (★★) by a factor, or on a support.

    A certificate that holds a factor of R is about ``AᵀA``; any other about ``R``.
    """
    dual = result.certificate
    if "factor" in dual.arrays:
        asked = result.criterion, result.pair_weights, result.rho_min
        return factor_bound(dual, *asked, dual.arrays["factor"], arithmetic)
    if isinstance(result, RestrictedDecorrelation):
        bound = support_bound(dual, result.rho_min, R, arithmetic, result.anchors)
        return DualBound(bound, 2.0 * result.weights, (bound, exactly(0.0)))
    lam, H = part(dual.arrays, "multipliers", attained.k), part(dual.arrays, "H", *[attained.k] * 2)
    kappa = attained.scaled(lam)
    square = R, attained.B, kappa, H, attained.floors
    bound = tradeoff_bound(arithmetic, *square, result.criterion, attained.weights)
    slope = (attained.length * (2.0 * kappa)).total()
    return DualBound(bound, 2.0 * lam, (bound, slope), of_squares=False)


def left_open(goal: Goal, floor: float, gap: float, objective: float) -> float:
    """What is left open, relative to what "optimal" allows.

    Within a limit on the VIF it is about the floor, and the residual need not be the least; within
    a budget it is about both.
    """
    left = gap / (OPTIMAL_GAP * max(1.0, objective))
    if isinstance(goal, VifLimit):
        return (goal.rho_upper - floor) / LIMIT_GAP
    return max(left, (goal.rho_upper - floor) / OPTIMAL_GAP) if isinstance(goal, Budget) else left


def prices_of(result: Decorrelation, slopes: Array, largest: Array | None = None) -> Array:
    """∂objective/∂ρ_j: the slopes of the bound; infinite for a floor of one that costs anything.

    Near one the objective falls like the square root of ``1 - ρ_j``: its slope has no bound.
    ``largest`` is the largest residual correlation of each output, by default as reported. At full
    rank H shows whether a floor costs anything; of a singular matrix, or on a support, it need not.
    """
    one = result.rho_min >= 1
    if not one.any():
        return slopes  # pairs of many outputs are not looked at without need
    if type(result) is Decorrelation:
        H = result.certificate.arrays["H"]
        costs = np.any(H - np.diag(np.diag(H)) != 0, axis=1)
    else:
        largest = largest_residuals(result.correlation) if largest is None else largest
        choice = slopes.any()
        if isinstance(result, RestrictedDecorrelation):
            choice = result.support.sum(axis=0) > 1
        costs = (largest > CORRELATED) & choice
    return np.where(one, np.where(costs, np.inf, 0.0), slopes)
