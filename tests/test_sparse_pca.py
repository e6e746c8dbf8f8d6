"""Sparse PCA as a baseline: the paper's figures."""

import numpy as np
import pytest

from skcoral.baselines import sparse_pca


def simulated(p, seed=1):
    G = np.random.default_rng(seed).normal(size=(p, p))
    M = G @ G.T / p + 0.5 * np.eye(p)
    d = np.sqrt(np.diag(M))
    return M / np.outer(d, d)


def offdiagonal(R, T):
    G = np.abs(T.T @ R @ T)
    return G[np.triu_indices(len(R), 1)]


def test_columns_have_unit_variance_and_belong_to_their_variable():
    R = simulated(6)
    found = sparse_pca(R, alpha=5.0)
    np.testing.assert_allclose(np.diag(found.T.T @ R @ found.T), 1, atol=1e-12)
    np.testing.assert_allclose(found.fidelity, np.diag(R @ found.T), atol=1e-12)
    assert (found.fidelity >= 0).all()
    assert sorted(found.source) == list(range(6))
    assert (found.T == 0).any()


def test_a_huge_penalty_gives_back_the_variables():
    R = simulated(5)
    found = sparse_pca(R, alpha=30.0)
    np.testing.assert_array_equal(found.T, np.eye(5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "nonzeros", "worst", "mean"),
    [(0.1, 85, 0.5639, 0.1226), (0.5, 20, 0.3742, 0.1089), (1.0, 18, 0.3742, 0.1082)],
)
def test_the_papers_table(alpha, nonzeros, worst, mean):
    R = simulated(18)
    found = sparse_pca(R, alpha=alpha)
    residual = offdiagonal(R, found.T)
    assert np.count_nonzero(found.T) == nonzeros
    assert residual.max() == pytest.approx(worst, abs=5e-5)
    assert residual.mean() == pytest.approx(mean, abs=5e-5)
    if alpha == 0.1:
        assert found.min_fidelity == pytest.approx(0.4337, abs=5e-5)
        assert found.mean_fidelity == pytest.approx(0.8343, abs=5e-5)
