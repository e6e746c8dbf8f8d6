"""Warm starts from neighbouring answers: the same answers in fewer steps."""

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check
from skcoral.exceptions import InvalidArgumentError


def windows(p, n, count, seed=0):
    rng = np.random.default_rng(seed)
    mix = np.eye(p) + 0.6 * rng.normal(size=(p, p)) / np.sqrt(p)
    rows = rng.normal(size=(n + count, p)) @ mix
    return [np.corrcoef(rows[k : k + n].T) for k in range(count)]


@pytest.mark.parametrize(("p", "floor"), [(5, 0.99), (12, 0.97), (30, 0.97)])
def test_warm_answers_are_the_cold_ones(p, floor):
    last, cold_steps, warm_steps = None, 0, 0
    for R in windows(p, 40 * p, 12):
        cold = decorrelate(R, floor)
        warm = decorrelate(R, floor, warm=last)
        assert warm.status == cold.status
        np.testing.assert_allclose(warm.T, cold.T, atol=1e-8)
        assert check(warm, R).passed
        cold_steps += cold.n_iter
        warm_steps += warm.n_iter
        last = warm
    assert warm_steps < cold_steps


def test_a_neighbour_far_away_does_no_harm(random_correlation):
    far = decorrelate(random_correlation(7, 1), 0.999)
    R = random_correlation(7, 2)
    for floors in (0.5, 0.97, np.linspace(0, 1, 7), [0.0, 0.9, 0.99, 0.999, 1.0, 0.3, 0.99999]):
        cold, warm = decorrelate(R, floors), decorrelate(R, floors, warm=far)
        assert warm.status == cold.status
        assert warm.objective == pytest.approx(cold.objective, abs=1e-9)
        np.testing.assert_allclose(warm.T, cold.T, atol=1e-6)


def test_a_trade_off_is_left_where_the_floors_allow_exactness(random_correlation):
    R = random_correlation(6, 3)
    above = decorrelate(R, 0.999)
    assert above.status == "optimal"
    assert decorrelate(R, 0.3, warm=above).status == "exact"


def test_other_criteria_and_weights_take_a_neighbour_too(random_correlation):
    R = random_correlation(6, 4)
    squared = decorrelate(R, 0.98)
    omega = 1.0 + np.arange(36).reshape(6, 6)
    omega = np.triu(omega, 1) + np.triu(omega, 1).T
    for settings in ({"criterion": "worst"}, {"criterion": "absolute"}, {"pair_weights": omega}):
        cold = decorrelate(R, 0.98, **settings)
        warm = decorrelate(R, 0.98, warm=squared, **settings)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-9)


def test_what_is_no_answer_is_refused(random_correlation):
    R = random_correlation(5, 0)
    with pytest.raises(InvalidArgumentError, match="an answer of decorrelate"):
        decorrelate(R, 0.99, warm=R)
    with pytest.raises(InvalidArgumentError, match=r"\b5\b.*\b4\b"):
        decorrelate(R, 0.99, warm=decorrelate(R[:4, :4], 0.99))
