"""Units of dependent rows: single rows, clusters, or blocks in time.

The rows of a unit are drawn together, left out together, and count as one observation where a
standard error is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skcoral.core.arrays import Array
from skcoral.core.validation import check_count, check_weights, shown_value
from skcoral.exceptions import InvalidArgumentError

Index = NDArray[np.intp]
#: Fewer independent units than this say nothing about others.
FEWEST_UNITS = 4


@dataclass(frozen=True, eq=False)
class Dependence:
    """Which rows of a table depend on each other, and how much each counts."""

    n_rows: int
    groups: Index | None = None  # the cluster of each row, numbered from zero
    block_length: int | None = None  # mean length of the blocks in which rows in time are drawn
    weights: Array | None = None

    @property
    def n_units(self) -> int:
        """Groups, blocks or rows: what counts as independent."""
        return int(self.units().max()) + 1

    @property
    def n_effective(self) -> float:
        """Groups or blocks; of weighted rows Kish's effective number ``(Σw)² / Σw²``."""
        w = self.weights
        if w is None or self.groups is not None or self.block_length is not None:
            return float(self.n_units)
        return float(w.sum() ** 2 / (w @ w))

    def units(self) -> Index:
        """The number of the group or (consecutive) block of each row; its own without these."""
        if self.groups is not None:
            return self.groups
        rows = np.arange(self.n_rows)
        if self.block_length is None:
            return rows
        # the rest that fills no block joins the last one
        return np.minimum(rows // self.block_length, max(self.n_rows // self.block_length - 1, 0))

    def drawn(self, seed: Any) -> Index:
        """The rows of one resampled table, in order, some of them several times.

        Groups are drawn whole; rows in time as the stationary bootstrap has it, in blocks of
        geometric length around the circle (Politis and Romano, 1994).
        """
        rng, n = np.random.default_rng(seed), self.n_rows
        if self.groups is not None:
            size = self.n_units
            counts = rng.multinomial(size, np.full(size, 1.0 / size))[self.groups]
        elif self.block_length is not None:
            starts = rng.random(n) < 1.0 / self.block_length
            starts[0] = True
            places = rng.integers(n, size=n)
            first = np.maximum.accumulate(np.where(starts, np.arange(n), 0))
            counts = np.bincount((places[first] + np.arange(n) - first) % n, minlength=n)
        else:
            counts = rng.multinomial(n, np.full(n, 1.0 / n))
        return np.repeat(np.arange(n), counts)

    def folds(self, n_folds: int, seed: int = 0) -> Iterator[tuple[Index, Index]]:
        """Rows fitted and rows left out: units at random, blocks in order of time."""
        units, n_units = self.units(), self.n_units
        k = min(n_folds, n_units)
        if self.groups is None and self.block_length is not None:
            part = np.arange(n_units) * k // n_units
        else:
            part = np.empty(n_units, dtype=np.intp)
            part[np.random.default_rng(seed).permutation(n_units)] = np.arange(n_units) % k
        for fold in range(k):
            left = part[units] == fold
            yield np.flatnonzero(~left), np.flatnonzero(left)

    def sums(self, values: Array) -> Array:
        """Sums of rows' values over each unit, weighted; their mean is that of all values."""
        if self.weights is None:
            weighted = values
        else:
            weighted = values * (self.weights / self.weights.mean())[:, None]
        if self.groups is None and self.block_length is None:
            return np.asarray(weighted)
        units, n_units = self.units(), self.n_units
        order = np.argsort(units, kind="stable")
        starts = np.searchsorted(units[order], np.arange(n_units))
        totals = np.add.reduceat(weighted[order], starts, axis=0)
        return np.asarray(totals * (n_units / self.n_rows))

    @property
    def noun(self) -> str:
        """What was taken as independent, in words."""
        if self.groups is not None:
            return "1 group" if self.n_units == 1 else f"{self.n_units:,} groups"
        if self.block_length is not None:
            return f"{self.n_units:,} blocks of {self.block_length} rows"
        return f"{self.n_rows:,} rows"


def read_dependence(
    rows: Array,
    *,
    groups: Any = None,
    block_length: Any = None,
    sample_weight: Any = None,
) -> Dependence:
    """Validate what is known about the rows of a table, which are in time where there are blocks.

    A ``block_length`` of "auto" is chosen by :func:`automatic_block_length` for the squares of the
    standardised columns.
    """
    n = len(rows)
    weights = check_weights(sample_weight, n)
    if groups is not None and block_length is not None:
        raise InvalidArgumentError(
            "Rows depend on each other within groups or within blocks of time, not both: give "
            "groups or block_length."
        )
    codes = None if groups is None else _codes(groups, n)
    length = None if block_length is None else _length(rows, block_length)
    found = Dependence(n, codes, length, weights)
    if found.n_units < FEWEST_UNITS:
        instead = " Without groups, single rows count as independent." if groups is not None else ""
        raise InvalidArgumentError(
            f"{found.noun} {'is' if found.n_units == 1 else 'are'} too few to say anything about "
            f"others: at least {FEWEST_UNITS} are needed.{instead}"
        )
    return found


def automatic_block_length(series: Any) -> float:
    """The block length of the stationary bootstrap with the least mean squared error.

    The rule of Politis and White (2004), as corrected by Patton, Politis and White (2009):
    autocovariances up to twice the lag after which autocorrelations are negligible, in a flat-top
    window, give the long-run variance and its curvature. The lengths of several series (columns)
    are averaged; they lie between one and ``min(3 √n, n / 3)``.
    """
    columns = np.asarray(series, dtype=np.float64)
    columns = columns.reshape(len(columns), -1)
    n = len(columns)
    longest = max(1.0, min(3.0 * np.sqrt(n), n / 3.0))
    lengths = [_one_length(column - column.mean(), longest) for column in columns.T]
    return float(np.mean(lengths))


def _one_length(x: Array, longest: float) -> float:
    n = len(x)
    patience = max(5, int(np.sqrt(np.log10(n))))
    last = min(int(np.ceil(np.sqrt(n))) + patience, n - 1)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    covariance = np.fft.irfft(spectrum, size)[: 2 * last + 1] / n
    if covariance[0] <= 0.0:
        return 1.0
    small = np.abs(covariance[1 : last + 1]) < 2.0 * np.sqrt(np.log10(n) / n) * covariance[0]
    run = np.convolve(small, np.ones(patience), mode="valid") >= patience
    if run.any():
        lag = int(np.argmax(run))
    else:
        large = np.flatnonzero(~small)
        lag = int(large[-1]) + 1 if large.size else 0
    width = min(2 * max(lag, 1), len(covariance) - 1)
    k = np.arange(1, width + 1)
    taper = np.clip(2.0 * (1.0 - k / width), 0.0, 1.0)
    variance = covariance[0] + 2.0 * (taper * covariance[1 : width + 1]).sum()
    curvature = 2.0 * (taper * k * covariance[1 : width + 1]).sum()
    if variance <= 0.0:
        return longest
    return float(np.clip((curvature**2 / variance**2 * n) ** (1.0 / 3.0), 1.0, longest))


def _length(rows: Array, block_length: Any) -> int:
    n = len(rows)
    if isinstance(block_length, str) and block_length == "auto":
        rows = np.asarray(rows, dtype=np.float64)
        spread = rows.std(axis=0)
        Z = (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        return int(np.ceil(automatic_block_length(Z * Z)))
    if isinstance(block_length, str):
        raise InvalidArgumentError(
            f"block_length is a whole number of rows or 'auto'; got {shown_value(block_length)}."
        )
    length = check_count("block_length", block_length)
    if length > n // FEWEST_UNITS:
        raise InvalidArgumentError(
            f"Blocks of {length} rows leave {n // length} of them in {n} rows: at least "
            f"{FEWEST_UNITS} are needed. Choose shorter blocks, or 'auto'."
        )
    return length


def _codes(groups: Any, n: int) -> Index:
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise InvalidArgumentError(
            f"groups must hold one label for each of the {n} rows; got shape {labels.shape}."
        )
    missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        who = "1 row has" if len(missing) == 1 else f"{len(missing):,} of {n:,} rows have"
        raise InvalidArgumentError(
            f"{who} no group; the first of them is number {missing[0] + 1:,} of the rows used. "
            "Every row needs the label of its group; a row that is independent of all others, one "
            "that no other has."
        )
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    # numbered in order of appearance, so that the labels themselves do not matter
    return np.asarray(np.argsort(np.argsort(first))[codes], dtype=np.intp)
