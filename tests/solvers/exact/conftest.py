"""Correlation matrices that are easy, ugly, or both."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral.core.linalg import correlation_of_covariance


def random_correlation(kind: str, p: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "spectrum":
        Q, _ = np.linalg.qr(rng.normal(size=(p, p)))
        return correlation_of_covariance((Q * np.logspace(0, -rng.uniform(0, 7), p)) @ Q.T)
    if kind == "factor":
        loadings = rng.normal(size=(p, 2))
        return correlation_of_covariance(
            loadings @ loadings.T + np.diag(10 ** rng.uniform(-5, 0, p))
        )
    if kind == "table":
        X = rng.normal(size=(3 * p, p)) * 10 ** rng.uniform(-2, 2, p)
        X[:, 0] += X[:, -1]
        return np.corrcoef(X.T)
    if kind == "block":
        R = np.eye(p)
        half = p // 2
        R[:half, :half] = rng.uniform(0, 0.99)
        np.fill_diagonal(R, 1.0)
        return R
    assert kind == "autoregressive"
    r = rng.uniform(-0.99, 0.99)
    return r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


@pytest.fixture(scope="session")
def small_factor_model():
    """Makes correlations of three to six variables with two factors, from a random generator."""

    def make(rng: np.random.Generator) -> np.ndarray:
        p = int(rng.integers(3, 7))
        loadings = rng.normal(size=(p, 2))
        return correlation_of_covariance(loadings @ loadings.T + np.diag(rng.uniform(0.05, 1, p)))

    return make


KINDS = ("spectrum", "factor", "table", "block", "autoregressive")


@pytest.fixture(params=[(kind, seed) for kind in KINDS for seed in range(6)], ids=str)
def ugly(request: pytest.FixtureRequest) -> np.ndarray:
    """Random correlation matrix of one of several kinds, condition number up to 1e8."""
    kind, seed = request.param
    rng = np.random.default_rng([seed, len(kind)])
    while True:
        R = random_correlation(kind, int(rng.integers(2, 20)), rng)
        if np.linalg.cond(R) < 1e8:
            return R
