"""Outputs that are anchored to composites of the variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.linalg import correlation_of_covariance, gram_defect, of_unit_variance
from skcoral.core.problem import Matrix, check_semidefinite
from skcoral.core.validation import check_names, float_array, in_order, listing
from skcoral.exceptions import InvalidArgumentError, InvalidCorrelationError

# Relative to the length of the same composite of uncorrelated variables: shorter ones are rounding.
_NO_VARIANCE = 1e-12


class Composites:
    """Outputs anchored to composites ``Z b_j``: the same problem for their correlation matrix."""

    def __init__(self, sources: Matrix, anchors: Any) -> None:
        self.B = check_anchors(anchors, sources.names)
        k = self.B.shape[1]
        labels = list(getattr(anchors, "columns", ())) or [f"anchor{j}" for j in range(k)]
        self.names = check_names(labels, k)
        # only directions matter; dividing by the scale first keeps squares within range
        directions = self.B / np.abs(self.B).max(axis=0)
        if sources.deficiency is None:
            gram = gram_defect(sources.R, directions, precise=True) + np.eye(k)
        else:
            half = sources.deficiency.factor @ directions
            gram = half.T @ half  # rounding in null directions makes no composite independent
        length = np.sqrt(np.diag(gram))
        cancelled = [self.names[j] for j in np.flatnonzero(length <= _NO_VARIANCE)]
        if cancelled:
            raise InvalidArgumentError(
                f"The composites {listing(cancelled)} have no variance: linear relations between "
                "the variables cancel them out. Anchor to something else."
            )
        self.unit = directions / length
        try:
            checked = check_semidefinite(correlation_of_covariance(gram), self.names)
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
        if sources.deficiency is not None and sources.dense:  # to the digits of R itself
            self.unit = of_unit_variance(sources.R, self.unit)
            matrix = gram_defect(sources.R, self.unit, precise=True)
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
