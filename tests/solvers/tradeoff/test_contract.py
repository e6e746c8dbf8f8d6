"""The contract with the caller: status words, warnings, callbacks, determinism, symmetry."""

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.exceptions import NotCertifiedWarning

CRITERIA = ("squared", "worst", "absolute")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_too_few_steps_are_admitted(systems, criterion, naive):
    R = systems["wine"]
    with pytest.warns(NotCertifiedWarning, match=r"a gap of \d\.\d\de[-+]\d\d is open") as caught:
        result = decorrelate(R, 0.95, criterion=criterion, max_iter=3)
    assert result.status == "not_converged"
    assert f"{result.gap:.2e}" in str(caught[0].message)
    assert result.gap > 1e-7
    # Feasible all the same, and both numbers are true.
    assert np.all(result.fidelity >= 0.95 - 1e-12)
    np.testing.assert_allclose(np.diag(result.T.T @ R @ result.T), 1.0, atol=1e-10)
    best = decorrelate(R, 0.95, criterion=criterion)
    assert result.objective >= best.objective - 1e-9
    assert result.lower_bound <= best.objective + 1e-9
    assert naive.objective(R, result.T, criterion) == pytest.approx(result.objective)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_callback_sees_the_bounds_close(systems, criterion):
    calls = []
    result = decorrelate(
        systems["wine"], 0.95, criterion=criterion, callback=lambda *call: calls.append(call)
    )
    steps = [call for call in calls if call[1] > 0]
    assert len(steps) >= 3
    numbers = [k for k, _, _ in steps]
    assert numbers[-1] == max(numbers)
    for _, objective, bound in steps[2:]:
        assert bound <= result.objective + 1e-7
        assert objective >= result.lower_bound - 1e-7
    assert steps[-1][1] - steps[-1][2] < 1e-2


def test_pair_weights_scale_the_objective(systems):
    R = systems["wdi"]
    one = decorrelate(R, 0.9)
    ten = decorrelate(R, 0.9, pair_weights=np.full((8, 8), 10.0))
    assert ten.objective == pytest.approx(10 * one.objective, rel=1e-9)
    np.testing.assert_allclose(ten.prices, 10 * one.prices, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ten.T, one.T, atol=1e-7)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_pairs_of_weight_zero_do_not_count(systems, verify, criterion):
    R = systems["wdi"]
    omega = np.zeros((8, 8))
    omega[0, 5] = omega[5, 0] = 2.0
    result = decorrelate(R, 0.9, criterion=criterion, pair_weights=omega)
    verify(R, result)
    # One pair alone is the problem of two variables.
    angle = np.arccos(abs(R[0, 5])) + 2 * np.arccos(0.9)
    least = np.cos(angle)
    expected = 2 * least**2 if criterion == "squared" else 2 * least
    assert result.objective == pytest.approx(expected, abs=1e-7)


def test_no_pair_counts(systems):
    result = decorrelate(systems["wdi"], 0.95, pair_weights=np.zeros((8, 8)))
    assert result.objective == 0
    assert result.status == "optimal"
    assert np.all(result.fidelity >= 0.95 - 1e-12)
    assert np.all(result.prices == 0)


def test_anchored_composites(systems, naive):
    R = systems["wine"]
    rng = np.random.default_rng(1)
    B = rng.normal(size=(13, 4))
    result = decorrelate(R, 0.98, anchors=B)
    covariance = B.T @ R @ B
    scale = np.sqrt(np.diag(covariance))
    small = decorrelate(covariance / np.outer(scale, scale), 0.98)
    assert result.objective == pytest.approx(small.objective, abs=1e-10)
    T = result.T
    assert T.shape == (13, 4)
    np.testing.assert_allclose(np.diag(T.T @ R @ T), 1.0, atol=1e-10)
    assert np.all(np.diag((B / scale).T @ R @ T) >= 0.98 - 1e-10)
    assert naive.objective(R, T, "squared") == pytest.approx(result.objective, abs=1e-10)
