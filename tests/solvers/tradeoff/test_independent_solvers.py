"""The same numbers by a conic solver, and prices by differences."""

import numpy as np
import pytest

from skcoral import decorrelate, threshold

CRITERIA = ("squared", "worst", "absolute")


def floors_for(R, seed):
    """Common floors above the threshold for even seeds, mixed ones (some without) for odd seeds."""
    rng = np.random.default_rng(seed)
    rho = threshold(R).upper
    if seed % 2 == 0:
        return np.full(len(R), rho + rng.uniform(0.2, 0.9) * (1 - rho))
    floors = rng.uniform(0.3, 0.995, len(R))
    floors[rng.integers(len(R))] = 0.995
    floors[rng.integers(len(R))] = 0.0
    return floors


def pair_weights_for(p, seed):
    """None, weights of all pairs, or some of them zero."""
    omega = np.triu(np.random.default_rng(seed).uniform(0.2, 3.0, (p, p)), 1)
    if seed % 3 == 2:
        omega[0, 1] = omega[-2, -1] = 0.0
    return None if seed % 3 == 0 else omega + omega.T


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("seed", "p"), list(enumerate([3, 4, 4, 5, 5, 6, 8, 10, 12])))
def test_conic_solver_agrees(random_correlation, naive, seed, p, criterion):
    R = random_correlation(p, seed)
    floors, omega = floors_for(R, seed), pair_weights_for(p, seed)
    result = decorrelate(R, floors, criterion=criterion, pair_weights=omega)
    reference = naive.sdp(R, floors, criterion, omega)
    assert result.objective == pytest.approx(reference, abs=1e-6 * max(1.0, reference))
    assert result.lower_bound == pytest.approx(reference, abs=1e-6 * max(1.0, reference))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("system", ["p6", "p18", "wdi", "wine"])
def test_conic_solver_agrees_on_the_papers_systems(systems, naive, verify, system, criterion):
    R = systems[system]
    result = decorrelate(R, 0.98, criterion=criterion)
    reference = naive.sdp(R, 0.98, criterion)
    assert result.objective == pytest.approx(reference, abs=1e-6 * max(1.0, reference))
    verify(R, result)


def test_prices_are_the_derivatives(systems):
    R = systems["wine"]
    floors = np.linspace(0.86, 0.97, 13)
    for criterion in ("squared", "absolute"):
        result = decorrelate(R, floors, criterion=criterion)
        step = 1e-4
        for j in (0, 5, 12):
            up, down = floors.copy(), floors.copy()
            up[j] += step
            down[j] -= step
            change = (
                decorrelate(R, up, criterion=criterion).objective
                - decorrelate(R, down, criterion=criterion).objective
            )
            assert result.prices[j] == pytest.approx(change / (2 * step), rel=1e-3, abs=1e-3)
