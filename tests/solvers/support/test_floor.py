"""δ₂ and δ∞ of a support."""

from __future__ import annotations

import numpy as np
import pytest

from skcoral.solvers.support import exactness, support_floor


@pytest.mark.parametrize("seed", range(3))
def test_each_number_bounds_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = 5
    R = np.corrcoef(rng.normal(size=(12, p)).T)
    mask = rng.random((p, p)) < 0.6
    floor = support_floor(R, mask, n_starts=20)
    assert floor.squared_bound <= floor.squared
    assert floor.worst_bound <= floor.worst
    assert floor.worst_bound**2 <= floor.squared + 1e-12
    assert floor.squared_bound <= p * (p - 1) / 2 * floor.worst**2 + 1e-12
    if exactness(R, mask).verdict == "impossible":
        assert floor.vanish is False


def test_both_vanish_together() -> None:
    chain = 0.7 ** np.abs(np.subtract.outer(range(6), range(6)))
    floor = support_floor(chain, [(i, i + 1) for i in range(5)])
    assert floor.vanish
    assert floor.squared <= 1e-15
    assert floor.worst <= 1e-8


def test_a_correlation_without_coefficients_stays() -> None:
    floor = support_floor([[1.0, -0.6], [-0.6, 1.0]], np.eye(2, dtype=bool))
    assert floor.vanish is False
    assert (floor.squared, floor.worst) == pytest.approx((0.36, 0.6))
    assert (floor.squared_bound, floor.worst_bound) == pytest.approx((0.36, 0.6))
