"""Floors next to one and pair weights of any size: every answer passes its own check."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from skcoral import decorrelate
from skcoral.certificates import check


def extreme(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, str, np.ndarray | None]:
    """A small matrix, floors most of which are within 1e-6 of one, a criterion, weights."""
    while True:
        p = int(rng.integers(2, 7))
        mix = np.eye(p) + rng.uniform(0, 1) * rng.normal(size=(p, p))
        R = np.corrcoef((rng.normal(size=(p + int(rng.integers(1, 20)), p)) @ mix).T)
        R = 0.5 * (R + R.T)
        np.fill_diagonal(R, 1.0)
        if np.linalg.eigvalsh(R)[0] > 1e-8:
            break
    below = rng.choice([3e-15, 1e-14, 1e-12, 1e-9, 1e-6, 1e-16, 0.0], size=p)
    floors = np.where(rng.random(p) < 0.75, 1 - below, rng.uniform(0.3, 1, p))
    if rng.random() < 0.3:
        floors = np.full(p, 1 - 3e-15)
    weights = None
    if rng.random() < 0.5:
        weights = np.triu(10.0 ** rng.uniform(-4, 4, (p, p)), 1)
        weights = weights + weights.T
    return R, floors, str(rng.choice(["squared", "worst", "absolute"])), weights


@pytest.mark.parametrize("count", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_answers_pass_their_own_check(count: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(count):
        R, floors, criterion, weights = extreme(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = decorrelate(R, floors, criterion=criterion, pair_weights=weights)
        verdict = check(result, R)
        assert verdict.passed, (floors, criterion, verdict.problems)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
@pytest.mark.parametrize("floor", [0.1, 0.999])
def test_large_weights_on_correlations_that_vanish(criterion: str, floor: float) -> None:
    k = np.arange(6)
    for R in (0.999 ** np.abs(k[:, None] - k), 0.9 + 0.1 * np.eye(6)):
        answer = decorrelate(R, floor, criterion=criterion, pair_weights=np.full((6, 6), 1e8))
        assert check(answer, R).problems == ()
