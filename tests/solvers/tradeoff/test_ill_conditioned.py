"""Difficult systems: nearly singular, equicorrelated, in blocks, at the limits."""

import numpy as np
import pytest
import scipy.linalg as sla

from skcoral import decorrelate, maximize_fidelity, threshold
from skcoral.certificates import check, prove
from systems import nearly_singular

CRITERIA = ("squared", "worst", "absolute")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_floors_of_zero_and_0999_mixed(systems, verify, criterion):
    for R in (systems["wine"], nearly_singular(12, condition=1e8)):
        floors = np.where(np.arange(len(R)) % 2 == 0, 0.999, 0.0)
        result = decorrelate(R, floors, criterion=criterion)
        verify(R, result)
        assert np.all(result.prices[floors == 0] == 0)
        free = floors == 0
        # Outputs without a floor are uncorrelated with everything, and as faithful as can be.
        assert np.abs(result.correlation[free] - np.eye(len(R))[free]).max() < 1e-6
        assert result.fidelity[free].min() > 0


def test_a_floor_that_does_not_bind_changes_nothing(systems):
    R = systems["wine"]
    base = np.where(np.arange(13) % 2 == 0, 0.999, 0.0)
    lifted = np.where(np.arange(13) % 2 == 0, 0.999, 0.05)
    first, second = decorrelate(R, base), decorrelate(R, lifted)
    assert first.objective == pytest.approx(second.objective, abs=1e-10)
    np.testing.assert_allclose(first.T, second.T, atol=1e-6)


@pytest.mark.parametrize("system", ["p6", "wine"])
@pytest.mark.parametrize("step", [1e-6, 1e-8, 1e-10])
def test_both_sides_of_the_threshold(systems, verify, system, step):
    R = systems[system]
    rho = threshold(R).upper
    below = decorrelate(R, rho - step)
    assert below.status == "exact"
    assert np.all(below.fidelity >= rho - step - 1e-9)
    above = decorrelate(R, rho + step)
    assert np.all(above.fidelity >= rho + step - 1e-9)
    if above.status != "exact":  # 1e-10 is within the tolerance of a floor
        verify(R, above)
        # D2 grows with the square of the distance, so it is tiny but certainly not zero.
        assert 0 < above.lower_bound <= above.objective < 1e4 * step**2
    for criterion in ("worst", "absolute"):
        other = decorrelate(R, rho + step, criterion=criterion)
        assert other.status in {"optimal", "exact"}
        assert other.objective < 100 * step + 1e-7


@pytest.mark.parametrize("p", [1, 4])
def test_uncorrelated_variables_need_nothing(p):
    for rho in (0.0, 0.5, 1.0):
        result = decorrelate(np.eye(p), rho)
        assert result.status == "exact"
        np.testing.assert_allclose(result.T, np.eye(p), atol=1e-12)
        assert result.objective <= 1e-15


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_floor_of_one_returns_the_variables_themselves(systems, verify, criterion, naive):
    R = systems["wine"]
    result = decorrelate(R, 1.0, criterion=criterion)
    np.testing.assert_array_equal(result.T, np.eye(13))
    assert result.objective == pytest.approx(naive.objective(R, np.eye(13), criterion), rel=1e-12)
    assert result.status == "optimal"
    assert result.gap <= 1e-7 * max(1.0, result.objective)
    priced = np.isinf(result.prices)
    assert priced.all() if criterion != "worst" else priced.sum() == 2


@pytest.mark.parametrize("criterion", CRITERIA)
def test_some_floors_of_one(systems, criterion):
    R = systems["wine"]
    floors = np.full(13, 0.9)
    floors[[0, 5]] = 1.0
    result = decorrelate(R, floors, criterion=criterion)
    assert result.status == "optimal"
    np.testing.assert_array_equal(result.T[:, [0, 5]], np.eye(13)[:, [0, 5]])
    # The limit of floors that tend to one.
    near = floors.copy()
    near[[0, 5]] = 1 - 1e-6
    other = decorrelate(R, near, criterion=criterion)
    assert other.objective <= result.objective
    assert other.objective == pytest.approx(result.objective, abs=2e-2)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_floors_ever_closer_to_one(systems, naive, criterion):
    R = systems["wdi"]
    values = []
    for distance in (1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12):
        result = decorrelate(R, 1 - distance, criterion=criterion)
        assert result.status == "optimal"
        values.append(result.objective)
    assert np.all(np.diff([*values, naive.objective(R, np.eye(8), criterion)]) > 0)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("budget", [0.0, 0.1])
def test_a_budget_for_what_is_not_correlated_is_not_needed(criterion, budget):
    result = maximize_fidelity(np.eye(3), budget, criterion=criterion)
    assert result.objective == 0
    assert np.all(result.rho_min == 1)
    assert check(result, np.eye(3)).passed
    assert prove(result, np.eye(3)).passed


@pytest.mark.parametrize("criterion", ["worst", "absolute"])
def test_one_direction_that_carries_half_of_the_variance(criterion):
    """There the second-order term of a step takes all the room that the outputs have."""
    p, rng = 130, np.random.default_rng(1)
    rows = rng.normal(size=(3 * p, p)) + rng.normal(size=(3 * p, 1))
    R = np.corrcoef(rows.T)
    edge = threshold(R).value
    answer = decorrelate(R, edge + 0.9 * (1 - edge), criterion=criterion)
    assert answer.status == "optimal"
    assert answer.n_iter < 60
    assert check(answer, R).passed


def test_outputs_without_floors_beside_a_smooth_kernel():
    """Eigenvalues down to 1e-8: rounding in completed outputs adds up over a thousand pairs."""
    p = 55
    R = sla.toeplitz(np.exp(-((np.arange(p) / 15.0) ** 2))) + 1e-8 * np.eye(p)
    R /= R[0, 0]
    floors = np.random.default_rng(1043).choice([0.0, 0.5], p)
    result = decorrelate(R, floors, criterion="absolute")
    assert result.status == "optimal"
    assert check(result, R).passed
    assert np.abs(result.correlation - np.eye(p))[floors == 0].max() < 1e-10
