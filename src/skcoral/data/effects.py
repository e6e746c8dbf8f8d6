"""The effect of a transformation on a table, in figures that can be computed from the outputs.

A certificate is about the matrix that was solved for. These figures are about the rows or the
matrix that the user has, and come first in every report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Frozen, Mask, column_dots
from skcoral.core.display import Fidelities, Shown, shortened
from skcoral.core.linalg import (
    blocks_of,
    correlation_of_covariance,
    inflation_factors,
    largest_residuals,
)
from skcoral.core.lowrank import FactoredCorrelation
from skcoral.core.validation import check_names
from skcoral.data.correlation import CorrelationEstimate, check_usable, sample_correlation
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments
from skcoral.exceptions import InvalidArgumentError

_ROUNDING = 1e-9  # fidelities of outputs that bind at the same floor differ by less
_HEADLINE = (
    *("largest_correlation_before", "largest_correlation", "largest_vif_before", "largest_vif"),
    *("min_fidelity", "weakest", "rows_used", "rows_given", "weighted"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Shown, Fidelities, Frozen):
    """The effect of a transformation, measured on rows or on a correlation matrix.

    Attributes
    ----------
    names : tuple of str
        The outputs.
    fidelity : ndarray of shape (k,)
        Correlation of each output with its own variable.
    residual_before, residual : ndarray of shape (p,) and (k,)
        Largest absolute correlation of each variable, and of each output, with another one.
    vif_before, vif : ndarray of shape (p,) and (k,)
        Variance inflation factors; infinite where columns are linearly dependent.
    before, after : ndarray or None
        Correlation matrices of variables and outputs; None if columns are many and rows few.
    rows_used, rows_given : int or None
        Rows measured, of those in the table; None if a matrix was given.
    weighted : bool
        Whether the rows count by their sample weights, as in the fit.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> print(decorrelate([[1.0, 0.6], [0.6, 1.0]], 0.9).measured.headline())
    Largest correlation 0.60 → 0.00, largest VIF 1.6 → 1.0, both variables keep 0.948.
    """

    names: tuple[str, ...]
    fidelity: Array
    residual_before: Array
    residual: Array
    vif_before: Array
    vif: Array
    before: Array | None = None
    after: Array | None = None
    rows_used: int | None = None
    rows_given: int | None = None
    weighted: bool = False

    @property
    def largest_correlation_before(self) -> float:
        """Largest absolute correlation between two variables."""
        return float(self.residual_before.max(initial=0.0))

    @property
    def largest_correlation(self) -> float:
        """Largest absolute correlation between two outputs."""
        return float(self.residual.max(initial=0.0))

    @property
    def largest_vif_before(self) -> float:
        """Largest variance inflation factor of a variable."""
        return float(self.vif_before.max())

    @property
    def largest_vif(self) -> float:
        """Largest variance inflation factor of an output."""
        return float(self.vif.max())

    @property
    def rises(self) -> bool:
        """Whether the largest correlation is higher than before, in the two decimals shown.

        A least sum of squares may leave one pair more correlated: under a support, for example.
        """
        return round(self.largest_correlation, 2) > round(self.largest_correlation_before, 2)

    @property
    def weakest(self) -> str:
        """The output with the weakest fidelity; the first of several that differ by rounding."""
        return self.names[int(np.argmax(self.fidelity <= self.min_fidelity + _ROUNDING))]

    def to_dict(self) -> dict[str, Any]:
        """The figures of the headline by name, as ``coral fit --json`` gives them."""
        return {name: getattr(self, name) for name in _HEADLINE}

    def _table(self) -> tuple[str, tuple[str, ...], dict[str, Array]]:
        columns = {"fidelity": self.fidelity, "residual": self.residual, "vif": self.vif}
        if len(self.vif_before) == len(self.vif):  # composites are no columns of the table
            columns["residual_before"] = self.residual_before
            columns["vif_before"] = self.vif_before
        order = ("fidelity", "residual_before", "residual", "vif_before", "vif")
        return "output", self.names, {name: columns[name] for name in order if name in columns}

    def headline(self) -> str:
        """The figures in one sentence, for the person who decides."""
        what = "weighted correlation" if self.weighted else "correlation"
        before, after = f"{self.largest_correlation_before:.2f}", f"{self.largest_correlation:.2f}"
        rises = ", which is higher than before" if self.rises else ""
        text = (
            f"largest {what} {before} → {after}{rises}, largest VIF "
            f"{vif_text(self.largest_vif_before)} → {vif_text(self.largest_vif)}, "
            f"{self._weakest_fidelity()}"
        )
        if self.rows_used is not None:
            text += f"; {self.rows()}"
        return f"{text[0].upper()}{text[1:]}."

    summary = headline

    def rows(self) -> str:
        """How many rows were measured, in words."""
        if self.rows_used is None:
            return "a correlation matrix"
        return f"{self.rows_used:,} of {self.rows_given or self.rows_used:,} rows used"

    def _weakest_fidelity(self) -> str:
        """What the variables keep, with the weakest named."""
        weakest = rounded_down(self.min_fidelity, 3)
        figure = f"{weakest:.3f}"
        if self.min_fidelity < 0:
            return (
                "the weakest output has a negative correlation with its variable "
                f"({shortened(self.weakest)} {figure})"
            )
        p, at = len(self.names), sum(rounded_down(f, 3) == weakest for f in self.fidelity.tolist())
        if p == 1:
            return f"the variable keeps {figure}"
        if at == p:
            return f"{'both' if p == 2 else f'all {p}'} variables keep {figure}"
        if at > 1:
            return f"{at} of {p} variables keep {figure}, the rest more"
        return f"every variable keeps at least {figure} (weakest: {shortened(self.weakest)})"


def measure_rows(table: CorrelationEstimate, result: Any, moments: Moments) -> Measured:
    """The figures of a result on rows whose moments are known, weighted as these are."""
    check_usable(moments)
    how = {
        "rows_used": moments.n_rows,
        "rows_given": moments.n_rows,
        "weighted": moments.is_weighted,
    }
    if not isinstance(moments, RowMoments):
        # T acts on columns standardised by the estimate
        relative = (moments.scale / table.scale)[:, None]
        return measure_matrix(
            sample_correlation(moments),
            result.T * relative,
            result.names,
            anchors=None if result.anchors is None else result.anchors * relative,
            **how,
        )
    # deviations are times the square root of the weight of their row
    Z = moments.deviations / table.scale
    sources, outputs, targets = map(_unit_columns, (Z, *result.outputs_and_sources(Z)))
    before, after = FactoredCorrelation(sources), FactoredCorrelation(outputs)
    return _measured(result.names, column_dots(outputs, targets), before, after, **how)


def measure_matrix(
    R: Any, T: Any, names: Sequence[str] | None = None, *, anchors: Any = None, **how: Any
) -> Measured:
    """The effect of ``T`` on rows with the correlation matrix ``R``.

    Parameters
    ----------
    R : array-like of shape (p, p)
        Correlation matrix of the variables.
    T : array-like of shape (p, k)
        Transformation of standardised rows; outputs need not have unit variance.
    names : sequence of str, optional
        The outputs.
    anchors : array-like of shape (p, k), optional
        Composites that the outputs are anchored to; without them output j belongs to variable j.
    **how
        ``rows_used``, ``rows_given`` and ``weighted`` of the result.

    Returns
    -------
    Measured

    Examples
    --------
    >>> measured = measure_matrix([[1.0, 0.6], [0.6, 1.0]], np.eye(2))
    >>> measured.fidelity.tolist(), measured.largest_correlation, round(measured.largest_vif, 4)
    ([1.0, 1.0], 0.6, 1.5625)
    """
    R, T = np.asarray(R, dtype=np.float64), np.asarray(T, dtype=np.float64)
    B = np.eye(len(R)) if anchors is None else np.asarray(anchors, dtype=np.float64)
    if T.shape != B.shape:
        raise InvalidArgumentError(
            f"T must have the shape {B.shape}, rows for variables and columns for outputs; "
            f"got {T.shape}."
        )
    G = T.T @ R @ T
    unit = T / np.sqrt(np.diag(G))
    RB = R if anchors is None else R @ B
    fidelity = column_dots(RB, unit) / np.sqrt(column_dots(RB, B))
    labels = check_names(names, len(G))
    return _measured(labels, fidelity, R, correlation_of_covariance(G), **how)


def _measured(
    names: Sequence[str],
    fidelity: Array,
    before: Any,
    after: Any,
    *,
    rows_used: Any = None,
    **how: Any,
) -> Measured:
    """The figures of two correlation matrices, which are kept unless they are factors."""

    def inflation(G: Any) -> Array:
        if rows_used is not None and rows_used <= len(G):  # the others determine every column
            return np.full(len(G), math.inf)
        return inflation_factors(G.toarray() if isinstance(G, FactoredCorrelation) else G)

    return Measured(
        names=tuple(names),
        fidelity=np.clip(fidelity, -1.0, 1.0),
        residual_before=largest_residuals(before),
        residual=largest_residuals(after),
        vif_before=inflation(before),
        vif=inflation(after),
        before=None if isinstance(before, FactoredCorrelation) else before,
        after=None if isinstance(after, FactoredCorrelation) else after,
        rows_used=rows_used,
        **how,
    )


def _unit_columns(deviations: Array) -> Array:
    return np.asarray(deviations / np.sqrt(column_dots(deviations, deviations)))


def strongest_pairs(G: Array | FactoredCorrelation, limit: int) -> list[tuple[int, int, float]]:
    """The pairs with the largest absolute correlations, strongest first, in blocks."""
    pairs: list[tuple[int, int, float]] = []
    for columns, block in blocks_of(G):
        size = np.where(_above_diagonal(columns, block), np.abs(block), -1.0)
        count = min(limit, size.size)
        for flat in np.argpartition(-size, count - 1, axis=None)[:count]:
            i, j = np.unravel_index(int(flat), size.shape)
            if size[i, j] >= 0.0:
                pairs.append((int(i), int(j) + columns.start, float(block[i, j])))
        pairs = sorted(pairs, key=lambda pair: -abs(pair[2]))[:limit]
    return pairs


def spread_of_sizes(G: Array | FactoredCorrelation, edges: Array) -> Array:
    """How many pairs have an absolute correlation between one edge and the next."""
    counts = np.zeros(len(edges) - 1)
    for columns, block in blocks_of(G):
        size = np.minimum(np.abs(block[_above_diagonal(columns, block)]), edges[-1])
        counts += np.histogram(size, bins=edges)[0]
    return counts


def _above_diagonal(columns: slice, block: Array) -> Mask:
    return np.asarray(np.arange(len(block))[:, None] < np.arange(columns.start, columns.stop))


def rounded_down(value: float, digits: int) -> float:
    """A fidelity with some digits, rounded down because it is promised."""
    scale = 10.0**digits
    return math.floor(value * scale + 1e-6) / scale


def vif_text(value: float) -> str:
    """A variance inflation factor: one decimal below 100, none above."""
    if not math.isfinite(value):
        return "∞"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
