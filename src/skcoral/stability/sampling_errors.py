"""How far fidelities in the population may lie below those of the rows fitted.

All of this is on Fisher's scale, artanh of a correlation: there, the standard error hardly depends
on the correlation, and a floor that is raised stays below one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcoral.core.arrays import Array
from skcoral.core.results import Threshold
from skcoral.exceptions import InvalidTableError
from skcoral.stability.dependence import Dependence
from skcoral.stability.resampling import Fitted, Resampler, mean_of, standardised

# Draws of sampling errors. The level at a 95 % quantile of them has a standard error of half a per
# cent; ten times as many would make that 0.15 %, and cost ten times the time and memory.
DRAWS = 2000
# Units drawn. Beyond, they are added up at random, which leaves the errors the same; ten times as
# many would let the array of draws grow to 320 MB.
_MOST_UNITS = 2000
# A floor beyond this is taken as one and the variable left unchanged: an output with this fidelity
# differs from it by less than 1.5 % of a standard deviation; with 0.999, by less than 4.5 %.
HIGHEST = 0.9999
_CELLS = 20_000_000  # of an array of rows and pairs: 160 MB; fewer take more passes, nothing else
_LARGEST = np.tanh(18.0)  # the largest correlation that differs from one in double precision


@dataclass(frozen=True, eq=False)
class Errors:
    """Fidelities of a fit, of rows left out, and draws of the error between them."""

    fitted: Array  # fidelities on the rows fitted
    optimism: Array  # how much lower they are expected elsewhere
    spread: Array  # standard errors
    draws: Array  # (m, k), of the error over its standard error
    outputs: Array  # (n, k), standardised, each row by the fit that left it out

    def margin(self, confidence: float, promised: Any) -> Array:
        """By how much a fidelity on the rows fitted must exceed that promised in the population.

        The quantile is that of the largest promised error, so that all floors hold together.
        """
        largest = np.quantile(self.draws[:, promised].max(axis=1), confidence)
        return np.asarray(self.optimism + max(float(largest), 0.0) * self.spread)


def fisher(correlation: Any) -> Array:
    """Fisher's transformation, finite for correlations of one."""
    return np.asarray(np.arctanh(np.clip(correlation, -_LARGEST, _LARGEST)))


def left_out(
    sample: Resampler, fit: Fitted, floors: Array, *, n_folds: int, draws: Draws
) -> Errors:
    """Errors by cross-fitting: one fit per fold, each measured on the rows that it left out.

    To first order, the error of a fidelity is the mean of the rows' influence values

        ψ = u v − f (u² + v²) / 2

    for u a standardised output, v its source and f their correlation; how the transformation
    depends on the rows has no part in it, because on the rows fitted every floor is met by
    construction. What is left is of second order: the optimism of a transformation that was
    chosen on the same rows, of the size of p/n. Rows left out show both, because the first-order
    errors of the folds cancel in their mean. The distribution of the largest error comes from
    drawing units of rows and studentising anew each time, without a refit.
    """
    # one fit per fold, applied to what it left out: together an output for every row of the table
    sides = sample.by_fold(_outputs_left_out, n_folds, floors, fit)
    u, v = (standardised(side, sample.weights) for side in sides)
    f = mean_of(u * v, sample.weights)
    fitted = fisher(fidelity_on(fit, sample))
    # a fold fits fewer rows than the table has, so that its optimism is larger
    share = 1.0 - 1.0 / min(n_folds, sample.dependence.n_units)
    optimism = np.maximum(fitted - fisher(f), 0.0) * share
    psi = (u * v - 0.5 * f * (u * u + v * v)) / np.maximum(1.0 - f**2, 1e-12)
    spread, drawn = draws.errors(psi)
    # the fluctuation of the fit, and that of its optimism, each add about p/n to the variance
    spread = spread * np.sqrt(1.0 + 2.0 * len(sample.names) / sample.dependence.n_effective)
    return Errors(fitted, optimism, spread, drawn, u)


