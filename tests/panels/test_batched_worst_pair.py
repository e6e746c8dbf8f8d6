"""The worst pair of a stack against one problem at a time: values, tie-breaks and bounds."""

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.panels.batched_exact import thresholds
from skcoral.panels.batched_tradeoff import above_thresholds, tradeoffs
from skcoral.panels.batched_worst_pair import beyond_squares, worst_pairs
from skcoral.tradeoff.dual import dual_bound


def correlations(n, p, rows, load, seed):
    """Correlation matrices of a few rows each: three factors and noise with fat tails."""
    rng = np.random.default_rng(seed)
    mix = load * rng.normal(size=(3, p))
    tables = rng.standard_t(5, size=(n, rows, 3)) @ mix + rng.standard_t(5, size=(n, rows, p))
    return np.array([np.corrcoef(table.T) for table in tables])


@pytest.mark.parametrize(
    ("p", "load", "floors"),
    [(9, 1.0, np.full(9, 0.9)), (6, 0.6, np.full(6, 0.97)), (7, 2.0, np.linspace(0.88, 0.99, 7))],
    ids=["ties", "all bind", "unequal floors"],
)
def test_a_stack_has_the_answers_of_single_problems(p, load, floors):
    R = correlations(24, p, 40, load, seed=p)
    th = thresholds(R, np.ones((len(R), p)))
    R, weights = R[th.upper < floors.min()], th.weights[th.upper < floors.min()]
    squares = tradeoffs(R, floors, *above_thresholds(R, floors, weights))
    multipliers, H, worst = beyond_squares(R, floors, squares)
    found, _, _ = worst_pairs(R, floors, multipliers, H, worst)
    assert len(R) > 8
    assert found.solved.mean() > 0.8  # the others are solved one by one
    for k in np.flatnonzero(found.solved):
        single = decorrelate(R[k], floors, criterion="worst")
        apart = found.T[k] - single.T  # nearly equal columns may trade coefficients
        assert np.sqrt(np.einsum("ij,ij->j", apart, R[k] @ apart)).max() < 1e-8  # of the outputs
        G = found.T[k].T @ R[k] @ found.T[k]
        value = np.abs(G - np.diag(np.diag(G))).max()
        assert np.allclose(np.diag(G), 1.0, atol=1e-12)
        assert (np.einsum("ij,ij->j", R[k], found.T[k]) >= floors).all()
        bound = dual_bound(R[k], floors, found.multipliers[k], found.H[k], "worst")
        assert value - 4e-9 <= bound <= value + 1e-12
        assert found.lower_bound[k] == pytest.approx(bound, abs=1e-11)
