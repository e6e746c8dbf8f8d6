"""Correlation matrices that are easy, ugly, or both."""

from __future__ import annotations

import numpy as np
import pytest

import problems


@pytest.fixture(
    params=[(family, seed) for family in problems.REGULAR for seed in range(3)],
    ids=lambda case: f"{case[0].__name__}-{case[1]}",
)
def ugly(request: pytest.FixtureRequest) -> np.ndarray:
    """Random correlation matrix of one of several families, condition number up to 1e8."""
    family, seed = request.param
    rng = np.random.default_rng(seed)
    while True:
        R = family(rng, int(rng.integers(2, 20)))
        if np.linalg.cond(R) < 1e8:
            return R
