"""An interval for ρ★ of the population, corrected for bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcoral import api
from skcoral.results import Array
from skcoral.stability.resampling import Resampler
from skcoral.stability.sampling_errors import Draws, mean_of, standardised

_DRAWS = 2000


def threshold_interval(
    sample: Resampler, value: float, confidence: float, *, n_folds: int = 10, seed: int = 0
) -> tuple[float, float, float]:
    """The estimate of ρ★ without its bias, and the two ends of its interval.

    ρ★ is a concave function of R, so that of a sample is too low on average. The weights λ and the
    root S of a fold give an upper bound that is linear in R, ``½ (tr(S⁻¹ D R D) + tr S)``; on the
    rows that the fold left out it is too high on average, by as much to second order. Half-way
    between the two lies the estimate, and the interval reaches from the lower less its error to the
    higher plus its error, which is the error of the mean of the rows' influence values

        ψ = ½ Σ_j λ_j z_j (z̃_j − ρ★ z_j)

    with λ, T and ρ★ from the fold that left the row out, studentised by draws.

    Parameters
    ----------
    sample : Resampler
        The table and the settings that estimate its matrix.
    value : float
        ρ★ of the table.
    confidence : float
        Of the interval.
    n_folds, seed : int
        Parts that are left out in turn, and seed of the draws.
    """
    upper, psi = sample.by_fold(_left_out, n_folds)
    bound = float(mean_of(upper[:, None], sample.weights)[0])
    spread, draws = Draws(sample.dependence, _DRAWS, seed).errors(psi[:, None])
    width = float(spread[0]) * np.sqrt(1.0 + len(sample.names) / sample.dependence.n_effective)
    tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    low, high = (width * np.quantile(draws[:, 0], tails)).tolist()
    low, high = min(value, bound) - high, max(value, bound) - low
    return min(0.5 * (value + bound), 1.0), max(low, 0.0), min(high, 1.0)


def _left_out(sample: Resampler, train: Any, test: Any) -> tuple[Array, Array]:
    """What each row left out adds to the upper bound of a fold, and its influence."""
    table = sample.table(train)
    fold = api.threshold(table)
    rows = sample.rows if table.margins is None else table.margins.transform(sample.rows)
    Z = standardised(rows, sample.weights)[test]
    psi = 0.5 * (Z * (Z @ fold.T - fold.value * Z)) @ fold.weights
    # the bound itself, where the variances of the rows left out are put at one as R has them
    return fold.value + psi, psi
