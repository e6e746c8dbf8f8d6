"""What results of the exact regime report, at the size of rounding errors."""

import warnings

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.core.linalg import gram_defect
from skcoral.datasets import make_system
from skcoral.solvers.exact import best_exact, exact_threshold
from skcoral.solvers.exact.threshold import fidelity_allowance


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_no_more_steps_than_allowed(max_iter):
    R = make_system(18)
    assert best_exact(R, np.full(18, 0.957), max_iter=max_iter).n_iter <= max_iter
    assert exact_threshold(R, max_iter=max_iter).n_iter <= max_iter
    assert exact_threshold(R).n_iter > 3


@pytest.mark.parametrize("seed", range(4))
def test_correlations_are_those_of_the_outputs_to_the_last_digits(seed):
    """Nearly collinear: T has large entries, and TᵀRT misses the identity by what is reported."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5))
    X = np.column_stack([X, X[:, 0] + 3e-5 * rng.normal(size=40)])
    R = np.corrcoef(X.T)
    R = 0.5 * (R + R.T)  # exactly a correlation matrix: the entries of T are 10⁴
    np.fill_diagonal(R, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = decorrelate(R, 0.1)
    pairs = np.triu_indices(6, 1)
    left = gram_defect(R, result.T, precise=True)[pairs]
    assert np.abs(left).max() > 1e-15
    assert np.abs(result.correlation[pairs] - left).max() <= 0.5 * np.abs(left).max()


def test_what_an_inexact_decorrelator_may_lack():
    """T (TᵀCT)^{-1/2} is exact; its fidelities lie no further below those of T than is said."""
    rng = np.random.default_rng(1)
    for scale in (1.0, 25.0):
        A = rng.normal(size=(5, 5))
        C = scale * (A @ A.T + np.eye(5))
        values, vectors = np.linalg.eigh(C)
        T = (vectors / np.sqrt(values)) @ vectors.T + 0.003 / scale * rng.normal(size=(5, 5))
        G = T.T @ C @ T
        size = float(np.linalg.norm(G - np.eye(5)))
        g, V = np.linalg.eigh(G)
        exact = T @ (V / np.sqrt(g)) @ V.T
        lack = np.diag(C @ T) - np.diag(C @ exact)
        allowed = fidelity_allowance(C, T, size)
        assert np.all(lack <= allowed)
        # the bound by norms: no more than what a change of that size can do
        assert np.all(allowed <= 0.75 * size * np.sqrt(np.diag(C)) * (1 + size) + 1e-12)
    assert np.isinf(fidelity_allowance(C, T, 1.0)).all()
    # √(1 + δ) for the length of T, and what the inverse root changes of it: neither is left out
    found = fidelity_allowance(np.eye(2), np.eye(2), 0.5)
    np.testing.assert_allclose(found, np.sqrt(1.5) * (np.sqrt(2) - 1), rtol=1e-14)
