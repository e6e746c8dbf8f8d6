"""Systems for the support tests, built from formulas only."""

import numpy as np
import pytest


def make_simulated(p, seed=1):
    """The paper's construction."""
    G = np.random.default_rng(seed).normal(size=(p, p))
    M = G @ G.T / p + 0.5 * np.eye(p)
    d = np.sqrt(np.diag(M))
    R = M / np.outer(d, d)
    np.fill_diagonal(R, 1.0)
    return R


@pytest.fixture(scope="session")
def simulated():
    return make_simulated


@pytest.fixture(scope="session")
def paper_system():
    """The paper's p = 18 matrix and its support |R_ij| > 0.15."""
    R = make_simulated(18)
    return R, (np.abs(R) > 0.15) | np.eye(18, dtype=bool)


@pytest.fixture(scope="session")
def sparse_cases():
    """Small systems with thin and uneven supports, one column without freedom among them."""
    cases = []
    for p, seed, density in ((4, 3, 0.4), (5, 7, 0.5), (6, 11, 0.25)):
        rng = np.random.default_rng(seed)
        R = make_simulated(p, seed)
        mask = (rng.random((p, p)) < density) | np.eye(p, dtype=bool)
        mask[:, 1] = np.arange(p) == 1
        cases.append((R, mask))
    return cases
