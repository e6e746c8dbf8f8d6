"""The criteria against loops over pairs of outputs, and their conjugates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), criterion=st.sampled_from(["squared", "worst", "absolute"]))
def test_conjugates_satisfy_fenchels_inequality(seed, criterion):
    rng = np.random.default_rng(seed)
    p = 5
    omega = rng.uniform(0.1, 2, (p, p))
    omega = np.triu(omega, 1) + np.triu(omega, 1).T
    G, H = (rng.normal(size=(p, p)) for _ in range(2))
    G, H = G + G.T, H + H.T
    H = criteria.admissible(criterion, H, omega)
    pairing = float(np.sum(criteria.off(G) * criteria.off(H)))
    total = criteria.value(criterion, G, omega) + criteria.conjugate(criterion, H, omega)
    assert pairing <= total + 1e-9
    if criterion == "squared":
        best = omega * G
        attained = criteria.conjugate(criterion, best, omega) + criteria.value(criterion, G, omega)
        assert float(np.sum(G * criteria.off(best))) == pytest.approx(attained)
