"""Every generator gives a correlation matrix with the property it is named after."""

import numpy as np
import pytest

from skcoral.datasets import (
    make_ar_system,
    make_block_system,
    make_factor_system,
    make_near_singular_system,
    make_spectrum_system,
    make_system,
    make_toeplitz_system,
)
from skcoral.exceptions import InvalidArgumentError

SYSTEMS = {
    "paper": lambda: make_system(7, seed=3),
    "factor": lambda: make_factor_system(9, 2),
    "block": lambda: make_block_system([3, 1, 4], within=[0.9, 0.0, 0.2], between=-0.05),
    "ar": lambda: make_ar_system(8, -0.6),
    "toeplitz": lambda: make_toeplitz_system([1, 0.3, 0.2, -0.1]),
    "spectrum": lambda: make_spectrum_system([3.0, 0.5, 0.4, 0.1]),
    "near singular": lambda: make_near_singular_system(12, condition=1e10),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_is_a_positive_definite_correlation_matrix(name):
    R = SYSTEMS[name]()
    assert R.dtype == np.float64
    assert np.array_equal(R, R.T)
    assert np.array_equal(np.diag(R), np.ones(len(R)))
    np.linalg.cholesky(R)
    assert np.array_equal(R, SYSTEMS[name]())


@pytest.mark.parametrize("p", [1, 6, 18, 50])
def test_make_system_follows_the_construction_entry_by_entry(p):
    G = np.random.default_rng(1).normal(size=(p, p))
    R = make_system(p)
    for i in range(p):
        for j in range(p):
            m = [sum(G[a] * G[b]) / p + 0.5 * (a == b) for a, b in ((i, j), (i, i), (j, j))]
            assert R[i, j] == pytest.approx(m[0] / np.sqrt(m[1] * m[2]), abs=1e-14)


def test_factor_model_has_the_rank_and_the_communality():
    R = make_factor_system(15, 4, communality=0.8, seed=5)
    common = R - 0.2 * np.eye(15)
    values = np.linalg.eigvalsh(common)
    assert np.abs(values[:11]).max() < 1e-13
    assert values[11] > 0.01
    assert np.allclose(np.diag(common), 0.8, atol=1e-15)


def test_autoregression_has_a_tridiagonal_inverse():
    inverse = np.linalg.inv(make_ar_system(7, 0.8))
    far = np.abs(np.subtract.outer(np.arange(7), np.arange(7))) > 1
    assert np.abs(inverse[far]).max() < 1e-13
    assert np.abs(inverse[~far]).min() > 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "values",
    [[1.0, 1.0, 1.0], [2.9, 0.05, 0.05], [3.0, 1.5, 1.0, 0.3, 0.15, 0.05], np.full(30, 1.0)],
    ids=["identity", "dominant", "decay", "large identity"],
)
def test_spectrum_is_kept_to_rounding(values, seed):
    R = make_spectrum_system(values, seed=seed)
    assert np.allclose(np.linalg.eigvalsh(R), np.sort(values), atol=1e-13)


@pytest.mark.parametrize("condition", [10.0, 1e6, 1e12])
def test_near_singular_condition_number(condition):
    values = np.linalg.eigvalsh(make_near_singular_system(10, condition=condition))
    assert values[-1] / values[0] == pytest.approx(condition, rel=1e-2)
    assert values[-1] / values[1] < 4.1


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make_system(0), "p must be a whole number of at least 1, got 0"),
        (lambda: make_system(6.0), r"got 6\.0"),
        (lambda: make_system("6"), "got '6'"),
        (lambda: make_system(4, seed=-1), "seed must be a whole number of at least 0"),
        (lambda: make_spectrum_system([1, 1], seed=None), "seed"),
        (lambda: make_factor_system(4, 0), "n_factors"),
        (lambda: make_factor_system(4, 2.5), "n_factors"),
        (lambda: make_factor_system(4, communality=1.0), "communality"),
        (lambda: make_factor_system(4, communality="0.3"), "communality must be a number in"),
        (lambda: make_factor_system(40, 1, communality=1 - 1e-16), "least eigenvalue"),
        (lambda: make_block_system([]), "sizes"),
        (lambda: make_block_system(3), "sizes"),
        (lambda: make_block_system([2.5, 1]), r"whole numbers.*2\.5"),
        (lambda: make_block_system(["2", 1]), "entry 0 is the text '2'"),
        (lambda: make_block_system([2, 2], within=[0.1, 0.2, 0.3]), "one per block"),
        (lambda: make_block_system([2, 2], within=NAN), "within must contain only finite"),
        (lambda: make_block_system([2, 2], between=NAN), "between must contain only finite"),
        (lambda: make_block_system([2, 2], between=None), "between must be one number"),
        (lambda: make_block_system([3, 3], within=0.1, between=0.9), "least eigenvalue"),
        (lambda: make_ar_system(3, 1.0), "phi"),
        (lambda: make_ar_system(3, NAN), "phi"),
        (lambda: make_ar_system(2.5), "p must be a whole number"),
        (lambda: make_ar_system(4, 1 - 1e-16), "least eigenvalue"),
        (lambda: make_toeplitz_system([0.5, 0.1]), "starts with 1"),
        (lambda: make_toeplitz_system([1, -0.9, -0.9]), "least eigenvalue"),
        (lambda: make_toeplitz_system([1, INF]), "finite"),
        (lambda: make_toeplitz_system([1, "a"]), "the text 'a'"),
        (lambda: make_spectrum_system([2.0, 1.0]), "sum to their number 2"),
        (lambda: make_spectrum_system([2.0, 0.0]), "positive"),
        (lambda: make_spectrum_system([INF, 1.0]), "finite"),
        (lambda: make_spectrum_system([]), "non-empty"),
        (lambda: make_spectrum_system([2 - 1e-17, 1e-17]), "least eigenvalue"),
        (lambda: make_near_singular_system(1), "at least 2, got 1"),
        (lambda: make_near_singular_system(3, condition=1.0), "above 1"),
        (lambda: make_near_singular_system(3, condition=INF), "finite"),
        (lambda: make_near_singular_system(3, condition=1e18), "least eigenvalue"),
    ],
)
def test_refuses_with_a_reason(call, words):
    with pytest.raises(InvalidArgumentError, match=words):
        call()
