"""Problems: what is asked of a correlation matrix, validated when they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.criteria import Criterion
from skcoral.core.linalg import gram_defect, of_unit_variance
from skcoral.core.matrix import (
    Matrix,
    Memory,
    check_matrix,
    check_pair_weights,
    check_semidefinite,
)
from skcoral.core.validation import (
    check_callback,
    check_choice,
    check_names,
    check_positive,
    float_array,
    in_order,
    listing,
)
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError

CRITERIA = ("squared", "worst", "absolute")
Callback = Callable[[int, float, float], object]
# Of the length that a composite would have if the variables were uncorrelated: shorter ones cancel
# out but for rounding.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Settings:
    """Names of the outputs, and the arguments of :func:`skcoral.decorrelate` of these names."""

    names: tuple[str, ...]
    criterion: Criterion = "squared"
    pair_weights: Array | None = None
    tol: float = 1e-9
    max_iter: int = 200
    callback: Callback | None = None
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True)
class Problem:
    """What is asked: of which matrix, by which criterion, for which outputs.

    Attributes
    ----------
    given : Matrix
        Of the variables.
    matrix : Matrix
        Of what the outputs belong to: the variables, or composites of them.
    settings : Settings
        Of the solver.
    composites : Composites or None
        How composites are made of the variables.
    """

    given: Matrix
    matrix: Matrix
    settings: Settings
    composites: Composites | None = None

    @classmethod
    def of(
        cls,
        R: Any,
        *,
        criterion: str = "squared",
        pair_weights: Any = None,
        anchors: Any = None,
        tol: float = 1e-9,
        max_iter: int = 200,
        on_singular: str = "solve",
        callback: Callback | None = None,
    ) -> Problem:
        """Validate what is asked."""
        given = check_matrix(R, on_singular=on_singular)
        composites = None if anchors is None else Composites(given, anchors)
        matrix = given if composites is None else composites.matrix
        settings = Settings(
            matrix.names,
            cast(Criterion, check_choice("criterion", criterion, CRITERIA)),
            None if pair_weights is None else check_pair_weights(pair_weights, matrix.names),
            check_positive("tol", tol),
            max_iter,
            check_callback(callback),
            matrix.memory,
        )
        return cls(given, matrix, settings, composites)


class Composites:
    """Outputs anchored to composites ``Z b_j``: the same problem for their correlation matrix."""

    def __init__(self, given: Matrix, anchors: Any) -> None:
        self.B = check_anchors(anchors, given.names)
        k = self.B.shape[1]
        labels = list(getattr(anchors, "columns", ())) or [f"anchor{j}" for j in range(k)]
        self.names = check_names(labels, k)
        # only directions matter; taking out the scale first keeps squares within range
        directions = self.B / np.abs(self.B).max(axis=0)
        if given.deficiency is None:
            gram = gram_defect(given.R, directions, precise=True) + np.eye(k)
        else:
            half = given.deficiency.factor @ directions
            gram = half.T @ half  # directions that do not count make no composite independent
        length = np.sqrt(np.diag(gram))
        cancelled = [self.names[j] for j in np.flatnonzero(length <= _NO_VARIANCE)]
        if cancelled:
            raise InvalidArgumentError(
                f"The composites {listing(cancelled)} have no variance: linear relations between "
                "the variables cancel them out. Anchor to something else."
            )
        self.unit = directions / length
        R = gram / np.outer(length, length)
        np.fill_diagonal(R, 1.0)
        try:
            checked = check_semidefinite(0.5 * (R + R.T), self.names)
        except InvalidCorrelationError as reason:
            raise InvalidArgumentError(
                f"The composites cannot be decorrelated: {reason}"
            ) from reason
        if checked.deficiency is not None:  # outputs outside their span could be less correlated
            relations = "; ".join(map(str, checked.deficiency.relations[:5]))
            raise InvalidArgumentError(
                f"The composites depend on each other: {relations} (in standardised units; {k} "
                f"composites of rank {checked.deficiency.rank}). Composites have to be linearly "
                "independent: leave one of each relation out, or anchors altogether to decorrelate "
                "the variables themselves."
            )
        matrix = checked.R
        if given.deficiency is not None and given.dense:  # to the digits of R itself
            self.unit = of_unit_variance(given.R, self.unit)
            matrix = gram_defect(given.R, self.unit, precise=True)
            np.fill_diagonal(matrix, 1.0)
        self.matrix = Matrix(matrix, self.names, None)


def check_anchors(anchors: Any, names: Sequence[str]) -> Array:
    """Return the composites that outputs are anchored to, one in each column (p, k).

    Column j holds the coefficients of composite j on the standardised variables.
    """
    p = len(names)
    given = in_order(anchors, (names, None), "anchors")
    B = float_array(given, "anchors", InvalidArgumentError)[0]
    if B.ndim != 2 or B.shape[0] != p or not 1 <= B.shape[1] <= p:
        raise InvalidArgumentError(
            f"anchors must have {p} rows (one per variable) and 1 to {p} columns (one per "
            f"output), got shape {B.shape}."
        )
    bad = np.argwhere(~np.isfinite(B))
    if bad.size:
        i, j = bad[0]
        raise InvalidArgumentError(
            f"anchors must be finite; the coefficient of `{names[i]}` in composite {j} "
            f"is {B[i, j]}."
        )
    if not B.any(axis=0).all():
        raise InvalidArgumentError(
            f"Composite {int(np.argmin(B.any(axis=0)))} has no coefficient other than 0: there is "
            "nothing to anchor its output to."
        )
    return B.copy()
