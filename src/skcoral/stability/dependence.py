"""Units of dependent rows: single rows, clusters, or blocks in time.

The rows of a unit are drawn together, left out together, and count as one observation where a
standard error is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array, Index
from skcoral.core.validation import check_count
from skcoral.exceptions import InvalidArgumentError

# The fewest independent units from which anything is said about others: with three, a standard
# error has two degrees of freedom. Forty would refuse most panels of years.
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
        if w is None or self.n_units < self.n_rows:
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
        rng, n, size = np.random.default_rng(seed), self.n_rows, self.n_units
        if self.block_length is None:
            counts = rng.multinomial(size, np.full(size, 1.0 / size))[self.units()]
        else:
            starts = rng.random(n) < 1.0 / self.block_length
            starts[0] = True
            places = rng.integers(n, size=n)
            first = np.maximum.accumulate(np.where(starts, np.arange(n), 0))
            counts = np.bincount((places[first] + np.arange(n) - first) % n, minlength=n)
        return np.repeat(np.arange(n), counts)

    def folds(self, n_folds: int) -> Iterator[tuple[Index, Index]]:
        """Rows fitted and rows left out: units at random, blocks in order of time."""
        units, n_units = self.units(), self.n_units
        k = min(n_folds, n_units)
        if self.block_length is not None:
            part = np.arange(n_units) * k // n_units
        else:
            part = np.empty(n_units, dtype=np.intp)
            part[np.random.default_rng(0).permutation(n_units)] = np.arange(n_units) % k
        for fold in range(k):
            left = part[units] == fold
            yield np.flatnonzero(~left), np.flatnonzero(left)

    def sums(self, values: Array, part: Index) -> Array:
        """Weighted sums of rows' values over each part, whose mean is that of all values."""
        if self.weights is not None:
            values = values * (self.weights / self.weights.mean())[:, None]
        n_parts = int(part.max()) + 1
        order = np.argsort(part, kind="stable")
        starts = np.searchsorted(part[order], np.arange(n_parts))
        return np.asarray(np.add.reduceat(values[order], starts, axis=0) * (n_parts / self.n_rows))

    @property
    def noun(self) -> str:
        """What was taken as independent, in words."""
        if self.groups is not None:
            return "1 group" if self.n_units == 1 else f"{self.n_units:,} groups"
        if self.block_length is not None:
            return f"{self.n_units:,} blocks of {self.block_length} rows"
        return f"{self.n_rows:,} rows"


def read_dependence(
    rows: Array, groups: Any = None, block_length: Any = None, weights: Array | None = None
) -> Dependence:
    """Validate what is known about rows, which are in the order of time where there are blocks."""
    if groups is not None and block_length is not None:
        raise InvalidArgumentError(
            "Rows depend on each other within groups or within blocks of time, not both: give "
            "groups or block_length."
        )
    codes = None if groups is None else _codes(groups, len(rows))
    length = None if block_length is None else _length(rows, block_length)
    known = Dependence(len(rows), codes, length, weights)
    if known.n_units < FEWEST_UNITS:
        instead = " Without groups, single rows count as independent." if groups is not None else ""
        instead = " Choose shorter blocks, or 'auto'." if length is not None else instead
        raise InvalidArgumentError(
            f"{known.noun} {'is' if known.n_units == 1 else 'are'} too few to estimate an error "
            f"from: at least {FEWEST_UNITS} are needed.{instead}"
        )
    return known


def _length(rows: Array, block_length: Any) -> int:
    """The length of blocks as given, or as the columns ask for on average."""
    if isinstance(block_length, str) and block_length == "auto":
        # squares, because variances and correlations are what is estimated from these rows
        spread = rows.std(axis=0)
        Z = (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        return int(np.ceil(np.mean([automatic_block_length(column) for column in (Z * Z).T])))
    return check_count("block_length", block_length)


def automatic_block_length(series: Array) -> float:
    """The block length of the stationary bootstrap with the least mean squared error.

    The rule of Politis and White (2004), as corrected by Patton, Politis and White (2009); between
    one and ``min(3 √n, n / 3)``, as they advise.
    """
    x = series - series.mean()
    n = len(x)
    longest = max(1.0, min(3.0 * np.sqrt(n), n / 3.0))
    patience = max(5, int(np.sqrt(np.log10(n))))
    last = min(int(np.ceil(np.sqrt(n))) + patience, n - 1)
    # autocovariances by the Fourier transform, padded so that the ends of the series do not meet
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    covariance = np.fft.irfft(spectrum, size)[: 2 * last + 1] / n
    if covariance[0] <= 0.0:
        return 1.0
    # the lag after which `patience` autocorrelations in a row are within two standard errors of 0
    small = np.abs(covariance[1 : last + 1]) < 2.0 * np.sqrt(np.log10(n) / n) * covariance[0]
    run = np.convolve(small, np.ones(patience), mode="valid") >= patience
    lag = int(np.argmax(run)) if run.any() else int(np.flatnonzero(~small).max(initial=-1)) + 1
    # up to twice that lag, in a flat-top window: the long-run variance and its curvature
    width = min(2 * max(lag, 1), len(covariance) - 1)
    k = np.arange(1, width + 1)
    taper = np.clip(2.0 * (1.0 - k / width), 0.0, 1.0)
    variance = covariance[0] + 2.0 * (taper * covariance[1 : width + 1]).sum()
    curvature = 2.0 * (taper * k * covariance[1 : width + 1]).sum()
    if variance <= 0.0:
        return longest
    return float(np.clip((curvature**2 / variance**2 * n) ** (1.0 / 3.0), 1.0, longest))


def _codes(groups: Any, n: int) -> Index:
    """The group of each row as a number, in order of appearance: the labels do not matter."""
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
    return np.asarray(np.argsort(np.argsort(first))[codes], dtype=np.intp)
