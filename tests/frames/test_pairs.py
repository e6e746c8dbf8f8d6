"""Smoothed criteria over pairs of outputs: gradients against differences, and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skcoral.frames.pairs import _smoothed, criterion_of


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_gradients(criterion: Any, weighted: bool) -> None:
    """Twice the upper triangle counts each pair once, from both of its outputs."""
    rng = np.random.default_rng(3)
    U, move = rng.normal(size=(2, 3, 6))
    U /= np.linalg.norm(U, axis=0)
    W = rng.uniform(0.5, 2, (6, 6))
    W = 0.5 * (W + W.T) * (1 - np.eye(6)) if weighted else None
    for width in (1.0, 0.1):
        step = 1e-6
        ahead, behind = (_smoothed(U + s * move, criterion, W, width)[0] for s in (step, -step))
        gradient = _smoothed(U, criterion, W, width)[1]
        assert np.sum(gradient * move) == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("criterion", ["squared", "worst", "absolute"])
def test_narrow_smoothing_is_the_criterion(criterion: Any) -> None:
    U = np.random.default_rng(4).normal(size=(3, 6))
    U /= np.linalg.norm(U, axis=0)
    wanted = criterion_of(U, criterion, None)
    assert _smoothed(U, criterion, None, 1e-8)[0] == pytest.approx(wanted, abs=1e-7)
