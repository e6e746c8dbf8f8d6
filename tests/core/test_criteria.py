"""The criteria against loops over pairs of outputs."""

import numpy as np
import pytest

from skcoral.core import criteria


def test_criteria_against_loops_over_pairs():
    Y = np.random.default_rng(5).normal(size=(40, 6)) @ np.random.default_rng(6).normal(size=(6, 6))
    G = np.corrcoef(Y.T)
    pairs = np.array([np.corrcoef(Y[:, i], Y[:, j])[0, 1] for i in range(6) for j in range(i)])
    one_pair = np.zeros((6, 6))
    one_pair[1, 4] = one_pair[4, 1] = 3.0
    g = np.corrcoef(Y[:, 1], Y[:, 4])[0, 1]
    wanted = {
        "squared": ((pairs**2).sum(), 3 * g**2),
        "worst": (np.abs(pairs).max(), 3 * abs(g)),
        "absolute": (np.abs(pairs).sum(), 3 * abs(g)),
    }
    for criterion, (plain, weighted) in wanted.items():
        assert criteria.value(criterion, G) == pytest.approx(plain, rel=1e-12)
        assert criteria.value(criterion, G, one_pair) == pytest.approx(weighted)
        assert criteria.value(criterion, np.eye(1)) == 0.0
        residuals = np.stack([criteria.off(G), np.zeros((6, 6))])
        assert criteria.values(criterion, residuals) == pytest.approx([plain, 0.0])
