"""Floors and pair weights that differ by orders of magnitude leave no gap open."""

from pathlib import Path

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check
from skcoral.exceptions import NotCertifiedWarning

PROBLEMS = Path(__file__).parent / "problems"
CRITERIA = ("squared", "worst", "absolute")
FLOORS = np.array([0.0, 0.5, 0.9, 0.99, 0.999, 1 - 1e-5, 1 - 1e-6, 1 - 1e-8, 1.0])


def spread_weights(rng, p, zeros):
    omega = 10.0 ** rng.uniform(-8, 0, (p, p)) * (rng.uniform(size=(p, p)) >= zeros)
    return np.triu(omega, 1) + np.triu(omega, 1).T


def certified(R, floors, **settings):
    result = decorrelate(R, floors, **settings)
    assert result.status in {"optimal", "exact"}, (result, floors, settings)
    found = check(result, R)
    assert found.passed, found.problems
    return result


@pytest.mark.parametrize("criterion", CRITERIA)
def test_floors_from_nine_tenths_to_next_to_one(criterion):
    R = np.full((5, 5), 0.5) + 0.5 * np.eye(5)
    certified(R, [0.9, 0.9, 0.99, 0.999, 0.99999], criterion=criterion)


def test_weights_from_one_to_a_hundred_millionth():
    R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    omega = np.zeros((3, 3))
    omega[1, 0], omega[2, 0], omega[2, 1] = 1e-4, 100.0, 1e-6
    result = certified(R, [0.99, 0.99, 0.9], criterion="absolute", pair_weights=omega + omega.T)
    assert result.objective < 3e-5


@pytest.mark.parametrize("criterion", CRITERIA)
def test_random_mixtures(random_correlation, criterion):
    rng = np.random.default_rng(7)
    for seed in range(40):
        p = int(rng.integers(2, 9))
        R = random_correlation(p, seed)
        omega = None if seed % 2 else spread_weights(rng, p, 0.1)
        certified(R, rng.choice(FLOORS, p), criterion=criterion, pair_weights=omega)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_chains_of_small_prices(criterion):
    """Nearly dependent variables with floors that bind one after the other."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 6))
    rows[:, 0] = 0.7 * rows[:, 1:].sum(axis=1) + 3e-3 * rows[:, 0]
    R = np.corrcoef(rows.T)
    for floors in ([0.999, 0.5, 0.9, 0.3, 0.99, 0.7], np.linspace(0.5, 0.9999, 6)):
        certified(R, floors, criterion=criterion)


@pytest.mark.parametrize("path", sorted(PROBLEMS.glob("*.npz")), ids=lambda path: path.stem)
def test_stored_problems_are_solved_to_the_end(path):
    """Matrices, floors and weights at which an interior-point method can stop too early."""
    with np.load(path) as problem:
        R, floors, criterion = problem["R"], problem["floors"], str(problem["criterion"])
        weights = problem.get("weights")
    assert certified(R, floors, criterion=criterion, pair_weights=weights).status == "optimal"


def test_rounding_that_leaves_no_floor_to_bind():
    # 1e-9 above the threshold, condition 1e8, weights over eight decades: no digits for a bound
    with np.load(PROBLEMS / "hard" / "worst_no_floor_left.npz") as kept:
        R, floors, weights = kept["R"], kept["floors"], kept["weights"]
    with pytest.warns(NotCertifiedWarning):
        result = decorrelate(R, floors, criterion="worst", pair_weights=weights)
    assert check(result, R).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_mixtures(random_correlation, criterion):
    rng = np.random.default_rng(11)
    for seed in range(1500):
        p = int(rng.integers(2, 14))
        R = random_correlation(p, seed)
        omega = None if seed % 2 else spread_weights(rng, p, 0.1)
        certified(R, rng.choice(FLOORS, p), criterion=criterion, pair_weights=omega)
