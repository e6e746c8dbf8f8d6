"""What a transformation does, enclosed: the attained side of every claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skcoral.bounds.arithmetic import Arithmetic, column_dots
from skcoral.bounds.enclosures import Enclosure, around, exactly
from skcoral.bounds.outputs import Outputs
from skcoral.bounds.tradeoff import residual
from skcoral.certificates.reading import check_fields
from skcoral.core.arrays import Array
from skcoral.core.results import Decorrelation

_BLOCK = 512


class Attained(Outputs):
    """What the ``T`` of a result does, with the residual by its criterion."""

    def __init__(self, result: Decorrelation, R: Array, arithmetic: Arithmetic) -> None:
        B, weights = check_fields(result, len(R))
        self.weights = 1.0 - np.eye(len(result.names)) if weights is None else weights
        B = np.eye(len(R)) if B is None else B
        super().__init__(result.T, B, result.rho_min, R, arithmetic)
        self.correlation = arithmetic.enclosure(self.gram)
        self.misreported = arithmetic.enclosure(self.gram, result.correlation).size()
        self.variances = self.defect.diagonal()
        off = self.defect.size()
        np.fill_diagonal(off, 0.0)
        self.largest = off.max(axis=0, initial=0.0)
        self.worst = float(self.largest.max(initial=0.0))
        self.residual = residual(result.criterion, self.correlation, self.weights)


class FactorOutputs:
    """The outputs ``U = A T`` of a matrix ``AᵀA`` of rank r < p, without a p × p array.

    ``variances`` are less one, ``squares`` is D2, by the frame operator ``UUᵀ`` (r × r).
    """

    def __init__(self, T: Any, A: Array, arithmetic: Arithmetic) -> None:
        self.arithmetic, self.k = arithmetic, A.shape[1]
        if hasattr(T, "left"):  # the identity plus a product of two factors
            found = arithmetic.enclosed(T.right.T, T.left.T, A.T, minus=-A.T).T
        else:
            found = arithmetic.enclosed(A, T)
        self.U = U = found.middle
        radius = np.maximum(found.upper - U, U - found.lower)
        self._off = off = np.sqrt(np.sum(radius * radius, axis=0))
        self._length = np.sqrt(np.sum(U * U, axis=0))
        self.fidelity = column_dots(A, U, np.zeros(self.k), arithmetic) + around(0.0, 2 * off)
        spread = (2 * self._length + off) * off
        self.variances = column_dots(U, U, np.ones(self.k), arithmetic) + around(0.0, spread)
        frame = arithmetic.enclosed(U, U.T)
        frame = frame + around(0.0, float(np.sum(spread)))
        squares = frame.square().total() - (self.variances + 1.0).square().total()
        self.squares = squares * 0.5

    def blocks(self) -> Iterator[tuple[slice, Enclosure]]:
        """Correlations of the outputs with some of them at a time."""
        off, length = self._off, self._length
        for start in range(0, self.k, _BLOCK):
            columns = slice(start, min(start + _BLOCK, self.k))
            block = self.arithmetic.enclosed(self.U.T, self.U[:, columns])
            spread = np.outer(off, length[columns] + off[columns]) + np.outer(length, off[columns])
            yield columns, block + around(0.0, spread)


class FactorAttained(FactorOutputs):
    """What the ``T`` of a result does, judged through the factor of its matrix."""

    def __init__(self, result: Decorrelation, A: Array, arithmetic: Arithmetic) -> None:
        _, weights = check_fields(result, A.shape[1])
        super().__init__(result.T, A, arithmetic)
        self.residual, self.misreported = self.squares, 0.0
        reported = getattr(result.correlation, "factor", None)
        if reported is not None:
            same = reported.shape == self.U.shape
            self.misreported = float(np.abs(reported - self.U).max()) if same else np.inf
        by_pairs = result.criterion != "squared" or result.pair_weights is not None
        self.largest = np.zeros(self.k)
        if reported is None or by_pairs or np.any(result.rho_min >= 1):
            self._look_at_pairs(result, weights, reported is None, by_pairs)

    def _look_at_pairs(
        self, result: Decorrelation, weights: Array | None, reported: bool, by_pairs: bool
    ) -> None:
        total = exactly(0.0)
        for columns, block in self.blocks():
            here = np.arange(columns.start, columns.stop)
            if reported:
                off = float((block - result.correlation[:, columns]).size().max())
                self.misreported = max(self.misreported, off)
            size = block.size()
            size[here, here - columns.start] = 0.0
            self.largest[columns] = size.max(axis=0)
            if not by_pairs:
                continue
            above = np.where(np.arange(self.k)[:, None] < here, 1.0, 0.0)
            above = above if weights is None else above * weights[:, columns]
            terms = block.square() if result.criterion == "squared" else block.absolute()
            if result.criterion == "worst":
                total = _larger(total, (terms * above).greatest())
            else:
                total = total + (terms * above).total()
        if by_pairs:
            self.residual = total


def _larger(a: Enclosure, b: Enclosure) -> Enclosure:
    return Enclosure(max(a.lower, b.lower), max(a.upper, b.upper))