def _outputs_left_out(
    sample: Resampler, train: Any, test: Any, floors: Array, fit: Fitted
) -> tuple[Array, Array]:
    try:
        fold = sample.fit(train, floors=floors, warm=fit.result)
    except InvalidTableError as error:
        raise InvalidTableError(
            f"{error} This is about {len(train)} of {len(sample.rows)} rows: what holds for the "
            "population is measured on the others."
        ) from error
    outputs, sources = sample.sides(fold)
    return outputs[test], sources[test]


class Draws:
    """Draws of units (rows, groups or blocks) with replacement, made once for any values."""

    def __init__(self, dependence: Dependence, n_draws: int, seed: int) -> None:
        self.dependence, self._part = dependence, dependence.units()
        rng = np.random.default_rng(seed)
        size = min(dependence.n_units, _MOST_UNITS)
        if size < dependence.n_units:
            self._part = rng.permutation(np.arange(dependence.n_units) % size)[self._part]
        places = rng.integers(size, size=(n_draws, size)) + size * np.arange(n_draws)[:, None]
        drawn = np.bincount(places.ravel(), minlength=n_draws * size).reshape(n_draws, size)
        self.drawn = drawn.astype(np.float64)

    def errors(self, values: Array) -> tuple[Array, Array]:
        """Standard errors of means of rows' values, and draws of their studentised errors.

        Each draw is divided by its own standard error, which makes the quantiles right to second
        order (the bootstrap-t).
        """
        sums = self.dependence.sums(values, self._part)
        total = float(len(sums))
        centred = sums - sums.mean(axis=0)
        squares = centred * centred
        spread = np.sqrt(squares.sum(axis=0) / (total * (total - 1.0)))
        means = self.drawn @ centred / total
        variance = self.drawn @ squares / total - means * means
        # a draw of few different units may have no spread at all
        least = 1e-3 * np.maximum(spread**2, 1e-300)
        return spread, means / np.sqrt(np.maximum(variance / (total - 1.0), least))


def fidelity_on(fit: Fitted, sample: Resampler) -> Array:
    """Correlations of a fit's outputs with their sources, on all rows of the table."""
    outputs, sources = sample.sides(fit)
    return mean_of(outputs * sources, sample.weights)


def threshold_influence(Z: Array, threshold: Threshold) -> Array:
    """Influence values ψ = ½ Σ_j λ_j z_j (z̃_j − ρ★ z_j) of standardised rows on ρ★."""
    return np.asarray(0.5 * (Z * (Z @ threshold.T - threshold.value * Z)) @ threshold.weights)


def residual_bounds(outputs: Array, draws: Draws, confidence: float) -> Array:
    """Bounds for the correlations of each output with the others, in the population.

    The ``outputs`` are standardised, each from a fit that left its row out, and the ``confidence``
    is that of all correlations together.
    """
    n, k = outputs.shape
    left, right = np.triu_indices(k, 1)
    if not len(left):
        return np.zeros(k)
    # pass by pass, because the values of all rows and pairs may not fit into memory; the largest
    # error of each draw is over all of them, so that the bounds hold together
    largest = np.zeros(len(draws.drawn))
    size, spread = np.empty(len(left)), np.empty(len(left))
    width = max(1, _CELLS // n)
    for start in range(0, len(left), width):
        here = slice(start, start + width)
        a, b = outputs[:, left[here]], outputs[:, right[here]]
        product = a * b
        g = mean_of(product, draws.dependence.weights)
        # influence of each row on artanh of this correlation
        values = (product - 0.5 * g * (a * a + b * b)) / (1.0 - np.minimum(g * g, HIGHEST))
        size[here] = np.abs(fisher(g))
        spread[here], errors = draws.errors(values)
        np.maximum(largest, np.abs(errors).max(axis=1), out=largest)
    bound = np.tanh(size + float(np.quantile(largest, confidence)) * spread)
    out = np.zeros(k)
    np.maximum.at(out, left, bound)
    np.maximum.at(out, right, bound)
    return out
