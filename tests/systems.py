"""Correlation matrices with given spectra, for tests of any room."""

import numpy as np
from scipy.stats import random_correlation


def with_spectrum(eigenvalues, *, seed=1):
    """A random correlation matrix whose eigenvalues are proportional to these."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    R = random_correlation.rvs(values * (len(values) / values.sum()), random_state=seed)
    R = (R + R.T) / 2
    np.fill_diagonal(R, 1.0)
    return R


def nearly_singular(p, *, condition=1e8, seed=1):
    """One near-perfect linear relation among all variables; the others over a factor of four."""
    values = np.linspace(1.0, 0.25, p)
    values[-1] = 1.0 / condition
    return with_spectrum(values, seed=seed)
