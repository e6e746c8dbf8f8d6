"""Whether what is proved for a correlation matrix holds on the rows, in spite of rounding.

Nearly dependent columns need large coefficients, which magnify the rounding of the matrix: with a
condition number of 1e11 the outputs' variances are off by 1e-6 although the matrix's are not.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skcoral.data.correlation import sample_correlation
from skcoral.data.moments import Moments
from skcoral.estimator.attributes import with_notes
from skcoral.exceptions import RoundingWarning, warn

#: Differences between rows and matrix up to this are those of any computation.
NEGLIGIBLE = 1e-7
_EPS = float(np.finfo(np.float64).eps)


def measure_rounding(estimator: Any, rows: Any = None, sample_weight: Any = None) -> None:
    """Measure a fresh fit on its rows, or bound the rounding without them; warn with the figures.

    The sentence is kept in ``result_.notes.rounding``. Nothing is done for a matrix by
    another estimator, which promises nothing about the rows, nor for small coefficients. Entries of
    R are off by a few units in the last place, so ``tᵢᵀRtⱼ`` is off by that many times
    ``‖tᵢ‖₁‖tⱼ‖₁``.
    """
    result = estimator.result_
    if estimator.estimate_.source or not isinstance(result.T, np.ndarray):
        return
    bound = 4.0 * _EPS * float(np.abs(result.T).sum(axis=0).max(initial=0.0)) ** 2
    if bound <= NEGLIGIBLE or not isinstance(result.correlation, np.ndarray):
        return
    difference = (
        "On the rows, variances, correlations and fidelities of the outputs may differ by up "
        f"to {bound:.1e} from what is proved for the correlation matrix"
    )
    if rows is not None:
        difference = _on_rows(estimator, rows, sample_weight)
    if difference:
        sentence = (
            f"{difference}: the columns are nearly dependent, and rounding is magnified. Drop one "
            "of them, or shrink with covariance='LedoitWolf'."
        )
        estimator.result_ = with_notes(result, rounding=sentence)
        warn(sentence, RoundingWarning)


def _on_rows(estimator: Any, rows: Any, sample_weight: Any) -> str:
    """Figures of the outputs of these very rows; empty where they agree with the matrix."""
    result = estimator.result_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        Z = estimator.standardised(rows)
    outputs, targets = result.outputs_and_sources(Z)
    k = outputs.shape[1]
    both = Moments([f"x{j}" for j in range(2 * k)])
    both.update(np.hstack((outputs, targets)), sample_weight=sample_weight)
    variance = float(np.abs(np.diag(both.covariance)[:k] - 1.0).max())
    R = sample_correlation(both)
    apart = np.abs(R[:k, :k] - result.correlation)[~np.eye(k, dtype=bool)]
    correlation = float(apart.max(initial=0.0))
    fidelity = float(np.abs(np.diag(R[:k, k:]) - result.fidelity).max())
    if max(variance, correlation, fidelity) <= NEGLIGIBLE:
        return ""
    return (
        f"On the rows, variances of the outputs differ from 1 by up to {variance:.1e}, "
        f"correlations by {correlation:.1e} and fidelities by {fidelity:.1e} from what is proved "
        "for the correlation matrix"
    )
