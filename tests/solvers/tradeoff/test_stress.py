"""Hundreds of systems of all kinds: feasible, certified, and without unexpected warnings."""

import numpy as np
import pytest

from skcoral import datasets, decorrelate


def floors(mode, p, rng):
    if mode == 0:
        return np.full(p, rng.uniform(0.8, 0.9999))
    if mode == 1:
        return rng.uniform(0.2, 0.999, p)
    if mode == 2:
        return np.where(rng.uniform(size=p) < 0.4, 0.0, rng.choice([0.9, 0.99, 0.999, 1.0], p))
    return np.full(p, 1 - 10 ** rng.uniform(-6, -1))


def weights(p, rng):
    if rng.uniform() < 0.7:
        return None
    omega = np.triu(rng.uniform(0.05, 2, (p, p)), 1)
    if rng.uniform() < 0.5:
        omega *= rng.uniform(size=(p, p)) < 0.8
    return omega + omega.T


def examine(seed, criterion, system):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 14))
    R = system(seed % 5, p, rng)
    rho = floors(int(rng.integers(4)), p, rng)
    omega = weights(p, rng)
    result = decorrelate(R, rho, criterion=criterion, pair_weights=omega)
    assert result.status in {"optimal", "exact"}
    wide, exact_R = result.T.astype(np.longdouble), R.astype(np.longdouble)
    np.testing.assert_allclose(np.diag(wide.T @ exact_R @ wide), 1.0, rtol=0, atol=1e-10)
    assert np.all(np.diag(exact_R @ wide) >= rho - 1e-9)
    assert -1e-8 <= result.gap <= 1e-7 * max(1.0, result.objective)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_systems_of_all_kinds(criterion, system_of_kind):
    for seed in range(40):
        examine(seed, criterion, system_of_kind)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_many_more_systems(criterion, system_of_kind):
    for seed in range(40, 300):
        examine(seed, criterion, system_of_kind)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_larger_systems(criterion):
    for p in (100, 200):
        R = datasets.make_system(p)
        for rho in (0.955, 0.97, 0.99):
            result = decorrelate(R, rho, criterion=criterion)
            assert result.status == "optimal"
