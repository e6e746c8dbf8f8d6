"""Generators give correlation matrices with the property that they are named after."""

import numpy as np
import pytest

from skcoral.datasets import make_factor_system, make_system
from skcoral.exceptions import InvalidArgumentError


@pytest.mark.parametrize("make", [lambda: make_system(7, seed=3), lambda: make_factor_system(9, 2)])
def test_is_a_positive_definite_correlation_matrix(make):
    R = make()
    assert np.array_equal(R, R.T)
    assert np.array_equal(np.diag(R), np.ones(len(R)))
    np.linalg.cholesky(R)
    assert np.array_equal(R, make())


@pytest.mark.parametrize("p", [1, 6, 18])
def test_make_system_follows_the_construction_entry_by_entry(p):
    G = np.random.default_rng(1).normal(size=(p, p))
    R = make_system(p)
    for i in range(p):
        for j in range(p):
            m = [sum(G[a] * G[b]) / p + 0.5 * (a == b) for a, b in ((i, j), (i, i), (j, j))]
            assert R[i, j] == pytest.approx(m[0] / np.sqrt(m[1] * m[2]), abs=1e-14)


def test_factor_model_has_the_rank_and_the_communality():
    common = make_factor_system(15, 4, communality=0.8, seed=5) - 0.2 * np.eye(15)
    values = np.linalg.eigvalsh(common)
    assert np.abs(values[:11]).max() < 1e-13
    assert values[11] > 0.01
    assert np.allclose(np.diag(common), 0.8, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make_system(0), "p must be .* 1.* got 0"),
        (lambda: make_system("6"), "got '6'"),
        (lambda: make_system(4, seed=-1), "seed must be a whole number of at least 0"),
        (lambda: make_factor_system(4, 2.5), "n_factors"),
        (lambda: make_factor_system(4, communality=1.0), "communality must be a number in"),
    ],
)
def test_refuses_with_a_reason(call, words):
    with pytest.raises(InvalidArgumentError, match=words):
        call()
